"""What people did, written down: every request that changes something, and every one that was refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_core.log import get_logger
from agent_server.principal import PRINCIPAL, SAFE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from agent_server.people.accounts import Accounts
    from agent_server.principal import Principal

_REFUSALS = frozenset({401, 403, 429})
_log = get_logger("server")


class Audited:
    """Writes down who asked for what, when, from where, and what came of it; never what was said."""

    def __init__(self, app: ASGIApp, accounts: Accounts) -> None:
        self._app = app
        self._accounts = accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if scope["method"] not in SAFE or status in _REFUSALS:
                    await self._note(scope, status)  # first: what is answered is written down
            await send(message)

        await self._app(scope, receive, send_noted)

    async def _note(self, scope: Scope, status: int) -> None:
        who: Principal | None = scope.get(PRINCIPAL)
        client = scope.get("client")
        try:
            await asyncio.to_thread(
                self._accounts.note,
                tenant="" if who is None or who.tenant is None else who.tenant,
                person="" if who is None else who.id,
                action=scope["method"],
                target=scope["path"][:500],
                outcome=str(status),
                address="" if client is None else str(client[0]),
            )
        except Exception as error:  # whatever a database raises: the request goes on
            _log.error("audit_not_written", error=repr(error), path=scope["path"])

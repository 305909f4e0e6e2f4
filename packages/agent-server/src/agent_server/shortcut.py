"""The request that every turn makes, answered without the way through all routes.

FastAPI tries the routes one by one and gathers what a handler takes, field by field. That was a third of all
that the event loop did for `POST …/runs`. A request that looks as clients send it is answered here instead.
Every other one goes to FastAPI, also one with a mistake: the route is described there, and errors are worded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import ValidationError
from starlette.requests import Request

from agent_server.idempotency import LONGEST_KEY
from agent_server.problem import problem_of
from agent_server.routes.runs import router, start_run
from agent_server.schemas import RunRequest
from agent_server.services import services_of, who_asks

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope, Send

_PATH = re.compile(r"/v1/sessions/([^/]+)/runs")
_ROUTE = next(route for route in router.routes if getattr(route, "endpoint", None) is start_run)
"""Under whose name requests are counted."""
_JSON = ("application/json", "application/json; charset=utf-8")


class Shortcut:
    """Starts runs, and passes all else on."""

    def __init__(self, api: FastAPI) -> None:
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            await self._api(scope, receive, send)
            return
        found = _PATH.fullmatch(scope["path"])
        if found is None:
            await self._api(scope, receive, send)
            return
        first = await receive()
        asked = _read(scope, first)
        if asked is None:
            await self._api(scope, _again(first, receive), send)
            return
        scope.update(app=self._api, route=_ROUTE, path_params={"session_id": found[1]})
        response = await _started(Request(scope), found[1], asked)
        await response(scope, receive, send)


def _read(scope: Scope, message: Message) -> tuple[RunRequest, str | None] | None:
    """Return what a request asks for and its key; None if it is not as usual."""
    headers = dict(scope["headers"])
    kind = headers.get(b"content-type", b"").decode("latin-1").lower()
    key: str | None = headers.get(b"idempotency-key", b"").decode("latin-1") or None
    usual = kind in _JSON and len(key or "") <= LONGEST_KEY and len(headers) == len(scope["headers"])
    if not usual or message.get("more_body", False):
        return None
    try:
        return RunRequest.model_validate_json(message.get("body", b"")), key
    except ValidationError:
        return None


async def _started(request: Request, session_id: str, asked: tuple[RunRequest, str | None]) -> Response:
    wanted, key = asked
    try:
        services, who = await services_of(request), await who_asks(request)
        return await start_run(request, services, who, session_id, wanted, idempotency_key=key)
    except Exception as error:  # as FastAPI has it: whatever it is, the client hears of it
        return problem_of(error).response(request.scope)


def _again(first: Message, receive: Receive) -> Receive:
    """Return what gives a message once more, and then what comes."""
    waiting = [first]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message

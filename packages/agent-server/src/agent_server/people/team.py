"""The people of a server, as the routes see them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_core.log import get_logger
from agent_server.principal import Level
from agent_server.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from agent_server.people.accounts import Accounts
    from agent_server.people.oidc import OidcProvider
    from agent_server.people.quota import Quota
    from agent_server.people.vault import Vault
    from agent_server.principal import Principal
    from agent_server.runs import Run

_log = get_logger("server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Everything about several people."""

    accounts: Accounts
    quota: Quota
    vault: Vault
    provider: OidcProvider | None = None
    _watching: set[asyncio.Task[None]] = field(default_factory=set)

    async def close(self) -> None:
        """Let go of connections."""
        if self.provider is not None:
            await self.provider.close()

    async def own_key(self, who: Principal, provider: str) -> str | None:
        """Return the key that a person has stored for a provider."""
        sealed = await asyncio.to_thread(self.accounts.sealed_key, who.id, provider)
        return None if sealed is None else self.vault.open(sealed, whose=who.id)

    def check_request(self, who: Principal, settings: Mapping[str, Any], free: Collection[str]) -> None:
        """Refuse settings of a person that could send the server's keys elsewhere, or open its folders.

        Args:
            free: What everybody may set.

        Raises:
            Problem: If there are such settings.
        """
        if who.level >= Level.OPERATE:
            return
        for name in settings:
            if name not in free:
                raise Problem(
                    403,
                    "setting-not-allowed",
                    f"You may not set {name!r}",
                    f"You may: {', '.join(sorted(free))}.",
                )

    async def run(self, who: Principal, start: Callable[[], Awaitable[Run]]) -> Run:
        """Begin a run of a person, if they may have one more, and count what it uses.

        Raises:
            Problem: If they have too many, or have used up what a day brings.
        """
        if who.level >= Level.OPERATE:
            return await start()
        self.quota.check_used(await asyncio.to_thread(self.accounts.used_today, who.id))
        stack = AsyncExitStack()
        await stack.enter_async_context(self.quota.running(who.id))
        try:
            run = await start()
        except BaseException:
            await stack.aclose()
            raise
        task = asyncio.create_task(self._watch(who, run, stack))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return run

    async def _watch(self, who: Principal, run: Run, stack: AsyncExitStack) -> None:
        """Wait for the end of a run, and count what it used."""
        async with stack:
            try:
                final = await run.end()
                used: dict[str, Any] = dict(final.get("usage") or {})
                await asyncio.to_thread(
                    self.accounts.add_usage,
                    who.id,
                    runs=1,
                    tokens=int(used.get("total_tokens") or 0),
                    cost=float(used.get("cost") or 0.0),
                )
            except AgentError as error:
                _log.warning("usage_not_counted", person=who.id, error=str(error))

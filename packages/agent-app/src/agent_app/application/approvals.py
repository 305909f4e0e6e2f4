"""Approvals, and what was granted for longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app import grants as permissions, operations
from agent_app.services import ApplicationBase
from agent_core.drivers import call, call_async

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from agent_app.store.base import Approval, Grant, GrantEffect, GrantScope


class Approvals(ApplicationBase):
    """Decisions that runs wait for, and permissions that people gave."""

    def approvals(self, session_id: str | None = None, *, decided: bool = False) -> Sequence[Approval]:
        """Return the decisions that runs wait for; with *decided*, also those that were made."""
        return call(operations.approvals(self._services, session_id, decided=decided))

    async def approvals_async(
        self, session_id: str | None = None, *, decided: bool = False
    ) -> Sequence[Approval]:
        """Do what `approvals` does, on the running event loop."""
        return await call_async(operations.approvals(self._services, session_id, decided=decided))

    def decide(self, approval_id: str, decision: Any, *, session_id: str | None = None) -> Approval:
        """Keep a decision: True or False, or a dict with `approved`, `value` and `reason`.

        `chat` without a text continues with it. With `grant`, a dict of `scope` and `pattern`, it counts for
        later calls as well; both are kept, or neither.

        Args:
            session_id: The session that must have asked, if the caller may answer for that one only.

        Raises:
            DecisionNotAccepted: If nobody waits for it, it was decided already, it is not a decision, or
                its grant is not about the call.
        """
        return call(operations.decide(self._services, approval_id, decision, session_id))

    async def decide_async(
        self, approval_id: str, decision: Any, *, session_id: str | None = None
    ) -> Approval:
        """Do what `decide` does, on the running event loop."""
        return await call_async(operations.decide(self._services, approval_id, decision, session_id))

    def grant(
        self,
        pattern: str,
        *,
        scope: GrantScope,
        session_id: str | None = None,
        project: str | PathLike[str] | None = None,
        effect: GrantEffect = "allow",
    ) -> Grant:
        """Let the calls that fit a pattern run from now on, or forbid them: here, in a project, or always.

        What waits for just that is decided with it. What the configuration denies, or asks for always, no
        grant lets run. A grant that says the contrary of an earlier one takes its place.

        Args:
            scope: "session" needs *session_id*; "project" needs *project* or a session that has one.

        Raises:
            SpecError: If the pattern cannot be read.
            ArgumentError: If the session or project is missing.
            SessionNotFound: If there is no such session.
        """
        return call(permissions.give(self._services, pattern, scope, session_id, project, effect))

    async def grant_async(
        self,
        pattern: str,
        *,
        scope: GrantScope,
        session_id: str | None = None,
        project: str | PathLike[str] | None = None,
        effect: GrantEffect = "allow",
    ) -> Grant:
        """Do what `grant` does, on the running event loop."""
        flow = permissions.give(self._services, pattern, scope, session_id, project, effect)
        return await call_async(flow)

    def grants(
        self, session_id: str | None = None, project: str | PathLike[str] | None = None
    ) -> Sequence[Grant]:
        """Return what was granted and counts in a session or a project; without both, all there is."""
        return call(permissions.find(self._services, session_id, project))

    async def grants_async(
        self, session_id: str | None = None, project: str | PathLike[str] | None = None
    ) -> Sequence[Grant]:
        """Do what `grants` does, on the running event loop."""
        return await call_async(permissions.find(self._services, session_id, project))

    def revoke(self, grant_id: str) -> bool:
        """Take a grant back; it does not count for the next call any more. False if there is none."""
        return call(permissions.take_back(self._services, grant_id))

    async def revoke_async(self, grant_id: str) -> bool:
        """Do what `revoke` does, on the running event loop."""
        return await call_async(permissions.take_back(self._services, grant_id))

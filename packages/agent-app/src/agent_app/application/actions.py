"""Actions and lifecycles of plugins."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_app import operations
from agent_app.lifecycle import lifecycle
from agent_app.services import ApplicationBase, caller_context
from agent_core.drivers import call, call_async
from agent_core.steps import run_blocking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core import Session


class Actions(ApplicationBase):
    """What plugins can do."""

    def get_actions(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Return the actions of application plugins and, for a session, of its agent's plugins."""
        return call(operations.actions(self._services, session_id))

    async def get_actions_async(self, session_id: str | None = None) -> list[dict[str, Any]]:
        """Do what `get_actions` does, on the running event loop."""
        return await call_async(operations.actions(self._services, session_id))

    def execute_session_action(
        self,
        session_id: str,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
        *,
        confirmed: bool = False,
    ) -> tuple[Session, dict[str, Any]]:
        """Run an action of the session's agent, store what it changes, and return both.

        Args:
            confirmed: Whether somebody has answered yes to what the action asks before it runs.

        Raises:
            ActionNotConfirmedError: If it asks for a confirmation first; with the question.
            ActionTimeoutError: If it took longer than it may; nothing was stored.
            ActionCancelledError: If `cancel` was called for the session; nothing was stored.
        """
        flow = operations.session_action(
            self._services, session_id, plugin, action_id, params, context, confirmed=confirmed
        )
        session, result = call(flow)
        return self._services.given(session), result

    async def execute_session_action_async(
        self,
        session_id: str,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
        *,
        confirmed: bool = False,
    ) -> tuple[Session, dict[str, Any]]:
        """Do what `execute_session_action` does, on the running event loop."""
        flow = operations.session_action(
            self._services, session_id, plugin, action_id, params, context, confirmed=confirmed
        )
        return await call_async(flow)

    def execute_application_action(
        self,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
        *,
        confirmed: bool = False,
    ) -> dict[str, Any]:
        """Run an action of an application plugin, carry out its mutations, and return its result.

        Args:
            confirmed: Whether somebody has answered yes to what the action asks before it runs.

        Raises:
            ActionNotConfirmedError: If it asks for a confirmation first; with the question.
            ActionTimeoutError: If it took longer than it may; nothing was changed.
            ActionCancelledError: If `cancel_action` was called for it; nothing was changed.
        """
        flow = operations.application_action(
            self._services, plugin, action_id, params, context, confirmed=confirmed
        )
        return call(flow)

    async def execute_application_action_async(
        self,
        plugin: str,
        action_id: str,
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None = None,
        *,
        confirmed: bool = False,
    ) -> dict[str, Any]:
        """Do what `execute_application_action` does, on the running event loop."""
        flow = operations.application_action(
            self._services, plugin, action_id, params, context, confirmed=confirmed
        )
        return await call_async(flow)

    def cancel_action(self, plugin: str, action_id: str) -> bool:
        """Stop waiting for an action of an application plugin; False if it is not at work here.

        Nothing that it asks for is done then. `cancel` does the same for the action of a session.
        """
        return self._services.actions.cancel(plugin, action_id)

    async def cancel_action_async(self, plugin: str, action_id: str) -> bool:
        """Do what `cancel_action` does, which never waits."""
        return self.cancel_action(plugin, action_id)

    def run_session_lifecycle(
        self,
        name: str,
        session: Session,
        config: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, list[dict[str, Any]]]:
        """Run a lifecycle of any name; return the session and what each action came to. Nothing is stored."""
        own = caller_context(self._services, context, lifecycle=name)
        outcome = call(lifecycle(self._services, name, session, config=config, context=own))
        return outcome.session, list(outcome.results)

    async def run_session_lifecycle_async(
        self,
        name: str,
        session: Session,
        config: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[Session, list[dict[str, Any]]]:
        """Do what `run_session_lifecycle` does, on the running event loop."""
        own = caller_context(self._services, context, lifecycle=name)
        flow = lifecycle(self._services, name, session, config=config, context=own)
        outcome = await call_async(flow)
        return outcome.session, list(outcome.results)

    def get_ui_elements(self) -> list[dict[str, Any]]:
        """Return what application plugins want shown."""
        return self._services.plugins.ui_elements(self.config)

    async def get_ui_elements_async(self) -> list[dict[str, Any]]:
        """Do what `get_ui_elements` does, on the running event loop."""
        elements = partial(self._services.plugins.ui_elements, self.config)
        return await call_async(run_blocking(elements))

"""Actions of plugins on a session: those that people ask for, and those of lifecycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_core.actions import is_confirmed
from agent_core.cancellation import check_token
from agent_core.config import read_config
from agent_core.context import build_context
from agent_core.core.plugins import (
    CoreBase,
    check_context,
    check_list,
    check_name,
    check_session,
    check_triggers,
    read_context,
)
from agent_core.drivers import call, call_async
from agent_core.errors import AgentError, ArgumentError, ArgumentTypeError
from agent_core.frozen import Dicts, FrozenList, JsonObject, State, freeze, thaw
from agent_core.pipeline import actions
from agent_core.session import Session

if TYPE_CHECKING:
    from agent_core.cancellation import CancellationToken
    from agent_core.steps import Flow


class Actions(CoreBase):
    """Session actions and lifecycles."""

    def get_session_actions(self, config: JsonObject) -> Dicts:
        """Return the actions that extensions and features offer for a session."""
        if not self._registry.providers:
            read_config(config)
            return []
        request = self._edit_request("get_session_actions", Session(""), config, None)
        return [action.to_dict() for action in actions.open_host(request).actions()]

    def execute_session_action(
        self,
        session: Session,
        config: JsonObject,
        plugin_id: str,
        action_id: str,
        params: JsonObject,
        context: JsonObject | None = None,
    ) -> tuple[Session, JsonObject]:
        """Run an action and return the changed session and what the action reports.

        Args:
            context: What the action receives in addition. With `confirmed` set to True there, somebody has
                answered yes to what the action asks before it runs.

        Raises:
            UnknownActionError: If no enabled plugin offers it.
            ActionInputError: If an input is missing, unknown or of the wrong type.
            ActionNotConfirmedError: If it asks for a confirmation first.
            ActionTimeoutError: If it took longer than it may.
            PluginError: If the plugin failed or returned nonsense.
        """
        return call(self.session_action_flow(session, config, plugin_id, action_id, params, context))

    async def execute_session_action_async(
        self,
        session: Session,
        config: JsonObject,
        plugin_id: str,
        action_id: str,
        params: JsonObject,
        context: JsonObject | None = None,
    ) -> tuple[Session, JsonObject]:
        """Do what `execute_session_action` does, on the running event loop."""
        flow = self.session_action_flow(session, config, plugin_id, action_id, params, context)
        return await call_async(flow)

    def session_action_flow(
        self,
        session: Session,
        config: JsonObject,
        plugin_id: str,
        action_id: str,
        params: JsonObject,
        context: JsonObject | None = None,
        *,
        confirmed: bool = False,
        cancellation: CancellationToken | None = None,
    ) -> Flow[tuple[Session, JsonObject]]:
        """Return an action as a flow, for layers that drive flows of their own.

        Args:
            confirmed: Whether somebody has answered yes to what the action asks before it runs.
            cancellation: Ends the wait for it, with `ActionCancelledError`.
        """
        check_name("plugin_id", plugin_id)
        check_name("action_id", action_id)
        if not isinstance(params, Mapping):
            raise ArgumentError(f"params must be a dict of action inputs, not {type(params).__name__}")
        if cancellation is not None:
            check_token(cancellation)
        answered = is_confirmed(confirmed, check_context(context))
        resolution = yield from self._resolving(config)
        request = self._request("execute_session_action", session, resolution, context)
        return (
            yield from actions.session_action(
                request,
                plugin_id,
                action_id,
                params,
                confirmed=answered,
                cancellation=cancellation,
            )
        )

    def execute_lifecycle_actions(
        self,
        session: Session,
        config: JsonObject,
        trigger: str | Sequence[str],
        *,
        context: JsonObject | None = None,
    ) -> tuple[Session, Dicts]:
        """Run every extension and feature action that waits for *trigger*, any name or several.

        Each action sees the session as those before it left it.

        Returns:
            The session, and for each action its plugin, id, owner and result.
        """
        return call(self.lifecycle_flow(session, config, trigger, context=context))

    async def execute_lifecycle_actions_async(
        self,
        session: Session,
        config: JsonObject,
        trigger: str | Sequence[str],
        *,
        context: JsonObject | None = None,
    ) -> tuple[Session, Dicts]:
        """Do what `execute_lifecycle_actions` does, on the running event loop."""
        return await call_async(self.lifecycle_flow(session, config, trigger, context=context))

    def lifecycle_flow(
        self,
        session: Session,
        config: JsonObject,
        trigger: str | Sequence[str],
        *,
        context: JsonObject | None = None,
        describe: Callable[[AgentError], object] | None = None,
    ) -> Flow[tuple[Session, Dicts]]:
        """Return a lifecycle as a flow, for layers that drive flows of their own.

        Args:
            describe: Makes what is recorded as `error` of an action that fails; the other actions still run,
                and what they did is kept. Without it, the first failure ends the lifecycle.
        """
        triggers = check_triggers(trigger)
        if not self._registry.providers:
            read_config(config)
            return session, []
        resolution = yield from self._resolving(config)
        request = self._request(
            "execute_lifecycle_actions",
            session,
            resolution,
            context,
            in_lifecycle=True,
            known={"lifecycle": triggers[0]},
        )
        return (yield from actions.lifecycle_actions(request, triggers, describe))

    def execute_response_lifecycle_actions(
        self,
        session: Session,
        config: JsonObject,
        trigger: str,
        *,
        provider: Any,
        features: list[Any],
        state: State,
        final_messages: Dicts,
        native_messages: Dicts,
        native_final_messages: Dicts,
        stream: bool,
        turn_native_start_index: int,
        request_context: JsonObject,
        extra_context: JsonObject | None = None,
    ) -> tuple[Dicts, Dicts, JsonObject, Dicts]:
        """Run the actions that may still change a turn's messages before they are returned.

        A request does this by itself for `response_finalize`; this is for flows that make a turn of
        their own.

        Returns:
            The final messages, the native messages, the session metadata to merge, and the results.
        """
        check_name("trigger", trigger)
        owned = {"core": self, "config": read_config(config)}
        context = build_context(owned, check_context(request_context))
        known = {**owned, "lifecycle": trigger}
        extra = read_context(extra_context, known, check_session(session), in_lifecycle=True)
        outcome = call(
            actions.response_actions(
                actions.ActionHost(provider, tuple(features), state, context),
                session,
                trigger,
                actions.ResponseOutcome(
                    _frozen_dicts(final_messages), _frozen_dicts(native_messages), {}, []
                ),
                extra=extra,
                native_final_messages=_frozen_dicts(native_final_messages),
                stream=stream,
                turn_native_start_index=turn_native_start_index,
            )
        )
        return thaw(outcome.finals), thaw(outcome.native), outcome.metadata, outcome.results

    def initialize_action_request(
        self,
        native_messages: Dicts,
        state: State,
        request_runtime: JsonObject,
        request_context: JsonObject,
    ) -> tuple[Dicts, JsonObject]:
        """Let the plugins prepare an action's native messages as they would prepare a request's.

        For actions that ask the model themselves, with the `request_runtime` and `request_context`
        of their own context.
        """
        check_list("native_messages", native_messages)
        for name, value in (
            ("state", state),
            ("request_runtime", request_runtime),
            ("request_context", request_context),
        ):
            if not isinstance(value, dict):
                raise ArgumentTypeError(f"{name} must be a dict, not {type(value).__name__}")
        if request_runtime.get("provider") is None:
            raise ArgumentError("request_runtime must include the provider")
        features = request_runtime.get("features")
        check_list("request_runtime['features']", [] if features is None else features)
        native: Dicts = freeze(native_messages)
        for plugin in (request_runtime["provider"], *(features or ())):
            native, state = plugin.initialize_request(native, state, context=request_context)
        return native, state


def _frozen_dicts(messages: Dicts) -> FrozenList:
    return FrozenList(freeze(message) for message in messages if isinstance(message, dict))

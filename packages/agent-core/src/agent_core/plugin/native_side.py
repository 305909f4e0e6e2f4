"""The hooks that extensions and features share: both follow the provider in each cold-path chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from agent_core.actions import Action, Owner
from agent_core.frozen import FrozenDict, FrozenList, freeze
from agent_core.plugin.base import COMMON_HOOKS, PluginWrapper
from agent_core.plugin.hooks import HookSpec, expect, expect_tuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core.session import Session

NATIVE_SIDE_HOOKS: tuple[HookSpec, ...] = (
    *COMMON_HOOKS,
    HookSpec("init", ("config", "state", "context"), 2),
    HookSpec("get_models", ("config", "models", "context"), 2),
    HookSpec("initialize_request", ("native_messages", "state", "context"), 2),
    HookSpec("to_native_messages", ("messages", "native_messages", "state", "context"), 2),
    HookSpec("from_native_messages", ("native_messages", "messages", "state", "context"), 2),
    HookSpec("finalize", ("final_messages", "native_messages", "state", "context"), 3),
    HookSpec("get_actions", ("state", "context"), 0),
    HookSpec("execute_action", ("action_id", "session", "native_messages", "params", "context", "state"), 4),
)


class NativeSideWrapper(PluginWrapper):
    """A plugin that sees what the provider made and may hand on something else."""

    hooks: ClassVar[tuple[HookSpec, ...]] = NATIVE_SIDE_HOOKS
    owner: Owner

    def init(self, config: FrozenDict, state: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """Return the request's state after the plugin added its own."""
        return self._state("init", state, config, state, context)

    def get_models(self, config: FrozenDict, models: FrozenList, context: Any = None) -> list[dict[str, Any]]:
        """Return the models after the plugin added, changed or removed some."""
        if not self.has("get_models"):
            return models
        return self._dicts("get_models", config, models, context)

    def initialize_request(
        self, native_messages: list[dict[str, Any]], state: dict[str, Any], context: Any = None
    ) -> tuple[FrozenList, dict[str, Any]]:
        """Let the plugin prepare the native messages and the state of a new request."""
        return self._native_and_state("initialize_request", freeze(native_messages), state, context)

    def to_native(
        self, messages: FrozenList, native: FrozenList, state: dict[str, Any], context: Any
    ) -> FrozenList:
        """Let the plugin adjust what the provider made of *messages*."""
        answer = self._call("to_native_messages", native, messages, native, state, context)
        return self._native("to_native_messages", answer, native)

    def from_native(
        self, native: FrozenList, messages: FrozenList, state: dict[str, Any], context: Any
    ) -> FrozenList:
        """Let the plugin adjust the readable messages made of *native*."""
        answer = self._call("from_native_messages", messages, native, messages, state, context)
        return self._native("from_native_messages", answer, messages)

    def finalize(
        self, finals: FrozenList, native: FrozenList, state: dict[str, Any], context: Any
    ) -> tuple[FrozenList, FrozenList, dict[str, Any]]:
        """Let the plugin adjust the turn's native messages once the provider is done."""
        answer = self._call("finalize", (finals, native, state), finals, native, state, context)
        expected = "(final_messages, native_messages, state)"
        new_finals, items, state = expect_tuple(self.name, "finalize", answer, (list, list, dict), expected)
        return self._native("finalize", new_finals, finals), self._native("finalize", items, native), state

    def get_actions(self, state: dict[str, Any], context: Any = None) -> list[Action]:
        """Return the actions that the plugin offers for a session."""
        found = self._dicts("get_actions", state, context)
        return [Action.from_dict(definition, plugin=self.name, owner=self.owner) for definition in found]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Sequence[dict[str, Any]],
        params: Mapping[str, Any],
        context: Mapping[str, Any] | None,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        """Run one of the plugin's actions and return its result, not yet applied."""
        answer = self._call(
            "execute_action", None, action_id, session, native_messages, params, context, state
        )
        result: dict[str, Any] = expect(self.name, "execute_action", answer, dict, "a dict")
        return result

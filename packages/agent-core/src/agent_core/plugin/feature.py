"""Features and provider extensions as the pipeline sees them.

Both follow the provider in every chain except that of single chunks, which only extensions see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agent_core.actions import Action, Owner
from agent_core.errors import PluginError
from agent_core.frozen import Dicts, FrozenDict, FrozenList, JsonObject, State, freeze
from agent_core.models import ToolDescriptor
from agent_core.plugin.base import COMMON_HOOKS, PluginWrapper, Problems, tolerate
from agent_core.plugin.hooks import HookSpec, expect, expect_tuple, frozen_dicts, wrong_answer

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

    def init(self, config: FrozenDict, state: State, context: object = None) -> JsonObject:
        """Return the request's state after the plugin added its own."""
        return self._state("init", state, self.own_config(config), state, context)

    def get_models(self, config: FrozenDict, models: FrozenList, context: object = None) -> Dicts:
        """Return the models after the plugin added, changed or removed some."""
        if not self.has("get_models"):
            return models
        return self._dicts("get_models", self.own_config(config), models, context)

    def initialize_request(
        self, native_messages: Dicts, state: State, context: object = None
    ) -> tuple[FrozenList, State]:
        """Let the plugin prepare the native messages and the state of a new request."""
        return self._native_and_state("initialize_request", freeze(native_messages), state, context)

    def to_native_messages(
        self, messages: FrozenList, native: FrozenList, state: State, context: object = None
    ) -> FrozenList:
        """Let the plugin adjust what the provider made of *messages*."""
        answer = self._call("to_native_messages", native, messages, native, state, context)
        return self._native("to_native_messages", answer, native)

    def from_native_messages(
        self, native: FrozenList, messages: FrozenList, state: State, context: object = None
    ) -> FrozenList:
        """Let the plugin adjust the readable messages made of *native*."""
        answer = self._call("from_native_messages", messages, native, messages, state, context)
        return self._native("from_native_messages", answer, messages)

    def finalize(
        self, finals: FrozenList, native: FrozenList, state: State, context: object = None
    ) -> tuple[FrozenList, FrozenList, State]:
        """Let the plugin adjust the turn's native messages once the provider is done."""
        answer = self._call("finalize", (finals, native, state), finals, native, state, context)
        expected = "(final_messages, native_messages, state)"
        new_finals, items, state = expect_tuple(self.name, "finalize", answer, (list, list, dict), expected)
        return self._native("finalize", new_finals, finals), self._native("finalize", items, native), state

    def get_actions(
        self, state: State, context: object = None, problems: Problems | None = None
    ) -> list[Action]:
        """Return the actions that the plugin offers for a session; see `get_config_schema` for problems."""
        actions: list[Action] = []
        for definition in self._good_dicts(problems, "get_actions", state, context):
            try:
                actions.append(Action.from_dict(definition, plugin=self.name, owner=self.owner))
            except PluginError as error:
                tolerate(problems, error)
        return actions

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Sequence[JsonObject],
        params: Mapping[str, object],
        context: Mapping[str, object] | None,
        state: State,
    ) -> JsonObject:
        """Run one of the plugin's actions and return its result, not yet applied."""
        answer = self._call(
            "execute_action", None, action_id, session, native_messages, params, context, state
        )
        return expect(self.name, "execute_action", answer, dict, "a dict")


class ExtensionWrapper(NativeSideWrapper):
    """A plugin that belongs to one provider and sees every chunk of its answers."""

    kind = "extension"
    owner = "provider_extension"
    hooks: ClassVar[tuple[HookSpec, ...]] = (
        *NATIVE_SIDE_HOOKS,
        HookSpec("process_chunk", ("chunk", "partials", "finals", "native_messages", "state"), 5),
    )


class FeatureWrapper(NativeSideWrapper):
    """A plugin that works with any provider, on the cold path only."""

    kind = "feature"
    owner = "feature"
    hooks: ClassVar[tuple[HookSpec, ...]] = (
        *NATIVE_SIDE_HOOKS,
        HookSpec("prepare_tools", ("tools", "config", "context"), 1),
        HookSpec("get_template", ("config",), 0),
        HookSpec("get_completions", ("config", "text"), 2),
        HookSpec("apply_completion", ("config", "text", "completion"), 3),
    )

    def prepare_tools(
        self, tools: Sequence[ToolDescriptor], config: FrozenDict, context: object = None
    ) -> list[ToolDescriptor]:
        """Return the tools for the model, filtered and ordered by the feature."""
        answer = self._call("prepare_tools", tools, list(tools), self.own_config(config), context)
        if not isinstance(answer, (list, tuple)) or not all(isinstance(t, ToolDescriptor) for t in answer):
            raise wrong_answer(self.name, "prepare_tools", "a list of ToolDescriptor", answer)
        return list(answer)

    def get_template(self, config: FrozenDict) -> str:
        """Return the feature's template text for applications, or an empty string."""
        answer = self._call("get_template", "", self.own_config(config))
        return expect(self.name, "get_template", answer, str, "a string")

    def get_completions(self, config: FrozenDict, text: str) -> Dicts:
        """Return the feature's suggestions for the text before the cursor; what is not a dict is dropped."""
        answer = self._call("get_completions", [], self.own_config(config), text)
        found = expect(self.name, "get_completions", answer, list, "a list of dicts")
        dicts = [item for item in found if isinstance(item, dict)]
        return [*frozen_dicts(self.name, "get_completions", dicts)]

    def apply_completion(self, config: FrozenDict, text: str, completion: JsonObject) -> str:
        """Return what an accepted completion becomes, or an empty string."""
        answer = self._call("apply_completion", "", self.own_config(config), text, completion)
        return answer if isinstance(answer, str) else ""

"""A feature as the pipeline sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from agent_core.models import ToolDescriptor
from agent_core.plugin.hooks import HookSpec, expect, wrong_answer
from agent_core.plugin.native_side import NATIVE_SIDE_HOOKS, NativeSideWrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.frozen import FrozenDict


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
        self, tools: Sequence[ToolDescriptor], config: FrozenDict, context: Any = None
    ) -> list[ToolDescriptor]:
        """Return the tools that the model shall see, filtered and ordered by the feature."""
        answer = self._call("prepare_tools", tools, list(tools), config, context)
        if not isinstance(answer, (list, tuple)) or not all(isinstance(t, ToolDescriptor) for t in answer):
            raise wrong_answer(self.name, "prepare_tools", "a list of ToolDescriptor", answer)
        return list(answer)

    def get_template(self, config: FrozenDict) -> str:
        """Return the feature's template text for applications, or an empty string."""
        template: str = expect(
            self.name, "get_template", self._call("get_template", "", config), str, "a string"
        )
        return template

    def get_completions(self, config: FrozenDict, text: str) -> list[dict[str, Any]]:
        """Return the feature's suggestions for the text before the cursor; what is no dict is left out."""
        answer = self._call("get_completions", [], config, text)
        found: list[Any] = expect(self.name, "get_completions", answer, list, "a list of dicts")
        return [item for item in found if isinstance(item, dict)]

    def apply_completion(self, config: FrozenDict, text: str, completion: dict[str, Any]) -> str:
        """Return what an accepted completion shall become, or an empty string."""
        answer = self._call("apply_completion", "", config, text, completion)
        return answer if isinstance(answer, str) else ""

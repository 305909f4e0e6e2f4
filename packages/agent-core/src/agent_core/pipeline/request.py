"""One request: who takes part, for whom, and what plugins learn about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.context import Context, build_context
from agent_core.frozen import EMPTY, FrozenDict, FrozenList, JsonObject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_core.cancellation import CancellationToken
    from agent_core.messages import Message
    from agent_core.resolve import Resolution
    from agent_core.resolve.tools import ToolTable
    from agent_core.session import Session


@dataclass(frozen=True, slots=True)
class Frame:
    """Sends the whole conversation, with messages before and after it that the session does not keep.

    It is an ordinary `transform`, and the one that costs the same however long the conversation is.
    """

    front: tuple[Message, ...] = ()
    back: tuple[Message, ...] = ()

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        return [*self.front, *messages, *self.back]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a caller asked for.

    Attributes:
        core: The `AgentCore`, for plugins that need its operations.
        operation: The public method behind this request, for reports.
        extra: The caller's own context.
        transform: Chooses what of the conversation is sent; None sends all of it.
    """

    core: object
    resolution: Resolution
    session: Session
    operation: str
    request_id: str | None = None
    stream: bool = False
    cancellation: CancellationToken | None = None
    extra: Mapping[str, object] | None = None
    transform: Callable[[Sequence[Message]], Sequence[Message]] | None = None

    def context(self, tools: ToolTable | None = None) -> Context:
        """Return the context of this request's plugins."""
        owned = {**self._about(tools), "session": self.session.frozen_dict()}
        return build_context(owned, self.extra)

    def context_without_session(self, tools: ToolTable | None = None) -> Context:
        """Return the same without the conversation, which is the part that can be long."""
        return build_context(self._about(tools), self.extra)

    def _about(self, tools: ToolTable | None) -> JsonObject:
        return {
            **plugin_context(self.core, self.resolution, tools),
            # A server has ids of its own for what it was asked, and plugins are to find those.
            "request_id": (self.extra or EMPTY).get("request_id", self.request_id),
            "stream": self.stream,
        }


def plugin_context(core: object, resolution: Resolution, tools: ToolTable | None = None) -> JsonObject:
    """Return the part of the context that depends only on the configuration."""
    described: JsonObject = {}
    if tools is not None:
        described = {"available_tools": FrozenList(tools.available), "tools": FrozenList(tools.effective)}
    return {
        "core": core,
        "config": resolution.config,
        "trigger_source": "core",
        "provider": resolution.provider.name,
        "enabled_plugin_ids": enabled_plugin_ids(resolution),
        "tags": resolution.tags,
        "models": resolution.models,
        **described,
    }


def enabled_plugin_ids(resolution: Resolution) -> FrozenDict:
    """Return the names of the plugins that are on, by kind."""
    by_kind: dict[str, Sequence[Any]] = {
        "providers": [resolution.provider],
        "extensions": resolution.provider.extensions,
        "features": resolution.features,
        "tools": resolution.tools,
    }
    return FrozenDict({kind: FrozenList([p.name for p in plugins]) for kind, plugins in by_kind.items()})

"""What the plugins of one resolved agent placed into its runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_core import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_core import ToolDescriptor
    from agent_runtime.phases import Phase
    from agent_runtime.state import StateKey


class TaggedHook(NamedTuple):
    """A phase hook and the plugin that placed it."""

    plugin: str
    hook: Callable[..., Any]


class TaggedGate(NamedTuple):
    """A tool gate and the plugin that placed it."""

    plugin: str
    gate: Callable[..., Any]


class TaggedHandler(NamedTuple):
    """The handler of an action or an effect and the plugin that placed it."""

    plugin: str
    handler: Callable[..., Any]


class TaggedTransform(NamedTuple):
    """A transform of requests or of results, and the plugin that placed it."""

    plugin: str
    transform: Callable[..., Any]


class KeyRegistration(NamedTuple):
    """A state key and the plugin that placed it."""

    plugin: str
    key: StateKey[Any]


class TaggedTool(NamedTuple):
    """A tool and the plugin that placed it."""

    plugin: str
    tool: Any


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request is about to send; a transform returns it changed.

    Attributes:
        messages: The messages, in order. Those of the session keep the provider's own form as long
            as they are passed on as they are; new ones are sent and not kept.
        tools: The tools that the model is offered; a transform may leave some out.
        config: The request's settings.
    """

    messages: Sequence[Message]
    tools: tuple[ToolDescriptor, ...]
    config: Mapping[str, Any]

    def with_system(self, text: str) -> Prompt:
        """Return the prompt with *text* behind its system message, or as one if it has none."""
        front = [message for message in self.messages[:1] if message.role == "system"]
        own = f"{front[0].content}\n\n{text}" if front else text
        return replace(self, messages=[Message("system", own), *self.messages[len(front) :]])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnv:
    """Everything that plugins placed into the runs of one agent; each `resolve` makes a fresh one.

    Attributes:
        phase_hooks: The hooks of each phase, in the order of the plugins.
        tool_gates: Who is asked before a call runs.
        scheduled_action_handlers: Who does an action that a hook scheduled, by name.
        effect_handlers: Who does a side effect, by name.
        request_transforms: What changes a request before it is sent, in order.
        result_transforms: What changes a tool's result before the session has it, in order.
        key_registrations: The state keys.
        tools: The tools that plugins brought, by id.
        plugins: The plugins themselves, for `on_activate` and `on_deactivate`.
    """

    phase_hooks: Mapping[Phase, tuple[TaggedHook, ...]]
    tool_gates: tuple[TaggedGate, ...]
    scheduled_action_handlers: Mapping[str, TaggedHandler]
    effect_handlers: Mapping[str, TaggedHandler]
    request_transforms: tuple[TaggedTransform, ...]
    result_transforms: tuple[TaggedTransform, ...] = ()
    key_registrations: tuple[KeyRegistration, ...]
    tools: Mapping[str, Any]
    plugins: tuple[Any, ...]

    @property
    def keys(self) -> dict[str, StateKey[Any]]:
        """The state keys by name."""
        return {registration.key.name: registration.key for registration in self.key_registrations}

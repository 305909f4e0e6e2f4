"""What a plugin may place into a run, and by whom each thing was placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_runtime.env import (
    ExecutionEnv,
    KeyRegistration,
    TaggedGate,
    TaggedHandler,
    TaggedHook,
    TaggedTool,
    TaggedTransform,
)
from agent_runtime.errors import EnvBuildError, ToolIdConflict
from agent_runtime.phases import Phase
from agent_runtime.state import StateKey

if TYPE_CHECKING:
    from collections.abc import Callable


class PluginRegistrar:
    """Handed to a plugin's `register`, once per resolve; whatever it places is tagged with its id.

    Attributes:
        plugin: The plugin that is placing things now.
        spec: The declaration of the agent that is being resolved.
    """

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.plugin = ""
        self._hooks: dict[Phase, list[TaggedHook]] = {}
        self._gates: list[TaggedGate] = []
        self._actions: dict[str, TaggedHandler] = {}
        self._effects: dict[str, TaggedHandler] = {}
        self._transforms: list[TaggedTransform] = []
        self._result_transforms: list[TaggedTransform] = []
        self._keys: dict[str, KeyRegistration] = {}
        self._tools: dict[str, TaggedTool] = {}

    def phase_hook(self, phase: Phase | str, hook: Callable[..., Any]) -> None:
        """Call *hook* with a `PhaseView` at that phase; what it returns is a `Command` or None.

        It may be a function, a coroutine function, or a generator that yields steps.
        """
        try:
            known = Phase(phase)
        except ValueError:
            phases = ", ".join(repr(one.value) for one in Phase)
            raise self._error(f"there is no phase {phase!r}; there are {phases}") from None
        self._check(hook, "a phase hook")
        self._hooks.setdefault(known, []).append(TaggedHook(self.plugin, hook))

    def tool_gate(self, gate: Callable[..., Any]) -> None:
        """Ask *gate* with a `PhaseView` before each call; it answers Block, Suspend, SetResult or None.

        A gate must be pure: it may be asked again about the same call.
        """
        self._check(gate, "a tool gate")
        self._gates.append(TaggedGate(self.plugin, gate))

    def action_handler(self, name: str, handler: Callable[..., Any]) -> None:
        """Let ``handler(payload, view)`` do the actions of that name; it may return a `Command`."""
        self._check(handler, f"the handler of action {name!r}")
        self._place(self._actions, name, TaggedHandler(self.plugin, handler), "action")

    def effect_handler(self, name: str, handler: Callable[..., Any]) -> None:
        """Let ``handler(payload, view)`` do the effects of that name; it may be slow, or a coroutine."""
        self._check(handler, f"the handler of effect {name!r}")
        self._place(self._effects, name, TaggedHandler(self.plugin, handler), "effect")

    def request_transform(self, transform: Callable[..., Any]) -> None:
        """Let ``transform(prompt, view)`` change what is sent; it returns a `Prompt`."""
        self._check(transform, "a request transform")
        self._transforms.append(TaggedTransform(self.plugin, transform))

    def result_transform(self, transform: Callable[..., Any]) -> None:
        """Let ``transform(message, call, context)`` change a tool's message before anybody has it.

        It gets the message as a dict, the `CallView` and what the tool was told, and returns a message.
        It may be slow: where there is an event loop it runs in a worker thread.
        """
        self._check(transform, "a result transform")
        self._result_transforms.append(TaggedTransform(self.plugin, transform))

    def state_key(self, key: StateKey[Any]) -> None:
        """Install a state key; its name must be new."""
        if not isinstance(key, StateKey):
            raise self._error(f"a state key must be a StateKey, not {type(key).__name__}")
        self._place(self._keys, key.name, KeyRegistration(self.plugin, key), "state key")

    def tool(self, id: str, tool: Any) -> None:
        """Offer a tool: a typed function, a tool plugin class or an object of one."""
        there = self._tools.get(id)
        if there is not None:
            owners = (f"plugin {there.plugin!r}", f"plugin {self.plugin!r}")
            raise ToolIdConflict(self.spec.id, id, owners)
        self._tools[id] = TaggedTool(self.plugin, tool)

    @property
    def tools(self) -> dict[str, TaggedTool]:
        """The tools that were placed, with their owners."""
        return self._tools

    def env(self, plugins: tuple[Any, ...]) -> ExecutionEnv:
        """Return what was placed."""
        return ExecutionEnv(
            phase_hooks={phase: tuple(hooks) for phase, hooks in self._hooks.items()},
            tool_gates=tuple(self._gates),
            scheduled_action_handlers=self._actions,
            effect_handlers=self._effects,
            request_transforms=tuple(self._transforms),
            result_transforms=tuple(self._result_transforms),
            key_registrations=tuple(self._keys.values()),
            tools={id: tagged.tool for id, tagged in self._tools.items()},
            plugins=plugins,
        )

    def _place(self, places: dict[str, Any], name: str, entry: Any, what: str) -> None:
        if name in places:
            problem = f"{what} {name!r} is placed by plugin {places[name].plugin!r} already"
            raise EnvBuildError(self.spec.id, self.plugin, problem, hint="give one of the two another name")
        places[name] = entry

    def _check(self, function: object, what: str) -> None:
        if not callable(function):
            raise self._error(f"{what} must be callable, not {type(function).__name__}")

    def _error(self, problem: str) -> EnvBuildError:
        return EnvBuildError(self.spec.id, self.plugin, problem)

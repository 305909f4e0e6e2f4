"""What a run is made of: the resolved agent, and what its plugins placed into its runs.

A plugin's `register` is given a `PluginRegistrar` once per resolve. What it places there (hooks, gates,
handlers, transforms, state keys, tools) is tagged with the plugin's id and becomes the agent's
`ExecutionEnv`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from agent_core import Message
from agent_core.frozen import EMPTY
from agent_runtime.errors import EnvBuildError, ToolIdConflict
from agent_runtime.phases import Phase
from agent_runtime.state import StateKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core import AgentCore, Decision, ToolDescriptor
    from agent_runtime.executor import Executor, ProviderExecutor
    from agent_runtime.specs import AgentSpec, ModelSpec, ToolSettings
    from agent_runtime.watch import Watch


P = TypeVar("P", "TaggedHandler", "KeyRegistration")
Hook = Callable[..., Any]
"""A function of a plugin; the methods of `PluginRegistrar` say what each kind is called with and returns."""

Sees = Callable[[Sequence[Message]], Sequence[Message]]
"""Chooses what an agent that takes over sees of the conversation before."""


class RuntimePlugin(Protocol):
    """A plugin that takes part in runs."""

    name: str

    def register(self, registrar: PluginRegistrar) -> None:
        """Place what the plugin has into the agent's runs; called once per resolve."""


class TaggedHook(NamedTuple):
    """A phase hook and the plugin that placed it."""

    plugin: str
    hook: Hook


class TaggedGate(NamedTuple):
    """A tool gate and the plugin that placed it."""

    plugin: str
    gate: Hook


class TaggedHandler(NamedTuple):
    """The handler of an action or an effect and the plugin that placed it."""

    plugin: str
    handler: Hook


class TaggedTransform(NamedTuple):
    """A transform of requests or of results, and the plugin that placed it."""

    plugin: str
    transform: Hook


class KeyRegistration(NamedTuple):
    """A state key and the plugin that placed it."""

    plugin: str
    key: StateKey[Any]


class TaggedTool(NamedTuple):
    """A tool and the plugin that placed it."""

    plugin: str
    tool: object


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one request is about to send; a transform returns it changed.

    Attributes:
        messages: The messages, in order. Those of the session keep the provider's own form as long
            as they are passed on as they are; new ones are sent and not kept.
        tools: The tools that the model is offered; a transform may leave some out.
        config: The request's settings.
        warnings: What a person should know of the changes before the model answers; each is shown once a run.
    """

    messages: Sequence[Message]
    tools: tuple[ToolDescriptor, ...]
    config: Mapping[str, Any] = field(repr=False)  # may have a key in it
    warnings: tuple[str, ...] = ()

    def with_system(self, text: str) -> Prompt:
        """Return the prompt with *text* behind its system message, or as one if it has none."""
        front = [message for message in self.messages[:1] if message.role == "system"]
        own = f"{front[0].content}\n\n{text}" if front else text
        return replace(self, messages=[Message("system", own), *self.messages[len(front) :]])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnv:
    """Everything that plugins placed into the runs of one agent; `register` of a declared one makes it anew.

    Attributes:
        phase_hooks: The hooks of each phase, in the order of the plugins.
        tool_gates: The gates that decide before a call runs.
        scheduled_action_handlers: The handlers of actions that hooks schedule, by name.
        effect_handlers: The handlers of effects, by name.
        request_transforms: What changes a request before it is sent, in order.
        result_transforms: What changes a tool's result before the session has it, in order.
        end_hooks: What is asked when the model has called nothing and the run would end.
        watches: What sees every event of a run.
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
    end_hooks: tuple[TaggedHook, ...] = ()
    watches: tuple[Watch, ...] = ()
    key_registrations: tuple[KeyRegistration, ...]
    tools: Mapping[str, object]
    plugins: tuple[Any, ...]

    @property
    def keys(self) -> dict[str, StateKey[Any]]:
        """The state keys by name."""
        return {registration.key.name: registration.key for registration in self.key_registrations}


class PluginRegistrar:
    """Handed to a plugin's `register`, once per resolve; whatever it places is tagged with its id.

    Attributes:
        plugin: The plugin that is placing things now.
        spec: The declaration of the agent that is being resolved.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self.spec = spec
        self.plugin = ""
        self._hooks: dict[Phase, list[TaggedHook]] = {}
        self._gates: list[TaggedGate] = []
        self._actions: dict[str, TaggedHandler] = {}
        self._effects: dict[str, TaggedHandler] = {}
        self._transforms: list[TaggedTransform] = []
        self._end_hooks: list[TaggedHook] = []
        self._watches: list[Watch] = []
        self._result_transforms: list[TaggedTransform] = []
        self._keys: dict[str, KeyRegistration] = {}
        self._tools: dict[str, TaggedTool] = {}

    def phase_hook(self, phase: Phase | str, hook: Hook) -> None:
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

    def tool_gate(self, gate: Hook) -> None:
        """Ask *gate* with a `PhaseView` before each call; it answers Block, Suspend, SetResult or None.

        A gate must be pure: it may be asked again about the same call.
        """
        self._check(gate, "a tool gate")
        self._gates.append(TaggedGate(self.plugin, gate))

    def action_handler(self, name: str, handler: Hook) -> None:
        """Let ``handler(payload, view)`` do the actions of that name; it may return a `Command`."""
        self._check(handler, f"the handler of action {name!r}")
        self._place(self._actions, name, TaggedHandler(self.plugin, handler), "action")

    def effect_handler(self, name: str, handler: Hook) -> None:
        """Let ``handler(payload, view)`` do the effects of that name; it may be slow, or a coroutine."""
        self._check(handler, f"the handler of effect {name!r}")
        self._place(self._effects, name, TaggedHandler(self.plugin, handler), "effect")

    def request_transform(self, transform: Hook) -> None:
        """Let ``transform(prompt, view)`` change what is sent; it returns a `Prompt`."""
        self._check(transform, "a request transform")
        self._transforms.append(TaggedTransform(self.plugin, transform))

    def result_transform(self, transform: Hook) -> None:
        """Let ``transform(message, call, context)`` change a tool's message before it is stored or shown.

        It gets the message as a dict, the `CallView` and the context of the call, and returns a message.
        It may be slow: where there is an event loop it runs in a worker thread.
        """
        self._check(transform, "a result transform")
        self._result_transforms.append(TaggedTransform(self.plugin, transform))

    def end_hook(self, hook: Hook) -> None:
        """Ask *hook* with a `PhaseView` when the run would end naturally; ``Command().go_on(text)`` goes on.

        It is asked after the last step, when nothing has arrived in the inbox. The text becomes a message
        that the model answers; the stop conditions of the agent still count.
        """
        self._check(hook, "an end hook")
        self._end_hooks.append(TaggedHook(self.plugin, hook))

    def watch(self, watch: Watch) -> None:
        """Let ``watch(scope)`` make a watcher at the beginning of each run, which sees every event of it."""
        self._check(watch, "a watch")
        self._watches.append(watch)

    def state_key(self, key: StateKey[Any]) -> None:
        """Install a state key; its name must be new."""
        if not isinstance(key, StateKey):
            raise self._error(f"a state key must be a StateKey, not {type(key).__name__}")
        self._place(self._keys, key.name, KeyRegistration(self.plugin, key), "state key")

    def tool(self, id: str, tool: object) -> None:
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

    def env(self, plugins: tuple[object, ...]) -> ExecutionEnv:
        """Return everything that was placed."""
        return ExecutionEnv(
            phase_hooks={phase: tuple(hooks) for phase, hooks in self._hooks.items()},
            tool_gates=tuple(self._gates),
            scheduled_action_handlers=self._actions,
            effect_handlers=self._effects,
            request_transforms=tuple(self._transforms),
            result_transforms=tuple(self._result_transforms),
            end_hooks=tuple(self._end_hooks),
            watches=tuple(self._watches),
            key_registrations=tuple(self._keys.values()),
            tools={id: tagged.tool for id, tagged in self._tools.items()},
            plugins=plugins,
        )

    def _place(self, places: dict[str, P], name: str, entry: P, what: str) -> None:
        if name in places:
            problem = f"{what} {name!r} is placed by plugin {places[name].plugin!r} already"
            raise EnvBuildError(self.spec.id, self.plugin, problem, hint="give one of the two another name")
        places[name] = entry

    def _check(self, function: object, what: str) -> None:
        if not callable(function):
            raise self._error(f"{what} must be callable, not {type(function).__name__}")

    def _error(self, problem: str) -> EnvBuildError:
        return EnvBuildError(self.spec.id, self.plugin, problem)


class Successor(NamedTuple):
    """An agent that may take over a conversation.

    Attributes:
        find: Returns it, ready to run.
        sees: What it sees of the conversation so far; None for all of it.
    """

    find: Callable[[], ResolvedAgent]
    sees: Sees | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAgent:
    """An agent that can run.

    Attributes:
        spec: Its declaration.
        model: The model that is asked first.
        provider: What asks the model; a `RetryingExecutor` if the agent wants retries or fallbacks.
        config: The configuration of its requests.
        env: The hooks, gates, handlers and tools of its plugins; declared ones place them at each resolve.
        tools: The tools that it may call, by id.
        decisions: Why each plugin is on or off.
        warnings: Problems of the declaration that do not prevent a run.
        core: Runs requests and tools.
        models: Executors for other declared models, for questions outside the conversation.
        descriptors: What the model sees of the tools.
        tool_settings: How its tools run.
        unclaimed: The warnings about sections of the declaration that belong to no plugin.
        handoffs: The agents that it may hand over to, by id.
    """

    spec: AgentSpec
    model: ModelSpec
    provider: Executor
    config: Mapping[str, Any] = field(repr=False)  # may have a key in it
    env: ExecutionEnv
    tools: Mapping[str, object]
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...]
    core: AgentCore
    models: Mapping[str, ProviderExecutor]
    descriptors: tuple[ToolDescriptor, ...]
    tool_settings: ToolSettings
    unclaimed: tuple[str, ...] = ()
    handoffs: Mapping[str, Successor] = field(default_factory=lambda: EMPTY)

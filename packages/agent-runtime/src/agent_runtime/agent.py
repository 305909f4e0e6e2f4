"""One agent as a program writes it: a model, instructions, tools, an output type; run in one call.

An `Agent` is a thin layer on `AgentRuntimeBuilder`. It keeps what it was given, builds a runtime of it,
and builds it again when a decorator adds something, or when a run wants another model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Unpack, cast, overload

from agent_core import ArgumentError, ArgumentTypeError, FunctionTool, tool as make_tool
from agent_core.dict_form import replace
from agent_core.drivers import call, call_async
from agent_core.steps import with_events
from agent_runtime.agent_run import KEY, AgentRun
from agent_runtime.assembly import Assembly, Handoff, Parts, assemble, provider_id
from agent_runtime.chat import Chat
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.delegates import MOST_DEPTH, DelegateTool
from agent_runtime.errors import DelegateCycle
from agent_runtime.guardrails import Guardrail
from agent_runtime.habits import missing
from agent_runtime.loop import run_request
from agent_runtime.options import (
    AgentOptions,
    RunOptions,
    check_options,
    check_session,
    check_tool_options,
    check_values,
)
from agent_runtime.outputs import read_output_type
from agent_runtime.repl import talk
from agent_runtime.results import LIMITS, MISSING, LimitReached, Reason
from agent_runtime.run_stream import AsyncRunSteps, AsyncRunStream, RunSteps, RunStream
from agent_runtime.runs import RunRequest
from agent_runtime.tool_sets import checked_tools

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from contextlib import AbstractContextManager

    from typing_extensions import TypeVar

    from agent_core.events import RunEvent
    from agent_core.steps import Flow
    from agent_runtime.env import ResolvedAgent
    from agent_runtime.outputs import OutputMode
    from agent_runtime.results import RunResult
    from agent_runtime.run_context import RunContext
    from agent_runtime.runtime import AgentRuntime
    from agent_runtime.tool_sets import ToolSet

    DepsT = TypeVar("DepsT", default=None)
    DepsT_co = TypeVar("DepsT_co", covariant=True)
    OutputT = TypeVar("OutputT", default=str)
    Sent = TypeVar("Sent", bound="_Sendable")
    Said = TypeVar("Said", bound="str | Awaitable[str | None] | None")
else:
    from typing import TypeVar

    DepsT, DepsT_co, OutputT = TypeVar("DepsT"), TypeVar("DepsT_co", covariant=True), TypeVar("OutputT")
    Sent, Said = TypeVar("Sent"), TypeVar("Said")

P = ParamSpec("P")
R = TypeVar("R")


class AgentSettings(AgentOptions, total=False):
    """What `Agent` takes by name, apart from the types of its output and of its dependencies.

    Attributes:
        instructions: What the model reads first: a text, a function of the `RunContext`, or several.
        tools: Typed functions, tool plugins, tool sets, and tools of other libraries.
        handoffs: Agents that may take over the conversation.
        delegates: Agents that do tasks as tools; each gets a task and gives its answer.
        output_retries: How often an output that is none is sent back to the model.
        output_mode: How the model gives its output: by calling a tool, by the provider's own structured
            output ("native"), by writing JSON ("prompt"); "auto" chooses by what the model can do.
    """

    instructions: str | Callable[..., Any] | Sequence[str | Callable[..., Any]]
    tools: Sequence[object] | ToolSet
    handoffs: Sequence[Agent[Any, Any] | Handoff]
    delegates: Sequence[Agent[Any, Any]]
    output_retries: int
    output_mode: OutputMode


class _Sendable(Protocol):
    """Anything that a model can send as an argument; a `RunContext`, which cannot be pickled, is not."""

    def __reduce__(self) -> str | tuple[Any, ...]: ...


class _ToolDecorator(Protocol[DepsT_co]):
    """What ``@agent.tool(...)`` does with a function; the same as ``@agent.tool``."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[RunContext[DepsT_co], P], R], /
    ) -> FunctionTool[..., R]: ...
    @overload
    def __call__(self, function: Callable[[], R], /) -> FunctionTool[..., R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Sent, P], R], /) -> FunctionTool[..., R]: ...


class _GuardrailDecorator(Protocol[DepsT]):
    """What ``@agent.input_guardrail(...)`` does with a function; the same as ``@agent.input_guardrail``."""

    @overload
    def __call__(
        self, function: Callable[[RunContext[DepsT], str], Said], /
    ) -> Callable[[RunContext[DepsT], str], Said]: ...
    @overload
    def __call__(self, function: Callable[[str], Said], /) -> Callable[[str], Said]: ...


@dataclass(frozen=True, slots=True)
class _Override:
    """What a block of code uses in place of what the agent has."""

    model: object = None
    deps: object = MISSING
    tools: tuple[object, ...] | None = None


_MOST_ASSEMBLIES = 32
"""How many models an agent is kept ready for; a program may make one for each run."""

_overrides: ContextVar[dict[int, _Override] | None] = ContextVar("agent_overrides", default=None)


class Agent(Generic[DepsT, OutputT]):
    """One agent, ready to talk.

    Args:
        model: "local" for the embedded model, "provider:model" for any installed provider
            ("anthropic:claude-sonnet-5"), the id of one of `models`, or a provider class or object.
        output_type: What a run is for: a type, a list or union of types, a function, or several of these.
            By default it is the model's text.
        deps_type: The type of what runs get as `deps`; it is only for type checkers.
        settings: The fields of `AgentSettings`: `instructions`, `tools`, `handoffs` and all others.

    Attributes:
        name: Its name.
        handoffs: The agents that may take over; agents may be added, so that two can hand over to each other.
    """

    @overload
    def __init__(
        self,
        model: object = "local",
        *,
        deps_type: type[DepsT] | None = None,
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: object = "local",
        *,
        output_type: type[OutputT],
        deps_type: type[DepsT] | None = None,
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: object = "local",
        *,
        output_type: Sequence[type[OutputT]],
        deps_type: type[DepsT] | None = None,
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: object = "local",
        *,
        output_type: Callable[..., Coroutine[Any, Any, OutputT]],
        deps_type: type[DepsT] | None = None,
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    @overload
    def __init__(
        self,
        model: object = "local",
        *,
        output_type: Callable[..., OutputT],
        deps_type: type[DepsT] | None = None,
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    # Unions, `Literal` and several kinds at once are no `type`; `Agent[Deps, A | B]` can be written by hand.
    @overload
    def __init__(
        self: Agent[None, Any],
        model: object = "local",
        *,
        output_type: object,
        deps_type: None = None,
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[DepsT, Any],
        model: object = "local",
        *,
        output_type: object,
        deps_type: type[DepsT],
        **settings: Unpack[AgentSettings],
    ) -> None: ...
    def __init__(
        self,
        model: object = "local",
        *,
        output_type: object = str,
        deps_type: object = None,
        **settings: Any,
    ) -> None:
        check_options(settings, AgentSettings, "Agent", ("model", "output_type", "deps_type"))
        check_values(settings)
        texts, functions = _instructions(settings.pop("instructions", ()))
        if prompt := settings.pop("system_prompt", ""):
            texts.insert(0, prompt)
        self.name: str = settings.get("name") or "agent"
        self.handoffs: list[Agent[Any, Any] | Handoff] = _agents(
            "handoffs", settings.pop("handoffs", ()), (Agent, Handoff)
        )
        self._deps_type = deps_type
        self._on_limit = settings.pop("on_limit", "raise")
        self._limits = settings.pop("limits", None)
        self._parts = Parts(
            name=self.name,
            model=model,
            system_prompt="\n\n".join(texts),
            instructions=tuple(functions),
            tools=tuple(checked_tools(settings.pop("tools", ()))),
            delegates=tuple(_agents("delegates", settings.pop("delegates", ()), (Agent,))),
            output=read_output_type(output_type),
            output_mode=settings.pop("output_mode", "auto"),
            output_retries=settings.pop("output_retries", 2),
            settings={key: value for key, value in settings.items() if key != "name"},
        )
        self._assemblies: dict[object, Assembly] = {}
        self._assembly()  # what is wrong is said here, where it was written

    @property
    def runtime(self) -> AgentRuntime:
        """The runtime behind it, for everything that this class does not offer."""
        return self._assembly().runtime

    @property
    def description(self) -> str:
        """One sentence about it, for other agents."""
        return str(self._parts.settings.get("description", ""))

    def __repr__(self) -> str:
        made = self._parts
        tools = ", ".join(sorted(self._assembly().tool_names)) or "no tools"
        return f"<Agent {self.name!r} on {self._assembly().model_id!r}: {made.output.words}, {tools}>"

    if not TYPE_CHECKING:  # a type checker finds out by itself

        def __getattr__(self, name: str) -> object:
            raise missing("Agent", name)

    # What decorators add

    @overload
    def tool(self, function: Callable[Concatenate[RunContext[DepsT], P], R], /) -> FunctionTool[..., R]: ...
    @overload
    def tool(self, function: Callable[[], R], /) -> FunctionTool[..., R]: ...
    @overload
    def tool(self, function: Callable[Concatenate[Sent, P], R], /) -> FunctionTool[..., R]: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        parallel: bool = True,
        blocking: bool = True,
        idempotent: bool = False,
        retries: int | None = None,
        requires_approval: bool = False,
    ) -> _ToolDecorator[DepsT]: ...
    def tool(self, function: Callable[..., Any] | None = None, /, **options: Any) -> object:
        """Add a function as a tool: as ``@agent.tool`` or ``@agent.tool(retries=2)``.

        Its schema is made of its signature and docstring; a first parameter of type `RunContext` is not
        in it.

        Args:
            options: What `agent_core.tool` takes.

        Raises:
            ArgumentTypeError: If there is no such option.
        """
        check_tool_options(options)
        if function is None:
            return lambda function: self._add_tool(make_tool(function, **options))
        return self._add_tool(make_tool(function, **options))

    def _add_tool(self, made: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
        self._change(tools=(*self._parts.tools, made))
        return made

    @overload
    def instructions(self, given: str, /) -> str: ...
    @overload
    def instructions(
        self, given: Callable[[RunContext[DepsT]], Said], /
    ) -> Callable[[RunContext[DepsT]], Said]: ...
    @overload
    def instructions(self, given: Callable[[], Said], /) -> Callable[[], Said]: ...
    def instructions(self, given: Any, /) -> Any:
        """Add a text for the model to read first, or a function that returns one before each request.

        A function may take the `RunContext`, and may be async. Several add up.
        """
        if isinstance(given, str):
            texts = [text for text in (self._parts.system_prompt, given) if text]
            self._change(system_prompt="\n\n".join(texts))
        else:
            _check_function("instructions", given)
            self._change(instructions=(*self._parts.instructions, given))
        return given

    @overload
    def output_validator(
        self, function: Callable[[RunContext[DepsT], OutputT], OutputT | Awaitable[OutputT]], /
    ) -> Callable[[RunContext[DepsT], OutputT], OutputT | Awaitable[OutputT]]: ...
    @overload
    def output_validator(
        self, function: Callable[[OutputT], OutputT | Awaitable[OutputT]], /
    ) -> Callable[[OutputT], OutputT | Awaitable[OutputT]]: ...
    def output_validator(self, function: Any, /) -> Any:
        """Add a function that looks at each output and returns it, perhaps changed.

        If it raises `ModelRetry`, the model reads why and tries again.
        """
        _check_function("output_validator", function)
        self._change(validators=(*self._parts.validators, function))
        return function

    @overload
    def input_guardrail(
        self, function: Callable[[RunContext[DepsT], str], Said], /
    ) -> Callable[[RunContext[DepsT], str], Said]: ...
    @overload
    def input_guardrail(self, function: Callable[[str], Said], /) -> Callable[[str], Said]: ...
    @overload
    def input_guardrail(
        self, /, *, parallel: bool = False, name: str | None = None
    ) -> _GuardrailDecorator[DepsT]: ...
    def input_guardrail(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        parallel: bool = False,
        name: str | None = None,
    ) -> object:
        """Add a function that looks at what the user said and returns why the run must end, or None.

        It may take the `RunContext` first, and may be async.

        Args:
            parallel: Whether it looks while the model answers; the answer waits for it.
            name: What errors call it; by default the function's name.
        """

        def add(check: Any) -> Any:
            _check_function("input_guardrail", check)
            made = Guardrail("input_guardrail", name or check.__name__, check, parallel)
            self._change(input_guardrails=(*self._parts.input_guardrails, made))
            return check

        return add if function is None else add(function)

    @overload
    def output_guardrail(
        self, function: Callable[[RunContext[DepsT], OutputT], Said], /
    ) -> Callable[[RunContext[DepsT], OutputT], Said]: ...
    @overload
    def output_guardrail(self, function: Callable[[OutputT], Said], /) -> Callable[[OutputT], Said]: ...
    def output_guardrail(self, function: Any, /) -> Any:
        """Add a function that looks at the output and returns why the run must end, or None.

        It may take the `RunContext` first, and may be async. If it raises `ModelRetry`, the model reads why
        and tries again.
        """
        _check_function("output_guardrail", function)
        made = Guardrail("output_guardrail", function.__name__, function)
        self._change(output_guardrails=(*self._parts.output_guardrails, made))
        return function

    def _change(self, **parts: Any) -> None:
        self._parts = replace(self._parts, **parts)
        self._assemblies.clear()

    # Running

    @overload
    def run(
        self: Agent[None, OutputT], messages: object = (), *, deps: None = None, **options: Unpack[RunOptions]
    ) -> RunResult[OutputT]: ...
    @overload
    def run(
        self, messages: object = (), *, deps: DepsT, **options: Unpack[RunOptions]
    ) -> RunResult[OutputT]: ...
    def run(self, messages: object = (), *, deps: Any = None, **options: Any) -> RunResult[OutputT]:
        """Run the agent on a text or on messages, and return what it came to.

        Args:
            messages: What the user says: a text, a `File`, a message, or several.
            deps: What tools and other functions of the agent find in their `RunContext`.
            options: The fields of `RunOptions`.

        Raises:
            LimitReached: If the run ended at a limit, unless ``on_limit="return"``; `result` has the rest.
            GuardrailTripped: If a guardrail ended it.
            AgentError: If the run failed; its `partial` may have what was produced up to then.
        """
        work = self._work(messages, deps, options, silent=True)
        return work.settled(call(work.flow()))

    @overload
    async def run_async(
        self: Agent[None, OutputT], messages: object = (), *, deps: None = None, **options: Unpack[RunOptions]
    ) -> RunResult[OutputT]: ...
    @overload
    async def run_async(
        self, messages: object = (), *, deps: DepsT, **options: Unpack[RunOptions]
    ) -> RunResult[OutputT]: ...
    async def run_async(
        self, messages: object = (), *, deps: Any = None, **options: Any
    ) -> RunResult[OutputT]:
        """Do what `run` does, on the running event loop."""
        work = self._work(messages, deps, options, silent=True)
        return work.settled(await call_async(work.flow()))

    @overload
    def stream(
        self: Agent[None, OutputT], messages: object = (), *, deps: None = None, **options: Unpack[RunOptions]
    ) -> RunStream[OutputT]: ...
    @overload
    def stream(
        self, messages: object = (), *, deps: DepsT, **options: Unpack[RunOptions]
    ) -> RunStream[OutputT]: ...
    def stream(self, messages: object = (), *, deps: Any = None, **options: Any) -> RunStream[OutputT]:
        """Run the agent and yield its events; the stream's `result` is what it came to.

        The events tell of a failure and do not raise it: `result.output` does, and so do `text()` and
        `outputs()`, the other ways to read a stream.
        """
        return self._work(messages, deps, options).stream()

    @overload
    def stream_async(
        self: Agent[None, OutputT], messages: object = (), *, deps: None = None, **options: Unpack[RunOptions]
    ) -> AsyncRunStream[OutputT]: ...
    @overload
    def stream_async(
        self, messages: object = (), *, deps: DepsT, **options: Unpack[RunOptions]
    ) -> AsyncRunStream[OutputT]: ...
    def stream_async(
        self, messages: object = (), *, deps: Any = None, **options: Any
    ) -> AsyncRunStream[OutputT]:
        """Do what `stream` does, on the running event loop."""
        return self._work(messages, deps, options).stream_async()

    @overload
    def iter(
        self: Agent[None, OutputT], messages: object = (), *, deps: None = None, **options: Unpack[RunOptions]
    ) -> RunSteps[OutputT]: ...
    @overload
    def iter(
        self, messages: object = (), *, deps: DepsT, **options: Unpack[RunOptions]
    ) -> RunSteps[OutputT]: ...
    def iter(self, messages: object = (), *, deps: Any = None, **options: Any) -> RunSteps[OutputT]:
        """Run the agent step by step: each step waits until it is asked for."""
        return RunSteps(self._work(messages, deps, options).stream())

    @overload
    def iter_async(
        self: Agent[None, OutputT], messages: object = (), *, deps: None = None, **options: Unpack[RunOptions]
    ) -> AsyncRunSteps[OutputT]: ...
    @overload
    def iter_async(
        self, messages: object = (), *, deps: DepsT, **options: Unpack[RunOptions]
    ) -> AsyncRunSteps[OutputT]: ...
    def iter_async(
        self, messages: object = (), *, deps: Any = None, **options: Any
    ) -> AsyncRunSteps[OutputT]:
        """Do what `iter` does, on the running event loop."""
        return AsyncRunSteps(self._work(messages, deps, options).stream_async())

    @overload
    def chat(
        self: Agent[None, OutputT], *, deps: None = None, **options: Unpack[RunOptions]
    ) -> Chat[OutputT]: ...
    @overload
    def chat(self, *, deps: DepsT, **options: Unpack[RunOptions]) -> Chat[OutputT]: ...
    def chat(self, *, deps: Any = None, **options: Any) -> Chat[OutputT]:
        """Return a chat with the agent, which keeps what was said; `session` is one to continue."""
        session = options.pop("session", None)
        given = {**options, "deps": deps}
        return Chat(partial(self.stream, **given), partial(self.stream_async, **given), session)

    @overload
    def repl(self: Agent[None, OutputT], *, deps: None = None, **options: Unpack[RunOptions]) -> None: ...
    @overload
    def repl(self, *, deps: DepsT, **options: Unpack[RunOptions]) -> None: ...
    def repl(self, *, deps: Any = None, **options: Any) -> None:
        """Talk with the agent in a terminal; an empty line or Ctrl-D ends it, Ctrl-C stops an answer."""
        talk(lambda text=(), **more: self.stream(text, deps=deps, **{**options, **more}))

    def as_tool(self, name: str | None = None, description: str | None = None) -> AgentTool:
        """Return the agent as a tool for another: it gets a task, and its output is the tool's result."""
        return AgentTool(self, name, description)

    @overload
    def override(
        self, *, model: object = None, tools: Sequence[object] | None = None
    ) -> AbstractContextManager[None]: ...
    @overload
    def override(
        self, *, deps: DepsT, model: object = None, tools: Sequence[object] | None = None
    ) -> AbstractContextManager[None]: ...
    @contextmanager
    def override(
        self, *, model: object = None, deps: object = MISSING, tools: Sequence[object] | None = None
    ) -> Iterator[None]:
        """Use another model, other dependencies or other tools in a block of code, for tests.

        It holds for the runs that this thread or task begins in the block, however they are begun.
        """
        before = _overrides.get() or {}
        outer = before.get(id(self), _Override())
        inner = _Override(
            outer.model if model is None else model,
            outer.deps if deps is MISSING else deps,
            outer.tools if tools is None else tuple(checked_tools(tools)),
        )
        token = _overrides.set({**before, id(self): inner})
        try:
            yield
        finally:
            _overrides.reset(token)

    # How a run is put together

    def _assembly(self, model: object = None) -> Assembly:
        """Return the runtime for a model, built once."""
        override = (_overrides.get() or {}).get(id(self), _Override())
        model = override.model if override.model is not None else model
        handoffs = tuple(as_handoff(given) for given in self.handoffs)
        key = (
            model if isinstance(model, str) else id(model),
            None if override.tools is None else tuple(map(id, override.tools)),
            tuple(map(id, self.handoffs)),
        )
        known = self._assemblies.get(key)
        if known is None:
            parts = self._parts if override.tools is None else replace(self._parts, tools=override.tools)
            if model is not None:
                parts = replace(parts, model=model, settings=_settings_for(parts, model))
            _check_depth(self, (self.name,))
            while len(self._assemblies) >= _MOST_ASSEMBLIES:
                self._assemblies.pop(next(iter(self._assemblies)), None)
            known = self._assemblies[key] = assemble(parts, handoffs)
        return known

    def _work(
        self, messages: object, deps: Any, options: dict[str, Any], *, silent: bool = False
    ) -> _Work[OutputT]:
        check_options(options, RunOptions, "a run", ("deps",))
        check_values(options)
        check_session(options.get("session"))
        override = (_overrides.get() or {}).get(id(self), _Override())
        model, on_limit = options.pop("model", None), options.pop("on_limit", self._on_limit)
        run = AgentRun()
        options.setdefault("limits", self._limits)
        options["context"] = {**(options.get("context") or {}), KEY: run}
        options["deps"] = deps if override.deps is MISSING else override.deps
        self._check_deps(options["deps"])
        request = RunRequest(
            self.name, messages, options.pop("session", None), stream=not silent, silent=silent, **options
        )
        return _Work(self, request, run, model, on_limit)

    def _check_deps(self, deps: object) -> None:
        """Refuse a run without what the tools of the agent were promised; it would surprise them later."""
        if deps is None and isinstance(self._deps_type, type) and self._deps_type not in (object, NoneType):
            kind = self._deps_type.__name__
            raise ArgumentError(
                f"the agent {self.name!r} works with deps of type {kind}: run it with deps=..."
            )

    def _reachable(self) -> dict[str, Agent[Any, Any]]:
        """Return every agent that a run may be handed to, by name, this one included."""
        found: dict[str, Agent[Any, Any]] = {self.name: self}
        waiting = [self]
        while waiting:
            for given in waiting.pop().handoffs:
                agent = as_handoff(given).agent
                if agent.name not in found:
                    found[agent.name] = agent
                    waiting.append(agent)
                elif found[agent.name] is not agent:
                    raise ArgumentError(
                        f"two agents that hand over are called {agent.name!r}: give each a name of its own"
                    )
        return found


@dataclass(frozen=True, slots=True)
class _Work(Generic[OutputT]):
    """One run that was asked for: how it goes, and what its caller gets."""

    agent: Agent[Any, OutputT]
    request: RunRequest
    run: AgentRun
    model: object
    on_limit: str

    def flow(self) -> Flow[RunResult[OutputT]]:
        """Return the run as a flow; agents that need nothing of this layer run without it."""
        agent = self.agent
        if not agent.handoffs:
            assembly = agent._assembly(self.model)  # noqa: SLF001 - one subject in two classes
            flow = assembly.runtime.run_flow(self.request)
            return self._finished(flow) if assembly.parts.does_something else flow
        return self._finished(self._with_handoffs())

    def stream(self) -> RunStream[OutputT]:
        """Return the run as a stream of events."""
        return RunStream(self.flow(), self.agent._parts.output, self.settled)  # noqa: SLF001

    def stream_async(self) -> AsyncRunStream[OutputT]:
        """Return the run as a stream of events on an event loop."""
        return AsyncRunStream(self.flow(), self.agent._parts.output, self.settled)  # noqa: SLF001

    def _with_handoffs(self) -> Flow[RunResult[Any]]:
        agents = self.agent._reachable()  # noqa: SLF001

        def find(name: str) -> ResolvedAgent:
            model = self.model if name == self.agent.name else None
            return agents[name]._assembly(model).resolved(find)  # noqa: SLF001

        return run_request(find(self.agent.name), self.request, SYSTEM_CLOCK)

    def _finished(self, flow: Flow[RunResult[Any]]) -> Flow[RunResult[OutputT]]:
        """Run a flow, and give its result the output that the run produced."""
        result = yield from with_events(flow, self._shown)
        tripped = self.run.tripped
        if tripped is not None:
            reason = Reason("guardrail", str(tripped))
            result = replace(result, reason=reason, error=tripped, produced=MISSING)
            tripped.result = result
            return result
        ended_by = self.agent._reachable().get(result.agent, self.agent)  # noqa: SLF001
        if ended_by._assembly().parts.checks_output:  # noqa: SLF001
            return replace(result, produced=self.run.output)
        return result

    def _shown(self, events: list[RunEvent]) -> list[RunEvent]:
        tripped = self.run.tripped
        if tripped is None:
            return events
        reason = {"code": "guardrail", "detail": str(tripped)}
        return [
            cast("RunEvent", {**event, "reason": reason}) if event["type"] == "run_end" else event
            for event in events
        ]

    def settled(self, result: RunResult[OutputT]) -> RunResult[OutputT]:
        """Return a result, or raise why it is not what the caller wanted."""
        result.raise_for_error()
        if result.reason.code in LIMITS and self.on_limit == "raise":
            raise LimitReached(result)
        return result


class AgentTool(DelegateTool):
    """An agent as a tool; `Agent.as_tool` makes them."""

    def __init__(self, agent: Agent[Any, Any], name: str | None, description: str | None) -> None:
        assembly = agent._assembly()  # noqa: SLF001 - one subject in two classes
        spec = assembly.spec if description is None else replace(assembly.spec, description=description)
        super().__init__(name or agent.name, spec, self._run, assembly.clock)
        self.agent = agent

    def _run(self, request: RunRequest) -> Flow[RunResult[Any]]:
        run, own = AgentRun(), self.agent._limits  # noqa: SLF001
        context = {**(request.context or {}), KEY: run}
        limits = request.limits if own is None else own.within(request.limits)
        return _Work(self.agent, replace(request, context=context, limits=limits), run, None, "return").flow()


def as_handoff(given: Agent[Any, Any] | Handoff) -> Handoff:
    """Return an agent as a handoff to it."""
    return given if isinstance(given, Handoff) else Handoff(given)


def _instructions(given: object) -> tuple[list[str], list[Callable[..., Any]]]:
    """Return the texts and the functions among instructions.

    Raises:
        ArgumentTypeError: If something is neither.
    """
    items = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    for item in items:
        if not isinstance(item, str) and not callable(item):
            raise ArgumentTypeError(f"instructions are texts and functions, not {type(item).__name__}")
    texts = [item for item in items if isinstance(item, str)]
    return texts, [cast("Any", item) for item in items if not isinstance(item, str)]


def _check_depth(agent: Agent[Any, Any], way: tuple[str, ...]) -> None:
    """Refuse agents that delegate too deep; none can delegate in a circle, since each is made of others."""
    parts = agent._parts  # noqa: SLF001
    for below in (*parts.delegates, *(tool.agent for tool in parts.tools if isinstance(tool, AgentTool))):
        if len(way) == MOST_DEPTH:
            problem = f"its delegates go deeper than {MOST_DEPTH}"
            raise DelegateCycle(way[0], (*way, below.name), problem=problem)
        _check_depth(below, (*way, below.name))


def _check_function(kind: str, given: object) -> None:
    if not callable(given):
        raise ArgumentTypeError(f"{kind} takes a function, not {type(given).__name__}")


def _agents(name: str, given: object, kinds: tuple[type, ...]) -> list[Any]:
    items = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    for item in items:
        if not isinstance(item, kinds):
            raise ArgumentTypeError(f"{name} must be a list of agents, not of {type(item).__name__}")
    return items


def _settings_for(parts: Parts, model: object) -> dict[str, Any]:
    """Return the settings for another model: those of the provider go with it only if it is the same one."""
    same = isinstance(model, str) and provider_id(parts, model) == provider_id(parts, parts.model)
    return {key: value for key, value in parts.settings.items() if same or key != "config"}

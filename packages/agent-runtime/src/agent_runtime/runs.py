"""One run: what is asked of it, and what its hooks and tools may know about it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agent_core.frozen import EMPTY
from agent_core.steps import Step
from agent_runtime.results import Usage
from agent_runtime.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_core import Cancellation, CancellationToken, Session, ToolDescriptor
    from agent_core.steps import Flow
    from agent_runtime.clock import Clock
    from agent_runtime.limits import UsageLimits
    from agent_runtime.permissions import Rule
    from agent_runtime.specs import ModelSpec
    from agent_runtime.suspension import Decision
    from agent_runtime.watch import ContextWatcher

DEFAULT_TIMEOUT = 7200.0
"""Seconds for a run whose time nobody limited. It only has to end what hangs, so it is longer than the
longest single thing that a run usually waits for: a command of an hour, and the work around it."""

TOOL_STATE = "runtime.tool_state"
"""The state key under which a session has what tools left to be kept."""

Input = "str | Message | Mapping[str, Any]"


CheckpointKind = Literal["input", "answer", "intent", "result", "end"]


class Checkpoint(NamedTuple):
    """A moment at which a run can be written down, so that nothing of it is lost.

    Attributes:
        kind: "input" when the request's messages were added, "answer" when the model answered,
            "intent" before a tool runs, "result" when it has, before anybody hears of its result, "end" when
            the run is over or waits.
        session: The session as of then.
        call_id: The tool call that "intent" and "result" are about.
    """

    kind: CheckpointKind
    session: Session
    call_id: str | None = None


class Keep(Step[None]):
    """Write this checkpoint down, at the latest with the next `Settle`; the run goes on at once."""

    __slots__ = ("checkpoint",)

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint


class Settle(Step[None]):
    """Go on when every checkpoint up to here is stored, and every event shown.

    A run asks for this before anything that cannot be undone: a question to the model, a tool, a hook of
    somebody else's. So whoever keeps the run may write all that came since the last time at once.
    """

    __slots__ = ()


class Receive(Step[list[Any]]):
    """Settle, then answer with the messages that arrived during the run."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run should do.

    Attributes:
        agent_id: The agent to run.
        messages: What to add before the model is asked: a text, a `File`, a message, or several.
        session: The conversation so far; a new one by default.
        decisions: What was decided about the calls that a suspended run waits for.
        run_id: The run's id; by default a new one, or that of the run that is resumed.
        config: Settings for this run's requests, over all others.
        stream: Whether answers are wanted piece by piece.
        silent: Whether nobody reads the run's events, so that it need not make them.
        timeout: Seconds after which the run is stopped, whatever it is doing; time in which it waits for a
            decision does not count. "default" leaves it to the agent's stop condition `timeout`, and where
            there is none to `DEFAULT_TIMEOUT`, two hours. None sets no limit besides the agent's.
        token_budget: How many tokens it may use.
        cost_budget: How much it may cost.
        limits: How much it may use; see `UsageLimits`.
        deps: What tools, hooks and delegates get as `RunContext.deps`. It is passed on as it is, not kept.
        cancellation: A token with which the caller can cancel the run.
        context: What plugins and tools receive in addition to the platform's own context, also those of
            delegates.
        checkpoint: Called whenever there is something new to keep, before the run goes on.
        pauses: Whether an event `kept` follows each checkpoint, so that whoever reads the events can stop
            there and nothing more is begun.
        resumable: Whether the session has at every checkpoint what another process needs to continue the
            run: it gives that session, the same run_id, and True here. Calls that had not begun are run; one
            that had is run again only if its tool is `idempotent`, and the model reads that it may have
            run otherwise.
        inbox: Returns messages that have arrived; called after each step, and the run continues with them.
        granted: Asked before each call for what people have granted since the agent was declared: rules
            that allow or deny. It is the only way by which permissions change during a run.
        ask_anyway: Whether the model is asked even if the session ends with its answer, and nothing is added.
        parents: The agents that delegated to this one, outermost first.
        trace: The trace that the run is a part of, as W3C trace context ("traceparent"); empty begins one.
        journey: What other agents did in the run before they handed over to this one; the runtime sets it.
    """

    agent_id: str
    messages: Any = ()
    session: Session | None = None
    _: KW_ONLY
    decisions: Sequence[Decision | Mapping[str, Any]] = ()
    run_id: str | None = None
    config: Mapping[str, Any] = field(default_factory=lambda: EMPTY, repr=False)  # may have a key in it
    stream: bool = True
    silent: bool = False
    timeout: float | Literal["default"] | None = "default"
    token_budget: int | None = None
    cost_budget: float | None = None
    limits: UsageLimits | None = None
    deps: Any = None
    cancellation: CancellationToken | None = None
    context: Mapping[str, Any] | None = None
    checkpoint: Callable[[Checkpoint], object] | None = None
    pauses: bool = False
    resumable: bool = False
    inbox: Callable[[], Any] | None = None
    granted: Callable[[Session], Sequence[Rule]] | None = None
    ask_anyway: bool = False
    parents: tuple[str, ...] = ()
    trace: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    journey: Mapping[str, Any] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Which run this is, and what hooks may ask of it.

    Attributes:
        run_id: The run's id.
        agent_id: The agent that runs.
        round: How often the model has been asked, the current step included; 0 before the first.
        parents: The agents that delegated to this one, outermost first.
        model: The model that answers; a fallback while one does.
        tools: The tools that the model is offered.
        clock: The run's clock.
        cancellation: Cancelled when the run should stop.
        ask: Asks a model something outside the conversation: ``yield from run.ask(messages, model=None,
            config={})`` in a hook that is a generator returns the text of the answer.
        granted: Returns what people have granted; it may wait for a store. None if the request has no grants.
        context: What tools receive in addition to the platform's own context, with the `RunScope` as "run".
    """

    run_id: str
    agent_id: str
    round: int
    parents: tuple[str, ...]
    model: ModelSpec
    tools: tuple[ToolDescriptor, ...]
    clock: Clock
    cancellation: Cancellation
    ask: Callable[..., Flow[str]]
    granted: Callable[[Session], Sequence[Rule]] | None = None
    context: Mapping[str, Any] = field(default_factory=lambda: EMPTY)


class RunScope:
    """What a tool finds in its context under "run": the run that it works for.

    Delegates hand it on: cancellation, time, budgets, what was granted and the caller's context go down,
    usage comes up.
    """

    __slots__ = (
        "_used",
        "agent_id",
        "asking",
        "cancellation",
        "context",
        "cost_left",
        "deadline",
        "deps",
        "failures",
        "granted",
        "limits",
        "model",
        "model_name",
        "own_trace",
        "parents",
        "provider",
        "round",
        "run_id",
        "session",
        "stream",
        "tokens_left",
        "trace",
        "traces",
        "usage",
        "watchers",
    )

    def __init__(
        self,
        *,
        run_id: str,
        agent_id: str,
        parents: tuple[str, ...],
        cancellation: Cancellation,
        deadline: float | None,
        tokens_left: int | None,
        cost_left: float | None,
        stream: bool,
        granted: Callable[[Session], Sequence[Rule]] | None = None,
        limits: UsageLimits | None = None,
        deps: Any = None,
        context: Mapping[str, Any] | None = None,
        trace: Mapping[str, str] = EMPTY,
        provider: str = "",
        model_name: str = "",
    ) -> None:
        self.run_id = run_id
        self.agent_id = agent_id
        self.parents = parents
        self.cancellation = cancellation
        self.deadline = deadline
        self.tokens_left = tokens_left
        self.cost_left = cost_left
        self.stream = stream
        self.granted = granted
        self.limits = limits
        self.deps = deps
        self.trace = trace
        self.own_trace: Mapping[str, str] = EMPTY
        self.traces: Callable[[str | None], Mapping[str, str]] | None = None
        self.asking = False
        self.watchers: tuple[ContextWatcher, ...] = ()
        self.provider = provider
        self.model_name = model_name
        self.failures: dict[str, int] = {}
        self.context = context
        self._used: list[Usage] = []

    def report(self, usage: Usage) -> None:
        """Say what was used on the run's behalf; it counts for the run's budgets."""
        self._used.append(usage)

    def trace_of(self, call_id: str | None) -> Mapping[str, str]:
        """Return the trace for what a call of a tool begins elsewhere: its own, or that of the run."""
        return (self.traces(call_id) if self.traces is not None else EMPTY) or self.own_trace or self.trace

    def now(self, session: Session, usage: Usage, model: str, round: int) -> None:
        """Note how far the run is; called before a tool runs."""
        self.session, self.usage, self.model, self.round = session, usage, model, round

    def run_context(self, context: Mapping[str, Any]) -> RunContext[Any]:
        """Return what a tool may know of the run; *context* is that of its call."""
        kept = (context.get("session_metadata") or EMPTY).get("agent_state") or EMPTY
        return RunContext(
            deps=self.deps,
            session=self.session,
            usage=self.usage,
            run_id=self.run_id,
            agent=self.agent_id,
            model=self.model,
            round=self.round,
            retry=self.failures.get(context.get("tool_name", ""), 0),
            tool_call_id=context.get("tool_call_id"),
            state=kept.get(TOOL_STATE) or EMPTY,
            parents=self.parents[:-1],
            cancellation=self.cancellation,
        )

    def take_reports(self) -> Usage | None:
        """Return the sum of what was reported since the last time; None if nothing was."""
        if not self._used:
            return None
        used, self._used = self._used, []
        return sum(used, Usage())

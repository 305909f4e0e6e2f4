"""One run while it goes on: what changes from step to step, and nothing else.

A `Run` belongs to one flow; nobody else ever sees it. What hooks see of it are snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import urandom
from time import time
from typing import TYPE_CHECKING, Any

from agent_core import Cancellation, Message, Session
from agent_core.cancellation import check_token, on_cancel
from agent_core.context import RESERVED_KEYS, Context, build_context, without_reserved
from agent_core.dict_form import replace
from agent_core.errors import RequestCancelled
from agent_core.steps import Emit, Flow, nothing
from agent_runtime.defaults import FOR_NEXT_REQUEST, STOP
from agent_runtime.engine import OWN_PLUGINS, Engine
from agent_runtime.phases import CallView, Phase, PhaseView
from agent_runtime.policies import RunStats, Timeout
from agent_runtime.results import Reason, Usage
from agent_runtime.runs import (
    DEFAULT_TIMEOUT,
    TOOL_STATE,
    Checkpoint,
    CheckpointKind,
    Keep,
    RunInfo,
    RunRequest,
    RunScope,
    Settle,
)
from agent_runtime.state import State
from agent_runtime.suspension import RUN, STATE, SavedRun, Suspension, read_saved_run

if TYPE_CHECKING:
    from agent_core.events import Event
    from agent_runtime.clock import Clock
    from agent_runtime.env import ResolvedAgent
    from agent_runtime.permissions import Rule


ONE_CALL = Usage(tool_calls=1)
# A tool believes that a person decided if its context says so.
_RESERVED = RESERVED_KEYS | {"decision", "decisions", "suspended", "shown"}


class Run:
    """The progress of one run.

    Attributes:
        saved: The run that this one continues, if it does: one that waited, or that broke off elsewhere.
        resumed: Whether it broke off elsewhere.
        over: True once there is nothing more to do, and nothing for another process to continue.
        session: The session as of now.
        begun_at: How many messages it had when the run began.
        usage: What was used up to now, delegates included.
        offered: The tools that the model was offered in this step, if not all of the agent's.
        called: The tools that ran in this step.
        succeeded: Those among them whose result is not an error.
        answered: How many calls of this step have their answer, from a tool or not.
        waiting: The calls that wait for a decision.
        given: What was said and is not in the session yet.
        begun: The calls that were about to run, or running, and have no result.
        finished: The results that are there, of calls behind one that still runs, by call id.
        earlier: The run that the session was stored with, whether this one continues it or not.
        cancellation: Cancelled when the run should stop, whoever wants it.
        keeps: Whether somebody stores what it brings.
        shows: Whether somebody reads its events; they are not made otherwise.
        warned: The warnings about its requests that were shown already.
        first_piece_at: When the first piece of the last answer came, in seconds since 1970.
    """

    def __init__(
        self,
        agent: ResolvedAgent,
        request: RunRequest,
        clock: Clock,
        ask: Callable[..., Flow[str]],
        *,
        keeps: bool,
    ) -> None:
        self.agent = agent
        self.keeps = keeps
        self.shows = keeps or not request.silent
        self._ask = ask
        self.request = request
        self.clock = clock
        session = agent.core.create_session() if request.session is None else request.session
        saved = read_saved_run(session)
        self.resumed = _is_resumed(request, saved)
        # Only a decision continues a run that waits; a new message is a new run.
        continues = self.resumed or bool(request.decisions)
        self.saved = saved if continues and saved is not None and saved.agent_id == agent.spec.id else None
        self.earlier = saved
        self.over = False
        self.given: list[Message] = []
        self.begun: set[str] = set()
        self.finished: dict[str, Mapping[str, Any]] = {}
        self.waiting: tuple[Suspension, ...] = () if saved is None else saved.waiting
        self.run_id = request.run_id or (urandom(16).hex() if self.saved is None else self.saved.run_id)
        self.session = _without_run(session)
        self.begun_at = saved.begun_at if saved is not None and self.resumed else len(session.messages)
        self.rounds = 0 if self.saved is None else self.saved.rounds
        self.round = self.rounds
        self.usage = Usage() if self.saved is None else Usage.from_dict(self.saved.usage)
        self.model = agent.model
        self.offered: list[str] | None = None
        self.answer: tuple[Message, ...] = ()
        self.called: tuple[str, ...] = ()
        self.succeeded: tuple[str, ...] = ()
        self.answered = 0
        self.errors = 0
        self.mistakes = 0
        self.repeats: dict[str, int] = {}
        self.most_repeated = ""
        self.compactions = 0
        self.can_compact = True
        self.nudges = 0
        self.warned: set[str] = set()
        self.first_piece_at: float | None = None
        self.cause: Reason | None = None
        self._began = clock.now() - (0.0 if self.saved is None else self.saved.seconds)
        self._timeout = self._shortest_timeout()
        self.cancellation = Cancellation()
        self.engine = Engine(agent.env, self._first_state(session))
        self.scope = self._scope()
        about = {"run": self.scope, "agent_id": agent.spec.id, "trigger_source": "runtime"}
        self._context = build_context(about, without_reserved(request.context or {}, _RESERVED))
        self._release = self._link()

    @property
    def token(self) -> Cancellation | None:
        """The token for requests and tools; None if nobody but the caller's leaving can stop them."""
        watched = self.request.cancellation is not None or self._timeout is not None
        return self.cancellation if watched else None

    @property
    def state(self) -> State:
        """The state keys as of now."""
        return self.engine.state

    @property
    def seconds(self) -> float:
        """For how long the run has been going."""
        return self.clock.now() - self._began

    def phase(self, phase: Phase, **about: Any) -> Flow[None]:
        """Run a phase, if anybody has anything to do in it."""
        if self.engine.is_idle(phase):
            return nothing()
        return self._run_phase(phase, partial(self.view, phase, **about))

    def _run_phase(self, phase: Phase, view: Callable[[State], PhaseView]) -> Flow[None]:
        yield from self.settle_before(plugin for plugin, _ in self.agent.env.phase_hooks.get(phase, ()))
        yield from self.engine.run(phase, view)

    def view(self, phase: Phase, state: State, **about: Any) -> PhaseView:
        """Return a snapshot for hooks."""
        return PhaseView(
            phase=phase,
            run=self.info(),
            spec=self.agent.spec,
            session=self.session,
            state=state,
            messages=self.answer,
            usage=self.usage,
            stats=self.stats(),
            **about,
        )

    def info(self) -> RunInfo:
        """Return what hooks may know and ask of the run."""
        return RunInfo(
            run_id=self.run_id,
            agent_id=self.agent.spec.id,
            round=self.round,
            parents=self.request.parents,
            model=self.model,
            tools=self.agent.descriptors,
            clock=self.clock,
            cancellation=self.cancellation,
            ask=partial(self._ask, self),
            granted=self.request.granted,
            context=self._context,
        )

    def stats(self) -> RunStats:
        """Return how far the run has come, for stop conditions."""
        return RunStats(
            rounds=self.rounds,
            seconds=self.seconds,
            tokens=self.usage.total_tokens,
            cost=self.usage.cost,
            errors=self.errors,
            text="".join(str(message.content) for message in self.answer),
            called=self.called,
            succeeded=self.succeeded,
            repeats=self.repeats.get(self.most_repeated, 0),
            repeated=self.most_repeated.partition("\0")[0],
        )

    def note_calls(self, made: Iterable[str]) -> None:
        """Count how often in a row each call was made; once in a step, since every gate looks at it."""
        self.repeats = {call: self.repeats.get(call, 0) + 1 for call in made}
        self.most_repeated = max(self.repeats, key=lambda call: self.repeats[call], default="")

    def note_result(self, call: CallView, metadata: Mapping[str, Any], *, ran: bool) -> None:
        """Count a call, keep what its tool left, and end the run if the tool fails too often."""
        if ran and not call.gives_output:
            self.use(ONE_CALL)
        if (left := metadata.get("state_update")) is not None:
            self.engine.state = self.state.updated(TOOL_STATE, left)
        failures = self.scope.failures
        if "error" not in metadata:
            failures.pop(call.name, None)
            return
        failures[call.name] = count = failures.get(call.name, 0) + 1
        retries = getattr(call.tool, "retries", None)
        if isinstance(retries, int) and count > retries:
            allowed = "1 retry" if retries == 1 else f"{retries} retries"
            detail = f"the tool {call.name!r} failed {count} times in a row, and has {allowed}"
            self.engine.state = self.state.updated(STOP.name, {"code": "tool_retries", "detail": detail})

    def check(self) -> None:
        """Leave if the run should stop."""
        if self.cancellation.cancelled:
            raise RequestCancelled

    def leave(self) -> None:
        """Note that the caller has lost interest; the run ends at the next opportunity."""
        self._stop_now(Reason("cancelled", "the caller cancelled the run or left"))

    def tell(self, *events: Event) -> Flow[None]:
        """Show events; that the caller leaves at one of them ends the run later, not here."""
        return self._show(events) if self.shows else nothing()

    def _show(self, events: Sequence[Event]) -> Flow[None]:
        if self.keeps:  # who reads the log later can tell how long everything took
            now = time()
            for event in events:
                event["at"] = now
        try:
            yield Emit(list(events))
        except RequestCancelled:
            self.leave()

    def stop(self) -> Reason | None:
        """Return why the run should end after this step, if there is a reason."""
        wanted = self.state.read(STOP)
        if wanted is not None:
            return Reason(wanted["code"], wanted["detail"])
        return self._over_budget()

    def too_many_calls(self, count: int) -> Reason | None:
        """Return why so many more calls may not run, or why there can be no request after them."""
        limits = self.request.limits
        if limits is None or not count:
            return None
        return limits.reached(self.usage) or limits.before_calls(self.usage, count)

    def append(self, messages: Sequence[Message]) -> None:
        """Add messages to the session."""
        self.session = self.agent.core.append_messages(self.session, messages)

    def checkpoint(self, kind: CheckpointKind, call_id: str | None = None) -> Flow[None]:
        """Have what there is now written down, and let whoever wants to stop the run here do so."""
        yield from self.keep(kind, call_id)
        yield from self.pause(kind, call_id)

    def keep(self, kind: CheckpointKind, call_id: str | None = None) -> Flow[None]:
        """Have what there is now written down, at the latest when the run settles."""
        if self.keeps:
            yield Keep(Checkpoint(kind, self.with_state(), call_id))

    def pause(self, kind: CheckpointKind, call_id: str | None = None) -> Flow[None]:
        """Let whoever wants to stop the run here do so."""
        if self.keeps and self.request.pauses:
            yield from self.settle()
            yield from self.tell({"type": "kept", "kind": kind, "call_id": call_id})

    def settle(self) -> Flow[None]:
        """Go on when everything up to here is stored and shown."""
        if self.keeps:
            yield Settle()

    def settle_before(self, plugins: Iterable[str]) -> Flow[None]:
        """Settle before code of others runs, which may do what cannot be undone."""
        if self.keeps and any(plugin not in OWN_PLUGINS for plugin in plugins):
            yield Settle()

    def with_state(self) -> Session:
        """Return the session with the state that outlives the run, and with what the run waits for."""
        kept = self._kept_state()
        metadata: dict[str, Any] = {}
        if kept or STATE in self.session.metadata:
            metadata[STATE] = kept
        if self.waiting or self.finished or (self.request.resumable and not self.over):
            metadata[RUN] = self._saved().to_dict()
        return self.session.with_metadata(metadata) if metadata else self.session

    def metadata(self) -> Mapping[str, Any]:
        """Return the session's metadata, with the state that outlives the run as it is now."""
        kept = self._kept_state()
        return self.session.with_metadata({STATE: kept}).metadata if kept else self.session.metadata

    def _kept_state(self) -> dict[str, Any]:
        """Return the state that outlives the run; keys that only plugins of other agents know stay."""
        before = self.session.metadata.get(STATE)
        if before is None and self.state.is_untouched:
            return {}
        known = self.agent.env.keys
        items = before.items() if isinstance(before, Mapping) else ()
        return {name: value for name, value in items if name not in known} | self.state.saved("session")

    def next_request_done(self) -> None:
        """Forget what hooks had asked for the request that was just made."""
        state = self.engine.state
        for key in () if state.is_untouched else FOR_NEXT_REQUEST:
            if state[key.name] != key.default:
                state = state.replaced(key.name, key.default)
        self.engine.state = state

    def use(self, usage: Usage | None) -> None:
        """Count what was used, with what delegates have reported."""
        reported = self.scope.take_reports()
        if usage is None and reported is None:
            return
        self.usage = sum((used for used in (usage, reported) if used is not None), self.usage)
        self.scope.tokens_left, self.scope.cost_left = self._left()

    def context(self, **more: Any) -> Context:
        """Return what plugins and tools receive about the run."""
        return build_context(more, self._context) if more else self._context

    def end(self) -> None:
        """Let go of the caller's token and of the alarm."""
        self._release()

    def _first_state(self, session: Session) -> State:
        kept = session.metadata.get(STATE)
        own = {} if self.saved is None else self.saved.state
        return State.restored(self.agent.env.keys, kept if isinstance(kept, Mapping) else {}, own)

    def _saved(self) -> SavedRun:
        return SavedRun(
            run_id=self.run_id,
            agent_id=self.agent.spec.id,
            rounds=self.rounds,
            seconds=self.seconds,
            usage=self.usage.to_dict(),
            state=self.state.saved("run"),
            waiting=self.waiting,
            begun_at=self.begun_at,
            begun=tuple(sorted(self.begun)),
            finished=self.finished,
            trace=self.scope.own_trace,
            journey=self.request.journey,
        )

    def _scope(self) -> RunScope:
        timeout = self._timeout
        tokens, cost = self._left()
        return RunScope(
            run_id=self.run_id,
            agent_id=self.agent.spec.id,
            parents=(*self.request.parents, self.agent.spec.id),
            cancellation=self.cancellation,
            deadline=None if timeout is None else self.clock.now() + timeout,
            tokens_left=tokens,
            cost_left=cost,
            stream=self.request.stream,
            granted=None if self.request.granted is None else self._granted_below,
            limits=self.request.limits,
            deps=self.request.deps,
            context=self.request.context,
            trace=self.request.trace if self.request.trace or self.saved is None else self.saved.trace,
            provider=self.agent.model.provider,
            model_name=self.agent.model.model or self.agent.model.id,
        )

    def _granted_below(self, _child: Session) -> Sequence[Rule]:
        """Return what was granted to whoever works for this run: what was granted in its own session."""
        assert self.request.granted is not None
        return self.request.granted(self.session)

    def _shortest_timeout(self) -> float | None:
        """Return the seconds that are left of the request's time, or of the agent's, if that is less."""
        asked = self.request.timeout
        declared = [one.seconds for one in self.agent.spec.stop_conditions if isinstance(one, Timeout)]
        if asked == "default":
            declared, asked = declared or [DEFAULT_TIMEOUT], None
        limits = [max(0.001, seconds - self.seconds) for seconds in declared if seconds is not None]
        return min(limits if asked is None else [*limits, asked], default=None)

    def _end_in_time(self, timeout: float) -> None:
        self._stop_now(self._out_of_time(timeout))

    def _out_of_time(self, timeout: float) -> Reason:
        declared = any(isinstance(one, Timeout) for one in self.agent.spec.stop_conditions)
        if declared or self.request.timeout != "default":
            return Reason("timeout", f"the run took longer than {timeout:g} seconds")
        return Reason(
            "timeout",
            f"the run took longer than {DEFAULT_TIMEOUT:g} seconds, which is what a run has by default: give "
            "the request a `timeout`, or the agent a stop condition of type `timeout` (`seconds`; null or "
            "false for no limit)",
        )

    def _left(self) -> tuple[int | None, float | None]:
        tokens, cost = self.request.token_budget, self.request.cost_budget
        return (
            None if tokens is None else max(0, tokens - self.usage.total_tokens),
            None if cost is None else max(0.0, cost - self.usage.cost),
        )

    def _over_budget(self) -> Reason | None:
        tokens, cost = self._left()
        if tokens == 0:
            return Reason("token_budget", f"{self.usage.total_tokens} tokens were used, as many as allowed")
        if cost == 0.0:
            return Reason("cost_budget", f"the run cost {self.usage.cost:.4f}, as much as allowed")
        return None

    def _link(self) -> Callable[[], None]:
        """Let the caller's token and the run's time limit stop it; return how to undo that."""
        undo: list[Callable[[], object]] = []
        outer = self.request.cancellation
        if outer is not None:
            check_token(outer)
            why_cancelled = Reason("cancelled", "the caller cancelled the run")
            undo.append(on_cancel(outer, lambda: self._stop_now(why_cancelled)))
        if (timeout := self._timeout) is not None:
            undo.append(self.clock.call_later(timeout, partial(self._end_in_time, timeout)))
        return partial(_do_all, undo)

    def _stop_now(self, reason: Reason) -> None:
        self.cause = self.cause or reason
        self.cancellation.cancel()


def _is_resumed(request: RunRequest, saved: SavedRun | None) -> bool:
    return request.resumable and saved is not None and saved.run_id == request.run_id


def _without_run(session: Session) -> Session:
    """Return the session without the run that it waited with; a run that waits again writes its own."""
    if RUN not in session.metadata:
        return session
    kept = {key: value for key, value in session.metadata.items() if key != RUN}
    return replace(session, metadata=kept).sealed(session.seal)


def _do_all(steps: Sequence[Callable[[], object]]) -> None:
    for step in steps:
        step()

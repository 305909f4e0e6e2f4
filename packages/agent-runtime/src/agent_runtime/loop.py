"""One run from start to end: the phases in order, steps until there is a reason to stop.

Whatever happens in between, a run ends in one place: with RUN_END, a structured reason, and everything
that it had produced up to then.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core import ArgumentError, Message
from agent_core.errors import RequestCancelled
from agent_core.frozen import freeze, thaw
from agent_core.log import get_logger
from agent_core.steps import ask, nothing, once, relay, run_blocking
from agent_runtime.defaults import GO_ON, MESSAGES
from agent_runtime.engine import finish_slowly
from agent_runtime.errors import DecisionError, describe
from agent_runtime.handoffs import hands_over, run_with_handoffs
from agent_runtime.inference import infer
from agent_runtime.limits import OverLimit
from agent_runtime.phases import Phase
from agent_runtime.prompt import as_messages
from agent_runtime.recovery import known_answers, recover
from agent_runtime.results import Reason, RunResult
from agent_runtime.run import Run
from agent_runtime.runs import Keep, Receive, Settle
from agent_runtime.side_request import ask_beside
from agent_runtime.specs import HARD_CAP
from agent_runtime.suspension import Decision, last_calls, match_decisions, unanswered
from agent_runtime.tool_calls import Calls
from agent_runtime.watch import watched, watches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_core.events import RunEnd, RunStart
    from agent_core.pipeline.finish import TurnResult
    from agent_core.steps import Flow, Step
    from agent_runtime.clock import Clock
    from agent_runtime.env import ResolvedAgent
    from agent_runtime.runs import Checkpoint, RunRequest

NATURAL_END = Reason("natural_end")
CUT_SHORT = Reason("length", "the answer reached the model's output limit, so its end is missing")
SUSPENDED = Reason("suspended", "the run waits for decisions")
CANCELLED = Reason("cancelled", "the caller cancelled the run or left")
MOST_MISTAKES = 3
MOST_NUDGES = 2
_CUT_OFF = (
    "Your last tool call was cut off because the answer became too long, and was not run. "
    "Make it again in smaller pieces."
)
_log = get_logger("runtime")


def run_request(agent: ResolvedAgent, request: RunRequest, clock: Clock) -> Flow[RunResult]:
    """Run an agent, and return what it came to; the request's own functions keep it and bring messages.

    Raises:
        ArgumentError: If there is nothing to ask the model.
        DecisionError: If a decision does not fit what the session waits for. Nothing was done then.
    """
    keeps = request.checkpoint is not None
    if not keeps and request.inbox is None:  # then nothing of what a run asks for has to be answered
        return run_agent(agent, request, clock, keeps=False)
    return relay(run_agent(agent, request, clock, keeps=keeps), partial(_answer_step, request))


def _answer_step(request: RunRequest, step: Step[Any]) -> Flow[Any] | None:
    if isinstance(step, Keep):
        return _keep(request, step.checkpoint)
    if isinstance(step, Receive):
        return _received(request)
    return nothing() if isinstance(step, Settle) else None


def _keep(request: RunRequest, checkpoint: Checkpoint) -> Flow[None]:
    """Have the caller store a checkpoint at once.

    Raises:
        RequestCancelled: If the caller has left; it is stored all the same.
    """
    assert request.checkpoint is not None
    keep = once(partial(request.checkpoint, checkpoint))
    try:
        yield from finish_slowly(keep)
    except RequestCancelled:
        # The one under way must not come in behind the next, nor be left out: wait for it.
        yield from run_blocking(keep)
        raise


def _received(request: RunRequest) -> Flow[list[Message]]:
    inbox = request.inbox
    return [] if inbox is None else as_messages((yield from finish_slowly(inbox)))


def run_agent(agent: ResolvedAgent, request: RunRequest, clock: Clock, *, keeps: bool) -> Flow[RunResult]:
    """Run an agent for somebody who answers `Keep`, `Settle` and `Receive`.

    Without *keeps*, only `Receive` is asked for, and that only where the request has an `inbox`.

    Raises:
        ArgumentError, DecisionError: As of `run_request`.
    """
    run_part = partial(_run_part, clock=clock, keeps=keeps)
    if not agent.handoffs:
        return run_part(agent, request)
    return run_with_handoffs(agent, request, clock, run_part, keeps=keeps)


def _run_part(agent: ResolvedAgent, request: RunRequest, clock: Clock, *, keeps: bool) -> Flow[RunResult]:
    """Run one agent until it ends, waits or hands over."""
    run = Run(agent, request, clock, ask_beside, keeps=keeps)
    try:
        run.given, decided = _asked(run)
    except Exception:
        run.end()
        raise
    flow = _run(run, decided)
    seen_by = watches(agent.env.watches)
    run.shows = run.shows or bool(seen_by)
    return (yield from (watched(flow, run.scope, seen_by) if seen_by else flow))


def _run(run: Run, decided: dict[str, Decision]) -> Flow[RunResult]:
    reason, error = CANCELLED, None
    try:
        reason = yield from _go(run, decided)
    except RequestCancelled:
        reason = run.cause or CANCELLED
    except OverLimit as over:
        reason = over.reason
    except Exception as failure:  # whatever it is, what the run produced is kept
        reason, error = yield from _failed(run, failure)
    return (yield from _end(run, reason, error))


def _asked(run: Run) -> tuple[list[Message], dict[str, Decision]]:
    """Return the messages and decisions that the run begins with."""
    decisions = [Decision.from_dict(one) for one in run.request.decisions]
    decided = match_decisions(run.waiting, decisions)
    given = as_messages(run.request.messages)
    _check_something_to_do(run, given, bool(decided))
    return given, decided


def _check_something_to_do(run: Run, given: Sequence[Message], decided: bool) -> None:  # noqa: FBT001
    if given or decided or run.resumed:
        return
    if run.waiting:
        ids = [waiting.id for waiting in run.waiting]
        raise DecisionError(
            f"the run waits for decisions about {ids}: give decisions, or messages to continue without them"
        )
    last = run.session.messages[-1] if run.session.messages else None
    answered = last is not None and last.role == "assistant" and not last.is_interrupted
    if last is None or (answered and not run.request.ask_anyway):
        raise ArgumentError(
            "there is nothing to ask: give messages, or a session that ends with an open question"
        )


def _go(run: Run, decided: dict[str, Decision]) -> Flow[Reason]:
    given = bool(run.given)
    # Calls that are decided or left over answer what was said before, so their results come first.
    comes_first = not decided and not run.resumed
    yield from _begin(run, brings=given and comes_first)
    if decided:
        yield from _resume(run, decided)
    if run.resumed:
        yield from _run_left_calls(run)
    if run.waiting and not given:
        return SUSPENDED
    if decided and not given and (stop := run.stop() or _met(run)) is not None:
        return stop
    if decided and not run.waiting:
        yield from _take_inbox(run)  # what came while the decided calls ran belongs to the next question
    if run.given:
        yield from _bring(run)
    elif run.resumed and _has_answered(run) and (reason := (yield from _what_next(run))) is not None:
        return reason
    while True:
        reason = yield from _step(run)
        if reason is not None:
            return reason


def _begin(run: Run, *, brings: bool) -> Flow[None]:
    """Add what was said, and tell everybody that the run begins: once they hear of it, that is safe."""
    if not run.resumed:
        _answer_left_calls(run)
    if brings:
        yield from _bring(run)
    if run.shows:
        yield from run.tell(_run_start(run))
    if run.agent.unclaimed and not any(message.role == "assistant" for message in run.session.messages):
        for warning in run.agent.unclaimed:  # once in a conversation
            yield from run.tell({"type": "warning", "message": warning})
    yield from _activate(run)
    yield from run.phase(Phase.RUN_START)


def _bring(run: Run) -> Flow[None]:
    """Add what was said, and have it kept: whoever stores the run (`agent_app.outbox`) answers the `Keep`."""
    _abandon_waiting(run)
    given, run.given = run.given, []
    run.append(given)
    yield from run.checkpoint("input")


def _run_left_calls(run: Run) -> Flow[None]:
    """Answer the calls that have no answer, since the process that made them stopped before.

    Those are run that had not begun, or that may safely be run again.
    """
    left = {call["id"] for call in unanswered(run.session)}
    left -= {waiting.call_id for waiting in run.waiting}
    if left and run.earlier is not None:
        made = thaw(freeze(last_calls(run.session)))
        known = known_answers(run.earlier, run.agent.tools, run.session)
        yield from (yield from Calls.of_answer(run, made, only=left, known=known)).run()


def _answer_left_calls(run: Run) -> None:
    """Answer the calls of a run that broke off and that nobody continues, as far as it is known how."""
    if (saved := run.earlier) is None or not (saved.finished or saved.begun):
        return
    waits = {waiting.call_id for waiting in run.waiting}
    left = {call["id"] for call in unanswered(run.session)} - waits
    only = left.intersection({*saved.finished, *saved.begun})
    run.session, _ = recover(run.agent.core, run.session, saved.begun, finished=saved.finished, only=only)


def _has_answered(run: Run) -> bool:
    return bool(run.session.messages) and run.session.messages[-1].role == "assistant"


def _step(run: Run) -> Flow[Reason | None]:
    """Ask the model once and run the calls that it makes; return why the run ends, or None to go on."""
    if run.round >= HARD_CAP:
        return Reason("max_rounds", f"no run asks a model more than {HARD_CAP} times")
    run.check()
    run.round, run.answer, run.answered = run.round + 1, (), 0
    run.called = run.succeeded = ()
    before = len(run.session.messages)
    if run.shows:
        yield from run.tell({"type": "step_start", "round": run.round})
    yield from run.phase(Phase.STEP_START)
    yield from run.phase(Phase.BEFORE_INFERENCE)
    run.check()
    if (stop := run.stop()) is not None:
        return stop
    turn = yield from infer(run)
    yield from _answered(run, turn)
    yield from run.phase(Phase.STEP_END)
    if run.shows:
        added: list[dict[str, Any]] = [message.frozen_dict() for message in run.session.history[before:]]
        yield from run.tell({"type": "step_end", "round": run.round, "messages": added})
    run.check()
    return (yield from _what_next(run))


def _answered(run: Run, turn: TurnResult) -> Flow[None]:
    """Do what the model's answer asks for: run its calls, unless the run should end first."""
    made = run.agent.core.extract_tool_calls_from_messages(turn.added)
    calls = (yield from Calls.of_answer(run, made)) if made else None
    if calls is not None:
        calls.note_repeats()
    try:
        if turn.interrupted or turn.left:
            run.leave()
        run.check()
        yield from run.phase(Phase.AFTER_INFERENCE)
        yield from run.checkpoint("answer")
    except BaseException:
        if calls is not None:
            calls.give_up("the run ended before")
        raise
    if calls is None:
        return
    if (stop := run.stop() or run.too_many_calls(calls.counted)) is not None:
        calls.give_up(f"the run was stopped ({stop.code})")
        if run.stop() is None:
            raise OverLimit(stop)
        return
    yield from calls.run()


def _what_next(run: Run) -> Flow[Reason | None]:
    """Return why the run ends after this step, or None if there is more to do."""
    if run.waiting:
        return SUSPENDED
    stop = run.stop()
    # An answer that calls nothing is an end in itself, also in the last round that is allowed.
    if stop is not None and (stop.code != "max_rounds" or run.answered):
        return stop
    if run.mistakes >= MOST_MISTAKES:
        return Reason(
            "consecutive_errors",
            f"in {run.mistakes} steps in a row, none of the model's tool calls could be run",
        )
    came = stop is None and (yield from _take_inbox(run))
    if run.answered or came:
        run.nudges = 0
        return None
    if stop is None and _is_nudged(run):
        return None
    return _own_end(run) if not run.agent.env.end_hooks else (yield from _at_natural_end(run, stop))


def _own_end(run: Run) -> Reason:
    """Return how the model ended its answer: because it was done, or because it could not write more."""
    about = run.answer[-1].metadata if run.answer else {}
    # Providers that are not built on the kit may have only the wire's own word for it.
    is_cut_off = "length" in (about.get("ending"), about.get("finish_reason"))
    return CUT_SHORT if is_cut_off or about.get("incomplete_tool_calls") else NATURAL_END


def _at_natural_end(run: Run, stop: Reason | None) -> Flow[Reason | None]:
    """Let plugins send the model back; *stop* is why it may not be asked again, if it may not."""
    view = partial(run.view, Phase.STEP_END)
    yield from run.settle_before(plugin for plugin, _ in run.agent.env.end_hooks)
    for plugin, hook in run.agent.env.end_hooks:
        command = yield from run.engine.call(plugin, "end_hook", hook, view(run.state))
        yield from run.engine.do(Phase.STEP_END, view, command)
        if stop is None and (wanted := run.stop()) is not None:
            return wanted
        if run.state.read(GO_ON):
            run.engine.state = run.state.replaced(GO_ON.name, GO_ON.default)
            return stop
    return _own_end(run)


def _take_inbox(run: Run) -> Flow[bool]:
    """Add what came while the run was busy; say whether anything did."""
    if not run.keeps and run.request.inbox is None:
        return False
    messages = yield from ask(Receive())
    if messages:
        run.append(messages)
        yield from run.checkpoint("input")
    return bool(messages)


def _is_nudged(run: Run) -> bool:
    """Say whether the model is to go on although it called nothing: it was cut off, or only paused."""
    about = run.answer[-1].metadata if run.answer else {}
    paused, cut_off = about.get("ending") == "paused", bool(about.get("incomplete_tool_calls"))
    if run.nudges >= MOST_NUDGES or not (paused or cut_off):
        return False
    run.nudges += 1
    if cut_off:
        note = {"role": "user", "content": _CUT_OFF, "keep": False}
        run.engine.state = run.state.updated(MESSAGES.name, note)
    return True


def _resume(run: Run, decided: dict[str, Decision]) -> Flow[None]:
    calls = yield from Calls.resumed(run, decided)
    yield from calls.run()


def _met(run: Run) -> Reason | None:
    """Return what the agent's stop conditions say after calls that belong to a step which is over."""
    stops = (condition.after_step(run.stats()) for condition in run.agent.spec.stop_conditions)
    return next((Reason(*stop) for stop in stops if stop is not None), None)


def _abandon_waiting(run: Run) -> None:
    """Answer calls that still wait although the conversation goes on without a decision."""
    for waiting in {one.question: one for one in run.waiting}.values():  # a call may wait for several
        metadata = {"tool_call_id": waiting.call_id, "tool_name": waiting.tool, "error": {"type": "not_run"}}
        text = "Error: the call was not run: nobody decided about it"
        run.append([Message("tool", text, metadata)])
    run.waiting = ()


def _activate(run: Run) -> Flow[None]:
    for plugin in run.agent.env.plugins:
        hook = getattr(plugin, "on_activate", None)
        if hook is not None:
            yield from _call_hook(run, plugin, "on_activate", hook)


def _closing(run: Run, reason: Reason) -> Iterator[Flow[None]]:
    """Yield what is to be done at the end of a run, one by one; what fails does not spare the rest."""
    if run.given:  # it ended while calls were answered that come before
        yield _bring(run)
    yield run.phase(Phase.RUN_END, reason=reason)
    for plugin in reversed(run.agent.env.plugins):
        hook = getattr(plugin, "on_deactivate", None)
        if hook is not None:
            yield _call_hook(run, plugin, "on_deactivate", hook, reason)
    if not hands_over(run.agent, reason):
        yield run.checkpoint("end")


def _call_hook(run: Run, plugin: Any, name: str, hook: Any, reason: Reason | None = None) -> Flow[None]:
    phase = Phase.RUN_START if name == "on_activate" else Phase.RUN_END
    owner = str(getattr(plugin, "name", type(plugin).__name__))
    yield from run.settle_before([owner])
    command = yield from run.engine.call(owner, name, hook, run.view(phase, run.state, reason=reason))
    yield from run.engine.do(phase, lambda state: run.view(phase, state), command)


def _failed(run: Run, failure: Exception) -> Flow[tuple[Reason, Exception]]:
    """Return how a run ends that failed, and keep what the failing request had brought."""
    begun = getattr(failure, "partial", None)
    # A side question has a session of its own, which does not matter here.
    if begun is not None and begun["session"].session_id == run.session.session_id:
        run.session = begun["session"]
        made = run.agent.core.extract_tool_calls_from_messages(begun["messages"])
        if made:
            (yield from Calls.of_answer(run, made)).give_up("the answer broke off")
    _log.warning("run_failed", run_id=run.run_id, agent_id=run.agent.spec.id, error=str(failure))
    return Reason("error", str(failure)), failure


def _end(run: Run, reason: Reason, error: Exception | None) -> Flow[RunResult]:
    """End the run in the one way there is: RUN_END, plugins let go, everything kept, the last event."""
    run.over = True
    try:
        for closing in _closing(run, reason):
            try:
                yield from closing
            except RequestCancelled:
                run.leave()
            except Exception as failure:  # the run is over; its result must not be lost
                reason, error = (reason, error) if error is not None else (yield from _failed(run, failure))
    finally:
        run.end()
    result = _result(run, reason, error)
    if result.suspended:
        yield from run.tell({"type": "suspended", "suspensions": [one.to_dict() for one in result.suspended]})
    if error is not None:
        yield from run.tell({"type": "error", "error": describe(error)})
    if run.shows:
        yield from run.tell(_run_end(run, result))
    return result


def _result(run: Run, reason: Reason, error: Exception | None) -> RunResult:
    added = run.session.history[run.begun_at :]
    said = [message for message in added if message.role == "assistant" and message.content]
    run.use(None)
    return RunResult(
        text=str(said[-1].content) if said else "",
        added=added,
        session=run.with_state(),
        reason=reason,
        usage=run.usage,
        rounds=run.rounds,
        run_id=run.run_id,
        agent=run.agent.spec.id,
        suspended=run.waiting,
        error=error,
    )


def _run_start(run: Run) -> RunStart:
    return {
        "type": "run_start",
        "run_id": run.run_id,
        "agent_id": run.agent.spec.id,
        "model": run.agent.model.id,
        "session_id": run.session.session_id,
        "resumed": run.saved is not None,
    }


def _run_end(run: Run, result: RunResult) -> RunEnd:
    return {
        "type": "run_end",
        "run_id": run.run_id,
        "agent_id": run.agent.spec.id,
        "reason": result.reason._asdict(),
        "text": result.text,
        "rounds": result.rounds,
        "usage": result.usage.to_dict(),
        "session": result.session,
        "messages": [message.frozen_dict() for message in result.added],
    }

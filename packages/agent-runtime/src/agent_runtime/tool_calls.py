"""The tool calls of one step: gated one by one, run at the same time where their tools allow it.

Every call gets an answer, whatever happens: a call without one is a history that no provider takes.
The answers stand in the order of the calls. Only a call that waits for a decision has none yet.

Each answer is stored as soon as it is there, before anybody hears of it, also while other calls still run:
nobody is ever shown a result that a crash can take back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, Message
from agent_core.encoding import as_data, canonical
from agent_core.errors import RequestCancelled
from agent_core.frozen import EMPTY, NotData, freeze, thaw
from agent_core.log import get_logger
from agent_core.pipeline.ready_call import CallRefused, ToolHost, display_ready, preview_ready, ready_call
from agent_core.pipeline.tools import INTERRUPTED, SUSPENDED, run_ready_call
from agent_core.steps import Flow, run_blocking, with_events
from agent_runtime.gates import (
    NOT_RUN,
    Outcome,
    Pending,
    gated,
    part_event,
    refusal,
    result_event,
    start_event,
    suspension,
    waiting_id,
)
from agent_runtime.parallel import run_together
from agent_runtime.phases import CallView, Phase
from agent_runtime.watch import watched_call

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_core.pipeline.ready_call import ReadyCall
    from agent_runtime.run import Run
    from agent_runtime.suspension import Decision, Suspension

_log = get_logger("runtime")
_MISTAKES = ("invalid_arguments", "unknown_tool", "unreadable_call")


class Calls:
    """The calls of one step, and what they run with."""

    def __init__(
        self,
        run: Run,
        host: ToolHost,
        calls: Sequence[Pending],
        known: Mapping[str, dict[str, Any]] = EMPTY,
    ) -> None:
        self._run = run
        self._host = host
        self._open = list(calls)
        self._outcomes: dict[int, Outcome] = {}  # of open calls, behind one that has none yet
        self._known = known
        self._all = len(self._open)
        self._mistaken = 0

    @classmethod
    def of_answer(
        cls,
        run: Run,
        made: Sequence[Mapping[str, Any]],
        *,
        only: Collection[str] | None = None,
        known: Mapping[str, dict[str, Any]] = EMPTY,
    ) -> Flow[Calls]:
        """Return the calls that the model made, also if the caller leaves: they need answers.

        Args:
            only: The ids of those that have no answer yet, if others do.
            known: The answers of calls that are not to be run, by call id.
        """
        config: Any = run.agent.config
        if run.offered is not None:  # what the model was not offered it must not call
            config = {**config, "allowed_tools": run.offered}
        try:
            host = yield from run.agent.core.tool_host(config, run.context())
        except RequestCancelled:
            run.leave()
            host = yield from run.agent.core.tool_host(config, run.context())
        calls = [_pending(run, host, call, number) for number, call in enumerate(made)]
        return cls(run, host, [call for call in calls if only is None or call.view.id in only], known)

    @classmethod
    def resumed(cls, run: Run, decided: Mapping[str, Decision]) -> Flow[Calls]:
        """Return the calls that waited and are decided now; they do not wait any more.

        One that asked several questions goes on when some are answered, and asks the others again.
        """
        host = yield from run.agent.core.tool_host(dict(run.agent.config), run.context())
        asked: dict[str, list[Suspension]] = {}
        for waiting in run.waiting:
            asked.setdefault(waiting.question, []).append(waiting)
        due = {
            question: answered
            for question, all_of_it in asked.items()
            if (answered := [waiting for waiting in all_of_it if waiting.id in decided])
        }
        run.waiting = tuple(waiting for waiting in run.waiting if waiting.question not in due)
        calls = []
        for number, (question, answered) in enumerate(due.items()):
            waiting = replace(answered[0], data=asked[question][0].data)
            call = _pending(run, host, thaw(freeze(waiting.call)), number)
            view = replace(call.view, id=waiting.call_id, decision=decided[waiting.id])
            decisions = {one.id: decided[one.id] for one in answered}
            calls.append(replace(call, view=view, suspension=waiting, decisions=decisions))
        return cls(run, host, calls)

    def note_repeats(self) -> None:
        """Count how often in a row the model makes each of these calls with the same arguments."""
        # As they stand: of several that were made as often, the first is named.
        made = dict.fromkeys(f"{call.view.name}\0{_signature(call.view.arguments)}" for call in self._open)
        self._run.note_calls(made)

    @property
    def counted(self) -> int:
        """How many of them are calls of tools, and not the output of the run."""
        return sum(not call.view.gives_output for call in self._open)

    def run(self) -> Flow[None]:
        """Answer all calls; those that wait for a decision are noted in the run.

        Raises:
            RequestCancelled: If the run was cancelled; every call has its answer all the same.
        """
        try:
            for group in _groups(self._open):
                self._run.check()
                yield from self._run_group(group)
            self._count_mistakes()
            self._run.check()
        except RequestCancelled:
            self.give_up("it was cancelled before it ran")
            raise
        except BaseException:
            self.give_up("the run ended before")
            raise

    def _count_mistakes(self) -> None:
        """Count the steps in a row in which the model made no call that a tool could run."""
        self._run.mistakes = self._run.mistakes + 1 if self._mistaken == self._all else 0

    def give_up(self, why: str) -> None:
        """Answer the calls that are not run any more, so that the history stays whole."""
        for call in tuple(self._open):
            if call.number not in self._outcomes:
                self._take(call, Outcome(refusal(call.view, NOT_RUN, f"the call was not run: {why}")))

    def _run_group(self, group: Sequence[Pending]) -> Flow[None]:
        flows = []
        for call in group:
            known = self._known_answer(call) or (yield from gated(self._run, call))
            if known is None:  # hooks see one call after the other, also where the tools do not wait
                yield from self._run.phase(Phase.BEFORE_TOOL_EXECUTE, call=call.view)
                self._run.begun.add(call.view.id)
                yield from self._run.checkpoint("intent", call.view.id)
            alone = len(group) == 1
            answer = self._answer(call, alone=alone) if known is None else self._not_run(call, known)
            flows.append(answer)
        outcomes = yield from self._answers(group, flows)
        # Only when all is in the session: a hook that fails must not cost a result that is there.
        for call, outcome in zip(group, outcomes, strict=True):
            yield from self._tell_hooks(call, outcome)

    def _known_answer(self, call: Pending) -> Outcome | None:
        """Return the answer of a call that is known already, or that no tool can run."""
        known = self._known.get(call.view.id, call.refused)
        return None if known is None else Outcome(known)

    def _answers(self, group: Sequence[Pending], flows: Sequence[Flow[Outcome]]) -> Flow[Sequence[Outcome]]:
        if len(flows) == 1:
            outcome = yield from flows[0]
            yield from self._store(group[0], outcome)
            return [outcome]

        def ended(index: int, outcome: Outcome) -> Flow[None]:
            yield from self._store(group[index], outcome)
            yield from self._run.settle()

        limit = self._run.agent.tool_settings.concurrency
        yield from self._run.settle()
        try:
            return (yield from run_together(flows, limit, self._run.leave, ended))
        except RequestCancelled as left:
            outcomes: Sequence[Outcome] = left.args[0]
            return outcomes

    def _store(self, call: Pending, outcome: Outcome) -> Flow[None]:
        """Take a call's answer into the session and have it kept; then show it."""
        run = self._run
        self._take(call, outcome)
        if outcome.message is None:
            return
        try:
            yield from run.keep("result", call.view.id)
        except RequestCancelled:  # it is stored all the same, and so it is shown
            run.leave()
        if run.shows:
            refused = None if outcome.ran else call.ready
            preview = "" if refused is None else preview_ready(self._host_for(call), refused)
            yield from run.tell(result_event(call.view, outcome.message, outcome.seconds, preview))
        yield from run.pause("result", call.view.id)

    def _not_run(self, call: Pending, outcome: Outcome) -> Flow[Outcome]:
        if outcome.suspension is None or call.ready is None:
            return outcome
        waiting = yield from self._shown(call, call.ready, outcome.suspension)
        refused = known_failure(waiting.parameters.get("display"))
        # What waits may change what this call finds, so only the first one is known to fail.
        if refused and not self._run.waiting:
            return Outcome(refusal(call.view, NOT_RUN, refused))
        return Outcome(suspension=waiting)

    def _shown(self, call: Pending, ready: ReadyCall, waiting: Suspension) -> Flow[Suspension]:
        """Return what waits with what a person needs to see before deciding about it."""
        host = self._host_for(call)
        about = {"preview": preview_ready(host, ready), "display": (yield from _display(host, ready))}
        return replace(waiting, parameters={**about, **waiting.parameters})

    def _answer(self, call: Pending, *, alone: bool) -> Flow[Outcome]:
        """Run one call: show its start and its partial output.

        Args:
            alone: Whether it is run as a part of the run's own flow, which can settle.
        """
        run, view, ready = self._run, call.view, call.ready
        assert ready is not None
        host = self._host_for(call, alone=alone)
        if run.shows:
            display = yield from _display(host, ready)
            yield from run.tell(start_event(view, preview_ready(host, ready), display))
        if alone:
            yield from run.settle()
        began = run.clock.now()
        work = watched_call(run_ready_call(host, ready), run.scope, view.id, view.name)
        message = yield from with_events(work, partial(_parts, view))
        waits = message["metadata"].pop(SUSPENDED, None)
        if waits is not None:
            first, *more = (suspension(run, call, view.name, one) for one in (waits, *waits.get("more", ())))
            return Outcome(suspension=first, more=tuple(replace(one, asked_with=first.id) for one in more))
        if INTERRUPTED in message["metadata"]:
            run.leave()
        message = yield from self._transformed(view, message, host)
        return Outcome(message, ran=True, seconds=run.clock.now() - began)

    def _transformed(self, call: CallView, message: dict[str, Any], host: ToolHost) -> Flow[dict[str, Any]]:
        """Let plugins change a result; one that cannot leaves it as it is, since the tool has run."""
        for plugin, transform in self._run.agent.env.result_transforms:
            try:
                work = partial(transform, message, call, host.context())
                message = _checked((yield from run_blocking(work)))
            except RequestCancelled:  # the tool has run, and its result counts
                self._run.leave()
                return message
            except Exception as error:  # a plugin's code
                problem = f"its result transform failed: {type(error).__name__}: {error}"
                yield from self._run.tell({"type": "warning", "message": problem, "plugin": plugin})
        return message

    def _host_for(self, call: Pending, *, alone: bool = True) -> ToolHost:
        run = self._run
        # The same for every try at one call, so that a tool can tell whether it has done this already.
        key = f"{run.run_id}:{call.view.id}"
        facts: dict[str, Any] = {
            "tool_call_id": call.view.id,
            "tool_name": call.view.name,
            "idempotency_key": key,
            "session_id": run.session.session_id,
            "session_metadata": run.metadata(),
        }
        if call.suspension is not None:
            facts |= {"decision": call.view.decision, "suspended": call.suspension.data}
            facts["decisions"] = call.decisions
            facts["shown"] = call.suspension.parameters.get("display")  # by which somebody has decided
        run.scope.now(run.session, run.usage, run.model.id, run.round)
        # A call alone, on a run that nobody can cancel, need not be watched, which is cheaper.
        watched = run.token is not None or not alone
        token = run.cancellation if watched else None
        return ToolHost(
            resolution=self._host.resolution,
            table=self._host.table,
            core=self._host.core,
            cancellation=token,
            extra=run.context(**facts),
        )

    def _take(self, call: Pending, outcome: Outcome) -> None:
        """Note an outcome; it goes into the run when all calls before it have theirs."""
        run = self._run
        self._outcomes[call.number] = outcome
        run.begun.discard(call.view.id)
        if outcome.message is not None:
            run.finished[call.view.id] = outcome.message
        while self._open and (ended := self._outcomes.pop(self._open[0].number, None)) is not None:
            first = self._open.pop(0)
            run.finished.pop(first.view.id, None)
            self._take_next(first, ended)

    def _take_next(self, call: Pending, outcome: Outcome) -> None:
        """Put an outcome into the run: a message into the session, a suspension to those that wait."""
        run = self._run
        run.use(None)  # what a delegate used counts from now on
        if outcome.suspension is not None:
            run.waiting = (*run.waiting, *_with_own_ids(run, call, (outcome.suspension, *outcome.more)))
            return
        assert outcome.message is not None
        run.append([Message.from_dict(outcome.message)])
        run.answered += 1
        problem = (outcome.message["metadata"].get("error") or {}).get("type")
        if problem in _MISTAKES:
            self._mistaken += 1
        elif outcome.ran:
            run.called = (*run.called, call.view.name)
            run.succeeded = (*run.succeeded, *([call.view.name] if problem is None else ()))
        run.errors = 0 if problem is None else run.errors + 1
        run.note_result(call.view, outcome.message["metadata"], ran=outcome.ran)

    def _tell_hooks(self, call: Pending, outcome: Outcome) -> Flow[None]:
        if outcome.message is None:
            return
        run = self._run
        if run.engine.is_idle(Phase.AFTER_TOOL_EXECUTE):
            return
        before = run.state
        yield from run.phase(Phase.AFTER_TOOL_EXECUTE, call=call.view, result=freeze(outcome.message))
        if run.state is not before:
            yield from run.checkpoint("result", call.view.id)


def _with_own_ids(run: Run, call: Pending, questions: Sequence[Suspension]) -> Sequence[Suspension]:
    """Return a call's questions under ids that no other question has, whatever its tool has called them."""
    taken = {waiting.id for waiting in run.waiting}
    if taken.isdisjoint(one.id for one in questions):
        return questions
    own = waiting_id(run, call)
    first, *more = (replace(one, id=f"{own}:{n}" if n else own) for n, one in enumerate(questions))
    return first, *(replace(one, asked_with=first.id) for one in more)


def _pending(run: Run, host: ToolHost, call: Mapping[str, Any], number: int) -> Pending:
    """Look at a call once: who it is for, and whether its tool can run it."""
    try:
        ready = ready_call(host, call)
    except CallRefused as refused:
        return Pending(view=_view_of_refused(host, call), number=number, refused=refused.message)
    inspected = ready.call
    view = CallView(
        id=inspected.call_id or "",
        name=inspected.tool_name,
        arguments=freeze(inspected.payload),
        raw=call,
        tool=run.agent.tools.get(inspected.tool_name) or _tool_behind(ready),
    )
    return Pending(view=view, number=number, ready=ready)


def _tool_behind(ready: ReadyCall) -> object:
    """Return the tool itself where a plugin stands for tools that are made during the run."""
    find = getattr(ready.binding.plugin.plugin, "tool_behind", None)
    return None if find is None else find(ready.call.tool_name, ready.binding.state)


def _view_of_refused(host: ToolHost, call: Mapping[str, Any]) -> CallView:
    try:
        inspected = host.table.interop.inspect_call(call)
    except AgentError:
        return CallView(id=str(call.get("id") or ""), name="", arguments=None, raw=call)
    arguments = freeze(inspected.payload)
    return CallView(id=inspected.call_id or "", name=inspected.tool_name, arguments=arguments, raw=call)


def _checked(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict) or message.get("role") != "tool" or "metadata" not in message:
        raise TypeError(f"it must return a tool message, not {message!r:.100}")
    return message


def _display(host: ToolHost, ready: ReadyCall) -> Flow[dict[str, Any] | None]:
    if not ready.binding.plugin.has("format_tool_call_display"):
        return None
    return (yield from run_blocking(partial(display_ready, host, ready)))


def known_failure(display: object) -> str:
    """Return why a call would fail, if its tool found that out when it showed the call; empty if not.

    Nobody is asked about such a call; the model reads the reason.
    """
    reason = display.get("refused") if isinstance(display, Mapping) else None
    return reason if isinstance(reason, str) else ""


def _groups(calls: Sequence[Pending]) -> list[list[Pending]]:
    """Put neighbours together that may run in parallel."""
    groups: list[list[Pending]] = []
    for call in calls:
        if groups and _is_parallel(call.view) and _is_parallel(groups[-1][-1].view):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _is_parallel(call: CallView) -> bool:
    """Say whether the tool lets its calls run in parallel: all of its tools, or those that it lists."""
    allowed = getattr(call.tool, "parallel", True)
    return allowed is True or (isinstance(allowed, (set, frozenset, list, tuple)) and call.name in allowed)


def _parts(call: CallView, events: list[Any]) -> list[Any]:
    """Return a tool's partial output as events of the run, which are stored and sent to front ends."""
    shown = []
    for event in events:
        if "part" in event:
            try:
                shown.append(part_event(call, as_data(event["part"])))
            except (NotData, RecursionError) as error:
                _log.warning("part_not_shown", tool=call.name, error=str(error))
    return shown


def _signature(arguments: Any) -> str:
    try:
        return canonical(arguments).decode()
    except (TypeError, ValueError):
        return repr(arguments)

"""The tool calls of one step: gated one by one, run beside each other where their tools allow it.

Every call gets an answer, whatever happens: a call without one is a history that no provider takes.
The answers stand in the order of the calls. Only a call that waits for a decision has none yet.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core import AgentError, Message
from agent_core.encoding import canonical
from agent_core.errors import RequestCancelled
from agent_core.frozen import freeze, thaw
from agent_core.pipeline.tool_calls import CallRefused, ToolHost, display_ready, preview_ready, ready_call
from agent_core.pipeline.tools import INTERRUPTED, SUSPENDED, run_ready_call
from agent_core.steps import Flow, run_blocking, with_events
from agent_runtime.answers import NOT_RUN, part_event, refusal, result_event, start_event
from agent_runtime.gating import Outcome, Pending, gated, suspension
from agent_runtime.phases import CallView, Phase
from agent_runtime.together import run_together

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_core.pipeline.tool_calls import ReadyCall
    from agent_runtime.running import Run
    from agent_runtime.suspension import Decision, Suspension

_MISTAKES = ("invalid_arguments", "unknown_tool", "unreadable_call")


class Calls:
    """The calls of one step, and what they run with."""

    def __init__(self, run: Run, host: ToolHost, calls: Sequence[Pending]) -> None:
        self._run = run
        self._host = host
        self._open = list(calls)
        self._all = len(self._open)
        self._mistaken = 0

    @classmethod
    def of_answer(
        cls, run: Run, made: Sequence[Mapping[str, Any]], *, only: Collection[str] | None = None
    ) -> Flow[Calls]:
        """Return the calls that the model made, also if the caller leaves meanwhile: they want answers.

        Args:
            only: The ids of those that have no answer yet, if others do.
        """
        config = dict(run.agent.config)
        if run.offered is not None:  # what the model was not offered it must not call
            config["allowed_tools"] = run.offered
        try:
            host = yield from run.agent.core.tool_host(config)
        except RequestCancelled:
            run.leave()
            host = yield from run.agent.core.tool_host(config)
        calls = [_pending(run, host, call, number) for number, call in enumerate(made)]
        return cls(run, host, [call for call in calls if only is None or call.view.id in only])

    @classmethod
    def resumed(cls, run: Run, decided: Mapping[str, Decision]) -> Flow[Calls]:
        """Return the calls that waited and are decided now; they do not wait any more."""
        host = yield from run.agent.core.tool_host(dict(run.agent.config))
        due = [waiting for waiting in run.waiting if waiting.id in decided]
        run.waiting = tuple(waiting for waiting in run.waiting if waiting.id not in decided)
        calls = []
        for number, waiting in enumerate(due):
            call = _pending(run, host, thaw(freeze(waiting.call)), number)
            view = replace(call.view, id=waiting.call_id, decision=decided[waiting.id])
            calls.append(replace(call, view=view, suspension=waiting))
        return cls(run, host, calls)

    def note_repeats(self) -> None:
        """Count how often in a row the model makes each of these calls with the same arguments."""
        # As they stand: of several that were made as often, the first is named.
        made = dict.fromkeys(f"{call.view.name}\0{_signature(call.view.arguments)}" for call in self._open)
        self._run.note_calls(made)

    def run(self) -> Flow[None]:
        """Answer all calls; those that wait for a decision are noted in the run.

        Raises:
            RequestCancelled: If the run was cancelled meanwhile; every call has its answer then, too.
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
        messages = [refusal(call.view, NOT_RUN, f"the call was not run: {why}") for call in self._open]
        self._run.append([Message.from_dict(message) for message in messages])
        self._open = []

    def _run_group(self, group: Sequence[Pending]) -> Flow[None]:
        flows = []
        for call in group:
            settled = _unfit(call) or (yield from gated(self._run, call))
            if settled is None:  # hooks see one call after the other, also where the tools do not wait
                yield from self._run.phase(Phase.BEFORE_TOOL_EXECUTE, call=call.view)
                yield from self._run.checkpoint("intent", call.view.id)
            flows.append(self._answer(call) if settled is None else self._settled(call, settled))
        outcomes = yield from self._outcomes(flows)
        # First everything into the session: a hook that fails must not cost a result that is there.
        for call, outcome in zip(group, outcomes, strict=True):
            self._keep(call, outcome)
        for call, outcome in zip(group, outcomes, strict=True):
            yield from self._tell_hooks(call, outcome)

    def _outcomes(self, flows: Sequence[Flow[Outcome]]) -> Flow[Sequence[Outcome]]:
        if len(flows) == 1:
            return [(yield from flows[0])]
        try:
            return (
                yield from run_together(flows, self._run.agent.tool_settings.concurrency, self._run.leave)
            )
        except RequestCancelled as left:
            outcomes: Sequence[Outcome] = left.args[0]
            return outcomes

    def _settled(self, call: Pending, outcome: Outcome) -> Flow[Outcome]:
        if outcome.message is not None:
            yield from self._run.tell(result_event(call.view, outcome.message))
        if outcome.suspension is None or call.ready is None:
            return outcome
        return Outcome(suspension=(yield from self._shown(call, call.ready, outcome.suspension)))

    def _shown(self, call: Pending, ready: ReadyCall, waiting: Suspension) -> Flow[Suspension]:
        """Return what waits with what a person needs to see before deciding about it."""
        host = self._host_for(call)
        about = {"preview": preview_ready(host, ready), "display": (yield from _display(host, ready))}
        return replace(waiting, parameters={**about, **waiting.parameters})

    def _answer(self, call: Pending) -> Flow[Outcome]:
        """Run one call: show its start, its partial output and its result."""
        run, view, ready = self._run, call.view, call.ready
        assert ready is not None
        host = self._host_for(call)
        display = yield from _display(host, ready)
        yield from run.tell(start_event(view, preview_ready(host, ready), display))
        began = run.clock.now()
        message = yield from with_events(run_ready_call(host, ready), partial(_parts, view))
        waits = message["metadata"].pop(SUSPENDED, None)
        if waits is not None:
            return Outcome(suspension=suspension(run, call, view.name, waits))
        if INTERRUPTED in message["metadata"]:
            run.leave()
        message = yield from self._transformed(view, message, host)
        yield from run.tell(result_event(view, message, run.clock.now() - began))
        return Outcome(message, ran=True)

    def _transformed(self, call: CallView, message: dict[str, Any], host: ToolHost) -> Flow[dict[str, Any]]:
        """Let plugins change a result; one that cannot leaves it as it is, since the tool has run."""
        for plugin, transform in self._run.agent.env.result_transforms:
            try:
                work = partial(transform, message, call, host.context())
                message = _checked((yield from run_blocking(work)))
            except RequestCancelled:  # the tool has run, and its result counts
                self._run.leave()
                return message
            except Exception as error:  # noqa: BLE001 - a plugin's code
                problem = f"its result transform failed: {type(error).__name__}: {error}"
                yield from self._run.tell({"type": "warning", "message": problem, "plugin": plugin})
        return message

    def _host_for(self, call: Pending) -> ToolHost:
        run = self._run
        # The same for every try at one call, so that a tool can tell whether it has done this already.
        key = f"{run.run_id}:{call.view.id}"
        told: dict[str, Any] = {
            "tool_call_id": call.view.id,
            "idempotency_key": key,
            "session_id": run.session.session_id,
            "session_metadata": run.metadata(),
        }
        if call.suspension is not None:
            told |= {"decision": call.view.decision, "suspended": call.suspension.data}
            told["shown"] = call.suspension.parameters.get("display")  # by which somebody has decided
        # A call alone, on a run that nobody can cancel, need not be watched, which is cheaper.
        watched = run.token is not None or _may_run_beside(call.view)
        token = run.cancellation if watched else None
        return ToolHost(
            resolution=self._host.resolution,
            table=self._host.table,
            core=self._host.core,
            cancellation=token,
            extra=run.context(**told),
        )

    def _keep(self, call: Pending, outcome: Outcome) -> None:
        """Put an outcome into the run: a message into the session, a suspension to those that wait."""
        run = self._run
        self._open.remove(call)
        run.use(None)  # what a delegate used counts from now on
        if outcome.suspension is not None:
            run.waiting = (*run.waiting, outcome.suspension)
            return
        assert outcome.message is not None
        run.append([Message.from_dict(outcome.message)])
        run.answered += 1
        problem = (outcome.message["metadata"].get("error") or {}).get("type")
        if problem in _MISTAKES:
            self._mistaken += 1
        elif outcome.ran:
            run.called = (*run.called, call.view.name)
        run.errors = 0 if problem is None else run.errors + 1

    def _tell_hooks(self, call: Pending, outcome: Outcome) -> Flow[None]:
        if outcome.message is None:
            return
        run = self._run
        if not run.engine.is_idle(Phase.AFTER_TOOL_EXECUTE):
            result = freeze(outcome.message)
            yield from run.phase(Phase.AFTER_TOOL_EXECUTE, call=call.view, result=result)
        yield from run.checkpoint("result", call.view.id)


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
        tool=run.agent.tools.get(inspected.tool_name),
    )
    return Pending(view=view, number=number, ready=ready)


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


def _unfit(call: Pending) -> Outcome | None:
    """Return the core's own answer to a call that no tool can run; nobody need be asked about it."""
    return None if call.refused is None else Outcome(call.refused)


def _groups(calls: Sequence[Pending]) -> list[list[Pending]]:
    """Put neighbours that may run beside each other together."""
    groups: list[list[Pending]] = []
    for call in calls:
        if groups and _may_run_beside(call.view) and _may_run_beside(groups[-1][-1].view):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _may_run_beside(call: CallView) -> bool:
    """Say whether the tool allows its calls to run beside others: all of its tools, or those it lists."""
    allowed = getattr(call.tool, "parallel", False)
    return allowed is True or (isinstance(allowed, (set, frozenset, list, tuple)) and call.name in allowed)


def _parts(call: CallView, events: list[Any]) -> list[Any]:
    """Return a tool's partial output as events of the run."""
    return [part_event(call, event["part"]) for event in events if "part" in event]


def _signature(arguments: Any) -> str:
    try:
        return canonical(arguments).decode()
    except (TypeError, ValueError):
        return repr(arguments)

"""Before a call runs: what was decided about it, and what the gates say.

At the end stands what the model reads of calls that no tool answered, and what a watcher sees of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agent_core.encoding import canonical
from agent_core.frozen import EMPTY, freeze, thaw
from agent_runtime import permissions
from agent_runtime.engine import finish, warn
from agent_runtime.phases import CallView, Phase
from agent_runtime.suspension import Suspension
from agent_runtime.verdicts import Block, SetResult, Suspend, Verdict, rank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.events import ToolCallPartial, ToolCallResult, ToolCallStart
    from agent_core.pipeline.ready_call import ReadyCall
    from agent_core.steps import Flow
    from agent_runtime.phases import CallView, PhaseView
    from agent_runtime.run import Run
    from agent_runtime.suspension import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call to be answered.

    Attributes:
        number: Its place among the calls of its step.
        suspension: What it waited for, when a run goes on.
        decisions: What was decided about that, by the id of the question; one call may have asked several.
        ready: The call as the core runs it; None if no tool can.
        refused: What the model reads in that case.
    """

    view: CallView
    number: int = 0
    suspension: Suspension | None = None
    decisions: Mapping[str, Decision] = field(default_factory=lambda: EMPTY)
    ready: ReadyCall | None = None
    refused: dict[str, Any] | None = None

    @property
    def approved_by(self) -> tuple[str, ...]:
        """Who has asked about the call and was answered with yes."""
        waited = self.suspension
        return () if waited is None else (*waited.settled, waited.owner)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: with a message for the model, or waiting for a decision.

    Attributes:
        ran: True if the message is the tool's own answer.
        seconds: For how long the tool ran.
        more: Other decisions that it waits for, besides `suspension`.
    """

    message: dict[str, Any] | None = None
    suspension: Suspension | None = None
    ran: bool = False
    seconds: float = 0.0
    more: tuple[Suspension, ...] = ()


def gated(run: Run, call: Pending) -> Flow[Outcome | None]:
    """Return what becomes of a call in place of running it; None lets it run."""
    known = _by_decision(call)
    if known is not None:
        return known
    yield from run.phase(Phase.TOOL_GATE, call=call.view)
    env = run.agent.env
    asked_for = getattr(call.view.tool, "requires_approval", False) is True
    gates = permissions.approval_gates(env) if asked_for else env.tool_gates
    if not gates:
        return None
    yield from run.settle_before(plugin for plugin, _ in gates)
    answers: list[tuple[str, Verdict]] = []
    for plugin, gate in gates:
        verdict = yield from _ask(plugin, gate, _view_for(run, call, plugin))
        if verdict is not None and not (isinstance(verdict, Suspend) and plugin in call.approved_by):
            answers.append((plugin, verdict))
    if not answers:
        return None
    plugin, verdict = min(answers, key=lambda answer: rank(answer[1]))
    return _outcome(run, call, plugin, verdict)


def suspension(run: Run, call: Pending, owner: str, asked: Mapping[str, Any]) -> Suspension:
    """Return the note that a call waits, with an id that no other call of the run has."""
    known = {name: asked[name] for name in asked if name in Suspension.__slots__ and asked[name] is not None}
    return Suspension(
        id=known.pop("id", None) or waiting_id(run, call),
        call_id=call.view.id,
        tool=call.view.name,
        call=call.view.raw,
        owner=owner,
        settled=call.approved_by,
        **known,
    )


def waiting_id(run: Run, call: Pending) -> str:
    """Return an id; a call that waits once more gets another, since a decision counts for one question."""
    if call.suspension is not None:
        return f"{call.suspension.id}:{len(call.approved_by)}"
    return f"{run.run_id}:{run.round}:{call.number}"


def _by_decision(call: Pending) -> Outcome | None:
    decision = call.view.decision
    if decision is None or call.suspension is None:
        return None
    # A tool takes refusals of what it asked itself; what a gate asked about the call is not for it to hear.
    own = call.suspension.owner == call.view.name and getattr(call.view.tool, "takes_refusals", False)
    if not decision.approved and not own:
        why = f": {decision.reason}" if decision.reason else ""
        return Outcome(refusal(call.view, REFUSED, f"the call was refused{why}"))
    if call.suspension.mode == "use_decision":
        return Outcome(given_result(call.view, decision.value))
    return None


def _view_for(run: Run, call: Pending, plugin: str) -> PhaseView:
    """Return what a gate sees; of decisions only those about what it asked itself."""
    view = call.view
    if view.decision is not None and plugin not in call.approved_by:
        view = replace(view, decision=None)
    return run.view(Phase.TOOL_GATE, run.state, call=view)


def _ask(plugin: str, gate: Any, view: Any) -> Flow[Verdict | None]:
    """Return a gate's verdict; one that cannot give any blocks, since it may be what keeps people safe."""
    try:
        verdict = yield from finish(gate, view)
    except Exception as error:  # a stranger's gate may raise anything
        return (yield from _failed(plugin, f"raised {type(error).__name__}: {error}"))
    if verdict is None or isinstance(verdict, (Block, Suspend, SetResult)):
        return verdict
    return (yield from _failed(plugin, f"answered {verdict!r}, not Block, Suspend, SetResult or None"))


def _failed(plugin: str, how: str) -> Flow[Block]:
    problem = f"the gate of plugin {plugin!r} {how}"
    yield from warn(problem, plugin)
    return Block(problem)


def _outcome(run: Run, call: Pending, plugin: str, verdict: Verdict) -> Outcome:
    if isinstance(verdict, Block):
        return Outcome(refusal(call.view, BLOCKED, f"the call was not allowed: {verdict.reason}"))
    if isinstance(verdict, SetResult):
        return Outcome(given_result(call.view, verdict.result, is_error=verdict.is_error))
    asked = {name: getattr(verdict, name) for name in Suspend.__slots__}
    return Outcome(suspension=suspension(run, call, plugin, asked))


NOT_RUN, BLOCKED, REFUSED = "not_run", "blocked", "refused"
"""Why a call has no result of its tool: the run was over, a gate said no, or a person did."""


def refusal(call: CallView, kind: str, text: str) -> dict[str, Any]:
    """Return the tool message of a call that was not run; *kind* is a word for programs."""
    metadata = {**_metadata(call), "error": {"type": kind}}
    result = {"type": "tool_result", "text": f"Error: {text}", "is_error": True}
    return {"role": "tool", "content": f"Error: {text}", "metadata": metadata, "tool_result": result}


def given_result(call: CallView, value: object, *, is_error: bool = False) -> dict[str, Any]:
    """Return the tool message of a call whose result came from elsewhere than its tool."""
    text = value if isinstance(value, str) else canonical(freeze(value)).decode()
    metadata: dict[str, Any] = _metadata(call)
    result: dict[str, Any] = {"type": "tool_result", "text": text}
    if is_error:
        metadata["error"], result["is_error"] = {"type": "tool_failed"}, True
    return {"role": "tool", "content": text, "metadata": metadata, "tool_result": result}


def start_event(call: CallView, preview: str, display: Mapping[str, Any] | None = None) -> ToolCallStart:
    """Return what a watcher sees when a call begins to run."""
    return {
        "type": "tool_call_start",
        "call_id": call.id,
        "name": call.name,
        "arguments": thaw(call.arguments),
        "preview": preview,
        "display": None if display is None else dict(display),
    }


def part_event(call: CallView, part: object) -> ToolCallPartial:
    """Return what a watcher sees of a tool's partial output."""
    return {"type": "tool_call_partial", "call_id": call.id, "name": call.name, "part": part}


def result_event(
    call: CallView, message: Mapping[str, Any], seconds: float = 0.0, preview: str = ""
) -> ToolCallResult:
    """Return what a watcher sees when a call has its answer."""
    return {
        "type": "tool_call_result",
        "call_id": call.id,
        "name": call.name,
        "preview": preview,
        "is_error": "error" in message["metadata"],
        "seconds": seconds,
        "message": dict(message),
    }


def _metadata(call: CallView) -> dict[str, Any]:
    return {"tool_call_id": call.id, "tool_name": call.name}

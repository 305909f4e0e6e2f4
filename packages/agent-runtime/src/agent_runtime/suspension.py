"""Runs that wait: what for, what was decided, and how both are kept in the session.

A suspended run holds nothing open. Everything that it needs to go on is in its session's metadata, as
plain data, so that any process with the same agents can resume it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_core.errors import nearest
from agent_core.frozen import EMPTY, freeze, thaw
from agent_core.json_schema import first_misfit
from agent_runtime.errors import DecisionError

if TYPE_CHECKING:
    from agent_core import Session
    from agent_runtime.verdicts import ResumeMode

RUN = "agent_run"
STATE = "agent_state"
_MODES = ("replay", "use_decision", "pass_decision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """One call that waits for a decision.

    Attributes:
        id: What a decision refers to.
        call_id: The call that waits, by the model's id.
        tool: The tool.
        call: The call as the model sent it.
        message: What is asked.
        action: A word for programs: "approve", "answer", or a tool's own.
        parameters: Data that a front end needs for the question.
        response_schema: What the decision's value must fit.
        mode: How the decision is used.
        owner: The plugin that asked, or the tool.
        settled: The plugins whose earlier questions about the call were answered with yes.
        data: Data that the tool needs when it continues.
        asked_with: The id of the first question of the same call, which has the data, if there are several.
    """

    id: str
    call_id: str
    tool: str
    call: Mapping[str, Any]
    message: str
    action: str = "approve"
    parameters: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    response_schema: Mapping[str, Any] | None = None
    mode: ResumeMode = "replay"
    owner: str = ""
    settled: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    asked_with: str = ""

    @property
    def question(self) -> str:
        """What all questions of one call have in common, and those of no other call."""
        return self.asked_with or self.id

    def to_dict(self) -> dict[str, Any]:
        """Return the suspension as plain data."""
        return {name: thaw(freeze(getattr(self, name))) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decided about a suspended call.

    Attributes:
        target: The id of the suspension, or of the call.
        approved: False refuses the call; the model reads the reason.
        value: The answer, where one was asked for.
        reason: Why, for the model to read; mostly used when refusing.
    """

    target: str
    approved: bool = True
    value: Any = None
    reason: str = ""

    @classmethod
    def from_dict(cls, data: Any) -> Decision:
        """Read the dict form.

        Raises:
            DecisionError: If it has no target, or a field of another type.
        """
        if isinstance(data, Decision):
            return data
        if not isinstance(data, Mapping) or not isinstance(data.get("target"), str):
            raise DecisionError("a decision needs a target, the id of a suspension or of a call")
        for unknown in sorted(set(data) - set(cls.__slots__)):
            hint = nearest(unknown, ("approved", "value", "reason"))
            raise DecisionError(f"a decision has no field {unknown!r}: {hint}")
        approved = data.get("approved", True)
        if not isinstance(approved, bool):
            raise DecisionError(f"approved must be true or false in a decision, not {approved!r:.80}")
        return cls(**data)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun:
    """A run that waits, or that another process may continue, as its session keeps it.

    Attributes:
        begun_at: How many messages the session had when the run began.
        begun: The ids of the calls that were about to run, or running, and have no result.
        finished: The tool messages of calls that ended before an earlier one of the same answer, by call id:
            they are not in the transcript yet, which has them in the order of the calls.
        trace: The trace of the run, which another process continues.
        journey: What other agents did in the run before they handed over to this one.
    """

    run_id: str
    agent_id: str
    rounds: int
    seconds: float
    usage: Mapping[str, Any]
    state: Mapping[str, Any]
    waiting: tuple[Suspension, ...]
    begun_at: int = 0
    begun: tuple[str, ...] = ()
    finished: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: EMPTY)
    trace: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    journey: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        return {
            "run_id": self.run_id,
            "agent_id": self.agent_id,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "usage": thaw(freeze(self.usage)),
            "state": thaw(freeze(self.state)),
            "waiting": [suspension.to_dict() for suspension in self.waiting],
            "begun_at": self.begun_at,
            "begun": list(self.begun),
            "finished": thaw(freeze(self.finished)),
            **({"trace": dict(self.trace)} if self.trace else {}),
            **({"journey": thaw(freeze(self.journey))} if self.journey else {}),
        }


def read_saved_run(session: Session | None) -> SavedRun | None:
    """Return the run that a session waits with, or None; what cannot be read counts as none."""
    saved = None if session is None else session.metadata.get(RUN)
    if not isinstance(saved, Mapping):
        return None
    try:
        waiting = tuple(_read_suspension(item) for item in saved["waiting"])
        return SavedRun(
            run_id=str(saved["run_id"]),
            agent_id=str(saved["agent_id"]),
            rounds=int(saved["rounds"]),
            seconds=float(saved["seconds"]),
            usage=dict(saved["usage"]),
            state=dict(saved["state"]),
            waiting=waiting,
            begun_at=int(saved.get("begun_at", 0)),
            begun=tuple(str(call_id) for call_id in saved.get("begun", ())),
            finished=_read_messages(saved.get("finished", EMPTY)),
            trace={str(key): str(value) for key, value in saved.get("trace", EMPTY).items()},
            journey=dict(saved.get("journey", EMPTY)),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def waiting(session: Session) -> tuple[Suspension, ...]:
    """Return what the run of a session waits for; nothing if it has none that waits."""
    saved = read_saved_run(session)
    return () if saved is None else saved.waiting


def last_calls(session: Session) -> list[Mapping[str, Any]]:
    """Return the calls of the answer with which a session ends, whatever became of them."""
    for message in reversed(session.messages):
        if message.role == "assistant":
            return [call for call in message.tool_calls if isinstance(call.get("id"), str)]
        if message.role != "tool":
            break
    return []


def unanswered(session: Session) -> list[Mapping[str, Any]]:
    """Return the calls at the end of a session that have no answer and wait for no decision.

    Earlier ones are mended by the provider when it sends them.
    """
    calls = last_calls(session)
    if not calls:
        return []
    answers = session.messages[len(session.messages) - _tools_at_end(session) :]
    done = {message.tool_call_id for message in answers}
    done |= {one.call_id for one in waiting(session)}
    return [call for call in calls if call["id"] not in done]


def _tools_at_end(session: Session) -> int:
    count = 0
    for message in reversed(session.messages):
        if message.role != "tool":
            break
        count += 1
    return count


def _read_messages(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    for message in data.values():
        if message["role"] != "tool" or not isinstance(message["metadata"], Mapping):
            raise ValueError("finished")
    return dict(data)


def _read_suspension(data: Mapping[str, Any]) -> Suspension:
    known = {name: data[name] for name in Suspension.__slots__ if name in data}
    if known.get("mode", "replay") not in _MODES:
        raise ValueError("mode")
    return Suspension(**{**known, "settled": tuple(known.get("settled", ()))})


def match_decisions(waiting: Sequence[Suspension], decisions: Sequence[Decision]) -> dict[str, Decision]:
    """Return the decision for each suspension that has one, by the suspension's id.

    Raises:
        DecisionError: If a decision is about nothing that waits, about something that another one
            has decided already, or has a value that does not fit the schema.
    """
    found: dict[str, Decision] = {}
    for decision in decisions:
        matching = [one for one in waiting if decision.target in (one.id, one.call_id)]
        if len(matching) != 1:
            ids = [one.id for one in matching or waiting]
            if matching:
                raise DecisionError(
                    f"the call {decision.target!r} waits for several decisions: name one of {ids}"
                )
            raise DecisionError(f"nothing waits for a decision about {decision.target!r}; waiting are {ids}")
        suspension = matching[0]
        if suspension.id in found:
            raise DecisionError(f"{decision.target!r} is decided twice")
        _check_value(suspension, decision)
        found[suspension.id] = decision
    return found


def _check_value(suspension: Suspension, decision: Decision) -> None:
    if not decision.approved or suspension.response_schema is None:
        return
    schema = thaw(freeze(suspension.response_schema))
    try:
        problem = first_misfit(schema, decision.value)
    except ValueError as error:
        raise DecisionError(
            f"the schema for a decision about {suspension.id!r} is not valid: {error}"
        ) from error
    if problem is not None:
        raise DecisionError(f"the decision about {suspension.id!r} does not fit: {problem.message}")

"""What a run tells while it goes on: one stream of dicts, each with a `type`.

Every front end renders these and nothing else. The order is that of the phases: `run_start`, then for
each step `step_start`, what the model says, the calls with their results and `step_end`, and in the end
`run_end`, always and last. A type that a front end does not know is to be ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from agent_core import Session


class RunStart(TypedDict):
    """A run begins, or goes on after it had waited."""

    type: Literal["run_start"]
    run_id: str
    agent_id: str
    model: str
    session_id: str
    resumed: bool


class StepStart(TypedDict):
    """The model is about to be asked; `round` counts from 1."""

    type: Literal["step_start"]
    round: int


class Text(TypedDict):
    """The model says something; texts of one step add up."""

    type: Literal["text"]
    text: str


class Reasoning(TypedDict):
    """The model thinks aloud; texts of one step add up."""

    type: Literal["reasoning"]
    text: str


class Status(TypedDict):
    """What the provider is doing while there is nothing to read, such as loading a model."""

    type: Literal["status"]
    text: str


class ToolCallArgs(TypedDict):
    """The model is writing a call: the next piece of its arguments."""

    type: Literal["tool_call_args"]
    index: int
    call_id: str | None
    name: str | None
    arguments: str


class ToolCallStart(TypedDict):
    """A call is about to run; `preview` is a line for a person, `display` what its tool shows beside it."""

    type: Literal["tool_call_start"]
    call_id: str
    name: str
    arguments: Any
    preview: str
    display: dict[str, Any] | None


class ToolCallPartial(TypedDict):
    """A tool shows something before its result; a delegate's events arrive like this, one by one."""

    type: Literal["tool_call_partial"]
    call_id: str
    name: str
    part: Any


class ToolCallResult(TypedDict):
    """A call has its result, or the reason why it has none; `message` is the tool message."""

    type: Literal["tool_call_result"]
    call_id: str
    name: str
    is_error: bool
    seconds: float
    message: dict[str, Any]


class Suspended(TypedDict):
    """The run waits for decisions; `suspensions` says about what. `run_end` follows."""

    type: Literal["suspended"]
    suspensions: list[dict[str, Any]]


class Retry(TypedDict):
    """A request failed and is repeated after `seconds`; `discarded` if an answer had begun."""

    type: Literal["retry"]
    attempt: int
    of: int
    seconds: float
    category: str
    message: str
    model: str
    discarded: bool


class Fallback(TypedDict):
    """Another model goes on in place of one that cannot answer."""

    type: Literal["fallback"]
    model: str
    instead_of: str
    message: str
    discarded: bool


class UsageEvent(TypedDict):
    """What one answer used, and the run so far."""

    type: Literal["usage"]
    model: str
    usage: dict[str, Any]
    total: dict[str, Any]


class Compaction(TypedDict):
    """Old messages are replaced by a summary in what is sent from now on; the session keeps them."""

    type: Literal["compaction"]
    messages: int
    tokens_before: int
    tokens_after: int


class Warning(TypedDict):
    """Something that somebody should look at, and that does not end the run."""

    type: Literal["warning"]
    message: str
    plugin: NotRequired[str]


class Error(TypedDict):
    """The run failed; `run_end` follows with what was kept."""

    type: Literal["error"]
    error: dict[str, Any]


class Kept(TypedDict):
    """What there is now was kept, before the run goes on; only if the request wants to be told."""

    type: Literal["kept"]
    kind: str
    call_id: str | None


class StepEnd(TypedDict):
    """A step is over; `messages` are those that it added."""

    type: Literal["step_end"]
    round: int
    messages: list[dict[str, Any]]


class RunEnd(TypedDict):
    """The run is over, or waits; the same as `RunResult`."""

    type: Literal["run_end"]
    run_id: str
    agent_id: str
    reason: dict[str, str]
    text: str
    rounds: int
    usage: dict[str, Any]
    session: Session
    messages: list[dict[str, Any]]


Event = (
    RunStart
    | StepStart
    | Text
    | Reasoning
    | Status
    | ToolCallArgs
    | ToolCallStart
    | ToolCallPartial
    | ToolCallResult
    | Suspended
    | Retry
    | Fallback
    | UsageEvent
    | Compaction
    | Warning
    | Error
    | Kept
    | StepEnd
    | RunEnd
)

"""Everything that a front end can be shown: one stream of dicts, each with a `type`.

A request to a model (`AgentCore`) shows `partial` and `final`. A run shows `run_start`, then for each step
`step_start`, what the model says, the calls with their results, and `step_end`; and in the end `run_end`,
always and last. A request of an application shows the same, with `final` or `error` as its last event in
place of `run_end`. An application also logs every change of its sessions (`ChangeEvent`), whoever makes it.
A type that a front end does not know is to be ignored.

The dict is the JSON form, except that `final` and `run_end` carry the session itself.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, NotRequired

from agent_core.session import Session  # noqa: TC001 - pydantic reads the annotations, for FastAPI

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict  # before 3.12, pydantic takes no other one


class _Numbered(TypedDict):
    """An event; in a session's log it has a number, in the stream of all sessions a cursor.

    One of a run that is stored also has its time, in seconds since 1970.
    """

    seq: NotRequired[int]
    cursor: NotRequired[str]
    at: NotRequired[float]


class PartialEvent(_Numbered):
    """A piece of the answer, as soon as the provider sent it."""

    type: Literal["partial"]
    message: dict[str, Any]


class FinalEvent(_Numbered):
    """The end of a request: the new session and the messages that it added.

    A request of an application also has its text, why it ended, what it used, and the approvals for which it
    waits.
    """

    type: Literal["final"]
    session: Session
    messages: list[dict[str, Any]]
    interrupted: NotRequired[bool]
    problems: NotRequired[list[dict[str, Any]]]
    text: NotRequired[str]
    reason: NotRequired[dict[str, str]]
    usage: NotRequired[dict[str, Any]]
    approvals: NotRequired[list[str]]


class TurnEnd(_Numbered):
    """One turn of a request is over, and another follows: a message arrived that has not been answered."""

    type: Literal["turn_end"]
    session: Session
    messages: list[dict[str, Any]]
    text: str
    reason: dict[str, str]
    usage: dict[str, Any]
    approvals: list[str]


class LifecycleError(_Numbered):
    """An action that a plugin runs at some moment of a request failed; the request goes on."""

    type: Literal["lifecycle_error"]
    lifecycle: str
    plugin: str | None
    action_id: str | None
    error: dict[str, Any]


class RunStart(_Numbered):
    """A run begins, or is resumed."""

    type: Literal["run_start"]
    run_id: str
    agent_id: str
    model: str
    session_id: str
    resumed: bool


class StepStart(_Numbered):
    """The model is about to be asked; `round` counts from 1."""

    type: Literal["step_start"]
    round: int


class Text(_Numbered):
    """A piece of the model's answer; texts of one step add up."""

    type: Literal["text"]
    text: str


class Reasoning(_Numbered):
    """A piece of the model's reasoning; texts of one step add up."""

    type: Literal["reasoning"]
    text: str


class Status(_Numbered):
    """What the provider is doing while there is nothing to read, such as loading a model."""

    type: Literal["status"]
    text: str


class ToolCallArgs(_Numbered):
    """The model is writing a call: the next piece of its arguments."""

    type: Literal["tool_call_args"]
    index: int
    call_id: str | None
    name: str | None
    arguments: str


class ToolCallStart(_Numbered):
    """A call is about to run; `preview` is a line for a person, `display` what its tool shows of it."""

    type: Literal["tool_call_start"]
    call_id: str
    name: str
    arguments: Any
    preview: str
    display: dict[str, Any] | None


class ToolCallPartial(_Numbered):
    """A tool shows something before its result; a delegate's events arrive like this, one by one."""

    type: Literal["tool_call_partial"]
    call_id: str
    name: str
    part: Any


class ToolCallResult(_Numbered):
    """A call has its result, or the reason why it has none; `message` is the tool message.

    `preview` says what a call was about that did not begin; it is empty if there was a `tool_call_start`.
    """

    type: Literal["tool_call_result"]
    call_id: str
    name: str
    preview: str
    is_error: bool
    seconds: float
    message: dict[str, Any]


class Suspended(_Numbered):
    """The run waits for decisions; `suspensions` says about what. `run_end` follows."""

    type: Literal["suspended"]
    suspensions: list[dict[str, Any]]


class Retry(_Numbered):
    """A request failed and is repeated after `seconds`; `discarded` if an answer had begun."""

    type: Literal["retry"]
    attempt: int
    of: int
    seconds: float
    category: str
    message: str
    model: str
    discarded: bool


class Fallback(_Numbered):
    """Another model goes on in place of one that cannot answer."""

    type: Literal["fallback"]
    model: str
    instead_of: str
    message: str
    discarded: bool


class HandoffEvent(_Numbered):
    """Another agent continues the conversation, as a part of the same run."""

    type: Literal["handoff"]
    from_agent: str
    to_agent: str


class UsageEvent(_Numbered):
    """What one answer used, and the run so far.

    Attributes:
        beside: True for a question that is not part of the conversation, such as one for a summary.
    """

    type: Literal["usage"]
    model: str
    usage: dict[str, Any]
    total: dict[str, Any]
    first_at: NotRequired[float]
    beside: NotRequired[bool]


class Compaction(_Numbered):
    """Old messages are replaced by a summary in what is sent from now on; the session keeps them."""

    type: Literal["compaction"]
    messages: int
    tokens_before: int
    tokens_after: int


class WarningEvent(_Numbered):
    """A problem that does not end the run."""

    type: Literal["warning"]
    message: str
    plugin: NotRequired[str]


class ErrorEvent(_Numbered):
    """The run failed; `run_end` follows with what was kept."""

    type: Literal["error"]
    error: dict[str, Any]


class Kept(_Numbered):
    """A checkpoint is stored, and the run continues after it; only if the request asks for it."""

    type: Literal["kept"]
    kind: str
    call_id: str | None


class StepEnd(_Numbered):
    """A step is over; `messages` are those that it added."""

    type: Literal["step_end"]
    round: int
    messages: list[dict[str, Any]]


class RunEnd(_Numbered):
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


class SessionCreated(_Numbered):
    """A session is new; `parent_id` is the session it is a branch of, `imported` says that a file had it."""

    type: Literal["session_created"]
    agent_id: str | None
    parent_id: NotRequired[str]
    imported: NotRequired[bool]


class SessionForked(_Numbered):
    """A session has a new branch, which ends with message `upto_index`."""

    type: Literal["session_forked"]
    branch_id: str
    upto_index: int


class SessionRenamed(_Numbered):
    """A session has another title."""

    type: Literal["session_renamed"]
    title: str


class SessionChanged(_Numbered):
    """A session was stored anew outside a run; it has so many messages now."""

    type: Literal["session_changed"]
    messages: int


class SessionDeleted(_Numbered):
    """A session is gone, and its log with it: this comes in the stream of all sessions alone."""

    type: Literal["session_deleted"]
    session_id: str
    reason: str


class AgentSwitched(_Numbered):
    """A session belongs to another agent."""

    type: Literal["agent_switched"]
    previous_agent_id: str | None
    agent_id: str | None


class ActionExecuted(_Numbered):
    """An action of a plugin was run by somebody; `error` if it failed, took too long or was cancelled."""

    type: Literal["action_executed"]
    plugin: str
    action_id: str
    error: NotRequired[dict[str, Any]]


class InputQueued(_Numbered):
    """A message waits to be delivered, with its number `input` and its `mode`."""

    type: Literal["input_queued"]
    input: int
    mode: str
    message: dict[str, Any]


class InputEdited(_Numbered):
    """A message that waits was changed."""

    type: Literal["input_edited"]
    input: int
    mode: str
    message: dict[str, Any]


class InputWithdrawn(_Numbered):
    """A message that waited was taken back."""

    type: Literal["input_withdrawn"]
    input: int


class InputDelivered(_Numbered):
    """Messages that waited are in the session now."""

    type: Literal["input_delivered"]
    inputs: list[int]


class DecisionMade(_Numbered):
    """An approval was decided."""

    type: Literal["decision_made"]
    approval_id: str
    decision: dict[str, Any]


class AssetAdded(_Numbered):
    """A session has a new file."""

    type: Literal["asset_added"]
    asset: dict[str, Any]


class AssetRemoved(_Numbered):
    """A file was taken from a session."""

    type: Literal["asset_removed"]
    asset_id: str


class GrantGiven(_Numbered):
    """Calls may run from now on, or must not; in a session's log if it is for that session alone."""

    type: Literal["grant_given"]
    grant: dict[str, Any]


class GrantRevoked(_Numbered):
    """A grant was taken back."""

    type: Literal["grant_revoked"]
    grant: dict[str, Any]


RunEvent = (
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
    | HandoffEvent
    | UsageEvent
    | Compaction
    | WarningEvent
    | ErrorEvent
    | Kept
    | StepEnd
    | RunEnd
)
"""Any event of a run."""

ChangeEvent = (
    SessionCreated
    | SessionForked
    | SessionRenamed
    | SessionChanged
    | SessionDeleted
    | AgentSwitched
    | ActionExecuted
    | InputQueued
    | InputEdited
    | InputWithdrawn
    | InputDelivered
    | DecisionMade
    | AssetAdded
    | AssetRemoved
    | GrantGiven
    | GrantRevoked
)
"""Any change that an application logs, of a session or of what counts for all."""

Event = RunEvent | ChangeEvent | PartialEvent | FinalEvent | TurnEnd | LifecycleError
"""Any event, of a run, of a request to a model, or of an application."""

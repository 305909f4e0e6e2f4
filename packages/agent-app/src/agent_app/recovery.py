"""After a crash: calls that have no result get one that tells the truth.

A call is written down before it runs, and its result before the model is asked again. So for a call
without a result there are two cases: it was written down, and may have run, in part or completely; or it
was not, and did not run. A branch that begins before the result of a call does not know: the call may have
run in the conversation that it was taken from. None is ever run again by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import Message, Session
from agent_runtime.suspension import unanswered

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agent_core import AgentCore

MAY_HAVE_RUN = (
    "Error: the program ended while this call was running. It may have run, in part or completely; "
    "nobody knows. Check before you do it again."
)
DID_NOT_RUN = "Error: the program ended before this call ran. It did not run."
BRANCHED = (
    "Error: this branch begins before the result of this call. It may have run in the conversation that the "
    "branch was taken from. Check before you do it again."
)


def recover(
    core: AgentCore,
    session: Session,
    begun: Collection[str],
    elsewhere: Collection[str] = (),
    *,
    only: Collection[str] | None = None,
) -> tuple[Session, list[str]]:
    """Return the session with an answer to every call that has none, and the ids of those calls.

    Args:
        begun: The ids of the calls that were written down as about to run.
        elsewhere: The ids of calls that the conversation had already from which this one was taken.
        only: The ids of the calls to answer, if others are to be run.
    """
    open_calls = [call for call in unanswered(session) if only is None or call["id"] in only]
    if not open_calls:
        return session, []
    texts = [_truth(call["id"], begun, elsewhere) for call in open_calls]
    answers = [_answer(call, text) for call, text in zip(open_calls, texts, strict=True)]
    return core.append_messages(session, answers), [call["id"] for call in open_calls]


def _truth(call_id: str, begun: Collection[str], elsewhere: Collection[str]) -> str:
    if call_id in begun:
        return MAY_HAVE_RUN
    return BRANCHED if call_id in elsewhere else DID_NOT_RUN


def not_to_repeat(tools: Mapping[str, Any], begun: Collection[str], session: Session) -> set[str]:
    """Return the open calls that must not be run again: begun, by tools that do not say it does no harm."""
    return {
        call["id"]
        for call in unanswered(session)
        if call["id"] in begun and not _is_idempotent(tools, (call.get("function") or {}).get("name", ""))
    }


def _is_idempotent(tools: Mapping[str, Any], name: str) -> bool:
    """Say whether a tool plugin declares that a call may run twice: all of its tools, or those it lists."""
    said = getattr(tools.get(name), "idempotent", False)
    return said is True or (isinstance(said, (set, frozenset, list, tuple)) and name in said)


def call_ids(session: Session) -> set[str]:
    """Return the ids of all calls of a session."""
    made = (call for message in session.messages for call in message.metadata.get("tool_calls") or ())
    return {call["id"] for call in made if isinstance(call.get("id"), str)}


def _answer(call: Mapping[str, Any], text: str) -> Message:
    function = call.get("function") or call.get("custom") or {}
    uncertain = text != DID_NOT_RUN
    metadata = {
        "tool_call_id": call["id"],
        "tool_name": function.get("name", ""),
        "error": {"type": "interrupted" if uncertain else "not_run"},
        "interrupted": True,
        "uncertain": uncertain,
    }
    return Message("tool", text, metadata, None, {"type": "tool_result", "text": text, "is_error": True})

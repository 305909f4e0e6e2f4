"""After a crash: calls that have no result get one that tells the truth.

A call is written down before it runs, and its result before anybody hears of it. So for a call without a
result there are two cases: it was written down, and may have run, in part or completely; or it was not, and
did not run. A branch that begins before the result of a call does not know: the call may have run in the
conversation that it was taken from. None of them is ever run again, unless its tool says that this does no
harm.

Of calls that ran at the same time, one may have its result while an earlier one has not. Results stand in
the transcript in the order of the calls, so such a result is kept with the run (`SavedRun.finished`) until
its turn comes, and is used from there if the process dies before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core import Message, Session
from agent_core.frozen import EMPTY, freeze, thaw
from agent_runtime.suspension import unanswered

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agent_core import AgentCore
    from agent_runtime.suspension import SavedRun

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
    finished: Mapping[str, Mapping[str, Any]] = EMPTY,
    only: Collection[str] | None = None,
) -> tuple[Session, list[str]]:
    """Return the session with an answer to every call that has none, and the ids of those calls.

    Args:
        begun: The ids of the calls that were written down as about to run.
        elsewhere: The ids of calls that the conversation had already from which this one was taken.
        finished: The tool messages of calls whose result is known, by call id.
        only: The ids of the calls to answer, if others are to be run.
    """
    open_calls = [call for call in unanswered(session) if only is None or call["id"] in only]
    if not open_calls:
        return session, []
    answers = []
    for call in open_calls:
        known = finished.get(call["id"])
        truth = known or answer(call, _truth(call["id"], begun, elsewhere))
        answers.append(Message.from_dict(thaw(freeze(truth))))
    return core.append_messages(session, answers), [call["id"] for call in open_calls]


def known_answers(saved: SavedRun, tools: Mapping[str, Any], session: Session) -> dict[str, dict[str, Any]]:
    """Return the answers to open calls that a run which broke off knows, by call id.

    They are the results that are there, and the truth about calls that had begun and must not run again.
    """
    answers: dict[str, dict[str, Any]] = {}
    for call in unanswered(session):
        if call["id"] in saved.finished:
            answers[call["id"]] = thaw(freeze(saved.finished[call["id"]]))
        elif call["id"] in saved.begun and not _is_idempotent(tools, _tool_name(call)):
            answers[call["id"]] = answer(call, MAY_HAVE_RUN)
    return answers


def call_ids(session: Session) -> set[str]:
    """Return the ids of all calls of a session."""
    made = (call for message in session.messages for call in message.tool_calls)
    return {call["id"] for call in made if isinstance(call.get("id"), str)}


def answer(call: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the tool message for a call that has no result: one of the texts above."""
    uncertain = text != DID_NOT_RUN
    metadata = {
        "tool_call_id": call["id"],
        "tool_name": _tool_name(call),
        "error": {"type": "interrupted" if uncertain else "not_run"},
        "interrupted": True,
        "uncertain": uncertain,
    }
    result = {"type": "tool_result", "text": text, "is_error": True}
    return {"role": "tool", "content": text, "metadata": metadata, "tool_result": result}


def _truth(call_id: str, begun: Collection[str], elsewhere: Collection[str]) -> str:
    if call_id in begun:
        return MAY_HAVE_RUN
    return BRANCHED if call_id in elsewhere else DID_NOT_RUN


def _is_idempotent(tools: Mapping[str, Any], name: str) -> bool:
    """Say whether a tool plugin declares that a call may run twice: all of its tools, or those it lists."""
    declared = getattr(tools.get(name), "idempotent", False)
    return declared is True or (isinstance(declared, (set, frozenset, list, tuple)) and name in declared)


def _tool_name(call: Mapping[str, Any]) -> str:
    function = call.get("function") or call.get("custom") or {}
    return str(function.get("name", ""))

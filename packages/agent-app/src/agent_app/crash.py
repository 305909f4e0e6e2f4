"""What a crash has left of the last answer of a session.

A process that is killed logs no end: the log of the session has the beginning of a run or of a step, and
behind it neither `final` nor `error`. The words that people have seen are in the log alone, since an answer
becomes a message when it ends or is stopped. Calls of tools are messages by then, and have no results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_runtime.suspension import unanswered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_app.services import Services
    from agent_core import Session

_ENDS = frozenset({"final", "error"})
_BEGINNINGS = frozenset({"run_start", "step_start"})
_BEGINS_AGAIN = frozenset({"retry", "fallback"})
_MOST_EVENTS = 2000
"""How far back the log is read for the words of an answer; a step with more has shown much of a tool."""


def unfinished_answer(services: Services, session: Session) -> dict[str, Any] | None:
    """Return the answer of a session that a crash has cut short; the caller knows that nobody works on it.

    Returns:
        `text`, the words that were shown, and `calls` without a result, each with its `call_id`, `name`,
        `arguments` and whether it was `begun`: then it may have run, in part or completely. None if the
        last answer was finished, or ended otherwise.
    """
    calls = unanswered(session)
    if not session.history or (session.history[-1].role == "assistant" and not calls):
        return None
    text = _words_since_beginning(services, session.session_id)
    if text is None:
        return None
    begun = services.store.open_intents(session.session_id) if calls else {}
    return {"text": "" if calls else text, "calls": [_described(call, begun) for call in calls]}


def _words_since_beginning(services: Services, session_id: str) -> str | None:
    """Return what was said since the last step or run began; None if that has ended, or there is none."""
    said: list[str] = []
    for place, event in enumerate(services.hub.read_back(session_id)):
        kind = event["type"]
        if kind in _ENDS:
            return None
        is_beginning = kind in _BEGINNINGS or (kind in _BEGINS_AGAIN and event.get("discarded"))
        if is_beginning or place >= _MOST_EVENTS:
            return "".join(reversed(said))
        if kind == "text":
            said.append(event["text"])
    return None


def _described(call: Mapping[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    about = call.get("function") or call.get("custom") or {}
    return {
        "call_id": call["id"],
        "name": about.get("name") or "",
        "arguments": about.get("arguments") or about.get("input") or "",
        "begun": call["id"] in begun,
    }

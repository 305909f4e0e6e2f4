"""What actions answer: fields for programs, and a display for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction_feature.ranges import Range
    from compaction_feature.records import Record

PLUGIN = "compaction"
COMPACT = "compact_range"
COMPACT_LONG = "compact_when_long"
UNDO = "undo_compaction"

Native = Any
Answer = dict[str, Any]


def failed(native: Native, kind: str, message: str) -> Answer:
    """Return the answer of an action that changes nothing since something is wrong."""
    return {
        "native_messages": native,
        "status": "error",
        "error": {"type": kind, "message": message},
        "message": message,
    }


def nothing_done(native: Native, message: str) -> Answer:
    """Return the answer of an action that has nothing to do."""
    return {"native_messages": native, "status": "noop", "message": message}


def compacted(native: Native, patch: dict[str, Any], record: Record, chosen: Range, before: int) -> Answer:
    """Return the answer after a range was replaced.

    Args:
        before: How many characters the range had.
    """
    told = (
        f"Messages {chosen.start} to {chosen.end - 1} are now one summary of {len(record.summary)} characters"
        f" in place of {before}."
    )
    if chosen.wanted is not None:
        told += (
            f" You asked for {chosen.wanted[0]} to {chosen.wanted[1] - 1}; a tool call and its results stay"
            " together."
        )
    return {
        "native_messages": native,
        "session_metadata": patch,
        "status": "ok",
        "message": told,
        "compaction": record.id,
        "start": chosen.start,
        "end": chosen.end,
        "adjusted": chosen.wanted is not None,
        "summary": record.summary,
        "display": _display("Compacted", told, _undo_button(record)),
    }


def undone(native: Native, patch: dict[str, Any], record: Record, *, made_anew: bool) -> Answer:
    """Return the answer after messages were put back.

    Args:
        made_anew: Whether their native form was, since the session has another provider now.
    """
    told = f"{len(record.messages)} messages are back in the place of their summary."
    return {
        "native_messages": native,
        "session_metadata": patch,
        "status": "ok",
        "message": told,
        "compaction": record.id,
        "native_form": "made_anew" if made_anew else "restored",
        "display": _display("Put back", told, []),
    }


def _display(title: str, body: str, actions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    display: dict[str, Any] = {
        "format": "text",
        "title": title,
        "body": body,
        "variant": "success",
        "presentation": "inline",
        "dismissible": True,
        "display_id": PLUGIN,
    }
    return {**display, "actions": list(actions)} if actions else display


def _undo_button(record: Record) -> list[dict[str, Any]]:
    button = {"kind": "run_action", "id": "undo", "label": "Undo", "plugin": PLUGIN, "action_id": UNDO}
    return [{**button, "params": {"compaction": record.id}}]

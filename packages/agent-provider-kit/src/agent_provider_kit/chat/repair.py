"""Making any history one that a server accepts.

One bad item (a call without its result, a result without its call) makes servers refuse the whole
conversation for ever. The pass is deterministic and idempotent, and never drops what a person said.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from agent_provider_kit.chat.mending import mend_calls, mend_content

Dicts = list[dict[str, Any]]

_INTERRUPTED = "The call was interrupted before it gave a result; it may have run."
_SAYS_NOTHING = frozenset({"role", "name", "_metadata"})


def validate_items(items: Dicts) -> list[str]:
    """Return what a server would not accept; nothing for a good history."""
    return repair_items(items)[1]


def repair_items(items: Dicts) -> tuple[Dicts, list[str]]:
    """Return the items that a server accepts, and a line for each change."""
    if all(map(_is_plain, items)):
        return items, []  # most histories, and this is looked at before every request
    walk = _Walk()
    for place, item in enumerate(items):
        walk.take(place, item)
    walk.close_open_calls()
    return (walk.items, walk.report) if walk.report else (items, [])


def _is_plain(item: dict[str, Any]) -> bool:
    """Say whether it is words and nothing else."""
    content = item.get("content")
    return content.__class__ is str and content != "" and "tool_calls" not in item and item["role"] != "tool"


class _OpenCall(NamedTuple):
    """A call that waits for its result; the two ids differ if it had none of its own."""

    was: Any
    call_id: str


class _Walk:
    """Goes through the items once and keeps track of calls that wait for their result."""

    def __init__(self) -> None:
        self.items: Dicts = []
        self.report: list[str] = []
        self._open: list[_OpenCall] = []

    def take(self, place: int, item: dict[str, Any]) -> None:
        item, changes = mend_content(item)
        self._tell(place, changes)
        if item.get("role") == "tool":
            self._take_result(place, item)
            return
        self.close_open_calls()
        if item.get("role") == "assistant":
            self._take_answer(place, item)
        else:
            self.items.append(item)

    def close_open_calls(self) -> None:
        """Answer calls whose result is missing, truthfully."""
        for call in self._open:
            self.report.append(f"call {call.call_id!r}: added a result, since there was none")
            self.items.append(
                {
                    "role": "tool",
                    "tool_call_id": call.call_id,
                    "content": _INTERRUPTED,
                    "_metadata": {"synthesized": True, "interrupted": True},
                }
            )
        self._open = []

    def _take_answer(self, place: int, item: dict[str, Any]) -> None:
        if not any(value for key, value in item.items() if key not in _SAYS_NOTHING):
            self._tell(place, ["left out an assistant message that says nothing"])
            return
        mended, changes = mend_calls(item, len(self.items))
        self._tell(place, changes)
        self.items.append(mended)
        calls = zip(item.get("tool_calls") or [], mended.get("tool_calls") or [], strict=True)
        self._open = [_OpenCall(was.get("id"), now["id"]) for was, now in calls]

    def _take_result(self, place: int, item: dict[str, Any]) -> None:
        wanted = item.get("tool_call_id")
        call = next((call for call in self._open if call.was == wanted or not (call.was or wanted)), None)
        if call is None:
            self._tell(place, [f"left out a result that answers no call ({wanted!r})"])
            return
        self._open.remove(call)
        if call.call_id != wanted:
            self._tell(place, [f"gave the result the id of its call, {call.call_id!r}"])
            item = {**item, "tool_call_id": call.call_id}
        self.items.append(item)

    def _tell(self, place: int, changes: list[str]) -> None:
        self.report += [f"item {place}: {change}" for change in changes]

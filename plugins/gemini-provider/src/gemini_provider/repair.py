"""Making any history one that the API accepts.

One bad item (a call without its result, a result without its call) makes the API refuse the whole
conversation from then on. The pass is deterministic and idempotent. It takes no words away: a part that
cannot be sent is put aside in its item's `_metadata`, a result in the wrong place is moved to its call,
and a call that never got a result gets one that says so.

Roles out of turn need no repair: see `gemini_provider.request`. Nor do signatures, which only the API
can judge: see `gemini_provider.request`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemini_provider.messages import (
    METADATA,
    Call,
    Part,
    calls_in,
    find_call,
    is_call,
    is_response,
    own_id,
    parts_of,
    put_aside,
    says_something,
)

if TYPE_CHECKING:
    from agent_provider_kit import Dicts, JsonObject

_INTERRUPTED = "The call was interrupted before it gave a result; it may have run."
_ROLES = {"assistant": "model", "function": "user", "tool": "user", "developer": "system"}
_KNOWN_ROLES = ("system", "user", "model")


def validate_items(items: Dicts) -> list[str]:
    """Return what the API would not accept; nothing for a good history."""
    return repair_items(items)[1]


def repair_items(items: Dicts) -> tuple[Dicts, list[str]]:
    """Return the items that the API accepts, and a line for each change."""
    report: list[str] = []
    tidy = [_tidied(index, item, report) for index, item in enumerate(items)]
    repaired = _Pairing(tidy, report).paired()
    return (repaired, report) if report else (items, [])


def _tidied(index: int, item: JsonObject, report: list[str]) -> JsonObject:
    for fix in (_with_role, _with_parts, _without_empty, _without_misplaced):
        fixed, problem = fix(item)
        if problem:
            report.append(f"item {index}: {problem}")
            item = fixed
    return item


def _with_role(item: JsonObject) -> tuple[JsonObject, str]:
    role = item.get("role")
    if role in _KNOWN_ROLES:
        return item, ""
    known = _ROLES.get(str(role), "user")
    return {**item, "role": known}, f"its role is {known!r} now, since the API has no role {role!r}"


def _with_parts(item: JsonObject) -> tuple[JsonObject, str]:
    """Return an item whose parts are a list of objects; text in another place becomes a part."""
    parts = item.get("parts")
    if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
        return item, ""
    found = parts if parts is not None else item.get("content")
    listed = found if isinstance(found, list) else [found]
    made = [part if isinstance(part, dict) else {"text": part} for part in listed if _is_part(part)]
    rest = {key: value for key, value in item.items() if key != "content" or parts is not None}
    return {**rest, "parts": made}, "its parts were not a list of objects"


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and bool(value))


def _without_empty(item: JsonObject) -> tuple[JsonObject, str]:
    kept = [part for part in item["parts"] if says_something(part)]
    if len(kept) == len(item["parts"]):
        return item, ""
    return {**item, "parts": kept}, "left out parts without content"


def _without_misplaced(item: JsonObject) -> tuple[JsonObject, str]:
    """Return an item without calls that the model did not make and results that it made itself."""
    foreign = is_response if item["role"] == "model" else is_call
    bad = {place for place, part in enumerate(item["parts"]) if foreign(part)}
    if item["role"] == "system":
        bad |= {place for place, part in enumerate(item["parts"]) if is_response(part)}
    if not bad:
        return item, ""
    reason = f"they cannot be in an item of role {item['role']!r}"
    return put_aside(item, bad, reason), f"put {len(bad)} parts aside, {reason}"


class _Pairing:
    """Goes through the items once and brings each call and its result together."""

    def __init__(self, items: Dicts, report: list[str]) -> None:
        self._items = items
        self._report = report
        self._out: Dicts = []
        self._open: list[Call] = []
        self._moved: set[tuple[int, int]] = set()

    def paired(self) -> Dicts:
        """Return the items with every call answered, and every result an answer."""
        for index, item in enumerate(self._items):
            if item["role"] == "model" and item["parts"]:
                self._close(index)
                self._out.append(item)
                self._open = calls_in(item)
            elif item["role"] == "user" and item["parts"]:
                self._take_user(index, item)
            else:
                self._out.append(item)
        self._close(len(self._items))
        return self._out

    def _take_user(self, index: int, item: JsonObject) -> None:
        kept: list[Part] = []
        aside: set[int] = set()
        for number, part in enumerate(item["parts"]):
            if (index, number) in self._moved:
                continue
            kept.append(part)
            if is_response(part) and not self._answers(part):
                aside.add(len(kept) - 1)
        if any(not is_response(part) for part in kept):
            self._close(index + 1)  # what is still open must be answered before a person speaks
        if kept:
            self._out.append(self._without(index, item, kept, aside))

    def _answers(self, part: Part) -> bool:
        call = find_call(part, self._open)
        if call is None:
            return False
        self._open.remove(call)
        return True

    def _without(self, index: int, item: JsonObject, kept: list[Part], aside: set[int]) -> JsonObject:
        if len(kept) != len(item["parts"]):
            item = {**item, "parts": kept}
        if not aside:
            return item
        names = [kept[place]["functionResponse"].get("name") for place in sorted(aside)]
        self._report.append(f"item {index}: put the results of {names} aside, they answer no call")
        return put_aside(item, aside, "it answers no call")

    def _close(self, start: int) -> None:
        """Give every call that is still open a result: its own if that comes later, or a truthful one."""
        self._out += [self._late(call, start) or self._made(call) for call in self._open]
        self._open = []

    def _late(self, call: Call, start: int) -> JsonObject | None:
        for index in range(start, len(self._items)):
            item = self._items[index]
            if any(each.id == call.id for each in calls_in(item)):
                return None  # from here on it is another call's
            for number, part in enumerate(parts_of(item)):
                wanted = is_response(part) and own_id(part) == call.id
                if wanted and (index, number) not in self._moved:
                    self._moved.add((index, number))
                    self._report.append(f"call {call.id!r}: moved its result to it from item {index}")
                    return _alone(item, part)
        return None

    def _made(self, call: Call) -> JsonObject:
        self._report.append(f"call {call.id!r}: added a result, since there was none")
        body = {"id": call.id, "name": call.name, "response": {"error": _INTERRUPTED}}
        return {
            "role": "user",
            "parts": [{"functionResponse": body}],
            METADATA: {"synthesized": True, "interrupted": True},
        }


def _alone(item: JsonObject, part: Part) -> JsonObject:
    """Return an item with this part only: the item itself, if it has no other."""
    return item if len(item["parts"]) == 1 else {"role": "user", "parts": [part]}

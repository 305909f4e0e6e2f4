"""Putting tool calls together from the pieces in which servers send them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson

if TYPE_CHECKING:
    from agent_provider_kit.wire import Dicts, JsonObject

_BODIES = ("function", "custom")
_INPUTS = ("arguments", "input")


class ToolCallPieces:
    """Collects the pieces of tool calls.

    Servers differ: pieces with an index, whole calls without one, one index for several calls, no
    ids, the same id twice, another id in each piece. What comes out has one entry per call, each with
    an id of its own.
    """

    def __init__(self) -> None:
        self._calls: Dicts = []
        self._by_index: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, piece: JsonObject) -> int:
        """Add a piece and return the number of the call that it belongs to."""
        number = self._number(piece)
        call = self._calls[number]
        for key, value in piece.items():
            if key in _BODIES:
                _merge(call.setdefault(key, {}), value if isinstance(value, dict) else {})
            elif key == "id":
                call[key] = call.get(key) or value
            elif key != "index" and value is not None:
                call[key] = value
        return number

    def calls(self) -> Dicts:
        """Return all calls, each with an id of its own, which stays the same."""
        seen: set[str] = set()
        for call in self._calls:
            own = call.get("id")
            if not isinstance(own, str) or not own or own in seen:
                own = call["id"] = f"call_{uuid4().hex}"
            seen.add(own)
        return [_complete(call) for call in self._calls]

    def _number(self, piece: JsonObject) -> int:
        index = piece.get("index")
        known = self._by_index.get(index) if isinstance(index, int) else self._without_index(piece.get("id"))
        if known is None or _begins_another(self._calls[known], piece):
            self._calls.append({})
            known = len(self._calls) - 1
        if isinstance(index, int):
            self._by_index[index] = known
        return known

    def _without_index(self, call_id: Any) -> int | None:
        """A piece without an index continues the call of its id, or else the last one."""
        if not call_id:
            return len(self._calls) - 1 if self._calls else None
        same = (n for n in reversed(range(len(self._calls))) if self._calls[n].get("id") == call_id)
        return next(same, None)


def shown(piece: JsonObject, number: int) -> JsonObject:
    """Return a piece as partial messages carry it."""
    body = _body(piece)
    partial = {"index": number, "id": piece.get("id"), "name": _name(piece)}
    partial |= {field: _text(body[field]) for field in _INPUTS if body.get(field) is not None}
    return {key: value for key, value in partial.items() if value is not None}


def has_input(partial: JsonObject) -> bool:
    """Say whether a piece, as `shown` returns it, brings more of a call's arguments."""
    return bool(partial.get("arguments") or partial.get("input"))


def split_usable(calls: Dicts, *, finished: bool) -> tuple[Dicts, Dicts]:
    """Return the calls that can be run, and those that were cut off.

    Only an answer that did not finish can cut arguments off; what else is wrong with them is reported to
    the model when the call is run. A call of nothing cannot be run at all.
    """
    usable = [_name(call) is not None and (finished or _is_whole(call)) for call in calls]
    return (
        [call for call, ok in zip(calls, usable, strict=True) if ok],
        [call for call, ok in zip(calls, usable, strict=True) if not ok],
    )


def _begins_another(call: JsonObject, piece: JsonObject) -> bool:
    """Say whether a piece that seems to continue a call begins another: only one with a name can."""
    name, had = _name(piece), _name(call)
    if name is None or had is None:
        return False
    own, other = call.get("id"), piece.get("id")
    if name != had or (own and other and own != other):
        return True
    return _is_whole(call) and any(_body(piece).get(field) for field in _INPUTS)


def _body(call: JsonObject) -> JsonObject:
    for key in _BODIES:
        body: Any = call.get(key)
        if isinstance(body, dict):
            return body
    return {}


def _name(call: JsonObject) -> str | None:
    name = _body(call).get("name")
    return name if name and isinstance(name, str) else None


def _is_whole(call: JsonObject) -> bool:
    function = call.get("function")
    if not isinstance(function, dict):
        return False  # freeform text has no end of its own
    try:
        return isinstance(orjson.loads(function.get("arguments") or ""), dict)
    except orjson.JSONDecodeError:
        return False


def _merge(into: JsonObject, piece: JsonObject) -> None:
    for key, value in piece.items():
        if key in _INPUTS and value is not None:
            into[key] = into.get(key, "") + _text(value)
        elif value is not None:
            into[key] = into.get(key) or value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _complete(call: JsonObject) -> JsonObject:
    if isinstance(call.get("function"), dict):
        call = {**call, "function": {"arguments": "", **call["function"]}}
    kind = "custom" if "custom" in call and "function" not in call else "function"
    return {"type": kind, **call}

"""A repair that turns any history into one that a server accepts.

One bad item (a call without its result, a result without its call) makes servers refuse the whole
conversation from then on. The pass is deterministic and idempotent, and never drops what a person said.
"""

from __future__ import annotations

from typing import Any

import orjson

from agent_provider_kit.memory import known_good, remember_good
from agent_provider_kit.wire import Dicts, JsonObject, State

_IN_PLACE_OF_CONTENT = ("function_call", "audio", "refusal")
Repaired = tuple[JsonObject, list[str]]
_INTERRUPTED = "The call was interrupted before it gave a result; it may have run."
_SAYS_NOTHING = frozenset({"role", "name", "_metadata"})


def repair_content(item: JsonObject) -> Repaired:
    """Return the item with content that servers take: no empty parts, null only next to something else."""
    content = item.get("content")
    if isinstance(content, list):
        kept = [part for part in content if not _is_empty_text(part)]
        if len(kept) != len(content) or not kept:
            return {**item, "content": kept or ""}, ["left out empty parts"]
    elif content is None and not item.get("tool_calls") and not any(map(item.get, _IN_PLACE_OF_CONTENT)):
        return {**item, "content": ""}, ["wrote an empty text in place of null"]
    return item, []


def repair_calls(item: JsonObject, place: int) -> Repaired:
    """Return an assistant's item whose calls have ids of their own, and arguments that can be read."""
    changes: list[str] = []
    seen: set[str] = set()
    repaired = [
        _with_arguments(_with_id(call, (place, number), seen, changes), changes)
        for number, call in enumerate(item["tool_calls"])
    ]
    return ({**item, "tool_calls": repaired}, changes) if changes else (item, changes)


def _is_empty_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and not part.get("text")


def _with_id(call: JsonObject, place: tuple[int, int], seen: set[str], changes: list[str]) -> JsonObject:
    own = call.get("id")
    if isinstance(own, str) and own and own not in seen:
        seen.add(own)
        return call
    spare = f"call_{place[0]}_{place[1]}"
    while spare in seen:
        spare += "_"
    seen.add(spare)
    changes.append(f"gave a call an id of its own, {spare!r}")
    return {**call, "id": spare}


def _with_arguments(call: JsonObject, changes: list[str]) -> JsonObject:
    function = call.get("function")
    if not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    readable = _readable(arguments)
    if readable is arguments:
        return call
    changes.append(f"made the arguments of call {call['id']!r} readable, which were not a JSON object")
    return {**call, "function": {**function, "arguments": readable}}


def _readable(arguments: Any) -> Any:
    """Return arguments as the text of a JSON object; several servers break on anything else."""
    parsed = arguments
    if arguments and isinstance(arguments, str):
        try:
            parsed = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            parsed = {"unreadable": arguments}
        else:
            if isinstance(parsed, dict):
                return arguments
    if not isinstance(parsed, dict):
        parsed = {"unreadable": parsed} if parsed else {}
    return orjson.dumps(parsed).decode()


def validate_items(items: Dicts) -> list[str]:
    """Return what a server would not accept; nothing for a good history."""
    return repair_items(items)[1]


def repair_items(items: Dicts, memory: State | None = None) -> tuple[Dicts, list[str]]:
    """Return the items that a server accepts, and a line for each change."""
    good = known_good(items, memory)
    added = items[good:]
    if not all(map(_is_plain, added)):
        walk = _Walk(items[:good])
        for place, item in enumerate(added, good):
            walk.take(place, item)
        walk.close_open_calls()
        if walk.report:
            return walk.items, walk.report
    remember_good(items, memory)
    return items, []


def _is_plain(item: JsonObject) -> bool:
    """Say whether it is words and nothing else."""
    content = item.get("content")
    return content.__class__ is str and content != "" and "tool_calls" not in item and item["role"] != "tool"


class _Walk:
    """Goes through the items once and keeps track of calls that wait for their result.

    Almost all items are good, and there may be thousands of them, at every request: so those pass first.
    """

    def __init__(self, good: Dicts) -> None:
        self.items: Dicts = list(good)
        self.report: list[str] = []
        # The id that a call had, and the one that it has: two if the first could not be used.
        self._open: list[tuple[Any, str]] = []

    def take(self, place: int, item: JsonObject) -> None:
        content = item.get("content")
        if not content or content.__class__ is not str:
            item, changes = repair_content(item)
            self._tell(place, changes)
        role = item.get("role")
        if role == "tool":
            self._take_result(place, item)
            return
        if self._open:
            self.close_open_calls()
        if role == "assistant":
            self._take_answer(place, item)
        else:
            self.items.append(item)

    def close_open_calls(self) -> None:
        """Answer calls whose result is missing, truthfully."""
        for _was, call_id in self._open:
            self.report.append(f"call {call_id!r}: added a result, since there was none")
            self.items.append(
                {
                    "role": "tool",
                    "tool_call_id": call_id,
                    "content": _INTERRUPTED,
                    "_metadata": {"synthesized": True, "interrupted": True},
                }
            )
        self._open = []

    def _take_answer(self, place: int, item: JsonObject) -> None:
        calls = item.get("tool_calls")
        if calls:
            repaired, changes = repair_calls(item, len(self.items))
            self._tell(place, changes)
            self._open = [
                (was.get("id"), now["id"]) for was, now in zip(calls, repaired["tool_calls"], strict=True)
            ]
            self.items.append(repaired)
        elif item.get("content") or any(value for key, value in item.items() if key not in _SAYS_NOTHING):
            self.items.append(item)
        else:
            self._tell(place, ["left out an assistant message that says nothing"])

    def _take_result(self, place: int, item: JsonObject) -> None:
        wanted = item.get("tool_call_id")
        call_id = self._answered(wanted)
        if call_id is None:
            self._tell(place, [f"left out a result that answers no call ({wanted!r})"])
            return
        if call_id != wanted:
            self._tell(place, [f"gave the result the id of its call, {call_id!r}"])
            item = {**item, "tool_call_id": call_id}
        self.items.append(item)

    def _answered(self, wanted: Any) -> str | None:
        """Return the id of the call that a result answers, which waits no longer."""
        for number, (was, _) in enumerate(self._open):
            if was == wanted or not (was or wanted):
                return self._open.pop(number)[1]
        return None

    def _tell(self, place: int, changes: list[str]) -> None:
        self.report += [f"item {place}: {change}" for change in changes]

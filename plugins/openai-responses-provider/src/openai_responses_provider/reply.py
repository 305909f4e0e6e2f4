"""One answer of the Responses API, as it arrives.

What counts in the end is the list in the last event: items there may differ from what came before,
the encrypted reasoning above all. Only an answer that never came to its end is put together from pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from agent_provider_kit import Dicts, JsonObject, StreamCutOff, StreamMalformed
from openai_responses_provider.events import (
    Piece,
    StreamEvent,
    ending_of,
    failure_in,
    finish_reason,
    read_usage,
    rest_of,
)
from openai_responses_provider.items import (
    BY_DELTA,
    BY_DONE,
    CUSTOM_CALL,
    METADATA,
    Field,
    GrowingItem,
    is_message,
    is_reasoning,
    is_tool_call,
    kind_of,
    numbered,
)
from openai_responses_provider.messages import (
    is_builtin,
    progress_in,
    readable_call,
    summary_of_tool,
    text_of,
)

if TYPE_CHECKING:
    from agent_provider_kit import Exchange


PARAGRAPH = "\n\n"
_ENDS = ("completed", "incomplete")
_OTHER_WORDS = {"complete": "completed", "done": "completed"}  # of servers that imitate the API
_ABOUT_AN_ITEM = frozenset({"id", "type", "status", "role", "call_id", "name", "phase", "namespace"})
_MOST_STATUSES = 100
_NOTHING = {"type": "message", "role": "assistant", "content": []}


class _Sorted(NamedTuple):
    """What of an answer can be sent back, calls that were cut off, and other items that were."""

    items: Dicts
    calls: Dicts
    rest: Dicts


def _says_something(item: JsonObject) -> bool:
    """Say whether an item has any of the answer in it, and not only a type, a name and a status."""
    return any(value for field, value in item.items() if field not in _ABOUT_AN_ITEM)


class ResponsesReply:
    """Collects the events of an answer and makes native items of them.

    Attributes:
        progress: Rises with every event that brings more of the answer, and when the answer, or a kind of
            built-in tool, says a status for the first time. Empty items could go on for ever, so they do not.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.progress = 0
        self._told: set[tuple[str, ...]] = (
            set()
        )  # which statuses were said, of the answer and of built-in tools
        self._exchange = exchange
        self._growing: dict[int, GrowingItem] = {}
        self._places: dict[str, int] = {}
        self._response: JsonObject = {}
        self._output: Dicts = []
        self._calls = 0
        self._speaker: int | None = None
        self._ended = False

    def add(self, event: StreamEvent) -> Dicts:
        """Take one event and return what it shows."""
        if event.__class__ is Piece:
            field = BY_DELTA[event.type]
            index = event.summary_index if field.parts == "summary" else event.content_index
            return self._grow(event.output_index, field, index, event.delta)
        assert isinstance(event, dict)
        try:
            return self._add_full(event)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise self._malformed(f"an event of type {event.get('type')!r} that lacks something") from error

    def take(self, body: JsonObject) -> None:
        """Take an answer that came in one piece."""
        if not isinstance(body.get("output"), list):
            raise (
                failure_in(self._exchange, body)
                if body.get("error")
                else self._malformed("an answer without output")
            )
        self._end({"status": "completed", **body})

    @property
    def response(self) -> JsonObject:
        """What the provider said about its answer so far."""
        return self._response

    def ended(self) -> bool:
        """Say whether the last event came."""
        return self._ended

    def items(self) -> Dicts:
        """Return the answer's items, as they are sent back the next time."""
        found = self._sorted()
        if not any(found) and not self._ended:
            return []
        items = _with_call_ids(found.items or [_NOTHING])
        origin = {"response_id": self._response.get("id"), "model": self._response.get("model")}
        known = {
            **origin,
            "finish_reason": finish_reason(self._response) if self._ended else None,
            "ending": ending_of(self._response, items) if self._ended else None,
            "usage": read_usage(self._response.get("usage")),
            "response": rest_of(self._response),
            "incomplete_tool_calls": [readable_call(call) for call in found.calls],
            "incomplete_items": found.rest,
        }
        marked = [{**item, METADATA: _present(origin)} for item in items]
        marked[-1][METADATA] = _present(known)
        return numbered(marked)

    # Events

    def _add_full(self, event: JsonObject) -> Dicts:
        kind = str(event.get("type"))
        if kind in BY_DELTA and isinstance(event.get("delta"), str):
            return self._grow(self._place(event), BY_DELTA[kind], _part_index(event), event["delta"])
        if kind in BY_DONE:
            self._fix(event, BY_DONE[kind])
            return []
        match kind:
            case "response.output_item.added":
                return self._begin(self._place(event), event["item"])
            case "response.output_item.done":
                return self._complete(self._place(event), event["item"])
            case "response.content_part.added" | "response.content_part.done":
                self._item(event, "message").put_part("content", event["content_index"], event["part"])
            case "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done":
                self._item(event, "reasoning").put_part("summary", event["summary_index"], event["part"])
            case "response.output_text.annotation.added":
                self._item(event, "message").annotate(event["content_index"], event["annotation"])
            case _:
                return self._add_other(kind, event)
        return []

    def _add_other(self, kind: str, event: JsonObject) -> Dicts:
        if kind == "error" or (event.get("error") and "response" not in event):
            raise failure_in(self._exchange, event)
        if isinstance(event.get("response"), dict):
            status = _status(kind.removeprefix("response."))
            response = {**event["response"]}
            if status in (*_ENDS, "failed", "cancelled"):
                return self._end({**response, "status": response.get("status") or status})
            self._tell(str(response.get("status")))
            self._response = response
            return []
        progress = progress_in(event)
        if progress is None:
            return []
        self.progress += "image" in progress
        self._tell(progress["type"], progress["status"])
        return [_partial(server_tool=progress)]

    def _tell(self, *said: str) -> None:
        """Count a status that comes for the first time: a server could go back and forth for ever."""
        self.progress += said not in self._told and len(self._told) < _MOST_STATUSES
        self._told.add(said)

    def _end(self, response: JsonObject) -> Dicts:
        """Take the whole response, and show what nobody has seen of it yet."""
        self.progress += not self._ended
        response = {**response, "status": _status(response.get("status"))}
        self._response, status = response, response["status"]
        if status == "failed" or response.get("error"):
            raise failure_in(self._exchange, response)
        if status not in _ENDS:
            raise StreamCutOff(self._exchange, f"{self._exchange.host} says that the answer is {status}")
        self._output = list(response.get("output") or ())
        if not all(isinstance(item, dict) for item in self._output):
            raise self._malformed("an item that is not an object")
        if status == "completed" and not self._output and not self._growing:
            raise self._malformed("an answer that is complete, and nothing in it")
        self._ended = True
        unseen = [(place, item) for place, item in enumerate(self._output) if place not in self._growing]
        return [partial for place, item in unseen for partial in self._complete(place, item)]

    # Items

    def _place(self, event: JsonObject) -> int:
        """Return the place of the item that an event is about, which some servers name by its id alone."""
        place = event.get("output_index")
        if isinstance(place, int):
            return place
        own = event.get("item_id") or (event.get("item") or {}).get("id")
        return self._places.setdefault(str(own), len(self._growing))

    def _item(self, event: JsonObject, kind: str) -> GrowingItem:
        return self._at(self._place(event), kind)

    def _at(self, place: int, kind: str) -> GrowingItem:
        item = self._growing.get(place)
        if item is None:
            start = {"type": kind, "role": "assistant"} if kind == "message" else {"type": kind}
            item = self._open(place, start)
        return item

    def _open(self, place: int, start: JsonObject) -> GrowingItem:
        number = None
        self.progress += place not in self._growing and _says_something(start)
        if is_tool_call(start):
            number, self._calls = self._calls, self._calls + 1
        item = self._growing[place] = GrowingItem(dict(start), number)
        if isinstance(start.get("id"), str):
            self._places[start["id"]] = place
        return item

    def _begin(self, place: int, start: JsonObject) -> Dicts:
        item = self._open(place, start)
        if item.number is None:
            return [_partial(server_tool=summary_of_tool(start))] if is_builtin(start) else []
        call = {"index": item.number, "id": _call_id(start), "name": start.get("name")}
        return [_partial(tool_call=call)]

    def _grow(self, place: int, field: Field, index: int, piece: str) -> Dicts:
        item = self._growing.get(place) or self._at(place, field.item_type)
        item.grow(field, index, piece)
        if not piece:
            return []
        self.progress += 1
        item.shown = True
        if field.part_type == "output_text":
            return self._say(place, piece)
        if field.item_type == "reasoning":
            return [_partial(reasoning=piece)]
        if field.part_type == "refusal":
            return [_partial(refusal=piece)]
        if item.number is None:
            return []
        return [_partial(tool_call={"index": item.number, field.name: piece})]

    def _say(self, place: int, text: str) -> Dicts:
        """Return more of what is said; another message begins a paragraph of its own."""
        begins = self._speaker is not None and self._speaker != place
        self._speaker = place
        said = [{"role": "assistant", "content": text}]
        return [{"role": "assistant", "content": PARAGRAPH}, *said] if begins else said

    def _fix(self, event: JsonObject, field: Field) -> None:
        item = self._item(event, field.item_type)
        item.fix(field, _part_index(event), event[field.name])
        item.done = item.done or item.number is not None

    def _complete(self, place: int, whole: JsonObject) -> Dicts:
        """Close an item; one that nobody has seen yet is shown now, whole."""
        known = self._growing.get(place)
        shown: Dicts = [] if known is not None else self._begin(place, whole)
        item = self._growing[place]
        self.progress += not item.done and _says_something(whole)
        item.complete(dict(whole))
        if is_builtin(whole):
            return [_partial(server_tool=summary_of_tool(whole))]
        return shown if item.shown else [*shown, *self._unseen(place, item, whole)]

    def _unseen(self, place: int, item: GrowingItem, whole: JsonObject) -> Dicts:
        item.shown = True
        if is_message(whole):
            text = text_of(whole)
            return self._say(place, text) if text else []
        if item.number is not None:
            field = "input" if kind_of(whole) == CUSTOM_CALL else "arguments"
            return [_partial(tool_call={"index": item.number, field: whole.get(field) or ""})]
        return []

    # The end

    def _sorted(self) -> _Sorted:
        found = _Sorted([], [], [])
        last = self._output[-1] if self._output else None
        for item, done in self._candidates():
            if self._is_whole(item, done=done, last=item is last):
                found.items.append(item if done else _cut(item))
            elif is_tool_call(item):
                found.calls.append(item)
            else:
                found.rest.append(item)
        return found

    def _candidates(self) -> list[tuple[JsonObject, bool]]:
        if self._output:
            return [(item, True) for item in self._output]
        return [(item.value(), item.done) for _, item in sorted(self._growing.items())]

    def _is_whole(self, item: JsonObject, *, done: bool, last: bool) -> bool:
        if is_message(item):
            return done or bool(item.get("content"))  # half a sentence is still one
        if is_reasoning(item):
            return True
        if not done and not self._ended:
            return False
        if self._ended and self._response.get("status") == "completed":
            return True
        status = item.get("status")
        if status is None and is_tool_call(item):
            return not last or _has_whole_arguments(item)
        return status not in ("incomplete", "in_progress")

    def _malformed(self, what: str) -> StreamMalformed:
        return StreamMalformed(self._exchange, f"{self._exchange.host} sent {what}")


def _partial(**more: Any) -> JsonObject:
    return {"role": "assistant", "content": "", **more}


def _status(word: Any) -> Any:
    return _OTHER_WORDS.get(str(word), word)


def _present(known: JsonObject) -> JsonObject:
    return {key: value for key, value in known.items() if value}


def _part_index(event: JsonObject) -> int:
    return int(event.get("content_index") or event.get("summary_index") or 0)


def _cut(item: JsonObject) -> JsonObject:
    return {**item, "status": "incomplete"} if is_message(item) else item


def _call_id(item: JsonObject) -> Any:
    return item.get("call_id") or item.get("id")


def _with_call_ids(items: Dicts) -> Dicts:
    """Give each call of our tools an id of its own, which some servers forget or use twice."""
    seen: set[str] = set()
    return [
        _with_call_id(item, place, seen) if is_tool_call(item) else item for place, item in enumerate(items)
    ]


def _with_call_id(item: JsonObject, place: int, seen: set[str]) -> JsonObject:
    own = str(_call_id(item) or f"call_{place}")
    while own in seen:
        own = f"{own}_{place}"
    seen.add(own)
    return item if item.get("call_id") == own else {**item, "call_id": own}


def _has_whole_arguments(item: JsonObject) -> bool:
    if kind_of(item) == CUSTOM_CALL:
        return False  # freeform text has no end of its own
    try:
        return isinstance(orjson.loads(item.get("arguments") or ""), dict)
    except (orjson.JSONDecodeError, TypeError):
        return False

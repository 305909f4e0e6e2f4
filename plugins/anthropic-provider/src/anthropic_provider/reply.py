"""One answer of the Messages API, as it arrives: its blocks, and the message that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.interop.wire import decode, encode, encode_object
from agent_provider_kit import Dicts, JsonObject, StreamMalformed
from anthropic_provider.events import (
    CUT_SHORT,
    ENDINGS,
    InputDelta,
    Piece,
    StreamEvent,
    TextDelta,
    failure_in_stream,
    read_usage,
)
from anthropic_provider.messages import METADATA, is_call, is_server_call, is_text

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange

ARGUMENTS = "partial_json"
_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": ARGUMENTS,
    "signature_delta": "signature",
    "citations_delta": "citation",
}
_KEPT_ELSEWHERE = frozenset({"id", "type", "role", "content", "model", "stop_reason"})
_CONTENT = ("text", "thinking", "data", "input", "content", "citations", "signature")
"""The fields of a block that have any of the answer in them."""
_SHOWN_AS_THEY_COME = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


class GrowingBlock:
    """A block that has begun and may not be complete.

    Attributes:
        start: The block as it began, every field kept.
        number: Which of the answer's calls it is, if it is a call of one of our tools.
        closed: Whether the server said that the block is complete.
    """

    __slots__ = ("_fields", "_pieces", "closed", "number", "start")

    def __init__(self, start: JsonObject, *, number: int | None = None, closed: bool = False) -> None:
        self.start = start
        self.number = number
        self.closed = closed
        self._pieces: dict[str, list[str]] = {}
        self._fields: JsonObject = {}

    @property
    def kind(self) -> str:
        """The block's type."""
        return str(self.start.get("type"))

    def grow(self, field: str, piece: str) -> None:
        """Add text to one of the fields."""
        self._pieces.setdefault(field, []).append(piece)

    def merge(self, delta: JsonObject) -> JsonObject:
        """Add any delta and return those of its fields that are not part of the block.

        A delta of unknown type is taken to be more of the fields that it names.
        """
        field = _FIELDS.get(str(delta.get("type")))
        if field is None:
            for key in delta.keys() - {"type"}:
                self._add(key, delta[key])
            return {}
        self._add_known(field, delta[field])
        return {key: value for key, value in delta.items() if key not in ("type", field)}

    def arguments(self) -> str:
        """Return a call's arguments as JSON text, as far as they have come."""
        return "".join(self._pieces.get(ARGUMENTS, ())) or encode(self.start.get("input") or {})

    def value(self) -> JsonObject:
        """Return the block as far as it has come."""
        block = {**self.start, **self._fields}
        for field, pieces in self._pieces.items():
            if field != ARGUMENTS:
                before = block.get(field)
                block[field] = (before if isinstance(before, str) else "") + "".join(pieces)
            elif text := "".join(pieces).strip():
                # Arguments that are not JSON travel in an envelope, which the model can read.
                block["input"] = encode_object(decode(text)[0])
        return block

    def _add_known(self, field: str, value: Any) -> None:
        if field == "citation":
            before = self._fields.get("citations", self.start.get("citations"))
            self._fields["citations"] = [*(before or ()), value]
        elif field == "signature":
            self._fields[field] = value  # it comes whole
        else:
            self._add(field, value)

    def _add(self, field: str, value: Any) -> None:
        if isinstance(value, str):
            self.grow(field, value)
        elif isinstance(value, list):
            self._fields[field] = [*(self._fields.get(field, self.start.get(field)) or ()), *value]
        else:
            self._fields[field] = value


def _says_something(block: JsonObject) -> bool:
    """Say whether a block has any of the answer in it, and not only a type and a name."""
    return any(block.get(field) for field in _CONTENT)


class MessageReply:
    """Collects the pieces of an answer and makes the assistant's message of them.

    Attributes:
        progress: Rises with every piece that brings more of the answer: empty blocks, counts and deltas that
            nobody knows could go on for ever, and do not count.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.progress = 0
        self._exchange = exchange
        self._message: JsonObject = {}
        self._blocks: dict[int, GrowingBlock] = {}
        self._calls = 0
        self._unknown: Dicts = []
        self._done = False

    def add(self, event: StreamEvent) -> Dicts:
        """Take one event and return what it shows."""
        if event.__class__ is Piece:
            return self._grow(event)
        assert isinstance(event, dict)
        try:
            return self._add_full(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise self._malformed(f"an event of type {event.get('type')!r} that lacks something") from error

    def take(self, body: JsonObject) -> None:
        """Take an answer that came in one piece."""
        if "error" in body:
            raise failure_in_stream(self._exchange, body)
        if not isinstance(body.get("content"), list):
            raise self._malformed("an answer without content")
        self._begin(body)
        self._done = True

    def ended(self) -> bool:
        """Say whether a stop reason came; an end without one counts only if there was an answer."""
        return self._finish is not None or (self._done and bool(self._blocks))

    def items(self) -> Dicts:
        """Return the assistant's message, as it is sent back the next time."""
        if not self._blocks and not self._finish:
            return []
        content, calls, rest = self._sorted_blocks()
        about = {
            "response_id": self._message.get("id"),
            "model": self._message.get("model"),
            "finish_reason": self._finish,
            "ending": self._ending(content),
            "usage": read_usage(self._message.get("usage") or {}),
            "response": self._rest_of_message(),
            "incomplete_tool_calls": calls,
            "incomplete_blocks": rest,
            "unknown_events": self._unknown,
        }
        kept = {key: value for key, value in about.items() if value}
        return [{"role": "assistant", "content": content, METADATA: kept}]

    @property
    def _finish(self) -> str | None:
        return self._message.get("stop_reason")

    def _grow(self, event: Piece) -> Dicts:
        block, delta = self._block(event.index), event.delta
        if isinstance(delta, TextDelta):
            self.progress += bool(delta.text)
            block.grow("text", delta.text)
            return [{"role": "assistant", "content": delta.text}] if delta.text else []
        if isinstance(delta, InputDelta):
            self.progress += bool(delta.partial_json)
            block.grow(ARGUMENTS, delta.partial_json)
            return _call_piece(block, delta.partial_json)
        self.progress += bool(delta.thinking)
        block.grow("thinking", delta.thinking)
        return [{"role": "assistant", "content": "", "reasoning": delta.thinking}] if delta.thinking else []

    def _add_full(self, event: JsonObject) -> Dicts:
        match event.get("type"):
            case "message_start":
                self._begin(event["message"])
            case "content_block_start":
                return self._start(event["index"], event["content_block"])
            case "content_block_delta":
                return self._merge(event["index"], event["delta"])
            case "content_block_stop":
                return self._close(self._block(event["index"]))
            case "message_delta":
                self._update(event)
            case "message_stop":
                self.progress += not self._done
                self._done = True
            case kind if kind == "error" or "error" in event:
                raise failure_in_stream(self._exchange, event)
            case _:
                self._unknown.append(event)
        return []

    def _begin(self, message: JsonObject) -> None:
        self._message = dict(message)
        for index, block in enumerate(message.get("content") or ()):
            self._open(index, block).closed = True

    def _open(self, index: int, start: JsonObject) -> GrowingBlock:
        number = None
        self.progress += index not in self._blocks and _says_something(start)
        if is_call(start):
            number, self._calls = self._calls, self._calls + 1
        block = self._blocks[index] = GrowingBlock(dict(start), number=number)
        return block

    def _start(self, index: int, start: JsonObject) -> Dicts:
        block = self._open(index, start)
        if is_text(start) and start["text"]:
            return [{"role": "assistant", "content": start["text"]}]
        if block.number is None:
            return []
        call = {"index": block.number, "id": start.get("id"), "name": start.get("name")}
        return [{"role": "assistant", "content": "", "tool_call": call}]

    def _merge(self, index: int, delta: JsonObject) -> Dicts:
        block = self._block(index)
        self.progress += bool(delta.get(_FIELDS.get(str(delta.get("type")), "")))
        if extra := block.merge(delta):
            more = {"type": delta["type"], **extra}
            self._unknown.append({"type": "content_block_delta", "index": index, "delta": more})
        return _shown(block, delta)

    def _close(self, block: GrowingBlock) -> Dicts:
        """Close a block; one that nobody has seen yet is shown now, whole."""
        self.progress += not block.closed and _says_something(block.value())
        block.closed = True
        if block.kind in _SHOWN_AS_THEY_COME:
            return []
        return [{"role": "assistant", "content": "", "part": block.value()}]

    def _update(self, event: JsonObject) -> None:
        """Take what the end of a message adds: the counts are the whole ones, not more of them."""
        usage = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
        more = {key: value for key, value in event.items() if key not in ("type", "delta", "usage")}
        updated = {**self._message, **more, **(event.get("delta") or {}), "usage": usage}
        self.progress += bool(updated.get("stop_reason")) and not self._finish
        self._message = updated

    def _sorted_blocks(self) -> tuple[Dicts, Dicts, Dicts]:
        """Return what can be sent back, the calls that were cut off, and other blocks that were."""
        content: Dicts = []
        calls: Dicts = []
        rest: Dicts = []
        last = max(self._blocks, default=None)
        for index in sorted(self._blocks):
            block = self._blocks[index]
            value = block.value()
            if self._is_whole(block, value, last=index == last):
                content.append(value)
            elif block.number is None:
                rest.append(value)
            else:
                function = {"name": value.get("name"), "arguments": block.arguments()}
                calls.append({"id": value.get("id"), "type": "function", "function": function})
        return content, calls, rest

    def _is_whole(self, block: GrowingBlock, value: JsonObject, *, last: bool) -> bool:
        if is_text(value):
            return bool(value["text"]) or block.closed  # half a sentence is still one
        if not block.closed and self._finish is None and not self._done:
            return False
        if not last or self._finish not in CUT_SHORT:
            return True
        if value.get("type") == "thinking":
            return bool(value.get("signature"))
        return not (is_call(value) or is_server_call(value))

    def _ending(self, content: Dicts) -> Ending | None:
        if self._finish is not None:
            return ENDINGS.get(self._finish, "complete")
        if not self._done:
            return None
        return "tool_calls" if any(map(is_call, content)) else "complete"

    def _rest_of_message(self) -> JsonObject:
        return {
            key: value
            for key, value in self._message.items()
            if key not in _KEPT_ELSEWHERE and value is not None
        }

    def _block(self, index: int) -> GrowingBlock:
        block = self._blocks.get(index)
        if block is None:
            raise self._malformed(f"more of block {index}, which never began")
        return block

    def _malformed(self, what: str) -> StreamMalformed:
        return StreamMalformed(self._exchange, f"{self._exchange.host} sent {what}")


def _shown(block: GrowingBlock, delta: JsonObject) -> Dicts:
    """Return what a delta that was read in full shows."""
    if delta.get("text"):
        return [{"role": "assistant", "content": delta["text"]}]
    if delta.get("thinking"):
        return [{"role": "assistant", "content": "", "reasoning": delta["thinking"]}]
    return _call_piece(block, delta.get(ARGUMENTS) or "")


def _call_piece(block: GrowingBlock, piece: str) -> Dicts:
    if block.number is None or not piece:
        return []
    call = {"index": block.number, "arguments": piece}
    return [{"role": "assistant", "content": "", "tool_call": call}]

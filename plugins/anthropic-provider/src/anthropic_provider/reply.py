"""One answer of the Messages API, as it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_provider_kit import StreamMalformed
from anthropic_provider.assembly import ARGUMENTS, GrowingBlock
from anthropic_provider.events import InputDelta, Piece, StreamEvent, TextDelta
from anthropic_provider.kinds import METADATA, is_call, is_server_call, is_text
from anthropic_provider.outcome import CUT_SHORT, ENDINGS, failure_in_stream, read_usage

if TYPE_CHECKING:
    from agent_provider_kit import Ending, Exchange

Dicts = list[dict[str, Any]]

_TOLD_ELSEWHERE = frozenset({"id", "type", "role", "content", "model", "stop_reason"})
_SHOWN_AS_THEY_COME = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


class MessageReply:
    """Collects the pieces of an answer and makes the assistant's message of them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._message: dict[str, Any] = {}
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

    def take(self, body: dict[str, Any]) -> None:
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
            block.grow("text", delta.text)
            return [{"role": "assistant", "content": delta.text}] if delta.text else []
        if isinstance(delta, InputDelta):
            block.grow(ARGUMENTS, delta.partial_json)
            return _call_piece(block, delta.partial_json)
        block.grow("thinking", delta.thinking)
        return [{"role": "assistant", "content": "", "reasoning": delta.thinking}] if delta.thinking else []

    def _add_full(self, event: dict[str, Any]) -> Dicts:
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
                self._done = True
            case kind if kind == "error" or "error" in event:
                raise failure_in_stream(self._exchange, event)
            case _:
                self._unknown.append(event)
        return []

    def _begin(self, message: dict[str, Any]) -> None:
        self._message = dict(message)
        for index, block in enumerate(message.get("content") or ()):
            self._open(index, block).closed = True

    def _open(self, index: int, start: dict[str, Any]) -> GrowingBlock:
        number = None
        if is_call(start):
            number, self._calls = self._calls, self._calls + 1
        block = self._blocks[index] = GrowingBlock(dict(start), number=number)
        return block

    def _start(self, index: int, start: dict[str, Any]) -> Dicts:
        block = self._open(index, start)
        if is_text(start) and start["text"]:
            return [{"role": "assistant", "content": start["text"]}]
        if block.number is None:
            return []
        call = {"index": block.number, "id": start.get("id"), "name": start.get("name")}
        return [{"role": "assistant", "content": "", "tool_call": call}]

    def _merge(self, index: int, delta: dict[str, Any]) -> Dicts:
        block = self._block(index)
        if extra := block.merge(delta):
            more = {"type": delta["type"], **extra}
            self._unknown.append({"type": "content_block_delta", "index": index, "delta": more})
        return _shown(block, delta)

    def _close(self, block: GrowingBlock) -> Dicts:
        """Close a block; one that nobody has seen yet is shown now, whole."""
        block.closed = True
        if block.kind in _SHOWN_AS_THEY_COME:
            return []
        return [{"role": "assistant", "content": "", "part": block.value()}]

    def _update(self, event: dict[str, Any]) -> None:
        """Take what the end of a message adds: the counts are the whole ones, not more of them."""
        usage = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
        more = {key: value for key, value in event.items() if key not in ("type", "delta", "usage")}
        self._message |= {**more, **(event.get("delta") or {}), "usage": usage}

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

    def _is_whole(self, block: GrowingBlock, value: dict[str, Any], *, last: bool) -> bool:
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

    def _rest_of_message(self) -> dict[str, Any]:
        return {
            key: value
            for key, value in self._message.items()
            if key not in _TOLD_ELSEWHERE and value is not None
        }

    def _block(self, index: int) -> GrowingBlock:
        block = self._blocks.get(index)
        if block is None:
            raise self._malformed(f"more of block {index}, which never began")
        return block

    def _malformed(self, what: str) -> StreamMalformed:
        return StreamMalformed(self._exchange, f"{self._exchange.host} sent {what}")


def _shown(block: GrowingBlock, delta: dict[str, Any]) -> Dicts:
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

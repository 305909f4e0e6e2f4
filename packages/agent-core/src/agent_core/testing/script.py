"""The lines of a script: what a model says, calls or fails with in one turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from agent_core.encoding import canonical
from agent_core.errors import ArgumentError

Chunk = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call for a script to make.

    Attributes:
        name: The tool.
        arguments: A dict, sent as JSON, or a text that is sent as it is, valid or not.
        id: Its id; by default "call_1", "call_2" and so on through a conversation.
        input: The text for a freeform tool, which takes no arguments.
    """

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    input: str | None = None

    def to_dict(self, number: int) -> dict[str, Any]:
        """Return the call as a model would send it, its *number* counted through the conversation."""
        call_id = f"call_{number}" if self.id is None else self.id
        if self.input is not None:
            return {"id": call_id, "type": "custom", "custom": {"name": self.name, "input": self.input}}
        arguments = self.arguments if isinstance(self.arguments, str) else canonical(self.arguments).decode()
        return {"id": call_id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One turn of a script.

    Attributes:
        text: What is said.
        chunks: The text in the pieces in which it arrives; by default it is one piece.
        tool_calls: Calls that the model makes.
        error: Raised after the text, in place of an end.
        delay: Seconds before each chunk, or one number per chunk, of which the last counts for all
            that follow; ``math.inf`` waits until the request is cancelled.
        usage: Token counts that the message carries.
        extra: More fields for the native message, as a provider's reasoning or signatures would be.
    """

    text: str = ""
    chunks: Sequence[str] | None = None
    tool_calls: Sequence[ToolCall] = ()
    error: Exception | None = None
    delay: float | Sequence[float] = 0.0
    usage: dict[str, int] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.text and self.chunks is not None and self.text != "".join(self.chunks):
            raise ArgumentError("a reply's chunks must add up to its text: give one of the two")

    def pieces(self) -> list[str]:
        """Return the text as it arrives."""
        if self.chunks is not None:
            return list(self.chunks)
        return [self.text] if self.text else []

    def pauses(self) -> Iterator[float]:
        """Yield the seconds before each chunk, without end."""
        delays = self.delay if isinstance(self.delay, Sequence) else (self.delay,)
        return chain(delays, repeat(delays[-1] if delays else 0.0))

    def play(self, calls_before: int = 0) -> Iterator[Chunk]:
        """Yield the reply in chunks: its text, then one with all the rest; or raise its error.

        Args:
            calls_before: How many tool calls the conversation has seen.
        """
        pieces = self.pieces()
        for piece in pieces:
            yield {"text": piece}
        if self.error is not None:
            raise self.error
        end = self._end(calls_before)
        if end or not pieces:
            yield {"finish_reason": "tool_calls" if self.tool_calls else "stop", **end}

    def _end(self, calls_before: int) -> Chunk:
        end: Chunk = dict(self.extra)
        if self.tool_calls:
            end["tool_calls"] = [call.to_dict(n) for n, call in enumerate(self.tool_calls, calls_before + 1)]
        if self.usage is not None:
            end["usage"] = self.usage
        return end


Spoken = Reply | str | Exception
Line = Spoken | Callable[[list[dict[str, Any]]], Spoken]


def read_line(line: Line, native_messages: list[dict[str, Any]]) -> Reply:
    """Return what *line* means as an answer to *native_messages*, or raise it if it is an exception."""
    spoken = line(native_messages) if callable(line) else line
    if isinstance(spoken, Exception):
        raise spoken
    if isinstance(spoken, str):
        return Reply(text=spoken)
    if not isinstance(spoken, Reply):
        raise TypeError(f"a script has replies, texts, exceptions and functions, no {type(spoken).__name__}")
    return spoken

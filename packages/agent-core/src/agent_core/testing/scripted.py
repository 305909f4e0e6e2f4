"""A provider that plays a script: what a model would say, call or fail with, turn by turn."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_core.encoding import canonical
from agent_core.testing.chat_format import ChatFormat, Dicts

State = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call for a script to make; dict arguments are sent as JSON, a str as it is."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None

    def to_dict(self, number: int) -> dict[str, Any]:
        """Return the call as a model would send it."""
        arguments = self.arguments if isinstance(self.arguments, str) else canonical(self.arguments).decode()
        call_id = f"call_{number}" if self.id is None else self.id
        return {"id": call_id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One turn of a script.

    Attributes:
        text: What is said.
        chunks: The text in the pieces in which it arrives; by default it is one piece.
        tool_calls: Calls that the model makes.
        error: Raised after the text, in place of an end.
        delay: Seconds before each chunk.
        usage: Token counts that the message carries.
        extra: More fields for the native message, as a provider's reasoning or signatures would be.
    """

    text: str = ""
    chunks: Sequence[str] | None = None
    tool_calls: Sequence[ToolCall] = ()
    error: Exception | None = None
    delay: float = 0.0
    usage: dict[str, int] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def pieces(self) -> list[str]:
        """Return the text as it arrives."""
        if self.chunks is not None:
            return list(self.chunks)
        return [self.text] if self.text else []


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """What the provider was asked."""

    native_messages: Dicts
    config: dict[str, Any]
    request_id: str | None


class ScriptEnded(RuntimeError):  # noqa: N818  # reads as what happened
    """There was one request more than the script has replies."""


Line = Reply | str | Exception | Callable[[Dicts], "Reply | str"]


class ScriptedProvider(ChatFormat):
    """Plays one line of its script per request; an instance is registered like a class.

    Args:
        script: The replies in order: a `Reply`, a text, an exception to raise, or a function of the
            native messages that returns one of the first two.
        name: The provider's name.
        models: What `get_models` returns.
        sleep: How delays are spent when nobody awaits.

    Attributes:
        requests: What it was asked so far.
        cancelled: The ids of the requests that were cancelled.
    """

    version = "1"

    def __init__(
        self,
        script: Iterable[Line] = (),
        *,
        name: str = "scripted",
        models: Sequence[dict[str, Any]] = (),
        sleep: Callable[[float], Any] = time.sleep,
    ) -> None:
        self.name = name
        self.requests: list[SeenRequest] = []
        self.cancelled: list[str] = []
        self._script = list(script)
        self._models = list(models)
        self._sleep = sleep
        self._lock = threading.Lock()

    def get_models(self, config: dict[str, Any]) -> Dicts:  # noqa: ARG002  # the script does not care
        """Return the models that it was given."""
        return self._models

    def init(self, config: dict[str, Any]) -> State:
        """Return the state of a request."""
        return {"config": config, "text": [], "end": {}}

    def call_api(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Say the whole line at once."""
        for chunk in self.stream_api(native_messages, state, request_id):
            self.process_chunk(chunk, native_messages, state)
        return [], [], native_messages, state

    def stream_api(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the line in chunks."""
        reply = self._next_reply(native_messages, state, request_id)
        for chunk in _chunks(reply):
            if reply.delay:
                self._sleep(reply.delay)
            yield chunk
        _end(reply)

    async def stream_api_async(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the line in chunks, on an event loop."""
        from asyncio import sleep

        reply = self._next_reply(native_messages, state, request_id)
        for chunk in _chunks(reply):
            if reply.delay:
                await sleep(reply.delay)
            yield chunk
        _end(reply)

    def process_chunk(
        self, chunk: dict[str, Any], native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Collect text, and remember what comes at the end."""
        if "text" not in chunk:
            state["end"] = chunk
            return [], [], native_messages, state
        state["text"].append(chunk["text"])
        return [{"role": "assistant", "content": chunk["text"]}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        """Return what was said as one message."""
        if not state["text"] and not state["end"]:
            return [], native_messages, state
        answer = {"role": "assistant", "content": "".join(state["text"]), **state["end"]}
        return [answer], [*native_messages, answer], state

    def cancel_request(self, request_id: str) -> None:
        """Note that a request was cancelled; its stream is not read any further."""
        self.cancelled.append(request_id)

    def _next_reply(self, native_messages: Dicts, state: State, request_id: str | None) -> Reply:
        with self._lock:
            self.requests.append(SeenRequest(list(native_messages), state["config"], request_id))
            if not self._script:
                raise ScriptEnded(f"request {len(self.requests)} came, but the script is at its end")
            line = self._script.pop(0)
        if isinstance(line, Exception):
            raise line
        spoken = line(native_messages) if callable(line) else line
        return Reply(text=spoken) if isinstance(spoken, str) else spoken


def _chunks(reply: Reply) -> Iterator[dict[str, Any]]:
    for piece in reply.pieces():
        yield {"text": piece}
    end: dict[str, Any] = dict(reply.extra)
    if reply.tool_calls:
        end["tool_calls"] = [call.to_dict(number) for number, call in enumerate(reply.tool_calls, 1)]
    if reply.usage is not None:
        end["usage"] = reply.usage
    if reply.error is None and (end or not reply.pieces()):
        yield {"finish_reason": "tool_calls" if reply.tool_calls else "stop", **end}


def _end(reply: Reply) -> None:
    if reply.error is not None:
        raise reply.error

"""A provider that plays a script, turn by turn."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from math import isinf
from typing import TYPE_CHECKING, Any

from agent_core.cancellation import Cancellation
from agent_core.errors import ArgumentTypeError, RequestCancelled
from agent_core.testing.chat_format import ChatFormat, Dicts
from agent_core.testing.script import Chunk, Line, Reply, read_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

State = dict[str, Any]
_END = object()


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """What the provider was asked.

    Attributes:
        config: The request's configuration, with the schemas of the tools on offer under "tools".
    """

    native_messages: Dicts
    config: dict[str, Any]
    request_id: str | None


class ScriptEnded(RuntimeError):  # noqa: N818  # reads as what happened
    """There was one request more than the script has replies."""


class ScriptedProvider(ChatFormat):
    """Plays one line of its script per request; an instance is registered like a class.

    It may be asked from several threads and event loops at once: each request takes the next line.
    A request whose id is cancelled ends at once, also while it waits.

    Args:
        script: The replies in order: a `Reply`, a text, an exception to raise, or a function of the
            native messages that returns one of these. `itertools.repeat` and the like never end.
        name: The provider's name.
        models: What `get_models` returns.
        sleep: Called with the seconds in place of waiting, for tests that must not take time. On an
            event loop, what it returns is awaited if it can be.

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
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        if isinstance(script, str):
            raise ArgumentTypeError("script must be a list of replies: put a single text into a list")
        self.name = name
        self.requests: list[SeenRequest] = []
        self.cancelled: list[str] = []
        self._script = iter(script)
        self._models = list(models)
        self._sleep = sleep
        self._lock = threading.Lock()
        self._tokens: dict[str, Cancellation] = {}

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

    async def call_api_async(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Say the whole line at once, on an event loop."""
        async for chunk in self.stream_api_async(native_messages, state, request_id):
            self.process_chunk(chunk, native_messages, state)
        return [], [], native_messages, state

    def stream_api(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> Iterator[Chunk]:
        """Yield the line in chunks."""
        token = self._token(request_id)
        reply = self._next_reply(native_messages, state, request_id)
        for chunk, pause in zip(reply.play(_count_calls(native_messages)), reply.pauses(), strict=False):
            self._wait(pause, token)
            yield chunk

    async def stream_api_async(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> AsyncIterator[Chunk]:
        """Yield the line in chunks, on an event loop."""
        token = self._token(request_id)
        reply = self._next_reply(native_messages, state, request_id)
        for chunk, pause in zip(reply.play(_count_calls(native_messages)), reply.pauses(), strict=False):
            await self._wait_async(pause, token)
            yield chunk

    def process_chunk(
        self, chunk: Chunk, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        """Collect text, and remember what comes at the end."""
        if "finish_reason" in chunk:
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
        """End a request, now or when it begins; a read that waits for it ends too."""
        token = self._token(request_id)
        with self._lock:
            self.cancelled.append(request_id)
        token.cancel()

    def _token(self, request_id: str | None) -> Cancellation:
        if request_id is None:
            return Cancellation()
        with self._lock:
            return self._tokens.setdefault(request_id, Cancellation())

    def _next_reply(self, native_messages: Dicts, state: State, request_id: str | None) -> Reply:
        with self._lock:
            self.requests.append(SeenRequest(list(native_messages), state["config"], request_id))
            line: Any = next(self._script, _END)
            number = len(self.requests)
        if line is _END:
            raise ScriptEnded(f"request {number} came, but the script is at its end")
        return read_line(line, native_messages)

    def _wait(self, delay: float, token: Cancellation) -> None:
        if delay and self._sleep is not None:
            self._sleep(delay)
        elif delay:
            woken = threading.Event()
            key = token.add_callback(woken.set)
            woken.wait(_timeout(delay))
            token.remove_callback(key)
        _leave_if_cancelled(token)

    async def _wait_async(self, delay: float, token: Cancellation) -> None:
        if delay and self._sleep is not None:
            slept = self._sleep(delay)
            if hasattr(slept, "__await__"):
                await slept
        elif delay:
            await _sleep_until(token, delay)
        _leave_if_cancelled(token)


async def _sleep_until(token: Cancellation, delay: float) -> None:
    import asyncio

    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        # The token may be cancelled in any thread, and the event belongs to this loop.
        loop.call_soon_threadsafe(woken.set)

    key = token.add_callback(wake)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_timeout(delay)):
                await woken.wait()
    finally:
        token.remove_callback(key)


def _leave_if_cancelled(token: Cancellation) -> None:
    if token.cancelled:
        raise RequestCancelled


def _timeout(delay: float) -> float | None:
    return None if isinf(delay) else delay


def _count_calls(native_messages: Dicts) -> int:
    return sum(len(item.get("tool_calls") or ()) for item in native_messages)

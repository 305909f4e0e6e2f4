"""A provider that plays a script, turn by turn, and an IO that answers a flow's steps from a list."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, repeat
from math import isinf
from typing import TYPE_CHECKING, Any

from agent_core import lazy
from agent_core.cancellation import Cancellation
from agent_core.encoding import canonical
from agent_core.errors import ArgumentError, ArgumentTypeError, RequestCancelled
from agent_core.frozen import Dicts, State
from agent_core.steps import CloseStream, Emit, Flow, Step
from agent_core.testing.echo import ChatFormat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from agent_core.types import Config

Chunk = dict[str, Any]
_END = object()


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
Line = Spoken | Callable[[Dicts], Spoken]


def read_line(line: Line, native_messages: Dicts) -> Reply:
    """Return what *line* means as an answer to *native_messages*, or raise it if it is an exception."""
    spoken = line(native_messages) if callable(line) else line
    if isinstance(spoken, Exception):
        raise spoken
    if isinstance(spoken, str):
        return Reply(text=spoken)
    if not isinstance(spoken, Reply):
        raise TypeError(f"a script has replies, texts, exceptions and functions, no {type(spoken).__name__}")
    return spoken


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """What the provider was asked.

    Attributes:
        config: The request's configuration, with the schemas of the tools on offer under "tools".
    """

    native_messages: Dicts
    config: Config
    request_id: str | None


class ScriptEnded(RuntimeError):  # reads as what happened
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
        record: Whether `requests` is kept; without it the provider can run for as long as you like.

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
        record: bool = True,
    ) -> None:
        if isinstance(script, str):
            raise ArgumentTypeError("script must be a list of replies: put a single text into a list")
        self.name = name
        self.requests: list[SeenRequest] = []
        self.cancelled: list[str] = []
        self._script = iter(script)
        self._models = list(models)
        self._sleep = sleep
        self._record = record
        self._asked = 0
        self._lock = threading.Lock()
        self._tokens: dict[str, Cancellation] = {}

    def get_models(self, config: Config) -> Dicts:  # the script does not care
        return self._models

    def init(self, config: Config) -> State:
        return {"config": config, "text": [], "end": {}}

    def call_api(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        for chunk in self.stream_api(native_messages, state, request_id):
            self.process_chunk(chunk, native_messages, state)
        return [], [], native_messages, state

    async def call_api_async(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        async for chunk in self.stream_api_async(native_messages, state, request_id):
            self.process_chunk(chunk, native_messages, state)
        return [], [], native_messages, state

    def stream_api(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> Iterator[Chunk]:
        with self._request(request_id) as token:
            reply = self._next_reply(native_messages, state, request_id)
            for chunk, pause in zip(reply.play(_count_calls(native_messages)), reply.pauses(), strict=False):
                self._wait(pause, token)
                yield chunk

    async def stream_api_async(
        self, native_messages: Dicts, state: State, request_id: str | None = None
    ) -> AsyncIterator[Chunk]:
        with self._request(request_id) as token:
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

    @contextmanager
    def _request(self, request_id: str | None) -> Iterator[Cancellation]:
        """Lend a request its token, and forget that when the request is over."""
        if request_id is None:
            yield Cancellation()
            return
        token = self._token(request_id)
        try:
            yield token
        finally:
            with self._lock:
                self._tokens.pop(request_id, None)

    def _token(self, request_id: str) -> Cancellation:
        with self._lock:
            return self._tokens.setdefault(request_id, Cancellation())

    def _next_reply(self, native_messages: Dicts, state: State, request_id: str | None) -> Reply:
        with self._lock:
            self._note(native_messages, state, request_id)
            line: Any = next(self._script, _END)
            number = self._asked
        if line is _END:
            raise ScriptEnded(f"request {number} came, but the script is at its end")
        return read_line(line, native_messages)

    def _note(self, native_messages: Dicts, state: State, request_id: str | None) -> None:
        self._asked += 1
        if self._record:
            self.requests.append(SeenRequest(list(native_messages), state["config"], request_id))

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
    loop, woken = lazy.asyncio.get_running_loop(), lazy.asyncio.Event()

    def wake() -> None:
        # The token may be cancelled in any thread, and the event belongs to this loop.
        loop.call_soon_threadsafe(woken.set)

    key = token.add_callback(wake)
    try:
        with suppress(TimeoutError):
            async with lazy.asyncio.timeout(_timeout(delay)):
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


class ScriptedIO:
    """Answers a flow's steps from a list.

    An exception in the list is thrown into the flow; a function is called with the step, and what it
    returns or raises is the answer. Closing a stream needs no answer.

    Attributes:
        answers: Those that no step has asked for yet.
        steps: The steps that the flow asked for, in order.
        events: What it emitted.
    """

    def __init__(self, answers: Iterable[Any] = ()) -> None:
        self.answers = list(answers)
        self.steps: list[Step[Any]] = []
        self.events: list[Any] = []

    def run(self, flow: Flow[Any]) -> Any:
        """Run the flow to its end and return its result.

        Raises:
            ScriptEnded: If the flow asks for more than there are answers.
        """
        resume, value = flow.send, None  # type: Any, Any
        while True:
            try:
                step = resume(value)
            except StopIteration as done:
                return done.value
            resume, value = self._answer(flow, step)

    def _answer(self, flow: Flow[Any], step: Step[Any]) -> tuple[Any, Any]:
        self.events += getattr(step, "events", ())
        if isinstance(step, Emit):
            return flow.send, None
        self.steps.append(step)
        if isinstance(step, CloseStream):
            return flow.send, None
        answer = self._next_answer(flow, step)
        try:
            answer = answer(step) if callable(answer) else answer
        except Exception as error:  # the flow decides what it means
            answer = error
        return (flow.throw if isinstance(answer, BaseException) else flow.send), answer

    def _next_answer(self, flow: Flow[Any], step: Step[Any]) -> Any:
        if not self.answers:
            flow.close()
            raise ScriptEnded(f"the flow asked for {type(step).__name__}, but there are no answers left")
        return self.answers.pop(0)

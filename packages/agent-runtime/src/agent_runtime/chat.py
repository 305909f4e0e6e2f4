"""A chat with one agent: each answer continues the conversation."""

from __future__ import annotations

import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Generic, TypeVar

from agent_core import lazy

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable, Generator

    from agent_core import Message, Session
    from agent_core.events import RunEvent
    from agent_runtime.results import RunResult
    from agent_runtime.run_stream import AsyncRunStream, RunStream

OutputT = TypeVar("OutputT")


class Chat(Generic[OutputT]):
    """An agent together with what was said so far; `Agent.chat` makes one.

    It answers one message after the other: one that comes during an answer waits until that is complete.
    A copy (`copy.copy`, `copy.deepcopy`) is another chat with the same agent that begins where this one is.

    Attributes:
        session: What was said so far; None at the beginning.
        result: What the last answer came to; None before the first.
    """

    def __init__(
        self,
        stream: Callable[..., RunStream[OutputT]],
        stream_async: Callable[..., AsyncRunStream[OutputT]],
        session: Session | None = None,
    ) -> None:
        self.session = session
        self.result: RunResult[OutputT] | None = None
        self._stream = stream
        self._stream_async = stream_async
        self._run: RunStream[OutputT] | AsyncRunStream[OutputT] | None = None
        self._turn = threading.Lock()
        self._async_turn: asyncio.Lock | None = None

    def __repr__(self) -> str:
        return f"<Chat: {len(self.messages)} messages>"

    def __copy__(self) -> Chat[OutputT]:
        return Chat(self._stream, self._stream_async, self.session)

    def __deepcopy__(self, _memo: object) -> Chat[OutputT]:
        return self.__copy__()  # sessions are frozen, and agents keep nothing of a run

    @property
    def messages(self) -> tuple[Message, ...]:
        """What a person reads of the chat: the texts of the user and of the agent."""
        said = self.session.messages if self.session is not None else ()
        return tuple(one for one in said if one.role in ("user", "assistant") and one.content)

    def run(self, message: object, *, on_text: Callable[[str], object] | None = None) -> RunResult[OutputT]:
        """Say something and return what the answer came to.

        Args:
            message: A text, a message, or several.
            on_text: Called with the words of the answer as they come.

        Raises:
            AgentError: What `Agent.run` raises.
        """
        for words in self.say(message):
            if on_text is not None:
                on_text(words)
        return self._ended()

    async def run_async(
        self, message: object, *, on_text: Callable[[str], object] | None = None
    ) -> RunResult[OutputT]:
        """Do what `run` does, on the running event loop."""
        async with aclosing(self.say_async(message)) as answer:
            async for words in answer:
                if on_text is not None:
                    on_text(words)
        return self._ended()

    def say(self, message: object) -> Generator[str, None, None]:
        """Say something and yield the words of the answer as they come.

        Raises:
            AgentError: In the end, what `Agent.run` raises.
        """
        for event in self.stream(message):
            if event["type"] == "text":
                yield event["text"]
        self._ended()

    async def say_async(self, message: object) -> AsyncGenerator[str, None]:
        """Do what `say` does, on the running event loop."""
        async with aclosing(self.stream_async(message)) as events:
            async for event in events:
                if event["type"] == "text":
                    yield event["text"]
        self._ended()

    def stream(self, message: object) -> Generator[RunEvent, None, None]:
        """Say something and yield the events of the answer; if the run fails, `result` says why."""
        with self._turn:
            run = self._stream(message, session=self.session)
            try:
                with run:
                    yield from run
            finally:
                self._keep(run)

    async def stream_async(self, message: object) -> AsyncGenerator[RunEvent, None]:
        """Do what `stream` does, on the running event loop."""
        if self._async_turn is None:
            self._async_turn = lazy.asyncio.Lock()  # programs that only wait do without asyncio
        async with self._async_turn:
            run = self._stream_async(message, session=self.session)
            try:
                async with run:
                    async for event in run:
                        yield event
            finally:
                self._keep(run)

    def _keep(self, run: RunStream[OutputT] | AsyncRunStream[OutputT]) -> None:
        """Continue from a run; an answer that somebody left early is kept as far as it came."""
        if run.result is not None:
            self.result, self.session, self._run = run.result, run.result.session, run

    def _ended(self) -> RunResult[OutputT]:
        assert self._run is not None
        return self._run.settle()

"""A run of an `Agent` while it goes on: its events, its text, its output as it grows, its steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agent_core import AsyncEventStream, EventStream
from agent_runtime.habits import missing
from agent_runtime.outputs import OutputType, Refused, read_partial_json
from agent_runtime.results import RunResult, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from typing import Self

    from agent_core.events import RunEvent
    from agent_core.steps import Flow

OutputT = TypeVar("OutputT")


class RunStream(EventStream[RunResult[OutputT]]):
    """The events of a run, as an iterator; `result` is what it came to, once it is over.

    Read it in one way: as events, as `text()`, or as `outputs()`. Events tell of a failure; the other two end
    with what `Agent.run` would have raised.
    """

    def __init__(
        self,
        flow: Flow[RunResult[OutputT]],
        output: OutputType,
        settled: Callable[[RunResult[OutputT]], RunResult[OutputT]],
    ) -> None:
        super().__init__(flow)
        self._output = output
        self._settled = settled

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[RunEvent]: ...
        def __next__(self) -> RunEvent: ...
    else:

        def __getattr__(self, name: str) -> object:
            raise missing("RunStream", name)

    def __repr__(self) -> str:
        return _shown(self, self.result)

    def text(self) -> Iterator[str]:
        """Yield the model's words as they come."""
        for event in self:
            if event["type"] == "text":
                yield event["text"]
        self.settle()

    def settle(self) -> RunResult[OutputT]:
        """Return the result of the run, which is over, or raise what `Agent.run` would have raised."""
        assert self.result is not None
        return self._settled(self.result)

    def outputs(self) -> Iterator[OutputT]:
        """Yield the output as it grows, whenever what is there of it fits its type; the last one is whole.

        Raises:
            OutputNotProduced: In place of the last one, if the run has no output.
        """
        growing = _Growing(self._output)
        for event in self:
            yield from growing.add(event)
        yield self.settle().output


class AsyncRunStream(AsyncEventStream[RunResult[OutputT]]):
    """The events of a run, as an async iterator; see `RunStream`."""

    def __init__(
        self,
        flow: Flow[RunResult[OutputT]],
        output: OutputType,
        settled: Callable[[RunResult[OutputT]], RunResult[OutputT]],
    ) -> None:
        super().__init__(flow)
        self._output = output
        self._settled = settled

    if TYPE_CHECKING:

        def __aiter__(self) -> AsyncIterator[RunEvent]: ...
        async def __anext__(self) -> RunEvent: ...
    else:

        def __getattr__(self, name: str) -> object:
            raise missing("AsyncRunStream", name)

    def __repr__(self) -> str:
        return _shown(self, self.result)

    async def text(self) -> AsyncIterator[str]:
        """Yield the model's words as they come."""
        async for event in self:
            if event["type"] == "text":
                yield event["text"]
        self.settle()

    def settle(self) -> RunResult[OutputT]:
        """Return the result of the run, which is over, or raise what `Agent.run` would have raised."""
        assert self.result is not None
        return self._settled(self.result)

    async def outputs(self) -> AsyncIterator[OutputT]:
        """Yield the output as it grows; see `RunStream.outputs`."""
        growing = _Growing(self._output)
        async for event in self:
            for value in growing.add(event):
                yield value
        yield self.settle().output


class _Growing:
    """What is there of an output, from the events of the answer that is being written."""

    def __init__(self, output: OutputType) -> None:
        self._output = output
        self._written: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._said = ""
        self._last: object = None

    def add(self, event: RunEvent) -> Iterator[Any]:
        if event["type"] == "step_start":
            self._written, self._names, self._said = {}, {}, ""
        elif event["type"] == "text":
            self._said += event["text"]
            yield from self._of_text()
        elif event["type"] == "tool_call_args":
            yield from self._of_call(event["index"], event["name"], event["arguments"])

    def _of_text(self) -> Iterator[Any]:
        if self._output.takes_text:
            yield self._said
        elif (begin := self._said.find("{")) >= 0:
            given = read_partial_json(self._said[begin:])
            try:
                form, inner = self._output.load(given, begun=True)
                yield from self._new(form.load(inner, begun=True) if form.function is None else None)
            except Refused:
                return

    def _of_call(self, index: int, name: str | None, piece: str) -> Iterator[Any]:
        self._names[index] = self._names.get(index) or name or ""
        self._written[index] = self._written.get(index, "") + piece
        form = self._output.form(self._names[index])
        if form is None or form.function is not None:
            return
        try:
            yield from self._new(form.load(read_partial_json(self._written[index]), begun=True))
        except Refused:
            return

    def _new(self, value: object) -> Iterator[Any]:
        if value is not None and value != self._last:
            self._last = value
            yield value


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """One step of a run: what the model said, what it called, what came back.

    Attributes:
        round: Which step, counted from 1.
        agent: The agent whose step it was.
        text: What the model said.
        calls: The calls that ran: name and arguments.
        messages: The messages that the step added, as dicts.
        usage: What the run has used so far.
    """

    round: int
    agent: str
    text: str
    calls: tuple[tuple[str, Any], ...] = ()
    messages: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    usage: Usage = field(default_factory=Usage)


class _Steps:
    """Puts the events of a run together into steps."""

    def __init__(self) -> None:
        self._agent = ""
        self._rounds = 0
        self._text: list[str] = []
        self._calls: list[tuple[str, Any]] = []
        self._usage = Usage()

    def add(self, event: RunEvent) -> RunStep | None:
        if event["type"] == "run_start":
            self._agent = event["agent_id"]
        elif event["type"] == "handoff":
            self._agent = event["to_agent"]
        elif event["type"] == "text":
            self._text.append(event["text"])
        elif event["type"] == "tool_call_start":
            self._calls.append((event["name"], event["arguments"]))
        elif event["type"] == "usage":
            self._usage = Usage.from_dict(event["total"])
        elif event["type"] == "step_end":
            return self._step(tuple(event["messages"]))
        return None

    def _step(self, messages: tuple[Mapping[str, Any], ...]) -> RunStep:
        self._rounds += 1
        text, calls = "".join(self._text), tuple(self._calls)
        self._text, self._calls = [], []
        return RunStep(
            round=self._rounds,
            agent=self._agent,
            text=text,
            calls=calls,
            messages=messages,
            usage=self._usage,
        )


class RunSteps(Generic[OutputT]):
    """A run step by step, as an iterator: nothing more is asked or called before the next step is wanted.

    It ends with what `Agent.run` would have raised. Leaving early keeps what was done: after `close()`, or
    after a ``with`` block, `result` has it.
    """

    def __init__(self, stream: RunStream[OutputT]) -> None:
        self.stream = stream
        self._steps = _Steps()

    @property
    def result(self) -> RunResult[OutputT] | None:
        """What the run came to, once it is over."""
        return self.stream.result

    def __repr__(self) -> str:
        return _shown(self, self.result)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RunStep:
        for event in self.stream:
            if (step := self._steps.add(event)) is not None:
                return step
        self.stream.settle()
        raise StopIteration

    def close(self) -> None:
        """End the run now and keep what was done."""
        self.stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class AsyncRunSteps(Generic[OutputT]):
    """A run step by step, on the running event loop; see `RunSteps`."""

    def __init__(self, stream: AsyncRunStream[OutputT]) -> None:
        self.stream = stream
        self._steps = _Steps()

    @property
    def result(self) -> RunResult[OutputT] | None:
        """What the run came to, once it is over."""
        return self.stream.result

    def __repr__(self) -> str:
        return _shown(self, self.result)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RunStep:
        async for event in self.stream:
            if (step := self._steps.add(event)) is not None:
                return step
        self.stream.settle()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the run now and keep what was done."""
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def _shown(run: object, result: RunResult[Any] | None) -> str:
    return f"<{type(run).__name__}: {'not over yet' if result is None else repr(result)}>"

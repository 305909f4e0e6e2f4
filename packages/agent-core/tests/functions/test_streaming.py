"""Generator functions: tools that speak while they work."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Any

import pytest

from agent_core.errors import ToolError
from agent_core.functions import tool


def text(content: str) -> dict[str, Any]:
    return {"part": {"type": "text", "content": content}}


def result(value: Any) -> dict[str, Any]:
    return {"success": True, "result": value}


def events(function: Callable[..., Any], **arguments: Any) -> list[dict[str, Any]]:
    """Stream a tool to its end, whether it is async or not."""
    stream = tool(function).stream_tool("t", arguments, {})
    return list(stream) if isinstance(stream, Iterator) else asyncio.run(_collect(stream))


async def _collect(stream: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event async for event in stream]


def execute(function: Callable[..., Any], **arguments: Any) -> Any:
    async def wait(answer: Any) -> Any:
        return await answer

    answer = tool(function).execute_tool("t", arguments, {})
    return answer if isinstance(answer, dict) else asyncio.run(wait(answer))


def count(to: int) -> Iterator[str]:
    for number in range(to):
        yield str(number)


async def count_async(to: int) -> AsyncIterator[str]:
    for number in range(to):
        await asyncio.sleep(0)
        yield str(number)


both = pytest.mark.parametrize("function", [count, count_async])


@both
def test_parts_come_one_by_one_and_their_text_is_the_result(function: Callable[..., Any]) -> None:
    assert events(function, to=3) == [text("0"), text("1"), text("2"), result("012")]
    assert execute(function, to=3) == result("012")


@both
def test_a_stream_without_parts_has_an_empty_result(function: Callable[..., Any]) -> None:
    assert events(function, to=0) == [result("")]


@both
def test_a_generator_says_that_it_streams(function: Callable[..., Any]) -> None:
    assert tool(function).streams is True
    assert tool(partial(function, 2)).streams is True


def test_what_a_generator_returns_is_its_result() -> None:
    def work() -> Generator[str, None, dict[str, int]]:
        yield "working"
        return {"found": 2}

    assert events(work) == [text("working"), result({"found": 2})]
    assert execute(work) == result({"found": 2})


MIXED = [
    "a",
    {"part": {"type": "progress", "value": 1}},
    {"part": {"type": "text", "content": "b"}},
    {"rows": ["ü"]},
    3,
]


def mixed() -> Iterator[Any]:
    yield from MIXED


async def mixed_async() -> AsyncIterator[Any]:
    for item in MIXED:
        yield item


@pytest.mark.parametrize("function", [mixed, mixed_async])
def test_parts_pass_as_they_are_and_everything_else_becomes_text(function: Callable[..., Any]) -> None:
    assert events(function) == [
        text("a"),
        {"part": {"type": "progress", "value": 1}},
        text("b"),
        text('{"rows": ["ü"]}'),
        text("3"),
        result('ab{"rows": ["ü"]}3'),
    ]


def refuse() -> Iterator[Any]:
    yield "trying"
    yield {"success": False, "error": "closed", "tried": {"a"}}


async def refuse_async() -> AsyncIterator[Any]:
    for item in refuse():
        yield item


@pytest.mark.parametrize("function", [refuse, refuse_async])
def test_a_yielded_result_stands(function: Callable[..., Any]) -> None:
    assert events(function) == [text("trying"), {"success": False, "error": "closed", "tried": ["a"]}]
    assert execute(function) == {"success": False, "error": "closed", "tried": ["a"]}


def test_nothing_runs_before_the_stream_is_read() -> None:
    started = []

    def work() -> Iterator[str]:
        started.append(True)
        yield "x"

    stream = tool(work).stream_tool("work", {}, {})

    assert started == []
    assert isinstance(stream, Iterator)
    next(stream)
    assert started == [True]


def test_arguments_are_checked_before_the_stream_is_read() -> None:
    with pytest.raises(ToolError, match="argument to"):
        tool(count).stream_tool("count", {"to": "many"}, {})


def test_closing_a_stream_closes_the_generator() -> None:
    closed = []

    def work() -> Iterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            closed.append(True)

    stream = tool(work).stream_tool("work", {}, {})
    assert isinstance(stream, Generator)
    next(stream)
    stream.close()

    assert closed == [True]


def test_closing_an_async_stream_closes_the_generator() -> None:
    closed = []

    async def work() -> AsyncIterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            closed.append(True)

    async def run() -> None:
        stream: Any = tool(work).stream_tool("work", {}, {})
        await anext(stream)
        await stream.aclose()

    asyncio.run(run())
    assert closed == [True]


def test_what_a_generator_raises_is_not_caught() -> None:
    def work() -> Iterator[str]:
        yield "a"
        raise LookupError("gone")

    stream = tool(work).stream_tool("work", {}, {})
    assert isinstance(stream, Iterator)

    assert next(stream) == text("a")
    with pytest.raises(LookupError, match="gone"):
        next(stream)


def test_a_stream_is_lent_what_a_call_is_lent() -> None:
    @tool
    def work(context: dict[str, Any], cancellation: Any, tool_call: Any) -> Iterator[str]:
        yield f"{context['user']} {cancellation} {tool_call['id']}"

    stream = work.stream_tool("work", {}, {}, context={"user": "ada"}, cancellation="c", tool_call={"id": 1})

    assert isinstance(stream, Iterator)
    assert next(stream) == text("ada c 1")


def add(a: int) -> int:
    return a + 1


async def add_async(a: int) -> int:
    return a + 1


@pytest.mark.parametrize("function", [add, add_async])
def test_a_function_that_does_not_stream_gives_its_result_alone(function: Callable[..., Any]) -> None:
    assert tool(function).streams is False
    assert events(function, a=1) == [result(2)]


def test_a_wrapper_that_gives_a_generator_is_run_to_its_end() -> None:
    @tool
    def wrapped() -> Iterator[str]:
        return count(2)

    assert wrapped.streams is False
    assert wrapped.execute_tool("wrapped", {}) == result("01")

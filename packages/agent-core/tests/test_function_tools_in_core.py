"""Plain functions as tools of a core: registered, shown to the model, called, and what may go wrong."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any

import pytest

from agent_core import AgentCore, Cancellation, DuplicatePluginError, RegistrationError, tool

Dicts = list[dict[str, Any]]
Drive = Callable[..., Dicts]


def _iterate(core: AgentCore, calls: Dicts, config: dict[str, Any], **options: Any) -> Dicts:
    return list(core.iter_tool_messages(calls, config, **options))


def _iterate_async(core: AgentCore, calls: Dicts, config: dict[str, Any], **options: Any) -> Dicts:
    async def collect() -> Dicts:
        return [event async for event in core.iter_tool_messages_async(calls, config, **options)]

    return asyncio.run(collect())


@pytest.fixture(params=[_iterate, _iterate_async], ids=lambda driver: driver.__name__[1:])
def run(request: pytest.FixtureRequest) -> Drive:
    """Run calls, waiting and on an event loop, and return parts and messages."""
    driver: Drive = request.param
    return driver


def call(name: str, call_id: str = "1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def core_with(*functions: Any) -> AgentCore:
    core = AgentCore()
    for function in functions:
        core.register_tool(function)
    return core


def shout(text: str, times: int = 1) -> str:
    """Say it loud.

    Args:
        text: What to say.
        times: How often.
    """
    return " ".join([text.upper() + "!"] * times)


def test_a_function_is_registered_as_it_is() -> None:
    core = core_with(shout)

    [descriptor] = core.get_available_tools({})

    assert (descriptor.name, descriptor.plugin, descriptor.description) == ("shout", "shout", "Say it loud.")
    assert core.get_tool_schemas({}) == [
        {
            "type": "function",
            "function": {
                "name": "shout",
                "description": "Say it loud.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "What to say."},
                        "times": {"type": "integer", "description": "How often.", "default": 1},
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
            },
        }
    ]


@pytest.mark.parametrize("function", [shout, tool(shout), tool(shout, description="Loud.")])
def test_a_function_and_a_tool_of_it_answer_alike(run: Drive, function: Any) -> None:
    [message] = run(core_with(function), [call("shout", text="hey", times=2)], {})

    assert message["content"] == "HEY! HEY!"
    assert message["metadata"]["tool_plugin"] == "shout"
    assert message["tool_result"] == {"type": "tool_result", "text": "HEY! HEY!"}


async def wait_and_shout(text: str) -> str:
    await asyncio.sleep(0)
    return shout(text)


def count(to: int) -> Generator[str, None, int]:
    for number in range(to):
        yield f"{number} "
    return to


async def count_async(to: int) -> AsyncIterator[str]:
    for number in range(to):
        yield f"{number} "


class Greeter:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def greet(self, greeting: str) -> str:
        """Greet somebody."""
        return f"{greeting}, {self.name}"

    def part(self, farewell: str) -> str:
        return f"{farewell}, {self.name}"

    def __call__(self, times: int) -> str:
        return self.name * times


@pytest.mark.parametrize(
    ("function", "made", "content"),
    [
        (wait_and_shout, call("wait_and_shout", text="hey"), "HEY!"),
        (count, call("count", to=3), "3"),
        (count_async, call("count_async", to=3), "0 1 2 "),
        (Greeter("Ada").greet, call("greet", greeting="Hello"), "Hello, Ada"),
        (Greeter("Ada").part, call("part", farewell="Goodbye"), "Goodbye, Ada"),
        (Greeter("Ada"), call("greeter", times=2), "AdaAda"),
        (functools.partial(shout, times=3), call("shout", text="hey"), "HEY! HEY! HEY!"),
        (tool(shout, name="yell"), call("yell", text="hey"), "HEY!"),
    ],
    ids=["async", "generator", "async generator", "tool method", "method", "object", "partial", "renamed"],
)
def test_everything_that_can_be_called_can_be_a_tool(
    run: Drive, function: Any, made: dict[str, Any], content: str
) -> None:
    *_, message = run(core_with(function), [made], {})

    assert message["content"] == content
    assert "error" not in message["metadata"]


@pytest.mark.parametrize("function", [count, count_async])
def test_what_a_generator_says_on_the_way_is_shown(run: Drive, function: Any) -> None:
    *parts, _message = run(core_with(function), [call(function.__name__, to=2)], {})

    assert parts == [
        {"part": {"type": "text", "content": "0 "}},
        {"part": {"type": "text", "content": "1 "}},
    ]


class Meal(Enum):
    LUNCH = "lunch"
    DINNER = "dinner"


@dataclass
class Guest:
    name: str
    vegan: bool = False


def book(day: date, meal: Meal, guests: list[Guest], tables: set[int]) -> dict[str, Any]:
    return {"when": day, "meal": meal, "guests": guests, "tables": tables}


def test_arguments_arrive_as_annotated_and_results_leave_as_json(run: Drive) -> None:
    made = call("book", day="2030-05-01", meal="lunch", guests=[{"name": "Ada"}], tables=[3, 1, 3])

    [message] = run(core_with(book), [made], {})

    assert "error" in message["metadata"]  # a set has each item once, and its schema says so
    made["input"]["tables"] = [3, 1]
    [message] = run(core_with(book), [made], {})
    assert message["content"] == (
        '{\n  "guests": [\n    {\n      "name": "Ada",\n      "vegan": false\n    }\n  ],\n'
        '  "meal": "lunch",\n  "tables": [\n    1,\n    3\n  ],\n  "when": "2030-05-01"\n}'
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, '"text" is a required property'),
        ({"text": 5}, 'text: 5 is not of type "string"'),
        ({"text": "hey", "times": "2"}, 'times: "2" is not of type "integer"'),
        ({"text": "hey", "volume": 11}, "'volume' was unexpected"),
    ],
)
def test_arguments_that_do_not_fit_never_reach_the_function(
    run: Drive, arguments: dict[str, Any], complaint: str
) -> None:
    [message] = run(core_with(shout), [call("shout", **arguments)], {})

    assert message["metadata"]["error"] == {"type": "invalid_arguments"}
    assert complaint in message["content"]


def test_what_a_schema_cannot_express_fails_in_the_conversion(run: Drive) -> None:
    [message] = run(core_with(book), [call("book", day="2030-02-31", meal="lunch", guests=[], tables=[])], {})

    assert message["metadata"]["error"] == {"type": "exception"}
    assert message["content"].startswith("Error: Tool 'book': argument day: ")


async def fail_async() -> None:
    raise LookupError("not here")


def fail() -> None:
    raise LookupError("not here")


def fail_midway() -> Iterator[str]:
    yield "so far so good"
    raise LookupError("not here")


@pytest.mark.parametrize("function", [fail, fail_async, fail_midway])
def test_what_a_function_raises_is_what_the_model_reads(run: Drive, function: Any) -> None:
    *_, message, fine = run(
        core_with(function, shout), [call(function.__name__), call("shout", text="hey")], {}
    )

    assert message["content"] == "Error: LookupError: not here"
    assert message["metadata"]["error"] == {"type": "exception"}
    assert fine["content"] == "HEY!"


def test_a_function_asks_for_what_the_platform_knows(run: Drive) -> None:
    received: Dicts = []

    def inspect_me(word: str, context: dict[str, Any], cancellation: Any, tool_call: dict[str, Any]) -> None:
        received.append({"context": context, "cancellation": cancellation, "tool_call": tool_call})

    core = core_with(inspect_me)

    run(core, [call("inspect_me", word="heron")], {"depth": 3}, context={"user": "Ada"})

    assert received[0]["context"] == {
        "core": core,
        "config": {"depth": 3},
        "trigger_source": "core",
        "user": "Ada",
    }
    assert received[0]["cancellation"].cancelled is False
    assert received[0]["tool_call"] == call("inspect_me", word="heron")


def test_no_model_can_set_what_the_platform_lends(run: Drive) -> None:
    def who(context: dict[str, Any]) -> str:
        return str(context.get("user"))

    [message] = run(core_with(who), [call("who", context={"user": "Eve"})], {}, context={"user": "Ada"})

    assert message["metadata"]["error"] == {"type": "invalid_arguments"}


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Functions hang on this; it is set when the test is over, so that their threads can end."""
    event = threading.Event()
    yield event
    event.set()


def test_a_functions_own_limit_counts(run: Drive, release: threading.Event) -> None:
    @tool(timeout=0.02)
    def hang() -> None:
        release.wait()

    @tool(timeout=0.02)
    async def hang_async() -> None:
        await asyncio.Event().wait()

    messages = run(core_with(hang, hang_async), [call("hang"), call("hang_async")], {})

    assert [message["metadata"]["error"] for message in messages] == [{"type": "timeout"}] * 2


def test_a_function_learns_that_it_was_cancelled(run: Drive) -> None:
    token, noticed = Cancellation(), threading.Event()

    def wait(cancellation: Any) -> str:
        token.cancel()
        if cancellation.cancelled:
            noticed.set()
        return "too late"

    [message] = run(core_with(wait), [call("wait")], {}, cancellation=token)

    assert message["metadata"]["error"] == {"type": "cancelled"}
    assert noticed.wait(timeout=60)


def test_lists_and_previews_know_functions_by_name() -> None:
    core = core_with(shout, count)

    assert [t["function"]["name"] for t in core.get_tool_schemas({"allowed_tools": ["sh*"]})] == ["shout"]
    assert core.format_tool_call_preview(call("shout", text="hey"), {}) == {
        "id": "1",
        "preview": "shout(text='hey')",
    }


def test_functions_are_switched_off_like_other_plugins() -> None:
    core = core_with(shout, count)

    assert [t.name for t in core.get_available_tools({"disabled_plugins": ["shout"]})] == ["count"]


def test_two_functions_of_one_name_are_refused() -> None:
    core = core_with(shout)

    with pytest.raises(DuplicatePluginError, match="'shout'"):
        core.register_tool(tool(count, name="shout"))
    assert [descriptor.name for descriptor in core.get_available_tools({})] == ["shout"]


@pytest.mark.parametrize("junk", [None, 5, "shout", ["shout"], lambda: None])
def test_what_is_no_function_with_a_name_is_refused(junk: Any) -> None:
    with pytest.raises(RegistrationError):
        AgentCore().register_tool(junk)


def test_an_annotation_without_a_schema_is_an_error_when_the_schema_is_read() -> None:
    def odd(thing: threading.Event) -> None: ...

    core = core_with(odd)

    with pytest.raises(RegistrationError, match="parameter 'thing'") as caught:
        core.get_tool_schemas({})
    assert caught.value.plugin == "odd"


# Functions that return at once.


def test_an_instant_function_runs_in_the_thread_of_the_loop_and_any_other_in_one_of_its_own() -> None:
    threads: dict[str, int] = {}

    @tool(blocking=False)
    def quick(x: int) -> int:
        threads["quick"] = threading.get_ident()
        return x + 1

    @tool
    def slow(x: int) -> int:
        threads["slow"] = threading.get_ident()
        return x + 1

    core = core_with(quick, slow)
    found = _iterate_async(core, [call("quick", "1", x=1), call("slow", "2", x=2)], {})

    assert [message["content"] for message in found] == ["2", "3"]
    assert threads["quick"] == threading.get_ident()
    assert threads["slow"] != threading.get_ident()


def test_what_an_instant_function_raises_is_its_result(run: Drive) -> None:
    @tool(blocking=False)
    def broken() -> str:
        raise ValueError("no such thing")

    [message] = run(core_with(broken), [call("broken")], {})

    assert message["metadata"]["error"] == {"type": "exception"}
    assert "no such thing" in message["content"]


def test_an_instant_generator_shows_its_parts(run: Drive) -> None:
    @tool(blocking=False)
    def count() -> Generator[int, None, str]:
        yield 1
        yield 2
        return "done"

    *parts, message = run(core_with(count), [call("count")], {})

    assert [part["part"]["content"] for part in parts] == ["1", "2"]
    assert message["content"] == "done"


def test_context_variables_that_an_instant_function_sets_stay_with_it() -> None:
    mood: ContextVar[str] = ContextVar("mood", default="calm")

    @tool(blocking=False)
    def excite() -> str:
        mood.set("excited")
        return mood.get()

    async def collect() -> tuple[Dicts, str]:
        stream = core_with(excite).iter_tool_messages_async([call("excite")], {})
        return [event async for event in stream], mood.get()

    [message], after = asyncio.run(collect())

    assert (message["content"], after) == ("excited", "calm")


def test_what_could_not_be_instant_is_refused() -> None:
    async def waits() -> None: ...

    with pytest.raises(RegistrationError, match="blocking=False is for functions that are not async"):
        tool(waits, blocking=False)
    with pytest.raises(RegistrationError, match="no call can be timed out"):
        tool(shout, blocking=False, timeout=3.0)

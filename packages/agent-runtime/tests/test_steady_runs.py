"""Thousands of turns leave nothing behind: memory, descriptors, threads and tasks stay as they were."""

from __future__ import annotations

import gc
import itertools
import weakref
from functools import cache
from typing import Any

import pytest

from agent_core import FunctionTool, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent
from agent_runtime.testing import assert_steady


def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: no entry"


@cache
def note_tool(title: str) -> Any:
    def note(text: str) -> str:
        """Write something into the journal."""
        return f"{title}: {text}"

    return note


class Journal:
    """As the page about runtime plugins has it: one object for each title."""

    name = "journal"
    version = "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("note", note_tool("Weather"))


class Dictionary:
    """As the page about sessions has it: a tool is made of the function in each `register`."""

    name = "dictionary"
    version = "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("look_up", tool(look_up))


class Methods:
    """Its methods are its tools."""

    name = "methods"
    version = "1"

    @tool
    def count(self, text: str) -> int:
        """Count letters."""
        return len(text)

    def upper(self, text: str) -> str:
        """Return capital letters."""
        return text.upper()

    def register(self, registrar: Any) -> None:
        registrar.tool("count", self.count)
        registrar.tool("upper", self.upper)


class Closures:
    """Makes another function each time, which nobody can know to be the same."""

    name = "closures"
    version = "1"

    def __init__(self) -> None:
        self.made: list[weakref.ref[Any]] = []

    def register(self, registrar: Any) -> None:
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        self.made.append(weakref.ref(add))
        registrar.tool("add", add)


STEADY = {"journal": Journal, "dictionary": Dictionary, "methods": Methods}


def answer(native_messages: list[dict[str, Any]]) -> Reply | str:
    if native_messages[-1]["role"] == "tool":
        return "Done."
    if native_messages[-1]["content"] != "Use a tool.":
        return "Good morning."
    return Reply(tool_calls=[ToolCall("look_up", {"word": "tea"}), ToolCall("count", {"text": "tea"})])


def open_agent(plugins: dict[str, Any]) -> Agent:
    model = ScriptedProvider(itertools.repeat(answer), record=False)
    return Agent(model, plugins=plugins, sections={"results": {}})


@pytest.mark.parametrize("turns", [300, pytest.param(3_000, marks=pytest.mark.slow)])
def test_many_turns_use_no_more_than_the_first_ones(turns: int) -> None:
    agent = open_agent(STEADY)

    async def talk(turn: int) -> None:
        await agent.run_async("Use a tool." if turn % 10 == 0 else "Good morning!")

    assert_steady(talk, warm_up=100, turns=turns, blocks=500 + turns // 2)


@pytest.mark.slow
def test_turns_that_leave_something_behind_are_noticed() -> None:
    kept: list[object] = []

    async def leak(_turn: int) -> None:
        kept.append([object()])

    with pytest.raises(AssertionError, match="left something behind"):
        assert_steady(leak, warm_up=10, turns=1000, blocks=1000)


def test_an_agent_whose_plugins_place_equal_tools_is_equipped_once() -> None:
    agent = open_agent(STEADY)
    first, second = (agent.runtime.resolve("agent") for _ in range(2))

    assert first.core is second.core
    assert first.descriptors is second.descriptors
    assert sorted(first.tools) == ["count", "look_up", "note", "read_result", "upper"]


def test_a_function_that_is_placed_no_more_is_let_go() -> None:
    closures = Closures()
    agent = open_agent({"closures": closures})

    for _ in range(20):
        agent.run("Good morning!")
    gc.collect()

    assert len(closures.made) > 20
    assert len([function for function in closures.made if function() is not None]) == 1


def test_an_agent_whose_plugin_places_another_function_gets_that_one() -> None:
    agent = open_agent({"closures": Closures})
    first, second = (agent.runtime.resolve("agent") for _ in range(2))

    assert first.core is not second.core
    assert first.tools["add"] != second.tools["add"]
    assert isinstance(first.tools["add"], FunctionTool)

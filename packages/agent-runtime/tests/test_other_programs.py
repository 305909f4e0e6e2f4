"""Results and events in other people's programs: files and notebooks; `test_web_routes.py` has the routes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from IPython.core.interactiveshell import InteractiveShell
from pydantic import BaseModel

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adder(**more: Any) -> Agent[Any, Any]:
    model = ScriptedProvider([Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "It is 3."])
    return Agent(model, tools=[add], **more)


def test_every_event_is_json_text_that_reads_back() -> None:
    for event in adder().stream("How much is 1 and 2?"):
        read = json.loads(to_json(event))
        assert read["type"] == event["type"]
        assert set(read) == set(event)


@dataclass
class Point:
    x: int


class Pair(NamedTuple):
    left: int


class Model(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1), {"x": 1}),
        (Pair(2), {"left": 2}),
        (Model(name="tea"), {"name": "tea"}),
        ({"kinds": {"green"}}, {"kinds": ["green"]}),
        ({"price": Decimal("1.50"), "file": Path("/tea")}, {"price": "1.50", "file": "/tea"}),
        (ValueError("no"), {"type": "ValueError", "message": "no"}),
    ],
)
def test_outputs_of_every_kind_are_json(value: object, expected: object) -> None:
    assert json.loads(to_json(value)) == expected


def test_what_has_no_json_is_named() -> None:
    with pytest.raises(TypeError, match="object"):
        to_json({"it": object()})
    with pytest.raises(TypeError, match="object cannot be written"):
        to_json([Point(object())])  # type: ignore[arg-type]


def test_a_result_without_an_output_is_json_too() -> None:
    waiting = adder(sections={"permissions": {"default": "allow", "ask": ["add"]}}).run("Go.")

    read = waiting.to_dict()

    assert "output" not in read
    assert (read["reason"]["code"], len(read["suspended"])) == ("suspended", 1)


def test_a_notebook_shows_a_result_and_nothing_of_it_is_html() -> None:
    shown = Agent(ScriptedProvider(["<b>bold</b>"])).run("Hello")._repr_html_()

    assert "&lt;b&gt;bold&lt;/b&gt;" in shown
    assert "natural_end" in shown and "tokens" in shown


@pytest.fixture
def shell() -> Iterator[Any]:
    shell: Any = InteractiveShell.instance()
    shell.extension_manager.load_extension("agent_runtime.notebook")
    yield shell
    InteractiveShell.clear_instance()


def test_a_cell_is_said_to_an_agent_and_cells_are_one_conversation(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns["helper"] = Agent(ScriptedProvider(["Hello, Ada.", "Ada.", "Who?"]))

    first = shell.run_cell_magic("agent", "helper", "I am Ada.\n")
    second = shell.run_cell_magic("agent", "", "Who am I?\n")
    shell.run_line_magic("agent_new", "")
    third = shell.run_cell_magic("agent", "helper", "Who am I?\n")

    assert capsys.readouterr().out == "Hello, Ada.\nAda.\nWho?\n"
    assert first.text == "Hello, Ada."
    assert [len(one.session.messages) for one in (first, second, third)] == [2, 4, 2]


def test_an_agent_that_was_defined_again_answers_from_then_on(shell: Any) -> None:
    shell.user_ns["helper"] = Agent(ScriptedProvider(["Old."]))
    shell.run_cell_magic("agent", "helper", "Who are you?\n")

    shell.user_ns["helper"] = Agent(ScriptedProvider(["New.", "Still new."]))
    named = shell.run_cell_magic("agent", "helper", "And now?\n")
    unnamed = shell.run_cell_magic("agent", "", "And now?\n")

    assert (named.text, unnamed.text) == ("New.", "Still new.")
    assert [len(one.session.messages) for one in (named, unnamed)] == [2, 4]


def test_a_cell_shows_the_calls_of_tools(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.user_ns["helper"] = adder()

    shell.run_cell_magic("agent", "helper", "How much is 1 and 2?\n")

    assert capsys.readouterr().out == "[add(a=1, b=2)]\nIt is 3.\n"


def shown_by(shell: Any, cell: str) -> tuple[str, list[dict[str, str]]]:
    """Run a cell as a notebook does; return what it prints and what is displayed below."""
    done = shell.run_cell(f"%%capture shown\n{cell}", store_history=True)
    done.raise_error()
    return shell.user_ns["shown"].stdout, [one.data for one in shell.user_ns["shown"].outputs]


def test_a_cell_shows_the_answer_once(shell: Any) -> None:
    shell.user_ns["helper"] = Agent(ScriptedProvider(["Hello, Ada."]))

    printed, [below] = shown_by(shell, "%%agent helper\nI am Ada.")

    assert printed == "Hello, Ada.\n"
    assert "Ada" not in below["text/html"] + below["text/plain"]
    assert "tokens" in below["text/html"] and "tokens=" in below["text/plain"]


def test_a_later_cell_shows_the_result_whole(shell: Any) -> None:
    shell.user_ns["helper"] = Agent(ScriptedProvider(["Hello, Ada."]))
    shell.run_cell("%%agent helper\nI am Ada.", store_history=True)

    printed, [below] = shown_by(shell, "_")

    assert printed == ""
    assert "Hello, Ada." in below["text/html"]
    assert below["text/plain"] == repr(shell.user_ns["_"])


def test_a_cell_shows_an_output_that_was_not_printed(shell: Any) -> None:
    point = Reply(tool_calls=[ToolCall("final_result", {"x": 1})])
    shell.user_ns["helper"] = Agent(ScriptedProvider([point]), output_type=Point)

    _, [below] = shown_by(shell, "%%agent helper\nWhere?")

    assert "Point(x=1)" in below["text/html"] and "Point(x=1)" in below["text/plain"]

"""Inputs of an action, asked one by one or given in a line."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core import ActionInputError
from agent_core.actions import Action, check_inputs
from agent_terminal_app.chat.commands.offers import Field, Unreadable, fill_in, missing, read_inline


def action(**inputs: dict[str, Any]) -> Action:
    return Action.from_dict({"id": "act", "inputs": inputs}, plugin="plugin", owner="feature")


def field(**spec: Any) -> Field:
    return Field.of(action(it=spec).inputs["it"])


class Person:
    """Types the lines of a script; None leaves."""

    def __init__(self, *typed: str | None) -> None:
        self._typed = list(typed)
        self.asked: list[str] = []
        self.told: list[str] = []

    async def ask(self, question: str) -> str | None:
        self.asked.append(question)
        return self._typed.pop(0)

    def fill(self, *fields: Field) -> dict[str, Any] | None:
        return asyncio.run(fill_in(fields, self.ask, self.told.append))


@pytest.mark.parametrize(
    ("spec", "typed", "value"),
    [
        ({"type": "string"}, "  two words ", "  two words "),
        ({"type": "string"}, '""', ""),
        ({"type": "string"}, "7", "7"),
        ({"type": "integer"}, " 7 ", 7),
        ({"type": "integer"}, "-7", -7),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "number"}, "3", 3),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "off", False),
        ({"type": "array"}, '["a", 1]', ["a", 1]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "any"}, "7", 7),
        ({"type": "any"}, "seven", "seven"),
        ({"type": "any"}, "null", "null"),
        ({"type": "string", "enum": ["red", "blue"]}, "2", "blue"),
        ({"type": "string", "enum": ["red", "blue"]}, " red ", "red"),
        ({"type": "integer", "enum": [1, 5]}, "5", 5),
        ({"type": "boolean", "enum": [True]}, "yes", True),
        ({"type": "string"}, "", None),
        ({"type": "string", "default": "tea"}, "", "tea"),
        ({"type": "string", "required": True, "default": "tea"}, " ", "tea"),
    ],
)
def test_what_is_typed_becomes_a_value_of_the_type(spec: dict[str, Any], typed: str, value: Any) -> None:
    read = field(**spec).read(typed)

    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    ("spec", "typed", "problem"),
    [
        ({"type": "integer"}, "seven", "'seven' cannot be read: write a whole number, such as 3"),
        ({"type": "integer"}, "7.5", "it: expected integer, got number"),
        ({"type": "integer"}, '"7"', "cannot be read: write a whole number, such as 3"),
        ({"type": "integer"}, "true", "it: expected integer, got boolean"),
        ({"type": "number"}, "NaN", "'NaN' cannot be read: write a number, such as 3 or 0.5"),
        ({"type": "number"}, "1e999", "it: expected number, got inf"),
        ({"type": "boolean"}, "perhaps", "'perhaps' cannot be read: write yes or no"),
        ({"type": "array"}, "a, b", 'cannot be read: write a JSON list, such as ["a", "b"]'),
        ({"type": "object"}, "[1]", "it: expected object, got array"),
        ({"type": "string", "enum": ["red", "blue"]}, "3", "'3' is none of [1] red, [2] blue"),
        ({"type": "integer", "enum": [1, 5]}, "2", "'2' is none of one of 1, 5"),
        ({"type": "string", "required": True}, "", "it is needed: type something, or press Esc to leave"),
        ({"type": "array"}, "[" * 100_000, "cannot be read"),
    ],
)
def test_what_cannot_be_read_says_what_can(spec: dict[str, Any], typed: str, problem: str) -> None:
    with pytest.raises(Unreadable) as refused:
        field(**spec).read(typed)

    assert problem in str(refused.value)


def test_a_question_says_what_can_be_typed_and_what_nothing_means() -> None:
    assert field(type="string", required=True).question == "it (text; needed)"
    assert field(type="integer", default=3, label="How many", description="Of them.").question == (
        "How many (integer; Enter for 3): Of them."
    )
    assert field(enum=["red", "blue"]).question == "it ([1] red, [2] blue; Enter for none)"
    assert field(type="boolean", default=False).question == "it (yes or no; Enter for no)"


def test_a_form_asks_again_until_it_can_read_the_answer() -> None:
    person = Person("many", "", "3")

    values = person.fill(field(type="integer", required=True))

    assert values == {"it": 3}
    assert len(person.asked) == 3 and len(person.told) == 2


def test_a_form_that_is_left_gives_nothing() -> None:
    wanted = action(one={"type": "string"}, two={"type": "string"}).inputs.values()

    assert Person("first", None).fill(*map(Field.of, wanted)) is None


def test_defaults_of_the_action_are_left_to_the_action() -> None:
    wanted = action(one={"default": "tea"}, two={}).inputs

    assert Person("", "").fill(*map(Field.of, wanted.values())) == {}
    assert Person("").fill(Field.of(wanted["one"], default="coffee")) == {"one": "coffee"}


def test_labels_cannot_write_on_the_screen() -> None:
    question = field(label="\x1b[2Jname", description="a\nb\x07").question

    assert "\x1b" not in question and "\n" not in question and "\x07" not in question


def test_values_can_be_given_in_a_line() -> None:
    wanted = action(text={"type": "string"}, count={"type": "integer"}, sure={"type": "boolean"})

    assert read_inline(wanted, "text='two words' count=3 sure=yes") == {
        "text": "two words",
        "count": 3,
        "sure": True,
    }
    assert read_inline(wanted, "text=") == {"text": ""}
    assert read_inline(wanted, 'text="a=b"') == {"text": "a=b"}
    assert read_inline(wanted, "") == {}


def test_plain_words_are_for_the_texts_that_must_be_given() -> None:
    item = {"type": "string", "required": True}
    one = action(id=item, scope={"type": "string", "default": "all"})
    two = action(id=item, text=item)

    assert read_inline(one, "likes-tea") == {"id": "likes-tea"}
    assert read_inline(one, "  Ann's tea: a=b, 5 o'clock ") == {"id": "Ann's tea: a=b, 5 o'clock"}
    assert read_inline(two, "tea") == {"id": "tea"}
    assert read_inline(two, "tea Ann likes it.") == {"id": "tea", "text": "Ann likes it."}
    assert read_inline(one, "id=tea scope=none") == {"id": "tea", "scope": "none"}
    for line in ("name=tea", "tea scope=none"):
        with pytest.raises(ActionInputError, match="no such input"):
            read_inline(one, line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("colour=red", "no such input; write text=VALUE"),
        ("just words", "no such input; write text=VALUE"),
        ("text='open", "a quote is not closed"),
        ("count=many", "write a whole number"),
        ("count=", "write a whole number"),
    ],
)
def test_a_line_that_cannot_be_read_names_the_input(line: str, problem: str) -> None:
    wanted = action(text={"type": "string"}, count={"type": "integer"})

    with pytest.raises(ActionInputError) as refused:
        read_inline(wanted, line)

    assert problem in str(refused.value)


def test_an_action_that_takes_nothing_says_so() -> None:
    with pytest.raises(ActionInputError) as refused:
        read_inline(action(), "anything")

    assert "it takes nothing" in str(refused.value)


def test_only_what_must_be_given_is_missing() -> None:
    wanted = action(a={"required": True}, b={"required": True, "default": 1}, c={}, d={"required": True})

    assert [one.name for one in missing(wanted, {"d": 0})] == ["a"]


json_values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_whatever_json_can_say_can_be_typed(value: Any) -> None:
    kinds = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    typed = ("yes" if value else "no") if isinstance(value, bool) else json.dumps(value)

    assert field(type=kinds[type(value)]).read(typed) == value


@given(st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "any"]), st.text())
def test_whatever_is_typed_is_read_or_refused_and_what_is_read_the_action_takes(
    kind: str, typed: str
) -> None:
    wanted = action(it={"type": kind})
    try:
        value = Field.of(wanted.inputs["it"]).read(typed)
    except Unreadable:
        return

    check_inputs(wanted, {} if value is None else {"it": value})

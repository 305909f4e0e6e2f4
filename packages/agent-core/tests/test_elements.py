"""The vocabulary of front ends: elements, dialogs and effects, read so that none can do harm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.actions import TYPES
from agent_core.display import validate_effects, validate_element
from agent_core.display.elements import (
    DIALOG_KINDS,
    EFFECTS,
    ELEMENT_TYPES,
    INPUT_FIELDS,
    INPUT_TYPES,
    PLACES,
    RELOADS,
    WIDGETS,
)

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "front-ends.md").read_text(encoding="utf-8")
SUMMARIZE = {
    "ui_type": "session_action",
    "id": "summarize_range",
    "label": "Summarize range",
    "icon": "compress",
    "order": 45,
    "action_id": "summarize_range",
    "dialog": {
        "kind": "form",
        "title": "Summarize range",
        "inputs": [
            {"name": "start", "type": "integer", "label": "Start"},
            {"name": "end", "type": "integer", "label": "End"},
        ],
    },
}


def table(name: str) -> list[list[str]]:
    part = PAGE.split(f"<!-- table: {name} -->")[1].split("<!-- end -->")[0]
    return [line.strip("| ").split(" | ") for line in part.strip().splitlines()[2:]]


def names(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


def test_the_element_of_the_page_is_valid_as_printed() -> None:
    report = validate_element(SUMMARIZE)

    assert (report.element, report.warnings) == (SUMMARIZE, ())


def test_what_is_valid_once_stays_so() -> None:
    given = {
        **SUMMARIZE,
        "anything": {"of": "the plugin"},
        "dialog": {
            "kind": "confirm",
            "title": "Sure?",
            "body": "It cannot\nbe undone.",
            "confirm": "Do it?",
            "inputs": [
                {"name": "key", "widget": "password", "required": True, "default": "x", "options": ["x", 1]}
            ],
        },
    }
    report = validate_element(given)

    assert (report.element, report.warnings) == (given, ())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"label": 3}, "label"),
        ({"icon": "<svg>"}, "icon"),
        ({"order": "first"}, "order"),
        ({"order": True}, "order"),
        ({"order": float("nan")}, "order"),
        ({"description": ["x"]}, "description"),
        ({"dialog": "form"}, "dialog"),
    ],
)
def test_a_field_that_cannot_be_used_is_left_out_and_named(change: dict[str, Any], field: str) -> None:
    report = validate_element({**SUMMARIZE, **change})

    assert report.element == {key: value for key, value in SUMMARIZE.items() if key != field}
    assert [warning.partition(":")[0] for warning in report.warnings] == [field]


@pytest.mark.parametrize(
    ("dialog", "field"),
    [
        ({"kind": "wizard"}, "dialog.kind"),
        ({"title": ""}, "dialog.title"),
        ({"body": 1}, "dialog.body"),
        ({"confirm": ["yes"]}, "dialog.confirm"),
        ({"script": "alert(1)"}, "dialog.script"),
        ({"inputs": {"start": {}}}, "dialog.inputs"),
        ({"inputs": ["start"]}, "dialog.inputs[0]"),
        ({"inputs": [{"label": "Start"}]}, "dialog.inputs[0].name"),
        ({"inputs": [{"name": "a", "widget": "hologram"}]}, "dialog.inputs[0].widget"),
        ({"inputs": [{"name": "a", "type": "date"}]}, "dialog.inputs[0].type"),
        ({"inputs": [{"name": "a", "required": "yes"}]}, "dialog.inputs[0].required"),
        ({"inputs": [{"name": "a", "default": object()}]}, "dialog.inputs[0].default"),
        ({"inputs": [{"name": "a", "options": "b"}]}, "dialog.inputs[0].options"),
        ({"inputs": [{"name": "a", "onclick": "x"}]}, "dialog.inputs[0].onclick"),
    ],
)
def test_a_dialog_is_read_field_by_field(dialog: dict[str, Any], field: str) -> None:
    report = validate_element({**SUMMARIZE, "dialog": dialog})

    assert [warning.partition(": ")[0] for warning in report.warnings] == [field]
    assert report.element is not None and report.element["dialog"]["kind"] == "form"


def test_an_element_that_runs_an_action_names_it() -> None:
    for kind in ELEMENT_TYPES:
        report = validate_element({"ui_type": kind, "label": "x"})
        assert (report.element is None) == (kind != "config")


def test_an_element_of_another_type_is_passed_on() -> None:
    given = {"ui_type": "dashboard", "label": "Numbers", "cells": [1, 2]}

    assert validate_element(given).element == given


@pytest.mark.parametrize("wrong", [None, [], "x", {"ui_type": 3}])
def test_what_is_no_element_is_left_out(wrong: Any) -> None:
    report = validate_element(wrong)

    assert report.element is None and report.warnings


# Effects


@pytest.mark.parametrize(
    "effect",
    [
        {"type": "toast", "text": "Saved", "variant": "success"},
        {"type": "toast", "text": "Saved"},
        {"type": "open_session", "session_id": "a"},
        {"type": "reload"},
        {"type": "reload", "what": "sessions"},
        {"type": "navigate", "to": "settings"},
        {"type": "open_url", "url": "https://example.test"},
        {"type": "set_input", "text": "Dear\nreader"},
        {"type": "confetti", "colours": ["red"]},
    ],
)
def test_effects_are_passed_on_as_they_are(effect: dict[str, Any]) -> None:
    report = validate_effects([effect])

    assert (report.effects, report.warnings) == ([effect], ())


def test_other_names_of_effects_are_read_as_the_usual_ones() -> None:
    report = validate_effects([{"type": "switch_session", "session_id": "a"}, {"type": "refresh"}])

    assert report.effects == [{"type": "open_session", "session_id": "a"}, {"type": "reload"}]


@pytest.mark.parametrize(
    "effect",
    [
        {"type": "toast"},
        {"type": "toast", "text": ""},
        {"type": "open_session"},
        {"type": "open_session", "session_id": 3},
        {"type": "navigate", "to": "https://evil.test"},
        {"type": "open_url", "url": "javascript:alert(1)"},
        {"type": "set_input", "text": None},
        {"type": ""},
        {"type": "<b>"},
        {"text": "x"},
        "reload",
        {"type": "confetti", "thing": object()},
    ],
)
def test_an_effect_that_cannot_be_followed_is_left_out_and_named(effect: Any) -> None:
    report = validate_effects([effect, {"type": "reload"}])

    assert report.effects == [{"type": "reload"}]
    assert report.warnings and all(warning.startswith("ui_effects[0]") for warning in report.warnings)


@pytest.mark.parametrize("wrong", [None, "reload", {"type": "reload"}, 3])
def test_effects_must_be_a_list(wrong: Any) -> None:
    report = validate_effects(wrong)

    assert report.effects == [] and report.warnings


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["ui_type", "label", "icon", "order", "action_id", "dialog", "inputs", "kind", "title", "type", "text"]
)


@settings(max_examples=150)
@given(st.dictionaries(KEYS, JSON, max_size=6) | JSON)
def test_nothing_that_a_plugin_sends_raises_and_what_comes_out_is_stable(sent: Any) -> None:
    element = validate_element(sent).element
    if element is not None:
        assert validate_element(element).element == element
    effects = validate_effects([sent]).effects
    assert validate_effects(effects).effects == effects


# The page


def test_the_page_has_the_whole_vocabulary() -> None:
    assert [names(row[0])[0] for row in table("elements")] == list(ELEMENT_TYPES)
    assert [names(row[0])[0] for row in table("dialog")] == ["kind", "title", "body", "confirm", "inputs"]
    assert names(table("dialog")[0][1]) == list(DIALOG_KINDS)
    assert [names(row[0])[0] for row in table("inputs")] == list(INPUT_FIELDS)
    assert [names(row[0])[0] for row in table("widgets")] == list(WIDGETS)
    effects = {names(row[0])[0]: names(row[1]) for row in table("effects")}
    assert {kind: tuple(found[: len(EFFECTS[kind])]) for kind, found in effects.items()} == EFFECTS
    assert set(RELOADS) < set(effects["reload"]) and set(PLACES) < set(effects["navigate"])
    assert set(INPUT_TYPES) == set(TYPES)

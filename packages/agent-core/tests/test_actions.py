"""A plugin's actions are read once, mistakes are named, and an action runs only with values that fit."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.actions import (
    RESPONSE_FINALIZE,
    STANDARD_LIFECYCLES,
    Action,
    ActionInput,
    check_inputs,
    match_triggers,
)
from agent_core.errors import ActionInputError, PluginError

COMPACT = {
    "id": "compact_range",
    "label": "Compact range",
    "description": "Compact messages into a state snapshot.",
    "inputs": {
        "start": {"type": "integer", "required": False},
        "mode": {"type": "string", "enum": ["short", "long"], "default": "short", "label": "Mode"},
        "weight": {"type": "number", "required": True, "widget": "slider"},
    },
    "trigger": ["session_save_prepare"],
    "icon": "compress",
}


def read(definition: Any = COMPACT, /, **changes: Any) -> Action:
    return Action.from_dict({**definition, **changes}, plugin="compaction", owner="feature")


def taking(**inputs: dict[str, Any]) -> Action:
    return read({"id": "act", "inputs": inputs})


# Definitions


def test_a_definition_becomes_an_action() -> None:
    action = read()

    assert action.id == "compact_range"
    assert action.label == "Compact range"
    assert action.description == "Compact messages into a state snapshot."
    assert (action.plugin, action.owner) == ("compaction", "feature")
    assert action.triggers == ("session_save_prepare",)
    assert action.idempotent is False
    assert action.extra == {"icon": "compress"}
    assert list(action.inputs) == ["start", "mode", "weight"]
    assert action.inputs["mode"] == ActionInput(
        name="mode", type="string", default="short", enum=("short", "long"), label="Mode"
    )
    assert action.inputs["weight"].extra == {"widget": "slider"}


def test_an_id_is_all_that_an_action_needs() -> None:
    action = read({"id": "ping"})

    assert action.label == "ping"
    assert action.description == ""
    assert action.inputs == {} and action.triggers == ()


@pytest.mark.parametrize("trigger", ["session_create", ["session_create", "request_prepare"], [], None])
def test_the_public_dict_is_the_definition_with_its_owner(trigger: object) -> None:
    definition = {**COMPACT, "trigger": trigger, "idempotent": True}

    public = read(definition).to_dict()

    assert public.pop("manual", False) is bool(trigger)  # it takes inputs, which only people give
    assert public == {**definition, "plugin": "compaction", "action_owner": "feature"}


def test_the_public_dict_is_a_copy_to_keep() -> None:
    action = read()

    action.to_dict()["inputs"]["start"]["type"] = "string"

    assert action.to_dict()["inputs"]["start"]["type"] == "integer"


def test_a_plugin_cannot_pass_its_action_off_as_anothers() -> None:
    public = read(plugin="other", action_owner="provider_extension").to_dict()

    assert (public["plugin"], public["action_owner"]) == ("compaction", "feature")


def test_an_action_made_by_hand_has_a_public_dict_too() -> None:
    action = Action(
        id="ping",
        label="Ping",
        plugin="net",
        owner="feature",
        triggers=("request_prepare",),
        is_manual=False,
    )

    assert action.to_dict() == {
        "id": "ping",
        "label": "Ping",
        "trigger": ["request_prepare"],
        "plugin": "net",
        "action_owner": "feature",
    }


def test_changing_the_definition_later_does_not_change_the_action() -> None:
    definition = {"id": "ping", "inputs": {"host": {"type": "string"}}, "more": [1]}
    action = read(definition)

    definition["inputs"]["host"]["type"] = "integer"  # type: ignore[index]  # a dict of mixed values
    definition["more"].append(2)  # type: ignore[attr-defined]

    assert action.inputs["host"].type == "string"
    assert action.extra == {"more": [1]}
    assert action.to_dict()["inputs"] == {"host": {"type": "string"}}


def test_an_action_can_be_pickled() -> None:
    action = read()

    assert pickle.loads(pickle.dumps(action)) == action


def test_inputs_may_be_a_list_as_dialogs_have_it() -> None:
    action = read(inputs=[{"name": "start", "type": "integer", "label": "Start"}, {"name": "end"}])

    assert action.inputs == {
        "start": ActionInput(name="start", type="integer", label="Start"),
        "end": ActionInput(name="end"),
    }


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id": None}, "an action, field 'id': required, but missing or empty"),
        ({"id": ""}, "an action, field 'id': required, but missing or empty"),
        ({"id": 7}, "an action, field 'id': expected string, got integer"),
        ({"label": ["x"]}, "action 'compact_range', field 'label': expected string, got array"),
        ({"description": 1.5}, "field 'description': expected string, got number"),
        ({"idempotent": 1}, "field 'idempotent': expected boolean, got integer"),
        ({"trigger": 3}, "field 'trigger': expected array, got integer"),
        ({"trigger": ""}, "field 'trigger': expected a name or a list of names, got ''"),
        ({"trigger": ["a", None]}, "field 'trigger': expected a name or a list of names, got ['a', None]"),
        ({"inputs": "start"}, "field 'inputs': expected array, got string"),
        ({"inputs": {"start": "integer"}}, "input 'start': expected object, got string"),
        ({"inputs": {1: {}}}, "field 'inputs': the name of an input must be text, not 1"),
        ({"inputs": ["start"]}, "field 'inputs[0]': expected object, got string"),
        ({"inputs": [{"type": "any"}]}, "field 'inputs[0]', field 'name': required, but missing or empty"),
        (
            {"inputs": [{"name": "a"}, {"name": "a"}]},
            "field 'inputs[1].name': another input has the name 'a'",
        ),
        (
            {"inputs": {"a": {"type": "strng"}}},
            "input 'a', field 'type': unknown type 'strng', did you mean 'string'?",
        ),
        ({"inputs": {"a": {"type": "xyz"}}}, "unknown type 'xyz'; known are 'string', 'integer', "),
        ({"inputs": {"a": {"type": ["string"]}}}, "input 'a', field 'type': expected string, got array"),
        ({"inputs": {"a": {"required": "yes"}}}, "input 'a', field 'required': expected boolean, got string"),
        ({"inputs": {"a": {"enum": "xy"}}}, "input 'a', field 'enum': expected array, got string"),
        ({"inputs": {"a": {"type": "string", "enum": [1]}}}, "field 'enum': expected string, got integer"),
        (
            {"inputs": {"a": {"type": "integer", "default": "1"}}},
            "field 'default': expected integer, got string",
        ),
        ({"inputs": {"a": {"enum": [1, 2], "default": 3}}}, "input 'a', field 'default': 3 is none of 1, 2"),
    ],
)
def test_a_mistake_in_a_definition_names_plugin_hook_and_field(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(PluginError) as caught:
        read(COMPACT, **changes)

    assert (caught.value.plugin, caught.value.hook) == ("compaction", "get_actions")
    assert complaint in caught.value.problem


@pytest.mark.parametrize("definition", [None, "compact", 3, ["id"]])
def test_a_definition_that_is_no_dict_is_the_plugins_error(definition: Any) -> None:
    with pytest.raises(PluginError, match="an action: expected object, got "):
        Action.from_dict(definition, plugin="compaction", owner="feature")


# Triggers


def test_an_action_without_a_trigger_is_manual_and_matches_nothing() -> None:
    action = read(trigger=None)

    assert action.is_manual
    assert match_triggers(action, STANDARD_LIFECYCLES) is None


def test_an_action_matches_each_of_its_triggers_whatever_their_names() -> None:
    action = read(trigger=["session_create", "my_future_custom_lifecycle"])

    assert action.is_manual  # it takes inputs, which only people give
    assert action.matches("my_future_custom_lifecycle")
    assert not action.matches("session")


def test_of_several_triggers_the_first_match_is_returned() -> None:
    action = read(trigger=["a", "b"])

    assert match_triggers(action, ["c", "b", "a"]) == "b"
    assert match_triggers(action, []) is None


def test_the_standard_lifecycles_are_nine_and_leave_response_finalize_to_the_core() -> None:
    assert STANDARD_LIFECYCLES == (
        "session_create",
        "session_save_prepare",
        "request_prepare",
        "request_complete",
        "request_error",
        "session_fork",
        "agent_switch_prepare",
        "agent_switch_complete",
        "session_delete_prepare",
    )
    assert RESPONSE_FINALIZE == "response_finalize"
    assert RESPONSE_FINALIZE not in STANDARD_LIFECYCLES


# Values


def test_defaults_fill_in_what_is_absent_and_the_rest_stays_absent() -> None:
    assert check_inputs(read(), {"weight": 0.5}) == {"mode": "short", "weight": 0.5}


def test_null_counts_as_absent() -> None:
    assert check_inputs(read(), {"start": None, "mode": None, "weight": 1}) == {"mode": "short", "weight": 1}


def test_values_come_in_the_order_of_the_inputs() -> None:
    assert list(check_inputs(read(), {"weight": 1, "mode": "long", "start": 0})) == [
        "start",
        "mode",
        "weight",
    ]


def test_a_default_may_serve_a_required_input() -> None:
    assert check_inputs(taking(n={"type": "integer", "required": True, "default": 4}), {}) == {"n": 4}


def test_a_default_that_is_a_list_is_a_new_one_each_time() -> None:
    action = taking(tags={"type": "array", "default": ["a"]})

    check_inputs(action, {})["tags"].append("b")

    assert check_inputs(action, {}) == {"tags": ["a"]}


VALUES: dict[str, list[Any]] = {
    "string": ["", "x"],
    "integer": [0, -3, 2**70],
    "number": [0.5, -1e300],
    "boolean": [True, False],
    "array": [[], [1]],
    "object": [{}, {"a": 1}],
}


@pytest.mark.parametrize("wanted", [*VALUES, "any"])
def test_an_input_takes_its_own_type_and_no_other(wanted: str) -> None:
    action = taking(x={"type": wanted})

    for kind, values in VALUES.items():
        fits = wanted in {kind, "any"} or (wanted, kind) == ("number", "integer")
        for value in values:
            if fits:
                assert check_inputs(action, {"x": value}) == {"x": value}
            else:
                with pytest.raises(ActionInputError, match=f"expected {wanted}, got {kind}"):
                    check_inputs(action, {"x": value})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_is_finite(value: float) -> None:
    with pytest.raises(ActionInputError, match=f"input 'x': expected number, got {value}"):
        check_inputs(taking(x={"type": "number"}), {"x": value})


@pytest.mark.parametrize(
    ("params", "field", "problem"),
    [
        ({}, "weight", "required, but missing"),
        ({"weight": None}, "weight", "required, but missing"),
        ({"weight": 1, "start": "1"}, "start", "expected integer, got string"),
        ({"weight": 1, "start": True}, "start", "expected integer, got boolean"),
        ({"weight": 1, "start": 1.0}, "start", "expected integer, got number"),
        ({"weight": 1, "mode": "Long"}, "mode", "'Long' is none of 'short', 'long'"),
        ({"weight": 1, "strat": 1}, "strat", "no such input, did you mean 'start'?"),
        ({"weight": 1, "zzz": 1}, "zzz", "no such input; known are 'start', 'mode', 'weight'"),
        ({"weight": 1, 3: 1}, "3", "no such input; known are 'start', 'mode', 'weight'"),
        ([], "params", "expected object, got array"),
        (None, "params", "expected object, got null"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(params: Any, field: str, problem: str) -> None:
    with pytest.raises(ActionInputError) as caught:
        check_inputs(read(), params)

    assert (caught.value.action, caught.value.field, caught.value.problem) == (
        "compact_range",
        field,
        problem,
    )
    assert isinstance(caught.value, ValueError)


def test_an_action_without_inputs_says_so() -> None:
    with pytest.raises(ActionInputError, match="no such input; none is known"):
        check_inputs(read({"id": "ping"}), {"x": 1})


def test_true_is_not_one_among_the_choices() -> None:
    action = taking(x={"enum": [1, "a"]})

    assert check_inputs(action, {"x": 1}) == {"x": 1}
    with pytest.raises(ActionInputError, match="True is none of 1, 'a'"):
        check_inputs(action, {"x": True})


def test_a_whole_number_may_be_chosen_as_either_kind() -> None:
    assert check_inputs(taking(x={"type": "number", "enum": [1.0, 2.5]}), {"x": 1}) == {"x": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["start", "mode", "weight", "other"])


@settings(max_examples=40)
@given(st.dictionaries(NAMES, JSON))
def test_whatever_is_asked_the_answer_is_fitting_values_or_an_input_error(params: dict[str, Any]) -> None:
    action = read()
    try:
        values = check_inputs(action, params)
    except ActionInputError:
        return

    assert values["mode"] in {"short", "long"} and "weight" in values
    assert check_inputs(action, values) == values


FIELDS = ["id", "label", "description", "inputs", "trigger", "idempotent", "type", "name", "enum", "default"]
SPECS = st.dictionaries(st.sampled_from(FIELDS), JSON)


@settings(max_examples=40)
@given(
    SPECS, st.none() | st.lists(SPECS, max_size=3) | st.dictionaries(st.text(max_size=3), SPECS, max_size=3)
)
def test_any_dict_is_an_action_or_the_plugins_error(definition: dict[str, Any], inputs: Any) -> None:
    try:
        action = read({"id": "act", **definition}, inputs=inputs)
    except PluginError:
        return

    assert repr(action.to_dict()["inputs"]) == repr(inputs)
    assert action.is_manual or definition.get("trigger")

"""Frozen values are dicts and lists to everyone who reads, and refuse everyone who writes."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from agent_core.frozen import EMPTY, FrozenDict, FrozenList, FrozenValueError, freeze, thaw
from agent_core.history import History

if TYPE_CHECKING:
    from collections.abc import Callable

NESTED = {"a": [1, {"b": [2, 3]}], "c": {"d": "e"}}

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)

WRITES_TO_DICTS: list[Callable[[Any], Any]] = [
    lambda value: value.__setitem__("a", 1),
    lambda value: value.__delitem__("a"),
    lambda value: value.__ior__({"a": 1}),
    lambda value: value.clear(),
    lambda value: value.pop("a"),
    lambda value: value.popitem(),
    lambda value: value.setdefault("z", 1),
    lambda value: value.update(a=1),
]
WRITES_TO_LISTS: list[Callable[[Any], Any]] = [
    lambda value: value.__setitem__(0, 1),
    lambda value: value.__setitem__(slice(0, 1), []),
    lambda value: value.__delitem__(0),
    lambda value: value.__iadd__([1]),
    lambda value: value.__imul__(2),
    lambda value: value.append(1),
    lambda value: value.clear(),
    lambda value: value.extend([1]),
    lambda value: value.insert(0, 1),
    lambda value: value.pop(),
    lambda value: value.remove(1),
    lambda value: value.reverse(),
    lambda value: value.sort(),
]


def containers(value: Any) -> list[Any]:
    """Return every container in *value*, itself included."""
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in containers(item))]
    if isinstance(value, list):
        return [value, *(found for item in value for found in containers(item))]
    return []


@pytest.mark.parametrize("write", WRITES_TO_DICTS)
def test_a_frozen_dict_refuses_every_way_of_changing_a_dict(write: Callable[[Any], Any]) -> None:
    value = freeze({"a": 0})

    with pytest.raises(FrozenValueError, match="this dict is frozen: return a changed copy"):
        write(value)
    assert value == {"a": 0}


@pytest.mark.parametrize("write", WRITES_TO_LISTS)
def test_a_frozen_list_refuses_every_way_of_changing_a_list(write: Callable[[Any], Any]) -> None:
    value = freeze([1, 2])

    with pytest.raises(FrozenValueError, match="this list is frozen: return a changed copy"):
        write(value)
    assert value == [1, 2]


def test_no_method_that_changes_a_dict_or_a_list_was_forgotten() -> None:
    """Methods are tried on plain values; whatever changes one of those must be refused by ours."""
    arguments: list[tuple[Any, ...]] = [(), (0,), (1,), ("a",), ([7],), ({"a": 7},), (0, 7), ("a", 7)]

    forgotten = []
    for plain, frozen in (({"a": 0}, FrozenDict), ([1, 0], FrozenList)):
        for name in dir(plain):
            for given_arguments in arguments:
                changed = copy.deepcopy(plain)
                try:
                    getattr(changed, name)(*given_arguments)
                except (TypeError, ValueError, KeyError, IndexError, AttributeError):
                    continue
                if changed != plain and getattr(frozen, name) is getattr(type(plain), name):
                    forgotten.append(name)
    assert set(forgotten) <= {"__init__"}  # making a value is not changing one


def test_a_write_is_a_type_error_as_for_tuples() -> None:
    assert issubclass(FrozenValueError, TypeError)


@settings(max_examples=25)
@given(plain_json)
def test_freezing_reaches_every_container_and_changes_no_value(value: Any) -> None:
    frozen = freeze(value)

    assert frozen == value
    assert all(type(found) in (FrozenDict, FrozenList) for found in containers(frozen))


@settings(max_examples=25)
@given(plain_json)
def test_thawing_gives_back_plain_containers_that_share_nothing_with_the_frozen_ones(value: Any) -> None:
    frozen = freeze(value)

    thawed = thaw(frozen)

    assert thawed == value
    assert all(type(found) in (dict, list) for found in containers(thawed))
    assert not {id(found) for found in containers(thawed)} & {id(found) for found in containers(frozen)}


@settings(max_examples=25)
@given(plain_json)
def test_frozen_values_encode_as_the_plain_ones_do(value: Any) -> None:
    frozen = freeze(value)

    assert json.dumps(frozen) == json.dumps(value)
    try:
        encoded = orjson.dumps(value)
    except orjson.JSONEncodeError:  # an integer past 64 bits
        return
    assert orjson.dumps(frozen) == encoded


def test_changing_what_was_frozen_does_not_reach_the_frozen_value() -> None:
    original: dict[str, Any] = {"a": [1, {"b": 2}]}
    frozen = freeze(original)

    original["a"][1]["b"] = 99
    original["a"].append(3)

    assert frozen == {"a": [1, {"b": 2}]}


def test_what_is_frozen_already_is_not_copied() -> None:
    inner = freeze({"b": [1]})

    assert freeze(inner) is inner
    assert freeze({"a": inner})["a"] is inner


def test_frozen_values_are_dicts_and_lists() -> None:
    frozen = freeze(NESTED)

    assert isinstance(frozen, dict)
    assert isinstance(frozen["a"], list)
    assert frozen == NESTED
    assert dict(NESTED) == frozen
    assert frozen["a"] == NESTED["a"]
    assert list(frozen) == ["a", "c"]
    assert frozen.get("missing") is None
    assert repr(frozen) == repr(NESTED)


def test_other_kinds_of_dicts_and_sequences_become_frozen_ones() -> None:
    frozen = freeze({"ordered": OrderedDict(a=1), "pair": (1, [2])})

    assert type(frozen["ordered"]) is FrozenDict
    assert type(frozen["pair"]) is FrozenList
    assert type(frozen["pair"][1]) is FrozenList


def test_unpacking_gives_a_plain_copy_that_can_be_changed() -> None:
    frozen = freeze(NESTED)

    changed = {**frozen, "c": "other"}
    longer = [*frozen["a"], 4]
    changed["new"] = 1
    longer.append(5)

    assert type(changed) is dict
    assert type(longer) is list
    assert frozen == NESTED


@pytest.mark.parametrize(
    "copied",
    [dict, lambda value: value.copy(), copy.copy, lambda value: value | {}, lambda value: {} | value],
    ids=["dict", "method", "copy", "or", "ror"],
)
def test_copies_of_a_frozen_dict_are_plain(copied: Callable[[Any], Any]) -> None:
    made = copied(freeze({"a": 1}))

    assert type(made) is dict
    assert made == {"a": 1}


@pytest.mark.parametrize(
    "copied",
    [
        list,
        lambda value: value.copy(),
        copy.copy,
        lambda value: value[:],
        lambda value: value + [],
        lambda value: value * 1,
    ],
    ids=["list", "method", "copy", "slice", "add", "mul"],
)
def test_copies_of_a_frozen_list_are_plain(copied: Callable[[Any], Any]) -> None:
    made = copied(freeze([1, 2]))

    assert type(made) is list
    assert made == [1, 2]


def test_a_deep_copy_is_plain_all_the_way_down() -> None:
    made = copy.deepcopy(freeze(NESTED))
    listed = copy.deepcopy(freeze([NESTED]))

    made["a"][1]["b"].append(4)
    listed[0]["a"].clear()

    assert made == {"a": [1, {"b": [2, 3, 4]}], "c": {"d": "e"}}
    assert listed == [{"a": [], "c": {"d": "e"}}]
    assert NESTED["a"] == [1, {"b": [2, 3]}]


def test_a_pickled_value_comes_back_frozen() -> None:
    back = pickle.loads(pickle.dumps(freeze(NESTED)))

    assert back == NESTED
    assert all(type(found) in (FrozenDict, FrozenList) for found in containers(back))


def test_thawing_turns_a_history_into_a_list() -> None:
    thawed = thaw(freeze({"items": History([freeze({"a": [1]})])}))

    assert thawed == {"items": [{"a": [1]}]}
    assert type(thawed["items"]) is list
    assert type(thawed["items"][0]["a"]) is list


def test_the_shared_empty_dict_cannot_be_filled() -> None:
    with pytest.raises(FrozenValueError):
        EMPTY["a"] = 1
    assert EMPTY == {}

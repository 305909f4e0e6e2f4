"""What a declaration's annotations say is what may stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from agent_core.frozen import EMPTY, FrozenValueError
from agent_runtime import fields
from agent_runtime.errors import SpecError
from agent_runtime.fields import Amount, Count, Name, Range, Rule, Text
from agent_runtime.schema import object_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Kettle:
    """A kettle."""

    id: Name
    cups: Count = 4
    litres: Amount | None = None
    heat: Annotated[float, Range(20, 100, off=True)] | None = 95.0
    place: Annotated[str, Text("^kitchen/", "must be in the kitchen")] = "kitchen/stove"
    whistles: bool = True
    teas: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    def __post_init__(self) -> None:
        fields.check(self)


def kettle(**given: Any) -> Kettle:
    return fields.read(Kettle, {"id": "k", **given}, where="kettle")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"id": " "}, "kettle.id must not be empty"),
        ({"id": 3}, "kettle.id must be a string, not int"),
        ({"cups": 0}, "kettle.cups must be at least 1, not 0"),
        ({"cups": 1.5}, "kettle.cups must be a whole number, not 1.5"),
        ({"cups": True}, "kettle.cups must be a whole number, not True"),
        ({"cups": None}, "kettle.cups must be a whole number, not None"),
        ({"litres": -1}, "kettle.litres must be at least 0, not -1"),
        ({"litres": False}, "kettle.litres must be a number, not False"),
        ({"heat": 101}, "kettle.heat must be between 20 and 100, not 101"),
        ({"heat": float("nan")}, "kettle.heat must be a number, finite and no larger than a float can be"),
        ({"place": "attic"}, "kettle.place must be in the kitchen, not 'attic'"),
        ({"whistles": 1}, "kettle.whistles must be true or false, not 1"),
        ({"teas": "green"}, "kettle.teas must be a list of names, not str"),
        ({"teas": ["green", ""]}, "kettle.teas[1] must not be empty"),
        ({"notes": []}, "kettle.notes must be a mapping, not list"),
        ({"cup": 1}, "kettle has no field 'cup': did you mean 'cups'?"),
    ],
)
def test_what_a_field_may_not_hold_is_refused_by_name(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError) as caught:
        kettle(**given)

    assert str(caught.value) == problem


def test_lists_and_mappings_are_frozen_and_false_can_mean_none() -> None:
    made = kettle(teas=["green"], notes={"bought": [2019]}, heat=False, litres=None)

    assert made.teas == ("green",)
    assert isinstance(made.notes, Mapping) and made.notes == {"bought": [2019]}
    with pytest.raises(FrozenValueError):
        made.notes["bought"].append(2020)
    assert made.heat is None and made.litres is None


def test_a_rule_has_the_type_and_the_limits_of_its_annotation() -> None:
    rules = fields.rules(Kettle)

    assert rules["heat"] == Rule(float, Range(20, 100, off=True), optional=True)
    assert rules["id"] == Rule(str, Text(), optional=False)
    assert rules["whistles"] == Rule(bool, None, optional=False)


def test_the_schema_has_the_same_limits() -> None:
    properties = object_schema(Kettle)["properties"]

    assert properties["cups"] | {"description": ""} == {
        "description": "",
        "type": "integer",
        "minimum": 1,
        "default": 4,
    }
    assert properties["heat"]["anyOf"] == [
        {"type": "number", "minimum": 20, "maximum": 100},
        {"const": False},
        {"type": "null"},
    ]
    assert properties["place"]["pattern"] == "^kitchen/"
    assert properties["litres"]["type"] == ["number", "null"]

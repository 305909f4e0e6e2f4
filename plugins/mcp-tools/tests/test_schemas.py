"""Which schemas of strangers reach a model."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tools.tool_list import Listing, Tool, schema_problem


def nested(depth: int, key: str = "properties") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", key: {"x": schema} if key == "properties" else schema}
    return schema


def within(inner: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": inner}}


GOOD: list[dict[str, Any]] = [
    {"type": "object"},
    within({"type": "string", "enum": ["a", "b"]}),
    within({"$ref": "#/$defs/tea"}) | {"$defs": {"tea": {"type": "string"}}},
    within({"$ref": "#"}),
    {"$schema": "http://json-schema.org/draft-07/schema#", **within({"type": "integer"})},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", **within({"anyOf": [{}, {"type": "null"}]})},
    within({"type": "string", "pattern": "^(a+)+$"}),
    within({"type": "array", "items": {"type": "object", "additionalProperties": True}}),
    nested(10),
]
REMOTE = ["http://evil.example/s.json", "https://evil.example/s#/a", "file:///etc/passwd", "other.json#/x"]
REMOTE += ["//evil.example/s", "urn:x:y", "data:application/json,{}", "/etc/passwd", "ftp://x/y", "s.json"]
HOSTILE: list[dict[str, Any]] = [
    *(within({"$ref": target}) for target in REMOTE),
    *(within({"anyOf": [{"items": {"$ref": target}}]}) for target in REMOTE),
    *(within({"$dynamicRef": target}) for target in REMOTE),
    *(nested(depth) for depth in (17, 40, 200, 5_000)),
    *(nested(depth, "not") for depth in (33, 100, 50_000)),
    *(within({"enum": ["x" * size]}) for size in (64_000, 1_000_000, 10_000_000)),
    within({"enum": list(range(50_000))}),
    {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(5_000)}},
    within({"$ref": "#/$defs/missing"}),
    within({"type": "teapot"}),
    within({"type": 5}),
    within({"minLength": -1}),
    within({"pattern": "("}),
    within({"enum": "a"}),
    {"type": "object", "properties": []},
    {"type": "object", "required": "x"},
    {"type": "string"},
    {"type": ["object", "null"]},
    {},
    {"$schema": "http://evil.example/meta", "type": "object"},
    {"allOf": [{"type": "object"}]},
    within({"$recursiveRef": "http://evil.example/s.json"}),
    {"type": "object", "$defs": {"unused": {"$ref": "http://evil.example/s.json"}}},
    {"type": "object", "patternProperties": {"(": {}}},
    {"type": "object", "properties": {"x": "string"}},
    {"type": "object", "additionalProperties": "no"},
]


@pytest.mark.parametrize("schema", GOOD, ids=range(len(GOOD)))
def test_an_ordinary_schema_is_fine(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) is None


@pytest.mark.parametrize("schema", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_schema_costs_its_tool_and_no_other(schema: dict[str, Any]) -> None:
    tools = [Tool("good", "", {"type": "object"}), Tool("bad", "", schema)]

    listing = Listing.of("s", tools)

    assert [tool.name for tool in listing.tools] == ["good"]
    assert listing.dropped["bad"].startswith("its schema")


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["a", "b", "a"], ["b"]),
        (["", "a"], ["a"]),
        (["a" * 300, "a"], ["a"]),
        (["get.page", "get_page"], ["get.page", "get_page"]),
    ],
)
def test_names_that_cannot_be_told_apart_are_dropped(names: list[str], kept: list[str]) -> None:
    listing = Listing.of("s", [Tool(name, "", {"type": "object"}) for name in names])

    assert [tool.name for tool in listing.tools] == kept


def test_a_tool_named_like_the_alias_of_another_takes_both_down() -> None:
    from mcp_tools.tool_list import wire_name

    alias = wire_name("s", "get.page").removeprefix("s__")
    listing = Listing.of("s", [Tool(name, "", {"type": "object"}) for name in ("get.page", alias, "other")])

    assert [tool.name for tool in listing.tools] == ["other"]


def test_a_description_as_long_as_a_book_is_none() -> None:
    listing = Listing.of("s", [Tool("a", "x" * 20_000, {"type": "object"})])

    assert "20000 characters" in listing.dropped["a"]

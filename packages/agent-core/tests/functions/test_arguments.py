"""What the function receives for the model's JSON."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Optional, TypedDict
from uuid import UUID

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st

from agent_core.errors import ToolError
from agent_core.frozen import thaw
from agent_core.functions import FunctionTool, tool

Case = Callable[..., AbstractContextManager[None]]


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is below zero")


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Movie(TypedDict):
    title: str


@dataclass
class Node:
    value: int
    next: "Node | None" = None


def receiving(annotation: Any) -> tuple[FunctionTool[..., Any], list[Any]]:
    """Make a tool with one argument of that annotation and the list in which it keeps what it got."""
    received: list[Any] = []

    def take(value: Any) -> Any:
        received.append(value)
        return value

    take.__annotations__ = {"value": annotation}
    return tool(take), received


def received(annotation: Any, value: Any) -> Any:
    take, kept = receiving(annotation)
    take.execute_tool("take", {"value": value})
    return kept[0]


def test_an_argument_arrives_as_its_annotation_says(case: Case) -> None:
    cases: list[tuple[Any, Any, Any]] = [
        (int, 3.0, 3),
        (float, 3, 3.0),
        (bool, True, True),
        (datetime, "2024-02-29T10:00:00Z", datetime(2024, 2, 29, 10, tzinfo=UTC)),
        (date, "2024-02-29", date(2024, 2, 29)),
        (time, "10:30:00", time(10, 30)),
        (UUID, "12345678123456781234567812345678", UUID(int=0x12345678123456781234567812345678)),
        (Decimal, "1.10", Decimal("1.10")),
        (Path, "a/b", Path("a/b")),
        (Color, "blue", Color.BLUE),
        (Literal["a", 1], 1, 1),
        (Literal[Color.RED], "red", Color.RED),
        (set[int], [1, 2], {1, 2}),
        (frozenset[str], ["a"], frozenset({"a"})),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[date, Color], ["2024-01-01", "red"], (date(2024, 1, 1), Color.RED)),
        (Mapping[str, Path], {"a": "b"}, {"a": Path("b")}),
        (dict[Color, int], {"red": 1}, {Color.RED: 1}),
        (Iterable[date], ["2024-01-01"], [date(2024, 1, 1)]),
        (Point, {"x": 1}, Point(1)),
        (list[Point], [{"x": 1, "y": 2}], [Point(1, 2)]),
        (Pair, {"left": 1}, Pair(1)),
        (Movie, {"title": "M"}, {"title": "M"}),
        (Node, {"value": 1, "next": {"value": 2}}, Node(1, Node(2))),
        (Point | None, None, None),
        (Point | Movie, {"title": "M"}, {"title": "M"}),
        (date | str, "2024-01-01", date(2024, 1, 1)),
        (date | str, "soon", "soon"),
        (bool | int, 1, 1),
        (int | bool, True, True),
        (Any, {"a": [1]}, {"a": [1]}),
    ]
    for annotation, value, expected in cases:
        with case(annotation, value, expected):
            got = received(annotation, value)

            assert got == expected
            assert type(got) is type(expected)


def test_an_error_names_the_path_to_the_argument_that_does_not_fit(case: Case) -> None:
    cases: list[tuple[Any, Any, str]] = [
        (str, 1, "argument value: 1 is not a string"),
        (int, "1", "'1' is not an integer"),
        (int, True, "True is not an integer"),
        (int, 1.5, "1.5 is not an integer"),
        (float, "x", "is not a number"),
        (float, 10**400, "as a float"),
        (date, "soon", "'soon' is not a date"),
        (date, 3, "3 is not a date in a string"),
        (Decimal, "much", "'much' is not a decimal"),
        (Color, "green", "'green' is not one of 'red', 'blue'"),
        (Literal[1], True, "True is not one of 1"),
        (list[int], [1, "x"], "argument value[1]: 'x' is not an integer"),
        (list[int], "12", "is not an array"),
        (set[Any], [[1]], "cannot be kept in a set"),
        (tuple[int, int], [1], "an array of 2 items"),
        (dict[str, int], [], "is not an object"),
        (dict[str, int], {"a": "b"}, "argument value.a: 'b' is not an integer"),
        (Point, [], "is not an object"),
        (Point, {}, "field 'x' is missing"),
        (Point, {"x": 1, "z": 2}, "unknown field 'z'"),
        (Point, {"x": -1}, "x is below zero"),
        (Node, {"value": 1, "next": {"value": "2"}}, "argument value.next.value: '2' is not an integer"),
        (int | None, "x", "'x' is not an integer; 'x' is not null"),
    ]
    for annotation, value, complaint in cases:
        with case(annotation, value, complaint):
            take, kept = receiving(annotation)

            with pytest.raises(ToolError) as caught:
                take.execute_tool("take", {"value": value})

            assert complaint in str(caught.value)
            assert caught.value.tool == "take"
            assert kept == []


def test_missing_and_unknown_arguments_are_refused() -> None:
    @tool
    def take(value: int) -> None: ...

    with pytest.raises(ToolError, match="argument 'value' is missing"):
        take.execute_tool("take", {})
    with pytest.raises(ToolError, match="there is no argument 'other'"):
        take.execute_tool("take", {"value": 1, "other": 2})


def test_positional_only_parameters_are_passed_by_position_and_keep_their_defaults() -> None:
    @tool
    def take(a: int, b: int = 2, c: int = 3, /, *, d: int = 4) -> list[int]:
        return [a, b, c, d]

    assert take.execute_tool("take", {"a": 1, "c": 9, "d": 5}) == {"success": True, "result": [1, 2, 9, 5]}


def test_keyword_arguments_of_any_name_are_read_by_their_annotation() -> None:
    @tool
    def take(a: int, **dates: date) -> list[Any]:
        return [a, dates["due"].year]

    assert take.execute_tool("take", {"a": 1, "due": "2024-01-01"}) == {"success": True, "result": [1, 2024]}
    with pytest.raises(ToolError, match="argument due"):
        take.execute_tool("take", {"a": 1, "due": "soon"})


# What the platform lends


def lent_to(function: Callable[..., Any]) -> Any:
    answer = tool(function).execute_tool(
        "take", {"query": "q"}, {}, context={"user": "ada"}, cancellation="token", tool_call={"id": "c1"}
    )
    assert isinstance(answer, dict)
    return answer["result"]


def test_context_cancellation_and_tool_call_are_lent_and_not_shown_to_the_model() -> None:
    @tool
    def take(query: str, context: dict[str, Any], cancellation: object, tool_call: Any) -> list[Any]:
        return [query, context["user"], cancellation, tool_call["id"]]

    assert lent_to(take) == ["q", "ada", "token", "c1"]
    assert list(take.get_tool_schemas()[0]["function"]["parameters"]["properties"]) == ["query"]


@pytest.mark.parametrize(
    "annotation",
    [dict, Mapping, Any, Mapping[str, Any], dict[str, Any] | None, "Mapping[str, Unknown]", "t.Dict | None"],
)
def test_a_context_is_lent_when_it_is_annotated_as_a_mapping(annotation: Any) -> None:
    def take(query: str, context: Any = None) -> Any:
        return context

    take.__annotations__["context"] = annotation

    assert lent_to(take) == {"user": "ada"}


def test_a_context_without_annotation_is_lent_even_by_position() -> None:
    def take(context, /, query):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - that is the point
        return context

    assert lent_to(take) == {"user": "ada"}


def test_a_context_of_another_type_is_an_argument_like_any_other() -> None:
    @tool
    def summarise(context: str) -> str:
        return context

    assert summarise.execute_tool("summarise", {"context": "text"}) == {"success": True, "result": "text"}
    assert "context" in summarise.get_tool_schemas()[0]["function"]["parameters"]["properties"]


def test_a_model_cannot_set_what_is_lent() -> None:
    @tool
    def take(query: str, context: dict[str, Any], **more: Any) -> Any:
        return context

    with pytest.raises(ToolError, match="there is no argument 'context'"):
        take.execute_tool("take", {"query": "q", "context": {"user": "root"}}, context={"user": "ada"})


def test_the_annotation_of_a_lent_value_need_not_resolve() -> None:
    def take(query: str, cancellation: "Missing") -> Any:  # type: ignore[name-defined]  # noqa: F821 - the point
        return cancellation

    assert lent_to(take) == "token"


# Property: JSON in, Python inside, the same JSON out

Family = tuple[Any, st.SearchStrategy[Any], Callable[[Any], bool]]


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


def _each(kind: Any, accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def accepts_all(value: Any) -> bool:
        return type(value) is kind and all(map(accepts, value))

    return accepts_all


def _in_order(values: set[Any]) -> list[Any]:
    return sorted(values)


LEAVES: list[Family] = [
    (str, st.text(), _is(str)),
    (int, st.integers(-(2**63), 2**63), _is(int)),
    (float, st.floats(allow_nan=False, allow_infinity=False), _is(float)),
    (bool, st.booleans(), _is(bool)),
    (None, st.none(), _is(type(None))),
    (datetime, st.datetimes(timezones=st.sampled_from([UTC])).map(datetime.isoformat), _is(datetime)),
    (date, st.dates().map(date.isoformat), _is(date)),
    (time, st.times().map(time.isoformat), _is(time)),
    (UUID, st.uuids().map(str), _is(UUID)),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False).map(str), _is(Decimal)),
    (Color, st.sampled_from(["red", "blue"]), _is(Color)),
    (Literal["a", 1], st.sampled_from(["a", 1]), lambda value: value in ("a", 1)),
    (int | str, st.integers(-9, 9) | st.text(), lambda value: isinstance(value, (int, str))),
    (set[int], st.sets(st.integers(-99, 99)).map(_in_order), _each(set, _is(int))),
    (frozenset[str], st.sets(st.text()).map(_in_order), _each(frozenset, _is(str))),
    (Pair, st.fixed_dictionaries({"left": st.integers(0, 9), "right": st.text()}), _is(Pair)),
]


LIST: Any = list  # as values: a type checker takes list[x] for a type and x for its argument
TUPLE: Any = tuple
DICT: Any = dict
OPTIONAL: Any = Optional


def _wider(inner: st.SearchStrategy[Family]) -> st.SearchStrategy[Family]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        inner.map(_list_of),
        inner.map(_tuple_of),
        inner.map(_dict_of),
        inner.map(_optional),
        pairs.map(_pair_of),
        pairs.map(_record_of),
    )


def _list_of(item: Family) -> Family:
    annotation, makes, accepts = item
    return LIST[annotation], st.lists(makes, max_size=3), _each(list, accepts)


def _tuple_of(item: Family) -> Family:
    annotation, makes, accepts = item
    return TUPLE[annotation, ...], st.lists(makes, max_size=3), _each(tuple, accepts)


def _dict_of(item: Family) -> Family:
    annotation, makes, accepts = item
    made = st.dictionaries(st.text(), makes, max_size=3)
    return DICT[str, annotation], made, lambda value: all(map(accepts, value.values()))


def _optional(item: Family) -> Family:
    annotation, makes, accepts = item
    return OPTIONAL[annotation], st.none() | makes, lambda value: value is None or accepts(value)


def _pair_of(pair: tuple[Family, Family]) -> Family:
    (a, makes_a, is_a), (b, makes_b, is_b) = pair
    made = st.tuples(makes_a, makes_b).map(list)
    return TUPLE[a, b], made, lambda value: type(value) is tuple and is_a(value[0]) and is_b(value[1])


def _record_of(pair: tuple[Family, Family]) -> Family:
    (a, makes_a, is_a), (b, makes_b, is_b) = pair
    record: Any = dataclasses.make_dataclass("Record", [("a", a), ("b", b)])
    made = st.fixed_dictionaries({"a": makes_a, "b": makes_b})
    return record, made, lambda value: isinstance(value, record) and is_a(value.a) and is_b(value.b)


FAMILIES = st.recursive(st.sampled_from(LEAVES), _wider, max_leaves=4)


@settings(max_examples=40)
@given(FAMILIES, st.data())
def test_what_fits_the_schema_arrives_as_annotated_and_returns_as_it_came(
    family: Family, data: st.DataObject
) -> None:
    annotation, makes, accepts = family
    arguments = {"value": data.draw(makes)}
    take, kept = receiving(annotation)
    schema = thaw(take.get_tool_schemas()[0]["function"]["parameters"])

    result = take.execute_tool("take", arguments)

    assert jsonschema_rs.is_valid(schema, arguments)
    assert accepts(kept[0])
    assert result == {"success": True, "result": arguments["value"]}


def test_an_async_function_reads_its_arguments_before_it_is_awaited() -> None:
    @tool
    async def take(value: int) -> int:
        return value

    with pytest.raises(ToolError):
        take.execute_tool("take", {"value": "x"})
    answer = take.execute_tool("take", {"value": 1})
    assert not isinstance(answer, dict)

    async def wait() -> Any:
        return await answer

    assert asyncio.run(wait()) == {"success": True, "result": 1}


def test_what_a_partial_has_settled_is_not_asked_for() -> None:
    def fetch(prefix: str, path: str, key: str = "", limit: int = 3) -> list[Any]:
        """Fetch a page."""
        return [prefix, path, key, limit]

    bound = tool(partial(fetch, "https:", key="secret"))
    schema = bound.get_tool_schemas()[0]["function"]

    assert bound.name == "fetch"
    assert schema["description"] == "Fetch a page."
    assert list(schema["parameters"]["properties"]) == ["path", "limit"]
    assert "secret" not in str(schema)
    assert bound.execute_tool("fetch", {"path": "p"}) == {
        "success": True,
        "result": ["https:", "p", "secret", 3],
    }

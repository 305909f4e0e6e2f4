"""What annotations become for the model."""

import dataclasses
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum, IntEnum, auto
from pathlib import Path, PurePosixPath
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import jsonschema_rs
import pytest
from typing_extensions import TypeAliasType

from agent_core.errors import RegistrationError, ToolError
from agent_core.frozen import thaw
from agent_core.functions import FunctionTool, tool

Case = Callable[..., AbstractContextManager[None]]

UserId = NewType("UserId", int)
Bound = TypeVar("Bound", bound=str)
Either = TypeVar("Either", int, str)
Free = TypeVar("Free")
Ids = TypeAliasType("Ids", list[UserId])


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = auto()
    HIGH = auto()


class Mixed(Enum):
    ONE = 1
    TWO = "two"


@dataclass
class Point:
    """A place on the map.

    Attributes:
        x: How far east.
    """

    x: float
    y: float = field(default=0.0, metadata={"description": "How far north."})
    labels: list[str] = field(default_factory=list)
    length: float = field(init=False, default=1.0)
    origin: typing.Final[bool] = False


@dataclass
class Node:
    value: int
    children: list["Node"] = field(default_factory=list)
    parent: Optional["Node"] = None


@dataclass
class Team:
    lead: "Person"


@dataclass
class Person:
    name: str
    team: Team | None = None


class Movie(TypedDict):
    """A film."""

    title: str
    year: NotRequired[int]


class Partly(TypedDict, total=False):
    id: Required[Annotated[str, "Its key."]]
    note: str


class Pair(NamedTuple):
    left: int
    right: str = "r"


def tool_taking(annotation: Any) -> FunctionTool[..., Any]:
    """Make a tool `take` with one parameter `value` of that annotation, which gives back what it got."""

    def take(value: Any) -> Any:
        return value

    take.__annotations__ = {"value": annotation}
    return tool(take)


def parameters(function: Any) -> dict[str, Any]:
    """Return the schema of a tool's arguments, after checking that it is one."""
    schema: dict[str, Any] = thaw(tool(function).get_tool_schemas()[0]["function"]["parameters"])
    jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    jsonschema_rs.Draft202012Validator(schema)
    return schema


def schema_of(annotation: Any) -> Any:
    return parameters(tool_taking(annotation))["properties"]["value"]


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}


def test_an_annotation_has_this_schema(case: Case) -> None:
    cases: list[tuple[Any, Any]] = [
        (str, STRING),
        (int, INTEGER),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, NULL),
        (Any, {}),
        (object, {}),
        (typing.LiteralString, STRING),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (time, {"type": "string", "format": "time"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Decimal, {"type": "string", "format": "decimal"}),
        (Path, {"type": "string", "format": "path"}),
        (PurePosixPath, {"type": "string", "format": "path"}),
        (list, {"type": "array", "items": {}}),
        (typing.List, {"type": "array", "items": {}}),  # noqa: UP006 - the old spelling works, too
        (list[int], {"type": "array", "items": INTEGER}),
        (Sequence[str], {"type": "array", "items": STRING}),
        (Iterable[str], {"type": "array", "items": STRING}),
        (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}),
        (frozenset[int], {"type": "array", "items": INTEGER, "uniqueItems": True}),
        (AbstractSet[int], {"type": "array", "items": INTEGER, "uniqueItems": True}),
        (tuple, {"type": "array", "items": {}}),
        (typing.Tuple, {"type": "array", "items": {}}),  # noqa: UP006 - as above
        (tuple[int, ...], {"type": "array", "items": INTEGER}),
        (
            tuple[int, str],
            {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [INTEGER, STRING], "items": False},
        ),
        (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
        (dict, {"type": "object", "additionalProperties": True}),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (dict[str, Any], {"type": "object", "additionalProperties": True}),
        (dict[Any, int], {"type": "object", "additionalProperties": INTEGER}),
        (
            Mapping[str, list[int]],
            {"type": "object", "additionalProperties": {"type": "array", "items": INTEGER}},
        ),
        (
            dict[Color, int],
            {
                "type": "object",
                "additionalProperties": INTEGER,
                "propertyNames": {"type": "string", "enum": ["red", "blue"]},
            },
        ),
        (str | None, {"anyOf": [STRING, NULL]}),
        (typing.Optional[str], {"anyOf": [STRING, NULL]}),  # noqa: UP045 - as above
        (typing.Union[int, str], {"anyOf": [INTEGER, STRING]}),  # noqa: UP007 - as above
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),  # noqa: PYI061 - None is a choice like others
        (Literal[Color.RED], {"type": "string", "enum": ["red"]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (Mixed, {"enum": [1, "two"]}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (Annotated[int, {"minimum": 1}], {"type": "integer", "minimum": 1}),
        (
            Annotated[int, "N", {"maximum": 9}, object()],
            {"type": "integer", "description": "N", "maximum": 9},
        ),
        (list[Annotated[int, {"minimum": 1}]], {"type": "array", "items": {"type": "integer", "minimum": 1}}),
        (UserId, INTEGER),
        (Bound, STRING),
        (Either, {"anyOf": [INTEGER, STRING]}),
        (Free, {}),
        (Ids, {"type": "array", "items": INTEGER}),
        ("list[int]", {"type": "array", "items": INTEGER}),
        (list["int"], {"type": "array", "items": INTEGER}),
        (
            Point,
            {
                "description": "A place on the map.",
                "type": "object",
                "properties": {
                    "x": {"type": "number", "description": "How far east."},
                    "y": {"type": "number", "description": "How far north.", "default": 0.0},
                    "labels": {"type": "array", "items": STRING},
                    "origin": {"type": "boolean", "default": False},
                },
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
        (
            Movie,
            {
                "description": "A film.",
                "type": "object",
                "properties": {"title": STRING, "year": INTEGER},
                "required": ["title"],
                "additionalProperties": False,
            },
        ),
        (
            Partly,
            {
                "type": "object",
                "properties": {"id": {"type": "string", "description": "Its key."}, "note": STRING},
                "required": ["id"],
                "additionalProperties": False,
            },
        ),
        (
            Pair,
            {
                "type": "object",
                "properties": {"left": INTEGER, "right": {"type": "string", "default": "r"}},
                "required": ["left"],
                "additionalProperties": False,
            },
        ),
    ]
    for annotation, schema in cases:
        with case(annotation, schema):
            assert schema_of(annotation) == schema


def test_a_type_that_contains_itself_is_written_once_and_referred_to() -> None:
    schema = parameters(tool_taking(Node))

    assert schema["properties"]["value"] == {"$ref": "#/$defs/Node"}
    properties = schema["$defs"]["Node"]["properties"]
    assert properties["children"] == {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    assert properties["parent"] == {"anyOf": [{"$ref": "#/$defs/Node"}, NULL], "default": None}


def test_types_that_contain_each_other_end_in_a_reference() -> None:
    schema = parameters(tool_taking(Team))

    assert list(schema["$defs"]) == ["Team"]
    lead = schema["$defs"]["Team"]["properties"]["lead"]
    assert lead["properties"]["team"]["anyOf"][0] == {"$ref": "#/$defs/Team"}


class SelfContainingAlias:
    """Stands in for ``type Tree = dict[str, Tree] | int``, which Python 3.11 cannot read."""

    __name__ = "Tree"

    @property
    def __value__(self) -> Any:
        return dict[str, self] | int  # type: ignore[valid-type]  # an alias by hand


def test_an_alias_that_contains_itself_is_a_reference_too() -> None:
    schema = parameters(tool_taking(SelfContainingAlias()))

    assert schema["properties"]["value"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["anyOf"][1] == INTEGER


def test_two_types_of_one_name_get_two_definitions() -> None:
    other = dataclasses.make_dataclass("Node", [("next", "Node | None", None)])
    other.__module__ = "types"  # Python 3.14 says this one, whose Node is the first

    def take(one: Node, two: other) -> None: ...  # type: ignore[valid-type]  # made at run time

    assert set(parameters(take)["$defs"]) == {"Node", "Node_2"}


def test_a_type_that_does_not_contain_itself_is_written_where_it_is_used() -> None:
    def take(one: Point, two: Point) -> None: ...

    schema = parameters(take)

    assert "$defs" not in schema
    assert schema["properties"]["one"] == schema["properties"]["two"]


def test_a_class_made_inside_a_function_may_contain_itself() -> None:
    @dataclass
    class Local:
        inner: "Local | None" = None

    assert schema_of(Local) == {"$ref": "#/$defs/Local"}


def test_marks_of_a_typed_dict_are_seen_in_string_annotations() -> None:
    marked = TypedDict("marked", {"a": "NotRequired[int]", "b": "int"})  # noqa: UP013 - as strings

    schema = schema_of(marked)

    assert schema["required"] == ["b"]


def test_arguments_without_default_are_required_and_others_are_unknown() -> None:
    def search(query: str, limit: int = 5) -> None: ...

    assert parameters(search) == {
        "type": "object",
        "properties": {"query": STRING, "limit": {"type": "integer", "default": 5}},
        "required": ["query"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def now() -> None: ...

    assert parameters(now) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_what_is_not_annotated_may_be_anything() -> None:
    def take(value, other=1): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - that is the point

    assert parameters(take)["properties"] == {"value": {}, "other": {"default": 1}}


@pytest.mark.parametrize(
    ("annotation", "default", "written"),
    [
        (Color, Color.RED, "red"),
        (Path, Path("docs"), "docs"),
        (date, date(2024, 2, 29), "2024-02-29"),
        (set[int], {2, 1}, [1, 2]),
    ],
)
def test_a_default_is_written_as_json(annotation: Any, default: Any, written: Any) -> None:
    def take(value: Any = default) -> None: ...

    take.__annotations__ = {"value": annotation}

    assert parameters(take)["properties"]["value"]["default"] == written


@pytest.mark.parametrize("default", [object(), float("nan"), None, b"raw", "text", Point(1.0)])
def test_a_default_that_the_schema_would_refuse_is_left_out(default: Any) -> None:
    def take(value: int = default) -> None: ...

    assert parameters(take)["properties"]["value"] == INTEGER


def test_keyword_arguments_of_any_name_open_the_object() -> None:
    def untyped(**fields): ...  # type: ignore[no-untyped-def]  # noqa: ANN003, ANN202 - the point
    def typed(a: int, **fields: str) -> None: ...

    assert parameters(untyped)["additionalProperties"] is True
    assert parameters(typed)["additionalProperties"] == STRING


def test_star_args_are_refused_with_the_next_step() -> None:
    @tool
    def add(*numbers: int) -> None: ...

    with pytest.raises(RegistrationError, match=r"'add'.*'numbers'.*take a list instead of \*args"):
        add.get_tool_schemas()


class Plain:
    pass


class Weird(Enum):
    THING = object()


@dataclass
class Holder:
    inner: Plain


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        (Plain, "Plain has no JSON Schema"),
        (list[Plain], "Plain has no JSON Schema"),
        (Holder, "field 'inner': Plain"),
        (typing.Callable[[], int], "has no JSON Schema"),
        (type[int], "has no JSON Schema"),
        (dict[int, str], "strings, not int"),
        (Weird, "a choice of Weird is not JSON"),
        (Literal[Weird.THING], "is not JSON"),
        (bytes, "bytes has no JSON Schema"),
        (5, "5 has no JSON Schema"),
        ([int], "has no JSON Schema"),
    ],
)
def test_an_annotation_without_json_is_refused_by_tool_parameter_and_type(
    annotation: Any, complaint: str
) -> None:
    with pytest.raises(RegistrationError, match=r"'take'.*'value'") as caught:
        tool_taking(annotation).get_tool_schemas()

    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        ("Nowhere", "import or define the name"),
        ("list[Nowhere]", "import or define the name"),
        ("what to look for", "write it as a type"),
        (dataclasses.make_dataclass("Lost", [("x", "Nowhere")]), "a field of Lost"),
    ],
)
def test_an_annotation_that_cannot_be_resolved_is_named(annotation: Any, complaint: str) -> None:
    with pytest.raises(RegistrationError, match=r"'take'.*'value'") as caught:
        tool_taking(annotation).get_tool_schemas()

    assert complaint in str(caught.value)
    assert (annotation if isinstance(annotation, str) else "Nowhere") in str(caught.value)


def test_a_limit_in_a_union_that_python_cannot_make_is_explained() -> None:
    made = tool_taking("Annotated[int, {'minimum': 1}] | None")

    if sys.version_info >= (3, 13):
        described = made.get_tool_schemas()[0]["function"]["parameters"]["properties"]["value"]
        assert described["anyOf"][0] == {**INTEGER, "minimum": 1}
    else:  # such a union needs metadata that can be hashed
        with pytest.raises(RegistrationError, match="around the whole union"):
            made.get_tool_schemas()


class Model:
    """Looks like a pydantic model from where the tool stands."""

    def __init__(self, inner: int) -> None:
        self.inner = inner

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
            "type": "object",
            "required": ["inner"],
            "minProperties": 1,
            "properties": {"inner": INTEGER, "nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        }

    @classmethod
    def model_validate(cls, value: Any) -> "Model":
        return cls(int(value["inner"]))

    def model_dump(self) -> dict[str, Any]:
        return {"inner": self.inner}


def test_a_model_that_makes_its_own_schema_keeps_its_definitions_apart_from_ours() -> None:
    def take(node: Node, model: Model) -> None: ...

    schema = parameters(take)

    assert set(schema["$defs"]) == {"Node", "Node_2"}
    assert schema["properties"]["model"]["properties"]["nodes"]["items"] == {"$ref": "#/$defs/Node_2"}
    assert schema["$defs"]["Node_2"]["properties"]["next"] == {"$ref": "#/$defs/Node_2"}


def test_a_model_that_makes_its_own_schema_also_reads_its_arguments() -> None:
    take = tool_taking(Model)

    assert take.execute_tool("take", {"value": {"inner": "3"}}) == {"success": True, "result": {"inner": 3}}
    with pytest.raises(ToolError, match="argument value: invalid literal"):
        take.execute_tool("take", {"value": {"inner": "three"}})

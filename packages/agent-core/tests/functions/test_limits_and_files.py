"""Limits in annotations, structs of msgspec, results that are files or say more than the model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import annotated_types
import msgspec
import pydantic
import pytest

from agent_core import AgentCore, File, RegistrationError, ToolError, ToolReturn, tool
from agent_core.testing import EchoProvider, ToolCall

if TYPE_CHECKING:
    from pathlib import Path


class Node(msgspec.Struct):
    """A node."""

    value: Annotated[int, msgspec.Meta(ge=0)]
    children: list[Node] = []


class Leaf(msgspec.Struct):
    name: str


def run(function: Any, **arguments: Any) -> dict[str, Any]:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_tool(function)
    [message] = core.execute_tool_calls(
        [ToolCall(function.__name__, arguments).to_dict(1)], {"provider": "echo"}
    )
    return message


def properties(function: Any) -> dict[str, Any]:
    schema: dict[str, Any] = tool(function).get_tool_schemas()[0]["function"]["parameters"]["properties"]
    return schema


def test_limits_of_annotated_types_and_pydantic_are_in_the_schema_and_hold() -> None:
    def book(
        seats: Annotated[int, annotated_types.Ge(1), annotated_types.Lt(10)],
        name: Annotated[str, pydantic.Field(min_length=2, pattern="^[A-Z]", description="Whose.")],
        days: Annotated[list[int], annotated_types.Len(1, 2)],
    ) -> str:
        """Book seats."""
        return f"{seats} for {name}"

    assert properties(book) == {
        "seats": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
        "name": {"type": "string", "minLength": 2, "pattern": "^[A-Z]", "description": "Whose."},
        "days": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    }
    assert run(book, seats=2, name="Ada", days=[1])["content"] == "2 for Ada"
    assert "the maximum of 10" in run(book, seats=10, name="Ada", days=[1])["content"]
    with pytest.raises(ToolError, match="0 is not at least 1"):
        tool(book).execute_tool("book", {"seats": 0, "name": "Ada", "days": [1]})
    with pytest.raises(ToolError, match="of a length of at most 2"):
        tool(book).execute_tool("book", {"seats": 1, "name": "Ada", "days": [1, 2, 3]})
    with pytest.raises(ToolError, match="text that fits"):
        tool(book).execute_tool("book", {"seats": 1, "name": "ada", "days": [1]})


def test_a_struct_is_described_and_made_by_msgspec() -> None:
    def total(node: Node, leaf: Leaf) -> int:
        return node.value + sum(child.value for child in node.children) + len(leaf.name)

    schema: dict[str, Any] = tool(total).get_tool_schemas()[0]["function"]["parameters"]

    assert schema["properties"]["node"] == {"$ref": "#/$defs/Node"}  # it contains itself
    assert schema["properties"]["leaf"]["properties"] == {"name": {"type": "string"}}
    answer = run(total, node={"value": 1, "children": [{"value": 2}]}, leaf={"name": "x"})
    assert answer["content"] == "4"
    with pytest.raises(ToolError, match=r"Expected `int` >= 0"):
        tool(total).execute_tool("total", {"node": {"value": -1}, "leaf": {"name": "x"}})


def test_a_result_may_show_something_else_and_leave_values_to_keep() -> None:
    def find() -> ToolReturn[int]:
        return ToolReturn(3, display={"type": "text", "content": "three rows"}, state={"rows": 3})

    message = run(find)

    assert message["content"] == "3"
    assert message["metadata"]["display"] == {"type": "text", "content": "three rows"}
    assert message["metadata"]["state_update"] == {"rows": 3}


def test_files_are_images_texts_or_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\xff")

    def look(name: str) -> list[Any]:
        return ["Here it is:", File.from_path(tmp_path / name)]

    image = run(look, name="a.png")["tool_result"]["parts"]
    assert image[1] == {"type": "image", "mime_type": "image/png", "data": "iVBORw=="}
    assert run(look, name="a.txt")["content"] == "Here it is:\nhello"
    assert "a.bin: application/octet-stream, 3 bytes" in run(look, name="a.bin")["content"]


def test_retries_are_a_number() -> None:
    with pytest.raises(RegistrationError, match="retries is -1"):
        tool(run, retries=-1)

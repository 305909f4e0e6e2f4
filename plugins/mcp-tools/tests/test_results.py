"""What is made of answers: nothing is said twice, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent

from mcp_tools.toolbox import tool_result


def answer(*texts: str, **fields: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], **fields)


@pytest.mark.parametrize(
    ("texts", "structured", "result"),
    [
        (["a cup"], {"result": "a cup"}, "a cup"),
        (['{"grams": 5}'], {"grams": 5}, '{"grams": 5}'),
        (["1", "2"], {"result": [1, 2]}, "1\n2"),
        (["a", "b"], {"result": ["a", "b"]}, "a\nb"),
        (["5"], {"result": 5}, "5"),
        (["It weighs 5 g."], {"grams": 5}, 'It weighs 5 g.\n{\n  "grams": 5\n}'),
        ([], {"grams": 5}, '{\n  "grams": 5\n}'),
        (["a cup"], None, "a cup"),
        ([], None, "(no content)"),
    ],
)
def test_structured_content_is_said_once(texts: list[str], structured: Any, result: str) -> None:
    assert tool_result(answer(*texts, structured_content=structured)) == {"success": True, "result": result}


def test_a_failure_without_words_has_some() -> None:
    assert tool_result(answer(is_error=True)) == {
        "success": False,
        "error": "the tool failed and does not say why",
    }


@pytest.mark.parametrize(
    ("mime_type", "data", "shown"),
    [
        ("image/png", "aGk=", True),
        ("IMAGE/PNG", "aGk=", True),
        ("image/svg+xml", "aGk=", False),
        ("image/png", "not base64!", False),
        ("image/png", "aGk", False),
        ("image/png", "", False),
        ("text/html", "aGk=", False),
    ],
)
def test_only_images_that_providers_take_are_images(mime_type: str, data: str, *, shown: bool) -> None:
    image = ImageContent(type="image", data=data, mime_type=mime_type)
    page = EmbeddedResource(
        type="resource", resource=BlobResourceContents(uri="memo://x", blob=data, mime_type=mime_type)
    )

    for block in (image, page):
        result = tool_result(CallToolResult(content=[block]))
        assert ("parts" in result) is shown
        assert ("left out" in result["result"]) is not shown

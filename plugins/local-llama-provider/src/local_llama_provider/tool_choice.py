"""Tool calls by a model that was never taught any: its answer is bound to a JSON Schema.

The schema has one branch per tool and one for a plain answer, so whatever the model says is well formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from agent_provider_kit import Dicts, JsonObject


def answer_format(tools: Dicts, *, answer: JsonObject | None = None, must_call: bool = False) -> JsonObject:
    """Return the `response_format` that lets the model answer or call one of the tools.

    Args:
        tools: The tools that it may call.
        answer: JSON Schema of the answer; text by default.
        must_call: Whether it must call one of the tools.
    """
    branches = [_branch(tool["function"]) for tool in tools]
    if not (must_call and branches):
        branches.insert(0, _object({"answer": answer or {"type": "string"}}))
    return form({"oneOf": branches})


def form(schema: JsonObject) -> JsonObject:
    """Return the `response_format` that binds an answer to a schema."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


def instructions(tools: Dicts) -> str:
    """Return what the model should know about the tools."""
    if not tools:
        return 'Reply with JSON only: {"answer": "..."}.'
    listed = "\n".join(_describe(tool["function"]) for tool in tools)
    return (
        'Reply with JSON only. To answer: {"answer": "..."}. '
        f'To use a tool: {{"name": "...", "arguments": {{...}}}}. Tools:\n{listed}'
    )


def read_answer(text: str) -> tuple[str, JsonObject | None]:
    """Return the plain answer, or the call that the model wants to make."""
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text, None
    if isinstance(said, dict) and isinstance(said.get("name"), str):
        arguments = orjson.dumps(said.get("arguments") or {}).decode()
        return "", {"type": "function", "function": {"name": said["name"], "arguments": arguments}}
    answer = said.get("answer", text) if isinstance(said, dict) else text
    return answer if isinstance(answer, str) else orjson.dumps(answer).decode(), None


def as_spoken(item: JsonObject) -> JsonObject:
    """Return an item of the history in words that the model's template knows."""
    if item["role"] == "tool":
        return {"role": "user", "content": f"Result of the tool: {item.get('content')}"}
    calls = item.get("tool_calls")
    if calls:
        function = calls[0].get("function") or {}
        said = f'{{"name": "{function.get("name")}", "arguments": {function.get("arguments") or "{}"}}}'
        return {"role": "assistant", "content": said}
    return {"role": item["role"], "content": _text(item.get("content"))}


def _branch(function: JsonObject) -> JsonObject:
    parameters = function.get("parameters") or {"type": "object"}
    return _object({"name": {"const": function["name"]}, "arguments": parameters})


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _describe(function: JsonObject) -> str:
    parameters = orjson.dumps((function.get("parameters") or {}).get("properties") or {}).decode()
    return f"- {function['name']}: {function.get('description', '')} Arguments: {parameters}"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""

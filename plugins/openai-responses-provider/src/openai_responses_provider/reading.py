"""Native items in readable form: all items of one turn become one message."""

from __future__ import annotations

from typing import Any

from agent_core.interop import ToolInteropRegistry
from agent_core.interop.arguments import encode
from openai_responses_provider.builtin import is_builtin, picture_in, told_in_short
from openai_responses_provider.kinds import (
    CUSTOM_CALL,
    METADATA,
    PLACE,
    REFUSED_BY,
    Item,
    Items,
    about,
    is_message,
    is_output,
    is_reasoning,
    is_tool_call,
    kind_of,
    role_of,
    turns,
)
from openai_responses_provider.outcome import refusal_in

_interop = ToolInteropRegistry.default()
_INTERNAL = (PLACE, REFUSED_BY)


def to_messages(items: Items) -> Items:
    """Return the items in readable form; each message tells which items it is made of."""
    return [_message([items[place] for place in turn], turn) for turn in turns(items)]


def text_of(item: Item) -> str:
    """Return the text of a message."""
    content = item.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(part["text"] for part in content if isinstance(part.get("text"), str))


def reasoning_of(item: Item) -> str:
    """Return what the model thought, as far as it shows that."""
    for field in ("summary", "content"):
        parts = item.get(field)
        if isinstance(parts, list) and (texts := [part["text"] for part in parts if part.get("text")]):
            return "\n\n".join(texts)
    return ""


def readable_call(item: Item) -> dict[str, Any]:
    """Return a call of one of our tools in the platform's form."""
    own = {"id": item.get("call_id") or item.get("id")}
    name = item.get("name") or ""
    if kind_of(item) == CUSTOM_CALL:
        return {**own, "type": "custom", "name": name, "input": item.get("input") or ""}
    arguments = item.get("arguments")
    text = arguments if isinstance(arguments, str) else encode(arguments or {})
    return {**own, "type": "function", "function": {"name": name, "arguments": text}}


def _message(items: Items, places: list[int]) -> dict[str, Any]:
    role = role_of(items[0])
    if role == "assistant":
        message = _assistant(items)
    elif role == "tool":
        message = _tool(items[0])
    else:
        message = _said(role, items[0])
    told = {key: value for item in items for key, value in about(item).items() if key not in _INTERNAL}
    return {**message, "metadata": {**message["metadata"], **told, "native_indices": places}}


def _said(role: str, item: Item) -> dict[str, Any]:
    metadata = {} if is_message(item) else {"item_type": kind_of(item)}
    message: dict[str, Any] = {"role": role, "content": text_of(item), "metadata": metadata}
    if isinstance(item.get("content"), list):
        message["multipartContent"] = item["content"]
    return message


def _tool(item: Item) -> dict[str, Any]:
    plain = {key: value for key, value in item.items() if key != METADATA}
    call_id = item.get("call_id") or item.get("approval_request_id")
    text = _interop.inspect_result({**plain, "type": "function_call_output"}).text if is_output(item) else ""
    return {"role": "tool", "content": text, "metadata": {"tool_call_id": call_id}, "tool_result": plain}


def _assistant(items: Items) -> dict[str, Any]:
    text = "\n\n".join(filter(None, (text_of(item) for item in items if is_message(item))))
    message: dict[str, Any] = {"role": "assistant", "content": text, "metadata": _about_turn(items)}
    pictures = [picture for item in items if (picture := picture_in(item)) is not None]
    if pictures:
        message["multipartContent"] = [*([{"type": "text", "text": text}] if text else []), *pictures]
    return message


def _about_turn(items: Items) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tool_calls": [readable_call(item) for item in items if is_tool_call(item)],
        "reasoning": "\n\n".join(filter(None, (reasoning_of(item) for item in items if is_reasoning(item)))),
        "refusal": "".join(map(refusal_in, items)),
        "annotations": [annotation for item in items for annotation in _annotations(item)],
        "server_tools": [told_in_short(item) for item in items if is_builtin(item)],
    }
    return {key: value for key, value in found.items() if value}


def _annotations(item: Item) -> list[Any]:
    content = item.get("content") if is_message(item) else None
    parts = content if isinstance(content, list) else []
    return [annotation for part in parts for annotation in part.get("annotations") or ()]

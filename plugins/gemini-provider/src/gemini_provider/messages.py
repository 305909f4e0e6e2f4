"""Messages as contents of the API, and back.

One message is one item, whatever the API wants to be sent: a system message has an item of its own, and
so has each tool result. `gemini_provider.sending` makes of them what the API takes.
"""

from __future__ import annotations

from typing import Any

from agent_core import ToolError
from agent_core.interop import (
    GEMINI_FUNCTION_CALL_FORMAT_ID,
    GEMINI_FUNCTION_RESPONSE_FORMAT_ID,
    OPENAI_CHAT_FUNCTION_FORMAT_ID,
    InspectedCall,
    ToolInteropRegistry,
    ToolInteropTarget,
)
from agent_core.interop.parts import as_text
from gemini_provider.calls import Call, calls_in, find_call, own_id
from gemini_provider.kinds import (
    Part,
    Parts,
    about,
    dropped_parts,
    is_call,
    is_response,
    is_text,
    is_thought,
    parts_of,
)
from gemini_provider.parts import from_part, read_foreign, to_part

Dicts = list[dict[str, Any]]

UNNAMED = "tool"
"""What a result is called whose tool nobody named; it gets its call's name when it is sent."""

_interop = ToolInteropRegistry.default()
_TARGET = ToolInteropTarget("gemini")
_READABLE = [OPENAI_CHAT_FUNCTION_FORMAT_ID]


def to_item(message: dict[str, Any]) -> dict[str, Any]:
    """Return one message in the API's form."""
    role = message["role"]
    if role == "tool":
        return {"role": "user", "parts": [_function_response(message)]}
    if role == "assistant":
        calls = (message.get("metadata") or {}).get("tool_calls") or ()
        return {"role": "model", "parts": [*_said_parts(message), *map(_function_call, calls)]}
    return {"role": role, "parts": _parts(message)}


def to_messages(items: Dicts) -> Dicts:
    """Return items in readable form: one message each, or one more for each result beside other content."""
    waiting: list[Call] = []
    messages: Dicts = []
    for index, item in enumerate(items):
        if item.get("role") == "model":
            waiting = calls_in(item)
            made = [_assistant(item)]
        else:
            made = _from_user(item, waiting)
        messages += [_at(index, message) for message in made]
    if len(messages) != len(items):
        return messages
    return [_without_index(message) for message in messages]  # the core counts one to one by itself


def reasoning_of(item: dict[str, Any]) -> str:
    """Return the summaries of what the model thought."""
    thoughts = [part["text"] for part in parts_of(item) if is_thought(part) and part.get("text")]
    return "\n\n".join(thoughts)


def _at(index: int, message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "metadata": {**message["metadata"], "native_indices": [index]}}


def _without_index(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "metadata": {k: v for k, v in message["metadata"].items() if k != "native_indices"}}


def _parts(message: dict[str, Any]) -> Parts:
    parts = message.get("multipartContent")
    if parts:
        return [to_part(part) for part in parts]
    text = _text(message)
    return [{"text": text}] if text else []


def _said_parts(message: dict[str, Any]) -> Parts:
    """Return what a model said; what another provider ran by itself is not put into its mouth."""
    parts = [made for part in message.get("multipartContent") or () if (made := read_foreign(part))]
    if any(map(is_text, parts)) or not message["content"]:
        return parts
    return [*parts, {"text": _text(message)}]


def _function_call(call: dict[str, Any]) -> Part:
    return _interop.convert_tool_call(call, target=_TARGET, target_formats=[GEMINI_FUNCTION_CALL_FORMAT_ID])


def _function_response(message: dict[str, Any]) -> Part:
    metadata = message.get("metadata") or {}
    call_id, name = metadata.get("tool_call_id"), str(metadata.get("tool_name") or UNNAMED)
    target = ToolInteropTarget("gemini", InspectedCall(call_id=call_id, tool_name=name, payload={}))
    try:
        return _interop.convert_tool_result(
            message.get("tool_result") or _unstructured(message),
            target=target,
            target_formats=[GEMINI_FUNCTION_RESPONSE_FORMAT_ID],
        )
    except ToolError:  # a stranger's structure; its text is there as well
        key = "error" if metadata.get("error") else "output"
        known = {"id": call_id} if call_id else {}
        return {"functionResponse": {**known, "name": name, "response": {key: _text(message)}}}


def _unstructured(message: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "text": _text(message)}
    if message.get("multipartContent"):
        result["parts"] = message["multipartContent"]
    if (message.get("metadata") or {}).get("error"):
        result["is_error"] = True
    return result


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "" if content is None else as_text(content)


def _from_user(item: dict[str, Any], waiting: list[Call]) -> Dicts:
    parts = parts_of(item)
    responses = [part for part in (*parts, *dropped_parts(item)) if is_response(part)]
    others = [part for part in parts if not is_response(part)]
    messages = [_tool_message(item, part, waiting) for part in responses]
    return [*messages, _plain(item, others)] if others or not responses else messages


def _plain(item: dict[str, Any], parts: Parts) -> dict[str, Any]:
    role = "system" if item.get("role") == "system" else "user"
    message: dict[str, Any] = {"role": role, "content": _joined(parts), "metadata": dict(about(item))}
    if len(parts) > 1 or not all(is_text(part) and len(part) == 1 for part in parts):
        message["multipartContent"] = [from_part(part) for part in parts]
    return message


def _tool_message(item: dict[str, Any], part: Part, waiting: list[Call]) -> dict[str, Any]:
    call = find_call(part, waiting)
    if call is not None:
        waiting.remove(call)
    metadata: dict[str, Any] = {
        "tool_call_id": own_id(part) or (call.id if call else None),
        "tool_name": part["functionResponse"].get("name"),
    }
    read = _interop.inspect_result(part)
    if read.is_error:
        metadata["error"] = {"type": "tool_failed"}
    known = {key: value for key, value in metadata.items() if value is not None}
    return {"role": "tool", "content": read.text, "metadata": {**known, **about(item)}, "tool_result": part}


def _assistant(item: dict[str, Any]) -> dict[str, Any]:
    parts = parts_of(item)
    message: dict[str, Any] = {
        "role": "assistant",
        "content": _joined(parts),
        "metadata": {**_told_by(item, parts), **about(item)},
    }
    shown = [part for part in parts if not is_thought(part) and not is_call(part)]
    if any(not is_text(part) for part in shown):
        message["multipartContent"] = [from_part(part) for part in shown]
    return message


def _told_by(item: dict[str, Any], parts: Parts) -> dict[str, Any]:
    bodies = [part for part in parts if is_call(part)]
    found = {
        "tool_calls": [_readable(*pair) for pair in zip(bodies, calls_in(item), strict=True)],
        "reasoning": reasoning_of(item),
        "server_tools": _server_tools(parts),
    }
    return {key: value for key, value in found.items() if value}


def _readable(part: Part, call: Call) -> dict[str, Any]:
    known = InspectedCall(call_id=call.id, tool_name=call.name or UNNAMED, payload={})
    named = {"functionCall": {**part["functionCall"], "name": known.tool_name}}
    return _interop.convert_tool_call(
        named, target=ToolInteropTarget("gemini", known), target_formats=_READABLE
    )


def _server_tools(parts: Parts) -> Dicts:
    """Return what the provider ran itself, each with its result if that is there."""
    tools: Dicts = []
    for part in parts:
        if isinstance(part.get("executableCode"), dict):
            code = part["executableCode"]
            tools.append({"id": code.get("id"), "name": "code_execution", "input": code})
        elif isinstance(part.get("toolCall"), dict):
            call = part["toolCall"]
            tools.append({"id": call.get("id"), "name": call.get("toolType"), "input": call.get("args")})
        else:
            _add_result(tools, part.get("codeExecutionResult") or part.get("toolResponse"))
    return tools


def _add_result(tools: Dicts, result: Any) -> None:
    if isinstance(result, dict):
        same = [tool for tool in tools if "result" not in tool and tool["id"] == result.get("id")]
        for tool in same[:1]:
            tool["result"] = result


def _joined(parts: Parts) -> str:
    return "".join(part["text"] for part in parts if is_text(part))

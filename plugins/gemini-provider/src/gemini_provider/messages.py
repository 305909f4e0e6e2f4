"""Messages as contents of the API, and back.

One message is one item, whatever the API wants to be sent: a system message has an item of its own, and
so has each tool result. `gemini_provider.request` turns the items into what the API takes.
"""

from __future__ import annotations

from hashlib import sha256
from mimetypes import guess_type
from typing import Any, NamedTuple
from uuid import uuid4

import orjson

from agent_core import ToolError
from agent_core.interop import (
    GEMINI_FUNCTION_CALL_FORMAT_ID,
    GEMINI_FUNCTION_RESPONSE_FORMAT_ID,
    OPENAI_CHAT_FUNCTION_FORMAT_ID,
    ToolInteropRegistry,
    ToolInteropTarget,
)
from agent_core.interop.parts import as_text, read_part
from agent_core.values import ToolCall
from agent_provider_kit import Dicts, JsonObject

Part = JsonObject
Parts = list[Part]

METADATA = "_metadata"
"""Where an item keeps what is only ours; it is never sent."""

DROPPED = "dropped_parts"
"""Where `_metadata` keeps parts that are not sent any more, each with the reason."""

SIGNATURE = "thoughtSignature"
CALL_IDS = "call_ids"
"""Where `_metadata` keeps an id for each call: None for those that have one of their own."""
_TEXTS = ("text", "input_text", "output_text")
_IMAGES = ("image", "image_url", "input_image")
_SENT_AS_TEXT = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
)
_WITH_DATA = frozenset({SIGNATURE, "thought"})
UNNAMED = "tool"
"""What a result is called whose tool nobody named; it gets its call's name when it is sent."""
_interop = ToolInteropRegistry.default()
_TARGET = ToolInteropTarget("gemini")
_READABLE = [OPENAI_CHAT_FUNCTION_FORMAT_ID]


def is_text(part: Part) -> bool:
    """Whether it is text, of a person or of the model, and no thought."""
    return isinstance(part.get("text"), str) and not is_thought(part)


def is_thought(part: Part) -> bool:
    """Whether it is what the model thought, and not what it says."""
    return part.get("thought") is True


def is_plain(part: Part) -> bool:
    """Whether it is text and nothing else, so that more text of its kind may join it."""
    if not isinstance(part.get("text"), str):
        return False
    return len(part) == 1 or (is_thought(part) and part.keys() == {"text", "thought"})


def is_call(part: Part) -> bool:
    """Whether it is a call of one of our tools."""
    return isinstance(part.get("functionCall"), dict)


def is_response(part: Part) -> bool:
    """Whether it is the result of one of our tools."""
    return isinstance(part.get("functionResponse"), dict)


def says_something(part: Part) -> bool:
    """Whether there is anything to send: empty text counts only with a signature or the like next to it."""
    return bool(part) and not (is_plain(part) and not part["text"])


def parts_of(item: JsonObject) -> Parts:
    """Return an item's parts, as far as they are any."""
    parts = item.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def about(item: JsonObject) -> JsonObject:
    """Return what only we know of an item."""
    found = item.get(METADATA)
    return found if isinstance(found, dict) else {}


def dropped_parts(item: JsonObject) -> Parts:
    """Return the parts that an item once had and that are not sent any more."""
    return [entry["part"] for entry in about(item).get(DROPPED) or []]


def put_aside(item: JsonObject, places: set[int], reason: str) -> JsonObject:
    """Return the item without the parts at *places*, which its `_metadata` keeps."""
    parts = parts_of(item)
    gone = [{"part": parts[place], "reason": reason} for place in sorted(places)]
    return {
        **item,
        "parts": [part for place, part in enumerate(parts) if place not in places],
        METADATA: {**about(item), DROPPED: [*(about(item).get(DROPPED) or []), *gone]},
    }


# Calls and their results, brought together by id or, where the API gives none, by name and order. A call
# that comes without an id keeps its part as it came. The id by which everyone else knows it is ours, and
# stands in the item's `_metadata`.


class Call(NamedTuple):
    """A call that waits for its result.

    Attributes:
        id: The id by which it is known.
        name: The tool's name.
        numbered: Whether the id is the provider's, and goes over the wire.
    """

    id: str
    name: str
    numbered: bool


def calls_in(item: JsonObject) -> list[Call]:
    """Return an item's calls in their order."""
    made = about(item).get(CALL_IDS) or ()
    bodies = [part["functionCall"] for part in parts_of(item) if is_call(part)]
    return [
        _call(body, number, made[number] if number < len(made) else None)
        for number, body in enumerate(bodies)
    ]


def own_id(part: Part) -> str | None:
    """Return the id that the provider gave a call or a result, if it gave one."""
    body = part.get("functionCall") or part.get("functionResponse")
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str) and found else None


def find_call(response: Part, waiting: list[Call]) -> Call | None:
    """Return the call that a result answers: the one of its id or, without an id, the first of its name."""
    wanted = own_id(response)
    name = response["functionResponse"].get("name")
    if wanted is not None:
        return next((call for call in waiting if call.id == wanted), None)
    return next((call for call in waiting if call.name == name), None)


def make_id(response_id: str | None, number: int) -> str:
    """Return an id for a call that came without one; the same for the same call of the same response."""
    if response_id is None:
        return f"call_{uuid4().hex}"
    return f"call_{sha256(f'{response_id}/{number}'.encode('utf-8', 'replace')).hexdigest()[:24]}"


def _call(body: JsonObject, number: int, made: str | None) -> Call:
    own = body.get("id")
    name = str(body.get("name") or "")
    if isinstance(own, str) and own:
        return Call(own, name, numbered=True)
    return Call(made or _derived(body, number), name, numbered=False)


def _derived(body: JsonObject, number: int) -> str:
    """Return an id for a call that nobody gave one: from elsewhere, so only its content identifies it."""
    return f"call_{sha256(orjson.dumps([number, body], option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]}"


# Parts of a message in any dialect as the API takes them, and back.


def to_part(part: Part) -> Part:
    """Return a part as the API takes it; a note, if the API cannot take it."""
    return read_foreign(part) or _left_out(part)


def read_foreign(part: Part) -> Part | None:
    """Return a part as the API takes it, or None if there is no way to."""
    kind = part.get("type")
    if kind is None or "inlineData" in part or "fileData" in part:
        return part
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return {"text": part["text"]}
    if kind in _IMAGES:
        part = read_part({"mime_type": "image/png", **part})
    return _media(part)


def from_part(part: Part) -> Part:
    """Return a part in the platform's form where it has one; others stay in the API's."""
    if is_text(part) and part.keys() <= {"text", SIGNATURE}:
        return {"type": "text", "text": part["text"]}
    inline, file = part.get("inlineData"), part.get("fileData")
    if not part.keys() <= {"inlineData", "fileData"} | _WITH_DATA:
        return part
    if isinstance(inline, dict) and inline.keys() == {"mimeType", "data"}:
        return _known(inline["mimeType"], {"data": inline["data"]})
    if isinstance(file, dict) and file.keys() == {"mimeType", "fileUri"}:
        return _known(file["mimeType"], {"url": file["fileUri"]})
    return part


def _known(mime_type: Any, content: Part) -> Part:
    kind = "image" if str(mime_type).startswith("image/") else "file"
    return {"type": kind, "mime_type": mime_type, **content}


def _media(part: Part) -> Part | None:
    inner = next((part[name] for name in ("file", "input_audio") if isinstance(part.get(name), dict)), part)
    mime_type, data = _data_in(inner)
    if data is not None:
        sent = "text/plain" if mime_type in _SENT_AS_TEXT else mime_type
        return {"inlineData": {"mimeType": sent, "data": data}}
    url = inner.get("url") or inner.get("file_url")
    if not isinstance(url, str):
        return None
    guessed = part.get("mime_type") or guess_type(url.partition("?")[0])[0]
    return {"fileData": {**({"mimeType": guessed} if guessed else {}), "fileUri": url}}


def _data_in(part: Part) -> tuple[str, str | None]:
    """Return the type and the data as base64, wherever they are."""
    data = part.get("data", part.get("file_data"))
    if not isinstance(data, str):
        return "", None
    head, comma, body = data.partition(";base64,")
    if comma and head.startswith("data:"):
        return head.removeprefix("data:"), body
    audio = f"audio/{part['format']}" if isinstance(part.get("format"), str) else None
    named = guess_type(str(part.get("name") or part.get("filename") or ""))[0]
    return str(part.get("mime_type") or audio or named or "application/octet-stream"), data


def _left_out(part: Part) -> Part:
    what = part.get("name") or part.get("type")
    return {"text": f"[{what} left out: it cannot be read here]"}


def to_item(message: JsonObject) -> JsonObject:
    """Return one message in the API's form."""
    role = message["role"]
    if role == "tool":
        return {"role": "user", "parts": [_function_response(message)]}
    if role == "assistant":
        calls = (message.get("metadata") or {}).get("tool_calls") or ()
        return {"role": "model", "parts": [*_said_parts(message), *map(_function_call, calls)]}
    return {"role": role, "parts": _parts(message)}


def to_messages(items: Dicts) -> Dicts:
    """Return items in readable form: one message each, or one more for each result next to other content."""
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


def reasoning_of(item: JsonObject) -> str:
    """Return the summaries of what the model thought."""
    thoughts = [part["text"] for part in parts_of(item) if is_thought(part) and part.get("text")]
    return "\n\n".join(thoughts)


def _at(index: int, message: JsonObject) -> JsonObject:
    return {**message, "metadata": {**message["metadata"], "native_indices": [index]}}


def _without_index(message: JsonObject) -> JsonObject:
    return {**message, "metadata": {k: v for k, v in message["metadata"].items() if k != "native_indices"}}


def _parts(message: JsonObject) -> Parts:
    parts = message.get("multipartContent")
    if parts:
        return [to_part(part) for part in parts]
    text = _text(message)
    return [{"text": text}] if text else []


def _said_parts(message: JsonObject) -> Parts:
    """Return what a model said; what another provider ran by itself is not put into its mouth."""
    parts = [made for part in message.get("multipartContent") or () if (made := read_foreign(part))]
    if any(map(is_text, parts)) or not message["content"]:
        return parts
    return [*parts, {"text": _text(message)}]


def _function_call(call: JsonObject) -> Part:
    return _interop.convert_tool_call(call, target=_TARGET, target_formats=[GEMINI_FUNCTION_CALL_FORMAT_ID])


def _function_response(message: JsonObject) -> Part:
    metadata = message.get("metadata") or {}
    call_id, name = metadata.get("tool_call_id"), str(metadata.get("tool_name") or UNNAMED)
    target = ToolInteropTarget("gemini", ToolCall(call_id=call_id, tool_name=name, payload={}))
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


def _unstructured(message: JsonObject) -> JsonObject:
    result: JsonObject = {"type": "tool_result", "text": _text(message)}
    if message.get("multipartContent"):
        result["parts"] = message["multipartContent"]
    if (message.get("metadata") or {}).get("error"):
        result["is_error"] = True
    return result


def _text(message: JsonObject) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "" if content is None else as_text(content)


def _from_user(item: JsonObject, waiting: list[Call]) -> Dicts:
    parts = parts_of(item)
    responses = [part for part in (*parts, *dropped_parts(item)) if is_response(part)]
    others = [part for part in parts if not is_response(part)]
    messages = [_tool_message(item, part, waiting) for part in responses]
    return [*messages, _plain(item, others)] if others or not responses else messages


def _plain(item: JsonObject, parts: Parts) -> JsonObject:
    role = "system" if item.get("role") == "system" else "user"
    message: JsonObject = {"role": role, "content": _joined(parts), "metadata": dict(about(item))}
    if len(parts) > 1 or not all(is_text(part) and len(part) == 1 for part in parts):
        message["multipartContent"] = [from_part(part) for part in parts]
    return message


def _tool_message(item: JsonObject, part: Part, waiting: list[Call]) -> JsonObject:
    call = find_call(part, waiting)
    if call is not None:
        waiting.remove(call)
    metadata: JsonObject = {
        "tool_call_id": own_id(part) or (call.id if call else None),
        "tool_name": part["functionResponse"].get("name"),
    }
    read = _interop.inspect_result(part)
    if read.is_error:
        metadata["error"] = {"type": "tool_failed"}
    known = {key: value for key, value in metadata.items() if value is not None}
    return {"role": "tool", "content": read.text, "metadata": {**known, **about(item)}, "tool_result": part}


def _assistant(item: JsonObject) -> JsonObject:
    parts = parts_of(item)
    message: JsonObject = {
        "role": "assistant",
        "content": _joined(parts),
        "metadata": {**_metadata_of(item, parts), **about(item)},
    }
    shown = [part for part in parts if not is_thought(part) and not is_call(part)]
    if any(not is_text(part) for part in shown):
        message["multipartContent"] = [from_part(part) for part in shown]
    return message


def _metadata_of(item: JsonObject, parts: Parts) -> JsonObject:
    bodies = [part for part in parts if is_call(part)]
    found = {
        "tool_calls": [_readable(*pair) for pair in zip(bodies, calls_in(item), strict=True)],
        "reasoning": reasoning_of(item),
        "server_tools": _server_tools(parts),
    }
    return {key: value for key, value in found.items() if value}


def _readable(part: Part, call: Call) -> JsonObject:
    known = ToolCall(call_id=call.id, tool_name=call.name or UNNAMED, payload={})
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

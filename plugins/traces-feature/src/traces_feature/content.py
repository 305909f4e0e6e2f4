"""What is recorded of messages, arguments and results: as the conventions have it, and without secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_core.encoding import canonical, parse
from agent_plugin_kit.secrets import SHAPES, is_secret_field

_LONGEST = 8000
_MARK = "[secret]"
_FINISH = {"tool_calls": "tool_call", "complete": "stop", "natural_end": "stop"}


def shown_text(text: str) -> str:
    """Return a text without what looks like a key, and not too long."""
    for shape in SHAPES:
        if any(start in text for start in shape.starts):
            text = shape.expression.sub(lambda found: found[0].replace(found[1], _MARK), text)
    return text[:_LONGEST]


def shown_value(value: object) -> str:
    """Return arguments as JSON, without secrets; a text stays one."""
    return shown_text(value) if isinstance(value, str) else canonical(_plain(value)).decode()


def shown_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return messages of a session as the conventions have them."""
    return canonical([_message(message) for message in messages]).decode()


def shown_answer(text: str, reason: str) -> str:
    """Return the last words of a run as the conventions have a message."""
    return shown_messages([{"role": "assistant", "content": text, "metadata": {"ending": reason}}])


def finish_reason(message: Mapping[str, Any]) -> str:
    """Return why the model ended an answer, in the words of the conventions."""
    about = message["metadata"]
    ending = str(about.get("ending") or about.get("finish_reason") or "stop")
    return _FINISH.get(ending, ending)


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message["role"], "parts": list(_parts(message))}
    if message["role"] == "assistant":
        made["finish_reason"] = finish_reason(message)
    return made


def _parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    about = message["metadata"]
    if message["role"] == "tool":
        response = shown_text(str(message["content"]))
        yield {"type": "tool_call_response", "id": about.get("tool_call_id"), "response": response}
        return
    if message["content"]:
        yield {"type": "text", "content": shown_text(str(message["content"]))}
    for part in message.get("multipartContent") or ():
        if part.get("type") != "text":  # texts are in the content
            yield {"type": str(part.get("type"))}
    for call in about.get("tool_calls") or ():
        called = call.get("function") or {}
        arguments = _plain(_read(called.get("arguments", call.get("input"))))
        yield {"type": "tool_call", "id": call.get("id"), "name": called.get("name"), "arguments": arguments}


def _read(arguments: object) -> object:
    """Return what the model sent as an argument; a text where it is not JSON."""
    try:
        return parse(arguments.encode()) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def _plain(value: object) -> object:
    """Return JSON data without the texts of secret fields, and without what looks like a key."""
    if isinstance(value, Mapping):
        return {
            name: _MARK if isinstance(item, str) and is_secret_field(name) else _plain(item)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return shown_text(value) if isinstance(value, str) else value

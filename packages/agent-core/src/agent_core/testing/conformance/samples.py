"""The conversation, the models and the tools that plugins are shown."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from agent_core.frozen import freeze, thaw
from agent_core.models import ToolDescriptor
from agent_core.testing.script import Reply
from agent_core.testing.scripted import ScriptedProvider

Dicts = list[dict[str, Any]]

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"word":"tea"}'},
}
ANSWER = {"role": "assistant", "content": "It is a drink.", "metadata": {}}
_CONVERSATION = freeze(
    [
        {"role": "system", "content": "Be brief.", "metadata": {}},
        {"role": "user", "content": "What is tea?", "metadata": {}},
        {"role": "assistant", "content": "Let me look.", "metadata": {"tool_calls": [CALL]}},
        {
            "role": "tool",
            "content": "tea: a drink",
            "metadata": {"tool_call_id": "call_1", "tool_name": "look_up"},
            "tool_result": {"type": "tool_result", "text": "tea: a drink"},
        },
        ANSWER,
        {"role": "user", "content": "Thank you.", "metadata": {}},
    ]
)
PARTS = {
    "role": "user",
    "content": "What is this?",
    "metadata": {},
    "multipartContent": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAAAAADs="}},
    ],
}


def conversation() -> Dicts:
    """Return a message of every role, a tool call and its structured result, as plain dicts."""
    messages: Dicts = thaw(_CONVERSATION)
    return messages


def descriptors() -> list[ToolDescriptor]:
    """Return two tools, as features see them."""
    return [_descriptor("look_up", "Look a word up."), _descriptor("sum_up", "Sum a text up.")]


def _descriptor(name: str, description: str) -> ToolDescriptor:
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    function = {"name": name, "description": description, "parameters": parameters}
    schema: Any = {"type": "function", "function": function}
    return ToolDescriptor(
        name=name, schema=schema, plugin="library", description=description, metadata={}, prepared={}
    )


def neighbour() -> ScriptedProvider:
    """Return the provider beside which extensions and features are checked: it calls and streams."""
    reply = Reply(chunks=["One ", "two ", "three."], usage={"output_tokens": 3})
    return ScriptedProvider(repeat(reply), name="conformance_provider")

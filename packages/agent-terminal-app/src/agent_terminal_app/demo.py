"""A model without a model, for demonstrations and tests: it says what it was asked, a little at a time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

_GREETING = (
    "I am a **demonstration**, not a model: I repeat what you say.\n\n"
    "- `/help` lists the commands\n"
    "- say *time* and I use a tool\n"
)


class DemoProvider(ScriptedProvider):
    """Answers every message by a rule; the same messages give the same answers."""

    name = "demo"

    def __init__(self) -> None:
        super().__init__(itertools.repeat(_answer), name="demo")


class DemoTools:
    """Something for the demonstration to call."""

    name = "demo_tools"
    version = "1"
    default_enabled = True

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool."""
        parameters = {"type": "object", "properties": {}, "additionalProperties": False}
        function = {"name": "clock", "description": "Tell the time of the demo.", "parameters": parameters}
        return [{"type": "function", "function": function}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Tell a time, always the same."""
        return {"success": True, "result": "12:00"}


def _answer(messages: list[dict[str, Any]]) -> Reply:
    last = messages[-1]
    if last["role"] == "tool":
        return Reply(chunks=list(_pieces(f"It is {last['content']}.")))
    said = str(last["content"])
    if "time" in said.lower():
        return Reply(text="", tool_calls=[ToolCall("clock", {})])
    asked = sum(message["role"] == "user" for message in messages)
    text = _GREETING if asked == 1 and said.lower().strip(" !.") in ("hello", "hi") else f"You said: {said}"
    return Reply(chunks=list(_pieces(text)), usage={"input_tokens": len(said), "output_tokens": len(text)})


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), 8):
        yield text[start : start + 8]

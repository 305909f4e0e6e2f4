"""A model without a model, for demonstrations and tests: it says what it was asked, a little at a time.

Some words make it show more: how it thinks, a table, a slow tool, a call that needs permission.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_GREETING = (
    "I am a **demonstration**, not a model: I repeat what you say.\n\n"
    "- `/help` lists the commands\n"
    "- say *time* and I use a tool, *count* for one that takes its time\n"
    "- say *think*, *table*, *code* or *write* to see how these look\n"
)
_TABLE = (
    "| City | Where | People |\n|:-----|:------|-------:|\n"
    "| 東京 | Japan, on the island of Honshū, at the bay of the same name | 14,000,000 |\n"
    "| Köln | Germany | 1,100,000 |\n| **Oslo** | Norway 🇳🇴 | 700,000 |\n\nThat was a table.\n"
)
_CODE = '''```python
from dataclasses import dataclass


@dataclass(frozen=True)
class Tea:
    """A cup of tea.

    It is ready when it has been drawn for some minutes.
    """

    name: str
    minutes: float = 3.5

    def is_ready(self, waited: float) -> bool:
        # Green tea becomes bitter, so nobody should wait for long.
        return waited >= self.minutes


print([Tea(name) for name in ("Assam", "Sencha")])
```

That was code.
'''
_THOUGHTS = "Somebody wants to see how I think.\n\nI do not think, but I can pretend.\n"
_DIFF = "--- notes.txt\n+++ notes.txt\n@@ -1 +1 @@\n-nothing yet\n+a note\n"
_PACE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtfulReply(Reply):
    """A reply with what the model thinks before it speaks."""

    thoughts: str = ""

    def play(self, calls_before: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the thoughts, then the reply."""
        yield from ({"reasoning": piece} for piece in _pieces(self.thoughts))
        yield from Reply.play(self, calls_before)


class DemoProvider(ScriptedProvider):
    """Answers every message by a rule; the same messages give the same answers."""

    name = "demo"

    def __init__(self) -> None:
        super().__init__(itertools.repeat(_answer), name="demo", record=False)

    def process_chunk(
        self, chunk: dict[str, Any], native_messages: list[dict[str, Any]], state: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
        """Tell thoughts from words."""
        if "reasoning" not in chunk:
            return super().process_chunk(chunk, native_messages, state)
        thought = {"role": "assistant", "content": "", "reasoning": chunk["reasoning"]}
        return [thought], [], native_messages, state


class DemoTools:
    """Something for the demonstration to call."""

    name = "demo_tools"
    version = "1"
    default_enabled = True

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools."""
        return [
            _schema("clock", "Tell the time of the demo."),
            _schema("write_note", "Pretend to write a note; the user is asked first."),
        ]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Tell a time, always the same, or say that a note was written."""
        return {"success": True, "result": "12:00" if tool_name == "clock" else "written"}

    def format_tool_call_display(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Show what a note would change."""
        return {"type": "diff", "content": _DIFF} if tool_name == "write_note" else None


class DemoCounter:
    """A tool that takes its time and reports its progress."""

    name = "demo_counter"
    version = "1"
    default_enabled = True

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool."""
        return [_schema("count", "Count slowly.", upto={"type": "integer", "minimum": 1})]

    async def stream_tool(self, tool_name: str, arguments: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Count, one number after the other."""
        upto = int(arguments.get("upto", 10))
        for number in range(1, upto + 1):
            yield {"part": f"number {number}\n"}
            await asyncio.sleep(5 * _PACE)
        yield {"success": True, "result": f"counted to {upto}"}


def _schema(name: str, description: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def _answer(messages: list[dict[str, Any]]) -> Reply:
    last = messages[-1]
    said = str(last["content"])
    if last["role"] == "tool":
        return _say(_about_result(said), messages)
    for pattern, answer in _RULES:
        if (found := re.search(pattern, said, re.IGNORECASE)) is not None:
            return replace(answer(found), usage=_usage(messages))
    asked = sum(message["role"] == "user" for message in messages)
    if asked == 1 and said.lower().strip(" !.") in ("hello", "hi"):
        return _say(_GREETING, messages)
    attached = len(last.get("parts") or ())
    return _say(f"You said: {said}" + (f"\n\n{attached - 1} attached." if attached > 1 else ""), messages)


def _say(text: str, messages: list[dict[str, Any]]) -> Reply:
    return Reply(chunks=list(_pieces(text)), usage=_usage(messages, text))


def _usage(messages: list[dict[str, Any]], text: str = "") -> dict[str, int]:
    """Count a token for each four characters, as people do."""
    sent = sum(len(str(message["content"])) for message in messages)
    return {"input_tokens": sent // 4 + 1, "output_tokens": len(text) // 4 + 1}


def _about_result(result: str) -> str:
    return f"It is {result}." if re.fullmatch(r"\d\d:\d\d", result) else f"The tool says: {result}"


def _stream(found: re.Match[str]) -> Reply:
    """Say many words, at the pace of a fast model."""
    words = [f"word{number} " + ("\n" if number % 12 == 0 else "") for number in range(1, int(found[1]) + 1)]
    return Reply(chunks=words, delay=_PACE / 40)


_RULES: tuple[tuple[str, Callable[[re.Match[str]], Reply]], ...] = (
    (r"\bstream (\d{1,5})\b", _stream),
    (r"\btime\b", lambda _: Reply(text="", tool_calls=[ToolCall("clock", {})])),
    (r"\bcount(?: to (\d{1,4}))?\b", lambda found: _call("count", upto=int(found[1] or 10))),
    (r"\bwrite\b", lambda _: _call("write_note")),
    (r"\btable\b", lambda _: Reply(chunks=list(_pieces(_TABLE)))),
    (r"\bcode\b", lambda _: Reply(chunks=list(_pieces(_CODE)))),
    (r"\bthink\b", lambda _: ThoughtfulReply(text="I have thought.", thoughts=_THOUGHTS, delay=_PACE)),
)


def _call(name: str, **arguments: Any) -> Reply:
    return Reply(text="", tool_calls=[ToolCall(name, arguments)])


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), 8):
        yield text[start : start + 8]

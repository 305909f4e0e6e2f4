"""A process that serves many sessions uses no more after thousands of turns than after the first.

The test is short in plain pytest; `FAULTS=long` (`make test-faults`) has 3,000 turns.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime.testing import assert_steady

if TYPE_CHECKING:
    from pathlib import Path

TURNS = 3_000 if os.environ.get("FAULTS") == "long" else 100
WARM_UP = 80  # more sessions than the application remembers
BLOCKS = 2_000 + TURNS // 2  # of memory that may come and go; a leak has hundreds for each turn
CONFIG = {
    "agents": {"main": {"model": "m", "plugin_ids": ["dictionary"], "sections": {"results": {}}}},
    "models": {"m": {"provider": "scripted"}},
}


class Dictionary:
    """Places a method, and a function that becomes a tool each time."""

    name = "dictionary"
    version = "1"

    @tool
    def look_up(self, word: str) -> str:
        """Look a word up."""
        return f"{word}: no entry"

    def register(self, registrar: Any) -> None:
        registrar.tool("look_up", self.look_up)
        registrar.tool("spell", tool(spell))


def spell(word: str) -> str:
    """Spell a word."""
    return " ".join(word)


def answer(native_messages: list[dict[str, Any]]) -> Reply | str:
    if native_messages[-1]["role"] == "tool":
        return "Nothing."
    return Reply(tool_calls=[ToolCall("look_up", {"word": "tea"})])


def test_many_turns_use_no_more_than_the_first_ones(tmp_path: Path) -> None:
    plugins = [ScriptedProvider(itertools.repeat(answer), record=False), Dictionary]
    store = f"sqlite:///{tmp_path}/sessions.db"
    app = AgentApplication(CONFIG, store=store, plugins=plugins, installed=False)

    async def chat(_turn: int) -> None:
        session_id = app.create_session().session_id
        events = [event async for event in app.chat_async(session_id, "What is tea?")]
        assert events[-1]["type"] == "final"
        async with app.subscribe_async(session_id) as log:  # and leaves, as a browser does
            assert (await anext(log))["type"] == "session_created"

    with app:
        assert_steady(chat, warm_up=WARM_UP, turns=TURNS, blocks=BLOCKS)

"""The house tour: one message enters the files in the order in which the page lists them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from types import FrameType

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "house-tour.md"
CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}


@tool(name="look")
def look() -> str:
    """Look."""
    return "nothing to see"


class Tools:
    name, version = "tools", "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("look", look)


def entered(tmp_path: Path) -> list[str]:
    """Return our files in the order in which a message with a tool call first enters them."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and "/src/agent_" in file:
            files.setdefault(file.split("/src/")[-1])

    script: list[Any] = [Reply(text="Let me look.", tool_calls=[ToolCall("look", {})]), "There is nothing."]
    plugins = [ScriptedProvider(script), Tools]
    store = f"sqlite:///{tmp_path}/sessions.db"
    with AgentApplication(CONFIG, store=store, plugins=plugins, installed=False) as app:
        session_id = app.create_session().session_id
        sys.setprofile(note)
        try:
            events = list(app.chat(session_id, "What is there?"))
        finally:
            sys.setprofile(None)
    assert events[-1]["text"] == "There is nothing."
    return list(files)


def test_a_message_goes_where_the_tour_says(tmp_path: Path) -> None:
    rows = re.findall(r"^\| \d+ \| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    stops = [stop for row in rows for stop in re.findall(r"`([a-z_/]+\.py)`", row)]
    order = entered(tmp_path)

    assert len(stops) > 15
    assert [stop for stop in order if stop in stops] == stops

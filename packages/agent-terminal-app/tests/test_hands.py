"""An agent with hands, in a chat: it reads a file, proposes an edit, waits, applies it, and it is undone."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = """
model = "scripted"
[models.scripted]
provider = "openai_compatible"
model = "scripted-model"
[plugins.openai_compatible]
base_url = "{url}/v1"
api_key = "env:SCRIPTED_KEY"
"""
EDIT = {"path": "poem.txt", "old": "red", "new": "blue"}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def chat(tmp_path: Path, server: ScriptedServer) -> Iterator[Terminal]:
    """A chat in a project with a poem, with a model that is asked through a real connection."""
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".config" / "agent").mkdir(parents=True)
    (home / ".config" / "agent" / "config.toml").write_text(CONFIG.format(url=server.url))
    project.mkdir()
    (project / "poem.txt").write_text("roses are red\n")
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    own = {"HOME": str(home), "SCRIPTED_KEY": "secret", "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "agent_terminal_app", "chat"]
    with Terminal(command, environment={**kept, **own}, folder=project, columns=120, rows=60) as terminal:
        yield terminal


def test_an_edit_is_shown_asked_for_made_and_undone(
    chat: Terminal, server: ScriptedServer, tmp_path: Path
) -> None:
    poem = tmp_path / "project" / "poem.txt"
    server.play(
        chat_reply(tool_calls=[ToolCall("read_file", {"path": "poem.txt"}, "c1")]),
        chat_reply(tool_calls=[ToolCall("edit_file", EDIT, "c2")]),
    )
    chat.expect("scripted")
    chat.expect_line("ready")

    chat.type("Make the roses blue.\r")
    chat.expect("-roses are red")
    chat.expect("+roses are blue")
    chat.expect("[y]")
    chat.expect_line("your answer")
    assert poem.read_text() == "roses are red\n"  # nothing happens before somebody says so
    server.play(chat_reply("The roses are blue now."))
    chat.type("1\r")
    chat.expect("The roses are blue now.")
    assert poem.read_text() == "roses are blue\n"

    chat.expect_line("ready")
    chat.type("/undo\r")
    chat.expect_line("press 1 2 3")
    chat.type("1")
    chat.expect("+roses are red")  # the plan, before anything happens
    chat.expect_line("type your answer")
    assert poem.read_text() == "roses are blue\n"
    chat.type("\r")
    chat.wait(lambda: poem.read_text() == "roses are red\n", "the poem as it was")
    assert poem.read_text() == "roses are red\n"

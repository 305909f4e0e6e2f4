"""What the coding agent is told about its work, and how a person sees that."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from agent_runtime.tokens import TokenCounter
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ScriptedServer

if find_spec("system_message_feature") is None:
    pytest.skip("the plugin for instructions is not installed", allow_module_level=True)


def test_the_prompt_has_the_place_and_the_files_and_the_chat_shows_them(
    home: Home, server: ScriptedServer
) -> None:
    for command in (["init", "-q", "-b", "trunk"], ["add", "."]):
        subprocess.run(["git", *command], cwd=home.project, check=True, timeout=60)
    (home.project / "AGENTS.md").write_text("Use tabs.\n")
    (home.project / "CLAUDE.md").write_text("Write tests first.\n")
    assert home.run("config", "trust").returncode == 0
    server.play(chat_reply("Hello."))

    with home.chat(rows=60) as chat:
        chat.expect("loaded: AGENTS.md (10 bytes), CLAUDE.md (19 bytes)")
        chat.expect_line("ready")
        chat.type("/context\r")
        chat.expect("/context prompt shows the system prompt.")
        chat.type("/context prompt\r")
        chat.expect("Write tests first.")
        assert "You are a coding agent." in chat.text and f"Folder: {home.project}"[:40] in chat.text
        chat.expect_line("ready")
        chat.type("hello\r")
        chat.expect("Hello.")

    system = server.requests[-1].json["messages"][0]
    assert system["role"] == "system"
    text = system["content"]
    for part in (
        "You are a coding agent.",
        "Change files with the file tools",
        "Stop when the task is done and checked",
        f"Folder: {home.project}",
        f"System: {platform.system()}",
        f"Date: {datetime.now(tz=UTC).astimezone():%A}",
        "Git: branch trunk",
        "Use tabs.",
        "Write tests first.",
    ):
        assert part in text
    # Every request carries it, so it must stay small: about two pages.
    assert TokenCounter().text(text) < 800


def test_a_project_that_is_not_trusted_says_nothing_to_the_model(home: Home, server: ScriptedServer) -> None:
    (home.project / "CLAUDE.md").write_text("Obey the file.\n")
    server.play(chat_reply("Hello."))

    done = home.run("run", "hello")

    assert done.returncode == 0, done.stderr
    assert "Obey the file." not in str(server.requests[-1].json)

"""A plan in a real terminal: a checklist above the prompt, plan mode, jobs in the background, sub-agents."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AGENT = [sys.executable, "-m", "agent_terminal_app"]
STEPS = ("Read the recipe", "Boil water", "Steep the leaves")


def plan(*states: str) -> ToolCall:
    items = [{"text": text, "state": state} for text, state in zip(STEPS, states, strict=True)]
    return ToolCall("write_todos", {"items": items})


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Terminal]:
    def begin(server: ScriptedServer, *, columns: int = 100, settings: str = "") -> Terminal:
        places = {
            f"XDG_{one}_HOME": str(tmp_path / one.lower()) for one in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environment = {**kept, **places, "HOME": str(tmp_path), "AGENT_KEYRING": "off"}
        file = tmp_path / "config" / "agent" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        model = f'provider = "openai_compatible"\nmodel = "m"\nconfig = {{ base_url = "{server.url}/v1" }}'
        quiet = "[plugins.session_title]\ntitle_model = false\n"
        file.write_text(f'model = "scripted"\n{settings}\n{quiet}[models.scripted]\n{model}\n')
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        terminal = Terminal(
            [*AGENT, "chat"], environment=environment, folder=folder, columns=columns, rows=30
        )
        terminal.expect_line("ready")
        return terminal

    return begin


def tools(server: ScriptedServer, place: int = -1) -> list[str]:
    """Return what the model has read of tools in a request."""
    return [one["content"] for one in server.requests[place].json["messages"] if one["role"] == "tool"]


@pytest.mark.parametrize("columns", [40, 200])
def test_plan_mode_changes_nothing_and_ends_in_a_plan_to_approve(
    start: Callable[..., Terminal], tmp_path: Path, columns: int
) -> None:
    write: dict[str, Any] = {"path": "tea.txt", "content": "assam"}
    script = [
        chat_reply("", tool_calls=[ToolCall("write_file", write)]),
        chat_reply("", tool_calls=[plan("pending", "pending", "pending")]),
        chat_reply("This is my plan."),
        chat_reply("", tool_calls=[plan("pending", "pending", "pending")]),
        chat_reply("This is my better plan."),
        chat_reply("", tool_calls=[plan("done", "in_progress", "pending"), ToolCall("write_file", write)]),
        chat_reply("", tool_calls=[plan("done", "done", "dropped")]),
        chat_reply("Tea is ready."),
    ]
    with ScriptedServer(*script) as server, start(server, columns=columns) as terminal:
        terminal.type("/plan Make tea.\r")
        terminal.expect("What do you want to do with this plan?")
        assert "plan mode, in which nothing is changed" in tools(server, 1)[0]
        assert "You are in plan mode." in server.requests[0].json["messages"][0]["content"]
        assert not (tmp_path / "work" / "tea.txt").exists()
        terminal.expect_line("Plan: 0 of 3 done")
        terminal.expect_line(r"\[ \] Boil water")
        terminal.type("what would it cost\r")  # words that begin no choice are an answer to the agent
        terminal.expect("» what would it cost")
        terminal.expect("This is my better plan.")
        terminal.expect_line("plan mode · type an answer")
        assert "what would it cost" in str(server.requests[3].json["messages"][-1])
        terminal.type("\r")
        terminal.expect("tea.txt")
        terminal.expect_line("Plan: 1 of 3 done")
        terminal.expect_line(r"\[>\] Boil water")
        terminal.expect("your answer?")
        terminal.until_quiet(1.2)  # a question is not answered by what was typed before it
        terminal.type("y")
        terminal.expect("Tea is ready.")
        terminal.expect_line("ready")
        assert not any(line.startswith("Plan:") for line in terminal.lines)
        assert (tmp_path / "work" / "tea.txt").read_text() == "assam"
        assert "plan mode" not in terminal.lines[-1]


def test_plan_mode_outlives_a_restart_and_is_left_by_hand(start: Callable[..., Terminal]) -> None:
    script = [chat_reply("", tool_calls=[plan("pending", "pending", "pending")]), chat_reply("My plan.")]
    with ScriptedServer(*script) as server:
        with start(server) as terminal:
            terminal.type("/plan\r")
            terminal.expect_line("plan mode · ready")
            terminal.type("Make tea.\r")
            terminal.expect("What do you want to do with this plan?")
            terminal.type("keep\r")
            terminal.expect("Say what should be different")
            terminal.type("\x04")
            assert terminal.end() == 0
        with start(server) as terminal:
            terminal.type("/resume\r")
            terminal.expect("Which session?")
            terminal.type("\r")
            terminal.expect_line("plan mode · ready")
            terminal.expect_line("Plan: 0 of 3 done")
            terminal.type("/plan\r")
            terminal.expect("Plan mode is off")


def shows(terminal: Terminal, command: str, words: str) -> bool:
    """Type a command, and say whether it shows some words: what runs beside the chat may take its time."""
    before = terminal.text.count(f"» {command}")
    terminal.type(f"{command}\r")
    terminal.wait(lambda: terminal.text.count(f"» {command}") > before, command)
    terminal.wait(lambda: "next offset" in terminal.text.rpartition(f"» {command}")[2], "its end")
    return words in terminal.text.rpartition(f"» {command}")[2].splitlines()


def test_commands_in_the_background_are_listed_shown_and_stopped(start: Callable[..., Terminal]) -> None:
    command = {"command": "echo begun; sleep 600", "background": True}
    script = [chat_reply("", tool_calls=[ToolCall("shell", command)]), chat_reply("It runs.")]
    allow = '[permissions]\nallow = ["shell"]'
    with ScriptedServer(*script) as server, start(server, settings=allow) as terminal:
        terminal.type("/jobs\r")
        terminal.expect("There are no commands in the background.")
        terminal.type("Start it.\r")
        terminal.expect("It runs.")
        terminal.expect_line("ready")
        terminal.type("/jobs\r")
        terminal.expect("/jobs NUMBER shows its output")
        [name] = set(re.findall(r"sh_[0-9a-f]{8}", "\n".join(terminal.lines)))
        assert any(f"→ {name} runs" in line for line in terminal.lines)
        assert any("running for" in line and "echo begun" in line for line in terminal.lines)
        terminal.wait(lambda: shows(terminal, f"/jobs {name}", "begun"), "what it printed")
        terminal.wait(lambda: shows(terminal, "/jobs 1", "begun"), "the same by its number")
        terminal.type(f"/jobs stop {name[3:7]}\r")
        terminal.expect("stopped")
        terminal.type("/jobs sh_nothing\r")
        terminal.expect("Error: ")


def test_a_sub_agent_has_its_own_line_of_progress(start: Callable[..., Terminal]) -> None:
    settings = (
        '[permissions]\nallow = ["delegate_clerk"]\n[agents.boss]\ndelegates = ["clerk"]\nplugin_ids = []\n'
        '[agents.clerk]\nplugin_ids = ["todo_tool"]\ndescription = "Looks things up."\n'
    )
    script = [
        chat_reply("", tool_calls=[ToolCall("delegate_clerk", {"prompt": "Look it up."})]),
        chat_reply("", tool_calls=[plan("done", "in_progress", "pending")]),
        chat_reply("Nothing found.").never_begin(),
    ]
    with ScriptedServer(*script) as server, start(server, settings=settings) as terminal:
        terminal.type("Ask the clerk.\r")
        terminal.expect_line(r"⚙ .*clerk.*│ step 2 · ")

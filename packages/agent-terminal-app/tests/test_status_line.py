"""The last line of a chat says what is so now, without a key being pressed for it."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ESC = "\x1b"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Return a chat with the embedded model, in which nothing has been said yet."""
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    own = {"HOME": str(tmp_path), "AGENT_KEYRING": "off", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "agent_terminal_app", "chat"]
    with Terminal(
        command, environment={**kept, **places, **own}, folder=tmp_path, columns=100, rows=90
    ) as terminal:
        terminal.expect_line("ready")
        yield terminal


COMMANDS = {
    "/config": "ui.plain = false",
    "/plugins": "/plugins NAME explains one.",
    "/context": "in all",
    "/attach nope": "Error: ",
    "/doctor": "disk space: ",
    "/nothing": "There is no command /nothing",
}
"""What is typed, and a piece of what is shown for it."""


def test_a_command_that_is_done_leaves_the_line_ready(terminal: Terminal) -> None:
    for command, shown in COMMANDS.items():
        for _ in range(3):  # the line stuck only when two things came at the same time
            terminal.type("\x0c")  # Ctrl+L: only then nothing of the last round can be taken for this one's
            terminal.wait(lambda: terminal.lines[:1] == ["»"], "an empty screen")
            terminal.type(f"{command}\r")
            terminal.expect_line(f"» {command}$")
            terminal.expect_line(f".*{re.escape(shown)}")
            terminal.expect_line("ready")
            terminal.type("/quit")
            terminal.expect_line("» /quit$")
            terminal.type("\x15")
            terminal.expect_line("»$")


def test_a_question_of_a_command_is_shown_while_it_waits(terminal: Terminal) -> None:
    terminal.type("/setup\r")
    terminal.expect("Which model should answer?")
    terminal.expect_line("type your answer · Esc leaves it")
    terminal.type(ESC)
    terminal.expect_line("ready")

"""What commands show in a terminal of 80 columns: whole words, in rows that fit."""

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

WIDE, NARROW = 400, 80
PROGRESS = re.compile(r"… .*\d s \(Esc stops it\)$")
"""What a slow machine shows while a command works; a fast one does not."""
SETTINGS = """
plugin_ids = ["files_tool", "shell_tool", "todo_tool"]
[permissions]
deny = ["shell(git push *)", "write_file(/etc/*)"]
ask = ["shell(git commit --amend --no-edit --allow-empty *)"]
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    own = {"HOME": str(tmp_path), "AGENT_KEYRING": "off", "TERM": "xterm-256color", "COLORFGBG": ""}
    file = tmp_path / "config" / "agent" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(SETTINGS)
    command = [sys.executable, "-m", "agent_terminal_app", "chat"]
    environment = {**kept, **places, **own}
    with Terminal(command, environment=environment, folder=tmp_path, columns=WIDE, rows=120) as terminal:
        terminal.expect_line("ready")
        yield terminal


def shown(terminal: Terminal, command: str, last: str) -> list[str]:
    """Return the lines that a command shows, from its echo to the echo of what is typed after its end.

    The screen does not tell when a command has ended: the last row may say "ready" from before, or
    "working" although everything was shown. What is typed then waits as long as the command works.
    """
    terminal.type("\x0c")  # Ctrl+L: an empty screen
    terminal.wait(lambda: terminal.lines[:1] == ["»"])
    terminal.type(f"{command}\r")
    terminal.wait(lambda: any(last in line for line in terminal.lines), last)
    terminal.type("/over\r")
    terminal.wait(lambda: any("There is no command /over:" in line for line in terminal.lines), "/over")
    lines = terminal.lines
    found = lines[lines.index(f"» {command}") + 1 : lines.index("» /over")]
    return [line for line in found if not PROGRESS.match(line)]


def words(lines: list[str]) -> set[str]:
    """Return the words, with numbers that may have changed meanwhile taken out."""
    return {re.sub(r"\d+", "0", word) for line in lines for word in line.split()}


COMMANDS = {
    "/help": "explains a command",
    "/help actions": "INPUT=.",
    "/permissions": "takes a grant back",
    "/tools": "write_todos",
    "/plugins": "explains one.",
    "/actions": "runs one.",
    "/doctor": "disk space",
    "/config": "ui.plain",
    "/model no-such-provider:model": "lists the models",
    "/rename": "resume a session",
}
"""What is typed, and a piece of the last thing that is shown for it."""


def test_no_word_is_cut_and_every_row_fits(terminal: Terminal) -> None:
    wide = {command: words(shown(terminal, command, last)) for command, last in COMMANDS.items()}
    terminal.resize(NARROW, 120)
    narrow = {command: words(shown(terminal, command, last)) for command, last in COMMANDS.items()}

    cut = {command: cut_words(wide[command], narrow[command]) for command in COMMANDS}
    assert not any(cut.values()), cut


def cut_words(wide: set[str], narrow: set[str]) -> set[str]:
    """Return what is not a word; paths are, which stay whole, so that the terminal cuts them."""
    long = [word for word in wide if len(word) > NARROW // 2]
    return {word for word in narrow - wide if not any(word in one for one in long)}

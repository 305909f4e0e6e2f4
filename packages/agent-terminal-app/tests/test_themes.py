"""`ui.theme` chooses the colours of a chat, and `/doctor` describes the terminal that shows them."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.chat.rendering.text import styled, use_theme
from agent_terminal_app.settings.rules import THEMES
from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHAT = [sys.executable, "-m", "agent_terminal_app", "chat"]
HEADING = re.compile(rb"\x1b\[([0-9;]+)mSessions\x1b\[0m")
"""The first heading of /help, and what begins its style."""


@pytest.fixture
def usual() -> Iterator[None]:
    yield
    use_theme("none")  # which has no colours of its own, so that the usual ones hold again


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    unset = ("NO_COLOR", "COLORFGBG", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return {**kept, **places, "HOME": str(tmp_path), "AGENT_KEYRING": "off", "TERM": "xterm-256color"}


def say(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config" / "agent" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("theme", "background", "style"),
    [
        ("auto", "", b"1;34"),
        ("auto", "15;default;0", b"1;94"),
        ("auto", "0;15", b"1;34"),
        ("dark", "0;15", b"1;94"),
        ("light", "15;0", b"1;34"),
        ("none", "", b""),
    ],
)
def test_headings_have_the_colour_of_the_theme(
    environment: dict[str, str], tmp_path: Path, theme: str, background: str, style: bytes
) -> None:
    say(tmp_path, f'[ui]\ntheme = "{theme}"\n')
    own = {**environment, "COLORFGBG": background} if background else environment
    with Terminal(CHAT, environment=own, folder=tmp_path, rows=60) as terminal:
        terminal.expect_line("ready")
        terminal.type("/help\r")
        terminal.expect("/help NAME explains a command")

        found = HEADING.search(terminal.raw)
        assert (b"" if found is None else found[1]) == style


@pytest.mark.usefixtures("usual")
def test_every_theme_but_none_has_its_own_colours() -> None:
    shown = {}
    for theme in THEMES:
        use_theme(theme)
        shown[theme] = [styled("x", style, color=True) for style in ("code", "keyword", "yellow")]

    assert shown["dark"] != shown["light"] != shown["none"]
    assert shown["dark"] != shown["none"]


@pytest.mark.parametrize(
    ("settings", "options", "told"),
    [
        ("", [], r"OK    terminal: xterm-256color, 100x50, colours$"),
        ('[ui]\ntheme = "none"\n', [], r"OK    terminal: xterm-256color, 100x50, no colours in this chat$"),
        ("", ["--plain"], r"OK    terminal: xterm-256color, 100x50, no colours in this chat$"),
    ],
)
def test_the_doctor_of_a_chat_describes_its_terminal(
    environment: dict[str, str], tmp_path: Path, settings: str, options: list[str], told: str
) -> None:
    say(tmp_path, settings)
    command = [*CHAT, *options]
    with Terminal(command, environment=environment, folder=tmp_path, columns=100, rows=50) as terminal:
        terminal.expect_line(">" if options else "ready")
        terminal.type("/doctor\n" if options else "/doctor\r")

        terminal.expect_line(told)

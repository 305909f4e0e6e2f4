"""A plain chat in a terminal shows where to type; in a pipe it shows nothing that is not a line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.launcher import shared_launcher
from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = [sys.executable, "-m", "agent_terminal_app", "chat", "--demo", "--plain"]
CTRL_D = "\x04"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE")}
    return {**os.environ, **places, "HOME": str(tmp_path), "TERM": "xterm-256color"}


def test_a_person_sees_where_to_type_and_where_to_answer(environment: dict[str, str], tmp_path: Path) -> None:
    with Terminal(PLAIN, environment=environment, folder=tmp_path) as terminal:
        terminal.expect_line(">$")
        terminal.type("write a note\n")
        terminal.expect_line("your answer>$")
        terminal.type("n\n")
        terminal.expect("The tool says")
        terminal.expect_line(">$")
        terminal.type("/resume\n")
        terminal.expect("Which one?")
        terminal.wait(lambda: terminal.lines[-1] == ">")
        terminal.type("\n")
        terminal.wait(lambda: terminal.lines[-2:] == [">", ">"])
        terminal.type("/quit\n")

        assert terminal.end() == 0
    assert [line for line in terminal.lines if line.startswith(">")] == [
        "> write a note",
        "> /resume",
        ">",
        "> /quit",
    ]


def test_the_line_with_the_sign_is_ended_when_the_chat_is(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with Terminal(PLAIN, environment=environment, folder=tmp_path) as terminal:
        terminal.expect_line(">$")
        terminal.type(CTRL_D)
        terminal.end()

        assert terminal.cursor[0] == 0


def test_a_line_that_was_typed_already_needs_no_sign(environment: dict[str, str], tmp_path: Path) -> None:
    with Terminal(PLAIN, environment=environment, folder=tmp_path) as terminal:
        terminal.type("good morning\ngood day\n/quit\n")
        terminal.end()

        assert "You said: good morning" in terminal.lines
        assert not any(line.startswith(">") for line in terminal.lines)


def test_a_pipe_has_no_sign_in_it(environment: dict[str, str], tmp_path: Path) -> None:
    done = shared_launcher().run(PLAIN[1:], environment=environment, folder=tmp_path, stdin="good day\n")

    assert done.returncode == 0
    assert "You said: good day" in done.stdout
    assert ">" not in done.stdout

"""The chat in a pipe and in a real terminal, with the demonstration in place of a model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

if TYPE_CHECKING:
    from pathlib import Path

AGENT = [sys.executable, "-m", "agent_terminal_app"]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    return {**os.environ, **places, "HOME": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}


def piped(environment: dict[str, str], lines: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENT, *arguments],
        input=lines,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_conversation_through_a_pipe(environment: dict[str, str]) -> None:
    done = piped(environment, "What time is it?\n/quit\nnever read\n", "chat", "--demo")

    assert done.returncode == 0, done.stderr
    assert "⚙ clock()" in done.stdout
    assert "It is 12:00." in done.stdout
    assert "never read" not in done.stdout
    assert "\x1b" not in done.stdout


def test_a_command_that_is_not_there_gets_the_nearest(environment: dict[str, str]) -> None:
    done = piped(environment, "/sesions\n", "chat", "--demo")

    assert "There is no command /sesions: did you mean 'sessions'?" in done.stdout


def test_sessions_can_be_listed_renamed_and_left(environment: dict[str, str]) -> None:
    lines = "hello\n/rename First\n/new\nsecond\n/sessions\n/resume First\n/rewind\n/sessions\n"

    done = piped(environment, lines, "chat", "--demo")

    assert re.search(
        r"→  1  .*2 messages  assistant  second\n   2  .*2 messages  assistant  First", done.stdout
    )
    assert "» hello" in done.stdout
    assert "Back before: hello" in done.stdout


def test_the_demonstration_leaves_nothing_behind(environment: dict[str, str], tmp_path: Path) -> None:
    piped(environment, "hello\n", "chat", "--demo")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_reader_that_leaves_ends_it_quietly(environment: dict[str, str]) -> None:
    chat = subprocess.Popen(
        [*AGENT, "chat", "--demo"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert chat.stdin is not None and chat.stdout is not None
    assert b"A demonstration" in chat.stdout.readline()
    chat.stdout.close()
    chat.stdin.write(b"hello\nstream 900\n")
    chat.stdin.flush()
    chat.wait(timeout=60)
    assert chat.stderr is not None
    problems = chat.stderr.read()
    chat.stdin.close()
    chat.stderr.close()

    assert chat.returncode == 1
    assert problems == b""


class Terminal:
    """A chat in a terminal of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        arguments = [*AGENT[1:], "chat", "--demo"]
        self.child: Any = pexpect.spawn(
            AGENT[0], arguments, env=environment, dimensions=(24, 80), encoding="utf-8", timeout=30
        )

    def type(self, text: str) -> None:
        self.child.send(text)

    def expect(self, pattern: str) -> None:
        self.child.expect(pattern)

    def end(self) -> int:
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus)


def test_a_conversation_in_a_terminal(environment: dict[str, str]) -> None:
    terminal = Terminal(environment)

    terminal.expect("A demonstration")
    terminal.expect("»")
    terminal.type("Good morning\r")
    terminal.expect("You said: Good morning")
    terminal.type("/quit\r")

    assert terminal.end() == 0


def test_control_d_leaves_and_control_c_clears_first(environment: dict[str, str]) -> None:
    terminal = Terminal(environment)

    terminal.expect("»")
    terminal.type("half a thought\x03")
    terminal.type("hello\r")
    terminal.expect("You said|I am a")
    terminal.type("\x04")

    assert terminal.end() == 0

"""The chat in a pipe, with the demonstration in place of a model; test_screen.py has it in a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.launcher import shared_launcher

if TYPE_CHECKING:
    from pathlib import Path

AGENT = [sys.executable, "-m", "agent_terminal_app"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    return {**os.environ, **places, "HOME": str(tmp_path), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}


def piped(environment: dict[str, str], lines: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return shared_launcher().run([*AGENT[1:], *arguments], environment=environment, folder=None, stdin=lines)


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


def test_without_a_terminal_and_without_input_the_command_to_use_is_named(tmp_path: Path) -> None:
    places = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "agent"
    program.write_text(f"#!{sys.executable}\nfrom agent_terminal_app.cli import main\nmain()\n")
    program.chmod(0o755)
    environment = {**os.environ, **places, "HOME": str(tmp_path)}
    for path, named in ((str(folder), "agent"), ("/nowhere", "bin/agent")):
        done = subprocess.run(
            [program, "chat", "--demo"],
            env={**environment, "PATH": path},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert f'\n  {named} run "What does this project do?"\n' in done.stderr

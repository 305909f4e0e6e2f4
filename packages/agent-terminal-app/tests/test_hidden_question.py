"""A key that is typed into a chat: it works, and nobody sees it, then or later."""

from __future__ import annotations

import os
import sys
import termios
import tomllib
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, ServerReply, chat_models, chat_reply, error_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_testing import ReceivedRequest

KEY = "sk-hidden-0123456789"
ESC, UP = "\x1b", "\x1b[A"
CTRL_A, CTRL_C, CTRL_G, CTRL_K, CTRL_R, CTRL_Y = "\x01", "\x03", "\x07", "\x0b", "\x12", "\x19"


def answer(request: ReceivedRequest) -> ServerReply:
    """Answer as a server does that wants a key: with its models, or with a message."""
    if KEY not in str(request.headers):
        return error_reply(401, "a key is needed")
    return chat_models("llama-9") if request.method == "GET" else chat_reply("I am the llama.")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(otherwise=answer) as server:
        yield server


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp "$1" "{tmp_path}/edited"\n')
    editor.chmod(0o755)
    places = {
        f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
    }
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and name not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    own = {"HOME": str(tmp_path), "AGENT_KEYRING": "off", "VISUAL": str(editor), "TERM": "xterm-256color"}
    return {**kept, **places, **own}


def asked(environment: dict[str, str], folder: Path, address: str, *options: str) -> Terminal:
    """Return a chat in which `/setup` has just asked for a key."""
    command = [sys.executable, "-m", "agent_terminal_app", "chat", *options]
    terminal = Terminal(command, environment=environment, folder=folder, columns=100, rows=40)
    send = "\n" if options else "\r"
    terminal.expect("»" if not options else "/setup")
    for line, then in (
        ("/setup", "Which model should answer?"),
        ("server of your own", "Address of the server"),
        (address, "That did not work"),
        ("Type a key", "(not shown):"),
    ):
        terminal.type(line + send)
        terminal.expect(then)
    return terminal


def files_with(text: str, folder: Path) -> list[str]:
    """Return the names of the files in which a text stands."""
    return sorted(
        path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()
    )


def test_a_key_typed_at_the_prompt_is_kept_and_never_seen(
    server: ScriptedServer, environment: dict[str, str], tmp_path: Path
) -> None:
    with asked(environment, tmp_path, server.url) as terminal:
        terminal.expect_line("type your answer, it is not shown · Esc leaves it")
        terminal.type(KEY[:8])
        terminal.expect_line(r"» [*]{8}$")
        terminal.type(f"\t{CTRL_R}{CTRL_G}?{KEY[8:]}")
        terminal.expect_line(r"» [*]{21}$")
        terminal.type("\x7f" * 13 + KEY[8:] + "\r")
        terminal.expect("Which model of")
        terminal.type("\r")
        terminal.expect("answers from your next message on.")
        terminal.expect_line("ready")
        terminal.type(f"{CTRL_Y}who?\r")
        terminal.expect("I am the llama.")
        terminal.expect_line(r"ready .* session \d+ tokens")
        terminal.type(UP)
        terminal.wait(lambda: terminal.lines.count("» who?") == 2, "the message once more")
        terminal.type(CTRL_C * 3)
        assert terminal.end() == 0

    assert KEY.encode() not in terminal.raw and KEY[8:].encode() not in terminal.raw
    assert files_with(KEY[8:], tmp_path) == ["secrets.json"]
    assert "who?" in (tmp_path / "state" / "agent" / "history").read_text()
    assert tomllib.loads((tmp_path / "config" / "agent" / "config.toml").read_text())["model"]


def test_a_key_that_was_begun_and_left_is_forgotten(
    server: ScriptedServer, environment: dict[str, str], tmp_path: Path
) -> None:
    with asked(environment, tmp_path, server.url) as terminal:
        terminal.paste(KEY)
        terminal.expect_line(r"» [*]{20}$")
        terminal.type(f"{CTRL_A}{CTRL_K}{CTRL_Y}")
        terminal.expect_line(r"» [*]{20}$")
        terminal.type(ESC)
        terminal.expect("Nothing was changed.")
        terminal.expect_line("ready")
        terminal.type(f"{CTRL_Y}x")
        terminal.expect_line("» x$")
        terminal.type(CTRL_C * 3)
        assert terminal.end() == 0

    assert KEY.encode() not in terminal.raw
    assert files_with(KEY, tmp_path) == []


def test_a_plain_terminal_does_not_show_it_either(
    server: ScriptedServer, environment: dict[str, str], tmp_path: Path
) -> None:
    with asked(environment, tmp_path, server.url, "--plain") as terminal:
        terminal.wait(lambda: not terminal.settings[3] & termios.ECHO, "a terminal that shows nothing")
        terminal.type(f"{KEY}\n")
        terminal.expect("Which model of")
        terminal.type("1\n")
        terminal.expect("answers from your next message on.")
        terminal.type("who?\n")
        terminal.expect("I am the llama.")
        terminal.type("\x04")

        assert terminal.end() == 0
        assert terminal.settings == terminal.before
    assert KEY.encode() not in terminal.raw
    assert b"who?" in terminal.raw
    assert files_with(KEY, tmp_path) == ["secrets.json"]

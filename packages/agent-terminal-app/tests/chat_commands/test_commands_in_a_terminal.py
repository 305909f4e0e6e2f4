"""Commands in a real terminal: what is asked, what is typed, and the bytes that come out."""

from __future__ import annotations

import base64
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = """
from agent_app import AgentApplication
from agent_terminal_app import wiring
from agent_terminal_app.cli import main
from agent_terminal_app.demo import DemoProvider, DemoTools


class Titles:
    name = "titles"
    version = "1"

    def get_actions(self):
        return [{"id": "set_title", "label": "Set the title", "inputs": {
            "title": {"type": "string", "required": True}, "size": {"type": "integer", "default": 3}}}]

    def execute_action(self, action_id, session, native_messages, params):
        body = f"{params['title']} of size {params['size']}\\x1b]0;evil\\x07"
        copying = {"kind": "copy_text", "id": "c", "label": "Copy it", "text": params["title"]}
        return {"display": {"title": "Done", "body": body, "variant": "success", "actions": [copying]}}


def open_demo():
    config = {"agents": {"assistant": {"model": "demo"}}, "models": {"demo": {"provider": "demo"}}}
    return AgentApplication(config, plugins=[DemoProvider, DemoTools, Titles], installed=False)


wiring.open_demo = open_demo
main(["chat", "--demo"])
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    """A chat in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        places = {
            f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "DISPLAY")}
        program = folder / "program.py"
        program.write_text(PROGRAM)
        self.seen = ""
        self.child: Any = pexpect.spawn(
            sys.executable,
            [str(program)],
            env={**kept, **places, "HOME": str(folder), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            cwd=str(folder),
            dimensions=(40, 100),
            encoding="utf-8",
            timeout=60,
        )

    def type(self, text: str) -> None:
        self.child.send(text)

    def expect(self, pattern: str) -> str:
        """Wait for a text, and return everything up to it."""
        self.child.expect(pattern)
        self.seen += self.child.before + self.child.after
        return str(self.child.before + self.child.after)

    def leave(self) -> None:
        self.type("/quit\r")
        self.child.expect(pexpect.EOF)
        self.seen += self.child.before
        self.child.close()
        assert self.child.exitstatus == 0


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    try:
        made.expect("»")
        yield made
    finally:
        made.child.close(force=True)


def test_a_message_is_edited_in_the_prompt(terminal: Terminal) -> None:
    terminal.type("Good morning\r")
    terminal.expect("You said: Good morning")
    terminal.type("/edit\r")
    terminal.expect("What shall it be")
    terminal.expect("Good morning")
    terminal.type(", all\r")
    terminal.expect("You said: Good morning, all")

    terminal.leave()


def test_esc_leaves_a_question_and_the_chat_goes_on(terminal: Terminal) -> None:
    terminal.type("Good morning\r")
    terminal.expect("You said: Good morning")
    terminal.type("/resume\r")
    terminal.expect("Which one")
    terminal.type("\x1b")
    terminal.type("Still here\r")
    terminal.expect("You said: Still here")

    terminal.leave()


def test_a_form_a_card_and_the_clipboard(terminal: Terminal) -> None:
    terminal.type("Good morning\r")
    terminal.expect("You said: Good morning")
    terminal.type("/set_title\r")
    terminal.expect("title \\(text; needed\\)")
    terminal.type("Tea\r")
    terminal.expect("size \\(integer; Enter for 3\\)")
    terminal.type("many\r")
    terminal.expect("write a whole number")
    terminal.type("5\r")
    terminal.expect("Tea of size 5")
    terminal.expect("Copy it — copies Tea")
    terminal.type("/1\r")
    terminal.expect("Copied 3 characters to the clipboard of the terminal")
    terminal.leave()

    wanted = "\x1b]52;c;" + base64.b64encode(b"Tea").decode() + "\x07"
    assert terminal.seen.count("\x1b]") == 1
    assert wanted in terminal.seen


def test_actions_are_completed(terminal: Terminal) -> None:
    terminal.type("Good morning\r")
    terminal.expect("You said: Good morning")
    terminal.type("/set_t")
    terminal.expect("Set the title")
    terminal.type("\x15")

    terminal.leave()

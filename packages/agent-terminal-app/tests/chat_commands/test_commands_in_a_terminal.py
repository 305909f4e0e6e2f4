"""Commands in a real terminal: what is asked, what is typed, and the bytes that come out."""

from __future__ import annotations

import base64
import os
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = """
from agent_app import AgentApplication
from agent_terminal_app import launch
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


launch.open_demo = open_demo
main(["chat", "--demo"])
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One chat for all tests; each has a session of its own in it."""
    folder = tmp_path_factory.mktemp("home")
    places = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "DISPLAY")}
    file = folder / "program.py"
    file.write_text(PROGRAM)
    command, environment = [sys.executable, str(file)], {**kept, **places, "HOME": str(folder)}
    with Terminal(command, environment=environment, folder=folder, columns=100, rows=40) as terminal:
        terminal.expect_line("ready")
        yield terminal
        terminal.type("/quit\r")
        assert terminal.end() == 0


@pytest.fixture
def terminal(program: Terminal) -> Terminal:
    for keys, shown in (("", ""), ("/new\r", "A new session")):
        program.type(f"{keys}")
        program.expect_line(shown)
        program.expect_line("ready")
        program.type("\x0c")  # Ctrl+L: an empty screen
        program.wait(lambda: program.lines[:1] == ["»"])
    program.type("Good morning\r")
    program.expect_line("You said: Good morning$")
    program.expect_line("ready")
    return program


def test_a_message_is_edited_in_the_prompt(terminal: Terminal) -> None:
    terminal.type("/edit\r")
    terminal.expect_line("What should it say instead")
    terminal.wait(lambda: terminal.lines[-2:-1] == ["» Good morning"])
    terminal.type(", all\r")
    terminal.expect_line("You said: Good morning, all")


def test_esc_leaves_a_question_and_the_chat_goes_on(terminal: Terminal) -> None:
    terminal.type("/resume\r")
    terminal.expect_line("Which session")
    terminal.type("\x1b")
    terminal.expect_line("ready")
    terminal.type("Still here\r")
    terminal.expect_line("You said: Still here")


def test_a_form_a_card_and_the_clipboard(terminal: Terminal) -> None:
    before = len(terminal.raw)
    terminal.type("/set_title\r")
    terminal.expect_line("title \\(text; needed\\)")
    terminal.type("Tea\r")
    terminal.expect_line("size \\(integer; Enter for 3\\)")
    terminal.type("many\r")
    terminal.expect_line(".*write a whole number")
    terminal.type("5\r")
    terminal.expect_line(".*Tea of size 5")
    terminal.expect_line(".*Copy it — copies Tea")
    terminal.expect_line("press 1 to choose")
    terminal.type("1")
    terminal.expect_line("Copied 3 characters to the clipboard of the terminal")

    seen = terminal.raw[before:]
    assert seen.count(b"\x1b]") == 1
    assert b"\x1b]52;c;" + base64.b64encode(b"Tea") + b"\x07" in seen


def test_actions_are_completed(terminal: Terminal) -> None:
    terminal.type("/set_t")
    terminal.expect_line(".*Set the title")
    terminal.type("\x15")
    terminal.wait(lambda: terminal.lines[-2:-1] == ["»"])

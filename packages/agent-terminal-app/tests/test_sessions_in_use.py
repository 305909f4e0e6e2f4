"""Two chats on one session: the second is told who has it, and nothing that is typed there is lost."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from agent_app import AgentApplication
from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ESC = "\x1b"
PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_app import AgentApplication
from agent_terminal_app.chat.loop import Chat
from agent_terminal_app.chat.plain import run_in_lines
from agent_terminal_app.chat.prompt.prompt import PromptScreen, run_prompt
from agent_terminal_app.chat.rendering.screen import TextScreen
from agent_terminal_app.cli import leave
from agent_terminal_app.demo import DemoCounter, DemoProvider

class Counter(DemoCounter):
    async def stream_tool(self, tool_name, arguments):
        yield {"part": "number 1"}
        while not (folder / "bell").exists():
            await asyncio.sleep(0.05)
        yield {"success": True, "result": "counted until the bell rang"}

folder, session = Path(sys.argv[1]), next((word for word in sys.argv[2:] if len(word) > 10), None)

def open_app():
    config = {"agents": {"a": {"model": "demo"}}, "models": {"demo": {"provider": "demo"}}}
    plugins = [DemoProvider, Counter]
    return AgentApplication(config, store=f"sqlite:///{folder}/app.db", plugins=plugins, installed=False)

async def sit():
    if "plain" in sys.argv:
        return await run_in_lines(Chat(open_app, TextScreen(), session))
    return await run_prompt(Chat(open_app, PromptScreen(color=True), session), None)

leave(asyncio.run(sit()))
"""


class Machine:
    """A machine on which chats can be opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._terminals: list[Terminal] = []
        (folder / "program.py").write_text(PROGRAM)

    def open(self, *arguments: str, until: str = "ready") -> Terminal:
        command = [sys.executable, str(self.folder / "program.py"), str(self.folder), *arguments]
        environment = {**os.environ, "HOME": str(self.folder), "TERM": "xterm-256color"}
        terminal = Terminal(command, environment=environment, folder=self.folder, columns=100, rows=40)
        self._terminals.append(terminal)
        terminal.expect_line(until)
        return terminal

    def running(self) -> tuple[Terminal, str]:
        """Return a chat whose agent counts until the bell rings, and its session."""
        terminal = self.open()
        terminal.type("count\r")
        terminal.expect("number 1")
        return terminal, self.sessions()[0]

    def sessions(self) -> list[str]:
        with self._application() as app:
            return [info.id for info in app.list_sessions().sessions]

    def asked_what_to_do(self, session: str) -> Terminal:
        """Say something in a session that another chat has; return the chat that asks what to do with it."""
        second = self.open(session)
        second.type("Good day\r")
        second.expect_line("type your answer")
        return second

    def said(self, session_id: str) -> list[str]:
        """Return what people have said in a session."""
        with self._application() as app:
            messages = app.load_session(session_id).messages
            return [str(message.content) for message in messages if message.role == "user"]

    def waiting(self, session_id: str) -> list[str]:
        with self._application() as app:
            return [str(one.message["content"]) for one in app.store.inputs(session_id)]

    def _application(self) -> AgentApplication:
        return AgentApplication({}, store=f"sqlite:///{self.folder}/app.db", installed=False)

    def close(self) -> None:
        for terminal in self._terminals:
            terminal.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.close()


def test_the_second_chat_says_who_has_the_session_and_takes_it_over(machine: Machine) -> None:
    first, session = machine.running()
    second = machine.open(session)
    second.type("Good day\r")
    second.expect(f"process {first.process.pid} on")
    second.expect_line("type your answer")
    second.type("take over\r")
    second.expect("You said: Good day")
    second.expect_line("ready")
    (machine.folder / "bell").touch()

    first.expect("somebody took it over")
    assert machine.said(session) == ["count", "Good day"]


def test_words_are_queued_and_whoever_has_the_session_answers_them(machine: Machine) -> None:
    first, session = machine.running()
    second = machine.asked_what_to_do(session)
    second.type("\r")  # the first of them
    second.expect("queued: Good day")
    second.expect_line("working")
    (machine.folder / "bell").touch()

    first.expect("You said: Good day")
    second.expect("You said: Good day")
    second.expect_line("ready")
    assert machine.said(session) == ["count", "Good day"]
    assert machine.waiting(session) == []


@pytest.mark.parametrize("keys", [ESC, "keep\r"])
def test_words_that_are_kept_are_in_the_input_line_again(machine: Machine, keys: str) -> None:
    first, session = machine.running()
    second = machine.asked_what_to_do(session)
    second.type(keys)

    second.expect_line("» Good day$")
    second.expect_line("ready")
    first.type(ESC)
    first.expect("interrupted")
    assert machine.said(session) == ["count"]
    second.type("\r")  # nobody has it any more
    second.expect("You said: Good day")


def test_what_was_queued_is_answered_here_if_the_other_chat_is_gone(machine: Machine) -> None:
    first, session = machine.running()
    second = machine.asked_what_to_do(session)
    second.type("queue\r")
    second.expect("queued: Good day")
    first.close()

    second.expect("You said: Good day")
    second.expect_line("ready")
    assert machine.said(session) == ["count", "Good day"]


def test_esc_stops_watching_and_what_was_queued_waits(machine: Machine) -> None:
    _first, session = machine.running()
    second = machine.asked_what_to_do(session)
    second.type("queue\r")
    second.expect_line("working")
    second.expect("queued: Good day")
    second.type(ESC)

    second.expect("it continues there")
    assert machine.waiting(session) == ["Good day"]


def test_a_plain_chat_asks_as_well(machine: Machine) -> None:
    first, session = machine.running()
    second = machine.open("plain", session, until=">")
    second.type("Good day\n")
    second.expect(f"process {first.process.pid} on")
    second.wait(lambda: second.lines[-1] == ">")
    second.type("take over\n")
    second.expect("You said: Good day")

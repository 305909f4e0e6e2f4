"""Talking with an agent in a real terminal: `Agent.repl`."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("openai_compatible_provider")

PROGRAM = """
import sys
from agent_runtime import Agent

agent = Agent(
    "openai_compatible:m",
    config={"base_url": sys.argv[1] + "/v1", "api_key": "k"},
    sections={"permissions": {"default": "allow", "ask": ["pay"]}},
)

@agent.tool
def pay(amount: int) -> str:
    return f"paid {amount}"

agent.repl()
print("goodbye")
"""
PATIENCE = 60.0


class Terminal:
    """A program that runs in a terminal; what it has shown so far is `screen`."""

    def __init__(self, *command: str) -> None:
        self.screen = ""
        self._seen = 0
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            signal.signal(
                signal.SIGINT, signal.default_int_handler
            )  # it is ignored where tests run in the background
            os.execv(command[0], command)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Wait until a text appears behind what was waited for before."""
        while (found := self.screen.find(text, self._seen)) < 0:
            ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
            assert ready, f"{text!r} did not come: {self.screen}"
            self.screen += os.read(self._terminal, 4096).decode()
        self._seen = found + len(text)

    def close(self) -> None:
        os.close(self._terminal)  # the program is told that its terminal is gone
        os.waitpid(self._pid, 0)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        yield made


@pytest.fixture
def terminal(server: ScriptedServer) -> Iterator[Terminal]:
    made = Terminal(sys.executable, "-c", PROGRAM, server.url)
    yield made
    made.close()


def test_an_answer_can_be_stopped_and_the_conversation_goes_on(
    server: ScriptedServer, terminal: Terminal
) -> None:
    long = chat_reply(chunks=["One, ", "two, ", "three."])
    server.play(long.stall(), chat_reply("Hello again."))
    terminal.wait_for("> ")

    terminal.type("Count.\n")
    server.wait_until_stalled()
    terminal.type("\x03")
    terminal.wait_for("(stopped)")
    terminal.wait_for("> ")
    terminal.type("Hello.\n")
    terminal.wait_for("Hello again.")
    terminal.wait_for("> ")
    terminal.type("\x04")
    terminal.wait_for("goodbye")

    assert server.request.json["messages"][0]["content"] == "Count."
    assert "Traceback" not in terminal.screen


@pytest.mark.parametrize(("key", "result"), [("y", "paid 3"), ("too much", "too much")])
def test_a_question_is_asked_and_the_answer_taken(
    server: ScriptedServer, terminal: Terminal, key: str, result: str
) -> None:
    server.play(chat_reply(tool_calls=[ToolCall("pay", {"amount": 3})]), chat_reply("That is it."))
    terminal.wait_for("> ")

    terminal.type("Pay.\n")
    terminal.wait_for('Run pay with {"amount":3}?')
    terminal.wait_for("y/n> ")
    terminal.type(f"{key}\n")
    terminal.wait_for("That is it.")

    assert result in server.request.json["messages"][-1]["content"]

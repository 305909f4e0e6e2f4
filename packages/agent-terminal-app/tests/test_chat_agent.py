"""Tools follow the model: another one that answers in a chat is offered what it would be at a start."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.testing.terminal import Terminal
from agent_testing import ScriptedServer, ServerReply, chat_models, chat_reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_testing import ReceivedRequest

OTHER = "openai_compatible:llama-9"
GAINED, LOST = "The agent has tools now", "The embedded model is too small for tools"


def answer(request: ReceivedRequest) -> ServerReply:
    """Answer with the models, or with a message."""
    return chat_models("llama-9") if request.method == "GET" else chat_reply("I am the llama.")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(otherwise=answer) as server:
        yield server


class Place:
    """A home with settings, and chats in it."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self._folder = folder
        self._server = server
        places = {
            f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        own = {"HOME": str(folder), "AGENT_KEYRING": "off", "TERM": "xterm-256color"}
        self._environment = {**kept, **places, **own}
        self.say("")

    def say(self, settings: str) -> None:
        file = self._folder / "config" / "agent" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f'{settings}\n[plugins.openai_compatible]\nbase_url = "{self._server.url}"\napi_key = ""\n'
        )

    def chat(self, *options: str) -> Terminal:
        command = [sys.executable, "-m", "agent_terminal_app", "chat", *options]
        terminal = Terminal(command, environment=self._environment, folder=self._folder, columns=120, rows=50)
        terminal.expect_line("ready")
        return terminal

    def offered(self, words: str) -> set[str]:
        """Return the tools that the server was told of together with some words."""
        sent: list[Any] = [request.json for request in self._server.requests if request.method == "POST"]
        [asked] = [body for body in sent if body["messages"][-1]["content"] == words]
        return {tool["function"]["name"] for tool in asked.get("tools") or ()}


def listed(terminal: Terminal) -> str:
    """Return what `/tools` shows of the tools when the embedded model answers."""
    terminal.type("\x0c")  # Ctrl+L: an empty screen
    terminal.wait(lambda: terminal.lines[:1] == ["»"])
    terminal.type("/tools\r")
    terminal.expect("The embedded model is too small for files, a shell, web search")
    return "\n".join(terminal.lines)


def ask_the_other(terminal: Terminal) -> None:
    """Go on with another model than the embedded one, and ask it something."""
    terminal.type(f"/model {OTHER}\r")
    terminal.expect(GAINED)
    terminal.expect_line("ready")
    terminal.type("who?\r")
    terminal.expect("I am the llama.")
    terminal.expect_line("ready")


@pytest.fixture
def place(tmp_path: Path, server: ScriptedServer) -> Place:
    return Place(tmp_path, server)


def test_another_model_than_the_embedded_one_has_tools_and_the_way_back_takes_them(place: Place) -> None:
    with place.chat() as terminal:
        ask_the_other(terminal)

        assert {"read_file", "write_file", "shell"} <= place.offered("who?")

        terminal.type("/model default\r")
        terminal.expect(LOST)
        terminal.expect_line("ready")
        shown = listed(terminal)
        assert "on  read_result" in shown and "read_file" not in shown


def test_a_chat_begun_on_another_model_loses_its_tools_with_the_embedded_one(place: Place) -> None:
    with place.chat("--model", OTHER) as terminal:
        terminal.type("/tools\r")
        terminal.expect_line("  on  read_file")
        terminal.expect_line("ready")
        terminal.type("/model local\r")
        terminal.expect(LOST)
        terminal.expect_line("ready")

        assert "read_file" not in listed(terminal)


def test_a_resumed_session_has_the_tools_of_its_model_and_a_new_one_has_not(place: Place) -> None:
    with place.chat() as terminal:
        ask_the_other(terminal)
        terminal.type("/quit\r")
        assert terminal.end() == 0

    with place.chat("--continue") as terminal:
        terminal.type("who again?\r")
        terminal.wait(lambda: terminal.text.count("I am the llama.") == 2)
        assert "read_file" in place.offered("who again?")
        terminal.expect_line("ready")
        terminal.type("/new\r")
        terminal.expect(LOST)


def test_tools_that_a_setting_names_stay_whatever_the_model_is(place: Place) -> None:
    place.say('plugin_ids = ["todo_tool"]')

    with place.chat() as terminal:
        terminal.type(f"/model {OTHER}\r")
        terminal.expect("answers from your next message on.")
        terminal.expect_line("ready")
        terminal.type("who?\r")
        terminal.expect("I am the llama.")

        assert place.offered("who?") == {"write_todos", "read_todos"}
        assert GAINED not in terminal.text

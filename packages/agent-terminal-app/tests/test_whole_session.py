"""A whole session with the embedded model, through the command, as a person has it at a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

if find_spec("local_llama_provider") is None:
    pytest.skip("the embedded model is not installed", allow_module_level=True)

from local_llama_provider import weights

try:
    weights.find_weights({})
except weights.WeightsMissingError as missing:
    pytest.skip(str(missing), allow_module_level=True)

AGENT = [sys.executable, "-m", "agent_terminal_app"]
SETTINGS = "[plugins.local_llama]\ntemperature = 0.0\nseed = 7\nmax_tokens = 24\ncontext_size = 1024\n"
ASKED = ["What is the capital of France?", "And what is the capital of Italy?"]
RESUME = re.compile(r"resume with: agent chat --session ([0-9a-f-]+)$", re.MULTILINE)


class Home:
    """A person's home with the embedded model in it, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        places = {
            f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        own = {"HOME": str(folder), "AGENT_KEYRING": "off", "TERM": "xterm-256color"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_")}
        self._environment = {**kept, **places, **own}
        file = folder / "config" / "agent" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(SETTINGS)

    def chat(self, *options: str) -> Terminal:
        """Return a chat that waits for words."""
        command = [*AGENT, "chat", *options]
        terminal = Terminal(command, environment=self._environment, folder=self._folder, columns=100, rows=60)
        terminal.expect_line("ready")
        return terminal

    def run(self, *arguments: str) -> str:
        """Return what a command prints."""
        done = subprocess.run(
            [*AGENT, *arguments],
            capture_output=True,
            text=True,
            env=self._environment,
            cwd=self._folder,
            check=True,
            timeout=120,
        )
        return done.stdout

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        """Return what was said in a session, as it is stored."""
        session: dict[str, Any] = json.loads(self.run("sessions", "show", session_id, "--json"))
        messages: list[dict[str, Any]] = session["messages"]
        return messages


def ask(terminal: Terminal, words: str) -> None:
    """Say something, and wait until it was answered."""
    terminal.type(f"{words}\r")
    terminal.wait(lambda: is_answered(terminal, words), f"an answer to {words!r}")


def is_answered(terminal: Terminal, words: str) -> bool:
    """Say whether something stands between words and the prompt, which is ready for others."""
    if f"» {words}" not in terminal.lines:
        return False
    *answer, prompt, state = ["", "", *terminal.lines[terminal.lines.index(f"» {words}") + 1 :]]
    return bool("".join(answer)) and prompt == "»" and state.startswith("ready")


def leave(terminal: Terminal) -> str:
    """Leave a chat in order, and return the session that it says can be resumed."""
    terminal.type("/quit\r")
    assert terminal.end() == 0
    found = RESUME.search(terminal.text)
    assert found is not None, terminal.text
    return found[1]


@pytest.mark.slow
def test_two_turns_a_name_a_way_out_and_a_way_back(tmp_path: Path) -> None:
    home = Home(tmp_path)

    with home.chat() as terminal:
        for words in ASKED:
            ask(terminal, words)
        terminal.type("/rename Two capitals\r")
        terminal.expect("This session is called 'Two capitals' now.")
        terminal.expect_line("ready")
        session_id = leave(terminal)

    said = home.messages(session_id)
    assert [message["role"] for message in said] == ["user", "assistant", "user", "assistant"]
    assert [message["content"] for message in said[::2]] == ASKED
    answers = [message["content"] for message in said[1::2]]
    assert all(answer.strip() for answer in answers)
    assert answers[0].split()[0] in terminal.text

    with home.chat("--session", "Two capitals") as terminal:
        assert all(f"» {words}" in terminal.text for words in ASKED)
        assert answers[1].split()[0] in terminal.text
        ask(terminal, "Thank you.")
        assert leave(terminal) == session_id

    with home.chat("--continue") as terminal:
        assert "» Thank you." in terminal.text
        assert leave(terminal) == session_id

    shown = home.run("sessions", "show", "Two capitals")
    assert "Two capitals" in shown and all(words in shown for words in [*ASKED, "Thank you."])
    assert len(home.messages(session_id)) == 6


@pytest.mark.slow
def test_a_message_that_is_too_long_for_the_embedded_model_is_sent_in_part(tmp_path: Path) -> None:
    home = Home(tmp_path)
    file = tmp_path / "config" / "agent" / "config.toml"
    file.write_text(SETTINGS.replace("1024", "512"))

    with home.chat() as terminal:
        terminal.paste("Green tea is grown on hills. " * 400)
        terminal.type("\r")
        terminal.expect("its middle is left out")
        terminal.expect_line("ready")
        ask(terminal, ASKED[0])
        assert "Error" not in terminal.text

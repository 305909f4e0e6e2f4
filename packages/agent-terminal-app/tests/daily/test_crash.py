"""A chat that is killed: the next one says what the agent will read, and which commands still run."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_terminal_app.testing.terminal import Terminal
    from agent_testing import ScriptedServer


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_stored(home: Home, words: bytes) -> bool:
    """Say whether words are in the file of the sessions, or in the log next to it."""
    return any(words in one.read_bytes() for one in home.folder.rglob("*.db*"))


def test_an_answer_that_a_kill_cuts_short_is_shown_and_can_be_asked_for_again(
    home: Home, server: ScriptedServer
) -> None:
    server.play(chat_reply(chunks=["The first half.\n\n", "And then ", "the rest."]).stall())
    with home.chat(columns=100) as chat:
        chat.type("tell me\r")
        server.wait_until_stalled()
        chat.expect("And then")
        chat.wait(lambda: is_stored(home, b"And then"), "the words in the log")
        chat.signal(signal.SIGKILL)
        chat.end()

    server.play(chat_reply("Once more, whole."))
    with home.chat("--continue", columns=100) as chat:
        chat.expect("The program ended before this was answered. Enter asks again.")
        chat.expect("The first half.")
        chat.expect("And then")
        chat.expect_line("ready")
        chat.type("\r")
        chat.expect("Once more, whole.")
        asked = [one["content"] for one in server.requests[-1].json["messages"] if one["role"] != "system"]
        assert asked == ["tell me"]
        chat.expect_line("ready")

    with home.chat("--continue", columns=100) as chat:
        chat.expect("Once more, whole.")
        chat.expect_line("ready")
        assert "The program ended" not in chat.text


def expect_words(chat: Terminal, words: str) -> None:
    """Wait until words are on the screen, in however many rows."""
    chat.wait(lambda: words in " ".join(chat.text.split()), repr(words))


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_after_a_kill_the_resumed_chat_tells_what_may_have_run_and_what_still_runs(
    home: Home, server: ScriptedServer, columns: int
) -> None:
    home.set('[sandbox]\nmode = "off"\n[permissions]\nallow = ["shell"]\n')
    command = "echo $$ > pid; exec sleep 1000"
    server.play(chat_reply(tool_calls=[ToolCall("shell", {"command": command}, "c1")]))
    pid_file = home.project / "pid"

    with home.chat(columns=columns) as chat:
        chat.type("run it\r")
        chat.wait(lambda: pid_file.exists() and pid_file.read_text().strip(), "a command that runs")
        chat.signal(signal.SIGKILL)
        chat.end()
    pid = int(pid_file.read_text())
    assert is_alive(pid)

    server.play(chat_reply("I look first."))
    try:
        with home.chat("--continue", columns=columns) as chat:
            expect_words(chat, "The program ended in the middle of the last answer. The agent will read:")
            expect_words(chat, "$ echo $$ > pid; exec sleep 1000: may have run, in part or completely")
            assert "» run it" in chat.lines
            expect_words(chat, f"still runs, process {pid}: sleep 1000 (!kill -- -{pid} ends it)")
            chat.expect_line("ready")
            chat.type("What happened?\r")
            chat.expect("I look first.")
            told = [one["content"] for one in server.requests[-1].json["messages"] if one["role"] == "tool"]
            assert "may have run" in told[0]
            chat.expect_line("ready")
            chat.type(f"!kill -- -{pid}\r")
            chat.wait(lambda: not is_alive(pid), "the end of the command")
        with home.chat("--continue", columns=columns) as chat:
            expect_words(chat, "! shell: Error: the program ended while this call was running.")
            assert "still runs" not in chat.text
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)

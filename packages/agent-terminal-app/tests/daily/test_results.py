"""What a person sees of commands and messages: the end of the output, the exit code, whole paragraphs."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_terminal_app.testing.terminal import Terminal
    from agent_testing import ScriptedServer


def run(home: Home, server: ScriptedServer, chat: Terminal, command: str) -> list[str]:
    """Let the model run a command, and return what is shown of it."""
    server.play(
        chat_reply(tool_calls=[ToolCall("shell", {"command": command}, "c1")]), chat_reply("That was it.")
    )
    chat.expect("your rights.")  # the note that there is no sandbox comes when it comes
    chat.type("run it\r")
    chat.expect("That was it.")
    chat.expect_line("ready")
    lines = chat.all_lines
    return lines[lines.index("» run it") + 1 : lines.index("That was it.")]


def has_said(chat: Terminal, text: str, times: int) -> bool:
    return chat.text.count(text) == times


@pytest.fixture
def free(home: Home) -> Home:
    home.set('[sandbox]\nmode = "off"\n[permissions]\nallow = ["shell"]\n')
    return home


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_a_long_output_shows_its_end_and_how_many_lines_come_before(
    free: Home, server: ScriptedServer, columns: int
) -> None:
    with free.chat(columns=columns) as chat:
        shown = run(free, server, chat, "seq 1 120")

    assert shown[0].startswith("✓ $ seq 1") and "→ exit code 0" in shown[0]
    assert shown[1:] == ["    … 115 lines before [1]", *(f"    {n}" for n in range(116, 121))]


def test_a_failure_is_red_and_says_the_code(free: Home, server: ScriptedServer) -> None:
    with free.chat() as chat:
        shown = run(free, server, chat, "echo 'no such tea' >&2; exit 7")
        row = next(n for n, line in enumerate(chat.lines) if "exit code 7" in line)
        colours = {chat.screen.buffer[row][column].fg for column in range(2, 12)}
        output = next(n for n, line in enumerate(chat.lines) if line == "    no such tea")
        below = {chat.screen.buffer[output][column].fg for column in range(4, 10)}

    assert re.match(r"✗ \$ echo 'no such tea' >&2; exit 7 → exit code 7", shown[0])
    assert shown[1:] == ["    no such tea"]
    assert colours == below == {"red"}


def test_a_command_of_ones_own_that_fails_is_red_too(home: Home) -> None:
    with home.chat() as chat:
        chat.type("!exit 4\r")
        chat.expect_line("exit code 4, ")
        row = next(n for n, line in enumerate(chat.lines) if line.startswith("exit code 4"))

        assert chat.screen.buffer[row][0].fg == "red"


def test_a_command_that_prints_nothing_is_one_line(free: Home, server: ScriptedServer) -> None:
    with free.chat() as chat:
        shown = run(free, server, chat, "true")

    assert len(shown) == 1 and shown[0].startswith("✓ $ true → exit code 0")


def test_a_message_of_several_lines_is_one_message_after_resuming(home: Home, server: ScriptedServer) -> None:
    server.play(chat_reply("I see."))
    with home.chat() as chat:
        chat.paste("first\nsecond\n\nfourth")
        chat.type("\r")
        chat.expect("I see.")
        chat.expect_line("ready")

    with home.chat("--continue") as chat:
        lines = chat.all_lines
        start = lines.index("» first")
        assert lines[start : start + 5] == ["» first", "  second", "", "  fourth", "  I see."]
        assert sum(line.startswith("» ") for line in lines) == 1


@pytest.mark.parametrize("steps", [1, 12])
def test_a_resumed_session_begins_with_a_message_of_the_person(
    free: Home, server: ScriptedServer, steps: int
) -> None:
    calls = [
        chat_reply("Next.", tool_calls=[ToolCall("shell", {"command": f"echo {step}"}, f"c{step}")])
        for step in range(steps)
    ]
    server.play(*[chat_reply("I see.")] * 3, *calls, chat_reply("That was it."))
    with free.chat() as chat:
        for number, question in enumerate(("one", "two", "three"), 1):
            chat.type(f"{question}\r")
            chat.wait(partial(has_said, chat, "I see.", number), "an answer")
            chat.expect_line("ready")
        chat.type("run it\r")
        chat.expect("That was it.")
        chat.expect_line("ready")

    with free.chat("--continue") as chat:
        first = next(line for line in chat.all_lines if line.startswith(("» ", "  ")))
        assert first == ("» three" if steps == 1 else "» run it")
        chat.expect_line("ready")
        assert chat.lines.index("  That was it.") >= len(chat.lines) - 4  # a notice may come behind it


def test_what_a_command_shows_waits_for_the_end_of_the_paragraph(home: Home, server: ScriptedServer) -> None:
    words = [f"word{number} " for number in range(60)]
    reply = chat_reply(chunks=[*words, "\n\n", "Second paragraph."], usage=None)
    server.play(reply.stall((reply.stream or b"").index(b"word40 ")))

    with home.chat(columns=60) as chat:
        chat.type("talk\r")
        chat.expect("word30")
        chat.type("/cost\r")
        chat.expect_line("»$")
        server.release()
        chat.expect("Second paragraph.")
        chat.expect("this session")
        text = chat.text
    assert text.index("word59") < text.index("» /cost") < text.index("this session")


@pytest.mark.parametrize("columns", [40, 100])
def test_the_words_of_a_slow_answer_are_seen_before_their_row_is_full(
    home: Home, server: ScriptedServer, columns: int
) -> None:
    answer = chat_reply("- Boil **fresh** water.")
    assert answer.stream is not None
    server.play(answer.stall(answer.stream.index(b"water")))

    with home.chat(columns=columns) as chat:
        chat.type("How do I make tea?\r")
        chat.expect_line("• Boil fresh")
        chat.expect_line("working")
        server.release()
        chat.expect_line("ready")
        assert [line for line in chat.all_lines if "Boil" in line] == ["• Boil fresh water."]

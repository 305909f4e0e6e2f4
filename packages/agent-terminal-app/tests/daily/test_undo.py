"""Undo and redo in a real terminal, at several widths."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.testing.home import Home
    from agent_testing import ScriptedServer


def says(file: Path, text: str) -> bool:
    return file.read_text() == text


@pytest.mark.parametrize("columns", [40, 100, 200])
def test_edits_are_taken_back_one_by_one_and_made_again(
    home: Home, server: ScriptedServer, columns: int
) -> None:
    poem = home.project / "poem.txt"
    poem.write_text("roses are red\n")
    home.set('[permissions]\nallow = ["edit_file"]\n')
    colours = ["red", "blue", "green"]
    for old, new in itertools.pairwise(colours):
        edit = ToolCall("edit_file", {"path": "poem.txt", "old": old, "new": new}, "c1")
        server.play(chat_reply(tool_calls=[edit]), chat_reply(f"Now {new}."))

    with home.chat(columns=columns) as chat:
        for colour in colours[1:]:
            chat.type("another colour\r")
            chat.expect(f"Now {colour}.")
            chat.expect_line("ready")

        chat.type("/undo\r")
        chat.expect_line("press 1 2 3")
        chat.type("1")
        for before in ("blue", "red"):
            chat.expect(f"+roses are {before}")
            chat.expect_line("type your answer")
            chat.type("\r")
            chat.wait(partial(says, poem, f"roses are {before}\n"), f"{before} roses")
            chat.expect_line("ready")
            if before == "blue":
                chat.type("/undo\r")
        chat.type("/redo\r")
        chat.expect_line("type your answer")
        chat.type("\x1b")
        chat.expect("Nothing was changed.")
        chat.expect_line("ready")
        chat.type("/redo\r")
        chat.expect_line("type your answer")
        chat.type("\r")
        chat.wait(lambda: poem.read_text() == "roses are blue\n", "blue roses again")


def test_both_takes_back_what_was_changed_since_the_last_message_and_nothing_before(
    home: Home, server: ScriptedServer
) -> None:
    poem = home.project / "poem.txt"
    poem.write_text("roses are red\n")
    home.set('[permissions]\nallow = ["edit_file"]\n')
    colours = ["red", "blue", "green", "white"]
    edits = [
        ToolCall("edit_file", {"path": "poem.txt", "old": old, "new": new}, f"c{number}")
        for number, (old, new) in enumerate(itertools.pairwise(colours))
    ]
    server.play(chat_reply(tool_calls=edits[:1]), chat_reply("Now blue."))
    server.play(chat_reply(tool_calls=edits[1:2]), chat_reply(tool_calls=edits[2:]), chat_reply("Now white."))

    with home.chat() as chat:
        for colour in ("blue", "white"):
            chat.type("another colour\r")
            chat.expect(f"Now {colour}.")
            chat.expect_line("ready")
        chat.type("/undo files\r")
        chat.expect_line("type your answer")
        chat.type("\r")
        chat.expect("Took back change 3. /undo takes back the one before, /redo makes it again.")
        chat.expect_line("ready")
        chat.type("/undo both\r")
        chat.expect("Enter takes back change 2, Esc leaves it.")
        chat.type("\r")
        chat.wait(partial(says, poem, "roses are blue\n"), "blue roses")
        chat.expect("still has it (/sessions).")
        chat.expect_line("» another colour")
        chat.type("\x15/redo\r")
        chat.expect("Enter makes change 2 again, Esc leaves it.")
        chat.type("\r")
        chat.wait(partial(says, poem, "roses are green\n"), "green roses")

"""What a narrow terminal shows: rows end between words, and nothing is cut that can be read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_terminal_app.testing.home import AGENT
from agent_terminal_app.testing.terminal import Terminal
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ScriptedServer

NARROW, WIDE = 40, 400
SAID = "Please look at `git log --oneline` first, see https://example.org/poems, and then write the report."
IN_ROWS = [
    "» Please look at `git log --oneline`",
    "  first, see https://example.org/poems,",
    "  and then write the report.",
]


def printed(home: Home, columns: int, *arguments: str) -> list[str]:
    """Return the lines that a command leaves on a terminal of some width."""
    command = [*AGENT, *arguments]
    with Terminal(
        command, environment=home.environment, folder=home.project, columns=columns, rows=200
    ) as terminal:
        terminal.end()
        return terminal.lines


def words(lines: list[str]) -> set[str]:
    """Return the words; free space and other numbers may have changed from one to the next."""
    return {re.sub(r"\d+", "0", word) for line in lines for word in line.split()}


def whole_words(narrow: list[str], wide: list[str]) -> bool:
    """Say whether no word was cut; those that are wider than a row are cut by the terminal."""
    long = [word for word in words(wide) if len(word) > NARROW // 2]
    return not {word for word in words(narrow) - words(wide) if not any(word in one for one in long)}


def test_own_words_wrap_between_words_and_again_when_the_session_is_resumed(
    home: Home, server: ScriptedServer
) -> None:
    server.play(chat_reply("Done."))
    with home.chat(columns=NARROW) as chat:
        chat.type(f"{SAID}\r")
        chat.expect("Done.")
        chat.wait(lambda: "\n".join(IN_ROWS) in chat.text, "the message in rows")

    with home.chat("--continue", columns=NARROW) as chat:
        chat.wait(lambda: "\n".join(IN_ROWS) in chat.text, "the same message in the same rows")


def test_lines_of_a_code_block_stay_whole(home: Home, server: ScriptedServer) -> None:
    code = "print('a line that is wider than the terminal')"
    server.play(chat_reply("Done."))
    with home.chat(columns=NARROW) as chat:
        chat.paste(f"Run this one, it is short enough for me:\n```\n{code}\n```")
        chat.type("\r")
        chat.expect("Done.")
        chat.wait(lambda: "» Run this one, it is short enough for\n  me:\n  ```\n" in chat.text, "the prose")
        chat.wait(lambda: f"  {code}" in "".join(line.ljust(NARROW) for line in chat.lines), "the code")


@pytest.mark.parametrize("key", ["\r", "\x1b"])
def test_an_undo_that_is_left_says_so(home: Home, server: ScriptedServer, key: str) -> None:
    (home.project / "poem.txt").write_text("roses are red\n")
    home.set('[permissions]\nallow = ["edit_file"]\n')
    edit = ToolCall("edit_file", {"path": "poem.txt", "old": "red", "new": "blue"}, "c1")
    server.play(chat_reply(tool_calls=[edit]), chat_reply("Now blue."))

    with home.chat(columns=NARROW) as chat:
        chat.type("another colour\r")
        chat.expect("Now blue.")
        chat.expect_line("ready")
        chat.type("/undo\r")
        chat.expect_line("press 1 2 3")
        chat.type(key)
        chat.expect("Nothing was changed.")
    assert (home.project / "poem.txt").read_text() == "roses are blue\n"


def test_the_doctor_wraps_between_words(home: Home) -> None:
    wide, narrow = (printed(home, columns, "doctor") for columns in (WIDE, NARROW))

    # The report is about the width as well.
    narrow = [line for line in narrow if f"{NARROW}x" not in line and "columns wide" not in line]
    wide.append("WARN terminal: make it wider, and tables fit")
    assert whole_words(narrow, wide), words(narrow) - words(wide)


def test_an_error_wraps_between_words(home: Home) -> None:
    home.set("[agents.assistant]\nrounds = 5\n")

    in_a_pipe = home.run("run", "hello").stderr.splitlines()
    rows = printed(home, NARROW, "run", "hello")

    assert len(in_a_pipe) == 1 and len(rows) > 1
    assert whole_words(rows, in_a_pipe), words(rows) - words(in_a_pipe)


def test_an_error_wraps_between_words_and_keeps_commands_whole(home: Home) -> None:
    shown = printed(home, NARROW, "run", "--model", "nosuch:thing", "Hello")

    wide = printed(home, WIDE, "run", "--model", "nosuch:thing", "Hello")
    assert len(wide) == 1 and len(shown) > 3
    assert " ".join(shown) == wide[0] and all(len(line) <= NARROW for line in shown)
    assert any("`agent agents check`" in line for line in shown)


def test_a_table_that_does_not_fit_is_a_list(home: Home) -> None:
    home.set("""
[plugins.mcp_tools.servers.kitchen]
command = "python3"
args = ["-m", "kitchen", "--with", "tea"]
""")

    assert printed(home, NARROW, "mcp", "list") == [
        "kitchen",
        "  state           not approved",
        "  command or url",
        "      python3 -m kitchen --with tea",
    ]
    assert printed(home, NARROW, "models", "list") == [
        "openai_compatible:scripted-model",
        "  provider  openai_compatible",
        "  model     scripted-model",
        "  used by   assistant",
    ]
    assert printed(home, 80, "mcp", "list")[0].split() == ["SERVER", "STATE", "TOOLS", "COMMAND", "OR", "URL"]


def test_sessions_are_listed_in_rows_and_shown_between_words(home: Home, server: ScriptedServer) -> None:
    server.play(chat_reply("It is done, and there is nothing else that has to be said about it."))
    assert home.run("run", SAID).returncode == 0
    [session] = json.loads(home.run("sessions", "list", "--json").stdout)

    heading, row = printed(home, 80, "sessions", "list")
    assert heading.split() == ["ID", "CHANGED", "MESSAGES", "AGENT", "TITLE"]
    assert row.startswith(f"{session['id'][:8]} ") and len(row) <= 80
    shown = printed(home, NARROW, "sessions", "show", row.split()[0])
    said = shown.index("user:") + 1
    assert shown[said : said + 3] == [line.replace("»", " ") for line in IN_ROWS]
    assert shown[-2:] == ["  It is done, and there is nothing else", "  that has to be said about it."]
    assert home.run("sessions", "list").stdout.splitlines()[1].split()[0] == session["id"]

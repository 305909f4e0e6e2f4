"""A question shows everything that acts: other arguments, hidden and similar characters, all pages."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core.clean_text import hides, look_alikes
from agent_terminal_app import output
from agent_terminal_app.chat.questions.approvals import PAGE, Approvals
from agent_terminal_app.chat.questions.question import call_lines


def lines(arguments: Any, **display: Any) -> str:
    asked = {"arguments": arguments, **({"display": display} if display else {})}
    return "\n".join(call_lines(asked, color=False))


def test_arguments_that_the_tool_does_not_show_are_shown_as_well() -> None:
    command = {"command": "make\nmake test", "cwd": "../other", "timeout": 3600, "background": True}

    shown = lines(command, type="code", language="sh", content=command["command"])

    assert shown.count("make test") == 1
    for line in ("cwd: ../other", "timeout: 3600", "background: true"):
        assert line in shown


def test_what_a_diff_leaves_out_is_shown_whole() -> None:
    content = "".join(f"line {number}\n" for number in range(50))
    cut = "--- a/f\n+++ b/f\n+line 0\n… 49 lines more are not shown\n"

    assert "line 49" in lines({"path": "f", "content": content}, type="diff", title="f", content=cut)
    whole = "--- a/f\n+++ b/f\n" + "".join(f"+line {number}\n" for number in range(50))
    assert (
        lines({"path": "f", "content": content}, type="diff", title="f", content=whole).count("line 49") == 1
    )


@pytest.mark.parametrize(
    "char", ["\u115f", "\u1160", "\u3164", "\uffa0", "\u2800", "\ufe0f", "\U000e0100", "\u034f", "\U000e0041"]
)
def test_every_character_that_nobody_sees_is_named(char: str) -> None:
    command = f"rm{char}x"

    shown = lines({"command": command}, type="code", content=command)

    assert hides(command)
    assert "invisible characters" in shown
    assert f"\\u{ord(char):04x}" in shown or ord(char) > 0xFFFF


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("g\u0456t push", "CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I"),
        ("r\u217f -rf", "SMALL ROMAN NUMERAL ONE THOUSAND"),
        ("\uff52\uff4d", "FULLWIDTH LATIN SMALL LETTER R"),
        ("p\u03b1ypal.example", "GREEK SMALL LETTER ALPHA"),
    ],
)
def test_letters_that_look_like_others_are_named(text: str, named: str) -> None:
    assert named in lines({"command": text})


@pytest.mark.parametrize(
    "text",
    ["\u043f\u0440\u0438\u0432\u0435\u0442", "na\u00efve caf\u00e9", "\u03b1 = 1", "\u65e5\u672c", "😀"],
)
def test_other_languages_are_no_look_alikes(text: str) -> None:
    assert look_alikes(text) == []


def test_nobody_says_yes_to_pages_that_were_not_shown() -> None:
    printed: list[str] = []
    screen: Any = SimpleNamespace(color=False, width=80, is_live=False, line=printed.append)
    question: Any = SimpleNamespace(
        id="q",
        approval=SimpleNamespace(session_id="s"),
        lines=lambda color: iter([f"row {number}" for number in range(2 * PAGE + 5)]),
        choice_lines=lambda color: iter(["[1] yes"]),
        read=lambda line: pytest.fail("it was taken as an answer"),
    )

    async def next_question() -> Any:
        return question

    conversation: Any = SimpleNamespace(session_id="s", next_question=next_question)
    approvals = Approvals(screen)

    async def talk() -> None:
        await approvals.ask(conversation)
        assert printed[-1] == f"{PAGE + 5:,} more lines: [m] shows them, [n] refuses the call."
        await approvals.take(conversation, "y")
        await approvals.take(conversation, "more")

    asyncio.run(talk())
    assert "Read all of it first." in printed
    assert [line for line in printed if line.startswith("row ")] == [
        f"row {one}" for one in range(2 * PAGE + 5)
    ]


@pytest.mark.parametrize(
    ("text", "piped"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("\x1b]52;c;ZXZpbA==\x07clip", "clip"),
        ("\x1bPq#0;2\x1b\\x", "x"),
        ("\x9b31mx", "31mx"),
        ("bell\x07 tab\t return\r\n", "bell tab\t return\r\n"),
        ("عربي\u200f", "عربي\u200f"),
    ],
)
def test_a_pipe_gets_no_escapes_unless_it_wants_them(
    text: str, piped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda _stream: False)

    assert output.shown(text) == piped
    assert output.revealed(text) == piped
    assert output.revealed(text, raw=True) == text


def test_a_terminal_sees_that_something_was_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda _stream: True)

    assert output.revealed("a\u3164b\x1b[2J", raw=True) == "a<U+3164>b<U+001B>[2J"

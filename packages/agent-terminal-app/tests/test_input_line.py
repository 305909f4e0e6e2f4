"""What is typed and pasted: marks for large pastes, a keyboard with bounds, a history for its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agent_terminal_app.chat.keymap import KeyMap
from agent_terminal_app.chat.prompt.completion import read_snippet
from agent_terminal_app.chat.prompt.input_line import Pastes, open_history
from agent_terminal_app.chat.prompt.keys import LONGEST_PASTE, Keyboard

LARGE = "\n".join(f"line {number}" for number in range(120))


def test_a_small_paste_is_itself_and_a_large_one_a_mark() -> None:
    pastes = Pastes()

    assert pastes.take("a\r\nb") == "a\nb"
    assert pastes.take(LARGE) == "[pasted text #1, 120 lines]"
    assert pastes.take(LARGE + "\n") == "[pasted text #2, 120 lines]"
    assert pastes.take("x" * 2001) == "[pasted text #3, 2,001 characters]"


def test_marks_are_put_back_and_others_are_left_alone() -> None:
    pastes = Pastes()
    text = f"see {pastes.take(LARGE)} and [pasted text #7, 3 lines]"

    assert pastes.put_back(text) == f"see {LARGE} and [pasted text #7, 3 lines]"


def test_a_mark_is_found_around_the_cursor() -> None:
    pastes = Pastes()
    text = f"ab{pastes.take(LARGE)}cd"
    end = len(text) - 2

    assert pastes.around(text, 2) is None
    assert pastes.around(text, 3) == pastes.around(text, end) == (2, end)
    assert pastes.around(text, end + 1) is None


def test_history_has_the_whole_text_or_a_mark_that_means_nothing() -> None:
    pastes = Pastes()
    small, large = pastes.take(LARGE), pastes.take("x\n" * 50_000)

    assert pastes.to_remember(f"a {small}") == f"a {LARGE}"
    assert pastes.to_remember(f"a {large}") == "a [pasted text, 50,000 lines]"
    assert Pastes().put_back(pastes.to_remember(large)) == "[pasted text, 50,000 lines]"


def keyboard() -> Keyboard:
    return Keyboard(0)


@given(st.lists(st.text("ab\x1b[201~", max_size=12), max_size=8), st.lists(st.integers(1, 9), min_size=1))
def test_pastes_come_through_whole_however_they_are_cut(texts: list[str], cuts: list[int]) -> None:
    begin, end = "\x1b[200~", "\x1b[201~"
    typed = "".join(f"k{begin}{text.replace(end, '')}{end}" for text in texts) + "k"
    board, got, rest, n = keyboard(), "", typed, 0
    # A mark that is cut in two at its beginning is only not bounded; so the pieces begin behind one.
    while rest:
        size = cuts[n % len(cuts)]
        while any(rest[:size].endswith(begin[:k]) for k in range(1, len(begin))):
            size += 1
        got += board.bounded(rest[:size])
        rest, n = rest[size:], n + 1

    assert got == typed


def test_of_a_huge_paste_only_the_beginning_is_taken() -> None:
    board = keyboard()

    got = board.bounded("\x1b[200~") + "".join(board.bounded("x" * 65_536) for _ in range(100))
    got += board.bounded("y\x1b[201~behind")

    assert len(got) == LONGEST_PASTE + len("\x1b[200~\x1b[201~behind")
    assert got.endswith("\x1b[201~behind")


def test_a_terminal_that_is_gone_is_noticed() -> None:
    read, write = os.pipe()
    board = Keyboard(read)
    os.write(write, "ä".encode()[:1])
    assert board.read() == ""
    os.write(write, "ä".encode()[1:])
    assert board.read() == "ä"
    os.close(write)

    assert board.read() == "" and board.closed
    os.close(read)


def test_history_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"

    first = open_history(path)
    for text in ("one", "two\nlines", " a secret"):
        first.append_string(text)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(open_history(path).load_history_strings()) == ["two\nlines", "one"]


def test_a_history_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("\n# then\n+old\n")
    path.chmod(0o644)

    open_history(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_long_history_is_shortened_and_its_end_kept(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"\n# then\n+line {number}\n" for number in range(60_000)))

    history = open_history(path)

    assert path.stat().st_size < 700_000
    lines = list(history.load_history_strings())
    assert lines[0] == "line 59999" and len(lines) == 1000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_history_that_cannot_be_written_prevents_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    open_history(tmp_path / "history").append_string("x")


def test_a_history_in_the_place_of_a_folder_prevents_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    open_history(tmp_path / "file" / "history").append_string("x")


@pytest.mark.parametrize(
    ("snippet", "text", "cursor"),
    [
        ("plain", "plain", 5),
        ("/note ${1:text} end", "/note text end", 10),
        ("a $1 b $2", "a  b ", 2),
        ("${1}x", "x", 0),
    ],
)
def test_a_snippet_says_where_one_goes_on_typing(snippet: str, text: str, cursor: int) -> None:
    assert read_snippet(snippet) == (text, cursor)


def test_the_page_about_the_chat_lists_the_keys() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "chat.md").read_text(encoding="utf-8")

    assert "".join(f"| {keys} | {about} |\n" for keys, about in KeyMap.usual().rows()) in page

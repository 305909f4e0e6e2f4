"""Keys as people write them, and the file in which they write them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.keys import KEY_ALIASES, Keys

from agent_terminal_app.chat.keymap import (
    ACTIONS,
    ALWAYS,
    SHIFT_ENTER,
    KeyMap,
    NoKeyError,
    load_keys,
    read_key,
)
from agent_terminal_app.errors import Exit, SettingsError

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "chat-keys.md"
NAMED = [
    *(key for action in ACTIONS for key in action.keys),
    *(f"Ctrl+{letter}" for letter in "ABCDEFGJKLNOPQRSTUVWXYZ\\]^_"),
    *(f"{held}{key}" for key in ("Up", "Home", "PgDn", "Delete") for held in ("", "Ctrl+", "Shift+", "Alt+")),
    *(f"F{number}" for number in range(1, 21)),
    "Ctrl+Space", "Ctrl+Shift+Right", "Alt+x", "Alt+Ctrl+K", "Alt+Backspace", "Alt++",
]  # fmt: skip


def keys(tmp_path: Path, text: str) -> KeyMap:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    return load_keys(path)


@pytest.mark.parametrize("name", NAMED)
def test_a_key_that_has_a_name_is_one_that_terminals_send(name: str) -> None:
    sent = {
        key for value in ANSI_SEQUENCES.values() for key in (value if isinstance(value, tuple) else (value,))
    }

    for code in read_key(name).codes:
        key = KEY_ALIASES.get(code, code)
        assert len(code) == 1 or code == SHIFT_ENTER or Keys(key) in sent


@pytest.mark.parametrize(
    ("written", "name", "codes"),
    [
        ("ctrl+t", "Ctrl+T", ("c-t",)),
        ("CONTROL+T", "Ctrl+T", ("c-t",)),
        ("alt+ctrl+k", "Ctrl+Alt+K", ("escape", "c-k")),
        ("option+return", "Alt+Enter", ("escape", "enter")),
        ("Ctrl+X Ctrl+E", "Ctrl+X Ctrl+E", ("c-x", "c-e")),
        ("pageup", "PgUp", ("pageup",)),
        ("?", "?", ("?",)),
        ("+", "+", ("+",)),
        ("Alt++", "Alt++", ("escape", "+")),
        ("Shift+Enter", "Shift+Enter", (SHIFT_ENTER,)),
    ],
)
def test_a_key_may_be_written_in_several_ways(written: str, name: str, codes: tuple[str, ...]) -> None:
    key = read_key(written)

    assert (key.name, key.codes) == (name, codes)


@pytest.mark.parametrize(
    ("written", "problem", "hint"),
    [
        ("Ctlr+T", "there is no key 'Ctlr'", "did you mean 'Ctrl'?"),
        ("Ctrl+PgUpp", "there is no key 'PgUpp'", "did you mean 'PgUp'?"),
        ("Ctrl+I", "terminals send the same for Ctrl+I and Tab", "write Tab"),
        ("Alt+Ctrl+M", "terminals send the same for Ctrl+Alt+M and Enter", "write Enter"),
        ("Ctrl+Shift+T", "terminals do not send Ctrl+Shift+T", "use Ctrl"),
        ("Ctrl+Enter", "terminals do not send Ctrl+Enter", "use Ctrl"),
        ("Ctrl+1", "terminals do not send Ctrl+1", "use Ctrl"),
        ("Alt+Esc", "terminals do not send Alt+Esc", "use Ctrl"),
        ("", "'' is not a key", "write one as"),
        ("Ctrl+A Ctrl+B Ctrl+C", "'Ctrl+A Ctrl+B Ctrl+C' is not a key", "write one as"),
        ("g g", "'g g' cannot be distinguished from typing", "use Ctrl or Alt"),
        ("Esc x", "'Esc x' cannot be distinguished from typing", "use Ctrl or Alt"),
    ],
)
def test_what_is_no_key_is_told_with_a_hint(written: str, problem: str, hint: str) -> None:
    with pytest.raises(NoKeyError, match=f"^{re.escape(problem)}$") as error:
        read_key(written)

    assert error.value.hint.startswith(hint)


def test_without_a_file_the_usual_keys_hold(tmp_path: Path) -> None:
    keymap = load_keys(tmp_path / "keys.toml")

    assert keymap == KeyMap.usual()
    assert keymap.changes() == []
    assert keymap.shown("new_line") == "Alt+Enter, Ctrl+J, Shift+Enter"


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    keymap = keys(
        tmp_path, 'transcript = "f5"\nnew_line = ["Enter"]\nsend = ["Ctrl+S", "Alt+Enter"]\nhelp = []\n'
    )

    assert keymap.changes() == ["send", "new_line", "transcript", "help"]
    assert [keymap.shown(name) for name in ("transcript", "new_line", "send", "help")] == [
        "F5", "Enter", "Ctrl+S, Alt+Enter", "",
    ]  # fmt: skip
    assert keymap.first("help") == "" and keymap.first("open") == "Ctrl+O"
    assert [key.name for key in keymap.freed("transcript")] == ["Ctrl+T"]
    assert keymap.freed("send") == []
    assert "F1" not in [keys for keys, _ in keymap.rows()]


def test_keys_may_be_exchanged(tmp_path: Path) -> None:
    keymap = keys(tmp_path, 'open = "Ctrl+T"\ntranscript = "Ctrl+O"\n')

    assert (keymap.shown("open"), keymap.shown("transcript")) == ("Ctrl+T", "Ctrl+O")


@pytest.mark.parametrize("written", ['stop = "F8"', "stop = []", 'stop = ["F8", "Esc"]'])
def test_esc_always_stops_since_every_question_says_so(tmp_path: Path, written: str) -> None:
    assert ALWAYS == {"stop": "Esc"}
    assert "Esc" in keys(tmp_path, written).shown("stop").split(", ")


@pytest.mark.parametrize(
    ("text", "line", "problem", "hint"),
    [
        ('# mine\ntranscipt = "F5"', 2, "there is no action 'transcipt'", "did you mean 'transcript'?"),
        ('edit = "Ctlr+E"', 1, "edit: there is no key 'Ctlr'", "did you mean 'Ctrl'?"),
        ("edit = 5", 1, "edit must be a key or a list of keys, not 5", ""),
        ('edit = ["F5", 5]', 1, "edit must be a key or a list of keys", ""),
        ("[edit]\nkey = 'F5'", 1, "edit must be a key or a list of keys", ""),
        ("send = []", 1, "send needs a key", ""),
        (
            '\nedit = "Ctrl+T"',
            2,
            "Ctrl+T is the key of both transcript and edit",
            "give transcript another key",
        ),
        (
            'transcript = "Ctrl+G"',
            1,
            "Ctrl+G is the key of both transcript and edit",
            "give edit another key",
        ),
        ('edit = "F5"\nopen = "F5"', 1, "F5 is the key of both open and edit", "give open another key"),
        ('edit = "Ctrl+R Ctrl+E"', 1, "Ctrl+R Ctrl+E, of edit, begins with the key of search", "give search"),
        ('edit = "F5', 1, "", ""),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as error:
        keys(tmp_path, text)

    assert error.value.code == Exit.NOT_CONFIGURED
    assert str(error.value).startswith(f"{tmp_path}/keys.toml:{line}: {problem}")
    assert error.value.hint.startswith(hint)


def test_the_page_about_keys_has_the_table_of_the_program() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [(action.name, ", ".join(action.keys), action.about) for action in ACTIONS]

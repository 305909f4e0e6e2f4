"""`/edit`, `/rewind`, `/fork`, `/undo`, `/redo`: other ways on, and always a way back."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from files_tool import FilesTool, FilesUndo

if TYPE_CHECKING:
    from chat_commands.conftest import Desk


def test_an_edited_message_is_answered_in_a_branch(desk: Desk) -> None:
    shown = desk.chat("one", "two", "/edit", "three")

    branch, source = desk.sessions()
    assert desk.said(source) == ["one", "You said: one", "two", "You said: two"]
    assert desk.said(branch) == ["one", "You said: one", "three", "You said: three"]
    assert shown[shown.index("It was:") + 1] == "two"


def test_any_message_can_be_edited_by_its_number(desk: Desk) -> None:
    shown = desk.chat("one", "two", "/edit list", "1", "zero", "/edit 1", "nought")

    assert "   1  one" in shown and "   2  two" in shown
    assert desk.said(desk.sessions()[0]) == ["nought", "You said: nought"]


@pytest.mark.parametrize("answer", ["", "   ", "one"])
def test_an_edit_that_changes_nothing_makes_no_branch(desk: Desk, answer: str) -> None:
    shown = desk.chat("one", "/edit", answer)

    assert shown[-1] == "It stays as it was."
    assert len(desk.sessions()) == 1


def test_esc_leaves_an_edit(desk: Desk, esc: str) -> None:
    desk.chat("one", "/edit", esc, "/edit list", esc, "/rewind list", esc, "two")

    assert desk.said(desk.sessions()[0]) == ["one", "You said: one", "two", "You said: two"]


def test_rewind_goes_back_before_the_last_message(desk: Desk) -> None:
    shown = desk.chat("one", "two", "/rewind", "three")

    assert "Back before: two" in shown
    branch, source = desk.sessions()
    assert desk.said(branch) == ["one", "You said: one", "three", "You said: three"]
    assert len(desk.said(source)) == 4


def test_rewind_goes_back_before_any_message(desk: Desk) -> None:
    desk.chat("one", "two", "three", "/rewind list", "2", "four", "/rewind 1", "five")

    assert desk.said(desk.sessions()[0]) == ["five", "You said: five"]
    assert desk.said(desk.sessions()[1]) == ["one", "You said: one", "four", "You said: four"]


@pytest.mark.parametrize("command", ["/rewind 3", "/edit 0", "/edit nine", "/rewind -1"])
def test_a_number_that_no_message_has_is_an_error(desk: Desk, command: str) -> None:
    shown = desk.chat("one", "two", command)

    number = command.split()[1]
    assert shown[-1] == f"Error: '{number}' is not a number from 1 to 2; `list` shows them"
    assert len(desk.sessions()) == 1


def test_a_fork_leaves_the_session_as_it_is(desk: Desk) -> None:
    desk.chat("one", "/fork", "two")

    branch, source = desk.sessions()
    assert len(desk.said(source)) == 2 and len(desk.said(branch)) == 4


def test_undo_takes_the_last_turn_back_and_redo_brings_it(desk: Desk) -> None:
    desk.chat("one", "two", "/undo", "/undo", "/redo", "/redo", "three")

    assert desk.said(desk.sessions()[0])[-2:] == ["three", "You said: three"]
    assert len(desk.said(desk.sessions()[0])) == 6


def test_redo_without_an_undo_is_an_error(desk: Desk) -> None:
    assert desk.chat("one", "/redo")[-1] == "Error: nothing was undone here: /sessions lists every branch"


@pytest.fixture
def files(desk: Desk) -> Desk:
    """An agent that changes a file with every message, and a plugin that keeps a journal of it."""

    def answer(messages: list[dict[str, Any]]) -> Reply:
        last = messages[-1]
        if last["role"] == "tool":
            return Reply(text="Written.")
        return Reply(
            tool_calls=[ToolCall("write_file", {"path": "note.txt", "content": f"{last['content']}\n"})]
        )

    desk.plugins = [ScriptedProvider(itertools.repeat(answer), name="demo"), FilesTool, FilesUndo]
    desk.config["agents"]["assistant"]["plugin_ids"] = ["files_tool", "files_undo"]
    return desk


def note(desk: Desk) -> str:
    return (desk.folder / "note.txt").read_text()


def test_undo_asks_once_what_is_meant_and_enter_takes_a_change_back(files: Desk) -> None:
    shown = files.chat("one", "two", "three", "/undo", "1", "", "/undo", "")

    assert shown.count("  [1] files: the last change") == 1
    assert "  [2] files and conversation: your last message, and the 1 change of files since" in shown
    assert "  [3] conversation: back before 'three'" in shown
    assert shown.count("Enter takes back change 3, Esc leaves it.") == 1
    assert "  -three" in shown and "  +two" in shown
    assert "Took back change 2. /undo takes back the one before, /redo makes it again." in shown
    assert note(files) == "one\n"


def test_help_lists_undo_and_redo_and_not_the_actions_that_do_the_same(files: Desk) -> None:
    shown = files.chat("one", "/help")

    assert any(line.startswith("  /undo ") for line in shown) and any("  /changes " in line for line in shown)
    assert [line for line in shown if "files_undo" in line] == []
    assert any("/files_undo.undo" in line for line in files.chat("/actions"))


def test_files_that_were_undone_are_redone_in_turn_and_at_another_time(files: Desk) -> None:
    files.chat("one", "two", "three", "/undo files", "", "/undo", "", "/redo", "")
    assert note(files) == "two\n"

    files.chat("/redo", "", session=files.sessions()[0])

    assert note(files) == "three\n"


def test_a_turn_is_taken_back_and_its_files_stay(files: Desk) -> None:
    shown = files.chat("one", "two", "/undo", "3", "/redo")

    assert note(files) == "two\n"
    assert shown[-1].endswith(" again.")


def test_conversation_and_files_are_taken_back_together_and_come_back_together(files: Desk) -> None:
    files.chat("one", "two", "three", "/undo both", "", "/undo", "")
    assert note(files) == "one\n"

    shown = files.chat("two", "/undo both", "", "/redo", "", session=files.sessions()[-1])

    assert note(files) == "two\n"
    assert shown[-1].endswith(" again.")


def test_a_change_that_is_not_confirmed_stays(files: Desk) -> None:
    shown = files.chat("one", "/undo files", "no", "/undo nothing")

    assert "Nothing was changed." in shown and note(files) == "one\n"
    assert shown[-1] == "Error: /undo takes files, both, conversation, not 'nothing'"


def test_files_are_not_mentioned_where_none_was_changed(files: Desk) -> None:
    files.plugins[0] = ScriptedProvider(["Nothing to do."], name="demo")

    shown = files.chat("one", "/undo")

    assert "Back before: one" in shown


def test_undo_that_is_left_or_not_understood_does_nothing(files: Desk, esc: str) -> None:
    shown = files.chat("one", "/undo", esc, "/undo", "7", "/undo", "")

    assert "Error: '7' is not one of them; nothing was done" in shown
    assert note(files) == "one\n" and len(files.sessions()) == 1


def test_commands_that_change_the_session_wait_for_the_agent(desk: Desk) -> None:
    from agent_terminal_app.chat.commands.registry import COMMANDS

    changing = {
        "new",
        "resume",
        "branches",
        "plan",
        "import",
        "edit",
        "rewind",
        "fork",
        "undo",
        "redo",
        "compact",
        "model",
        "agent",
    }
    assert {name for name, one in COMMANDS.items() if one.idle} == {*changing, "setup"}

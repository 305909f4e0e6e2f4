"""What a person approved is what is done: also if the answer comes late, and in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from files_tool import FilesTool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from conftest import Files

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@\n-one\n+1\n--- a/b.txt\n+++ b/b.txt\n@@\n-two\n+2\n"
CALLS: dict[str, dict[str, Any]] = {
    "write_file": {"path": "a.txt", "content": "1\n"},
    "edit_file": {"path": "a.txt", "old": "one", "new": "1"},
    "apply_patch": {"patch": PATCH},
}
CHANGED = (
    " changed after this call was shown for approval, so nothing was done: read it again, then call it again"
)


@contextmanager
def application(folder: Path, *script: Any) -> Iterator[AgentApplication]:
    """Hold an application open that asks before it changes anything, on a database in a folder."""
    agent = {
        "model": "m",
        "plugin_ids": ["files_tool"],
        "sections": {"files_tool": {"journal": str(folder / "journal")}, "permissions": {"ask": ["*"]}},
    }
    config = {"agents": {"a": agent}, "models": {"m": {"provider": "scripted"}}}
    store = f"sqlite:///{folder / 'sessions.db'}"
    plugins = [ScriptedProvider(list(script)), FilesTool]
    with AgentApplication(config, store=store, plugins=plugins, installed=False) as app:
        yield app


def ask(folder: Path, *made: tuple[str, dict[str, Any]]) -> str:
    """Let a model call tools in a session, and leave when a person is asked; returns the session."""
    reply = Reply(tool_calls=[ToolCall(name, arguments) for name, arguments in made])
    with application(folder, reply) as app:
        metadata = {"workspace_roots": [str(folder / "work")]}
        session_id: str = app.create_session(metadata=metadata).session_id
        list(app.chat(session_id, "Go."))
        assert len(app.approvals(session_id)) == len(made)
    return session_id


def approve(folder: Path, session_id: str) -> list[str]:
    """Say yes to everything, in an application of its own; returns what the model reads."""
    with application(folder, "Done.") as app:
        for approval in app.approvals(session_id):
            app.decide(approval.id, True)
        events = list(app.chat(session_id))
    return [event["message"]["content"] for event in events if event["type"] == "tool_call_result"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("two\n")
    return folder


@pytest.mark.parametrize("tool", CALLS)
def test_what_was_shown_is_done_after_a_restart(work: Path, tool: str) -> None:
    session_id = ask(work.parent, (tool, CALLS[tool]))

    [told] = approve(work.parent, session_id)

    assert told.startswith("Changed a.txt")
    assert (work / "a.txt").read_text() == "1\n"


@pytest.mark.parametrize("tool", CALLS)
def test_a_file_that_was_changed_meanwhile_is_not_touched(work: Path, tool: str) -> None:
    session_id = ask(work.parent, (tool, CALLS[tool]))
    (work / "a.txt").write_text("one\nand more\n")

    told = approve(work.parent, session_id)

    assert told == [f"a.txt{CHANGED}"]
    assert (work / "a.txt").read_text() == "one\nand more\n"
    assert (work / "b.txt").read_text() == "two\n"


def test_a_second_file_of_a_patch_counts_too(work: Path) -> None:
    session_id = ask(work.parent, ("apply_patch", CALLS["apply_patch"]))
    (work / "b.txt").write_text("two\nand more\n")

    assert approve(work.parent, session_id) == [f"b.txt{CHANGED}"]
    assert (work / "a.txt").read_text() == "one\n"


def test_a_file_that_came_or_went_meanwhile_is_not_touched(work: Path) -> None:
    session_id = ask(
        work.parent,
        ("write_file", {"path": "new.txt", "content": "x\n"}),
        ("write_file", {"path": "a.txt", "content": "x\n"}),
    )
    (work / "new.txt").write_text("of somebody else\n")
    (work / "a.txt").unlink()

    assert approve(work.parent, session_id) == [f"new.txt{CHANGED}", f"a.txt{CHANGED}"]
    assert (work / "new.txt").read_text() == "of somebody else\n"
    assert not (work / "a.txt").exists()


def test_nobody_is_asked_about_a_call_that_would_fail_unless_another_one_waits(work: Path) -> None:
    wrong = ("edit_file", {"path": "a.txt", "old": "three", "new": "3"})

    with application(work.parent, Reply(tool_calls=[ToolCall(*wrong)]), "I see.") as app:
        alone: str = app.create_session(metadata={"workspace_roots": [str(work)]}).session_id
        events = list(app.chat(alone, "Go."))
        assert app.approvals(alone) == []
        [told] = [event["message"]["content"] for event in events if event["type"] == "tool_call_result"]
    assert told.startswith("Error: a.txt does not have that text")

    session_id = ask(work.parent, ("write_file", CALLS["write_file"]), wrong)
    (work / "a.txt").write_text("three\n")
    _first, second = approve(work.parent, session_id)
    assert second == (
        "this call was shown for approval as one that is refused, so nothing was done: call it again"
    )
    assert (work / "a.txt").read_text() == "three\n"


def test_a_call_that_was_shown_as_no_change_changes_nothing(work: Path) -> None:
    session_id = ask(work.parent, ("write_file", {"path": "a.txt", "content": "one\n"}))
    (work / "a.txt").write_text("of somebody else\n")

    assert approve(work.parent, session_id) == [f"a.txt{CHANGED}"]
    assert (work / "a.txt").read_text() == "of somebody else\n"


def test_what_is_so_already_is_told_as_such(work: Path) -> None:
    session_id = ask(work.parent, ("write_file", CALLS["write_file"]))
    (work / "a.txt").write_text("1\n")

    assert approve(work.parent, session_id) == ["Nothing was changed: it is so already."]


def test_two_changes_of_one_file_that_are_asked_about_together_are_both_made(work: Path) -> None:
    (work / "a.txt").write_text("one\nsix\n")
    session_id = ask(
        work.parent,
        ("edit_file", {"path": "a.txt", "old": "one", "new": "1"}),
        ("edit_file", {"path": "a.txt", "old": "six", "new": "6"}),
        ("write_file", {"path": "new.txt", "content": "x\n"}),
        ("edit_file", {"path": "b.txt", "old": "two", "new": "2"}),
    )

    told = approve(work.parent, session_id)

    assert [text.split(" (")[0] for text in told] == [
        "Changed a.txt", "Changed a.txt", "Created new.txt", "Changed b.txt",
    ]  # fmt: skip
    assert (work / "a.txt").read_text() == "1\n6\n"


def test_another_programs_change_between_two_of_the_sessions_own_counts(work: Path) -> None:
    (work / "a.txt").write_text("one\nsix\n")
    session_id = ask(
        work.parent,
        ("edit_file", {"path": "a.txt", "old": "one", "new": "1"}),
        ("edit_file", {"path": "a.txt", "old": "six", "new": "6"}),
    )
    with application(work.parent) as app:
        first, _second = app.approvals(session_id)
        app.decide(first.id, True)
        list(app.chat(session_id))
    (work / "a.txt").write_text((work / "a.txt").read_text() + "of somebody else\n")

    [told] = approve(work.parent, session_id)

    assert told.startswith("a.txt has changed since it was read here")
    assert (work / "a.txt").read_text() == "1\nsix\nof somebody else\n"


def test_the_answer_comes_in_another_process(work: Path) -> None:
    (work.parent / "ask.py").write_text(
        "import sys\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(_here())!r})\n"
        "from test_approved import CALLS, ask\n"
        "print(ask(Path(sys.argv[1]), ('write_file', CALLS['write_file'])))\n"
    )
    asked = subprocess.run(
        [sys.executable, str(work.parent / "ask.py"), str(work.parent)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    (work / "a.txt").write_text("of somebody else\n")

    assert approve(work.parent, asked.stdout.strip()) == [f"a.txt{CHANGED}"]


def _here() -> Path:
    from pathlib import Path

    return Path(__file__).parent


def test_a_call_that_nobody_was_asked_about_needs_no_display(files: Files) -> None:
    files.put("a.txt", "one\n")
    files.display("write_file", path="a.txt", content="1\n")
    files.put("a.txt", "of somebody else\n")

    assert files.ok("write_file", path="a.txt", content="1\n").startswith("Changed a.txt")


def bound(shown: Any, files: Files, tool: str, **arguments: Any) -> dict[str, Any]:
    """Run a call that a person has seen."""
    kept = json.loads(json.dumps(shown))  # as every store gives it back
    return files.tool.execute_tool(tool, arguments, files.state, context={**files.context, "shown": kept})


NAMES: Sequence[str] = ("a b.txt", "ä.txt", "\u202eevil.txt", "line\nbreak.txt", "x" * 200)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_any_name_can_be_approved(files: Files, name: str) -> None:
    files.put(name, "one\n")
    shown = files.display("write_file", path=name, content="1\n")

    assert bound(shown, files, "write_file", path=name, content="1\n")["success"]


def test_the_same_name_in_another_workspace_is_another_file(files: Files, tmp_path: Path) -> None:
    files.put("a.txt", "one\n")
    shown = files.display("write_file", path="a.txt", content="1\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("one\n")
    files.state = files.tool.init({**files.config, "roots": [str(other)]})

    assert CHANGED in bound(shown, files, "write_file", path="a.txt", content="1\n")["error"]


def test_a_question_of_an_earlier_version_has_nothing_to_compare(files: Files) -> None:
    files.put("a.txt", "one\n")

    assert bound({"type": "diff", "content": ""}, files, "write_file", path="a.txt", content="1\n")["success"]

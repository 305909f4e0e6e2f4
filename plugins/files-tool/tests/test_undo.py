"""Undo, redo and the list of changes, as people use them."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from agent_core import AgentCore
from agent_core.display import validate_display
from agent_core.testing import EchoProvider
from files_tool import FilesTool, FilesUndo

if TYPE_CHECKING:
    from conftest import Files, MakeFiles


def test_undo_shows_its_plan_and_does_nothing(files: Files) -> None:
    files.put("a.txt", "one\n")
    files.ok("write_file", path="a.txt", content="two\n")

    answer = files.act("undo")

    assert answer == {
        "status": "plan",
        "changes": [1],
        "display": {
            "format": "markdown",
            "title": "Undo change 1?",
            "body": "```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-two\n+one\n```",
            "variant": "warning",
            "presentation": "inline",
            "dismissible": True,
            "display_id": "files-undo",
            "actions": [
                {
                    "kind": "run_action",
                    "id": "confirm-undo",
                    "label": "Undo",
                    "plugin": "files_undo",
                    "action_id": "undo",
                    "params": {"count": 1, "confirm": True, "change": 1},
                }
            ],
        },
    }
    assert files.text("a.txt") == "two\n"
    assert validate_display(answer["display"]).warnings == ()


def test_the_offered_action_does_what_was_shown(files: Files) -> None:
    files.put("a.txt", "one\n")
    files.ok("write_file", path="a.txt", content="two\n")
    [offered] = files.act("undo")["display"]["actions"]

    answer = files.act(offered["action_id"], **offered["params"])

    assert answer["status"] == "ok"
    assert answer["display"]["title"] == "Undid change 1"
    assert files.text("a.txt") == "one\n"
    [offered] = files.act("redo")["display"]["actions"]
    assert files.act(offered["action_id"], **offered["params"])["display"]["title"] == "Redid change 1"
    assert files.text("a.txt") == "two\n"


def test_a_plan_that_is_outdated_is_not_carried_out(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="one\n")
    [offered] = files.act("undo")["display"]["actions"]
    files.ok("write_file", path="b.txt", content="two\n")

    answer = files.act("undo", **offered["params"])

    assert answer["error"]["type"] == "outdated"
    assert files.tree() == {"a.txt": b"one\n", "b.txt": b"two\n"}


def test_several_changes_are_undone_together(files: Files) -> None:
    files.put("a.txt", "0\n")
    for number in range(1, 4):
        files.ok("write_file", path="a.txt", content=f"{number}\n")
    files.ok("write_file", path="deep/er/b.txt", content="x\n")

    plan = files.act("undo", count=3)

    assert plan["changes"] == [4, 3, 2]
    assert plan["display"]["title"] == "Undo 3 changes, 2 to 4?"
    assert "-3\n+1\n" in plan["display"]["body"]
    assert files.act("undo", count=3, confirm=True)["status"] == "ok"
    assert files.text("a.txt") == "1\n"
    assert not (files.root / "deep").exists()
    assert files.act("redo", count=2, confirm=True)["changes"] == [2, 3]
    assert files.text("a.txt") == "3\n"
    assert files.act("redo", confirm=True)["changes"] == [4]
    assert files.tree() == {"a.txt": b"3\n", "deep/er/b.txt": b"x\n"}
    assert files.act("redo") == {"status": "noop", "message": "There is nothing to redo."}
    assert files.act("undo", count=99, confirm=True)["changes"] == [4, 3, 2, 1]
    assert files.tree() == {"a.txt": b"0\n"}
    assert files.act("undo") == {"status": "noop", "message": "There is nothing to undo."}


def test_undo_refuses_where_a_file_has_changed_since(files: Files) -> None:
    files.put("a.txt", "one\n")
    files.ok("write_file", path="a.txt", content="two\n")
    files.ok("write_file", path="b.txt", content="x\n")
    files.put("a.txt", "theirs\n")

    for params in ({"count": 2}, {"count": 2, "confirm": True}):
        answer = files.act("undo", **params)
        assert answer == {
            "status": "error",
            "error": {
                "type": "refused",
                "message": "a.txt has changed since change 1 (write_file), so nothing was done: bring it "
                "back by hand, or keep it as it is; set count to 1 to leave it out",
            },
        }
    assert files.tree() == {"a.txt": b"theirs\n", "b.txt": b"x\n"}
    assert files.act("undo", confirm=True)["status"] == "ok"
    assert "a.txt has changed since" in files.act("undo", confirm=True)["error"]["message"]
    assert files.tree() == {"a.txt": b"theirs\n"}


def test_redo_refuses_where_a_file_has_changed_since(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="one\n")
    files.act("undo", confirm=True)
    files.put("a.txt", "theirs\n")

    assert "a.txt has changed since" in files.act("redo", confirm=True)["error"]["message"]
    assert files.text("a.txt") == "theirs\n"
    (files.root / "a.txt").unlink()
    assert files.act("redo", confirm=True)["status"] == "ok"
    assert files.text("a.txt") == "one\n"


def test_a_new_change_ends_what_can_be_redone(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="one\n")
    files.act("undo", confirm=True)
    files.ok("write_file", path="b.txt", content="two\n")

    assert files.act("redo")["status"] == "noop"
    assert [change["number"] for change in files.act("changes")["changes"]] == [2]


def test_modes_come_back(files: Files) -> None:
    script = files.put("run.sh", "#!/bin/sh\n")
    script.chmod(0o750)
    files.ok("apply_patch", patch="--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-#!/bin/sh\n")

    assert not script.exists()
    files.act("undo", confirm=True)
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    files.act("redo", confirm=True)
    assert not script.exists()


def test_a_new_file_that_was_made_executable_comes_back_as_such(files: Files) -> None:
    files.ok("write_file", path="run.sh", content="#!/bin/sh\n")
    (files.root / "run.sh").chmod(0o755)

    files.act("undo", confirm=True)
    files.act("redo", confirm=True)

    assert stat.S_IMODE((files.root / "run.sh").stat().st_mode) == 0o755


def test_a_folder_that_has_something_else_in_it_stays(files: Files) -> None:
    files.ok("write_file", path="deep/er/a.txt", content="x\n")
    files.put("deep/other.txt", "y\n")

    files.act("undo", confirm=True)

    assert files.tree() == {"deep/other.txt": b"y\n"}
    assert not (files.root / "deep/er").exists()


def test_after_undo_the_model_must_read_again(files: Files) -> None:
    files.put("a.txt", "one\n")
    files.ok("read_file", path="a.txt")
    files.ok("write_file", path="a.txt", content="two\n")
    files.act("undo", confirm=True)

    assert "read it again" in files.refused("edit_file", path="a.txt", old="one", new="three")


def test_changes_are_listed_newest_first(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="one\n")
    files.ok("edit_file", path="a.txt", old="one", new="1\n2")
    files.act("undo", confirm=True)

    answer = files.act("changes")

    assert [(one["number"], one["tool"], one["undone"]) for one in answer["changes"]] == [
        (2, "edit_file", True),
        (1, "write_file", False),
    ]
    assert answer["changes"][0]["files"] == [
        {"root": str(files.root), "path": "a.txt", "added": 2, "removed": 1}
    ]
    first, second = answer["display"]["body"].splitlines()
    assert first.startswith("2. edit_file, ")
    assert first.endswith(" (undone): a.txt +2 -1")
    assert second.endswith(": a.txt +1 -0")
    assert files.act("nonsense")["error"]["type"] == "unknown_action"


def test_a_session_without_changes_has_no_journal(files: Files) -> None:
    assert files.act("changes")["display"]["body"] == "No file was changed in this session."
    assert files.act("undo")["status"] == "noop"
    assert not files.journal.exists()


def test_a_diff_cannot_break_out_of_its_block(files: Files) -> None:
    files.ok("write_file", path="a.md", content="```\n````python\n</script>\n")

    body = files.act("undo")["display"]["body"]

    assert body.startswith("`````diff\n")
    assert body.endswith("\n`````")


def test_a_long_diff_fits_a_display(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="日本語の行\n" * 50_000)

    report = validate_display(files.act("undo")["display"])

    assert report.warnings == ()


def test_wrong_inputs_and_settings_are_told(files: Files) -> None:
    assert files.act("undo", count=-1)["error"] == {"type": "count", "message": "count must be 1 or more"}
    files.config["journal"] = 5
    assert files.act("undo")["error"]["type"] == "config"


def test_a_deleted_session_is_forgotten(files: Files, make_files: MakeFiles) -> None:
    files.ok("write_file", path="a.txt", content="x\n")
    make_files("other").ok("write_file", path="b.txt", content="y\n")

    assert files.act("forget_changes") == {"status": "ok"}

    assert [path.name for path in files.journal.iterdir()] == ["other"]
    assert files.tree() == {"a.txt": b"x\n", "b.txt": b"y\n"}


def test_the_actions_come_with_the_tool(files: Files) -> None:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_tool(FilesTool)
    core.register_feature(FilesUndo)

    def offered(**config: object) -> list[str]:
        actions = core.get_session_actions({**files.config, **config})
        return [action["id"] for action in actions if action["plugin"] == "files_undo"]

    assert offered() == []
    assert offered(enabled_plugins=["files_tool"]) == ["undo", "redo", "changes", "forget_changes"]
    session = core.create_session("session")
    config = {**files.config, "enabled_plugins": ["files_tool"]}
    files.ok("write_file", path="a.txt", content="x\n")
    _, result = core.execute_session_action(session, config, "files_undo", "undo", {})
    assert result["display"]["actions"][0]["params"] == {"count": 1, "confirm": True, "change": 1}
    _, result = core.execute_session_action(session, config, "files_undo", "undo", {"confirm": True})
    assert result["status"] == "ok"
    assert files.tree() == {}

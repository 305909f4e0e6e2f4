"""In an application: a model works on files, a person decides by the diff, and takes it back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime.permissions import Permissions
from agent_runtime.phases import CallView
from files_tool import FilesTool, FilesUndo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Files


@contextmanager
def application(
    folder: Path, script: list[Any], permissions: dict[str, Any]
) -> Iterator[tuple[AgentApplication, str]]:
    """Hold an application open that has one agent and one session, which works in a folder."""
    agent = {
        "model": "m",
        "plugin_ids": ["files_tool", "files_undo"],
        "sections": {"files_tool": {"journal": str(folder / "journal")}, "permissions": permissions},
    }
    config = {"agents": {"a": agent}, "models": {"m": {"provider": "scripted"}}}
    (folder / "work").mkdir()
    plugins = [ScriptedProvider(script), FilesTool, FilesUndo]
    with AgentApplication(config, plugins=plugins, installed=False) as app:
        metadata = {"workspace_roots": [str(folder / "work")]}
        yield app, app.create_session(metadata=metadata).session_id


def calls(*made: tuple[str, dict[str, Any]]) -> Reply:
    return Reply(tool_calls=[ToolCall(name, arguments) for name, arguments in made])


def test_a_model_works_on_files_and_a_person_takes_it_back(tmp_path: Path) -> None:
    script = [
        calls(("write_file", {"path": "src/a.py", "content": "x = 1\n"})),
        calls(
            ("read_file", {"path": "src/a.py"}),
            ("search_files", {"pattern": "x"}),
            ("find_files", {"glob": "*.py"}),
        ),
        calls(("edit_file", {"path": "src/a.py", "old": "1", "new": "2"})),
        "Done.",
    ]
    with application(tmp_path, script, {"default": "allow"}) as (app, session_id):
        events = list(app.chat(session_id, "Write a program."))

        results = {event["name"]: event["message"] for event in events if event["type"] == "tool_call_result"}
        assert results["read_file"]["content"] == "x = 1"
        assert results["search_files"]["content"] == "src/a.py:1: x = 1"
        assert results["find_files"]["content"] == "src/a.py"
        assert results["edit_file"]["metadata"]["display"]["type"] == "diff"
        assert (tmp_path / "work/src/a.py").read_text() == "x = 2\n"

        _, listed = app.execute_session_action(session_id, "files_undo", "changes", {})
        assert [change["tool"] for change in listed["changes"]] == ["edit_file", "write_file"]
        _, plan = app.execute_session_action(session_id, "files_undo", "undo", {"count": 2})
        [offered] = plan["display"]["actions"]
        _, answer = app.execute_session_action(
            session_id, offered["plugin"], offered["action_id"], offered["params"]
        )
        assert answer["status"] == "ok"
        assert list((tmp_path / "work").iterdir()) == []

        app.delete_session(session_id)
        assert list((tmp_path / "journal").iterdir()) == []


def test_a_person_sees_the_diff_before_it_is_made(tmp_path: Path) -> None:
    script = [calls(("write_file", {"path": "a.txt", "content": "new\n"})), "Done."]
    with application(tmp_path, script, {"ask": ["write_file"]}) as (app, session_id):
        list(app.chat(session_id, "Write."))

        [approval] = app.approvals(session_id)
        asked = approval.suspension["parameters"]
        assert asked["preview"] == "Write a.txt, 4 bytes"
        assert (asked["display"]["type"], asked["display"]["title"]) == ("diff", "a.txt")
        assert asked["display"]["content"] == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,1 @@\n+new\n"
        assert list((tmp_path / "work").iterdir()) == []


def test_rules_are_about_paths(files: Files) -> None:
    rules = {
        "allow": ["read_file", "edit_file(src/*)", "apply_patch(src/*)", "search_files(src/*)"],
        "deny": ["*(src/secret*)"],
    }
    permissions = Permissions.from_section(rules)

    def effect(name: str, **arguments: Any) -> str:
        view = CallView(id="", name=name, arguments=arguments, raw={}, tool=files.tool)
        return permissions.decide(view).effect

    def patch(*names: str) -> str:
        return "".join(f"--- a/{name}\n+++ b/{name}\n@@\n-x\n+y\n" for name in names)

    edit = {"old": "a", "new": "b"}
    assert effect("edit_file", path="src/a.py", **edit) == "allow"
    assert effect("edit_file", path="./src//a.py", **edit) == "allow"
    assert effect("edit_file", path="docs/a.md", **edit) == "ask"
    assert effect("edit_file", path="src/../docs/a.md", **edit) == "ask"
    assert effect("edit_file", path="src/x/../secret.txt", **edit) == "deny"
    assert effect("edit_file", path="/srv/src/a.py", **edit) == "ask"
    assert effect("edit_file", path="/srv/src/secret.txt", **edit) == "deny"
    assert effect("read_file", path="src/secret.txt") == "deny"
    assert effect("apply_patch", patch=patch("src/a.py", "src/b.py")) == "allow"
    assert effect("apply_patch", patch=patch("src/a.py", "docs/b.md")) == "ask"
    assert effect("apply_patch", patch=patch("src/a.py", "src/secret.txt")) == "deny"
    assert effect("apply_patch", patch="no patch") == "ask"
    assert effect("search_files", pattern="x", path="src") == "allow"
    assert effect("search_files", pattern="x") == "ask"


def test_previews(files: Files) -> None:
    preview = files.tool.format_tool_call_preview
    patch = "".join(f"--- a/{name}\n+++ b/{name}\n@@\n-x\n+y\n" for name in "abcde")

    assert preview("read_file", {"path": "a.py"}) == "Read a.py"
    assert preview("read_file", {"path": "a.py", "start_line": 5}) == "Read a.py, lines 5 to the end"
    assert preview("read_file", {"path": "a.py", "end_line": 9}) == "Read a.py, lines 1 to 9"
    assert preview("write_file", {"path": "a.py", "content": "é"}) == "Write a.py, 2 bytes"
    assert preview("edit_file", {"path": "a.py", "all": True}) == "Edit a.py, everywhere"
    assert preview("apply_patch", {"patch": patch}) == "Patch a, b, c and 2 more"
    assert preview("apply_patch", {"patch": ""}) == "Apply a patch that cannot be read"
    assert preview("list_files", {}) == "List ."
    assert preview("find_files", {"glob": "*.py", "path": "src"}) == "Find *.py in src"
    assert preview("search_files", {"pattern": "a\nb"}) == "Search for 'a\\nb' in ."
    assert preview("read_file", {"path": "two\nlines"}) == "Read two\\x0alines"
    assert len(preview("read_file", {"path": "x" * 500})) == 120

"""What belongs to the program that runs the tools is not part of a workspace, whatever it is called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from files_tool import FilesTool
from files_tool.descriptors import make_folders, opened_file
from files_tool.gitignore import Rules
from files_tool.places import Place, Protected, Refused
from files_tool.tree import Choice, walk, walk_folders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import MakeFiles

SECRET = "sk-needle"
BELONGS = "belongs to the program"


@pytest.fixture
def home(make_files: MakeFiles, tmp_path: Path) -> Any:
    """A workspace that is somebody's home, with the program's own folder and files in it."""
    own = ["home/.share/agent", "home/app.db", "home/app.db-wal"]
    files = make_files(root=tmp_path / "home", protected_paths=[str(tmp_path / path) for path in own])
    files.put(".share/agent/secrets.json", SECRET)
    files.put(".share/agent/log/a.log", SECRET)
    files.put("app.db", SECRET)
    files.put("notes.txt", "needle\n")
    return files


CALLS = [
    ("read_file", lambda path: {"path": path}),
    ("write_file", lambda path: {"path": path, "content": "x"}),
    ("edit_file", lambda path: {"path": path, "old": SECRET, "new": "x"}),
    ("apply_patch", lambda path: {"patch": f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{SECRET}\n+x\n"}),
    ("apply_patch", lambda path: {"patch": f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{SECRET}\n"}),
]


@pytest.mark.parametrize(
    "path", [".share/agent/secrets.json", ".share/agent/log/a.log", "app.db", "app.db-wal"]
)
@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=["read", "write", "edit", "patch", "remove"])
def test_it_is_neither_read_nor_changed(
    home: Any, tool: str, arguments: Callable[[str], dict[str, Any]], path: str
) -> None:
    assert BELONGS in home.refused(tool, **arguments(path))
    assert (home.root / ".share/agent/secrets.json").read_text() == SECRET
    assert (home.root / "app.db").read_text() == SECRET and not (home.root / "app.db-wal").exists()


def test_nothing_is_made_in_it_or_moved_out_of_it(home: Any) -> None:
    moved = "diff --git a/app.db b/mine.txt\nsimilarity index 100%\nrename from app.db\nrename to mine.txt\n"

    assert BELONGS in home.refused("write_file", path=".share/agent/new/skill.md", content="x")
    assert BELONGS in home.refused("apply_patch", patch=moved)
    assert not (home.root / "mine.txt").exists() and (home.root / "app.db").exists()


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
def test_it_is_not_listed_found_or_searched(home: Any, *, absolute: bool) -> None:
    folder = str(home.root / ".share") if absolute else ".share"

    for path in (None, folder):
        where = {} if path is None else {"path": path}
        listed = home.ok("list_files", hidden=True, depth=9, **where)
        found = home.ok("find_files", glob="**", hidden=True, ignored=True, **where)
        matched = home.ok("search_files", pattern="needle", hidden=True, ignored=True, **where)
        for answer in (listed, found, matched):
            assert "secrets" not in answer and "app.db" not in answer and "a.log" not in answer
    assert home.ok("search_files", pattern="needle", hidden=True) == "notes.txt:1: needle"
    assert BELONGS in home.refused("list_files", path=f"{folder}/agent")
    assert BELONGS in home.refused("search_files", path=f"{folder}/agent", pattern="needle")


@pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep", "reading"])
def test_another_name_of_the_same_file_opens_no_way(
    home: Any, monkeypatch: pytest.MonkeyPatch, *, ripgrep: bool
) -> None:
    if not ripgrep:
        monkeypatch.setattr("files_tool.calls.find_ripgrep", lambda _roots: None)
    os.link(home.root / "app.db", home.root / "copy.txt")
    (home.root / "way").symlink_to(".share/agent")

    assert BELONGS in home.refused("read_file", path="copy.txt")
    assert BELONGS in home.refused("write_file", path="copy.txt", content="x")
    assert "link" in home.refused("read_file", path="way/secrets.json")
    assert home.ok("search_files", pattern="needle") == "notes.txt:1: needle"
    assert "copy.txt" not in home.ok("find_files", glob="**")
    assert (home.root / "app.db").read_text() == SECRET


def test_a_folder_that_is_the_same_by_another_name_is_closed(home: Any) -> None:
    """As on file systems that take two spellings for one name: here a rename under the tool's feet."""
    protected = Protected.of([str(home.root / ".share" / "agent")])
    (home.root / ".share" / "agent").rename(home.root / "Agent")
    place = Place(str(home.root), ("Agent", "secrets.json"), protected=protected)
    choice = Choice(excluded=Rules([]))

    with pytest.raises(Refused, match=BELONGS), opened_file(place):
        pass
    with pytest.raises(Refused, match=BELONGS):
        make_folders(place)
    root = place.upto(0)
    assert [entry.name for entry in walk(root, choice)] == ["app.db", "notes.txt"]
    assert [folder.prefix for folder in walk_folders(root, choice)] == [""]


def test_a_workspace_inside_of_it_is_none(make_files: MakeFiles, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    files = make_files(root=tmp_path / "agent" / "assets", protected_paths=[str(tmp_path / "agent")])
    files.put("a.txt", "a")

    for tool, arguments in (
        ("read_file", {"path": "a.txt"}),
        ("list_files", {}),
        ("find_files", {"glob": "*"}),
    ):
        assert BELONGS in files.refused(tool, **arguments)


def test_no_setting_takes_it_in_again(make_files: MakeFiles, tmp_path: Path) -> None:
    own = [str(tmp_path / "home" / "a b*.db")]
    files = make_files(root=tmp_path / "home", protected_paths=own, excluded_files=["!a*"])
    files.put("a b*.db", "needle")
    files.put("a bc.db", "needle")

    assert files.ok("find_files", glob="*") == "a bc.db"
    assert files.ok("search_files", pattern="needle", names_only=True) == "a bc.db"


def test_what_an_application_keeps_itself_is_protected_also_from_delegates(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "key.txt").write_text(SECRET)
    read = [ToolCall("read_file", {"path": path}, path) for path in ("app.db", "assets/index.db", "key.txt")]
    reading = Reply(tool_calls=[*read, ToolCall("list_files", {"hidden": True}, "list")])
    told: list[str] = []

    def listen(messages: list[dict[str, Any]]) -> str:
        told.extend(str(message["content"]) for message in messages if message["role"] == "tool")
        return "read"

    handing = Reply(tool_calls=[ToolCall("delegate_b", {"prompt": "Read."})])
    script: list[Any] = [handing, reading, listen, "done"]
    journal = str(work / "journal")
    agent = {"model": "m", "plugin_ids": ["files_tool"], "description": "Reads."}
    settings = {"roots": [str(work)], "journal": journal}
    config = {
        "agents": {"a": {**agent, "delegates": ["b"]}, "b": agent},
        "default_agent": "a",
        "models": {"m": {"provider": "scripted"}},
        "plugins": {"files_tool": settings},
    }
    with AgentApplication(
        config,
        store=f"sqlite:///{work}/app.db",
        assets=work / "assets",
        protected=[work / "key.txt"],
        plugins=[ScriptedProvider(script), FilesTool],
        installed=False,
    ) as app:
        session_id = app.create_session(metadata={"overrides": {"protected_paths": []}}).session_id
        events = list(app.chat(session_id, "Go.", overrides={"protected_paths": []}))

    assert events[-1]["text"] == "done"
    assert all(BELONGS in answer for answer in told[:3])
    assert len(told) == 4 and "key" not in told[3] and "app" not in told[3] and "journal" not in told[3]

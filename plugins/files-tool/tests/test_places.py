"""Names: which are refused, how they are shown, and what permission rules see of them."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from files_tool.places import Refused, parts_of, shown, subjects

if TYPE_CHECKING:
    from conftest import Files, MakeFiles

UP = ["..", "../", "..//", "./..", ".././", "../.", "a/..", "a/../..", "a/b/../../..", "..\n/..", "/.."]
TARGETS = [
    "secret.txt",
    "work/../secret.txt",
    "etc/passwd",
    "outside/secret.txt",
    "a/secret.txt",
    "work-sibling/secret.txt",
]
CLIMBING = [f"{up}/{target}" for up in UP for target in TARGETS if ".." in f"{up}/{target}".split("/")]
ENCODED = [
    f"{dots}{slash}{target}"
    for dots in (
        "%2e%2e",
        "%2E%2E",
        "%252e%252e",
        "\uff0e\uff0e",
        "..%00",
        "..\\",
        "..;",
        "%c0%ae%c0%ae",
        "....//..",
    )
    for slash in ("/", "%2f", "%252f", "\\", "\u2215")
    for target in ("secret.txt", "outside/secret.txt")
]
ABSOLUTE = [
    f"{start}{target}"
    for start in ("/", "//", "///", "/./", "/proc/self/root/", "/proc/1/cwd/", "/dev/fd/", "/../")
    for target in ("etc/passwd", "secret.txt", "tmp/secret.txt")
]
ODD = [
    "",
    " ",
    "\0",
    "a\0.txt",
    "secret.txt\0.png",
    "a" * 300,
    "a/" * 3000 + "b",
    "\ud800",
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/environ",
    "/proc/self/mem",
    "/sys/kernel",
    "~/secret.txt",
    "$HOME/secret.txt",
    "file:///etc/passwd",
    "C:\\secret.txt",
    "CON",
    "NUL",
    "-rf",
    "*",
    "secret.txt:stream",
    "link-out",
    "link-out/secret.txt",
    "link-file",
    "link-up/secret.txt",
    "link-root/etc/passwd",
    "link-proc/self/environ",
    "loop",
    "loop/a",
    "sub/link-out/secret.txt",
]
NAMES = [*CLIMBING, *ENCODED, *ABSOLUTE, *ODD]


@pytest.fixture
def surrounded(files: Files) -> Files:
    """Return a workspace with secrets around it and links to them inside."""
    outside = files.root.parent / "outside"
    outside.mkdir()
    sibling = files.root.parent / "work-sibling"
    sibling.mkdir()
    for folder in (outside, sibling, files.root.parent):
        (folder / "secret.txt").write_text("secret\n")
    (files.root / "sub").mkdir()
    for link, target in {
        "link-out": outside,
        "link-file": outside / "secret.txt",
        "link-up": Path(".."),
        "link-root": Path("/"),
        "link-proc": Path("/proc"),
        "loop": Path("loop"),
        "sub/link-out": outside,
    }.items():
        (files.root / link).symlink_to(target)
    return files


def outside_of(files: Files) -> dict[str, bytes]:
    found = (path for path in files.root.parent.rglob("*") if path.is_file() and not path.is_symlink())
    kept = (path for path in found if files.root not in path.parents and files.journal not in path.parents)
    return {str(path): path.read_bytes() for path in kept}


def test_there_are_200_names() -> None:
    assert len(set(NAMES)) >= 200


def test_no_name_leads_outside(surrounded: Files) -> None:
    files, before = surrounded, outside_of(surrounded)
    assert len(before) == 3

    for name in NAMES:
        for tool, rest in (
            ("read_file", {}),
            ("list_files", {}),
            ("search_files", {"pattern": "secret"}),
            ("find_files", {"glob": "secret*"}),
            ("edit_file", {"old": "secret", "new": "changed", "all": True}),
        ):
            result = files.run(tool, path=name, **rest)
            if name or tool in ("read_file", "edit_file"):  # an empty folder name is the workspace
                assert not result["success"], (tool, name, result)
            assert "secret\n" not in str(result.get("result")), (tool, name)

    assert outside_of(files) == before


def test_what_can_be_written_is_inside(surrounded: Files) -> None:
    files, before = surrounded, outside_of(surrounded)

    for name in NAMES:
        content = f"written under {name!r}"
        files.run("write_file", path=name, content=content)
        files.run("apply_patch", patch=f"--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+{content}\n")

    assert outside_of(files) == before
    assert not (files.root / "secret.txt").exists()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a/../b", "'..'"),
        ("x\0y", "NUL"),
        ("/etc/passwd", "outside the workspace: name something in"),
        ("work/../../secret.txt", "relative to the workspace's root"),
        ("link-out/secret.txt", "link-out is a link that leads out of"),
        ("loop", "is a link"),
        ("nothing/here", "there is no nothing: list the folder"),
        ("", "name is empty"),
        ("a" * 300, "too long"),
    ],
)
def test_a_refusal_says_what_to_do(surrounded: Files, name: str, what: str) -> None:
    assert what in surrounded.refused("read_file", path=name)


def test_a_link_to_the_inside_is_refused_with_the_name_to_use(files: Files) -> None:
    files.put("docs/AGENTS.md", "hello\n")
    (files.root / "CLAUDE.md").symlink_to("docs/AGENTS.md")
    (files.root / "guides").symlink_to("docs")

    assert files.refused("read_file", path="CLAUDE.md").endswith("use docs/AGENTS.md")
    assert files.refused("read_file", path="guides/AGENTS.md").endswith("use docs")
    assert files.refused("list_files", path="guides").endswith("use docs")
    assert "CLAUDE.md -> docs/AGENTS.md" in files.ok("list_files")


def test_absolute_names_inside_are_taken(files: Files, make_files: MakeFiles) -> None:
    files.put("src/a.txt", "hello\n")

    assert files.ok("read_file", path=str(files.root / "src/a.txt")) == "hello"
    assert files.ok("read_file", path=f"{files.root}//src/./a.txt") == "hello"
    assert files.ok("list_files", path=str(files.root)) == "src/"


def test_a_root_may_be_named_by_a_link(make_files: MakeFiles, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.txt").write_text("hello\n")
    (tmp_path / "name").symlink_to("real")
    files = make_files(root=tmp_path / "name")

    assert files.ok("read_file", path="a.txt") == "hello"
    assert files.ok("read_file", path=str(tmp_path / "name/a.txt")) == "hello"
    assert files.ok("read_file", path=str(tmp_path / "real/a.txt")) == "hello"


def test_several_roots(make_files: MakeFiles, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(f"this is {name}\n")
    one, two = tmp_path / "one", tmp_path / "two"
    files = make_files(root=one, roots=[str(one), str(two)])

    assert files.ok("read_file", path="one.txt") == "this is one"
    assert "there is no two.txt" in files.refused("read_file", path="two.txt")
    assert files.ok("read_file", path=str(two / "two.txt")) == "this is two"
    assert files.ok("find_files", glob="*.txt").splitlines() == ["one.txt", str(two / "two.txt")]
    assert files.ok("search_files", pattern="this is", path=str(two)) == f"{two}/two.txt:1: this is two"
    assert files.ok("write_file", path=str(two / "new.txt"), content="x") == (
        f"Created {two}/new.txt (+1 -0 lines)"
    )


def test_the_session_names_its_roots(files: Files, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("other\n")
    context = {"session_id": "x", "session_metadata": {"workspace_roots": [str(other)]}}

    result = files.tool.execute_tool("read_file", {"path": "a.txt"}, files.state, context=context)

    assert result["result"] == "other"


@pytest.mark.parametrize(
    ("roots", "problem"),
    [
        ([], "this session has no workspace"),
        (["relative"], "must be an absolute path"),
        (["/nowhere/at/all"], "is not a folder"),
    ],
)
def test_without_a_workspace_nothing_works(files: Files, roots: list[str], problem: str) -> None:
    files.state = files.tool.init({**files.config, "roots": roots})

    assert problem in files.refused("read_file", path="a.txt")
    assert problem in files.refused("list_files")


def test_excluded_files_are_not_touched(make_files: MakeFiles) -> None:
    files = make_files(excluded_files=[".env", "secrets/"])
    for path in (".env", "secrets/key", "src/.env", "src/secrets/key", "src/a.txt"):
        files.put(path, "token\n")

    for path in (".env", "secrets/key", "secrets", "src/.env", "src/secrets/key", "secrets/new"):
        assert "is excluded" in files.refused("read_file", path=path)
        assert "is excluded" in files.refused("write_file", path=path, content="x")
    assert files.ok("search_files", pattern="token", hidden=True) == "src/a.txt:1: token"
    assert files.ok("find_files", glob="**", hidden=True, ignored=True) == "src/a.txt"


def test_the_journal_is_not_touched_where_it_lies_in_the_workspace(
    make_files: MakeFiles, tmp_path: Path
) -> None:
    files = make_files(root=tmp_path, journal=tmp_path / "state/my journal")
    files.ok("write_file", path="a.txt", content="one\n")
    files.ok("write_file", path="a.txt", content="two\n")

    assert files.ok("search_files", pattern="one", hidden=True, ignored=True) == "[nothing matches]"
    assert "belongs to the program" in files.refused("list_files", path="state/my journal")
    assert "belongs to the program" in files.refused("write_file", path="state/my journal/x", content="x")


def test_git_keeps_its_own_folder(files: Files) -> None:
    files.put(".git/config", "[core]\n")

    assert "use git" in files.refused("write_file", path=".git/hooks/pre-commit", content="#!/bin/sh\n")
    assert "use git" in files.refused("edit_file", path=".git/config", old="core", new="x")
    assert "use git" in files.refused("write_file", path="sub/.GIT/config", content="x")
    assert files.ok("read_file", path=".git/config") == "[core]"
    assert files.ok("list_files", hidden=True) == "[the folder is empty]"


def test_what_is_no_regular_file_is_refused_at_once(files: Files) -> None:
    os.mkfifo(files.root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(files.root / "socket"))
        os.mknod(files.root / "null", 0o020666, os.makedev(1, 3)) if os.geteuid() == 0 else None

        for name, kind in (("fifo", "FIFO"), ("socket", "socket"), ("null", "device")):
            if (files.root / name).exists():
                assert f"{name} is a {kind}" in files.refused("read_file", path=name)
                assert f"{name} is a {kind}" in files.refused("write_file", path=name, content="x")
        assert files.ok("search_files", pattern="x") == "[nothing matches]"
        assert "fifo  (no regular file)" in files.ok("list_files")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_the_kernels_folders_are_no_workspace(make_files: MakeFiles) -> None:
    files = make_files(root=Path("/"), excluded_files=["/[!ps]*"])

    assert "belongs to the system" in files.refused("read_file", path="/proc/version")
    assert "belongs to the system" in files.refused("list_files", path="proc")
    listed = files.ok("list_files", depth=2, limit=2000).splitlines()
    assert [path for path in listed if path.startswith(("proc/", "sys/"))] == ["proc/", "sys/"]


@given(st.text(max_size=20))
def test_what_is_shown_is_one_line_of_visible_text(name: str) -> None:
    line = shown(name)

    assert len(line.splitlines()) <= 1
    assert line.encode().decode() == line


@given(st.lists(st.sampled_from(["a", "b.py", ".", "", "..", "src"]), min_size=1, max_size=6).map("/".join))
def test_the_subject_of_a_name_is_where_it_leads(name: str) -> None:
    told = subjects(name)
    try:
        path = "/".join(parts_of(name))
    except Refused:
        return  # nothing is run, whatever the rules say

    assert (path or ".") in told or (name.startswith("/") and not path)
    if not name.startswith("/"):
        assert told == [path or "."]


def test_subjects_of_calls(files: Files) -> None:
    tell = files.tool.permission_subjects
    patch = "--- a/src/a.py\n+++ b/src/b.py\n@@\n-x\n+y\n--- /dev/null\n+++ b/c.py\n@@\n+z\n"

    assert tell("edit_file", {"path": "./src//a.py"}) == ["src/a.py"]
    assert tell("list_files", {}) == ["./"]
    assert tell("search_files", {"path": "src"}) == ["src/"]
    assert tell("read_file", {"path": "/w/src/a.py"}) == ["/w/src/a.py", "w/src/a.py", "src/a.py", "a.py"]
    assert tell("apply_patch", {"patch": patch}) == ["src/a.py", "src/b.py", "c.py"]
    assert tell("apply_patch", {"patch": "no patch"}) == []
    assert tell("read_file", {"path": 5}) == []


def test_suggestions(files: Files) -> None:
    suggest = files.tool.permission_suggestions

    assert suggest("edit_file", {"path": "src/lib/a.py"}) == ["src/lib/*"]
    assert suggest("edit_file", {"path": "odd*dir/a.py"}) == [r"odd\*dir/*"]
    assert suggest("search_files", {"path": "src"}) == ["src/*"]
    assert suggest("edit_file", {"path": "a.py"}) == []
    assert suggest("edit_file", {"path": "/w/a.py"}) == []
    assert suggest("apply_patch", {"patch": ""}) == []

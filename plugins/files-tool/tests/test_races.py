"""Other programs at the same time: links swapped in, files that vanish or change, files without end."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from files_tool import contents, descriptors, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conftest import Files

ROUNDS = int(os.environ.get("FILES_ROUNDS", "1000"))
SWAPPING = """
import ctypes, os, sys
os.chdir(sys.argv[1])
here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
swap = ctypes.CDLL(None).renameat2
print("ready", flush=True)
while swap(here, b"d", here, b"link", exchange) == 0:
    pass
"""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "d/a.txt"}),
    ("write_file", {"path": "d/new.txt", "content": "ours\n"}),
    ("list_files", {"path": "d"}),
    ("write_file", {"path": "d/new.txt", "content": "ours as well\n"}),
    ("read_file", {"path": "d/b.txt"}),
    ("edit_file", {"path": "d/b.txt", "old": "inside", "new": "inside, more", "all": True}),
    ("find_files", {"path": "d", "glob": "*"}),
    ("write_file", {"path": "d/sub/new.txt", "content": "ours\n"}),
    ("read_file", {"path": "d/a.txt"}),
    ("search_files", {"pattern": "side"}),
]


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """Let another process put a link in the place of the folder `d`, and take it away, all the time."""
    command = [sys.executable, "-c", SWAPPING, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="names are exchanged with renameat2")
def test_a_link_that_is_swapped_in_never_leads_outside(files: Files) -> None:
    outside = files.root.parent / "outside"
    outside.mkdir()
    for folder, content in ((outside, "outside\n"), (files.root / "d", "inside\n")):
        folder.mkdir(exist_ok=True)
        (folder / "a.txt").write_text(content)
        (folder / "b.txt").write_text(content)
    (files.root / "link").symlink_to(outside)
    outcomes: Counter[str] = Counter()

    with swapping(files.root):
        number = 0
        while number < ROUNDS or not (outcomes["True"] and outcomes["False"]):
            number += 1
            assert number < 100 * ROUNDS
            tool, arguments = CALLS[number % len(CALLS)]
            result = files.run(tool, **arguments)
            outcomes[str(result["success"])] += 1
            assert "outside" not in str(result.get("result"))

    assert {path.name: path.read_text() for path in outside.iterdir()} == {
        "a.txt": "outside\n",
        "b.txt": "outside\n",
    }


def after_planning(monkeypatch: pytest.MonkeyPatch, work: Callable[[], None]) -> None:
    """Do something between the plan of a change and the change itself."""
    make_folders, waiting = descriptors.make_folders, [work]

    def disturbed(place: object) -> int:
        while waiting:
            waiting.pop()()
        return make_folders(place)  # type: ignore[arg-type]  # it is a place

    monkeypatch.setattr(steps, "make_folders", disturbed)


def replaced_by(root: Path, what: str) -> Callable[[], None]:
    """Return what another program does to `a.txt`."""
    target = root / "a.txt"

    def work() -> None:
        target.unlink(missing_ok=True)
        if what == "folder":
            target.mkdir(exist_ok=True)
        elif what == "fifo":
            os.mkfifo(target)
        elif what == "link":
            target.symlink_to("b.txt")
        elif what == "content":
            target.write_text("theirs\n")

    return work


@pytest.mark.parametrize("what", ["content", "nothing", "folder", "fifo", "link"])
@pytest.mark.parametrize("tool", ["write_file", "edit_file", "apply_patch"])
def test_a_file_that_changed_after_it_was_looked_at_is_left_alone(
    files: Files, monkeypatch: pytest.MonkeyPatch, tool: str, what: str
) -> None:
    files.put("a.txt", "one\n")
    files.put("b.txt", "other\n")
    arguments = {
        "write_file": {"path": "a.txt", "content": "two\n"},
        "edit_file": {"path": "a.txt", "old": "one", "new": "two"},
        "apply_patch": {"patch": "--- a/b.txt\n+++ b/b.txt\n@@\n-other\n+another\n"
                                 "--- a/a.txt\n+++ b/a.txt\n@@\n-one\n+two\n"},
    }[tool]  # fmt: skip
    replace = replaced_by(files.root, what)
    after_planning(monkeypatch, replace)

    problem = files.refused(tool, **arguments)

    assert "a.txt was" in problem
    assert "by another program" in problem
    assert files.text("b.txt") == "other\n"
    assert files.act("changes")["changes"] == []
    left = sorted(path.name for path in files.root.iterdir())
    assert left == (["b.txt"] if what == "nothing" else ["a.txt", "b.txt"])
    if what == "content":
        assert files.text("a.txt") == "theirs\n"


def test_a_file_that_appeared_is_not_replaced(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    after_planning(monkeypatch, replaced_by(files.root, "content"))

    assert "is there now" in files.refused("write_file", path="a.txt", content="ours\n")
    assert files.text("a.txt") == "theirs\n"


def test_a_file_that_appears_in_the_last_moment_is_not_replaced(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_to_nothing = steps.Move._move_to_nothing

    def late(move: steps.Move, name: str) -> None:
        (files.root / name).write_text("theirs\n")
        move_to_nothing(move, name)

    monkeypatch.setattr(steps.Move, "_move_to_nothing", late)

    assert "File exists" in files.refused("write_file", path="a.txt", content="ours\n")
    assert files.text("a.txt") == "theirs\n"
    assert [path.name for path in files.root.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("what", ["nothing", "folder", "fifo", "link"])
def test_a_file_that_becomes_another_while_it_is_opened_is_not_read(
    files: Files, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    files.put("a.txt", "one\n")
    files.put("b.txt", "other\n")
    check_regular, replace = descriptors.check_regular, replaced_by(files.root, what)
    checks = 0

    def disturbed(place: object, state: os.stat_result) -> None:
        nonlocal checks
        check_regular(place, state)  # type: ignore[arg-type]  # it is a place
        checks += 1
        if checks == 1:
            replace()

    monkeypatch.setattr(descriptors, "check_regular", disturbed)

    assert "a.txt" in files.refused("read_file", path="a.txt")


def test_a_file_that_is_being_written_is_not_taken_for_whole(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files.put("a.txt", "one\n")
    read_all = contents.read_all

    def growing(fd: int, most: int) -> bytes:
        data = read_all(fd, most)
        with path.open("a") as stream:
            stream.write("more\n")
        return data

    monkeypatch.setattr(contents, "read_all", growing)

    assert "is being written by another program" in files.refused("read_file", path="a.txt")


def test_a_file_of_a_gigabyte_takes_little_memory(files: Files) -> None:
    empty = files.put("empty.bin", b"")
    os.truncate(empty, 1 << 30)
    text = files.put("text.txt", "first line\n" * 2000)
    os.truncate(text, 1 << 30)
    os.truncate(files.put("less.txt", "first line\n" * 2000), 100 << 20)
    tracemalloc.start()

    try:
        assert "empty.bin is not text but binary data, 1.1 GB" in files.refused("read_file", path="empty.bin")
        page = files.ok("read_file", path="text.txt", end_line=2)
        assert page == (
            "first line\nfirst line\n[lines 1 to 2 of a file of 1.1 GB; continue with start_line 3]"
        )
        assert "fewer than 5000 lines" in files.refused("read_file", path="less.txt", start_line=5000)
        assert "only files up to 10.0 MB" in files.refused("write_file", path="text.txt", content="x")
        assert "only files up to 10.0 MB" in files.refused("edit_file", path="text.txt", old="a", new="b")
        answer = files.ok("search_files", pattern="first")
        assert answer == "[nothing matches]\n[not searched: 3 files over 10.0 MB]"
        assert files.ok("list_files").splitlines() == [
            "empty.bin  1.1 GB",
            "less.txt  104.9 MB",
            "text.txt  1.1 GB",
        ]
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()

"""The journal: there before the change, true after a crash, and the way back."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from files_tool import journal as journal_module, steps
from files_tool.journal import Journal
from files_tool.records import Change, FileRecord, History, Lines, Record
from files_tool.steps import Move

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Files, MakeFiles

PATCH = (
    "--- a/a.txt\n+++ b/a.txt\n@@\n-one\n+two\n"
    "--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    "--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+made\n"
)


def lines_of(files: Files) -> list[dict[str, Any]]:
    path = files.journal / files.session_id / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_change_is_recorded_before_it_is_made(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.put("a.txt", "one\n")
    make, seen = Move.make, []

    def watched(move: Move) -> None:
        seen.append((files.text("a.txt"), lines_of(files)))
        make(move)

    monkeypatch.setattr(Move, "make", watched)
    files.ok("write_file", path="a.txt", content="two\n")

    [(content, [line])] = seen
    assert content == "one\n"
    assert line["op"] == "change"
    [file] = line["files"]
    assert file["path"] == "a.txt"
    kept = files.journal / "session/contents" / file["before"]
    assert kept.read_text() == "one\n"
    assert lines_of(files)[1:] == [{"made": [0]}]


def test_everything_is_flushed_in_order(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.put("a.txt", "one\n")
    files.ok("write_file", path="a.txt", content="two\n")
    flushed: list[str] = []
    fsync, rename = os.fsync, os.rename

    def note_fsync(fd: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        fsync(fd)

    def note_rename(*arguments: Any, **options: Any) -> None:
        flushed.append("moved")
        rename(*arguments, **options)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "rename", note_rename)
    files.ok("write_file", path="a.txt", content="three\n")

    kept, kept_moved, folder, journal, written, moved, last = [Path(path).name for path in flushed]
    assert len(kept.partition(".")[0]) == 64
    assert kept_moved == moved == "moved"
    assert (folder, journal, last) == ("contents", "journal.jsonl", "work")
    assert written.startswith(".files-tool-")


def test_only_the_owner_can_read_the_journal(files: Files) -> None:
    files.put("a.txt", "secret\n")
    files.ok("read_file", path="a.txt")
    files.ok("write_file", path="a.txt", content="x\n")

    for path in (files.journal / "session").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_sessions_have_journals_of_their_own(files: Files, make_files: MakeFiles) -> None:
    files.ok("write_file", path="a.txt", content="x\n")

    for name in ("other", "../escape", "a/b", "", "é", "x" * 200, "\ud800"):
        other = make_files(name)
        assert other.act("changes")["changes"] == []
        assert other.run("write_file", path=f"{len(name)}.txt", content="y\n")["success"]
    assert all(path.parent == files.journal for path in files.journal.iterdir())
    assert not (files.journal.parent / "escape").exists()


@pytest.mark.parametrize("place", ["contents", "journal.jsonl", ""])
def test_without_a_record_there_is_no_change(files: Files, place: str) -> None:
    files.put("a.txt", "one\n")
    blocker = files.journal / "session" / place if place else files.journal
    blocker.parent.mkdir(parents=True, exist_ok=True)
    if place == "journal.jsonl":
        blocker.mkdir()
    else:
        blocker.write_text("in the way")

    problem = files.refused("write_file", path="a.txt", content="two\n")

    assert "so nothing was changed" in problem
    assert files.text("a.txt") == "one\n"
    assert files.ok("read_file", path="a.txt") == "one"


def test_a_full_disk_changes_nothing(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.put("a.txt", "one\n")
    files.ok("write_file", path="b.txt", content="x\n")

    def full(fd: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert "No space left on device" in files.refused("write_file", path="a.txt", content="two\n")

    assert files.text("a.txt") == "one\n"
    assert files.ok("write_file", path="a.txt", content="two\n")
    assert files.act("undo", confirm=True)["status"] == "ok"
    assert files.text("a.txt") == "one\n"


def test_a_change_whose_end_is_not_recorded_is_found_out(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.put("a.txt", "one\n")
    append = Lines.append

    def forgetful(lines: Lines, line: dict[str, Any]) -> None:
        if "made" in line:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(lines, line)

    with monkeypatch.context() as patch:
        patch.setattr(Lines, "append", forgetful)
        assert files.ok("write_file", path="a.txt", content="two\n")
        assert "made" not in lines_of(files)[-1]

    assert files.act("undo", confirm=True)["status"] == "ok"
    assert files.text("a.txt") == "one\n"


def test_a_damaged_journal_is_told(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="x\n")
    with (files.journal / "session/journal.jsonl").open("a") as stream:
        stream.write("{nonsense}\n")

    assert "is damaged" in files.refused("write_file", path="a.txt", content="y\n")
    assert files.text("a.txt") == "x\n"
    assert "is damaged" in files.act("undo")["error"]["message"]


def test_a_lost_content_is_told(files: Files) -> None:
    files.put("a.txt", "one\n")
    files.ok("write_file", path="a.txt", content="two\n")
    [kept] = (files.journal / "session/contents").iterdir()

    kept.write_text("damaged")
    assert "is damaged" in files.act("undo")["error"]["message"]
    kept.unlink()
    assert "has lost the earlier content" in files.act("undo", confirm=True)["error"]["message"]
    assert files.text("a.txt") == "two\n"


CALLS = ["write", "rename", "link", "unlink", "mkdir", "fsync"]
if os.environ.get("FILES_CRASHES") == "all":
    CALLS += ["open", "close", "stat", "fstat", "read", "ftruncate", "fchmod"]


def in_child(work: Callable[[], object], crash_at: int) -> bool:
    """Run something in a process that dies at a call to the system; say whether it came to its end."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal count
                count += 1
                if count == crash_at:
                    os._exit(9)
                if count == crash_at - 1 and function.__name__ == "write":  # die in the middle of it
                    half = arguments[1][: len(arguments[1]) // 2]
                    function(arguments[0], half)
                    os._exit(9)
                return function(*arguments, **options)

            return call

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("tool", ["write_file", "apply_patch", "undo"])
def test_a_crash_at_any_moment_leaves_a_journal_that_tells_the_truth(
    make_files: MakeFiles, tmp_path: Path, tool: str
) -> None:
    arguments = {"write_file": {"path": "a.txt", "content": "two\n"}, "apply_patch": {"patch": PATCH}}
    for crash_at in range(1, 10_000):
        root = tmp_path / f"work{crash_at}"
        files = make_files(root=root, journal=tmp_path / f"journal{crash_at}")
        files.put("a.txt", "one\n")
        files.put("b.txt", "gone\n")
        before = files.tree()
        if tool == "undo":
            files.ok("apply_patch", patch=PATCH)
            before = files.tree()
            finished = in_child(partial(files.act, "undo", confirm=True), crash_at)
        else:
            given = arguments[tool]
            finished = in_child(partial(files.run, tool, **given), crash_at)

        check_truth(files, before, undone=tool == "undo")
        if finished:
            assert crash_at > 8
            return


def check_truth(files: Files, before: dict[str, bytes], *, undone: bool) -> None:
    """Whatever was done is on record, and can be reversed until everything is as it was."""
    crashed = files.tree()
    changes = files.act("changes")
    assert changes["status"] == "ok", changes
    assert {path for path in files.tree() if path.endswith(".tmp")} == set(), "nothing is left behind"
    done = {
        file["path"]
        for change in changes["changes"]
        if change["undone"] == undone
        for file in change["files"]
    }
    now = files.tree()
    paths = before.keys() | now.keys()
    assert done == {path for path in paths if before.get(path) != now.get(path)}, crashed
    for _ in range(2):
        files.act("redo" if undone else "undo", confirm=True)
    assert files.tree() == before


def test_half_a_line_at_the_end_is_cut_off(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="one\n")
    path = files.journal / "session/journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op":"change","tool":"wri')

    files.ok("write_file", path="a.txt", content="two\n")

    assert path.read_bytes().startswith(whole + b'{"op":"change","tool":"write_file"')
    assert [change["number"] for change in files.act("changes")["changes"]] == [2, 1]


def test_the_last_line_is_found_however_long_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        lines = Lines(fd)
        assert lines.last() is None
        for size in (1, 100, 70_000, 300_000, 5):
            lines.append({"x": "y" * size})
            assert lines.last() == {"x": "y" * size}
        os.write(fd, b"z" * 200_000)
        assert lines.last() == {"x": "y" * 5}
        assert [len(line["x"]) for line in lines] == [1, 100, 70_000, 300_000, 5]
    finally:
        os.close(fd)


def test_a_step_that_cannot_be_taken_back_stays_on_record(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two files fails, and meanwhile somebody has written to the first."""
    files.put("a.txt", "one\n")
    files.put("b.txt", "other\n")
    make = Move.make

    def disturbed(move: Move) -> None:
        if move.step.place.path == "b.txt":
            files.put("a.txt", "theirs\n")
            raise OSError(errno.EIO, "Input/output error")
        make(move)

    monkeypatch.setattr(Move, "make", disturbed)
    patch = "--- a/a.txt\n+++ b/a.txt\n@@\n-one\n+two\n--- a/b.txt\n+++ b/b.txt\n@@\n-other\n+another\n"

    problem = files.refused("apply_patch", patch=patch)

    assert problem == (
        "b.txt cannot be written: Input/output error. It could not be undone in a.txt: see to it"
    )
    [change] = files.act("changes")["changes"]
    assert [file["path"] for file in change["files"]] == ["a.txt"]
    assert "a.txt has changed since change 1" in files.act("undo", confirm=True)["error"]["message"]
    files.put("a.txt", "two\n")
    assert files.act("undo", confirm=True)["status"] == "ok"
    assert files.text("a.txt") == "one\n"


def test_steps_that_were_made_are_taken_back(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.put("a.txt", "one\n").chmod(0o640)
    files.put("b.txt", "gone\n")
    before = files.tree()
    make, problems = Move.make, [OSError(errno.EIO, "Input/output error")]

    def failing(move: Move) -> None:
        make(move)
        if move.step.place.path == "new/c.txt" and problems:
            raise problems.pop()

    monkeypatch.setattr(Move, "make", failing)

    assert "Input/output error" in files.refused("apply_patch", patch=PATCH)
    assert files.tree() == before
    assert not (files.root / "new").exists()
    assert stat.S_IMODE((files.root / "a.txt").stat().st_mode) == 0o640
    assert files.act("changes")["changes"] == []


def test_one_session_changes_one_thing_at_a_time(files: Files, make_files: MakeFiles) -> None:
    """Threads and another process add lines to one file; none is lost."""
    files.put("a.txt", "end\n")
    adding = (
        "import sys; from files_tool import FilesTool\n"
        "tool = FilesTool(); state = tool.init({'roots': [sys.argv[1]], 'journal': sys.argv[2]})\n"
        "for n in range(10):\n"
        "    call = {'path': 'a.txt', 'old': 'end', 'new': f'process {n}\\nend'}\n"
        "    result = tool.execute_tool('edit_file', call, state, context={'session_id': 'session'})\n"
        "    assert result['success'], result\n"
    )
    command = [sys.executable, "-c", adding, str(files.root), str(files.journal)]
    problems: list[Any] = []

    def add(name: int) -> None:
        other = make_files()
        for number in range(10):
            result = other.run("edit_file", path="a.txt", old="end", new=f"thread {name} {number}\nend")
            if not result["success"]:
                problems.append(result)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(2)]
    with subprocess.Popen(command) as process:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert process.returncode == 0
    assert problems == []

    assert len(files.text("a.txt").splitlines()) == 31
    assert len(files.act("changes")["changes"]) == 30
    assert files.act("undo", count=30, confirm=True)["status"] == "ok"
    assert files.text("a.txt") == "end\n"


def test_a_lock_that_is_not_let_go_is_told(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_PATIENCE", 0.0)
    files.ok("write_file", path="a.txt", content="x\n")

    with Journal(str(files.journal), "session").locked():
        problem = files.refused("write_file", path="a.txt", content="y\n")

    assert problem == "another program is changing files in this session: try again"
    assert files.text("a.txt") == "x\n"


def test_names_of_files_that_are_put_aside_tell_whose_they_are() -> None:
    token = steps.new_token()

    assert steps.aside(token, 3) == f".files-tool-{token}-3.tmp"


def file(path: str, before: str | None, after: str | None) -> FileRecord:
    return FileRecord(root="/w", path=path, before=before, after=after)


def record(op: Any, made: tuple[int, ...], *files: FileRecord) -> Record:
    return Record(op=op, tool="t", at=0.0, token="x", files=files, made=made)


def test_what_follows_from_records() -> None:
    one, two = file("a", None, "1"), file("b", None, "2")
    back = file("a", "1", None)
    first = record("change", (0, 1), one, two)

    assert History.of([]) == History()
    assert History.of([record("change", (), one)]) == History()
    assert History.of([first]).done == (Change(1, "t", 0.0, (one, two)),)
    half = History.of([first, record("undo", (0,), back, file("b", "2", None))])
    assert half == History((Change(1, "t", 0.0, (two,)),), (Change(1, "t", 0.0, (back,)),))
    again = History.of([first, record("undo", (0,), back), record("redo", (0,), one)])
    assert [change.files for change in again.done] == [(two,), (one,)]
    assert History.of([first, record("undo", (0,), back), record("change", (0,), one)]).undone == ()
    assert History.of([record("undo", (0,), back)]) == History()


def test_a_journal_that_others_could_write_is_not_believed(files: Files, tmp_path: Path) -> None:
    files.ok("write_file", path="a.txt", content="one\n")
    [journal] = (tmp_path / "journal").rglob("journal.jsonl")
    journal.chmod(0o666)

    assert "can be written by others" in files.refused("write_file", path="b.txt", content="two\n")
    journal.chmod(0o600)
    journal.parent.chmod(0o777)
    assert "can be written by others" in files.refused("write_file", path="b.txt", content="two\n")

"""Editing: exact, and in the file's own manner."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from files_tool.diffs import diff
from files_tool.edits import replace
from files_tool.places import Refused
from files_tool.texts import Text

if TYPE_CHECKING:
    from conftest import Files, MakeFiles

SMALL = st.text("ab\n ", max_size=30)


def test_one_text_is_replaced(files: Files) -> None:
    files.put("src/a.py", "def one():\n    return 1\n")

    result = files.run("edit_file", path="src/a.py", old="return 1", new="return 2")

    assert result == {
        "success": True,
        "result": "Changed src/a.py (+1 -1 lines)",
        "display": {
            "type": "diff",
            "title": "src/a.py",
            "content": "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n def one():\n"
            "-    return 1\n+    return 2\n",
        },
    }
    assert files.text("src/a.py") == "def one():\n    return 2\n"


def test_the_diff_is_shown_beforehand_and_nothing_is_done(files: Files) -> None:
    files.put("a.py", "x = 1\n")
    before = files.tree()
    call = {"path": "a.py", "old": "1", "new": "2"}

    shown = files.display("edit_file", **call)

    assert files.tree() == before
    assert not files.journal.exists()
    assert shown.pop("basis")
    assert shown == files.run("edit_file", **call)["display"]
    assert files.display("read_file", path="a.py") is None
    assert files.display("edit_file", **call) == {
        "type": "text",
        "content": "This call will fail: a.py does not have that text",
        "refused": "a.py does not have that text",
        "basis": None,
    }
    nothing = files.display("write_file", path="a.py", content="x = 2\n")
    assert (nothing["type"], nothing["content"]) == ("text", "This call changes nothing.")


def test_a_text_that_is_not_there_is_told_with_the_nearest_lines(files: Files) -> None:
    files.put("a.py", "import os\n\ndef total(values):\n    result = sum(values)\n    return result\n")

    assert files.refused("edit_file", path="a.py", old="result = sum(value)", new="x") == (
        "a.py does not have that text. The nearest lines are:\n     4\t    result = sum(values)"
    )
    assert files.refused(
        "edit_file", path="a.py", old="def total(values):\n  result = sum(values)", new="x"
    ) == (
        "a.py does not have that text. The same text with other white space is there:\n"
        "     3\tdef total(values):\n     4\t    result = sum(values)"
    )
    assert files.refused("edit_file", path="a.py", old="nothing of the sort", new="x") == (
        "a.py does not have that text"
    )


def test_a_text_that_is_there_twice_must_be_told_apart(files: Files) -> None:
    files.put("a.txt", "x\ny\nx\n")

    assert files.refused("edit_file", path="a.txt", old="x", new="z") == (
        "a.txt has that text 2 times, at lines 1, 3: give more of the lines around it, or set all to replace "
        "every one"
    )
    assert files.ok("edit_file", path="a.txt", old="x", new="z", all=True) == "Changed a.txt (+2 -2 lines)"
    assert files.text("a.txt") == "z\ny\nz\n"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [("", "x", "old is empty"), ("x", "x", "old and new are the same"), ("x", "\ud800", "not valid Unicode")],
)
def test_edits_that_mean_nothing(files: Files, old: str, new: str, problem: str) -> None:
    files.put("a.txt", "x\n")

    assert problem in files.refused("edit_file", path="a.txt", old=old, new=new)
    assert files.text("a.txt") == "x\n"


def test_a_file_that_is_not_there_or_no_text(files: Files) -> None:
    files.put("a.bin", b"\0\1\2")

    assert files.refused("edit_file", path="new.txt", old="a", new="b") == (
        "there is no new.txt: make it with write_file, or find its name with find_files"
    )
    assert "is not a text file" in files.refused("edit_file", path="a.bin", old="a", new="b")


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_line_ends_and_the_mark_are_kept(files: Files, mark: bytes) -> None:
    path = files.put("a.txt", mark + b"one\r\ntwo\r\nthree\r\n")

    files.ok("edit_file", path="a.txt", old="one\ntwo", new="1\n2\n2.5")

    assert path.read_bytes() == mark + b"1\r\n2\r\n2.5\r\nthree\r\n"


def test_mixed_line_ends_are_kept_where_nothing_is_changed(files: Files) -> None:
    path = files.put("a.txt", b"one\r\ntwo\nthree\r\nfour\nfive\n")

    files.ok("edit_file", path="a.txt", old="two\nthree", new="2\n3")

    assert path.read_bytes() == b"one\r\n2\n3\r\nfour\nfive\n"


@pytest.mark.parametrize(
    ("data", "encoding"), [("ä b\n".encode("latin-1"), "latin-1"), ("ä b\n".encode("utf-16"), "utf-16")]
)
def test_the_encoding_is_kept(files: Files, data: bytes, encoding: str) -> None:
    path = files.put("a.txt", data)

    files.ok("edit_file", path="a.txt", old="b", new="ö")

    assert path.read_bytes() == "ä ö\n".encode(encoding)


def test_what_the_encoding_cannot_write_is_refused(files: Files) -> None:
    files.put("a.txt", "ä b\n".encode("latin-1"))

    assert "is written in latin-1, which has no '日'" in files.refused(
        "edit_file", path="a.txt", old="b", new="日"
    )


@given(SMALL, SMALL, SMALL, st.sampled_from(["\n", "\r\n"]))
def test_replacing_everywhere_is_what_python_does(text: str, old: str, new: str, line_end: str) -> None:
    written = text.replace("\n", line_end)
    if not old or old == new:
        return
    if old not in text:
        with pytest.raises(Refused):
            replace(Text(written), old, new, everywhere=True, name="x")
        return

    changed = replace(Text(written), old, new, everywhere=True, name="x")

    expected = text.replace(old, new)
    assert changed == (expected.replace("\n", line_end) if "\n" in text else changed)
    assert changed.replace("\r\n", "\n") == expected


@given(st.lists(st.sampled_from(["a\n", "b\r\n", "c\n", "a\r\n"]), min_size=1, max_size=10), SMALL)
def test_what_is_not_replaced_stays_to_the_byte(lines: list[str], new: str) -> None:
    text = "".join(lines)
    if text.count("b") != 1 or new == "b":
        return

    changed = replace(Text(text), "b", new, everywhere=False, name="x")

    start, end = text.split("b")
    assert changed.startswith(start)
    assert changed.endswith(end)


def test_write_makes_folders_and_keeps_the_mode(files: Files) -> None:
    script = files.put("run.sh", "#!/bin/sh\n")
    script.chmod(0o754)

    assert files.ok("write_file", path="deep/er/new.txt", content="hello\n") == (
        "Created deep/er/new.txt (+1 -0 lines)"
    )
    assert files.ok("write_file", path="run.sh", content="#!/bin/sh\necho\n") == (
        "Changed run.sh (+1 -0 lines)"
    )

    assert files.text("deep/er/new.txt") == "hello\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o754
    assert files.ok("edit_file", path="run.sh", old="echo", new="echo 1")
    assert stat.S_IMODE(script.stat().st_mode) == 0o754


def test_a_new_file_has_the_mode_of_any_new_file(files: Files) -> None:
    files.ok("write_file", path="ours.txt", content="x")
    theirs = files.put("theirs.txt", "x")

    assert (files.root / "ours.txt").stat().st_mode == theirs.stat().st_mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
def test_the_owner_is_kept(files: Files) -> None:
    path = files.put("a.txt", "x\n")
    os.chown(path, 1234, 4321)

    files.ok("write_file", path="a.txt", content="y\n")

    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_a_file_system_without_hard_links_will_do(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)

    assert files.ok("write_file", path="a.txt", content="x\n")
    assert files.tree() == {"a.txt": b"x\n"}
    assert files.act("undo", confirm=True)["status"] == "ok"
    assert files.tree() == {}


def test_a_protected_file_is_not_replaced(files: Files) -> None:
    files.put("a.txt", "x\n").chmod(0o444)

    assert "a.txt is write-protected" in files.refused("write_file", path="a.txt", content="y\n")
    assert "a.txt is write-protected" in files.refused("edit_file", path="a.txt", old="x", new="y")
    assert files.text("a.txt") == "x\n"


def test_other_names_of_a_file_keep_the_old_content(files: Files) -> None:
    path = files.put("a.txt", "old\n")
    os.link(path, files.root / "b.txt")

    files.ok("write_file", path="a.txt", content="new\n")

    assert files.text("b.txt") == "old\n"


def test_nothing_is_written_where_nothing_changes(files: Files) -> None:
    path = files.put("a.txt", "x\n")
    before = path.stat()

    assert files.ok("write_file", path="a.txt", content="x\n") == "Nothing was changed: it is so already."
    assert path.stat() == before
    assert files.act("changes")["changes"] == []


def test_places_that_cannot_be_written(files: Files) -> None:
    files.put("a.txt", "x\n")

    assert "is a file, not a folder" in files.refused("write_file", path="a.txt/b", content="x")
    assert "is a folder: name a file in it" in files.refused("write_file", path=".", content="x")
    files.put("src/b.txt", "x\n")
    assert "src is a folder" in files.refused("write_file", path="src", content="x")
    assert "more than 10.0 MB" in files.refused("write_file", path="big", content="x" * 10_000_001)
    assert files.tree() == {"a.txt": b"x\n", "src/b.txt": b"x\n"}


def test_a_file_that_changed_since_it_was_read_must_be_read_again(files: Files) -> None:
    path = files.put("a.txt", "one\ntwo\n")
    files.ok("read_file", path="a.txt", end_line=1)
    path.write_text("one\n2\n")
    again = "a.txt has changed since it was read here: read it again, then change it"

    assert files.refused("edit_file", path="a.txt", old="one", new="1") == again
    assert files.refused("write_file", path="a.txt", content="x") == again
    assert files.refused("apply_patch", patch="--- a/a.txt\n+++ b/a.txt\n@@\n-one\n+1\n") == again
    assert again in files.display("edit_file", path="a.txt", old="one", new="1")["content"]
    files.ok("read_file", path="a.txt")
    assert files.ok("edit_file", path="a.txt", old="one", new="1")


def test_what_the_model_wrote_itself_it_knows(files: Files) -> None:
    files.ok("write_file", path="a.txt", content="one\n")
    files.ok("edit_file", path="a.txt", old="one", new="two")
    files.ok("apply_patch", patch="--- a/a.txt\n+++ b/a.txt\n@@\n-two\n+three\n")

    assert files.text("a.txt") == "three\n"


def test_what_was_read_is_remembered_by_session(files: Files, make_files: MakeFiles) -> None:
    path = files.put("a.txt", "one\n")
    files.ok("read_file", path="a.txt")
    path.write_text("two\n")

    assert make_files("other").ok("edit_file", path="a.txt", old="two", new="three")
    after_restart = make_files()
    assert "read it again" in after_restart.refused("edit_file", path="a.txt", old="three", new="four")


def test_a_time_stamp_alone_changes_nothing(files: Files) -> None:
    path = files.put("a.txt", "one\n")
    files.ok("read_file", path="a.txt")
    os.utime(path, (1, 1))

    assert files.ok("edit_file", path="a.txt", old="one", new="two")


def test_without_a_session_changes_are_recorded_all_the_same(files: Files) -> None:
    call = {"path": "a.txt", "content": "x\n"}

    assert files.tool.execute_tool("write_file", call, files.state)["success"]
    assert [path.name[:5] for path in files.journal.iterdir()] == ["none-"]


def test_all_of_a_new_text_is_shown_where_there_is_no_difference_to_show() -> None:
    """A binary file, or one that is too long to be compared, hides nothing of what takes its place."""
    binary = diff("f", b"\0\1\2", b"first\nlast\n")
    long = diff("f", b"x\n" * 500_000, b"first\nlast\n")

    assert binary.text.endswith("All of the new text:\n+first\n+last\n")
    assert long.text.endswith("All of the new text:\n+first\n+last\n")


def test_a_changed_file_does_not_keep_the_rights_of_another_user(files: Files) -> None:
    """The set-user-id bit was given to the old content; an undo does not bring it back either."""
    program = files.put("program", "old\n")
    program.chmod(0o6755)

    files.ok("write_file", path="program", content="new\n")

    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    files.act("undo")
    assert stat.S_IMODE(program.stat().st_mode) & 0o6000 == 0


def test_extended_attributes_stay(files: Files) -> None:
    file = files.put("a.txt", "old\n")
    try:
        os.setxattr(file, "user.origin", b"here")
    except OSError:
        pytest.skip("this file system has no extended attributes")

    files.ok("write_file", path="a.txt", content="new\n")

    assert os.getxattr(file, "user.origin") == b"here"


def test_an_attribute_that_cannot_be_kept_is_a_refusal(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    file = files.put("a.txt", "old\n")
    monkeypatch.setattr(os, "listxattr", lambda _fd: ["user.origin"])
    monkeypatch.setattr(os, "getxattr", lambda _fd, _name: b"here")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "setxattr", refuse)

    assert "user.origin, which would be lost" in files.refused("write_file", path="a.txt", content="new\n")
    assert file.read_text() == "old\n"


def test_other_names_of_a_file_are_told(files: Files) -> None:
    file = files.put("a.txt", "old\n")
    os.link(file, files.root / "b.txt")

    question = files.display("write_file", path="a.txt", content="new\n")
    told = files.ok("write_file", path="a.txt", content="new\n")

    assert "other names (hard links) of a.txt keep the old content" in question["title"]
    assert "1 other name(s) of it (hard links) keep the old content" in told
    assert files.text("b.txt") == "old\n"

"""Diffs are what git takes, patches are what git writes, and applying one is the opposite of making it."""

from __future__ import annotations

import shutil
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.display import validate_display
from files_tool.diffs import diff, lines_of, shown
from files_tool.limits import SHOWN_DIFF
from files_tool.patches import apply_hunks, read_patch
from files_tool.places import Refused
from files_tool.texts import Text

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Files

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")
LINES = st.lists(st.sampled_from(["a", "b", "c", "", "- x", "+ y", "-- z", "++ w", "@@", "é"]), max_size=25)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def git(folder: Path, *arguments: str, text: str = "") -> str:
    assert GIT is not None
    done = subprocess.run(
        [GIT, *arguments], cwd=folder, input=text.encode(), capture_output=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.decode()


def applied(before: str, patch: str) -> str:
    [one] = read_patch(patch)
    return apply_hunks(Text(before), one.hunks, "x")


@given(TEXTS, TEXTS)
def test_applying_a_diff_gives_the_new_text(before: str, after: str) -> None:
    if before == after:
        return
    made = diff("x", before.encode(), after.encode())

    assert applied(before, made.text) == after
    lines = made.text.splitlines()[2:]
    assert made.added == sum(line.startswith("+") for line in lines)
    assert made.removed == sum(line.startswith("-") for line in lines)


@given(st.lists(st.integers(0, 300), min_size=300, max_size=400), st.data())
@settings(max_examples=30)
def test_applying_a_diff_of_long_texts_gives_the_new_text(numbers: list[int], data: st.DataObject) -> None:
    before = "".join(f"{number}\n" for number in numbers)
    changed = list(numbers)
    for _ in range(data.draw(st.integers(1, 10))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(0, 5))] = data.draw(st.lists(st.integers(0, 300), max_size=5))
        changed = changed or [0]
    after = "".join(f"{number}\n" for number in changed)
    if before != after:
        assert applied(before, diff("x", before.encode(), after.encode()).text) == after


@needs_git
@given(TEXTS, TEXTS)
@settings(max_examples=40)
def test_git_takes_our_diffs_and_we_take_those_of_git(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    if before == after or not before or not after:
        return
    folder = tmp_path_factory.mktemp("git")
    (folder / "x").write_bytes(before.encode())
    (folder / "y").write_bytes(after.encode())

    theirs = git(folder, "diff", "--no-index", "--no-color", "x", "y")
    git(folder, "apply", "--unidiff-zero", "-", text=diff("x", before.encode(), after.encode()).text)

    assert (folder / "x").read_bytes() == after.encode()
    assert applied(before, theirs) == after


def test_long_texts_are_compared_too() -> None:
    """Comparing every line with every other one would take minutes here."""
    lines = [f"line {number % 5000} of {number // 10}\n" for number in range(20_000)]
    before = "".join(lines).encode()
    after = "".join(["new first\n", *lines[1:10_000], "new middle\n", *lines[10_001:], "end\n"]).encode()
    other = "".join(f"{number * 7 % 100}\n" for number in range(20_000)).encode()

    made = diff("x", before, after)
    assert (made.added, made.removed) == (3, 2)
    assert diff("x", before, other).removed == 20_000


def test_a_long_diff_is_cut_for_people() -> None:
    made = diff("x", None, b"line\n" * 100_000)

    cut = shown([made])
    assert len(cut) < SHOWN_DIFF + 100
    assert cut.endswith(f"… {100_003 - (cut.count(chr(10)) - 1)} lines more are not shown\n")
    assert made.added == 100_000


def test_texts_of_very_many_lines_are_not_compared() -> None:
    made = diff("x", b"a\n" * 300_000, b"b\n" * 300_000)

    assert made.text.splitlines()[2:4] == [
        "Text of 300001 lines changed to one of 300001",
        "All of the new text:",
    ]


def test_what_is_no_text_is_not_compared() -> None:
    made = diff("x.bin", b"\0\1", b"text\n")

    assert made.text == (
        "--- a/x.bin\n+++ b/x.bin\nBinary file changed from 2 bytes to 5 bytes\nAll of the new text:\n+text\n"
    )


def test_lines_are_what_ends_in_a_newline() -> None:
    assert lines_of("a\x0bb\u2028c\n\nd") == ["a\x0bb\u2028c\n", "\n", "d"]
    assert lines_of("") == []


def test_several_files_at_once(files: Files) -> None:
    files.put("src/a.py", "one\ntwo\nthree\n")
    files.put("old.py", "gone\n")
    files.put("name.py", "same\n").chmod(0o755)
    patch = (
        "Some words before.\n"
        "diff --git a/src/a.py b/src/a.py\nindex 123..456 100644\n--- a/src/a.py\n+++ b/src/a.py\n"
        "@@ -1,3 +1,4 @@ def x\n one\n-two\n+2\n+2.5\n three\n"
        "--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        "--- /dev/null\n+++ b/lib/new.py\n@@ -0,0 +1,2 @@\n+hello\n+there\n"
        "diff --git a/name.py b/other.py\nsimilarity index 100%\nrename from name.py\nrename to other.py\n"
    )

    shown = files.display("apply_patch", patch=patch)
    result = files.run("apply_patch", patch=patch)

    assert result["result"].splitlines() == [
        "Changed src/a.py (+2 -1 lines)",
        "Removed old.py (+0 -1 lines)",
        "Created lib/new.py (+2 -0 lines)",
        "Removed name.py (+0 -1 lines)",
        "Created other.py (+1 -0 lines)",
    ]
    assert len(shown.pop("basis")["files"]) == 5
    assert result["display"] == shown
    assert shown["title"] == "src/a.py, old.py, lib/new.py, name.py, other.py"
    assert files.tree() == {
        "src/a.py": b"one\n2\n2.5\nthree\n",
        "lib/new.py": b"hello\nthere\n",
        "other.py": b"same\n",
    }
    assert stat.S_IMODE((files.root / "other.py").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ("", "is about no file"),
        ("just words", "is about no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "a file's heading is missing"),
        ("--- a/a.txt\n+++ b/a.txt\n", "has no hunks"),
        ("--- /dev/null\n+++ /dev/null\n@@\n+x\n", "both names are /dev/null"),
        (
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,2 @@\n one\n-two\n",
            "says 3 old and 2 new lines, but 2 and 1",
        ),
        (f"--- a/a.txt\n+++ b/a.txt\n@@ -{'9' * 5000} +1 @@\n-one\n+x\n", "a hunk begins"),
        ("--- a/a.txt\n+++ b/a.txt\n@@ what\n-one\n+x\n", "a hunk begins '@@ -line,count"),
        (
            "--- a/a.txt\n+++ b/a.txt\n@@\n-three\n+x\n",
            "hunk 1 of a.txt does not fit: its lines are not there",
        ),
        ("--- a/a.txt\n+++ b/a.txt\n@@\n-same\n+x\n", "fits at 2 places (lines 3, 4)"),
        ("--- a/a.txt\n+++ b/a.txt\n@@\n+x\n", "has only new lines, so its place is not known"),
        ("--- a/a.txt\n+++ b/a.txt\n@@ -99,0 +99,1 @@\n+x\n", "has only new lines"),
        ("--- a/none.txt\n+++ b/none.txt\n@@\n-x\n+y\n", "there is no none.txt"),
        ("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n", "a.txt is there already"),
        ("--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "a.txt has more lines than the patch removes"),
        ("--- a/../x\n+++ b/../x\n@@\n-x\n+y\n", "'..'"),
        ("--- /dev/null\n+++ /etc/new\n@@ -0,0 +1 @@\n+x\n", "outside the workspace"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 5\n", "only changes of texts"),
        ("diff --git a/x b/x\nnew file mode 100644\n", "an empty file cannot be made"),
        ("--- a/a.bin\n+++ b/a.bin\n@@\n-x\n+y\n", "a.bin is not a text file"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(files: Files, patch: str, problem: str) -> None:
    files.put("a.txt", "one\ntwo\nsame\nsame\n")
    files.put("a.bin", b"\0")
    before = files.tree()
    fitting = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n"

    assert problem in files.refused("apply_patch", patch=patch)
    if patch.startswith("---"):
        assert problem in files.refused("apply_patch", patch=fitting + patch)
    assert files.tree() == before
    assert files.act("changes")["changes"] == []


def test_a_hunk_is_found_nearest_to_where_it_should_be() -> None:
    text = Text("a\nx\nb\nx\nc\nx\nd\n")

    def with_heading(line: int) -> str:
        [one] = read_patch(f"--- a/f\n+++ b/f\n@@ -{line} +{line} @@\n-x\n+y\n")
        return apply_hunks(text, one.hunks, "f").replace("\n", " ").strip()

    assert with_heading(2) == "a y b x c x d"
    assert with_heading(4) == "a x b y c x d"
    assert with_heading(40) == "a x b x c y d"


def test_hunks_after_one_that_was_moved_are_moved_as_well() -> None:
    text = Text("new\nnew\n" + "a\nx\nb\n" * 3)
    patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-x\n+1\n b\n@@ -7,3 +7,3 @@\n a\n-x\n+3\n b\n"
    [one] = read_patch(patch)

    assert apply_hunks(text, one.hunks, "f") == "new\nnew\na\n1\nb\na\nx\nb\na\n3\nb\n"


def test_hunks_are_in_order() -> None:
    [one] = read_patch("--- a/f\n+++ b/f\n@@\n-b\n+2\n@@\n-a\n+1\n")

    with pytest.raises(Refused, match="hunk 2 of f does not fit"):
        apply_hunks(Text("a\nb\n"), one.hunks, "f")


def test_line_ends_are_kept_and_the_missing_last_one_too(files: Files) -> None:
    path = files.put("a.txt", b"one\r\ntwo\r\nthree")

    files.ok("apply_patch", patch="--- a/a.txt\n+++ b/a.txt\n@@\n one\n-two\n+2\n three\n")

    assert path.read_bytes() == b"one\r\n2\r\nthree"


def test_lines_that_stay_keep_their_own_ends(files: Files) -> None:
    path = files.put("a.txt", b"one\r\ntwo\nthree\r\nfour\n")

    files.ok("apply_patch", patch="--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")

    assert path.read_bytes() == b"one\r\n2\nthree\r\nfour\n"


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"),
        ("a\nb", "a\nc", "@@\n a\n-b\n+c\n"),
        ("a\n\nb\n", "a\n\nc\n", "@@\n a\n\n-b\n+c\n\n\n"),
        ("- a\n", "-- a\n", "@@ -1 +1 @@\n-- a\n+-- a\n"),
    ],
)
def test_the_end_of_a_file_is_as_the_patch_says(before: str, after: str, patch: str) -> None:
    assert applied(before, f"--- a/f\n+++ b/f\n{patch}") == after


def test_names_in_headings() -> None:
    def names(old: str, new: str) -> list[str]:
        [one] = read_patch(f"--- {old}\n+++ {new}\n@@\n-x\n+y\n")
        return one.names

    assert names("a/x.py", "b/x.py") == ["x.py"]
    assert names("x.py", "x.py") == ["x.py"]
    assert names("a/x.py", "a/x.py") == ["a/x.py"]
    assert names("a/x.py\t2024-01-01 00:00:00", "b/x.py\t2024-01-01") == ["x.py"]
    assert names('"a/\\303\\244 \\"q\\".py"', '"b/\\303\\244 \\"q\\".py"') == ['ä "q".py']
    assert names("/dev/null", "b/x.py") == ["x.py"]


@given(st.text("-+ @a/b\n\\", max_size=80))
def test_any_text_is_a_patch_or_is_refused(text: str) -> None:
    try:
        patches = read_patch(text)
    except Refused:
        return

    assert all(patch.names for patch in patches)


def test_a_patch_about_too_many_files_is_refused(files: Files) -> None:
    patch = "".join(f"--- /dev/null\n+++ b/{number}\n@@ -0,0 +1 @@\n+x\n" for number in range(101))

    assert "more than 100 files" in files.refused("apply_patch", patch=patch)
    assert files.tree() == {}


def test_a_patch_of_many_long_changes_is_cut_for_people(files: Files) -> None:
    added = "".join(f"+line {number}\n" for number in range(3000))
    patch = "".join(f"--- /dev/null\n+++ b/{number}.txt\n@@ -0,0 +1,3000 @@\n{added}" for number in range(9))

    display = files.run("apply_patch", patch=patch)["display"]

    assert display["title"] == "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 4 more"
    assert len(display["content"]) < SHOWN_DIFF + 100
    assert display["content"].endswith("lines more, and 7 files more are not shown\n")
    assert validate_display(files.act("undo")["display"]).warnings == ()


def test_one_file_may_be_patched_twice(files: Files) -> None:
    files.put("a.txt", "one\ntwo\n")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@\n-one\n+1\n--- a/a.txt\n+++ b/a.txt\n@@\n 1\n-two\n+2\n"

    assert files.ok("apply_patch", patch=patch) == "Changed a.txt (+2 -2 lines)"
    assert files.text("a.txt") == "1\n2\n"

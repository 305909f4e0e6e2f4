"""Searching: what an expression means, and that the answer is the same with ripgrep and without."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from files_tool import calls, tree as walking
from files_tool.expressions import read_expression
from files_tool.ripgrep import find_ripgrep
from files_tool.search import matches_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Files, MakeFiles

RG = shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RG is None, reason="ripgrep is not installed")

ATOMS = st.sampled_from(
    ["a", "b", "é", "É", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "[ab]", "[^a]", "[a-c\\d]", "[^\\s]",
     "\\.", " ", "1", "\\x61", "\\u00e9", "_", "-", "#", "&", "~", "[&~-]", "[]]", "\\(", "{", "}", "ß",
     "[[:alpha:]]"]
)  # fmt: skip
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"])
PLACES = st.sampled_from(["", "", "", "^", "$", "\\b", "\\B"])
PATTERNS = st.recursive(
    st.lists(st.builds(lambda place, atom, repeat: place + atom + repeat, PLACES, ATOMS, REPEATS),
             min_size=1, max_size=4).map("".join),
    lambda inner: st.one_of(
        st.builds(lambda one, other: f"{one}|{other}", inner, inner),
        st.builds(lambda one, repeat: f"({one}){repeat}", inner, REPEATS),
        st.builds(lambda one: f"(?:{one})", inner),
    ),
    max_leaves=4,
)  # fmt: skip
LETTERS = "abcABCéÉ 1_-#&~().{}]\t"
LINES = st.text(LETTERS, max_size=12)


def matching(pattern: str, text: str, **options: bool) -> list[int]:
    found = matches_in(text.encode(), read_expression(pattern, **options))
    return [] if found is None else found[1]


@given(PATTERNS, st.lists(LINES, max_size=6))
@settings(max_examples=300)
def test_an_expression_means_what_it_means_to_python(pattern: str, lines: list[str]) -> None:
    meant = re.compile(pattern.replace("[[:alpha:]]", "[A-Za-z]"))
    if "\\B" in pattern:  # which no place of an empty text is to Python before 3.14
        lines = [line or "a" for line in lines]

    expected = [number for number, line in enumerate(lines) if meant.search(line)]

    assert matching(pattern, "".join(f"{line}\n" for line in lines)) == expected


@given(st.text(LETTERS + "*+?^$|[]\\", min_size=1, max_size=5), st.lists(LINES, max_size=6))
def test_a_literal_is_looked_for_as_it_is(wanted: str, lines: list[str]) -> None:
    text = "\n".join([*lines, f"x{wanted}y", wanted.swapcase()])

    assert matching(wanted, text, is_literal=True) == [
        number for number, line in enumerate(text.split("\n")) if wanted in line
    ]
    assert len(lines) in matching(wanted, text, is_literal=True, ignore_case=True)


@pytest.mark.parametrize(
    ("pattern", "text", "lines"),
    [
        ("foo$", "foo\r\nfoo\nfoo", [0, 1, 2]),
        ("^foo", codecs.BOM_UTF8.decode() + "foo\nxfoo", [0]),
        ("^$", "a\n\nb\n", [1]),
        ("^$", "", []),
        ("(?i)straße", "STRASSE\nSTRAßE", [1]),
        ("\\bfoo\\b", "a foo b\nfoos\néfoo", [0]),
        ("a|^b$", "b\nba\nc", [0, 1]),
        ("foo {", "foo {\nfoo", [0]),
        ("x{2,3}y", "xxy\nxy", [0]),
        ("(?P<name>a)(?<other>b)", "ab", [0]),
        ("a.c", "a\nc\nabc", [2]),
    ],
)
def test_expressions_by_example(pattern: str, text: str, lines: list[int]) -> None:
    assert matching(pattern, text) == lines


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "the pattern is empty"),
        ("a\nb", "a line is searched by itself"),
        ("a\\nb", "a line is searched by itself"),
        ("a\\x0a", "a line is searched by itself"),
        ("(a", "character 1: this group is not closed"),
        ("a)", "character 2: this ) closes nothing"),
        ("[a", "character 1: this class is not closed"),
        ("*a", "there is nothing that * could repeat"),
        ("a**", "there is nothing that * could repeat"),
        ("^*", "a place cannot be repeated"),
        ("\\b+", "a place cannot be repeated"),
        ("(?=a)", "of the groups that begin with (?"),
        ("(?<!a)b", "of the groups that begin with (?"),
        ("(?m)a", "of the groups that begin with (?"),
        ("(a)\\1", "\\1 is not understood"),
        ("\\A", "write ^ in place"),
        ("\\z", "write $ in place"),
        ("\\pL", "\\p is not understood"),
        ("a\\", "a backslash needs a character"),
        ("[z-a]", "the range z-a runs backwards"),
        ("[\\W]", "\\W cannot be in a class"),
        ("[[:nope:]]", "there is no class [:nope:]"),
        ("a{5000}", "more than 1000 times"),
        (f"a{{{'9' * 5000}}}", "more than 1000 times"),
        ("(" * 60 + "a" + ")" * 60, "50 deep"),
        ("((a{999}){999}){999}", "too large"),
        ("\\u{110000}", "no such character"),
        ("\ud800", "not valid Unicode"),
        ("a" * 10_001, "too long"),
    ],
)
def test_what_is_not_understood_is_refused(files: Files, pattern: str, problem: str) -> None:
    assert problem in files.refused("search_files", pattern=pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "a*a*a*a*a*a*a*a*b", "(a?){50}a{50}"])
def test_no_expression_takes_for_ever(files: Files, pattern: str) -> None:
    files.put("a.txt", "a" * 100_000 + "!\n")

    assert files.run("search_files", pattern=pattern)["success"]


NO_TEXT = "[not searched: 1 file that is not text]"


def test_the_answer(files: Files) -> None:
    files.put("b.txt", "one\ntwo\nthree\nfour\nfive\ntwo\n")
    files.put("a.txt", "two two\n" + "x" * 500 + "two\n")
    files.put("c.bin", b"two\0")

    assert files.ok("search_files", pattern="two").splitlines() == [
        "a.txt:1: two two",
        f"a.txt:2: {'x' * 400} […]",
        "b.txt:2: two",
        "b.txt:6: two",
        NO_TEXT,
    ]
    assert files.ok("search_files", pattern="two", glob="b*", context=1) == (
        "b.txt-1- one\nb.txt:2: two\nb.txt-3- three\n--\nb.txt-5- five\nb.txt:6: two"
    )
    assert files.ok("search_files", pattern="t[wh]", glob="b.txt", context=1) == (
        "b.txt-1- one\nb.txt:2: two\nb.txt:3: three\nb.txt-4- four\nb.txt-5- five\nb.txt:6: two"
    )
    assert files.ok("search_files", pattern="two", names_only=True) == f"a.txt\nb.txt\n{NO_TEXT}"
    assert files.ok("search_files", pattern="none") == f"[nothing matches]\n{NO_TEXT}"
    assert files.ok("search_files", pattern="TWO") == f"[nothing matches]\n{NO_TEXT}"
    capitals = files.ok("search_files", pattern="TWO", ignore_case=True, names_only=True)
    assert capitals == f"a.txt\nb.txt\n{NO_TEXT}"
    more = "[there is more: narrow the pattern, the folder or the glob, or raise limit]"
    assert files.ok("search_files", pattern="two", limit=3).splitlines()[2:] == ["b.txt:2: two", more]
    assert files.ok("search_files", pattern="two", limit=4).splitlines()[3:] == ["b.txt:6: two", NO_TEXT]
    assert files.ok("search_files", pattern="two", names_only=True, limit=1) == f"a.txt\n{more}"
    assert "is a file, not a folder" in files.refused("search_files", pattern="two", path="a.txt")


def test_an_answer_stays_small(files: Files) -> None:
    files.put("a.txt", ("x" * 390 + "\n") * 5000)

    answer = files.ok("search_files", pattern="x", context=10, limit=2000)

    assert len(answer) < 61_000
    assert answer.endswith("or raise limit]")


both_ways = pytest.mark.parametrize("ripgrep", [pytest.param(True, marks=needs_ripgrep), False])


@both_ways
def test_what_was_not_searched_is_told(files: Files, monkeypatch: pytest.MonkeyPatch, ripgrep: bool) -> None:
    if not ripgrep:
        monkeypatch.setattr(calls, "find_ripgrep", lambda roots: None)
    files.put("a.txt", "needle\n")
    for name in ("log.txt", "d/log.txt", "ignored/log.txt", ".hidden"):
        files.put(name, "needle\n")
        os.truncate(files.root / name, 12_000_000)
    files.put("exact.txt", "hay\n" + " " * 9_999_996)
    files.put("x.bin", b"needle\0")
    files.put("late.bin", b"hay\n" * 20_000 + b"\0")
    files.put("utf16.txt", "needle".encode("utf-16"))
    files.put("empty.txt", "")
    files.put(".gitignore", "ignored/\n")
    (files.root / "link.txt").symlink_to(files.put("../outside.bin", b"\0"))

    def search(**options: Any) -> list[str]:
        return str(files.ok("search_files", **{"pattern": "needle", **options})).splitlines()

    assert search() == ["a.txt:1: needle", "[not searched: 2 files over 10.0 MB, 3 files that are not text]"]
    assert search(path="d") == ["[nothing matches]", "[not searched: 1 file over 10.0 MB]"]
    assert search(glob="*.bin") == ["[nothing matches]", "[not searched: 2 files that are not text]"]
    assert search(glob="a*") == ["a.txt:1: needle"]
    assert search(hidden=True, ignored=True)[1:] == [
        "[not searched: 4 files over 10.0 MB, 3 files that are not text]"
    ]


@contextmanager
def somebody_else() -> Iterator[Path]:
    """Give a folder that has what we may not open: also for the superuser, who otherwise may everything."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "a.txt").write_text("needle\n")
        (root / "closed.txt").write_text("needle\n")
        (root / "closed.txt").chmod(0)
        (root / "closed").mkdir()
        (root / "closed" / "b.txt").write_text("needle\n")
        (root / "closed").chmod(0)
        before = os.geteuid()
        os.seteuid(before or 65_534)
        try:
            yield root
        finally:
            os.seteuid(before)
            (root / "closed").chmod(0o700)


@both_ways
def test_what_cannot_be_opened_is_told(
    make_files: MakeFiles, monkeypatch: pytest.MonkeyPatch, ripgrep: bool
) -> None:
    if not ripgrep:
        monkeypatch.setattr(calls, "find_ripgrep", lambda roots: None)
    with somebody_else() as root:
        files = make_files(root=root)

        assert files.ok("search_files", pattern="needle").splitlines() == [
            "a.txt:1: needle",
            "[not searched: 1 file that cannot be opened, 1 folder that cannot be opened]",
        ]
        closed = "1 folder that cannot be opened]"
        found = files.ok("find_files", glob="*.txt").splitlines()
        assert found == ["a.txt", "closed.txt", f"[not looked into: {closed}"]
        assert files.ok("list_files", depth=2).splitlines()[-1] == f"[not listed: {closed}"
        assert "not listed" not in files.ok("list_files")


@both_ways
def test_a_folder_that_is_too_full_is_told(
    files: Files, monkeypatch: pytest.MonkeyPatch, ripgrep: bool
) -> None:
    if not ripgrep:
        monkeypatch.setattr(calls, "find_ripgrep", lambda roots: None)
    monkeypatch.setattr(walking, "MOST_IN_FOLDER", 2)
    for name in ("a.txt", "b.txt", "c.txt"):
        files.put(f"d/{name}", "needle\n")

    told = "1 folder beyond its first 200,000 names]"
    assert files.ok("search_files", pattern="needle", names_only=True).splitlines() == [
        "d/a.txt", "d/b.txt", f"[not searched: {told}",
    ]  # fmt: skip
    assert files.ok("list_files", path="d").splitlines()[2:] == [f"[not listed: {told}"]


def test_an_answer_that_was_cut_counts_nothing(files: Files) -> None:
    files.put("a.bin", b"needle\0")
    files.put("b.txt", "needle\n" * 3)

    more = "[there is more: narrow the pattern, the folder or the glob, or raise limit]"
    assert files.ok("search_files", pattern="needle", limit=1) == f"b.txt:1: needle\n{more}"


PATHS = [
    "a.txt",
    "b.py",
    "d/a.txt",
    "d/.h/x.txt",
    ".hidden",
    "d/e/f.py",
    "build/x.txt",
    "-",
    "d/-x",
    "A b.txt",
    "z",
]
CONTENTS = st.one_of(
    st.lists(LINES, max_size=5).map(lambda lines: "\n".join(lines).encode()),
    st.lists(LINES, max_size=5).map(lambda lines: codecs.BOM_UTF8 + "\r\n".join(lines).encode()),
    st.lists(st.sampled_from([b"a", b"b", b"\xff", b"\xe9", b"\xc3", b"\n", b" ", b"1", b"\r", "é".encode()]),
             max_size=12).map(b"".join),
    st.just(b"a\0b"),
)  # fmt: skip
RULES = st.lists(
    st.sampled_from(["*.txt", "build/", "!a.txt", "/d", "d/e", "*.{py,txt}", "**/x*", ".h", "-"]), max_size=3
)


@needs_ripgrep
@settings(max_examples=60)
@given(
    tree=st.dictionaries(st.sampled_from(PATHS), CONTENTS, max_size=8),
    rules=RULES,
    below=RULES,
    pattern=PATTERNS,
    options=st.fixed_dictionaries(
        {},
        optional={
            "hidden": st.booleans(),
            "ignored": st.booleans(),
            "ignore_case": st.booleans(),
            "names_only": st.booleans(),
            "context": st.integers(0, 2),
            "limit": st.integers(1, 5),
            "path": st.sampled_from(["d", ".", "d/.h", "build"]),
            "glob": st.sampled_from(["*.txt", "d/**", "*"]),
        },
    ),
)
def test_ripgrep_changes_nothing_but_the_time(
    tmp_path_factory: pytest.TempPathFactory,
    tree: dict[str, bytes],
    rules: list[str],
    below: list[str],
    pattern: str,
    options: dict[str, Any],
) -> None:
    from files_tool import FilesTool

    root = tmp_path_factory.mktemp("tree")
    for folder in ("d/e", "d/.h", "build"):
        (root / folder).mkdir(parents=True)
    for path, content in tree.items():
        (root / path).write_bytes(content)
    (root / ".gitignore").write_text("\n".join(rules))
    (root / "d/.gitignore").write_text("\n".join(below))
    (root / "d/link.txt").symlink_to("/etc/passwd")
    tool = FilesTool()
    state = tool.init({"roots": [str(root)], "journal": str(root / ".journal")})

    def search() -> dict[str, Any]:
        return tool.execute_tool("search_files", {"pattern": pattern, **options}, state)

    with pytest.MonkeyPatch.context() as patch:
        with_ripgrep = search()
        patch.setattr(calls, "find_ripgrep", lambda roots: None)
        without = search()

    assert with_ripgrep == without
    assert with_ripgrep["success"]


@needs_ripgrep
def test_ripgrep_is_asked_where_it_is_there(
    files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    program = script(tmp_path / "bin/rg", f'echo "$@" >> {log}\nexec {RG} "$@"\n')
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    files.put("d/a.txt", "needle\n")

    assert files.ok("search_files", pattern="needle") == "d/a.txt:1: needle"
    assert "--regexp=(?:needle)" in log.read_text()


@pytest.mark.parametrize(
    "work",
    [
        "exit 2",
        "kill -9 $$",
        "printf './d/a.txt\\0'; exit 3",
        "printf './d/none.txt\\0./d/a.txt\\0'; exit 0",
        "printf './../../etc/passwd\\0'; exit 0",
    ],
)
def test_a_ripgrep_that_fails_changes_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, work: str
) -> None:
    program = script(tmp_path / "bin/rg", work)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    files.put("d/a.txt", "needle\n")

    assert files.ok("search_files", pattern="needle") == "d/a.txt:1: needle"


def test_another_program_of_that_name_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = script(tmp_path / "rg", "")
    program.write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_ripgrep([]) is None


def test_a_ripgrep_of_the_workspace_is_not_run(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    program = script(files.root / "bin/rg", "touch ran; exit 1")
    monkeypatch.setenv("PATH", str(program.parent))
    files.put("a.txt", "needle\n")

    assert find_ripgrep([str(files.root)]) is None
    assert files.ok("search_files", pattern="needle") == "a.txt:1: needle"
    assert not (files.root / "ran").exists()


def test_a_search_can_be_cancelled_while_ripgrep_runs(
    files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from agent_core import Cancellation

    started = tmp_path / "started"
    program = script(tmp_path / "bin/rg", f"touch {started}; exec sleep 100")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    files.put("a.txt", "needle\n")

    class CancelledOnceItRuns(Cancellation):
        @property
        def cancelled(self) -> bool:
            return started.exists()

    result = files.tool.execute_tool(
        "search_files",
        {"pattern": "x"},
        files.state,
        context=files.context,
        cancellation=CancelledOnceItRuns(),
    )

    assert result == {"success": False, "error": "it was cancelled"}


def script(path: Path, work: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    version = '[ "$1" = --version ] && echo "ripgrep 0" && exit 0'
    path.write_text(f"#!/bin/sh\n{version}\n{work}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@needs_ripgrep
def test_many_folders_are_searched_in_order(files: Files) -> None:
    for number in range(600):
        files.put(f"d{number % 7}/e{number}/a.txt", "needle\n" if number % 50 == 0 else "hay\n")

    found = files.ok("search_files", pattern="needle", names_only=True).splitlines()

    assert found == sorted(found, key=lambda path: path.split("/"))
    assert len(found) == 12

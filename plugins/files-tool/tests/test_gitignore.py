"""What a .gitignore leaves out, held against git itself; and globs."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from files_tool.expressions import compiled
from files_tool.gitignore import Rules, expression_of, rules_of
from files_tool.search import glob_expression

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Files

GIT = shutil.which("git")
NAMES = [
    "a",
    "b",
    "c",
    "ab",
    "a.c",
    ".h",
    "a b",
    "A",
    "1",
    "!a",
    "#a",
    "x*",
    "[",
    "]",
    "-",
    "é",
    "\x01",
    "\x0b",
]
FOLDERS = ["", "d", "d/e", "a", "d/a"]
PIECES = ["a", "b", "ab", "*", "**", "?", "[ab]", "[!a]", "[a-c]", "[c-a]", "[]-]", "[[:alpha:]]",
          "[[:nope:]]", "[[:space:]]", "[[:graph:]]", "[[:cntrl:]]", "[[:", "[[[:]", "[a-[:digit:]]", "[é]",
          "\\*", "\\a", "d", "e", ".c", "/", "/", "/", " ", "\\ ", "#", "!", "[", "1", "-", "{a,b}", "x",
          "é"]  # fmt: skip
GLOBS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)
RULES = st.lists(
    st.builds(lambda mark, glob: mark + glob, st.sampled_from(["", "", "", "!"]), GLOBS), max_size=5
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if GIT is None:
        pytest.skip("git is not installed")
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run([GIT, "init", "-q", "."], cwd=folder, check=True)
    for parent in FOLDERS:
        for name in NAMES:
            path = folder / parent / name
            if not path.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x") if f"{parent}/{name}".strip("/") not in FOLDERS else path.mkdir()
    return folder


def files_by_git(repository: Path) -> set[str]:
    assert GIT is not None
    command = [GIT, "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=repository, capture_output=True, check=True)
    return {path for path in done.stdout.decode().split("\0") if path}


@settings(max_examples=150)
@given(top=RULES, below=RULES)
def test_files_are_left_out_as_git_does(repository: Path, top: list[str], below: list[str]) -> None:
    from files_tool.places import Place
    from files_tool.tree import IS_FILE, Choice, walk

    (repository / ".gitignore").write_text("\n".join(top) + "\n")
    (repository / "d/.gitignore").write_text("\n".join(below) + "\n")

    choice = Choice(hidden=True, excluded=Rules([]))
    ours = {entry.path for entry in walk(Place(str(repository), ()), choice) if entry.kind == IS_FILE}

    assert ours == files_by_git(repository)


@pytest.mark.parametrize(
    ("rules", "left_out", "kept"),
    [
        ("*.log", ["a.log", "d/b.log"], ["a.txt", "log"]),
        ("/build", ["build", "build/x"], ["src/build"]),
        ("doc/*.txt", ["doc/a.txt"], ["doc/sub/a.txt", "x/doc/a.txt"]),
        ("**/temp", ["temp", "a/temp", "a/b/temp"], ["temporary"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["b", "x/a/b"]),
        ("logs/**", ["logs/a", "logs/a/b"], ["logs"]),
        ("# comment\n\n  ", [], ["# comment", "x"]),
        ("\\#a\n\\!b", ["#a", "!b"], ["a", "b"]),
        ("*.a\r\n*.b\r\n", ["x.a", "x.b"], ["x.c"]),
        ("\ufeff*.a", ["x.a"], []),
        ("*.py[co]", ["x.pyc", "x.pyo"], ["x.py"]),
        ("[", [], ["["]),
        ("a\\", [], ["a", "a\\"]),
        # What git does and was once read otherwise.
        ("[c-a]", ["c"], ["a", "b"]),
        ("[a-[:digit:]]", ["a]", "d]"], ["a", "5", "5]"]),
        ("[[[:]", ["[", ":"], ["a"]),
        ("[[:graph:]]", ["a", "~"], [" ", "\x01"]),
        ("[[:print:]]", ["a", " "], ["\x01"]),
        ("[[:cntrl:]]", ["\x01", "\x7f"], ["a"]),
        ("[[:space:]]", [" ", "\t"], ["\x0b", "\x0c"]),
        ("?", ["a"], ["é"]),
        ("??", ["ab", "é"], ["a"]),
        ("[é]", [], ["é"]),
        ("/a**", ["a", "ab", "a/b"], ["b"]),
        ("a**/b", ["ab", "a/b", "ax/b", "ax/y/b"], ["b"]),
    ],
)
def test_rules_by_example(rules: str, left_out: list[str], kept: list[str]) -> None:
    found = rules_of(rules.encode())

    assert [path for path in left_out if not found.leave_out(path)] == []
    assert [path for path in kept if found.leave_out(path)] == []


def test_the_last_rule_counts() -> None:
    rules = Rules(["*.log", "!keep.log", "keep.log/"])

    assert rules.verdict("a.log", is_folder=False) is True
    assert rules.verdict("keep.log", is_folder=False) is False
    assert rules.verdict("keep.log", is_folder=True) is True
    assert rules.verdict("other", is_folder=False) is None


def test_hostile_rules_take_no_longer_than_others() -> None:
    rules = rules_of(
        ("*a" * 60 + "b\n" + "**/" * 50 + "x\n" + "(" * 1000 + "\n" + "[a-" * 100 + "\n").encode()
    )

    assert rules.verdict("a" * 250, is_folder=False) is None
    assert rules.verdict("a/" * 500 + "a", is_folder=False) is None


def test_names_that_are_not_utf8_are_judged_too() -> None:
    assert Rules(["*.log"]).verdict("\udcff.log", is_folder=False) is True
    assert Rules(["*.log"]).verdict("é.txt", is_folder=False) is None


@pytest.mark.parametrize(
    ("glob", "fitting", "others"),
    [
        ("*.py", ["a.py", "d/a.py"], ["a.pyc"]),
        ("src/*.py", ["src/a.py"], ["src/d/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/d/e/a.py"], ["a.py"]),
        ("**/*.py", ["a.py", "d/a.py"], ["a.txt"]),
        ("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.js"]),
        ("{a,b}/*.{c,[d-e]}", ["a/x.c", "b/x.e"], ["c/x.c", "a/x.f"]),
        ("./src/*", ["src/a"], ["a"]),
        ("/a.py", ["a.py"], ["d/a.py"]),
        ("a{", ["a{"], ["a"]),
        ("**", ["a", "d/a"], []),
    ],
)
def test_globs_of_find_files(glob: str, fitting: list[str], others: list[str]) -> None:
    expression = glob_expression(glob)

    assert [path for path in fitting if not expression.fits(path)] == []
    assert [path for path in others if expression.fits(path)] == []


@given(GLOBS)
def test_every_glob_is_an_expression_or_fits_nothing(glob: str) -> None:
    for braces in (True, False):
        source = expression_of(glob, braces=braces)
        assert source is None or compiled(source) is not None


def test_listing_and_finding(files: Files) -> None:
    for path in (
        "src/a.py",
        "src/b.txt",
        "src/deep/c.py",
        "README.md",
        ".hidden/d.py",
        "build/e.py",
        "z.log",
    ):
        files.put(path, "x" * 1234)
    files.put(".gitignore", "build/\n*.log\n")

    assert files.ok("list_files").splitlines() == ["README.md  1.2 kB", "src/"]
    assert files.ok("list_files", hidden=True).splitlines() == [
        ".gitignore  13 bytes",
        ".hidden/",
        "README.md  1.2 kB",
        "src/",
    ]
    assert files.ok("list_files", ignored=True).splitlines() == [
        "README.md  1.2 kB",
        "build/",
        "src/",
        "z.log  1.2 kB",
    ]
    assert files.ok("list_files", path="src", depth=2).splitlines() == [
        "src/a.py  1.2 kB",
        "src/b.txt  1.2 kB",
        "src/deep/",
        "src/deep/c.py  1.2 kB",
    ]
    assert files.ok("find_files", glob="*.py").splitlines() == ["src/a.py", "src/deep/c.py"]
    assert files.ok("find_files", glob="*.py", hidden=True, ignored=True).splitlines() == [
        ".hidden/d.py",
        "build/e.py",
        "src/a.py",
        "src/deep/c.py",
    ]
    assert files.ok("find_files", glob="deep/*", path="src") == "src/deep/c.py"
    assert files.ok("find_files", glob="*.rs") == "[no file fits *.rs]"
    assert files.ok("find_files", glob="*", limit=1).splitlines() == [
        "README.md",
        "[there is more: make the pattern narrower, or raise limit]",
    ]
    assert "cannot be read" in files.refused("find_files", glob="[")
    assert "is a file, not a folder" in files.refused("list_files", path="README.md")
    assert files.ok("list_files", path="build").splitlines() == ["build/e.py  1.2 kB"]


def test_odd_names_are_listed_on_one_line(files: Files) -> None:
    (files.root / "two\nlines").write_text("x")
    (files.root / b"not-utf8-\xff".decode("utf-8", "surrogateescape")).write_text("x")

    assert files.ok("list_files").splitlines() == ["not-utf8-\\xff  1 byte", "two\\x0alines  1 byte"]
    assert files.ok("search_files", pattern="x").splitlines() == ["not-utf8-\\xff:1: x", "two\\x0alines:1: x"]


def test_folders_can_be_very_deep(files: Files) -> None:
    (files.root / "/".join(["d"] * 150)).mkdir(parents=True)
    (files.root / "a.txt").write_text("x")

    deep = "1 folder that lies too deep]"
    assert files.ok("find_files", glob="*.txt") == f"a.txt\n[not looked into: {deep}"
    assert files.ok("search_files", pattern="x") == f"a.txt:1: x\n[not searched: {deep}"
    assert len(files.ok("list_files", depth=20).splitlines()) == 21

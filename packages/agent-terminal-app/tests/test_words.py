"""What people and models read is plain English: the phrases that strangers stumbled over stay away."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
READ_BY_PEOPLE = [
    *sorted((ROOT / "packages").glob("*/src")),
    *sorted((ROOT / "plugins").glob("*/src")),
]
STUMBLED = re.compile(
    r"\b(?:shall|meanwhile|anew)\b|\b(?:in|out)side of\b|\bgo(?:es)? on with\b|\btold\b|\bbeside\b"
    r"|\bthe usual\b|speaks? against|for once:|that is no choice|does not know who asks|\broot down\b"
    r"|(?<!there )\b(?:is|are) no (?:folder|text|key|cursor|title|host|tool|name|table)\b"
    r"|\bcannot be believed\b|you are asked because|no rule is about|how (?:each|it) stands\b"
    r"|\bstands? (?:behind|in|between)\b|, else (?:stops|clears)|\bgo(?:es|ing)? on\b",
    re.IGNORECASE,
)


IN_PROSE = re.compile(
    r"\b(?:shall|meanwhile)\b|\binside of\b|\bgo(?:es)? on with\b|\b(?:is|are|was|were|be) told\b"
    r"|(?<!`)\bbeside\b",
    re.IGNORECASE,
)
"""What no docstring and no page has; a field of an event is called `beside`."""


def read_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that people read: literals of several words, and the help of commands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in comments:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.decorator_list:
            decorators = " ".join(ast.unparse(one) for one in node.decorator_list)
            if "command" in decorators:
                yield node.lineno, ast.get_docstring(node) or ""


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module, and the texts below its names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value


@pytest.mark.parametrize("folder", READ_BY_PEOPLE, ids=lambda one: one.parent.name)
def test_no_text_has_a_phrase_that_strangers_stumbled_over(folder: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in folder.rglob("*.py")
        for line, text in read_texts(path)
        if STUMBLED.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("folder", READ_BY_PEOPLE, ids=lambda one: one.parent.name)
def test_no_docstring_has_one_either(folder: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in folder.rglob("*.py")
        for text in docstrings(path)
        if IN_PROSE.search(text.replace("beside: True", ""))
    ]
    assert found == []


def test_no_page_has_one_either() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if IN_PROSE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("text", ["What shall answer you?", "You are asked because no rule is about it"])
def test_the_phrases_are_noticed(tmp_path: Path, text: str) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"# shall\nX = {text!r}\n")

    assert [one for _line, one in read_texts(module) if STUMBLED.search(one)] == [text]

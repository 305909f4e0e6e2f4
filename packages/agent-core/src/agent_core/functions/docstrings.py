"""Descriptions out of docstrings, whichever of the three common styles they are written in.

A docstring is prose first: whatever is not understood is left alone, and nothing here ever raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARAMETERS = "Args|Arguments|Parameters|Params|Attributes|Fields|Keyword Arg(?:ument)?s|Other Parameters"
_OTHERS = "Returns?|Yields?|Raises|Warns|Receives|Examples?|Methods|See Also|References|Todo"
_GOOGLE_PARAMETERS = re.compile(rf"\s*(?:{_PARAMETERS})\s*:\s*", re.IGNORECASE)
_GOOGLE_ENTRY = re.compile(r"\s*\*{0,2}(\w+)\s*(?:\(.*?\)\s*)?:(?:\s+(.*)|$)")
_GOOGLE_SECTION = re.compile(rf"(?:{_PARAMETERS}|{_OTHERS})\s*:\s*", re.IGNORECASE)
_NUMPY_PARAMETERS = re.compile(_PARAMETERS, re.IGNORECASE)
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_UNDERLINE = re.compile(r"\s*-{3,}\s*")
_SPHINX_PARAMETER = re.compile(
    r"\s*[:@](?:param|parameter|arg|argument|key|keyword|ivar|var)\s+([^:]+):\s*(.*)"
)
_SPHINX_FIELD = re.compile(r"\s*[:@][a-zA-Z]+(?:\s+[^:]+)?:(?!`)")


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says about the whole, and about each parameter or field."""

    description: str
    parameters: dict[str, str]


def read_docstring(doc: str | None) -> Docstring:
    """Read a docstring in Google, NumPy or Sphinx style, or in none."""
    lines = cleandoc(doc or "").splitlines()
    entries = [*_google(lines), *_numpy(lines), *_sphinx(lines)]
    return Docstring(_opening(lines), {name: text for name, text in entries if text})


def _opening(lines: list[str]) -> str:
    """Return everything before the first section or field list."""
    end = next((i for i in range(len(lines)) if _ends_prose(lines, i)), len(lines))
    return "\n".join(lines[:end]).strip()


def _ends_prose(lines: list[str], i: int) -> bool:
    line = lines[i]
    return bool(_GOOGLE_SECTION.fullmatch(line) or _SPHINX_FIELD.match(line) or _is_underlined(lines, i))


def _is_underlined(lines: list[str], i: int) -> bool:
    return i + 1 < len(lines) and bool(lines[i].strip()) and bool(_UNDERLINE.fullmatch(lines[i + 1]))


def _google(lines: list[str]) -> Iterator[tuple[str, str]]:
    for i, line in enumerate(lines):
        if _GOOGLE_PARAMETERS.fullmatch(line):
            for head, body in _entries(_deeper(lines[i + 1 :], than=_indent(line))):
                if found := _GOOGLE_ENTRY.match(head):
                    yield found[1], _joined([found[2] or "", *body])


def _numpy(lines: list[str]) -> Iterator[tuple[str, str]]:
    for i, line in enumerate(lines):
        if _NUMPY_PARAMETERS.fullmatch(line.strip()) and _is_underlined(lines, i):
            for head, body in _entries(_until_underlined(lines, i + 2)):
                if found := _NUMPY_ENTRY.match(head.strip()):
                    yield from ((name.strip(" *"), _joined(body)) for name in found[1].split(","))


def _sphinx(lines: list[str]) -> Iterator[tuple[str, str]]:
    for i, line in enumerate(lines):
        if found := _SPHINX_PARAMETER.match(line):
            name = found[1].split()[-1].lstrip("*\\")  # ":param int limit:" has a type before the name
            yield name, _joined([found[2], *_deeper(lines[i + 1 :], than=_indent(line))])


def _entries(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each line of the outermost indentation with the deeper lines below it."""
    filled = [line for line in lines if line.strip()]
    margin = min(map(_indent, filled), default=0)
    heads = [i for i, line in enumerate(filled) if _indent(line) == margin]
    for start, end in pairwise([*heads, len(filled)]):
        yield filled[start], filled[start + 1 : end]


def _deeper(lines: list[str], *, than: int) -> list[str]:
    """Return the lines up to the first that is indented no further than *than*."""
    end = next((i for i, line in enumerate(lines) if line.strip() and _indent(line) <= than), len(lines))
    return lines[:end]


def _until_underlined(lines: list[str], start: int) -> list[str]:
    end = next((i for i in range(start, len(lines)) if _is_underlined(lines, i)), len(lines))
    return lines[start:end]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())

"""`@file` in what is typed: which files are meant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))')
_BEING_TYPED = re.compile(r'(?<!\S)@(?:"([^"\n]*)|([^\s"]*))$')
_BEHIND = ".,;:!?)]}'"


class Mentions(NamedTuple):
    """What a text mentions.

    Attributes:
        files: The files that are there.
        missing: What looks like a path and is none.
    """

    files: tuple[Path, ...]
    missing: tuple[str, ...]


def find_mentions(text: str, roots: Sequence[Path]) -> Mentions:
    """Return the files that a text mentions, each once, looked for in several folders."""
    files: dict[Path, None] = {}
    missing: dict[str, None] = {}
    for quoted, bare in _MENTION.findall(text):
        path = _find(quoted, roots) if quoted else _find_bare(bare, roots)
        if path is not None:
            files[path] = None
        elif "/" in (quoted or bare):
            missing[quoted or bare] = None
    return Mentions(tuple(files), tuple(missing))


def mention(path: str) -> str:
    """Return how a file is mentioned."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def being_typed(text: str) -> tuple[int, str] | None:
    """Return where the mention begins that a text ends with, and what of its path is typed; None if none."""
    found = _BEING_TYPED.search(text)
    return None if found is None else (found.start(), found[1] if found[1] is not None else found[2])


def _find_bare(name: str, roots: Sequence[Path]) -> Path | None:
    """Return the file of a name, also if a sentence goes on or ends behind it."""
    return _find(name, roots) or _find(name.rstrip(_BEHIND), roots)


def _find(name: str, roots: Sequence[Path]) -> Path | None:
    if not name:
        return None
    for root in roots:
        try:
            path = root / Path(name).expanduser()
            if path.exists():
                return path
        except (OSError, RuntimeError, ValueError):  # a name too long, no home, a null character
            continue
    return None

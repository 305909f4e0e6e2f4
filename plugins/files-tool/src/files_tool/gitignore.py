r"""Rules about ignored files, as a .gitignore has them, and the globs that they are written in.

==========  ===============================================================
`*` `?`     any characters, one character; never a slash
`**`        any folders, also none, where it stands between slashes
`[a-z]`     one of these; `[!a-z]` none of these; never a slash
`{a,b}`     one of these, where braces are asked for
`\`         the next character as it is
==========  ===============================================================

It is written by hand although `pathspec` exists: of 250 cases that were compared with git, this module had 8
wrong and `pathspec` 25. Those 8 are corrected, and a test compares random rules with git itself. Globs become
expressions of `expressions.py`, so a hostile .gitignore cannot make a walk slow.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from files_tool.expressions import POSIX_CLASSES, Expression, compiled, literal, span

if TYPE_CHECKING:
    from collections.abc import Iterable


# As git has them (sane_ctype in its ctype.c): no vertical tab and no form feed is white space, a slash is in
# none.
_CLASSES = {
    **POSIX_CLASSES,
    "cntrl": r"\x{0}-\x{1F}\x{7F}",
    "graph": r"\x{21}-\x{2E}\x{30}-\x{7E}",
    "print": r"\x{20}-\x{2E}\x{30}-\x{7E}",
    "space": r"\x{9}\x{A}\x{D}\x{20}",
}
_SPECIAL = re.compile(r"[*?\[\\]")
_NOTHING = r"[^\x{0}-\x{10FFFF}]"


@lru_cache(maxsize=4096)
def expression_of(glob: str, *, braces: bool = False) -> str | None:
    """Return the expression for paths that fit a glob, None if no path can.

    A glob without a slash fits names in every folder; any other one fits the path from its first step on.
    """
    anchored = "/" in glob.rstrip("/")
    bare = glob.strip("/") if braces else glob.removeprefix("/")
    # Git compares what comes before the first special character by itself, and then the rest as if it were
    # all of the glob: in /a** the stars stand alone. That is about rules, and nobody expects it of other
    # globs.
    special = _SPECIAL.search(bare) if anchored and not braces else None
    body = _Reading(bare, braces=braces, first_special=special.start() if special else 0).body()
    if body is None:
        return None
    return f"^{body}$" if anchored else f"(?:^|/){body}$"


class _Reading:
    """A glob that is being read."""

    def __init__(self, glob: str, *, braces: bool, first_special: int) -> None:
        self._glob = glob
        self._braces = braces
        self._first_special = first_special

    def body(self) -> str | None:
        """Return the expression without anchors; None if nothing can fit."""
        try:
            return self._until(0, "").text
        except ValueError:
            return None

    def _until(self, at: int, ends: str) -> _Read:
        glob, read = self._glob, []
        while at < len(glob) and glob[at] not in ends:
            text, at = self._one(at)
            read.append(text)
        return _Read("".join(read), at)

    def _one(self, at: int) -> _Read:
        char = self._glob[at]
        if char == "*":
            return self._stars(at)
        if char == "?":
            return _Read("[^/]", at + 1)
        if char == "[":
            return self._class(at + 1)
        if char == "\\":
            return _Read(literal(self._glob[at + 1 : at + 2] or _invalid()), at + 2)
        if char == "{" and self._braces and "}" in self._glob[at:]:
            return self._alternatives(at + 1)
        return _Read(literal(char), at + 1)

    def _stars(self, at: int) -> _Read:
        glob = self._glob
        end = at + 1
        while glob[end : end + 1] == "*":
            end += 1
        is_after_slash = at == 0 or glob[at - 1] == "/"
        alone = (is_after_slash or at == self._first_special) and glob[end : end + 1] in ("", "/")
        if end - at < 2 or not alone:  # noqa: PLR2004 - two stars
            return _Read("[^/]*", end)
        if end < len(glob):
            return _Read("(?:[^/]*/)*", end + 1)
        return _Read("(?:[^/]|/)*", end)

    def _alternatives(self, at: int) -> _Read:
        found = []
        while True:
            text, at = self._until(at, ",}")
            found.append(text)
            if self._glob[at : at + 1] != ",":
                break
            at += 1
        if at == len(self._glob):
            _invalid()
        return _Read(f"(?:{'|'.join(found)})", at + 1)

    def _class(self, at: int) -> _Read:
        glob = self._glob
        negated = glob[at : at + 1] in ("!", "^") and bool(glob[at : at + 1])
        at += negated
        items, first = "", True
        while first or glob[at : at + 1] != "]":
            item, at = self._item(at)
            items, first = items + item, False
        if negated:
            return _Read(f"[^{items}/]", at + 1)
        return _Read(f"[{items}]" if items else _NOTHING, at + 1)

    def _item(self, at: int) -> _Read:
        glob = self._glob
        if glob.startswith("[:", at):
            end = glob.find("]", at + 2)  # git looks no further, and takes the rest for single characters
            if end < 0:
                _invalid()
            if end > at + 2 and glob[end - 1] == ":":
                return _Read(_CLASSES.get(glob[at + 2 : end - 1]) or _invalid(), end + 1)
        low, at = self._char(at)
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("]", ""):
            high, at = self._char(at + 1)
            # Git compares the first character by itself, so that [c-a] fits c although the range is empty.
            return _Read(span(low, max(low, high), without="/"), at)
        return _Read(span(low, low, without="/"), at)

    def _char(self, at: int) -> _Read:
        at += self._glob[at : at + 1] == "\\"
        return _Read(self._glob[at : at + 1] or _invalid(), at + 1)


class _Read(NamedTuple):
    """What was read, and where reading goes on."""

    text: str
    at: int


def _invalid() -> str:
    raise ValueError("the glob ends in the middle")


@dataclass(frozen=True, slots=True)
class _Rule:
    expression: str
    negated: bool
    folders_only: bool

    def fits(self, path: str) -> bool:
        found = compiled(self.expression)
        return found is not None and found.fits(path)


class Rules:
    """The rules of one folder; paths are relative to it."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules = tuple(rule for line in lines if (rule := _read(_as_bytes(line))) is not None)

    @cached_property
    def _any(self) -> Expression | None:
        """All rules in one, to see at once that none is about a path."""
        return compiled("|".join(rule.expression for rule in self._rules))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Say whether a path is left out (True) or taken in (False) by the last rule about it."""
        if not self._rules:
            return None
        path = _as_bytes(path)
        if self._any is not None and not self._any.fits(path):
            return None
        for rule in reversed(self._rules):
            if (is_folder or not rule.folders_only) and rule.fits(path):
                return not rule.negated
        return None

    def leave_out(self, path: str) -> bool:
        """Say whether a path, or a folder on the way to it, is left out."""
        ends = [at for at, char in enumerate(path) if char == "/"]
        return any(self.verdict(path[:end], is_folder=True) for end in (*ends, len(path)))


@lru_cache(maxsize=256)
def rules_of(data: bytes) -> Rules:
    """Return the rules of a .gitignore."""
    text = data.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    return Rules(line.removesuffix("\r") for line in text.split("\n"))


def _read(line: str) -> _Rule | None:
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    glob = _without_padding(line[negated:])
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    expression = expression_of(glob) if glob else None
    return None if expression is None else _Rule(expression, negated, folders_only)


def _without_padding(glob: str) -> str:
    """Return a glob without the spaces at its end, except one behind a backslash."""
    bare = glob.rstrip(" ")
    quoted = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return glob[: len(bare) + 1] if quoted else bare


def _as_bytes(text: str) -> str:
    """Return a text with a character for each of its bytes: to git, `?` is one byte, and é has two."""
    return text if text.isascii() else text.encode(errors="surrogateescape").decode("latin-1")

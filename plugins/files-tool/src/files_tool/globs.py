r"""Globs as git writes them, turned into linear expressions.

==========  ===============================================================
`*` `?`     any characters, one character; never a slash
`**`        any folders, also none, where it stands between slashes
`[a-z]`     one of these; `[!a-z]` none of these; never a slash
`{a,b}`     one of these, where braces are asked for
`\`         the next character as it is
==========  ===============================================================
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from files_tool.linear import POSIX_CLASSES, literal, span

_NOTHING = r"[^\x{0}-\x{10FFFF}]"


@lru_cache(maxsize=4096)
def expression_of(glob: str, *, braces: bool = False) -> str | None:
    """Return the expression for paths that fit a glob, None if no path can.

    A glob without a slash fits names in every folder; any other one fits the path from its first step on.
    """
    anchored = "/" in glob.rstrip("/")
    body = _Reading(glob.strip("/") if braces else glob.removeprefix("/"), braces=braces).body()
    if body is None:
        return None
    return f"^{body}$" if anchored else f"(?:^|/){body}$"


class _Reading:
    """A glob that is being read."""

    def __init__(self, glob: str, *, braces: bool) -> None:
        self._glob = glob
        self._braces = braces

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
        alone = (at == 0 or glob[at - 1] == "/") and glob[end : end + 1] in ("", "/")
        if end - at < 2 or not alone:  # noqa: PLR2004 - two stars
            return _Read("[^/]*", end)
        return _Read("(?:[^/]*/)*", end + 1) if end < len(glob) else _Read("(?:[^/]|/)+", end)

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
        if glob.startswith("[:", at) and ":]" in glob[at:]:
            end = glob.index(":]", at)
            return _Read(POSIX_CLASSES.get(glob[at + 2 : end]) or _invalid(), end + 2)
        low, at = self._char(at)
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("]", ""):
            high, at = self._char(at + 1)
            return _Read(span(low, high, without="/"), at)
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

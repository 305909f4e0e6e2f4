"""Rules about what is left out, as a .gitignore has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from files_tool.globs import expression_of
from files_tool.linear import Expression, compiled

if TYPE_CHECKING:
    from collections.abc import Iterable

_BOM = "\ufeff"


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
        self._rules = tuple(rule for line in lines if (rule := _read(line)) is not None)

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
        path = path if path.isascii() else _fit(path)
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
    text = data.decode(errors="replace").removeprefix(_BOM)
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


def _fit(path: str) -> str:
    """Return a path as the engine takes it; what is not UTF-8 becomes a character that no rule names."""
    return path.encode(errors="replace").decode()

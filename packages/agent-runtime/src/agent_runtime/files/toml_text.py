"""TOML: the standard library's parser for the data, a walk over tables and keys for the places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime.files.documents import Document
from agent_runtime.files.refusals import checked
from agent_runtime.files.walking import Walker

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_runtime.files.ways import Places, Way


def parse_toml(text: str) -> Document:
    """Return the document that a TOML text holds.

    Raises:
        Wrong: If the text is not valid.
    """
    import tomllib

    walker = TomlWalker(text, lambda token: str(tomllib.loads(f"key = {token}")["key"]))
    walker.walk()
    return Document(checked(tomllib.loads, text, "TOML"), walker.places)


class TomlWalker(Walker):
    """Goes over valid TOML: tables, arrays of tables, and the keys in them."""

    def __init__(self, text: str, unquote: Callable[[str], str]) -> None:
        super().__init__(text, unquote)
        self._last: Places = {}  # of each array of tables, the place of the table that is being filled

    def document(self) -> None:
        """Go over the whole text."""
        table: Way = ()
        while self._at < len(self.text):
            if self.text.startswith("[", self._at):
                table = self._header()
            else:
                self.member(table)
            self.blank()

    def _header(self) -> Way:
        start, repeated = self._at, self.text.startswith("[[", self._at)
        self._at += 1 + repeated
        self.blank()
        *outer, own = self.key()
        self._at += 1 + repeated
        way: Way = ()
        for step in outer:
            way = self._entered((*way, step), start)
        way = (*way, own)
        if repeated:
            self._last[way] = self._last.get(way, -1) + 1
            way = self._entered(way, start)
        self.note(way, start)
        return way

    def _entered(self, way: Way, start: int) -> Way:
        self.note(way, self.places.get(way, start))
        return (*way, self._last[way]) if way in self._last else way

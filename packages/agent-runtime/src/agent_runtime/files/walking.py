"""A walk over JSON, and over the values of TOML, that notes where keys and items begin."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_runtime.files import limits
from agent_runtime.files.documents import Notes

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_runtime.files.problems import Wrong
    from agent_runtime.files.ways import Way

_STRING = r'''(?x:
    """(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*+"{3,5}
  | "(?:[^"\\]|\\.)*+"
  | \'\'\'(?:[^\']|\'{1,2}(?!\'))*+\'{3,5}
  | \'[^\']*+\'
)'''


class Walker(Notes):
    """Goes over JSON and notes where keys and items begin, before the parser has said that it is valid.

    So the limits hold before any of the data is made. Where the text is not valid the walk ends without a
    word, for the parser ends at the same place and knows better what to say.

    The values of TOML have the same shape but for comments, dotted keys and more kinds of strings, none of
    which can be mistaken in JSON; so both are walked alike.
    """

    _blank = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*+")
    _string = re.compile(_STRING)
    _bare_key = re.compile(r"[A-Za-z0-9_-]+")
    _bare_value = re.compile(r"[^,\]}\n#]+")

    def __init__(self, text: str, unquote: Callable[[str], str]) -> None:
        super().__init__(text)
        self.duplicate: Wrong | None = None
        self._at = 0
        self._unquote = unquote

    def walk(self) -> None:
        """Go over the text as far as it is valid."""
        with suppress(ValueError):
            self.blank()
            self.document()

    def document(self) -> None:
        """Go over all of it."""
        self.value(())

    def blank(self) -> None:
        """Go to the next thing that is neither blank nor a comment."""
        self._take(self._blank)

    def value(self, way: Way) -> None:
        """Go over one value and what follows it before the next sign."""
        opening = self.text[self._at : self._at + 1]
        if opening == "{":
            self._each("}", lambda _place: self.member(way))
        elif opening == "[":
            self._each("]", lambda place: self._item((*way, place)))
        else:
            self._take(self._string if opening in {'"', "'"} else self._bare_value)
        self.blank()

    def member(self, way: Way) -> None:
        """Go over a key and its value."""
        start = self._at
        *outer, own = self.key()
        for step in outer:
            way = (*way, step)
            self.note(way, self.places.get(way, start))
        way = (*way, own)
        if way in self.places:
            self.duplicate = self.duplicate or self.repeated(way, start)
        self.note(way, start)
        self._skip_sign()
        self.value(way)

    def key(self) -> Way:
        """Go over a key, dotted or not, and return its parts."""
        parts = [self._key_part()]
        while (
            self.text.startswith(".", self._at) and len(parts) <= limits.MAX_DEPTH
        ):  # more are refused anyway
            self._skip_sign()
            parts.append(self._key_part())
        return tuple(parts)

    def _key_part(self) -> str:
        quoted = self.text[self._at : self._at + 1] in {'"', "'"}
        token = self._take(self._string if quoted else self._bare_key)
        self.blank()
        return self._unquote(token) if quoted else token

    def _item(self, way: Way) -> None:
        self.note(way, self._at)
        self.value(way)

    def _each(self, end: str, walk: Callable[[int], None]) -> None:
        self._skip_sign()
        place = 0
        while not self.text.startswith(end, self._at):
            walk(place)
            place += 1
            if self.text.startswith(",", self._at):
                self._skip_sign()
        self._at += 1

    def _skip_sign(self) -> None:
        self._at += 1
        self.blank()

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self._at)
        if found is None:
            raise ValueError(f"expected {pattern.pattern} at {self._at}")
        self._at = found.end()
        return found[0]

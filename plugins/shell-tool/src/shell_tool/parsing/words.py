r"""A word of a command, and the one spelling in which rules see it.

Bash knows many spellings of one word (`ls`, `'ls'`, `l\s`). Rules are held against one: what needs no
quotes has none, everything else has single quotes. So a quoted space is never taken for the end of a word,
and a quoted `*` never for a wildcard. Expansions are shown as they were written, and have a shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shell_tool.parsing.shapes import ANYTHING, BARE, Shape, escape, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shell_tool.parsing.pieces import Piece

# What bash would expand, or take for a comment, if it stood without quotes.
_EXPANDS = re.compile(r"^[~#]|[=:]~|\{.*(?:,|\.\.)")
_GLOB = re.compile(r"[*?\[]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


@dataclass(frozen=True, slots=True)
class Word:
    """A word.

    Attributes:
        literal: What it is when the command runs; None if that is not known, or may be several words.
        shown: How rules see it.
        assigns: Whether it is an assignment where one may stand.
        shape: What it may turn out to be, if that is not known.
    """

    literal: str | None
    shown: str
    assigns: bool = False
    shape: Shape | None = None

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Word:
        """Put a word together."""
        active = "".join(piece.text for piece in pieces if piece.known and not piece.quoted)
        first = pieces[0]
        is_assignment = first.known and not first.quoted and assigns(first.text)
        if all(piece.known for piece in pieces) and not _changes(active):
            text = "".join(piece.text for piece in pieces)
            return cls.assigning(text) if is_assignment else cls(text, quote(text))
        shown = "".join(map(_shown, pieces))
        if is_assignment:
            glob = escape(shown.partition("=")[0]) + "=*"
            return cls(None, shown, assigns=True, shape=Shape(glob, (glob,)))
        return cls(None, shown, shape=shape_of(pieces))

    @classmethod
    def assigning(cls, text: str) -> Word:
        """Return an assignment that is known."""
        name, _, value = text.partition("=")
        return cls(text, f"{name}={quote(value) if value else ''}", assigns=True)

    def as_argument(self) -> Word:
        """Return the word where it assigns nothing, so that its spelling is that of any other word."""
        if not self.assigns:
            return self
        if self.literal is not None:
            return Word.text(self.literal)
        assert self.shape is not None  # what is not known has one
        glob = self.shape.spelled
        return Word(None, self.shown, shape=Shape(glob, (glob, f"'{glob}")))

    @classmethod
    def unknown(cls, source: str, shape: Shape = ANYTHING) -> Word:
        """Return a word of which only the source is known, and perhaps its shape."""
        return cls(None, source, shape=shape)

    @classmethod
    def sign(cls, text: str) -> Word:
        """Return what is no word of a command, but is shown like one: an operator."""
        return cls(text, text)

    @classmethod
    def text(cls, text: str) -> Word:
        """Return a word that is known."""
        return cls(text, quote(text))


def assigns(text: str) -> bool:
    """Say whether unquoted text begins like an assignment."""
    return _ASSIGNMENT.match(text) is not None


def quote(text: str) -> str:
    """Return the spelling of a word that is known."""
    if text in ("[", "]") or (BARE.fullmatch(text) and not _EXPANDS.search(text)):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _changes(active: str) -> bool:
    """Say whether bash makes something else of unquoted text: names of files, several words, a home."""
    return active != "[" and bool(_GLOB.search(active) or _EXPANDS.search(active))


def _shown(piece: Piece) -> str:
    return quote(piece.text) if piece.known and piece.quoted and piece.text else piece.text

r"""A word of a command, and the one spelling in which rules see it.

Bash knows many spellings of one word (`ls`, `'ls'`, `l\s`). Rules are held against one: what needs no
quotes has none, everything else has single quotes. So a quoted space is never taken for the end of a word,
and a quoted `*` never for a wildcard. Expansions stay as they were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BARE = re.compile(r"[\w@%+=:,./^!~#{}-]+")
# What bash would expand, or take for a comment, if it stood without quotes.
_EXPANDS = re.compile(r"^[~#]|[=:]~|\{.*(?:,|\.\.)")
_GLOB = re.compile(r"[*?\[]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word.

    Attributes:
        text: Its characters, or, if these are only known when it runs, its source.
        known: Whether they are known.
        quoted: Whether they stand for themselves, whatever they are.
    """

    text: str
    known: bool = True
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    """A word.

    Attributes:
        literal: What it is when the command runs; None if that is not known, or may be several words.
        shown: How rules see it.
        assigns: Whether it is an assignment where one may stand.
    """

    literal: str | None
    shown: str
    assigns: bool = False

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Word:
        """Put a word together."""
        active = "".join(piece.text for piece in pieces if piece.known and not piece.quoted)
        first = pieces[0]
        is_assignment = first.known and not first.quoted and assigns(first.text)
        if all(piece.known for piece in pieces) and not _changes(active):
            text = "".join(piece.text for piece in pieces)
            return cls.assigning(text) if is_assignment else cls(text, quote(text))
        return cls(None, "".join(map(_shown, pieces)), is_assignment)

    @classmethod
    def assigning(cls, text: str) -> Word:
        """Return an assignment that is known."""
        name, _, value = text.partition("=")
        return cls(text, f"{name}={quote(value) if value else ''}", assigns=True)

    @classmethod
    def unknown(cls, source: str) -> Word:
        """Return a word of which only the source is known."""
        return cls(None, source)


def assigns(text: str) -> bool:
    """Say whether unquoted text begins like an assignment."""
    return _ASSIGNMENT.match(text) is not None


def quote(text: str) -> str:
    """Return the spelling of a word that is known."""
    if text in ("[", "]") or (_BARE.fullmatch(text) and not _EXPANDS.search(text)):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _changes(active: str) -> bool:
    """Say whether bash makes something else of unquoted text: names of files, several words, a home."""
    return active != "[" and bool(_GLOB.search(active) or _EXPANDS.search(active))


def _shown(piece: Piece) -> str:
    return quote(piece.text) if piece.known and piece.quoted and piece.text else piece.text

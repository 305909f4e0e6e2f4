"""A part of a word, as it was read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word.

    Attributes:
        text: Its characters, or, if these are only known when it runs, its source.
        known: Whether they are known.
        quoted: Whether it stays within one word, and its characters stand for themselves.
        inside: Of a part in double quotes what is in it: texts, and None for what is not known.
    """

    text: str
    known: bool = True
    quoted: bool = False
    inside: tuple[str | None, ...] = ()

"""Words in a row, as rules see them."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from shell_tool.parsing.shapes import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shell_tool.parsing.words import Word

# How many globs stand for one command; with more, words that are not known are taken together.
_MOST = 16


class Spelling(NamedTuple):
    """Something that rules are about.

    Attributes:
        shown: Its text, with expansions as they were written.
        surely: If it is not known, globs for what it may turn out to be: all of it must be allowed.
        possibly: The same in every spelling: a rule that asks or denies counts if it fits some of it.
    """

    shown: str
    surely: tuple[str, ...] = ()
    possibly: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """True if it is known before it runs."""
        return not self.surely

    @property
    def is_open(self) -> bool:
        """True if it may begin with anything."""
        return any(glob.startswith("*") for glob in self.possibly)

    def beginning(self, old: str, new: str) -> Spelling:
        """Return the same with another beginning."""
        shown, *globs = [new + text.removeprefix(old) for text in (self.shown, *self.surely, *self.possibly)]
        return Spelling(shown, tuple(globs[: len(self.surely)]), tuple(globs[len(self.surely) :]))


def spell(words: Sequence[Word]) -> Spelling:
    """Return words with a blank between them."""
    shown = " ".join(word.shown for word in words)
    if all(word.shape is None for word in words):
        return Spelling(shown)
    return Spelling(shown, _globs(words, every_spelling=False), _globs(words, every_spelling=True))


def _globs(words: Sequence[Word], *, every_spelling: bool) -> tuple[str, ...]:
    choices = [_choices(word, every_spelling=every_spelling) for word in words]
    if prod(map(len, choices)) > _MOST:
        choices = [one if len(one) == 1 else ["*"] for one in choices]
    globs = ("".join(chosen).removeprefix(" ") for chosen in product(*choices))
    return tuple(glob for glob in globs if glob)


def _choices(word: Word, *, every_spelling: bool) -> list[str]:
    """Return globs for a word together with the blank before it."""
    shape = word.shape
    if shape is None:
        return [f" {escape(word.shown)}"]
    spellings = shape.spellings if every_spelling else (shape.spelled,)
    return [*(f" {glob}" for glob in spellings), *([""] if shape.vanishes else [])]

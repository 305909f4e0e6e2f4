"""The one pattern language: for tool lists, permissions and stop conditions.

`*` stands for any run of characters, the empty one and line ends included, `?` for exactly one, and a
backslash takes the next character as it is. Everything else means itself; case matters.

The stars cut a pattern into segments of known length. The first must stand at the start of the text
and the last at its end; each one between them is best placed as early as it fits, since that leaves the
most room for the others. So nothing is ever tried again, and matching takes time proportional to the
pattern times the text at most, whatever both are.

Where a text is not known, a second pattern says what it may be. Then there are two questions: whether every
such text fits (`covers`), and whether one could (`meets`). For these the pattern is a row of places, kept as
the bits of a number, and the second pattern is walked through symbol by symbol.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from agent_runtime.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Segment(NamedTuple):
    """What stands between two stars: its length, and the characters that it spells out."""

    size: int
    runs: tuple[tuple[int, str], ...]

    @property
    def beginning(self) -> str:
        """What it spells out at its start."""
        offset, run = self.runs[0] if self.runs else (0, "")
        return run if offset == 0 else ""

    def fits(self, text: str, at: int) -> bool:
        for offset, run in self.runs:  # noqa: SIM110 - all() takes three times as long
            if not text.startswith(run, at + offset):
                return False
        return True

    def find(self, text: str, start: int, end: int) -> int:
        """Return where it first fits between *start* and *end*, or -1."""
        if not self.runs:
            return start if start + self.size <= end else -1
        offset, run = self.runs[0]
        at = start
        while at + self.size <= end:
            at = text.find(run, at + offset, end) - offset
            if at < start or at + self.size > end:
                return -1
            if self.fits(text, at):
                return at
            at += 1
        return -1


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern, read once."""

    pattern: str
    _segments: tuple[_Segment, ...]

    @staticmethod
    def parse(pattern: str) -> Glob:
        """Return the pattern ready for matching.

        Raises:
            SpecError: If it is empty, or ends in a backslash.
        """
        if not isinstance(pattern, str) or not pattern:
            raise SpecError("a pattern must be a text that is not empty", field="pattern")
        return _parse(pattern)

    @property
    def is_literal(self) -> bool:
        """True if it can match one text only."""
        return len(self._segments) == 1 and self.literal_length == self._segments[0].size

    @property
    def literal_length(self) -> int:
        """How many characters it spells out; of two patterns the one with more is the more specific."""
        return sum(len(run) for segment in self._segments for _, run in segment.runs)

    @property
    def beginning(self) -> str:
        """What it spells out at its start."""
        return self._segments[0].beginning

    def matches(self, text: str) -> bool:
        """Say whether the whole of *text* fits."""
        first, last = self._segments[0], self._segments[-1]
        if len(self._segments) == 1:
            return len(text) == first.size and first.fits(text, 0)
        at, end = first.size, len(text) - last.size
        if at > end or not first.fits(text, 0) or not last.fits(text, end):
            return False
        for segment in self._segments[1:-1]:
            found = segment.find(text, at, end)
            if found < 0:
                return False
            at = found + segment.size
        return True

    def covers(self, other: Glob) -> bool:
        """Say whether every text that fits *other* is known to fit this one as well.

        What *other* leaves open, a `*` of this one must take up. So it may say no where the answer is yes
        for a reason that is not seen here (`*?` and `?*`), and never yes where it is no.
        """
        return self._begins_like(other) and _places(self.pattern).after(other.pattern, every=True)

    def meets(self, other: Glob) -> bool:
        """Say whether there is a text that fits both."""
        return self._begins_like(other) and _places(self.pattern).after(other.pattern, every=False)

    def _begins_like(self, other: Glob) -> bool:
        """Say whether one text can begin as both do; that rules most pairs out at once."""
        one, two = self._segments[0].beginning, other._segments[0].beginning
        return one.startswith(two) or two.startswith(one)


class _Places(NamedTuple):
    """The places between the symbols of a pattern; bit n is the place before symbol n.

    Attributes:
        stars: The places before a `*`, where any character may be taken without moving on.
        singles: The places before a `?`.
        known: For each character the places before it.
        end: The place behind the last symbol.
    """

    stars: int
    singles: int
    known: dict[str, int]
    end: int

    def after(self, pattern: str, *, every: bool) -> bool:
        """Say whether the end can be reached with what fits a pattern: with all of it, or with some."""
        here = self._past_stars(1)
        for symbol in _symbols(pattern):
            here = self._past_stars(self._step(here, symbol, every=every))
            if not here:
                return False
        return bool(here & self.end)

    def _step(self, here: int, symbol: str, *, every: bool) -> int:
        if symbol == "*":
            return here & self.stars if every else self._onward(here)
        if symbol != "?":
            takes = self.singles | self.known.get(symbol[1], 0)
        else:
            takes = self.singles if every else (self.end - 1) & ~self.stars
        return (here & self.stars) | ((here & takes) << 1)

    def _past_stars(self, here: int) -> int:
        """Return the places with those that are reached by a `*` that takes nothing; no two are in a row."""
        return here | ((here & self.stars) << 1)

    def _onward(self, here: int) -> int:
        """Return every place that the right characters lead to."""
        return (self.end << 1) - (here & -here)


@lru_cache(maxsize=4096)
def _places(pattern: str) -> _Places:
    stars, singles, known, bit, last = 0, 0, dict[str, int](), 1, ""
    for symbol in _symbols(pattern):
        if symbol == last == "*":  # several stars in a row are one
            continue
        last = symbol
        if symbol == "*":
            stars |= bit
        elif symbol == "?":
            singles |= bit
        else:
            known[symbol[1]] = known.get(symbol[1], 0) | bit
        bit <<= 1
    return _Places(stars, singles, known, bit)


@lru_cache(maxsize=4096)
def _parse(pattern: str) -> Glob:
    segments: list[list[str]] = [[]]
    for symbol in _symbols(pattern):
        if symbol != "*":
            segments[-1].append(symbol)
        elif segments[-1] or len(segments) == 1:  # several stars in a row are one
            segments.append([])
    return Glob(pattern, tuple(_segment(symbols) for symbols in segments))


def _symbols(pattern: str) -> Iterator[str]:
    """Yield `*`, `?`, and every other character behind a backslash, whether it had one or not."""
    characters = iter(pattern)
    for character in characters:
        if character in "*?":
            yield character
        elif character != "\\":
            yield f"\\{character}"
        else:
            escaped = next(characters, None)
            if escaped is None:
                raise SpecError(f"pattern {pattern!r} ends in a backslash: double it", field="pattern")
            yield f"\\{escaped}"


def _segment(symbols: list[str]) -> _Segment:
    runs: list[tuple[int, str]] = []
    run = ""
    for place, symbol in enumerate([*symbols, "?"]):  # the last one ends a run and counts for nothing
        if symbol != "?":
            run += symbol[1]
        elif run:
            runs.append((place - len(run), run))
            run = ""
    return _Segment(len(symbols), tuple(runs))


def escape(text: str) -> str:
    """Return a pattern that matches *text* and nothing else; the empty text has none."""
    return "".join(f"\\{character}" if character in "*?\\" else character for character in text)

"""A list to choose from: arrows move, letters narrow it down, Enter takes, Esc leaves.

This is the list itself; `prompt` draws it and hands it the keys. In a pipe, or a terminal in which nothing
should move, the same list is printed with numbers, and a number or a part of a name is read.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_terminal_app.chat.rendering.text import fitted, one_line
from agent_terminal_app.rows import cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

MOST_ROWS = 10
"""How many choices are seen at once."""
_WITHIN, _FAR = 100, 1_000
"""What it costs to be found inside a word, and in pieces."""
_BREAKS = frozenset(" -_/:.,()[]")


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be chosen.

    Attributes:
        value: What is returned for it.
        label: What it is called.
        about: A few words about it, next to the label.
        mark: A sign before it: → for the one in force, ★ for a favourite.
    """

    value: str
    label: str
    about: str = ""
    mark: str = " "


class Picker:
    """A list to choose from, what was typed to narrow it, and the choice that is marked.

    Args:
        title: What is being chosen.
        choices: In the order in which they are offered.
        start: The value that is marked first, if it is there.
        star: Called with a choice when it is to become a favourite, or no longer; returns it as it is then.
        words: Whether words that begin no choice are a result of their own.

    Attributes:
        title: What is being chosen.
        note: What is still going on, for example a server that is asked.
        result: Done when something was chosen; None if the user leaves.
    """

    def __init__(
        self,
        title: str,
        choices: Iterable[Choice],
        *,
        start: str | None = None,
        star: Callable[[Choice], Choice] | None = None,
        words: bool = False,
    ) -> None:
        self.title = title
        self.note = ""
        self.result: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._choices = list(choices)
        self._star = star
        self._words = words
        self._typed = ""
        self._found = list(self._choices)
        values = [one.value for one in self._found]
        self._place = values.index(start) if start in values else 0

    @property
    def choices(self) -> Sequence[Choice]:
        """Everything that can be chosen."""
        return self._choices

    @property
    def found(self) -> Sequence[Choice]:
        """What fits what was typed, the best first."""
        return self._found

    @property
    def marked(self) -> Choice | None:
        """The choice that Enter takes."""
        return self._found[self._place] if self._found else None

    @property
    def has_star(self) -> bool:
        """Whether choices can be made favourites."""
        return self._star is not None

    @property
    def takes_words(self) -> bool:
        """Whether words that begin no choice are a result of their own."""
        return self._words

    def add(self, choices: Iterable[Choice]) -> None:
        """Offer more, and say of those that are there what is known now; the marked one stays marked."""
        new = {one.value: one for one in choices}
        self._choices = [
            replace(one, about=new[one.value].about or one.about) if one.value in new else one
            for one in self._choices
        ]
        known = {one.value for one in self._choices}
        self._choices += [one for value, one in new.items() if value not in known]
        self._look(keep=self.marked)

    def narrow(self, typed: str) -> None:
        """Show what fits a text alone."""
        if typed != self._typed:
            self._typed = typed
            self._look(keep=None)

    def move(self, rows: int) -> None:
        """Mark another choice; beyond the last comes the first."""
        if not self._found:
            return
        if abs(rows) == 1:
            self._place = (self._place + rows) % len(self._found)
        else:
            self._place = min(max(self._place + rows, 0), len(self._found) - 1)

    def star(self) -> None:
        """Make the marked choice a favourite, or no longer."""
        if self._star is None or self.marked is None:
            return
        now = self._star(self.marked)
        self._choices = [now if one.value == now.value else one for one in self._choices]
        self._look(keep=now)

    def take(self) -> None:
        """Choose what is marked, or the words that were typed; nothing if nothing fits."""
        if self.result.done():
            return
        if self.marked is not None:
            self.result.set_result(self.marked.value)
        elif self._words:
            self.result.set_result(self._typed.strip())

    def leave(self) -> None:
        """Choose nothing."""
        if not self.result.done():
            self.result.set_result(None)

    def rows(self, width: int, most: int = MOST_ROWS) -> list[tuple[str, bool]]:
        """Return the rows that are seen, each with whether it is the marked one."""
        start = min(max(self._place - most // 2, 0), max(len(self._found) - most, 0))
        seen = self._found[start : start + most]
        wide = min(max((cells(one_line(one.label)) for one in seen), default=0), max(width * 3 // 5, 12))
        made = []
        for number, one in enumerate(seen, start):
            label = fitted(one_line(one.label), wide if one.about else max(width - 2, 1))
            gap = " " * (wide - cells(label) + 2) if one.about else ""
            row = f"{one.mark} {label}{gap}{one_line(one.about)}".rstrip()
            made.append((fitted(row, width), number == self._place))
        return made

    def foot(self, width: int) -> str:
        """Return how many there are, and what is still going on."""
        many = len(self._choices)
        if self._words:
            seen = "Enter sends your words" if not self._found else "or type what should be different"
        else:
            seen = f"{len(self._found)} of {many}" if self._typed else f"{many} in all"
        return fitted(" · ".join(filter(None, [seen, self.note])), width)

    def _look(self, *, keep: Choice | None) -> None:
        if self._words:  # a word in the middle of a choice may just as well be one of a message
            typed = self._typed.strip().casefold()
            self._found = [one for one in self._choices if one.label.casefold().startswith(typed)]
        elif self._typed.split():
            scored = [(fit(self._typed, f"{one.label} {one.about}"), one) for one in self._choices]
            ranked = sorted(
                ((score, n, one) for n, (score, one) in enumerate(scored) if score is not None), key=_rank
            )
            self._found = [one for _score, _n, one in ranked]
        else:
            self._found = list(self._choices)
        values = [one.value for one in self._found]
        self._place = values.index(keep.value) if keep is not None and keep.value in values else 0


def _rank(scored: tuple[int, int, Choice]) -> tuple[int, int]:
    return scored[0], scored[1]


def fit(typed: str, text: str) -> int | None:
    """Return how well a text fits what was typed, the less the better; None if it does not.

    Each word must be in the text: as it is, or with other characters between its own.
    """
    text = text.casefold()
    total = 0
    for word in typed.casefold().split():
        places = list(_places(word, text))
        begins = next((place for place in places if place == 0 or text[place - 1] in _BREAKS), None)
        if begins is not None:
            total += begins
        elif places:
            total += places[0] + _WITHIN
        else:
            spread = _spread(word, text)
            if spread is None:
                return None
            total += _FAR + spread
    return total


def _places(word: str, text: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _spread(word: str, text: str) -> int | None:
    """Return over how many characters a word is spread in a text; None if it is not in it."""
    first = place = text.find(word[0])
    for char in word[1:]:
        if place < 0:
            return None
        place = text.find(char, place + 1)
    return None if place < 0 else place - first

"""Data with its places: what every format makes of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_runtime.files import limits
from agent_runtime.files.problems import Wrong, line_of
from agent_runtime.files.ways import Places, Way, spell


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a file and where everything in it stands."""

    data: Any
    places: Places

    def locate(self, way: Way) -> int | None:
        """Return where the thing at *way* begins, or the nearest thing around it that has a place."""
        while way and way not in self.places:
            way = way[:-1]
        return self.places.get(way)


class Notes:
    """The places of a document, as they are found; here the limits for depth and number are kept."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: Places = {(): 0}

    def note(self, way: Way, at: int) -> None:
        """Keep where something begins."""
        if len(way) > limits.MAX_DEPTH:
            raise too_deep(at)
        if len(self.places) > limits.MAX_VALUES:
            raise too_many(at)
        self.places[way] = at

    def repeated(self, way: Way, at: int) -> Wrong:
        """Return the problem of a key that its mapping has already."""
        first = line_of(self.text, self.places[way])
        return Wrong(
            at, f"the key {way[-1]!r} stands in line {first} already: remove one of them", spell(way)
        )


def too_deep(at: int) -> Wrong:
    """Return the problem of values that are nested too deep."""
    return Wrong(at, f"is nested deeper than {limits.MAX_DEPTH} levels")


def too_many(at: int) -> Wrong:
    """Return the problem of a file with too many values."""
    return Wrong(at, f"holds more than {limits.MAX_VALUES:,} values: split the file into several")

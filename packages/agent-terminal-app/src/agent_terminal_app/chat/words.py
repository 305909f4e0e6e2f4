"""Small words: one line out of any text, how long ago something was, how many there are of it."""

from __future__ import annotations

import time

from agent_terminal_app.chat import text as shown

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS = ((_MINUTE, 1, "s"), (_HOUR, _MINUTE, "min"), (_DAY, _HOUR, "h"), (14 * _DAY, _DAY, "d"))


def one_line(text: object, most: int | None = None) -> str:
    """Return anything as one line that is safe to show, cut to so many cells of the terminal."""
    line = shown.one_line(str(text))
    return line if most is None else shown.fitted(line, most)


def age(moment: float, now: float | None = None) -> str:
    """Return how long ago something was, or on which day if that is long ago."""
    seconds = max(0.0, (time.time() if now is None else now) - moment)
    for most, size, unit in _UNITS:
        if seconds < most:
            return f"{int(seconds // size)} {unit}"
    from agent_terminal_app.tables import moment as written

    return written(moment).partition(" ")[0]


def count(number: int, thing: str) -> str:
    """Return how many there are of a thing: "1 message", "2 messages"."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"

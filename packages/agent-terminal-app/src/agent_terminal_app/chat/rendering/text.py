"""Text for a screen: made safe, shortened, styled, measured in cells.

Everything that is shown was written by somebody: a model, a tool, a file, another program. None of it may
move the cursor, set the title, fill the clipboard or reverse a line. So text is cleaned where it comes in,
the few styles are ours, and any escape sequence that is left is made visible on its way out
(`only_styles`).

A theme picks the colours of the styles from the terminal's own sixteen, to suit its background.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from agent_core.clean_text import escape
from agent_terminal_app.output import moment as written
from agent_terminal_app.rows import cell, cells, cut_place

if TYPE_CHECKING:
    from collections.abc import Mapping

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_TAB = 4

_USUAL = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "strike": "9",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "code": "36",
    "keyword": "35",
    "heading": "1;34",
}
_CODES = dict(_USUAL)
"""What begins a style; a theme may give some of them other colours."""

clean = escape
"""What the chat shows is cleaned this way: a user sees that something was hidden there."""


def paint(codes: Mapping[str, str]) -> None:
    """Begin some styles with other codes from now on, and all others as usual."""
    _CODES.update({**_USUAL, **codes})


def printed(text: str) -> str:
    """Return what a program printed, safe to show: without its colours, tabs as spaces."""
    return clean(_STYLE.sub("", text)).expandtabs(_TAB)


def one_line(text: object, most: int | None = None) -> str:
    """Return anything as one line that is safe to show, cut to so many cells of the terminal."""
    line = printed(" ".join(str(text).split()))
    return line if most is None else fitted(line, most)


RESET = "\x1b[0m"
"""Ends every style."""


def styled(text: str, *styles: str, color: bool) -> str:
    """Return text in some of the few styles that every terminal has."""
    codes = ";".join(_CODES[style] for style in styles if style)
    return f"\x1b[{codes}m{text}{RESET}" if color and text and codes else text


def style_code(style: str, *, after: str = "") -> str:
    """Return what begins a style within a line, in as few bytes as it takes; an empty one ends all."""
    code = _CODES.get(style, "")
    return f"\x1b[0;{code}m" if code and after else f"\x1b[{code}m"


def unstyled(text: str) -> str:
    """Return text without the styles that `styled` gave it."""
    return _STYLE.sub("", text)


def first_style(text: str) -> str:
    """Return the first style that text was given; empty if there is none."""
    found = _STYLE.search(text)
    return "" if found is None else found[0]


def only_styles(text: str, *, color: bool) -> str:
    """Return a line as it may leave the program: with styles, if they are wanted, and no other escape."""
    if "\x1b" not in text:
        return clean(text)
    pieces = _STYLE.split(text)
    styles = _STYLE.findall(text) if color else [""] * (len(pieces) - 1)
    return "".join(clean(piece) + style for piece, style in zip(pieces, [*styles, ""], strict=True))


def most_cells(text: str) -> int:
    """Return how many cells text may take at most: terminals disagree about joined and varied characters."""
    if text.isascii():
        return len(text)
    apart = sum(map(cell, text)) + text.count("\ufe0f")
    return max(apart, cells(text))


def fitted(text: str, width: int) -> str:
    """Return as much of a text as fits, with a mark if that is not all of it."""
    if most_cells(text) <= width:
        return text
    place = cut_place(text, max(width - 1, 0))
    return f"{text[:place]}…" if width > 0 else ""


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return text filled up with spaces to so many cells; styles in it take none."""
    gap = " " * max(width - cells(unstyled(text)), 0)
    return gap + text if right else text + gap


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS = ((_MINUTE, 1, "s"), (_HOUR, _MINUTE, "min"), (_DAY, _HOUR, "h"), (14 * _DAY, _DAY, "d"))


def age(moment: float, now: float | None = None) -> str:
    """Return how long ago something was, or on which day if that is long ago."""
    seconds = max(0.0, (time.time() if now is None else now) - moment)
    for most, size, unit in _UNITS:
        if seconds < most:
            return f"{int(seconds // size)} {unit}"
    return written(moment).partition(" ")[0]


def count(number: int, thing: str) -> str:
    """Return how many there are of a thing: "1 message", "2 messages"."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


NO_COLOURS = "none"
"""The theme without colours."""

_DARK = {
    "red": "91",
    "green": "92",
    "yellow": "93",
    "code": "96",
    "keyword": "95",
    "heading": "1;94",
}
_LIGHT = {
    "red": "31",
    "green": "32",
    "yellow": "35",
    "code": "34",
    "keyword": "1;35",
    "heading": "1;34",
}
_COLOURS: Mapping[str, Mapping[str, str]] = {"dark": _DARK, "light": _LIGHT}
_DARK_BACKGROUNDS = {"0", "1", "2", "3", "4", "5", "6", "8"}


def use_theme(theme: str) -> None:
    """Show styles in the colours of a theme from now on; "auto" takes what the terminal says of itself."""
    paint(_COLOURS.get(_background() if theme == "auto" else theme, {}))


def _background() -> str:
    """Return what the terminal says of its background, as some do; empty if it says nothing."""
    number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if not number.isdecimal():
        return ""
    return "dark" if number in _DARK_BACKGROUNDS else "light"

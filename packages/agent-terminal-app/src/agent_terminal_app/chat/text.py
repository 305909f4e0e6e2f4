"""Text for a screen: made safe, given a style, measured in cells.

Everything that is shown was written by somebody: a model, a tool, a file, another program. None of it may
move a cursor, set a title, fill a clipboard or turn a line around. So text is cleaned where it comes in,
the few styles are ours, and whatever else is left on its way out is made visible there (`only_styles`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Controls but newline and tab; everything that turns the direction of writing (Unicode TR36); line ends that
# are none to a terminal; characters that nobody sees, such as tags; halves of surrogate pairs.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
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


def paint(codes: Mapping[str, str]) -> None:
    """Begin some styles with other codes from now on, and all others as usual."""
    _CODES.update({**_USUAL, **codes})


def clean(text: str) -> str:
    """Return text with everything visible that would move a cursor, hide, or turn a line around."""
    return _UNSAFE.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"  # noqa: PLR2004 - one byte


def unseen_marked(text: str) -> str:
    """Return text as long as before, with a mark in place of each character that is not seen as it is."""
    return _UNSAFE.sub("\ufffd", text)


def printed(text: str) -> str:
    """Return what a program printed, safe to show: without its colours, tabs as spaces."""
    return clean(_STYLE.sub("", text)).expandtabs(_TAB)


def one_line(text: str) -> str:
    """Return a text of any length as one line that is safe to show."""
    return printed(" ".join(text.split()))


def styled(text: str, *styles: str, color: bool) -> str:
    """Return text in some of the few styles that every terminal has."""
    codes = ";".join(_CODES[style] for style in styles if style)
    return f"\x1b[{codes}m{text}\x1b[0m" if color and text and codes else text


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


def cells(text: str) -> int:
    """Return how many cells of a terminal text takes that has no controls in it."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)


@lru_cache(maxsize=4096)
def cell(char: str) -> int:
    """Return how many cells one character takes by itself."""
    from wcwidth import wcwidth

    return max(wcwidth(char), 0)


def is_wider(text: str, width: int) -> bool:
    """Say whether text takes more cells than there are, without measuring all of a long one."""
    return cells(text[: 4 * max(width, 0) + 40]) > width


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


def cut_place(text: str, width: int) -> int:
    """Return how many characters of a text fit into so many cells."""
    if text.isascii():
        return min(len(text), width)
    used = 0
    for place, char in enumerate(text):
        used += cell(char)
        if used > width:
            return place
    return len(text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return text filled up with spaces to so many cells; styles in it take none."""
    gap = " " * max(width - cells(unstyled(text)), 0)
    return gap + text if right else text + gap

"""Lines of any length in rows of a width: cut between words, and what goes on is set off.

What commands say has no marks in it that mean something: a pattern such as `rm *` is shown as it is. A word
that is wider than a row stays whole, so that an address or a path can be copied.
"""

from __future__ import annotations

from agent_terminal_app.chat.inline import may_break
from agent_terminal_app.chat.text import cells, cut_place, is_wider

_INDENT = 6
"""How far what does not fit beside something else is set off below it."""

_NARROWEST = 28
"""How many cells a text needs to be read beside something else."""


def in_rows(line: str, width: int | None, hang: int | None = None) -> list[str]:
    """Return a line in rows.

    Args:
        width: How many cells there are; None if that does not matter.
        hang: How far all rows but the first are set off; by default a little further than the line itself.
    """
    if width is None or not is_wider(line, width):
        return [line]
    indent = len(line) - len(line.lstrip(" "))
    front = " " * min(indent + 2 * bool(indent) if hang is None else hang, width // 2)
    first, rest = _cut(line, width)
    rows = [first]
    while rest:
        row, rest = _cut(rest, width - len(front))
        rows.append(front + row)
    return rows


def beside(front: str, about: str, width: int | None) -> list[str]:
    """Return what stands in front, and a text beside it in its own column; below it if that is too narrow.

    Args:
        front: The columns before the last one, filled up.
    """
    whole = f"{front} {about}".rstrip()
    if width is None or not is_wider(whole, width):
        return [whole]
    place = cells(front) + 1
    if width - place < min(_NARROWEST, cells(about)):
        return [*in_rows(front.rstrip(), width, _INDENT), *in_rows(" " * _INDENT + about, width, _INDENT)]
    first, *more = in_rows(about, width - place)
    return [f"{front} {first}", *(" " * place + row for row in more)]


def _cut(text: str, width: int) -> tuple[str, str]:
    """Return the first row of a text, and the rest, if there is one."""
    if not is_wider(text, width):
        return text, ""
    fits = cut_place(text, width)
    places = (place for place in range(min(fits, len(text) - 1), 0, -1) if may_break(text, place))
    place = next((one for one in places if text[:one].strip()), None)
    if place is None:
        later = (one for one in range(fits + 1, len(text)) if may_break(text, one))
        place = next((one for one in later if text[:one].strip()), len(text))
    return text[:place].rstrip(" "), text[place:].lstrip(" ")

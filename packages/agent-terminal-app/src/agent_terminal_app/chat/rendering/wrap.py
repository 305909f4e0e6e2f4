"""Lines: the inline marks of Markdown in them, and how they are wrapped to a width.

Text inside code is literal. A link is shown with its address, so that its label cannot mislead. Without
colours the marks stay visible, because they take the place of the styles. A row ends between two words,
and never inside a mark unless it must. A word that is wider than a row stays whole, so that an address or
a path can be copied.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agent_terminal_app.chat.rendering.text import RESET, first_style, styled, unstyled
from agent_terminal_app.rows import cut_place, in_rows, is_wider, may_break

_LONGEST = 4000
"""Longer lines are not prose, and searching them for marks would be slow."""

_MARK = re.compile(
    r"(?P<ticks>`{1,3})(?!`)(?P<code>[^`]+)(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\[\]]*)\]\(<?(?P<address>[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)>?(?:\s+\"[^\"]*\")?\)"
    r"|<(?P<bare>(?:https?://|mailto:)[^\s<>]+)>"
    r"|\*\*(?P<bold>[^\s*](?:[^*]*[^\s*])?)\*\*|(?<!\w)__(?P<bold2>[^\s_](?:[^_]*[^\s_])?)__(?!\w)"
    r"|~~(?P<strike>[^\s~](?:[^~]*[^\s~])?)~~"
    r"|(?<![*\w])\*(?P<italic>[^*\s](?:[^*]*[^*\s])?)\*(?![*\w])"
    r"|(?<![_\w])_(?P<italic2>[^_\s](?:[^_]*[^_\s])?)_(?![_\w])"
)
_STYLES = {"bold": "bold", "bold2": "bold", "strike": "strike", "italic": "italic", "italic2": "italic"}
_OPEN = re.compile(r"`+|\*\*|\[")
_PATIENCE = 4
"""For how many rows an open mark is expected to be closed."""


class Span(NamedTuple):
    """A piece of a line and the styles that it is shown in."""

    text: str
    styles: tuple[str, ...] = ()


def spans(line: str, base: tuple[str, ...] = ()) -> list[Span]:
    """Return the pieces of a line without their marks."""
    if len(line) > _LONGEST:
        return [Span(line, base)]
    pieces, end = [], 0
    for found in _MARK.finditer(line):
        pieces += [Span(line[end : found.start()], base), *_marked(found, base)]
        end = found.end()
    return [piece for piece in (*pieces, Span(line[end:], base)) if piece.text]


def _marked(found: re.Match[str], base: tuple[str, ...]) -> list[Span]:
    kind = found.lastgroup or ""
    if found["code"] is not None:
        return [Span(found["code"], (*base, "code"))]
    if found["bare"] is not None:
        return [Span(found["bare"], (*base, "underline"))]
    if found["address"] is not None:
        return _link(found["label"], found["address"], base)
    return spans(found[kind], (*base, _STYLES[kind]))


def _link(label: str, address: str, base: tuple[str, ...]) -> list[Span]:
    shown = Span(address, (*base, "underline"))
    if not label or label in (address, address.partition("://")[2].rstrip("/")):
        return [shown]
    return [*spans(label, base), Span(" (", base), shown, Span(")", base)] if address else spans(label, base)


def show(line: str, *base: str, color: bool) -> str:
    """Return a line with its marks turned into styles; without colours as it is."""
    if not color:
        return line
    return "".join(styled(span.text, *span.styles, color=True) for span in spans(line, base))


def seen(line: str, *, color: bool) -> str:
    """Return what the user reads of a line: the text without marks, if styles take their place."""
    return "".join(span.text for span in spans(line)) if color else line


def wrapped(line: str, width: int | None) -> list[str]:
    """Return a line in rows, each with its own marks; a word that is wider than a row stays whole."""
    rows: list[str] = []
    while width is not None and is_wider(line, width) and (parts := cut_line(line, width)) is not None:
        rows.append(parts[0])
        line = parts[1]
    return [*rows, line]


def cut_line(line: str, width: int, *, finished: bool = True) -> tuple[str, str] | None:
    """Return the first row of a line that is too wide, and the rest; None if it can be cut nowhere.

    The row ends between two words, outside marks if possible. Inside a mark, the mark is closed for the row
    and opened again for the rest. If nothing fits, the row is as wide as it must be.

    Args:
        finished: False if more of the line may come; a mark that is open may then still be closed.
    """
    near = line[: 4 * max(width, 1) + 200]
    marks = [found.span() for found in _MARK.finditer(near)]
    if not finished:
        marks.append((_opening(near, marks, width), len(near)))
    fits = cut_place(near, width)
    fitting = [place for place in range(1, min(fits + 1, len(near))) if may_break(near, place)]
    for place in reversed(fitting):
        if _is_outside(place, marks):
            return _parts(line, place)
    for place in reversed(fitting):
        if mark := _split_mark(near, place):
            row, rest = _parts(line, place)
            return row + mark, mark + rest
    later = (place for place in range(fits + 1, len(near)) if may_break(near, place))
    first = next((place for place in later if _is_outside(place, marks)), None)
    return None if first is None else _parts(line, first)


def _is_outside(place: int, marks: list[tuple[int, int]]) -> bool:
    return not any(start < place < end for start, end in marks)


def _parts(line: str, place: int) -> tuple[str, str]:
    return line[:place].rstrip(" "), line[place:].lstrip(" ")


def _split_mark(line: str, place: int) -> str:
    """Return the mark around a place, if what it marks can be marked in two pieces."""
    found = next((one for one in _MARK.finditer(line) if one.start() < place < one.end()), None)
    if found is None or found["address"] is not None or found["bare"] is not None:
        return ""
    mark = found["ticks"] or found[0][: 2 if found[0][:2] in ("**", "__", "~~") else 1]
    inside = found.start() + len(mark) < place < found.end() - len(mark)
    return mark if inside else ""


def _opening(line: str, marks: list[tuple[int, int]], width: int) -> int:
    """Return where a mark begins that is not closed; one that has been open for long is none."""
    starts = (found.start() for found in _OPEN.finditer(line))
    first = next((one for one in starts if not any(begin <= one < end for begin, end in marks)), len(line))
    return first if len(line) - first <= _PATIENCE * width else len(line)


def rows_of(line: str, width: int | None) -> list[str]:
    """Return a line that has one style, or none, in rows that have it as well.

    Rows after the first are set off further, so that none looks like a line of its own.
    """
    plain = unstyled(line)
    if width is None or not is_wider(plain, width):
        return [line]
    style = first_style(line)
    hang = len(plain) - len(plain.lstrip(" ")) + 4
    rows = in_rows(plain, width, hang)
    return [f"{style}{row}{RESET}" for row in rows] if style else rows

"""`edit_file`: one text in place of another, and nothing else touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from files_tool.errors import Refused
from files_tool.nearest import nearest_lines
from files_tool.texts import PlainLines

if TYPE_CHECKING:
    from files_tool.texts import Text

_NAMED = 10


def replace(text: Text, old: str, new: str, *, everywhere: bool, name: str) -> str:
    """Return a text with *old* replaced; line ends are compared as newlines and written as the file has them.

    Raises:
        Refused: If *old* is not there, or several times without *everywhere*.
    """
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        raise Refused("old is empty: give the text to replace, or write the whole file with write_file")
    if old == new:
        raise Refused("old and new are the same: there is nothing to change")
    plain = PlainLines(text.text)
    places = _places(plain.text, old)
    if not places:
        raise Refused(f"{name} does not have that text{nearest_lines(plain.text, old)}")
    if len(places) > 1 and not everywhere:
        raise Refused(_ambiguous(plain.text, places, name))
    return _spliced(text, plain, places, len(old), new.replace("\n", text.line_end))


def _places(text: str, old: str) -> list[int]:
    places, at = [], text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + len(old))
    return places


def _spliced(text: Text, plain: PlainLines, places: list[int], length: int, new: str) -> str:
    pieces, done = [], 0
    for at in places:
        pieces += [text.text[done : plain.original_place(at)], new]
        done = plain.original_place(at + length)
    return "".join([*pieces, text.text[done:]])


def _ambiguous(text: str, places: list[int], name: str) -> str:
    lines, counted, at_line = [], 0, 1
    for at in places[:_NAMED]:
        at_line += text.count("\n", counted, at)
        counted = at
        lines.append(str(at_line))
    more = ", …" if len(places) > _NAMED else ""
    return (
        f"{name} has that text {len(places)} times, at lines {', '.join(lines)}{more}: give more of the "
        "lines around it, or set all to replace every one"
    )

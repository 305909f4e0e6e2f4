"""Markdown as it arrives: a line is shown when it is finished, and never shown again.

A line is finished when the text says so, or when it has become as wide as the terminal. Each is rendered
by itself; only a code block is remembered from line to line. So what is written to the terminal is about
as long as the text, nothing flickers, and what was shown can be scrolled and copied.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^\s*(```+|~~~+)")
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_BULLET = re.compile(r"^(\s*)[-*+]\s+")
_QUOTE = re.compile(r"^>\s?")
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*|__([^_]+)__")
_ITALIC = re.compile(r"(?<![*\w])\*([^*\s][^*]*)\*(?![*\w])|(?<![_\w])_([^_\s][^_]*)_(?![_\w])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_STYLES = {
    "bold": "1",
    "italic": "3",
    "code": "36",
    "heading": "1;34",
    "dim": "2",
    "red": "31",
    "green": "32",
}


def clean(text: str) -> str:
    """Return text with everything visible that would move a cursor, or turn a line around."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def styled(text: str, style: str, *, color: bool) -> str:
    """Return text in one of the few styles that every terminal has."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and text else text


class LineMarkdown:
    """Takes pieces of Markdown and gives finished lines back."""

    def __init__(self, *, color: bool, width: int | None = None) -> None:
        self._color = color
        self._width = width
        self._open = ""
        self._fence = ""

    def feed(self, piece: str) -> list[str]:
        """Take a piece and return the lines that it finishes."""
        *lines, rest = (self._open + piece).split("\n")
        shown = [part for line in lines for part in self._wrapped(line)]
        *full, self._open = self._parts(rest)
        return [*shown, *(self._line(part) for part in full)]

    def _wrapped(self, line: str) -> list[str]:
        return [self._line(part) for part in self._parts(line)]

    def _parts(self, line: str) -> list[str]:
        """Cut a line of prose where it would leave the terminal, between words; code is left as it is."""
        parts = []
        while self._width is not None and len(line) > self._width and not self._is_code(line):
            place = _break(line, self._width)
            if place <= 0:
                break
            parts.append(line[:place])
            line = line[place:].lstrip(" ")
        return [*parts, line]

    def _is_code(self, line: str) -> bool:
        return bool(self._fence) or _FENCE.match(line) is not None

    def end(self) -> list[str]:
        """Return what was begun and will not be finished."""
        (
            rest,
            self._open,
        ) = self._open, ""
        lines = [self._line(rest)] if rest else []
        self._fence = ""
        return lines

    def _line(self, line: str) -> str:
        """Return a finished line as it is shown."""
        line = clean(line.rstrip("\r"))
        fence = _FENCE.match(line)
        if self._fence:
            if fence is not None and fence[1].startswith(self._fence):
                self._fence = ""
                return self._styled(line, "dim")
            return self._styled(line, "code")
        if fence is not None:
            self._fence = fence[1]
            return self._styled(line, "dim")
        return self._prose(line)

    def _prose(self, line: str) -> str:
        heading = _HEADING.match(line)
        if heading is not None:
            return self._styled(heading[2], "heading")
        if _QUOTE.match(line):
            return self._styled(_QUOTE.sub("│ ", line), "dim")
        line = _BULLET.sub(lambda found: f"{found[1]}• ", line)
        if not self._color:
            return line
        parts = _CODE.split(line)  # what stands in code means itself
        shown = [self._styled(part, "code") if n % 2 else self._inline(part) for n, part in enumerate(parts)]
        return "".join(shown)

    def _inline(self, text: str) -> str:
        text = _BOLD.sub(lambda found: self._styled(found[1] or found[2], "bold"), text)
        return _ITALIC.sub(lambda found: self._styled(found[1] or found[2], "italic"), text)

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style, color=self._color)


def _break(line: str, width: int) -> int:
    """Return where to cut: the last space that fits, or else the first one after; 0 if there is none.

    Inside of code and of emphasis no line is cut.
    """
    fitting, later = 0, 0
    for place in (found.start() for found in re.finditer(" ", line)):
        if place and not line.count("`", 0, place) % 2 and not line.count("**", 0, place) % 2:
            if place > width:
                later = place
                break
            fitting = place
    return fitting or later

"""Blocks of text, written one after the other: paragraphs, headings, list items, quotes, code.

What is being written stands in `_inline` until its block ends. In a table's cell blocks do not end; there
only a gap is left between them, and the cell's text is taken as a whole.
"""

from __future__ import annotations

import re
from typing import Final

GAP: Final = "\n\n"
_DEEPEST: Final = 8  # indentation is for readers; without an end it would only fill the page
_SPACE = re.compile(r"[ \t\n\r\f\xa0]+")
_SPACES = re.compile(" {2,}")
_GAPS = re.compile(r"\n{3,}")
_TICKS = re.compile("`+")


class Writer:
    """Text in the making."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._out_size = 0
        self._seen_size = 0
        self._inline: list[str] = []
        self._prefix = ""
        self._lists: list[int | None] = []
        self._quotes = 0
        self._after_item = False
        self._in_cell = False
        self._code: list[str] | None = None
        self._language = ""
        self._link: tuple[str, int] | None = None
        self._ticks_at: int | None = None

    @property
    def size(self) -> int:
        """How many characters there will be at least."""
        return max(self._out_size, self._seen_size)

    def text(self) -> str:
        """Return everything, with what is still open brought to an end."""
        self.end_code()
        if self._in_cell:
            self.write_block(self.end_cell())
        self.end_block()
        return "".join(self._out)

    def write(self, text: str) -> None:
        """Write text as it stands in a page: outside of code any white space is one space."""
        if self._code is not None:
            self._code.append(text)
            self._seen_size += _solid(text)
        else:
            self.write_inline(_SPACE.sub(" ", text))

    def write_inline(self, text: str) -> None:
        """Write something into the line."""
        if self._code is None and text:
            self._inline.append(text)
            self._seen_size += _solid(text)

    def break_line(self) -> None:
        """Go to the next line within the block."""
        if self._code is None:
            self.write_inline("\n")
        else:
            self._code.append("\n")

    # Blocks

    def begin_block(self, prefix: str) -> None:
        """Begin a block whose first line begins with *prefix*."""
        self.end_block()
        if self._in_cell:
            self.write_inline(prefix)
        else:
            self._prefix = prefix

    def end_block(self) -> None:
        """End the block; what was begun stays begun if nothing was written."""
        if self._code is not None:
            return
        waiting = self._end_link_with_words()
        self._ticks_at = None
        if self._in_cell:
            self.write_inline(GAP)
        elif body := self._taken():
            self.write_block(body)
        if waiting is not None:
            self._link = (waiting, len(self._inline))

    def finish_block(self) -> None:
        """End a heading or an item: what comes next is none, even if this one was empty."""
        self.end_block()
        if self._code is None:
            self._prefix = ""

    def write_rule(self) -> None:
        """Draw a line across."""
        self.end_block()
        self.write_block("---")

    def write_block(self, body: str) -> None:
        """Write a whole block, as deep in quotes and lists as we are."""
        if self._in_cell or self._code is not None or not body:
            return
        level = min(len(self._lists), _DEEPEST)
        margin = "> " * min(self._quotes, _DEEPEST)
        is_item = level > 0 and self._prefix != ""
        first = margin + "  " * (level - 1 if is_item else level) + self._prefix
        other = margin + "  " * level
        lines = body.split("\n")
        written = "\n".join([first + lines[0], *(f"{other}{line}".rstrip() for line in lines[1:])])
        gap = ("\n" if is_item and self._after_item else GAP) if self._out else ""
        self._out.append(gap + written)
        self._out_size += len(gap) + len(written)
        self._prefix = ""
        self._after_item = level > 0

    # Lists and quotes

    def begin_list(self, *, numbered: bool) -> None:
        """Begin a list."""
        self.end_block()
        self._lists.append(0 if numbered else None)

    def end_list(self) -> None:
        """End the innermost list."""
        self.finish_block()
        if self._lists and self._code is None:
            self._lists.pop()
            self._after_item = bool(self._lists)

    def begin_item(self) -> None:
        """Begin an item of the innermost list."""
        count = self._lists[-1] if self._lists else None
        if count is not None:
            self._lists[-1] = count + 1
        self.begin_block("- " if count is None else f"{count + 1}. ")

    def begin_quote(self) -> None:
        """Begin a quotation."""
        self.end_block()
        self._quotes += 1

    def end_quote(self) -> None:
        """End the innermost quotation."""
        self.end_block()
        self._quotes = max(0, self._quotes - 1)

    # Links and code

    def begin_link(self, address: str | None) -> None:
        """Begin a link; without an address its text is text like any other."""
        self.end_link()
        if address is not None and self._code is None and self._ticks_at is None:
            self._link = (address, len(self._inline))

    def end_link(self) -> None:
        """End the link, if there is one."""
        if self._link is None:
            return
        (address, start), self._link = self._link, None
        label = "".join(self._inline[start:])
        linked = _linked(label, address)
        self._inline[start:] = [linked]
        self._seen_size += _solid(linked) - _solid(label)

    def _end_link_with_words(self) -> str | None:
        """End the link, or return its address if the words are still to come, as in a link around a block."""
        if self._link is None or "".join(self._inline[self._link[1] :]).strip():
            self.end_link()
            return None
        return self._link[0]

    def begin_ticks(self) -> None:
        """Begin code within a line."""
        if self._code is None and self._ticks_at is None:
            self._ticks_at = len(self._inline)

    def end_ticks(self) -> None:
        """End code within a line."""
        start, self._ticks_at = self._ticks_at, None
        if start is not None and start < len(self._inline):
            self._inline[start:] = [_ticked("".join(self._inline[start:]))]

    def begin_code(self, language: str) -> None:
        """Begin a block of code, in which everything stays as it is."""
        if self._code is None:
            self.end_block()
            self._code, self._language = [], language

    def end_code(self) -> None:
        """End the block of code, if there is one."""
        if self._code is None:
            return
        code, self._code = "".join(self._code).strip("\n"), None
        longest = max(map(len, _TICKS.findall(code)), default=0)
        fence = "`" * max(3, longest + 1)
        if code.strip():
            self.write_block(f"{fence}{self._language}\n{code}\n{fence}")

    # Cells of tables

    def begin_cell(self) -> None:
        """From now on write into a cell."""
        self.end_block()
        self._in_cell = True

    def end_cell(self) -> str:
        """Return what the cell holds, and write blocks again."""
        self.end_link()
        self._ticks_at = None
        self._in_cell = False
        return self._taken()

    def _taken(self) -> str:
        if not self._inline:
            return ""
        lines = "".join(self._inline).split("\n")
        self._inline.clear()
        return _GAPS.sub(GAP, "\n".join(_SPACES.sub(" ", line).strip() for line in lines)).strip("\n")


def _solid(text: str) -> int:
    """Return how much of *text* will be seen whatever becomes of the space in it."""
    return len("".join(text.split()))


def _linked(label: str, address: str) -> str:
    """Return a link; the white space around its words is not part of it."""
    words = " ".join(label.split())
    if not words:
        return label
    linked = address if words == address else f"[{words}]({address})"
    return f"{' ' * label[0].isspace()}{linked}{' ' * label[-1].isspace()}"


def _ticked(label: str) -> str:
    """Return code within a line, between more backticks than it has in a row."""
    if not label.strip() or "\n" in label:
        return label
    fence = "`" * (max(map(len, _TICKS.findall(label)), default=0) + 1)
    inner = f" {label} " if label.startswith("`") or label.endswith("`") else label
    return f"{fence}{inner}{fence}"

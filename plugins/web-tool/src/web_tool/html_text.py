"""HTML as text that a model can read: headings, paragraphs, lists, links, code and tables.

Pages come from strangers. A tree of one can be made to grow without measure (a formatting element that is
never closed is opened anew in every paragraph), so there is none: the parser calls `_Reader` with one tag
after the other, and what is read is written down at once. Time and memory grow with the length of the page,
and reading stops when there is enough.

It is written by hand although libraries turn HTML into text: compared with them it takes half the time, and
it keeps the bounds above.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_core.clean_text import clean
from web_tool.blocks import GAP, Writer
from web_tool.urls import UrlRefusedError, join_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from web_tool.urls import Url


_LONGEST_CELL: Final = 400
"""A longer cell, or one with several long paragraphs, is not a piece of data."""


def clean_text(text: str) -> str:
    """Return *text* with what can be seen of it."""
    return clean(text.replace("\r\n", "\n").replace("\r", "\n"))


class Table:
    """The cells of a table, row by row."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._has_heading = False

    def begin_row(self) -> None:
        """Begin another row."""
        self._rows.append([])

    def add_cell(self, text: str, *, is_heading: bool) -> None:
        """Add a cell to the row."""
        if not self._rows:
            self.begin_row()
        if is_heading and len(self._rows) == 1:
            self._has_heading = True
        self._rows[-1].append(text)

    def blocks(self) -> list[str]:
        """Return the table as blocks of text: one for data, one for each cell of a mere arrangement."""
        rows = [row for row in self._rows if any(row)]
        if self._only_arranges(rows):
            return [block for row in rows for cell in row for block in cell.split(GAP) if block]
        lines = [f"| {' | '.join(map(_one_line, row))} |" for row in rows]
        if self._has_heading and lines:
            lines.insert(1, f"|{' --- |' * len(rows[0])}")
        return ["\n".join(lines)] if lines else []

    @staticmethod
    def _only_arranges(rows: list[list[str]]) -> bool:
        widest = max(map(len, rows), default=0)
        return widest <= 1 or any(len(cell) > _LONGEST_CELL for row in rows for cell in row)


def _one_line(cell: str) -> str:
    return " ".join(cell.split()).replace("|", "\\|")


_PIECE = 64 * 1024
_MAX_TITLE = 300
_MOST_TAGS = 250_000
"""A page with more tags is not written for readers, and a page of tags alone would take long to read."""

_DROPPED = frozenset(
    {
        "head",
        "title",
        "script",
        "style",
        "template",
        "noscript",
        "iframe",
        "frame",
        "object",
        "embed",
        "applet",
    }
    | {"svg", "math", "canvas", "audio", "video", "map", "nav", "dialog", "button", "select", "datalist"}
    | {"input", "textarea", "progress", "meter"}
)
_BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "body",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
    }
    | {"figcaption", "footer", "form", "header", "html", "legend", "main", "p", "section", "summary"}
    | {"td", "th", "tr"}
)
_LISTS = ("ul", "ol", "menu")
_TICKED = ("code", "kbd", "samp", "tt")
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([\w+#-]{1,30})", re.ASCII)


class PageText(NamedTuple):
    """A page as text.

    Attributes:
        is_whole: False if reading stopped before the end.
    """

    title: str
    text: str
    is_whole: bool


def read_html(html: str, url: Url, enough: int) -> PageText:
    """Return a page as text.

    Args:
        html: The page.
        url: Where it is from; links are written as seen from there.
        enough: More than so many characters are not wanted; reading may stop behind them.
    """
    from lxml import etree  # type: ignore[import-untyped]  # it ships no types

    reader = _Reader(url, enough)
    parser = etree.HTMLParser(target=reader, encoding="utf-8")
    data = html.encode("utf-8", "replace")
    for start in range(0, max(1, len(data)), _PIECE):
        parser.feed(data[start : start + _PIECE])
        if reader.has_enough:
            break
    else:
        parser.close()
    return PageText(" ".join(reader.title.split())[:_MAX_TITLE], reader.text(), not reader.has_enough)


class _Reader:
    """What the parser calls, tag by tag; every tag that begins also ends."""

    def __init__(self, url: Url, enough: int) -> None:
        self._base = url
        self._is_rebased = False
        self._enough = enough
        self._writer = Writer()
        self._depth = 0
        self._tags = 0
        self._dropped: tuple[str, int] | None = None  # the tag that is left out with all that it holds
        self._table: Table | None = None
        self._in_title = False
        self.title = ""

    @property
    def has_enough(self) -> bool:
        """True if more would not be looked at."""
        return self._writer.size > self._enough or self._tags > _MOST_TAGS

    def text(self) -> str:
        """Return what was read."""
        self._end_table()
        return self._writer.text()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """A tag begins."""
        self._depth += 1
        self._tags += 1
        if tag == "title" and not self.title:
            self._in_title = self._dropped is None or self._dropped[0] == "head"
        elif tag == "base" and not self._is_rebased:  # the first one counts
            self._base, self._is_rebased = self._join(attributes.get("href", "")) or self._base, True
        if self._dropped is not None:
            return
        if tag in _DROPPED or _is_unseen(attributes):
            self._dropped = (tag, self._depth)
        elif not self.has_enough:
            self._begin(tag, attributes)

    def end(self, tag: str) -> None:
        """A tag ends."""
        if tag == "title":
            self._in_title = False
        if self._dropped is None:
            self._finish(tag)
        elif self._dropped[1] == self._depth:
            self._dropped = None
        self._depth -= 1

    def data(self, text: str) -> None:
        """Text between tags."""
        text = clean_text(text)  # here, since what is not seen must not count as read
        if self._in_title and len(self.title) < _MAX_TITLE:
            self.title += text[:_MAX_TITLE]
        elif self._dropped is None and not self.has_enough:
            self._writer.write(text)

    def comment(self, text: str) -> None:
        """A comment, which is not for readers."""

    def close(self) -> None:
        """The page ends."""

    def _begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        writer = self._writer
        if tag in _HEADINGS:
            writer.begin_block(_HEADINGS[tag])
        elif tag == "a":
            writer.begin_link(self._link(attributes.get("href")))
        elif tag == "img":
            self._write_picture(attributes)
        elif tag in _TICKED:
            writer.begin_ticks()
        elif tag == "br":
            writer.break_line()
        elif tag in ("td", "th") and self._table is not None:
            writer.begin_cell()
        else:
            self._begin_group(tag, attributes)

    def _begin_group(self, tag: str, attributes: Mapping[str, str]) -> None:
        writer = self._writer
        if tag in _LISTS:
            writer.begin_list(numbered=tag == "ol")
        elif tag == "li":
            writer.begin_item()
        elif tag == "blockquote":
            writer.begin_quote()
        elif tag == "pre":
            self._end_table()  # a table with blocks of code in it is not a table of data
            found = _LANGUAGE.search(attributes.get("class", ""))
            writer.begin_code(found[1] if found else "")
        elif tag == "hr":
            writer.write_rule()
        elif tag == "table":
            self._end_table()  # and neither is one with tables in it
            writer.end_block()
            self._table = Table()
        elif tag == "tr" and self._table is not None:
            self._table.begin_row()
        elif tag in _BLOCKS:
            writer.end_block()

    def _finish(self, tag: str) -> None:
        writer = self._writer
        if tag == "a":
            writer.end_link()
        elif tag in _TICKED:
            writer.end_ticks()
        elif tag in ("td", "th") and self._table is not None:
            self._table.add_cell(writer.end_cell(), is_heading=tag == "th")
        elif tag in _LISTS:
            writer.end_list()
        elif tag == "blockquote":
            writer.end_quote()
        elif tag == "pre":
            writer.end_code()
        elif tag == "table":
            self._end_table()
        elif tag in _HEADINGS or tag == "li":
            writer.finish_block()
        elif tag in _BLOCKS:
            writer.end_block()

    def _end_table(self) -> None:
        """Write the table, as far as it has come, and what was being written into one of its cells."""
        table, self._table = self._table, None
        if table is None:
            return
        begun = self._writer.end_cell()
        for block in [*table.blocks(), begun]:
            self._writer.write_block(block)

    def _write_picture(self, attributes: Mapping[str, str]) -> None:
        words = " ".join(clean_text(attributes.get("alt", "")).split())[:_MAX_TITLE]
        address = self._link(attributes.get("src"))
        if words:
            self._writer.write_inline(f"[image: {words}]" + (f"({address})" if address else ""))

    def _link(self, reference: str | None) -> str | None:
        """Return where a link leads, if that is another page of the web."""
        if not reference or reference.startswith("#"):
            return None
        url = self._join(reference.strip())
        return None if url is None else str(url).replace("(", "%28").replace(")", "%29")

    def _join(self, reference: str) -> Url | None:
        try:
            return join_url(self._base, reference)
        except UrlRefusedError:
            return None


def _is_unseen(attributes: Mapping[str, str]) -> bool:
    """Say whether a reader of the page does not see this, or only to find another page."""
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") == "navigation"
        or _UNSEEN.search(attributes.get("style", "")) is not None
    )

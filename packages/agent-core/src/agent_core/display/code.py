r"""Where a markdown text is code beyond doubt.

Inside code a `<` is only a `<` and must be shown as it is; anywhere else it may begin a tag. Telling
the two apart exactly takes a full parser, and then every front end's parser would have to agree
with ours. We ask for less: which stretches are code under *every* reading of CommonMark and GFM?
Code that this module misses is shown with an escape too many; text that it takes for code by mistake
would be a hole. So each doubt is settled the same way: not code.

What is certain:

* A fence indented by at most three spaces opens, whatever stands around it (CommonMark 4.5). What
  follows is code up to the closing fence, as long as no line has less indentation: such a line would
  end a list item, and a fence in it.
* Backticks that pair up within one line. An unpaired run may pair with one further down and shift
  everything after it, so from there to the next blank line no span is certain.

Two things blur the view of fences. A fence in a list or a quote, or indented further, is *murky*: it
ends at the latest with the next line that begins at the margin. Where a fence may have been opened
or closed at the top level and we cannot tell, all later fences are *lost*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Region = tuple[int, int]

_FENCE = re.compile(r"([ \t]*+(?:(?:>|[-+*]|[0-9]{1,9}[.)])[ \t]*+)*+)(`{3,}+|~{3,}+)(.*+)")
_LABEL_END = re.compile(r"(?:[^\[\]\\]|\\.)*+\]:", re.DOTALL)  # of a definition begun before the code
_BRACKET = re.compile(r"\\\[|[\[\]]")
_RUN = re.compile("`++")
_BLANK = " \t"
_TABLE_RULE = " \t>|:-+*.)0123456789"  # a delimiter row has nothing else, even inside a list or a quote


class _View(Enum):
    CLEAR = "no fence is open"
    MURKY = "a fence may be open in a list or a quote"
    LOST = "a fence may be open at the top level"


@dataclass(frozen=True, slots=True)
class _Fence:
    lead: str
    run: str
    info: str

    @property
    def at_top(self) -> bool:
        return self.lead in ("", " ", "  ", "   ")

    @property
    def may_head_table(self) -> bool:
        return "|" in self.info  # some readers look for tables before fences


def code_regions(text: str) -> Iterator[Region]:
    """Yield the stretches of *text* that are certainly code, in order."""
    lines = text.split("\n")
    starts = _starts(lines)
    spans = _Spans(tables=any(map(_is_table_rule, lines)))
    view, index = _View.CLEAR, 0
    while index < len(lines):
        view, end = _look(lines, index, view)
        if end > index:
            yield starts[index], starts[end] - 1
            spans.start_afresh()
            index = end
        else:
            yield from spans.read(lines[index], starts[index])
            index += 1


def _starts(lines: list[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _look(lines: list[str], index: int, view: _View) -> tuple[_View, int]:
    """Return how clear the view is at a line, and where the fence that it opens ends, else *index*."""
    line = lines[index]
    if view is _View.MURKY and line and line[0] not in " \t>":
        view = _View.CLEAR
    fence = _opening(line)
    if fence is None or view is _View.LOST:
        return view, index
    if not fence.at_top:
        return _View.MURKY, index
    end = None if view is _View.MURKY or fence.may_head_table else _closing(lines, index, fence)
    if end is None or _LABEL_END.match("\n".join(lines[index:end])):
        return _View.LOST, index
    return view, end


def _opening(line: str) -> _Fence | None:
    match = _FENCE.match(line)
    if match is None or (match[2][0] == "`" and "`" in match[3]):
        return None
    return _Fence(match[1], match[2], match[3])


def _closing(lines: list[str], index: int, fence: _Fence) -> int | None:
    """Return the line after the fenced block, or None where readers could disagree."""
    for number in range(index + 1, len(lines)):
        content = lines[number].lstrip(_BLANK)
        if content.startswith(fence.run):
            alone = not content.rstrip(" ").strip(fence.run[0])
            return number + 1 if alone and lines[number] == fence.lead + content else None
        if content and not lines[number].expandtabs(4).startswith(fence.lead):
            return None
    return len(lines)


def _is_table_rule(line: str) -> bool:
    return "|" in line and "-" in line and not line.strip(_TABLE_RULE)


class _Spans:
    """Reads code spans line by line, remembering whether an earlier line left a run open."""

    def __init__(self, *, tables: bool) -> None:
        self._tables = tables
        self._open = False

    def start_afresh(self) -> None:
        """A block has ended, and with it every run of backticks that was open."""
        self._open = False

    def read(self, line: str, start: int) -> Iterator[Region]:
        if not line.strip(_BLANK):
            self.start_afresh()
        if self._open or "`" not in line:
            return
        spans = _paired(line)
        if spans is None or any(self._doubtful(line[first:last]) for first, last in spans):
            self._open = True
            return
        for first, last in spans:
            yield start + first, start + last

    def _doubtful(self, code: str) -> bool:
        """Whether a cell, a link or a definition that began before a span may end in it."""
        if self._tables and "|" in code:
            return True
        if "](" in code and code.count("`") > len("``"):
            return True  # marked knows only plain `code` in the text of a link
        return _closes_bracket(code)


def _closes_bracket(code: str) -> bool:
    depth = 0
    for match in _BRACKET.finditer(code):
        depth += {"[": 1, "]": -1}.get(match[0], 0)
        if depth < 0:
            return True
    return False


def _paired(line: str) -> list[Region] | None:
    """Return the code spans of a line, or None if its backticks do not pair up on their own."""
    if "\\`" in line:
        return None
    runs = [match.span() for match in _RUN.finditer(line)]
    spans: list[Region] = []
    index = end = 0
    while index < len(runs):
        partner = _partner(runs, index)
        start = runs[index][0]
        if partner is None or _in_address(line[end:start]):
            return None
        end = runs[partner][1]
        spans.append((start, end))
        index = partner + 1
    return spans


def _in_address(before: str) -> bool:
    """Whether a backtick after *before* may belong to a bare web address (GFM 6.9)."""
    word = before.replace("\t", " ").rpartition(" ")[2].lower()
    return "://" in word or "www." in word


def _partner(runs: list[Region], index: int) -> int | None:
    width = runs[index][1] - runs[index][0]
    later = range(index + 1, len(runs))
    return next((other for other in later if runs[other][1] - runs[other][0] == width), None)

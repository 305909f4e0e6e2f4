"""Markdown and web addresses that a front end may render without harm."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator


# The web addresses that a display may offer: http and https, in one plain spelling.
#
# Parsers of URLs disagree on the odd ones, and phishing lives in the disagreement. So anything odd is
# refused (white space, backslashes, user names, escapes in the host), and what remains is written in
# ASCII, with the host in punycode: a look-alike letter shows.

MAX_URL: Final = 2048
MAX_HOST: Final = 253  # RFC 1035
MAX_PORT: Final = 65_535

_NETLOC = re.compile(r"(?:\[([0-9A-Fa-f:.]++)\]|([^\[\]:@]++))(?::([0-9]{0,5}))?")
_HOST = re.compile(r"[a-z0-9_-]++(?:\.[a-z0-9_-]++)*\.?")
_KEPT = "!$&'()*+,;=:@/?%~"  # RFC 3986, section 2: what needs no percent sign in path and query


class UrlRefusedError(ValueError):
    """An address may not be offered; the message says why."""


def plain_url(url: str, *, quoting: str = "") -> str:
    """Return *url* in its plain spelling.

    Args:
        quoting: Characters that the place where the address goes cannot hold as they are.

    Raises:
        UrlRefusedError: If it is not a strict http or https address of at most `MAX_URL` characters.
    """
    parts = _split(url)
    if parts.scheme not in ("http", "https"):
        raise UrlRefusedError("only http and https addresses are allowed")
    kept = "".join(character for character in _KEPT if character not in quoting)
    plain = f"{parts.scheme}://{_netloc(parts.netloc)}{quote(parts.path, kept)}"
    plain += f"?{quote(parts.query, kept)}" if parts.query else ""
    plain += f"#{quote(parts.fragment, kept)}" if parts.fragment else ""
    return _short(plain)


def _split(url: str) -> SplitResult:
    _short(url)
    if not url.isprintable() or "\\" in url or any(map(str.isspace, url)):
        raise UrlRefusedError("white space, control characters and backslashes are not allowed")
    try:
        return urlsplit(url)
    except ValueError:
        raise UrlRefusedError("not an address") from None


def _short(url: str) -> str:
    if len(url) > MAX_URL:
        raise UrlRefusedError(f"longer than {MAX_URL} characters")
    return url


def _netloc(netloc: str) -> str:
    if "@" in netloc:
        raise UrlRefusedError("a user name in an address is not allowed")
    match = _NETLOC.fullmatch(netloc)
    if match is None or int(match[3] or 0) > MAX_PORT:
        raise UrlRefusedError("no usable host")
    host = _ipv6(match[1]) if match[1] else _punycode(match[2])
    return f"{host}:{match[3]}" if match[3] else host


def _ipv6(host: str) -> str:
    try:
        return f"[{IPv6Address(host)}]"  # which Python itself checks since 3.11.4 only
    except ValueError:
        raise UrlRefusedError("no usable host") from None


def _punycode(host: str) -> str:
    try:
        ascii_host = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise UrlRefusedError("the host has no punycode form") from None
    if len(ascii_host) > MAX_HOST or _HOST.fullmatch(ascii_host) is None:
        raise UrlRefusedError("no usable host")
    return ascii_host


# Where a markdown text is code beyond doubt.
#
# Inside code a `<` is only a `<` and must be shown as it is; anywhere else it may begin a tag. Telling
# the two apart exactly takes a full parser, and then every front end's parser would have to agree
# with ours. We ask for less: which stretches are code under *every* reading of CommonMark and GFM?
# Code that this module misses is shown with an escape too many; text that it takes for code by mistake
# would be a hole. So each doubt is settled the same way: not code.
#
# What is certain:
#
# * A fence indented by at most three spaces opens, whatever stands around it (CommonMark 4.5). What
#   follows is code up to the closing fence, as long as no line has less indentation: such a line would
#   end a list item, and a fence in it.
# * Backticks that pair up within one line. An unpaired run may pair with one further down and shift
#   everything after it, so from there to the next blank line no span is certain.
#
# Two things blur the view of fences. A fence in a list or a quote, or indented further, is *murky*: it
# ends at the latest with the next line that begins at the margin. Where a fence may have been opened
# or closed at the top level and we cannot tell, all later fences are *lost*.

Region = tuple[int, int]

_FENCE = re.compile(r"([ \t]*+(?:(?:>|[-+*]|[0-9]{1,9}[.)])[ \t]*+)*)(`{3,}+|~{3,}+)(.*+)")
_LABEL_END = re.compile(r"[^\[\]\\]*+(?:\\.[^\[\]\\]*+)*\]:", re.DOTALL)  # of a definition begun earlier
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


# Markdown from a plugin, changed so that no renderer makes HTML, images or odd links of it.
#
# There is no markdown parser here. A tag needs a `<` before a letter, an inline link a `](`, a
# definition a `]:`, an image a `![`. Whatever a renderer thinks of the text around, if each of these
# pairs is either verified or broken up, nothing dangerous can come of them. Only stretches that are
# code beyond doubt are left alone (see above).

REMOVED = "(link removed)"

_TURN = re.compile(r"\\[\\!<]|<(?=[A-Za-z/!?])|\]\(|\]:|!(?=\[)")
# Targets hold no backtick, bracket or line break: they end before anything else can begin, which
# also keeps each attempt short and the whole pass linear.
_AUTOLINK = re.compile(r"<([^\s<>`\\\[\]]++)>")
_INLINE = re.compile(
    r"""\]\([ \t]*+
        (?: <([^\s<>`\\\[\]]*+)> | ((?: [^\s<>`\\\[\]()]++ | \([^\s<>`\\\[\]()]*+\) )*) )
        ([ \t]++ (?: "[^"\n`\\<\[\]]*+" | '[^'\n`\\<\[\]]*+' ))?
        [ \t]*+\)""",
    re.VERBOSE,
)
_DEFINITION = re.compile(r"\]:[ \t]*+(?:<([^\s<>`\\\[\]]++)>|([^\s<>`\\\[\]]++))(?=\s|\Z)")

_FINDINGS = {
    "html": "HTML is shown as text",
    "image": "image turned into a link",
    "removed": "link target other than http or https removed",
    "rewritten": "link rewritten in its plain spelling",
    "definition": "link definition other than http or https is shown as text",
    "separator": "line separator turned into a newline",
}


def neutral(text: str) -> tuple[str, list[str]]:
    """Return *text* with active content taken out, and what was changed; doing it twice changes nothing."""
    found: Counter[str] = Counter()
    lines = re.sub("[\u2028\u2029]", "\n", text)  # some readers end a line there, so let all do it
    found["separator"] = sum(map(text.count, "\u2028\u2029"))
    shown = "".join(_pieces(lines, found))
    return shown, [f"{finding} ({found[kind]})" for kind, finding in _FINDINGS.items() if found[kind]]


def _pieces(text: str, found: Counter[str]) -> Iterator[str]:
    position = 0
    for start, end in code_regions(text):
        yield from _prose(text, position, start, found)
        yield text[start:end]
        position = end
    yield from _prose(text, position, len(text), found)


def _prose(text: str, position: int, end: int, found: Counter[str]) -> Iterator[str]:
    while match := _TURN.search(text, position, end):
        yield text[position : match.start()]
        piece, position = _turned(text, match, found)
        yield piece
    yield text[position:end]


def _turned(text: str, match: re.Match[str], found: Counter[str]) -> tuple[str, int]:
    """Return what to write for the pair at *match*, and where to read on."""
    pair, start = match[0], match.start()
    if pair == "<":
        return _angle(text, start, found)
    if pair == "](":
        return _inline(text, start, found)
    if pair == "]:":
        return _definition(text, start, found)
    if pair == "!":
        found["image"] += 1
        # Of two bangs the first would take the place of the one removed.
        return ("\\!" if text[start - 1 : start] == "!" else ""), match.end()
    if pair == "\\<" and _TURN.match(text, start + 1):
        found["html"] += 1
        return "&lt;", match.end()
    return pair, match.end()


def _angle(text: str, start: int, found: Counter[str]) -> tuple[str, int]:
    match = _AUTOLINK.match(text, start)
    target = _target(match[1]) if match else None
    if match is None or target is None:
        found["html"] += 1
        return "&lt;", start + 1
    return _rewritten(match, f"<{target}>", found), match.end()


def _inline(text: str, start: int, found: Counter[str]) -> tuple[str, int]:
    match = _INLINE.match(text, start)
    if match is None:
        found["removed"] += 1
        return "]\\(", start + 2
    target = _target(match[1] or match[2] or "")
    if target is None:
        found["removed"] += 1
        return f"] {REMOVED}", match.end()
    return _rewritten(match, f"]({target}{match[3] or ''})", found), match.end()


def _definition(text: str, start: int, found: Counter[str]) -> tuple[str, int]:
    match = _DEFINITION.match(text, start)
    target = _target(match[1] or match[2]) if match else None
    if match is None or target is None:
        found["definition"] += 1
        return "]\\:", start + 2
    return _rewritten(match, f"]: {target}", found), match.end()


def _target(url: str) -> str | None:
    try:
        return plain_url(url, quoting="()")
    except UrlRefusedError:
        return None


def _rewritten(match: re.Match[str], plain: str, found: Counter[str]) -> str:
    found["rewritten"] += match[0] != plain
    return plain

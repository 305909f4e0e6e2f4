"""Markdown from a plugin, changed so that no renderer makes HTML, images or odd links of it.

There is no markdown parser here. A tag needs a `<` before a letter, an inline link a `](`, a
definition a `]:`, an image a `![`. Whatever a renderer thinks of the text around, if each of these
pairs is either verified or broken up, nothing dangerous can come of them. Only stretches that are
code beyond doubt are left alone (`code.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from agent_core.display.code import code_regions
from agent_core.display.links import UrlRefusedError, plain_url

if TYPE_CHECKING:
    from collections.abc import Iterator

REMOVED = "(link removed)"

_TURN = re.compile(r"\\[\\!<]|<(?=[A-Za-z/!?])|\]\(|\]:|!(?=\[)")
# Targets hold no backtick, bracket or line break: they end before anything else can begin, which
# also keeps each attempt short and the whole pass linear.
_AUTOLINK = re.compile(r"<([^\s<>`\\\[\]]++)>")
_INLINE = re.compile(
    r"""\]\([ \t]*+
        (?: <([^\s<>`\\\[\]]*+)> | ((?: [^\s<>`\\\[\]()]++ | \([^\s<>`\\\[\]()]*+\) )*+) )
        ([ \t]++ (?: "[^"\n`\\<\[\]]*+" | '[^'\n`\\<\[\]]*+' ))?+
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

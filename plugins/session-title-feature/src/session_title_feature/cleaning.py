"""From whatever a model or a person wrote to a title: one line of plain words, not too long.

Models like to answer with quotes, headings, labels and fences around what was asked for. Each step below
takes one of these away; they are repeated until none finds anything, so that cleaning a title that is clean
changes nothing.
"""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category, normalize

LONGEST: Final = 80
_ELLIPSIS = "…"
_QUOTES = "\"'`´“”„‟‘’‚‛«»‹›「」『』"  # noqa: RUF001 - they are what is looked for
_JOINERS = "\u200c\u200d"  # some scripts and emoji need them
_LABEL = re.compile(r"^(?:the\s+)?(?:chat |session )?title\s*(?:is\s*)?[:\uff1a]\s*", re.IGNORECASE)
_LEADING = re.compile(r"^(?:#{1,6}\s+|[-+>•]\s+|[#>]+$)")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_EMPHASIS = re.compile(r"[*`]|~~|(?<!\w)_+|_+(?!\w)")


def clean_title(text: str) -> str:
    """Return the first line of *text* that says something, as a title; an empty string if none does."""
    titles = (_clean_line(line) for line in text.splitlines() if not line.lstrip().startswith("```"))
    return next((title for title in titles if any(map(str.isalnum, title)) or _has_symbol(title)), "")


def _clean_line(line: str) -> str:
    before = None
    while before != line:
        before = line
        line = _shorten(_without_marks(" ".join(normalize("NFC", _printable(line)).split())))
    return line


def _printable(line: str) -> str:
    """Return the line without control characters, marks of direction, and halves of characters."""
    return "".join(one for one in line if one in _JOINERS or one == "\t" or not category(one).startswith("C"))


def _without_marks(line: str) -> str:
    line = _LINK.sub(r"\1", line)
    line = _EMPHASIS.sub("", _TAG.sub("", line))
    line = _LEADING.sub("", line.strip())
    line = _LABEL.sub("", line)
    return line.strip(_QUOTES + " ").rstrip(".,:;" + " ")


def _shorten(line: str) -> str:
    """Return at most `LONGEST` characters, cut between words if there is a place."""
    if len(line) <= LONGEST:
        return line
    room = line[: LONGEST - 1]
    words, space, _ = room.rpartition(" ")
    cut = words if space and len(words) > LONGEST // 2 else room
    while cut and (category(cut[-1]).startswith("M") or cut[-1] in _JOINERS):
        cut = cut[:-1]  # what belongs to the character before it goes with it
    return cut.rstrip(_QUOTES + " .,:;") + _ELLIPSIS


def _has_symbol(title: str) -> bool:
    """Say whether a title has a sign that can stand for words, as an emoji does."""
    return any(category(one) == "So" for one in title)

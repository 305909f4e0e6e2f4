r"""Regular expressions that take linear time, whatever they say.

Patterns come from models and from files of the workspace, and Python's own engine can be kept busy for ever
by a short one, with every thread of the process waiting. The engine behind `jsonschema_rs` is the one of
ripgrep: it never tries twice. Its way in is a schema with a `pattern`, which tells whether a text has a
match. `re2` promises linear time as well; it was compared, took 12 to 28 times as long, and would be one
more dependency.

The expressions of `search_files` are read and written anew, in what JavaScript and Rust understand alike, so
that they mean the same to ripgrep and to this engine. What is understood: characters, `.`, classes,
`\d \w \s \b` and their opposites, groups, `|`, `*`, `+`, `?`, `{n,m}` and their lazy forms, `^` and `$`, and
`(?i)` at the beginning. Anything else is refused with a reason, not taken for something else. A line is
searched by itself, so nothing matches a line's end.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from files_tool.places import Refused

_OPTIONS = RegexOptions(size_limit=10_000_000)

POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\x{20}\x{9}",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"\x{21}-\x{2E}\x{3A}-\x{40}\x{5B}-\x{60}\x{7B}-\x{7E}",
    "space": r"\x{9}\x{B}-\x{D}\x{20}",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""What stands in a class for names such as `[:alpha:]`; neither a slash nor a newline is in any."""


class Expression:
    """A compiled pattern."""

    __slots__ = ("_fits",)

    def __init__(self, source: str) -> None:
        """Compile a pattern.

        Raises:
            ValueError: If it is none, or becomes too large.
        """
        try:
            self._fits = Draft202012Validator({"pattern": source}, pattern_options=_OPTIONS).is_valid
        except (ValidationError, ValueError) as error:
            raise ValueError("it is not a regular expression, or it is too large") from error

    def fits(self, text: str) -> bool:
        """Say whether the pattern matches anywhere in the text, which must be valid Unicode."""
        return self._fits(text)


@lru_cache(maxsize=1024)
def compiled(source: str) -> Expression | None:
    """Return a pattern, compiled once; None if it cannot be."""
    try:
        return Expression(source)
    except ValueError:
        return None


def literal(text: str) -> str:
    """Return a pattern for exactly this text."""
    return "".join(char if char.isascii() and char.isalnum() else f"\\x{{{ord(char):X}}}" for char in text)


def span(low: str, high: str, *, without: str) -> str:
    """Return a range as it stands in a class, without one character; empty if it runs backwards."""
    if low <= without <= high:
        before, after = chr(ord(without) - 1), chr(ord(without) + 1)
        return span(low, before, without=without) + span(after, high, without=without)
    return f"\\x{{{ord(low):X}}}-\\x{{{ord(high):X}}}" if low <= high else ""


_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_]\w*>)?(?!\?)")
_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|[xu]\{([0-9A-Fa-f]{1,6})\}")
_NAMED = re.compile(r"\[:(\^?[a-z]+):\]")
_MOST, _DIGITS = 1000, 4
_LONGEST = 10_000

_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"
_SPACE = (
    r"\x{9}\x{B}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}"
)
_SETS = {"d": r"\p{Nd}", "w": _WORD, "s": _SPACE}
_CONTROLS = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"}
_LINE_END = r"\x{A}"
_ONE_LINE = "a line is searched by itself, so a line's end never matches"
_REFUSED = {
    "n": _ONE_LINE,
    "A": "write ^ in place of \\A",
    "Z": "write $ in place of \\Z",
    "z": "write $ in place of \\z",
}
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Search:
    """A regular expression, ready to be looked for.

    Attributes:
        line: Tells whether a line has a match.
        text: Tells whether a whole text may have one, in one go.
        for_ripgrep: The expression for ripgrep, with which it finds every file that may have one.
    """

    line: Expression
    text: Expression
    for_ripgrep: str


@dataclass(frozen=True, slots=True)
class _Places:
    """How a beginning, an end, and a place inside a word or between words, are written."""

    start: str = "^"
    end: str = "$"
    inside: str = r"\B"


# In a whole text a line may end in a carriage return, which is not part of the line, and the first line may
# begin with a byte order mark. What ripgrep takes for a word is not known where bytes are not UTF-8. It only
# has to find no file too few, since every line is looked at once more.
_IN_LINE = _Places()
_IN_TEXT = _Places(end=r"(?:\x{D}?$)")
_FOR_RIPGREP = _Places(start=r"(?:^\x{FEFF}?)", end=r"(?:\x{D}?$)", inside="(?:)")


def read_expression(pattern: str, *, is_literal: bool = False, ignore_case: bool = False) -> Search:
    """Read what a model looks for.

    Raises:
        Refused: If it is empty, cannot be read, or has something that is not understood.
    """
    if not pattern:
        raise Refused("the pattern is empty: give a text to look for")
    if pattern.startswith("(?i)") and not is_literal:
        pattern, ignore_case = pattern[4:], True
    if len(pattern) > _LONGEST or not _is_unicode(pattern):
        raise Refused("the pattern is too long, or not valid Unicode: look for a shorter piece of it")
    if "\n" in pattern:
        raise Refused(f"the pattern has a newline, but {_ONE_LINE}: look for a piece of one line")
    if is_literal:
        written = [literal(pattern)] * 3
    else:
        written = [_Reading(pattern, places).whole() for places in (_IN_LINE, _IN_TEXT, _FOR_RIPGREP)]
    flag = "i" if ignore_case else ""
    line, text, for_ripgrep = (f"(?{flag}:{one})" for one in written)
    try:
        return Search(Expression(line), Expression(f"(?m){text}"), for_ripgrep)
    except ValueError as error:
        raise Refused(f"the pattern cannot be used: {error}") from error


class _Reading:
    """A regular expression that is being read."""

    def __init__(self, pattern: str, places: _Places) -> None:
        self._pattern = pattern
        self._places = places
        self._at = 0
        self._depth = 0

    def whole(self) -> str:
        """Return the expression in the form that both engines take."""
        written = self._alternatives()
        if self._at < len(self._pattern):
            raise self._error("this ) closes nothing; write \\)")
        return written

    def _alternatives(self) -> str:
        branches = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            branches.append(self._sequence())
        return "|".join(branches)

    def _sequence(self) -> str:
        written = []
        while self._next() not in ("", "|", ")"):
            one, is_repeatable = self._one()
            written.append(one + self._repetition(is_repeatable=is_repeatable))
        return "".join(written)

    def _one(self) -> tuple[str, bool]:
        """Read one thing; the second value says whether it can be repeated."""
        char = self._next()
        if char in ("*", "+", "?"):
            raise self._error(f"there is nothing that {char} could repeat; write \\{char} for the character")
        if char == "(":
            return self._group(), True
        if char == "[":
            return self._class(), True
        if char == "\\":
            return self._escape()
        self._at += 1
        if char == ".":
            return f"[^{_LINE_END}]", True
        if char in ("^", "$"):
            return self._places.start if char == "^" else self._places.end, False
        return literal(char), True

    def _repetition(self, *, is_repeatable: bool) -> str:
        found = _COUNT.match(self._pattern, self._at)
        written = found[0] if found else self._next() if self._next() in ("*", "+", "?") else ""
        if not written:
            return ""
        if not is_repeatable:
            raise self._error(f"a place cannot be repeated, so {written} means nothing here")
        if found and any(
            len(number) > _DIGITS or int(number) > _MOST for number in (found[1], found[3]) if number
        ):
            raise self._error(f"nothing can be repeated more than {_MOST} times")
        self._at += len(written)
        if self._next() == "?":
            self._at += 1
            return f"{written}?"
        return written

    def _group(self) -> str:
        opening = _GROUP.match(self._pattern, self._at)
        if opening is None:
            raise self._error(
                "of the groups that begin with (? only (?: is understood, and (?i) at the very start"
            )
        if self._depth == _DEEPEST:
            raise self._error(f"groups can be nested {_DEEPEST} deep")
        began = self._at
        self._at, self._depth = opening.end(), self._depth + 1
        inside = self._alternatives()
        if self._next() != ")":
            self._at = began
            raise self._error("this group is not closed; write \\( for a parenthesis")
        self._at, self._depth = self._at + 1, self._depth - 1
        return f"(?:{inside})"

    def _escape(self) -> tuple[str, bool]:
        code = self._pattern[self._at + 1 : self._at + 2]
        if code in ("b", "B"):
            self._at += 2
            return r"\b" if code == "b" else self._places.inside, False
        if code and code in "dwsDWS":
            self._at += 2
            written = _SETS[code.lower()]
            return (f"[{written}]" if code.islower() else f"[^{written}{_LINE_END}]"), True
        return literal(self._escaped()), True

    def _escaped(self) -> str:
        """Read an escape that stands for one character."""
        code = self._pattern[self._at + 1 : self._at + 2]
        if not code:
            raise self._error("a backslash needs a character after it; write \\\\ for a backslash")
        if code in _REFUSED:
            raise self._error(_REFUSED[code])
        number = _HEX.match(self._pattern, self._at + 1)
        if number:
            return self._numbered(number)
        if code.isalnum() and code not in _CONTROLS:
            raise self._error(f"\\{code} is not understood: leave out the backslash to mean the character")
        self._at += 2
        return _CONTROLS.get(code, code)

    def _numbered(self, number: re.Match[str]) -> str:
        value = int(number[1] or number[2] or number[3], 16)
        if value > sys.maxunicode or not _is_unicode(chr(value)):
            raise self._error("there is no such character")
        if value == ord("\n"):
            raise self._error(_ONE_LINE)
        self._at = number.end()
        return chr(value)

    def _class(self) -> str:
        began = self._at
        self._at += 1
        is_negated = self._next() == "^"
        self._at += is_negated
        items: list[str] = []
        while not items or self._next() != "]":
            if not self._next():
                self._at = began
                raise self._error("this class is not closed; write \\[ for a bracket")
            items.append(self._item())
        self._at += 1
        inside = "".join(items)
        return f"[^{inside}{_LINE_END}]" if is_negated else f"[{inside}]"

    def _item(self) -> str:
        """Read a character, a range or a set inside a class."""
        named = _NAMED.match(self._pattern, self._at)
        if named:
            self._at = named.end()
            return POSIX_CLASSES.get(named[1]) or self._fail(f"there is no class [:{named[1]}:]")
        code = self._pattern[self._at + 1 : self._at + 2] if self._next() == "\\" else ""
        if code and code in "dws":
            self._at += 2
            return _SETS[code]
        if code and code in "DWSbB":
            raise self._error(f"\\{code} cannot be in a class: write it outside, or write its characters")
        low = self._class_char()
        if self._next() != "-" or self._pattern[self._at + 1 : self._at + 2] in ("]", ""):
            return literal(low)
        self._at += 1
        high = self._class_char()
        return span(low, high, without="\n") or self._fail(f"the range {low}-{high} runs backwards")

    def _class_char(self) -> str:
        if self._next() == "\\":
            return self._escaped()
        self._at += 1
        return self._pattern[self._at - 1]

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _error(self, problem: str) -> Refused:
        where = f"the pattern cannot be read at character {self._at + 1}"
        return Refused(f"{where}: {problem}; or set literal to look for it as it is")

    def _fail(self, problem: str) -> str:
        raise self._error(problem)


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="replace").decode() == text

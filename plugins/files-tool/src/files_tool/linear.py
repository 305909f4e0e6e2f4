"""Regular expressions that take linear time, whatever they say.

Patterns come from models and from files of the workspace, and Python's own engine can be kept busy for
ever by a short one, with every thread of the process waiting. The engine behind `jsonschema_rs` is the
one of ripgrep: it never tries twice. Its way in is a schema with a `pattern`, which tells whether a text
has a match.

The pattern must be written in what JavaScript and Rust understand alike: see `expressions` and `globs`.
"""

from __future__ import annotations

from functools import lru_cache

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

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
            raise ValueError("it is no regular expression, or too large a one") from error

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

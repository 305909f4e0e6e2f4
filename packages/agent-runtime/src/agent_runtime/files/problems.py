"""What is wrong in a text, before anyone knows in which file the text stands."""

from __future__ import annotations


class Wrong(Exception):  # noqa: N818 - it never leaves this package: a SpecFileError takes its place
    """Something in a text that cannot be used.

    Attributes:
        at: The offset where it stands, if that is known.
        problem: What is wrong, and what to do about it.
        field: The way to it, spelt out.
    """

    def __init__(self, at: int | None, problem: str, field: str | None = None) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem
        self.field = field


def line_of(text: str, at: int | None) -> int | None:
    """Return the line of an offset, counted from one."""
    return None if at is None else text.count("\n", 0, at) + 1

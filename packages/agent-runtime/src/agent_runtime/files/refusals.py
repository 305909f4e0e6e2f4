"""What the standard library's parsers refuse, in our words and with its place.

They tell the place in a field (JSON) or only in the message (TOML), and for a number that is too long even to
be read they tell none.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from agent_runtime.files.problems import Wrong
from agent_runtime.files.values import TOO_LONG

if TYPE_CHECKING:
    from collections.abc import Callable


def checked(loads: Callable[[str], Any], text: str, language: str) -> Any:
    """Return what a parser makes of a text.

    Raises:
        Wrong: If the text is not valid.
    """
    try:
        return loads(text)
    except ValueError as error:
        problem = re.sub(r" \(at .*\)$|: line \d+ column \d+ \(char \d+\)$", "", str(error))
        told = f"is not valid {language}: {_without_advice(problem)}"
        raise Wrong(_place(error, text), told) from error


def _without_advice(problem: str) -> str:
    """Say it in our words where Python tells programmers how to read even longer numbers."""
    return TOO_LONG if "set_int_max_str_digits" in problem else problem


def _place(error: ValueError, text: str) -> int | None:
    """Return where a parser stopped: it says so in a field or in its message, or met an endless number."""
    if isinstance(error, json.JSONDecodeError):
        return error.pos
    told = re.search(r"\(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    if told is None:
        number = re.search(r"\d[\d_]{4000,}", text)
        return None if number is None else number.start()
    lines = text.split("\n")
    return len(text) if told[1] is None else sum(len(line) + 1 for line in lines[: int(told[1]) - 1])

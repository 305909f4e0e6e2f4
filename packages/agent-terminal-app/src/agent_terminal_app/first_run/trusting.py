"""Whether the settings of a project shall count: what they would change is shown, and the person decides.

What is trusted is what was shown, byte for byte. Settings that may let something run, be read or be sent are
marked with what they can do; `settings.reach` knows which.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import CommandError
from agent_terminal_app.settings.reach import UNKNOWN, danger
from agent_terminal_app.settings.trust import leave_alone, read_project, trust_file
from agent_terminal_app.settings.ways import Way, leaves, spell

if TYPE_CHECKING:
    from agent_terminal_app.first_run.asking import Ask
    from agent_terminal_app.opening import Opened
    from agent_terminal_app.settings.sources import ConfigFile

YES, NOT_NOW, NEVER = "Use them, until the file changes", "Go on without them", "Never ask about this folder"
LONGEST_VALUE = 200
"""How many characters of a value are shown."""
MOST_MARKED, MOST_PLAIN = 100, 30
"""How many lines of each kind are shown."""


async def ask_about_project(ask: Ask, opened: Opened) -> Opened:
    """Ask whether the project's settings shall count, if that is open, and return what holds then.

    Nobody is asked about a file that could not be used anyway.
    """
    if opened.settings.untrusted is None:
        return opened
    try:
        file = read_project(opened.paths, Path.cwd())
    except CommandError as error:
        ask.tell(f"! {error}; it is ignored")
        return opened
    title = "\n".join([f"{file.path} wants to change settings:", *changes(file)])
    number = await ask.choose(f"{title}\nShall they count?", [NOT_NOW, YES, NEVER])
    return _decided(opened, file, number)


def _decided(opened: Opened, file: ConfigFile, number: int | None) -> Opened:
    match number:
        case 1:
            trust_file(opened.paths, file)
        case 2:
            leave_alone(opened.paths, file)
        case _:
            return opened
    return opened.again()


def changes(file: ConfigFile) -> list[str]:
    """Return what a file says, a line for each value; those that should be looked at first, with a mark."""
    found = [(way, value, danger(way, value)) for way, value in leaves(file.values)]
    found.sort(key=lambda one: one[2] == UNKNOWN)  # what is known to be dangerous comes first
    marked = [f"  ! {_said(way, value)}  <- {why}" for way, value, why in found if why]
    plain = [f"    {_said(way, value)}" for way, value, why in found if not why]
    return [*_some(marked, MOST_MARKED, "  !"), *_some(plain, MOST_PLAIN)]


def _said(way: Way, value: Any) -> str:
    told = json.dumps(value, default=str)  # in ASCII: no letter can look like another
    short = told if len(told) <= LONGEST_VALUE else f"{told[:LONGEST_VALUE]}… ({len(told)} characters)"
    return f"{spell(way)} = {short}"


def _some(lines: list[str], most: int, mark: str = "   ") -> list[str]:
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"{mark} and {more} more, see the file"]

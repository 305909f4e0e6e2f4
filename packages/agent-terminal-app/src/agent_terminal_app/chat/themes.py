"""Colours for the terminal's background: which of its own sixteen a style is shown in.

What is only bold or dim is the same everywhere, and so is what stands around the prompt: it has no colours.
The usual colours are readable on most backgrounds; those of a theme are for one that is known.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_terminal_app.chat.text import paint

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_COLOURS = "none"
"""The theme of those who want none."""

_DARK = {
    "red": "91",
    "green": "92",
    "yellow": "93",
    "code": "96",
    "keyword": "95",
    "heading": "1;94",
}
_LIGHT = {
    "red": "31",
    "green": "32",
    "yellow": "35",
    "code": "34",
    "keyword": "1;35",
    "heading": "1;34",
}
_COLOURS: Mapping[str, Mapping[str, str]] = {"dark": _DARK, "light": _LIGHT}
_DARK_BACKGROUNDS = {"0", "1", "2", "3", "4", "5", "6", "8"}


def use_theme(theme: str) -> None:
    """Show styles in the colours of a theme from now on; "auto" takes what the terminal says of itself."""
    paint(_COLOURS.get(_background() if theme == "auto" else theme, {}))


def _background() -> str:
    """Return what the terminal says of its background, as some do; empty if it says nothing."""
    number = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    if not number.isdecimal():
        return ""
    return "dark" if number in _DARK_BACKGROUNDS else "light"

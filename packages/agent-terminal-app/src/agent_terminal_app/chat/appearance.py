"""How the chat looks, as `[ui]` says: the colours, the parts of the status line, when to notify.

It may change while the chat runs: `/theme` and `/config ui.…` change it at once.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agent_terminal_app.chat.rendering.screen import wants_color
from agent_terminal_app.chat.rendering.text import NO_COLOURS, clean, one_line, use_theme

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_terminal_app.chat.rendering.screen import Screen

USUAL_PARTS = ("mode", "state", "context", "session", "cost")
"""The parts of the status line unless a setting says otherwise."""
Notify = Literal["unfocused", "always", "never"]
_LONGEST = 200
_HEAD = "ref: refs/heads/"
_BY_NINE = ("iTerm.app", "WezTerm", "ghostty", "WarpTerminal", "vscode")
"""Terminals that show OSC 9; others know OSC 777, or ignore both."""


@dataclass(slots=True)
class Appearance:
    """How one chat looks now.

    Attributes:
        parts: The parts of the status line, in order.
        notify: When the desktop shows that the agent is done, or asks something.
        has_focus: Whether the user looks at the terminal; None while it has not said.
    """

    parts: tuple[str, ...] = USUAL_PARTS
    notify: Notify = "unfocused"
    has_focus: bool | None = None

    @classmethod
    def of(cls, ui: Mapping[str, Any]) -> Appearance:
        """Return how a chat looks under the settings of `[ui]`."""
        made = cls()
        made.use(ui)
        return made

    def use(self, ui: Mapping[str, Any], screen: Screen | None = None) -> None:
        """Look as `[ui]` says from now on.

        Args:
            screen: Where lines go; its colours change too.
        """
        theme = ui.get("theme", "auto")
        self.parts = tuple(ui.get("status_line", USUAL_PARTS))
        self.notify = ui.get("notify", "unfocused")
        use_theme(theme)
        if screen is not None:
            screen.color = wants_color(sys.__stdout__ or sys.stdout, plain=theme == NO_COLOURS)

    def wants_notice(self) -> bool:
        """Say whether to notify the desktop now."""
        return self.notify == "always" or (self.notify == "unfocused" and self.has_focus is False)


def notice(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Return what makes a terminal tell its desktop something; terminals that cannot do that ignore it."""
    variables = os.environ if environment is None else environment
    words = one_line(clean(text)).replace(";", ",")[:_LONGEST]
    if variables.get("TERM_PROGRAM") in _BY_NINE:
        made = f"\x1b]9;{words}\x07"
    else:
        made = f"\x1b]777;notify;agent;{words}\x07"
    if "TMUX" in variables:  # tmux hands on only what is wrapped for it
        doubled = made.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    return made


def branch_of(folder: Path) -> str:
    """Return the branch that a folder's repository is on; empty if it is in none."""
    for one in (folder, *folder.parents):
        try:
            head = (one / ".git" / "HEAD").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        return one_line(head.removeprefix(_HEAD) if head.startswith(_HEAD) else head[:8], 40)
    return ""

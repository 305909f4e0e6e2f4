"""What comes from the keyboard: in large pieces, with a bound on pastes, until the terminal is gone."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.keys import Keys

from agent_terminal_app.chat.key_names import SHIFT_ENTER

if TYPE_CHECKING:
    from typing import TextIO

LONGEST_PASTE = 4_000_000
"""How many characters of a paste are taken; more is a file to be attached."""

_PIECE = 65_536
_SHIFT_ENTER = ("\x1b[27;2;13~", "\x1b[13;2u")
"""What terminals send for Shift+Enter, if they were told to tell it from Enter."""
_BEGIN, _END = "\x1b[200~", "\x1b[201~"


class Keyboard(PosixStdinReader):
    """Reads from a terminal.

    The usual reader takes a kilobyte at a time, and looks through all of a paste for its end each time:
    a large one would take minutes. It also goes on for ever with a terminal that is gone.
    """

    def __init__(self, handle: int, encoding: str = "utf-8") -> None:
        super().__init__(handle, encoding=encoding)
        self._pasting = False
        self._room = 0
        self._carry = ""

    def read(self, count: int = _PIECE) -> str:
        """Return what was typed or pasted; nothing if the terminal is gone."""
        if self.closed:
            return ""
        try:
            data = os.read(self.stdin_fd, count)
        except InterruptedError:
            return ""
        except OSError:
            data = b""
        self.closed = not data
        return self.bounded(self._stdin_decoder.decode(data))

    def bounded(self, text: str) -> str:
        """Return a text without what is too much of a paste."""
        kept = []
        while text:
            if self._pasting:
                piece, text = self._paste(text)
            else:
                head, begin, text = text.partition(_BEGIN)
                piece = head + begin
                self._pasting, self._room = bool(begin), LONGEST_PASTE
            kept.append(piece)
        return "".join(kept)

    def _paste(self, text: str) -> tuple[str, str]:
        """Return the piece of a paste that is kept, and what comes behind the paste."""
        pasted, end, rest = (self._carry + text).partition(_END)
        self._carry = ""
        if not end:  # the mark of the end may be cut in two
            pasted, self._carry = pasted[: 1 - len(_END)], pasted[1 - len(_END) :]
        kept = pasted[: self._room]
        self._room -= len(kept)
        self._pasting = not end
        return kept + end, rest


def open_keyboard(stdin: TextIO | None = None) -> Vt100Input:
    """Return the terminal's keyboard as the prompt takes it."""
    ANSI_SEQUENCES.update(dict.fromkeys(_SHIFT_ENTER, Keys(SHIFT_ENTER)))
    stdin = stdin or sys.stdin
    keyboard = Vt100Input(stdin)
    keyboard.stdin_reader = Keyboard(stdin.fileno(), encoding=stdin.encoding)
    return keyboard

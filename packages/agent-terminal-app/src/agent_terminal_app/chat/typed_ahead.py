"""What was typed on a plain terminal too early: whole lines wait, half a line can be dropped."""

from __future__ import annotations

import sys
from typing import TextIO


def line_waits(stream: TextIO) -> bool:
    """Say whether a whole line was typed already; only a terminal can tell."""
    if not stream.isatty() or sys.platform == "win32":
        return False
    from select import select

    return bool(select([stream], [], [], 0)[0])


def drop_half_a_line(stream: TextIO) -> None:
    """Forget what was begun and not sent yet; other streams than terminals keep everything."""
    if not stream.isatty() or sys.platform == "win32":
        return
    import termios

    termios.tcflush(stream, termios.TCIFLUSH)

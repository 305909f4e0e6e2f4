"""Running a dialogue with whoever sits there: with completion in a terminal, in plain lines elsewhere.

A signal that ends the program ends the dialogue first, so that the terminal is as it was.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, TypeVar

from agent_terminal_app.errors import Exit
from agent_terminal_app.tables import is_terminal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_terminal_app.first_run.asking import Ask

T = TypeVar("T")

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_AFTER_A_SIGNAL = 128


def asking(*, plain: bool = False) -> Ask:
    """Return what asks: with keys and completion if the terminal can, and the person wants it."""
    moves = is_terminal(sys.stdin) and is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if plain or not moves:
        from agent_terminal_app.first_run.lines import LineAsk

        return LineAsk()
    from agent_terminal_app.first_run.terminal import TerminalAsk

    return TerminalAsk()


def hold(dialogue: Callable[[], Awaitable[T]]) -> T:
    """Run a dialogue to its end.

    Raises:
        SystemExit: If the person interrupts it, or a signal ends it.
    """
    try:
        return asyncio.run(_heeding(dialogue))
    except KeyboardInterrupt:
        raise SystemExit(Exit.INTERRUPTED) from None


async def _heeding(dialogue: Callable[[], Awaitable[T]]) -> T:
    """Let signals cancel a dialogue; those that whoever started us wants ignored stay so."""
    loop, came = asyncio.get_running_loop(), [0]
    task = asyncio.ensure_future(dialogue())

    def end(number: int) -> None:
        came.append(number)
        task.cancel()

    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if came[-1]:
            raise SystemExit(_AFTER_A_SIGNAL + came[-1]) from None
        raise

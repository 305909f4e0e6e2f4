"""The clipboard: of the terminal, by an escape sequence, and of the desktop, by its programs."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from base64 import b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LONGEST = 74_994
"""How many characters of Base64 terminals take in one sequence; xterm, which takes the least."""
PATIENCE = 5.0
"""How many seconds a program has to take the text."""


async def copy(text: str) -> list[str]:
    """Put a text on every clipboard that there is, to the letter, and say on which; none if there is none."""
    done = ["the clipboard of the terminal (OSC 52)"] if _by_terminal(text) else []
    for program in programs(os.environ):
        if await _by_program(program, text):
            return [*done, f"that of the desktop ({program[0]})"]
    return done


def programs(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the commands that could take a text here, the best first."""
    known = [
        ("WAYLAND_DISPLAY", ("wl-copy",)),
        ("DISPLAY", ("xclip", "-selection", "clipboard")),
        ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ]
    usable = [command for variable, command in known if environment.get(variable)]
    for command in [*usable, ("pbcopy",)]:
        if shutil.which(command[0], path=environment.get("PATH")):
            yield command


def sequence(text: str) -> str | None:
    """Return what makes a terminal copy a text; None if it is too long for one."""
    encoded = b64encode(text.encode(errors="replace")).decode("ascii")
    return None if len(encoded) > LONGEST else f"\x1b]52;c;{encoded}\x07"


def _by_terminal(text: str) -> bool:
    """Write the sequence past everything that shows lines, for none of them may let one through."""
    made, terminal = sequence(text), sys.__stdout__  # what is printed may be redirected
    if made is None or terminal is None or not terminal.isatty():
        return False
    terminal.write(made)
    terminal.flush()
    return True


async def _by_program(command: tuple[str, ...], text: str) -> bool:
    nowhere = asyncio.subprocess.DEVNULL  # some stay behind to serve the text, and would hold a pipe open
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=nowhere, stderr=nowhere
        )
    except OSError:
        return False
    try:
        await asyncio.wait_for(process.communicate(text.encode(errors="replace")), PATIENCE)
    except (TimeoutError, asyncio.CancelledError) as error:
        process.kill()
        await process.wait()
        if isinstance(error, asyncio.CancelledError):
            raise
        return False
    return process.returncode == 0

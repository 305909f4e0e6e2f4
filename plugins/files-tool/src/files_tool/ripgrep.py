"""ripgrep, where it is installed: it tells quickly which files may have a match.

It also names the files that are no text, which have a NUL, since the answer counts them.

Its word is never the answer. It opens files by their paths, which another program may have changed under
it, so what it finds is only a list of files to open safely and look at. If it fails, is slow to end or is
not there, every file is looked at, and the answer is the same.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from files_tool.limits import LARGEST_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PATIENCE = 30.0
_PAUSE = 0.05
_BLOCK = 1 << 16
_OPTIONS = (
    "--no-config",
    "--no-messages",
    "--no-mmap",
    "--color=never",
    "--encoding=none",
    "--text",
    "--files-with-matches",
    "--null",
    "--no-ignore",
    "--max-depth=1",
    f"--max-filesize={LARGEST_FILE}",
)
_OR_NO_TEXT = r"|\x{0}"
_ENDED_WELL = (0, 1)  # with matches, and without


def find_ripgrep(roots: Sequence[str]) -> str | None:
    """Return the program; one that lies in the workspace is the workspace's, and not run."""
    found = shutil.which("rg")
    if found is None:
        return None
    real = os.path.realpath(found)
    if any(real.startswith(root.rstrip("/") + "/") for root in roots):
        return None
    return real if _is_ripgrep(real) else None


@lru_cache(maxsize=16)
def _is_ripgrep(program: str) -> bool:
    """Say whether a program of that name is the one that is meant; it is asked once."""
    try:
        told = subprocess.run(  # noqa: S603 - no shell, and no program of the workspace
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.stdout.startswith(b"ripgrep ")


class Run:
    """ripgrep at work on the files of some folders; the answer is collected later."""

    def __init__(
        self, program: str, expression: str, root: str, folders: Sequence[str], *, hidden: bool
    ) -> None:
        options = (*_OPTIONS, "--hidden") if hidden else _OPTIONS
        command = [
            program,
            *options,
            f"--regexp={expression}{_OR_NO_TEXT}",
            "--",
            *(f"./{path}" for path in folders),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError, ValueError):
            self._process = subprocess.Popen(  # noqa: S603 - no shell, and no program of the workspace
                command,
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )

    def candidates(self, is_cancelled: Callable[[], bool]) -> list[str] | None:
        """Return the paths of files that may have a match; None if that cannot be told."""
        output = self._output(is_cancelled)
        if output is None or self._process is None or self._process.returncode not in _ENDED_WELL:
            return None
        return [os.fsdecode(path[2:]) for path in output.split(b"\0") if path]

    def close(self) -> None:
        """End it, whether it is done or not."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _output(self, is_cancelled: Callable[[], bool]) -> bytes | None:
        if self._process is None or self._process.stdout is None:
            return None
        until = time.monotonic() + _PATIENCE
        blocks: list[bytes] = []
        fd = self._process.stdout.fileno()
        while time.monotonic() < until and not is_cancelled():
            if select.select([fd], [], [], _PAUSE)[0]:
                block = os.read(fd, _BLOCK)
                if not block:
                    self._process.wait()
                    return b"".join(blocks)
                blocks.append(block)
        return None

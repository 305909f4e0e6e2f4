"""ripgrep, where it is installed: it tells quickly which files may have a match.

Which folders and files count is decided here and nowhere else: ripgrep gets single folders and none of the
rules, so that it cannot read a rule in another way. It also reads files that are ignored, and those are
dropped. It names files that have a NUL as well, which are not text, since the answer counts them.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from collections import deque
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from agent_plugin_kit.safe_files import FOLDER
from files_tool.contents import Why
from files_tool.limits import LARGEST_FILE
from files_tool.tree import walk_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from files_tool.places import Place
    from files_tool.tree import Choice, Folder

    Batch = dict[str, Folder]


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
        answer = subprocess.run(  # noqa: S603 - no shell, and no program of the workspace
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.startswith(b"ripgrep ")


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
        """Return the paths of files that may have a match; None if that cannot be known."""
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


_FIRST_BATCH, _BATCH = 250, 2000
"""How many folders ripgrep is given; few at first, so that it has something to do soon."""
_AT_ONCE = 2
_TOO_MANY = 100_000
"""If so many files have a match, the answer is full after few, and sooner found by reading in order."""


def candidates(program: str, expression: str, start: Place, choice: Choice) -> list[str] | None:
    """Return the files that may have a match, and those that cannot be searched.

    None if that cannot be known, or if they are too many.
    """
    paths: list[str] = []
    for named, folders in _named(program, expression, start, choice):
        if named is None or len(paths) + len(named) > _TOO_MANY:
            return None
        for path in named:
            before, slash, name = path.rpartition("/")
            folder = folders.get(before + slash)
            if folder is None:  # nobody asked for that one
                return None
            if not folder.leaves_out(name, choice) and not _is_protected(start, path):
                paths.append(path)
    # Of such a folder only the first names count, and ripgrep does not know which these are.
    return None if choice.missed.has(Why.FULL_FOLDER) else paths


def _large(start: Place, folders: Batch, choice: Choice) -> list[str]:
    """Return the files that ripgrep is asked not to read; the answer counts them too."""
    return [
        prefix + name
        for prefix, folder in folders.items()
        for name in _large_in(os.path.join(start.root, prefix), folder.files)  # noqa: PTH118 - many of them
        if choice.hidden or not name.startswith(".")
    ]


def _large_in(path: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the names of large files; by a path that may be another by now, as ripgrep does: it is a hint."""
    try:
        fd = os.open(path, FOLDER)
    except OSError:
        return
    try:
        for name in names:
            with suppress(OSError):  # gone again
                if os.stat(name, dir_fd=fd, follow_symlinks=False).st_size > LARGEST_FILE:
                    yield name
    finally:
        os.close(fd)


def _is_protected(start: Place, path: str) -> bool:
    """Say whether a file that ripgrep has read is not part of the workspace, whatever its name."""
    try:
        return start.protected.is_(Path(start.root, path).lstat())
    except OSError:  # gone again
        return False


def _named(
    program: str, expression: str, start: Place, choice: Choice
) -> Iterator[tuple[list[str] | None, Batch]]:
    """Yield what ripgrep names, and what is too large for it; while it reads, the next ones are gathered."""
    running: deque[tuple[Run, list[str], Batch]] = deque()
    try:
        for batch in _batches(walk_folders(start, choice)):
            run = Run(program, expression, start.root, list(batch), hidden=choice.hidden)
            running.append((run, [], batch))
            running[-1][1].extend(_large(start, batch, choice))
            if len(running) == _AT_ONCE:
                yield _collected(running, choice)
        while running:
            yield _collected(running, choice)
    finally:
        for run, _, _ in running:
            run.close()


def _collected(
    running: deque[tuple[Run, list[str], Batch]], choice: Choice
) -> tuple[list[str] | None, Batch]:
    """Return what the first of those that run has found, when it is done."""
    run, large, batch = running[0]
    named = run.candidates(choice.is_cancelled)
    running.popleft()
    run.close()
    return None if named is None else named + large, batch


def _batches(folders: Iterator[Folder]) -> Iterator[Batch]:
    size = _FIRST_BATCH
    while batch := {folder.prefix: folder for folder in islice(folders, size)}:
        yield batch
        size = _BATCH

"""The files of the workspace, for completion: what git knows, or else what a short look finds."""

from __future__ import annotations

import heapq
import os
import re
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_terminal_app.chat.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_FILES = 20_000
_SECONDS = 1.0
_FRESH = 10.0
_SHOWN = 30
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target"})


class Workspace:
    """The files below a folder; asked in a thread, since looking may take a moment.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._files: list[str] = []
        self._looked = -_FRESH

    def files(self) -> list[str]:
        """Return the files' paths from the root on, as of the last few seconds."""
        with self._lock:
            if time.monotonic() - self._looked >= _FRESH:
                self._files = _listed(self.root)
                self._looked = time.monotonic()
            return self._files

    def matching(self, query: str) -> list[str]:
        """Return the files whose path has the letters of a query in this order, the likeliest first."""
        pattern = _in_order(query)
        found = [path for path in self.files() if pattern.match(path)]
        return heapq.nsmallest(_SHOWN, found, key=lambda path: _rank(path, query))


def _in_order(query: str) -> re.Pattern[str]:
    """Return a pattern for letters in order; it never goes back, however the path is made."""
    pieces = (f"[^{re.escape(char)}]*{re.escape(char)}" for char in query)
    return re.compile("".join(pieces), re.IGNORECASE | re.DOTALL)


def _rank(path: str, query: str) -> tuple[bool, bool, bool, int, str]:
    low, wanted = path.lower(), query.lower()
    name = low.rpartition("/")[2]
    return not name.startswith(wanted), wanted not in name, wanted not in low, len(path), path


def _listed(root: Path) -> list[str]:
    found = _from_git(root)
    names = _walked(root) if found is None else iter(found)
    return [name for name, _ in zip(_showable(names), range(_MOST_FILES), strict=False)]


def _showable(names: Iterator[str]) -> Iterator[str]:
    """Leave out names that would show other than they are."""
    return (name for name in names if name and "\n" not in name and clean(name) == name)


def _from_git(root: Path) -> list[str] | None:
    """Return what git tracks, and what it does not ignore; None if this is no repository of it.

    A repository can be hostile: its settings must not start a program of its own (core.fsmonitor).
    """
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root)]
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            [*command, *listing], capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return list(dict.fromkeys(done.stdout.decode(errors="surrogateescape").split("\0")))


def _walked(root: Path) -> Iterator[str]:
    until = time.monotonic() + _SECONDS
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _SKIPPED)
        inside = Path(folder).relative_to(root)
        yield from (str(inside / name) for name in sorted(files) if not name.startswith("."))
        if time.monotonic() > until:
            return

"""Where the agent works: the folder, the system, the date, and the state of the repository.

It is found out once for a session and then stays the same, so that every request begins in the same way and
a provider can cache that. The branch is read from a file. Only in a trusted project is git itself asked what
has changed: the settings of a repository can make git run programs.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections import OrderedDict
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

_MOST_SESSIONS = 256
_PATIENCE = 2.0
_MOST_CHANGES = 8
_LONGEST_HEAD = 4096
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")


class Surroundings:
    """What is known of the places of sessions; the last few hundred are remembered."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = Lock()

    def of(self, session_id: str, folder: str, *, trusted: bool) -> str:
        """Return the place of a session in words, the same ones each time."""
        key = (session_id, folder)
        with self._lock:
            if key in self._known and session_id:
                self._known.move_to_end(key)
                return self._known[key]
        text = describe(Path(folder), trusted=trusted)
        with self._lock:
            self._known[key] = text
            while len(self._known) > _MOST_SESSIONS:
                self._known.popitem(last=False)
        return text


def describe(folder: Path, *, trusted: bool) -> str:
    """Return what an agent should know of the place that it works in."""
    shell = os.environ.get("SHELL", "")
    login = f", the user's shell is {shell}" if shell else ""
    lines = [
        f"Folder: {folder}",
        f"System: {platform.system()} {platform.machine()}{login}",
        f"Date: {datetime.now(tz=UTC).astimezone():%A, %d %B %Y}",
        _repository(folder, trusted=trusted),
    ]
    return "At the start of this conversation:\n" + "\n".join(f"- {line}" for line in lines)


def _repository(folder: Path, *, trusted: bool) -> str:
    top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if top is None:
        return "Git: this folder is not in a repository"
    branch = _branch(top / ".git")
    changes = _changes(folder) if trusted else None
    if changes is None:
        return f"Git: {branch}"
    if not changes:
        return f"Git: {branch}, nothing uncommitted"
    more = f" and {len(changes) - _MOST_CHANGES} more" if len(changes) > _MOST_CHANGES else ""
    return f"Git: {branch}, uncommitted: {', '.join(changes[:_MOST_CHANGES])}{more}"


def _branch(git: Path) -> str:
    """Return the branch by reading a file; nothing of the repository is run."""
    try:
        if git.is_file():  # a worktree: the file names the folder
            git = Path(git.read_text(encoding="utf-8").partition("gitdir: ")[2].strip())
        head = (git / "HEAD").read_text(encoding="utf-8", errors="replace")[:_LONGEST_HEAD].strip()
    except OSError:
        return "a repository"
    name = head.removeprefix("ref: refs/heads/")
    return f"branch {name}" if name != head else f"no branch, at {head[:12]}"


def _changes(folder: Path) -> list[str] | None:
    """Return the names of files that differ from the last commit; None if git cannot tell."""
    if shutil.which(_GIT[0]) is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [*_GIT, "status", "--porcelain=v1", "-z", "--untracked-files=normal"],
            cwd=folder,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return None
    entries = [entry for entry in done.stdout.decode(errors="replace").split("\0") if entry]
    return [" ".join(entry[3:].split()) for entry in entries if len(entry) > 3]  # noqa: PLR2004 - XY and a space

"""Commands that outlive the program that started them.

A program ends its commands before it exits. One that is killed cannot, so every command carries a mark in
its environment that names its owner; children inherit it. From the marks it can be found out later which
processes have lost their owner. Where the system does not show environments, none are found.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "SHELL_TOOL_MARK"
"""The variable that every process of a command has."""

_PROC = Path("/proc")
_PARTS = 3
_START = 19  # in `stat`, counted from behind the name of the program


@dataclass(frozen=True, slots=True)
class Orphan:
    """A process whose owner is gone.

    Attributes:
        pid: Its process id.
        group: The process group that it belongs to.
        command: What it runs.
    """

    pid: int
    group: int
    command: str


def new_mark() -> str:
    """Return a mark that no other command has, with this process as the owner."""
    return f"{token_hex(16)}:{os.getpid()}:{_started(os.getpid()) or 0}"


def find_orphans() -> list[Orphan]:
    """Return one process of each group that lost its owner, the leader if it is there."""
    found: dict[int, Orphan] = {}
    for pid, mark in _marked():
        if _has_owner(mark):
            continue
        try:
            group, command = os.getpgid(pid), _command(pid)
        except OSError:
            continue
        if command and (group not in found or pid == group):
            found[group] = Orphan(pid, group, command)
    return sorted(found.values(), key=lambda one: one.pid)


def _marked() -> Iterator[tuple[int, str]]:
    """Yield the processes that have a mark, and this program's home.

    An administrator can read the environments of all users, and one user may have several homes, as tests and
    containers do: nobody is asked to end commands that belong to another home.
    """
    wanted = f"{MARK}=".encode()
    home = os.environ.get("HOME")
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        mark = next((one for one in variables if one.startswith(wanted)), None)
        if mark is not None and (home is None or f"HOME={home}".encode() in variables):
            yield int(entry.name), mark.removeprefix(wanted).decode(errors="replace")


def _has_owner(mark: str) -> bool:
    """Say whether the owner is alive, or unknown; a process id is used again, so its start counts."""
    parts = mark.split(":")
    if len(parts) != _PARTS or not all(part.isdigit() for part in parts[1:]):
        return True
    started = _started(int(parts[1]))
    return started is not None and started == int(parts[2])


def _started(pid: int) -> int | None:
    """Return when a process started, in ticks since the system did; None if there is none."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[_START])


def _command(pid: int) -> str:
    words = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    return " ".join(word for word in words if word)

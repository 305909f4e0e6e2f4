"""Signals for all that a command has started, and for nothing else.

A command leads a process group of its own. Whoever leaves the group (`setsid` does) still has the
variable by which the command was marked, and on Linux is found by it. What gets away: a process that
cleared its environment as well; one that another service runs, such as a container; on other systems
everything that left the group.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "SHELL_TOOL_MARK"
_PROC = Path("/proc")
_ROUNDS = 10
_DEAD = ("Z", "X")


class ProcessGroup:
    """The processes of a command.

    Args:
        leader: The process that was started, which leads the group.
        mark: The value of the variable `MARK` in its environment.
    """

    def __init__(self, leader: int, mark: str) -> None:
        self._leader = leader
        self._mark = mark

    @property
    def is_alive(self) -> bool:
        """Whether a process of the group runs; ask only when the leader was waited for."""
        try:
            os.killpg(self._leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return _has_members(self._leader)

    def signal(self, number: int) -> None:
        """Send a signal to the group; processes of other users are not reached."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)

    def ask_escaped(self) -> None:
        """Ask processes that left the group to end."""
        for pid in _pids():
            self._signal_marked(pid, signal.SIGTERM)

    def end_escaped(self) -> None:
        """End processes that left the group, and those that they start meanwhile."""
        for _ in range(_ROUNDS):
            ended = [self._signal_marked(pid, signal.SIGKILL) for pid in _pids()]
            if not any(ended):
                return

    def _signal_marked(self, pid: int, number: int) -> bool:
        """Signal a process if it has the mark; it is held meanwhile, so that its number stays its own."""
        try:
            held = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            if not _has_mark(pid, self._mark):
                return False
            signal.pidfd_send_signal(held, number)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(held)


def _pids() -> Iterator[int]:
    """Yield the processes that there are, where the system tells."""
    if hasattr(os, "pidfd_open") and _PROC.is_dir():
        yield from (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _has_mark(pid: int, mark: str) -> bool:
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{MARK}={mark}".encode() in variables


def _has_members(group: int) -> bool:
    """Say whether a group has a process that is not a mere entry: nobody may be there to remove that."""
    pids = list(_pids())
    return not pids or any(_state(pid, group) not in _DEAD for pid in pids)


def _state(pid: int, group: int) -> str:
    """Return the letter for the state of a process, that of a dead one if it is not of the group."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return _DEAD[0]
    return fields[0] if fields[2] == str(group) else _DEAD[0]

"""Waiting for whatever happens to a process first: output, its exit, or somebody's word."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_PIECE = 64 * 1024
_TICK = 0.02


class Watch:
    """Watches a process and the pipe into which it writes.

    Attributes:
        at_end: Whether nobody can write into the pipe any more.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.at_end = False
        self._process = process
        self._output = process.stdout.fileno()
        self._lock = threading.Lock()
        self._woken, self._waker = os.pipe()
        self._exit = _exit_descriptor(process.pid)
        self._poll = select.poll()
        for descriptor in (self._output, self._woken, self._exit):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)

    @property
    def has_exited(self) -> bool:
        """Whether the process itself has ended; it is not waited for, so its number stays its own."""
        if not hasattr(os, "waitid"):  # not on every system; there the process is waited for
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # it was waited for
            return True

    def look(self, seconds: float | None) -> bytes:
        """Wait until something happens, at most so many seconds, and return output that is there."""
        if self._exit is None:
            seconds = _TICK if seconds is None else min(seconds, _TICK)
        ready = {descriptor for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000)}
        if self._woken in ready:
            os.read(self._woken, _PIECE)
        if self._exit in ready:
            self._poll.unregister(self._exit)
        return self._read() if self._output in ready else b""

    def wake(self) -> None:
        """Have `look` return, in whatever thread it waits."""
        with self._lock:
            if self._waker >= 0:
                os.write(self._waker, b"!")

    def close(self) -> None:
        """Let go of everything but the process."""
        with self._lock:
            for descriptor in (self._woken, self._waker, self._exit):
                if descriptor is not None:
                    os.close(descriptor)
            self._waker = -1
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> bytes:
        piece = os.read(self._output, _PIECE)
        if not piece:
            self.at_end = True
            self._poll.unregister(self._output)
        return piece


def _exit_descriptor(pid: int) -> int | None:
    """Return something to wait for a process with, where the system has it."""
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None

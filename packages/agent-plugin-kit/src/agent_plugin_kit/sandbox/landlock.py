"""Linux, second way, where user namespaces are switched off: Landlock for files, seccomp for the network.

A small program (`landlock_child`) takes its own rights away and becomes the command. Landlock knows only what
is allowed, so what is hidden is left out of a list of everything else; a file inside a workspace cannot be
left out, which is why this is the second way.
There is no network at all, not even hosts that are allowed elsewhere: Landlock could allow a port, but every
host has that port. Sockets are refused by seccomp, those of other programs on this machine included.

Processes of others cannot be traced, read through `/proc` or signalled (Landlock ABI 6 and later).
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_plugin_kit.sandbox.profile import Profile

_CREATE_RULESET: Final = 444
_VERSION_FLAG: Final = 1
_OLDEST: Final = 6  # signals of others are out of reach from here on
_MACHINES: Final = ("x86_64", "aarch64")
_MOST_ENTRIES: Final = 5000
_CHILD: Final = Path(__file__).with_name("landlock_child.py")


class Landlock:
    """The kernel's own access control, for one process and what it starts."""

    name = "Landlock"

    def arguments(self, profile: Profile, command: Sequence[str]) -> list[str]:
        """Return the command in the sandbox; it must be started in its folder."""
        settings = profile.settings
        limits = {
            "NOFILE": settings.open_files,
            "DATA": settings.memory_mb << 20,
            "FSIZE": settings.file_mb << 20,
            "CORE": 0,
        }
        if os.geteuid():
            limits["NPROC"] = settings.processes
        readable = [os.fspath(path) for path in _readable(profile)]
        writable = [os.fspath(path) for path in (*profile.roots, profile.temporary)]
        return [
            *(sys.executable, "-I", "-S", str(_CHILD)),
            ",".join(f"{name}:{most}" for name, most in limits.items()),
            *(str(len(readable)), *readable, str(len(writable)), *writable),
            *command,
        ]


def find_landlock() -> Landlock | str:
    """Return Landlock if this kernel has enough of it, or else why it cannot be used."""
    if sys.platform != "linux" or os.uname().machine not in _MACHINES:
        return "Landlock is not there"
    version = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    if version < _OLDEST:
        return f"this kernel has version {max(version, 0)} of Landlock, and {_OLDEST} is needed (Linux 6.12)"
    return Landlock()


def _readable(profile: Profile) -> Iterator[Path]:
    """Yield folders and files that together are everything but what is hidden, and our own Python."""
    yield from (Path(sys.prefix), Path(sys.base_prefix))
    home = Path(os.path.realpath(Path.home()))
    apart = {*profile.hidden, Path("/run"), Path("/tmp"), Path("/var/tmp"), Path("/dev")}  # noqa: S108
    apart |= {home} if profile.strict else set()
    around = {parent for path in (*apart, *profile.roots) for parent in path.parents}
    waiting, left = [Path("/")], _MOST_ENTRIES
    while waiting:
        folder = waiting.pop()
        for entry in sorted(folder.iterdir()) if os.access(folder, os.R_OK | os.X_OK) else ():
            left -= 1
            if entry in apart or entry.is_symlink():
                continue  # a link is judged by where it leads
            if entry in around and left > 0:
                waiting.append(entry)
            elif left > 0:
                yield entry

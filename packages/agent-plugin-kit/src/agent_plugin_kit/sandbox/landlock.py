"""Linux, second way, where user namespaces are switched off: Landlock for files, seccomp for the network.

This module is also a program: run by its path (`python -I -S landlock.py RULES COMMAND...`) it takes its own
rights away and becomes the command. Landlock knows only what is allowed, so what is hidden is left out of a
list of everything else; a file inside a workspace cannot be left out, which is why this is the second way.
There is no network at all, not even hosts that are allowed elsewhere: Landlock could allow a port, but every
host has that port. Sockets are refused by seccomp, those of other programs on this machine included.

Processes of others cannot be traced, read through `/proc` or signalled (Landlock ABI 6 and later).
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agent_plugin_kit.sandbox.profile import Profile

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_OLDEST = 6  # signals of others are out of reach from here on
_NO_NEW_PRIVS, _SECCOMP, _BOUNDING_DROP, _PARENT_DEATH = 38, 22, 24, 1
_FILTER = 2
_EXECUTE, _WRITE, _READ, _READ_FOLDER = 1, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11  # MAKE_CHAR, MAKE_BLOCK
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | 1 << 14 | 1 << 15  # TRUNCATE, IOCTL_DEV
_ALL = (1 << 16) - 1
_NET = 3
_SCOPES = 3  # abstract sockets, signals
_MACHINES = {"x86_64": (0xC000003E, 41, 425), "aarch64": (0xC00000B7, 198, 425)}
_X32 = 0x40000000
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | 1, 0x7FFF0000  # EPERM
_LAST_CAPABILITY = 63
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_MOST_ENTRIES = 5000


class Landlock:
    """The kernel's own access control, for one process and what it starts."""

    name = "Landlock"

    def arguments(self, profile: Profile, command: Sequence[str]) -> list[str]:
        """Return the command in the sandbox; it must be started in its folder."""
        settings = profile.settings
        rules = {
            "read": [os.fspath(path) for path in _readable(profile)],
            "write": [os.fspath(path) for path in (*profile.roots, profile.temporary)],
            "limits": {
                "RLIMIT_NOFILE": settings.open_files,
                "RLIMIT_NPROC": settings.processes if os.geteuid() else -1,
                "RLIMIT_DATA": settings.memory_mb << 20,
                "RLIMIT_FSIZE": settings.file_mb << 20,
                "RLIMIT_CORE": 0,
            },
        }
        return [sys.executable, "-I", "-S", __file__, json.dumps(rules), *command]


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
    from pathlib import Path

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


# What follows is run in the process that becomes the command.


def _system_call(libc: Any, *arguments: Any) -> int:
    result: int = libc.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _restrict_files(libc: Any, rules: dict[str, Any]) -> None:
    ruleset = struct.pack("=QQQ", _ALL, _NET, _SCOPES)
    descriptor = _system_call(libc, _CREATE_RULESET, ruleset, len(ruleset), 0)
    read = _EXECUTE | _READ | _READ_FOLDER
    allowed = [
        *((path, read) for path in rules["read"]),
        *((path, _ALL & ~_MAKE_DEVICES) for path in rules["write"]),
        *((path, _READ | _WRITE) for path in _DEVICES),
    ]
    for path, rights in allowed:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        is_folder = os.path.isdir(path)  # noqa: PTH112 - no pathlib in this process
        beneath = struct.pack("=Qi", rights if is_folder else rights & _FILE_RIGHTS, place)
        _system_call(libc, _ADD_RULE, descriptor, 1, beneath, 0)
        os.close(place)
    _system_call(libc, _RESTRICT_SELF, descriptor, 0)
    os.close(descriptor)


def _refuse_sockets(libc: Any) -> None:
    """Install a filter that refuses `socket` and io_uring, which could make one too."""
    machine, make_socket, ring = _MACHINES[os.uname().machine]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, machine),
        (answer, 0, 0, _KILL),
        (load, 0, 0, 0),
        (at_least, 3, 0, _X32),
        (equal, 2, 0, make_socket),
        (equal, 1, 0, ring),
        (answer, 0, 0, _ALLOW),
        (answer, 0, 0, _REFUSE),
    ]
    code = b"".join(struct.pack("=HBBI", *one) for one in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    if libc.prctl(_SECCOMP, _FILTER, filters, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def _drop_capabilities(libc: Any) -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_BOUNDING_DROP, capability, 0, 0, 0)
    header, none = struct.pack("=Ii", 0x20080522, 0), bytes(24)
    libc.capset(header, none)


def main() -> None:
    """Take rights away, and become the command."""
    import resource
    import signal

    rules, command = json.loads(sys.argv[1]), sys.argv[2:]
    for name, most in rules["limits"].items():
        if most >= 0:
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (limit, limit))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("the sandbox could not be set up")
    _restrict_files(libc, rules)
    _drop_capabilities(libc)
    _refuse_sockets(libc)
    try:
        os.execvp(command[0], command)  # noqa: S606 - what we were asked to become
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()

"""The program that takes its own rights away by Landlock and seccomp, and then becomes a command.

Run by its path, without our packages: `python -I -S landlock_child.py LIMITS COUNT READ... COUNT WRITE...
COMMAND...`. It is started for every command, so it imports as little as it can: what a usual program imports
takes longer than everything that is done here.
"""

import ctypes
import os
import resource
import sys
from _struct import pack

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SIGKILL = 9
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


def _system_call(libc: ctypes.CDLL, *arguments: object) -> int:
    result: int = libc.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _restrict_files(libc: ctypes.CDLL, readable: list[str], writable: list[str]) -> None:
    ruleset = pack("=QQQ", _ALL, _NET, _SCOPES)
    descriptor = _system_call(libc, _CREATE_RULESET, ruleset, len(ruleset), 0)
    read = _EXECUTE | _READ | _READ_FOLDER
    allowed = [
        *((path, read) for path in readable),
        *((path, _ALL & ~_MAKE_DEVICES) for path in writable),
        *((path, _READ | _WRITE) for path in _DEVICES),
    ]
    for path, rights in allowed:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        is_folder = os.path.isdir(path)  # noqa: PTH112 - no pathlib in this process
        beneath = pack("=Qi", rights if is_folder else rights & _FILE_RIGHTS, place)
        _system_call(libc, _ADD_RULE, descriptor, 1, beneath, 0)
        os.close(place)
    _system_call(libc, _RESTRICT_SELF, descriptor, 0)
    os.close(descriptor)


def _refuse_sockets(libc: ctypes.CDLL) -> None:
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
    code = b"".join(pack("=HBBI", *one) for one in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filters = pack("@HP", len(program), ctypes.addressof(buffer))
    if libc.prctl(_SECCOMP, _FILTER, filters, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_BOUNDING_DROP, capability, 0, 0, 0)
    header, none = pack("=Ii", 0x20080522, 0), bytes(24)
    libc.capset(header, none)


def main() -> None:
    """Take rights away, and become the command."""
    limits, *rest = sys.argv[1:]
    readable, rest = _counted(rest)
    writable, command = _counted(rest)
    for one in limits.split(","):
        name, most = one.split(":")
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        limit = int(most) if hard == resource.RLIM_INFINITY else min(int(most), hard)
        resource.setrlimit(kind, (limit, limit))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PARENT_DEATH, _SIGKILL, 0, 0, 0)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("the sandbox could not be set up")
    _restrict_files(libc, readable, writable)
    _drop_capabilities(libc)
    _refuse_sockets(libc)
    try:
        os.execvp(command[0], command)  # noqa: S606 - what we were asked to become
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


def _counted(words: list[str]) -> tuple[list[str], list[str]]:
    """Return as many words as the first one says, and those behind them."""
    count = int(words[0]) + 1
    return words[1:count], words[count:]


if __name__ == "__main__":
    main()

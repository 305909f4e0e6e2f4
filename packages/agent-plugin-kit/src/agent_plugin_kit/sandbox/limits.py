"""How much a sandboxed command may use: processes, memory, open files, the size of a file.

Most of it are resource limits, which `sh` sets inside the sandbox just before it becomes the command: set
outside, the number of processes would count everything that the user runs. The kernel does not hold root to
a number of processes at all; where an agent runs as root, a control group does it, if the machine lets us
make one.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_plugin_kit.sandbox.profile import SandboxSettings

_CGROUP: Final = Path("/sys/fs/cgroup")
# POSIX counts a file's size in 512 bytes. `-u` is the number of processes in bash, `-p` in dash.
_ULIMIT: Final = (
    "ulimit -c 0; ulimit -n {open_files}; ulimit -f {blocks}; ulimit -d {memory} 2>/dev/null; "
    "ulimit -u {processes} 2>/dev/null || ulimit -p {processes} 2>/dev/null; "
    'exec "$0" "$@"'
)


def limited(settings: SandboxSettings, command: Sequence[str], *, before: str = "") -> list[str]:
    """Return a command that holds itself to the limits; for inside the sandbox.

    Args:
        before: What the shell does first.
    """
    script = before + _ULIMIT.format(
        open_files=settings.open_files,
        blocks=settings.file_mb * 2048,
        memory=settings.memory_mb * 1024,
        processes=settings.processes,
    )
    return ["/bin/sh", "-c", script, *command]


def counting(settings: SandboxSettings) -> str:
    """Return what a shell does to be in a control group, for root; others are held by the limits above."""
    group = None if os.geteuid() else _control_group(settings.processes)
    return "" if group is None else f"echo $$ > {group}/cgroup.procs; "


def can_count_processes() -> bool:
    """Say whether the number of processes can be limited for this user."""
    return os.geteuid() != 0 or _control_group(1024) is not None


@lru_cache(maxsize=8)
def _control_group(processes: int) -> Path | None:
    """Return a control group of this process's sandboxes, made once; None if the machine does not let us."""
    for parent in (_CGROUP / "pids", _CGROUP):
        group = parent / f"agent-sandbox-{os.getpid()}-{processes}"
        try:
            group.mkdir(exist_ok=True)
            (group / "pids.max").write_text(str(processes))
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        atexit.register(_remove, group)
        return group
    return None


def _remove(group: Path) -> None:
    with suppress(OSError):  # a command that still runs keeps it
        group.rmdir()

"""Which process owns a lease, and by which clock: how others find out whether it is still alive.

A wall clock cannot say that: it may be ahead or behind, and it jumps. These can:

- On one machine since one boot, all processes see the same monotonic clock, in containers too. An owner
states
  its deadline by that clock.
- A process that has ended is recognised by its number and its start time, by processes in the same namespace.
  A number that is missing in another namespace says nothing. Neither does a start time by another clock: in a
  time namespace, all processes seem to have begun at other times.
- Of a process on another machine, others only know whether it has renewed its lease. A process that is
refused
  records by its own clock when it first saw that lease, for itself and for all later ones on its machine.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

_OWNER = re.compile(r"process (\d+) on (.+)$")
_MOST_SIGHTS = 8
_ENDED = ("Z", "X")  # states of a process that has ended and whose parent has not asked yet


class Moment(NamedTuple):
    """What time it is for a store.

    Attributes:
        now: In seconds since 1970; rows are dated by it.
        clock: The name of the clock by which leases end; two readings of one name can be compared.
        ticks: What that clock shows.
    """

    now: float
    clock: str
    ticks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process among those of all machines, as far as the system can say.

    Attributes:
        host: The name of its machine.
        machine: Distinguishes machines with the same name.
        boot: Since which start of the machine it runs.
        namespace: Where its number counts: processes of another container have numbers of their own.
        pid: Its number.
        start: When it began, since the machine did; a number is used again, later.
        time: Where that time counts: a container may have a clock of its own since the start of the machine.
    """

    host: str
    machine: str = ""
    boot: str = ""
    namespace: str = ""
    pid: int
    start: int | None = None
    time: str = ""

    def is_gone(self) -> bool:
        """Say whether it has certainly ended; False if that cannot be seen from here."""
        here = this_process()
        if self.boot and here.boot and self.boot != here.boot:
            return bool(self.machine) and (self.machine, self.host) == (here.machine, here.host)
        if sys.platform == "linux":
            return bool(self.namespace) and self.namespace == here.namespace and self._has_ended()
        return self.host == here.host and self._has_ended()

    def _has_ended(self) -> bool:
        if not _exists(self.pid):
            return True
        state, start = _state(self.pid)
        if state in _ENDED:
            return True
        comparable = bool(self.time) and self.time == this_process().time and None not in (start, self.start)
        return comparable and start != self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What an owner of a lease states about itself, so that others can check whether it is alive.

    Attributes:
        process: Which process it is.
        clock: The clock of `due`.
        due: Until when it holds it, unless it renews that.
        lasts: For how many seconds it holds it each time.
        seen: When others, by clocks of their own, saw this proof first; a renewal has none.
    """

    process: Process
    clock: str
    due: float
    lasts: float
    seen: dict[str, float] = field(default_factory=dict)

    def is_good(self, moment: Moment) -> bool:
        """Say whether it still holds it."""
        if self.process.is_gone():
            return False
        left = self.due - moment.ticks
        if (
            self.clock == moment.clock and left <= self.lasts
        ):  # more is impossible on this clock: it was set back
            return left > 0
        seen = self.seen.get(moment.clock)
        return seen is None or moment.ticks - seen < self.lasts

    def sighted(self, moment: Moment) -> Proof | None:
        """Return the proof with the note that it was seen now; None if there is nothing new to note."""
        if self.clock == moment.clock and self.due - moment.ticks <= self.lasts:
            return None
        if self.seen.get(moment.clock, moment.ticks + 1) <= moment.ticks:
            return None
        others = [(name, ticks) for name, ticks in self.seen.items() if name != moment.clock]
        return replace(self, seen=dict([*others[1 - _MOST_SIGHTS :], (moment.clock, moment.ticks)]))

    def to_text(self) -> str:
        """Return it as one line."""
        facts = {
            "process": _facts(self.process),
            "clock": self.clock,
            "due": self.due,
            "lasts": self.lasts,
            "seen": self.seen,
        }
        return json.dumps(facts, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Proof | None:
        """Read it; None if it is none, as of former versions."""
        try:
            found = json.loads(text)
            process = Process(**found.pop("process"))
            seen = {str(name): float(ticks) for name, ticks in found.pop("seen").items()}
            return cls(process=process, seen=seen, **found)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


@lru_cache(maxsize=32)  # ours is stated with every lease
def _facts(process: Process) -> dict[str, Any]:
    return asdict(process)


def this_process() -> Process:
    """Return the process that we are."""
    return _identity(os.getpid())


def boot_clock() -> str:
    """Return the name of the clock that all processes of this machine share; "" if none is known."""
    return _boot_clock(os.getpid())


def is_gone_by_name(owner: str) -> bool:
    """Say whether an owner that has no proof is named after a process of this machine that has ended."""
    found = _OWNER.search(owner)
    return found is not None and found[2] == socket.gethostname() and not _exists(int(found[1]))


@cache  # a process that was forked off has another number
def _identity(pid: int) -> Process:
    return Process(
        host=socket.gethostname(),
        machine=_line("/etc/machine-id"),
        boot=_line("/proc/sys/kernel/random/boot_id"),
        namespace=_link("/proc/self/ns/pid"),
        pid=pid,
        start=_state(pid)[1],
        time=_link("/proc/self/ns/time"),
    )


@cache
def _boot_clock(pid: int) -> str:
    here = _identity(pid)
    return f"{here.boot} {here.time}" if here.boot else ""


def _exists(pid: int) -> bool:
    if sys.platform == "win32":  # asking by signal 0 would interrupt the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _state(pid: int) -> tuple[str, int | None]:
    """Return the state of a process and when it began; nothing where the system does not say."""
    # The name of the program stands in brackets and may have anything in it, brackets as well.
    fields = _line(f"/proc/{pid}/stat").rpartition(")")[2].split()
    start = fields[19:20]  # see proc(5)
    return (fields[0], int(start[0])) if start else ("", None)


def _line(path: str) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return Path(path).read_text(encoding="utf-8").strip()
    return ""


def _link(path: str) -> str:
    with suppress(OSError):
        return str(Path(path).readlink())
    return ""

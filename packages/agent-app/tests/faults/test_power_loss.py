"""When the power goes, what was flushed is there, and what was not is there in part, in any order, or torn.

A conversation is recorded as the writes and flushes that it made. Then the power is cut, on paper, after any
of them: each file has what was flushed, and of every later write some sectors or none. The store must open on
that and have all that was acknowledged by then, except events at the end that nothing was flushed after.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_app.errors import StoreError
from agent_app.store import open_store
from agent_app.testing import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from faults.conftest import Bench

CALLS = "pwrite64,write,fdatasync,fsync,ftruncate,unlink"
SECTOR = 512
_CALL = re.compile(
    r'^\d+ +(\w+)\((?:\d+<((?:\\x\w\w)*)>)?(?:, )?(?:"((?:\\x\w\w)*)")?(?:, )?(\d*)(?:, )?(\d*)\)'
)


@dataclass(frozen=True, slots=True)
class Call:
    """One system call: what was done to which file."""

    name: str
    file: str
    data: bytes
    numbers: tuple[int, ...]


@dataclass(slots=True)
class File:
    """What is certainly on the disk, and the writes that may or may not be."""

    flushed: bytearray = field(default_factory=bytearray)
    pending: list[Call] = field(default_factory=list)

    def flush(self) -> None:
        for call in self.pending:
            apply(self.flushed, call)
        self.pending.clear()

    def fail_to_flush(self, chance: random.Random) -> None:
        """The system gives up on what it could not write: no later flush brings it to the disk."""
        self.flushed = bytearray(self.after_loss(chance))
        self.pending.clear()

    def after_loss(self, chance: random.Random) -> bytes:
        content = bytearray(self.flushed)
        for call in self.pending:
            for part in survivors(call, chance):
                apply(content, part)
        return bytes(content)


def apply(content: bytearray, call: Call) -> None:
    if call.name == "ftruncate":
        size = call.numbers[0]
        content[size:] = bytes(max(0, size - len(content)))
        return
    offset = call.numbers[1]
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(call.data)] = call.data


def survivors(call: Call, chance: random.Random) -> Iterable[Call]:
    """Return what is left of a write that was not flushed: all, nothing, or some of its sectors."""
    fate = chance.random()
    if fate < 1 / 3 or call.name == "ftruncate":
        return [call] if fate < 2 / 3 else []
    if fate < 2 / 3:
        return []
    parts = range(0, len(call.data), SECTOR)
    cut = [
        Call(call.name, call.file, call.data[at : at + SECTOR], (SECTOR, call.numbers[1] + at))
        for at in parts
    ]
    return [part for part in cut if chance.random() < 1 / 2]


def read_calls(log: Path) -> list[Call]:
    """Return the calls of a recording that concern the store or the ledger."""
    found = []
    for line in log.read_text(encoding="ascii").splitlines():
        parsed = _CALL.match(line)
        if parsed is None:
            continue
        name, path, data, *numbers = parsed.groups()
        failed = " = -1 " in line
        if failed and name not in ("fdatasync", "fsync"):
            continue
        raw = bytes.fromhex((data or "").replace("\\x", ""))
        file = raw if name == "unlink" else bytes.fromhex((path or "").replace("\\x", ""))
        numbered = tuple(int(number) for number in numbers if number)
        found.append(Call("failed flush" if failed else name, Path(file.decode()).name, raw, numbered))
    return [call for call in found if call.file.startswith(("sessions.db", "ledger"))]


def lose_power(calls: Iterable[Call], folder: Path, chance: random.Random, *, flushes: bool = True) -> None:
    """Write to a folder what is left of the files, and the ledger as far as it binds the store."""
    files: dict[str, File] = {}
    noted = b""
    for call in calls:
        file = files.setdefault(call.file, File())
        if call.file == "ledger":
            noted += call.data
        elif call.name in ("pwrite64", "ftruncate"):
            file.pending.append(call)
        elif call.name == "unlink":
            del files[call.file]
        elif call.name in ("fdatasync", "fsync") and flushes:
            file.flush()
        elif call.name == "failed flush":
            file.fail_to_flush(chance)
    for name, file in files.items():
        if name != "ledger" and not name.endswith("-shm"):
            (folder / name).write_bytes(file.after_loss(chance))
    (folder / "ledger").write_text("\n".join(binding(noted.decode().split("\n"))), encoding="utf-8")


def binding(lines: list[str]) -> list[str]:
    """Return the notes without the events at the end, which are made safe by the next turn only."""
    noted = [line for line in lines if line]
    while noted and json.loads(noted[-1])["kind"] == "logged":
        noted.pop()
    return noted


def record(bench: Bench, *inject: str) -> list[Call]:
    """Return what a conversation did to its files, with faults if some are to be injected."""
    recording = bench.anew("recorded")
    log = recording.folder / "calls.log"
    options = ("-f", "-y", "-xx", "-s", "100000", "-o", str(log), "-e", f"trace={CALLS}")
    before = ("strace", *options, *inject)
    turns = "4" if bench.long else "2"
    status, _, errors = recording.run(
        "workload.py", recording.url, str(recording.ledger), turns, before=before
    )
    assert status == 0, errors
    calls = read_calls(log)
    assert {"pwrite64", "write", "fdatasync", "unlink"} <= {call.name for call in calls}
    return calls


@pytest.mark.usefixtures("strace")
def test_what_was_acknowledged_survives_a_loss_of_power_at_any_moment(bench: Bench) -> None:
    calls, chance = record(bench), random.Random(1)
    for number in range(1500 if bench.long else 40):
        case = bench.anew(str(number))
        lose_power(calls[: chance.randint(1, len(calls))], case.folder, chance)

        case.examine()


@pytest.mark.usefixtures("strace")
def test_a_store_that_never_flushed_would_be_found_out(bench: Bench) -> None:
    calls, chance = record(bench), random.Random(1)
    found = 0
    for number in range(10):
        case = bench.anew(str(number))
        lose_power(calls[: len(calls) // 2], case.folder, chance, flushes=False)
        try:
            store = open_store(case.url)
            with Ledger(case.ledger) as ledger:
                found += not ledger.compare(store).holds
            store.close()
        except StoreError:
            found += 1

    assert found == 10


@pytest.mark.usefixtures("strace")
def test_what_was_acknowledged_after_a_failed_flush_survives_a_loss_of_power_as_well(bench: Bench) -> None:
    chance = random.Random(1)
    firsts = range(6, max(bench.numbers("fdatasync", 2)), 2) if bench.long else [6, 9]
    for first in firsts:
        disturbed = bench.anew(f"from {first}")
        calls = record(disturbed, "-e", f"inject=fdatasync:error=EIO:when={first}..{first + 5}")
        for number in range(15):
            case = disturbed.anew(str(number))
            lose_power(calls[: chance.randint(1, len(calls))], case.folder, chance)

            case.examine()

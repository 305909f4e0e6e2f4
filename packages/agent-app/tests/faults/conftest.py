"""What the fault tests share: processes to disturb, a look at what they left behind, and a count of it all.

The tests are short in plain pytest. `FAULTS=long` (`make test-faults`) disturbs every single write instead
of some. Every process has a time limit, and is ended by the test that started it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_app.store import open_store
from agent_app.store.base import Changes
from agent_app.store.leases import this_process
from agent_app.testing import Ledger
from agent_core import AgentCore, Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_app.store.base import SessionStore

HERE = Path(__file__).parent
LONG = os.environ.get("FAULTS") == "long"
TURNS = "2"
SECONDS = 120
"""How long one process may take before the test fails; it needs a second or two."""


@dataclass(slots=True)
class Tally:
    """What all tests tried and found."""

    cases: int = 0
    acknowledged: int = 0
    lost: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    """How often the undisturbed conversation makes a system call."""


_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TALLY] = Tally()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash[_TALLY]
    if tally.cases:
        terminalreporter.write_line(
            f"faults: {tally.cases:,} cases tried, {tally.acknowledged:,} rows acknowledged, "
            f"{tally.lost:,} rows lost"
        )


@dataclass(slots=True)
class Bench:
    """A folder with a store and a ledger, and the processes that work on them."""

    folder: Path
    tally: Tally
    long: bool = LONG
    counted: int = 0
    """How many acknowledged rows the tally has from here already: a store may be examined again."""
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address of the store."""
        return f"sqlite:///{self.folder / 'sessions.db'}"

    @property
    def ledger(self) -> Path:
        """Where acknowledgements are noted; there is a file, if only an empty one."""
        path = self.folder / "ledger"
        path.touch()
        return path

    def anew(self, name: str) -> Bench:
        """Return a bench with a folder of its own."""
        folder = self.folder / name
        folder.mkdir()
        return Bench(folder, self.tally, self.long, running=self.running)

    def start(self, script: str, *arguments: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start a script of this folder; its output can be read."""
        process = subprocess.Popen(
            [*before, sys.executable, str(HERE / script), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.running.append(process)
        return process

    def run(self, script: str, *arguments: str, before: Sequence[str] = ()) -> tuple[int, str, str]:
        """Run a script to its end; return its exit status (negative: the signal), output and errors."""
        process = self.start(script, *arguments, before=before)
        output, errors = process.communicate(timeout=SECONDS)
        self.running.remove(process)
        return process.returncode, output, errors

    def converse(self, call: str, fault: str) -> tuple[int, str, str]:
        """Run the conversation of `workload.py` with a fault in some of its system calls."""
        return self._converse(*injecting(call, fault))

    def _converse(self, *before: str) -> tuple[int, str, str]:
        return self.run("workload.py", self.url, str(self.ledger), TURNS, before=before)

    def numbers(self, call: str, some: int, *, step: int = 1) -> list[int]:
        """Return the numbers of a system call in a calm conversation: each *step*-th, or if short, some.

        Of some, the first and the last are always among them.
        """
        count = self.tally.calls.get(call) or self._count(call)
        self.tally.calls[call] = count
        if self.long:
            return list(range(1, count + 1, step))
        return sorted({1 + (count - 1) * part // (some - 1) for part in range(some)})

    def _count(self, call: str) -> int:
        calm, log = self.anew(f"calm-{call}"), self.folder / "calm.log"
        status, _, errors = calm._converse("strace", "-f", "-o", str(log), "-e", f"trace={call}")
        assert status == 0, errors
        return log.read_text(encoding="latin-1").count(f" {call}(")

    def examine(self, *, cases: int = 1) -> None:
        """Check that the store is sound, has what was acknowledged, and can be written on."""
        store = open_store(self.url)
        try:
            self._find_everything(store, count=cases)
            for session_id in list(store):
                go_on(store, session_id)
            self._find_everything(store, count=0)
        finally:
            store.close()

    def _find_everything(self, store: SessionStore, *, count: int) -> None:
        with Ledger(self.ledger) as ledger:
            comparison = ledger.compare(store)
        if count:
            self.tally.cases += count
            self.tally.acknowledged += comparison.acknowledged - self.counted
            self.counted = comparison.acknowledged
            self.tally.lost += len(comparison.lost)
        assert store.check(deep=True).problems == ()
        assert comparison.lost == ()
        assert comparison.wrong == ()


def go_on(store: SessionStore, session_id: str) -> None:
    """Do what an application does with a session after a crash: take it, deliver what waits, say more."""
    stored = store.load(session_id)
    lease = store.acquire(session_id, this_process(), seconds=600)
    waiting = store.inputs(session_id)
    said = [Message.from_dict(dict(each.message)) for each in waiting]
    changes = Changes(
        take_inputs=[each.seq for each in waiting],
        results=list(store.open_intents(session_id)),
        use_approvals=[a.id for a in store.approvals(session_id) if a.decision and not a.used],
        events=[{"type": "went_on"}],
    )
    session = AgentCore().append_messages(stored.session, [*said, Message("assistant", "Where were we?")])
    saved = store.save(session, stored, lease=lease, changes=changes)
    store.release(lease)
    assert store.load(session_id) == saved
    assert store.inputs(session_id) == []


@pytest.fixture
def bench(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[Bench]:
    """An empty store, and an end for every process that a test leaves behind."""
    made = Bench(tmp_path, pytestconfig.stash[_TALLY])
    yield made
    for process in made.running:
        process.kill()
        process.communicate(timeout=SECONDS)


def injecting(call: str, fault: str) -> tuple[str, ...]:
    """Return how to start a process so that a fault comes with some of its system calls."""
    return ("strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:{fault}")


@cache
def _strace_problem() -> str | None:
    """Return why faults cannot be put into system calls here, if they cannot."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    probe = [*injecting("fdatasync", "error=EIO:when=1..2"), sys.executable, "-c", ""]
    tried = subprocess.run(probe, capture_output=True, text=True, timeout=SECONDS, check=False)
    return f"strace does not work here: {tried.stderr.strip()[:200]}" if tried.returncode else None


@pytest.fixture
def strace() -> None:
    """Skip where no faults can be put into system calls."""
    problem = _strace_problem()
    if problem is not None:
        pytest.skip(problem)

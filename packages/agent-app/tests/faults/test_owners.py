"""One writer per session: whoever lost the right while he was stopped is refused when he goes on."""

from __future__ import annotations

import json
import os
import signal
from typing import IO, TYPE_CHECKING, cast

import pytest

from agent_app.errors import SessionHeld
from agent_app.store import open_store
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import AgentCore

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import Popen

    from faults.conftest import Bench

MANY = 100_000
EVENING = 1e9
"""A time at which everybody goes home; see `owner.py`."""


class Clock:
    """The time of all processes, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 1000.0
        self.advance(0)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        written = self.path.with_suffix(".new")
        written.write_text(str(self.now), encoding="ascii")
        written.replace(self.path)


class Contest:
    """Processes that want to write one session."""

    def __init__(self, bench: Bench, *, leases: bool = True) -> None:
        self.bench = bench
        self.clock = Clock(bench.folder / "clock")
        self.leases = "leases" if leases else "no leases"
        self.processes: list[Popen[str]] = []
        database = SQLiteDatabase(bench.url, clock=lambda: self.clock.now, ticks=lambda: self.clock.now)
        self.store = SqlStore(database)
        self.store.create(AgentCore().create_session("shared"))

    def enter(self, *, saves: int, stops: int = 0) -> Popen[str]:
        name = f"owner {len(self.processes)}"
        settings = [str(self.clock.path), name, str(saves), str(stops), self.leases]
        process = self.bench.start("owner.py", self.bench.url, str(self.bench.ledger), *settings)
        self.processes.append(process)
        return process

    def let_others_take_over(self) -> None:
        """Let the lease of a stopped owner run out, and return once someone else has it."""
        token = self.token()
        self.clock.advance(11)
        for _ in range(MANY):
            if self.token() != token:
                return
        pytest.fail("nobody took the session over")

    def token(self) -> int:
        """Return how often the session was taken."""
        with self.store.writing() as transaction:
            token: int = transaction.rows("SELECT token FROM leases WHERE session = 'shared'")[0][0]
        return token

    def finish(self) -> list[dict[str, list[str]]]:
        """Wait for all, and return what each was able to write and what was refused."""
        self.store.close()
        told = []
        for process in self.processes:
            _, errors = process.communicate(timeout=1_800)
            assert process.returncode == 0, errors
            self.bench.running.remove(process)
            told.append(json.loads(errors))
        return told

    def assert_written_once(self, told: list[dict[str, list[str]]]) -> None:
        """What was acknowledged stands in the session once, in some order, and what was refused does not."""
        store = open_store(self.bench.url)
        said = [str(message.content) for message in store.load("shared").session.messages]
        store.close()
        assert sorted(said) == sorted(text for each in told for text in each["saved"])
        assert not {text for each in told for text in each["refused"]} & set(said)


def wait_until_stopped(process: Popen[str]) -> None:
    found = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert found is not None
    assert found.si_status == signal.SIGSTOP


def next_word(process: Popen[str]) -> str:
    return cast("IO[str]", process.stdout).readline().strip()


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_an_owner_stopped_past_his_lease_is_refused_and_the_others_write_on(bench: Bench, count: int) -> None:
    for number in range(10 if bench.long else 1):
        case, rounds = bench.anew(str(number)), 8 if bench.long else 3
        contest = Contest(case)
        stopping = contest.enter(saves=1, stops=rounds)
        for _ in range(count - 1):
            contest.enter(saves=MANY)
        for _ in range(rounds):
            wait_until_stopped(stopping)
            contest.let_others_take_over()

            os.kill(stopping.pid, signal.SIGCONT)

            assert next_word(stopping) == "LeaseLost"
        assert next_word(stopping) == "saved"
        contest.clock.advance(EVENING)
        told = contest.finish()
        assert len(told[0]["refused"]) == rounds
        contest.assert_written_once(told)
        case.examine(cases=rounds)


def test_an_owner_stopped_within_his_lease_keeps_it_and_the_others_learn_who_he_is(bench: Bench) -> None:
    contest = Contest(bench)
    stopping = contest.enter(saves=1, stops=1)
    wait_until_stopped(stopping)
    contest.clock.advance(9)

    with pytest.raises(SessionHeld, match="in use by owner 0"):
        contest.store.acquire("shared", "somebody else", seconds=10)

    os.kill(stopping.pid, signal.SIGCONT)
    assert next_word(stopping) == "saved"
    contest.assert_written_once(contest.finish())


def test_a_session_can_be_taken_over_from_an_owner_who_is_stopped(bench: Bench) -> None:
    contest = Contest(bench)
    stopping = contest.enter(saves=1, stops=1)
    wait_until_stopped(stopping)

    lease = contest.store.acquire("shared", "somebody else", seconds=10, take_over=True)
    contest.store.release(lease)

    os.kill(stopping.pid, signal.SIGCONT)
    assert next_word(stopping) == "LeaseLost"
    assert next_word(stopping) == "saved"
    contest.assert_written_once(contest.finish())


@pytest.mark.parametrize("leases", [True, False])
def test_processes_that_hammer_one_session_leave_every_save_in_it_once(bench: Bench, leases: bool) -> None:
    saves = 150 if bench.long else 6
    contest = Contest(bench, leases=leases)
    for _ in range(6):
        contest.enter(saves=saves)

    told = contest.finish()

    contest.assert_written_once(told)
    bench.examine(cases=6 * saves)

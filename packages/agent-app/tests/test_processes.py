"""Whether the owner of a session lives, with real processes, and clocks that no one should trust."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import IO, TYPE_CHECKING, cast

import pytest

from agent_app.errors import SessionHeld
from agent_app.store.processes import Moment, Process, Proof, boot_clock, this_process
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import AgentCore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

linux = pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell enough of its processes")
YEARS = 10 * 365 * 86400.0
OWNER = """
import sys, time
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase

url, shift, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
store = SqlStore(SQLiteDatabase(url, clock=lambda: time.time() + shift))
lease = store.acquire("s", "the owner", seconds=seconds)
print(lease.token, flush=True)
sys.stdin.read()
store.release(lease)
"""


class Site:
    """A store with one session, and processes that own it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"
        self.running: list[subprocess.Popen[str]] = []
        self.stores: list[SqlStore] = []
        self.store().create(AgentCore().create_session("s"))

    def store(
        self, *, clock: Callable[[], float] = time.time, ticks: Callable[[], float] | None = None
    ) -> SqlStore:
        self.stores.append(SqlStore(SQLiteDatabase(self.url, clock=clock, ticks=ticks)))
        return self.stores[-1]

    def owner(self, *, shift: float = 0.0, seconds: float = 30.0) -> subprocess.Popen[str]:
        """Start a process that owns the session until its input ends, with a clock that is wrong."""
        command = [sys.executable, "-c", OWNER, self.url, str(shift), str(seconds)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.running.append(process)
        assert cast("IO[str]", process.stdout).readline().strip().isdigit()
        return process

    def change_proof(self, change: Callable[[Proof], Proof]) -> None:
        """Let the owner be another one."""
        store = self.store()
        with store.writing() as transaction:
            name, _, text = transaction.rows("SELECT owner FROM leases")[0][0].partition("\n")
            proof = Proof.from_text(text)
            assert proof is not None
            transaction.run("UPDATE leases SET owner = ?", f"{name}\n{change(proof).to_text()}")

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.communicate()
        for store in self.stores:
            store.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def is_taken(store: SqlStore) -> bool:
    try:
        store.acquire("s", "a newcomer", seconds=30)
    except SessionHeld:
        return False
    return True


@linux
@pytest.mark.parametrize(
    ("whose", "shift"), [("owner", -YEARS), ("owner", -31.0), ("newcomer", 31.0), ("newcomer", YEARS)]
)
def test_a_wrong_clock_takes_no_session_from_a_process_that_lives(
    site: Site, whose: str, shift: float
) -> None:
    site.owner(shift=shift if whose == "owner" else 0.0)
    newcomer = site.store(clock=lambda: time.time() + (shift if whose == "newcomer" else 0.0))

    assert not is_taken(newcomer)
    assert newcomer.holder("s") is not None
    stored = newcomer.load("s")
    with pytest.raises(SessionHeld, match="the owner"):
        newcomer.save(AgentCore().add_message(stored.session, "user", "Hi"), stored)


@linux
def test_a_clock_that_jumps_takes_no_session(site: Site) -> None:
    site.owner()
    jumps = [0.0]
    newcomer = site.store(clock=lambda: time.time() + jumps[-1])
    for jump in (0.0, YEARS, -YEARS, 3600.0):
        jumps.append(jump)
        assert not is_taken(newcomer)


@linux
@pytest.mark.parametrize("shift", [0.0, YEARS, -YEARS])
@pytest.mark.parametrize("is_asked_about", [True, False], ids=["", "a zombie"])
def test_a_process_that_was_killed_blocks_no_one(site: Site, shift: float, is_asked_about: bool) -> None:
    owner = site.owner(shift=shift, seconds=YEARS)
    owner.kill()
    if is_asked_about:
        owner.wait()
    else:  # its parent has not asked how it ended
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)

    assert is_taken(site.store())


@linux
def test_a_process_that_is_stopped_past_its_time_loses_the_session(site: Site) -> None:
    owner = site.owner(seconds=0.5)
    owner.send_signal(signal.SIGSTOP)
    newcomer = site.store()
    for _ in range(100_000):
        if is_taken(newcomer):
            break
    else:
        pytest.fail("nobody can take it")

    owner.send_signal(signal.SIGCONT)


def test_a_person_can_take_over_from_a_living_owner(site: Site) -> None:
    site.owner()

    assert site.store().acquire("s", "a person", seconds=30, take_over=True).owner == "a person"


@linux
def test_a_process_of_another_container_is_not_dead_for_having_no_number_here(site: Site) -> None:
    owner = site.owner()
    owner.kill()
    owner.wait()
    site.change_proof(lambda proof: replace(proof, process=replace(proof.process, namespace="pid:[1]")))

    assert not is_taken(site.store())


@linux
def test_a_process_of_another_container_does_not_own_it_for_having_our_name(site: Site) -> None:
    store = site.store()
    store.acquire("s", "the owner", seconds=30)
    assert store.acquire("s", "the owner", seconds=30).token == 2
    site.change_proof(lambda proof: replace(proof, process=replace(proof.process, namespace="pid:[1]")))

    with pytest.raises(SessionHeld):
        store.acquire("s", "the owner", seconds=30)


@linux
def test_a_number_that_is_used_again_is_another_process() -> None:
    here = this_process()

    assert not here.is_gone()
    assert replace(here, start=1).is_gone()


NEWCOMER = """
import sys
from agent_app.errors import SessionHeld
from agent_app.store import open_store

store = open_store(sys.argv[1])
try:
    store.acquire("s", "a newcomer", seconds=30)
    print("taken")
except SessionHeld:
    print("held")
store.close()
"""
SHIFTED = (
    "unshare",
    "--user",
    "--map-root-user",
    "--time",
    "--fork",
    "--boottime",
    "100000",
    "--monotonic",
    "100000",
)


def can_shift() -> bool:
    """Say whether this machine lets us have a clock of our own since its start."""
    try:
        return subprocess.run([*SHIFTED, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@linux
@pytest.mark.skipif(not can_shift(), reason="this machine has no time namespaces for us")
@pytest.mark.parametrize("is_alive", [True, False])
def test_a_container_with_another_clock_knows_who_lives(site: Site, is_alive: bool) -> None:
    owner = site.owner()
    if not is_alive:
        owner.kill()
        owner.wait()

    command = [*SHIFTED, sys.executable, "-c", NEWCOMER, site.url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert said == ("held" if is_alive else "taken")


@linux
def test_a_start_time_by_another_clock_says_nothing() -> None:
    here = this_process()

    assert replace(here, start=1).is_gone()
    assert not replace(here, start=1, time="time:[1]").is_gone()
    assert not replace(here, start=1, time="").is_gone()  # of a former version


@linux
def test_a_machine_that_was_restarted_has_none_of_its_processes() -> None:
    here = replace(this_process(), machine="this one")
    before = replace(here, boot="the last one")

    assert not before.is_gone() or this_process().machine == "this one"
    known = replace(this_process(), boot="the last one")
    assert known.is_gone() is bool(known.machine)
    assert not replace(known, machine="another").is_gone()
    assert not replace(known, host="another").is_gone()


def test_without_proof_no_process_counts_as_dead() -> None:
    if sys.platform == "linux":
        assert not Process(host=this_process().host, pid=2**22 + 1).is_gone()
    assert not Process(host="another", pid=2**22 + 1).is_gone()


ELSEWHERE = Process(host="another", machine="another", boot="another", namespace="pid:[1]", pid=1)


class TestAnotherMachine:
    """Its clock says nothing here; what counts is for how long we have seen nothing new of it."""

    @pytest.fixture
    def away(self, site: Site) -> Site:
        ticks = 1000.0
        store = site.store(ticks=lambda: ticks)
        store.acquire("s", "the owner", seconds=30)
        site.change_proof(lambda proof: replace(proof, clock="another", due=5e9, process=ELSEWHERE))
        return site

    def test_is_waited_for_as_long_as_a_lease_lasts(self, away: Site) -> None:
        now = 50.0
        newcomer = away.store(ticks=lambda: now)

        assert not is_taken(newcomer)
        now += 29.9
        assert not is_taken(newcomer) and newcomer.holder("s") is not None
        now += 0.2
        assert newcomer.holder("s") is None and is_taken(newcomer)

    def test_is_waited_for_once_by_processes_that_do_not_stay(self, away: Site) -> None:
        for now, taken in ((50.0, False), (70.0, False), (80.0, True)):
            assert is_taken(away.store(ticks=lambda now=now: now)) is taken  # type: ignore[misc]

    def test_that_renews_is_waited_for_again(self, away: Site) -> None:
        now = 50.0
        newcomer = away.store(ticks=lambda: now)
        for _ in range(3):
            assert not is_taken(newcomer)
            now += 25
            away.change_proof(lambda proof: replace(proof, due=proof.due + 10, seen={}))
        assert not is_taken(newcomer)


def test_several_machines_note_what_they_see_each_for_itself() -> None:
    proof: Proof | None = Proof(process=ELSEWHERE, clock="another", due=5e9, lasts=30.0)
    for ticks in (1.0, 11.0, 21.0):
        for clock in ("one", "two"):
            assert proof is not None and proof.is_good(Moment(0.0, clock, ticks))
            proof = proof.sighted(Moment(0.0, clock, ticks)) or proof

    assert proof is not None and not proof.is_good(Moment(0.0, "one", 31.0))
    assert proof.is_good(Moment(0.0, "three", 31.0))


def test_notes_do_not_add_up() -> None:
    proof = Proof(process=ELSEWHERE, clock="another", due=5e9, lasts=30.0)
    for number in range(100):
        proof = proof.sighted(Moment(0.0, f"clock {number}", 1.0)) or proof

    assert list(proof.seen) == [f"clock {number}" for number in range(92, 100)]


def test_a_clock_that_was_set_back_is_another_clock() -> None:
    """As after a machine went on from a copy of its memory."""
    proof = Proof(process=this_process(), clock="one", due=1000.0, lasts=30.0)
    back = Moment(0.0, "one", 5.0)

    assert proof.is_good(back)
    seen = proof.sighted(back)
    assert seen is not None and not seen.is_good(back._replace(ticks=35.0))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"process": {}, "seen": {}}', '{"process": 1}', "x"]
)
def test_what_is_no_proof_is_none(text: str) -> None:
    assert Proof.from_text(text) is None


def test_a_proof_is_read_as_it_was_written() -> None:
    proof = Proof(process=this_process(), clock=boot_clock(), due=1.5, lasts=30.0, seen={"one": 2.5})

    assert Proof.from_text(proof.to_text()) == proof
    assert "\n" not in proof.to_text()


@linux
def test_all_processes_of_a_machine_share_a_clock() -> None:
    code = (
        "import time; from agent_app.store.processes import *; print(boot_clock()); print(time.monotonic())"
    )
    before = time.monotonic()
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name, ticks = told.stdout.splitlines()

    assert name == boot_clock() != ""
    assert before < float(ticks) < time.monotonic()

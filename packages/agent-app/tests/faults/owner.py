"""One of several processes that want to write one session, each only as its owner.

It may stop itself while it is the owner, between reading and saving, until somebody continues it. The time
of the store is what a file says, so whoever writes that file decides when a lease is over, and, by a time
in the far future, when everybody goes home.

    python owner.py URL LEDGER CLOCK NAME SAVES STOPS leases|none
"""
# ruff: noqa: T201 - what a script has to tell, it prints

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent_app.errors import LeaseLost, RevisionConflict, SessionHeld, StoreUnavailable
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_app.testing import Ledger
from agent_core import AgentCore, Message

if TYPE_CHECKING:
    from agent_app.store.base import SessionStore

SHARED = "shared"
SECONDS = 10.0
TRIES = 1_000_000
EVENING = 1e9


class Owner:
    """What one process has achieved."""

    def __init__(self, store: SessionStore, ledger: Ledger, name: str, *, stops: int, leases: bool) -> None:
        self.store = store
        self.ledger = ledger
        self.name = name
        self.stops = stops
        self.leases = leases
        self.saved: list[str] = []
        self.refused: list[str] = []
        self.held = 0

    def attempt(self, number: int) -> None:
        lease = self.store.acquire(SHARED, self.name, seconds=SECONDS) if self.leases else None
        stored = self.store.load(SHARED)
        text = f"{self.name}, attempt {number}"
        session = AgentCore().append_messages(stored.session, [Message("user", text)])
        if self.stops:
            self.stops -= 1
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            self.ledger.saved(self.store.save(session, stored, lease=lease), stored)
        except (LeaseLost, RevisionConflict) as error:
            self.refused.append(text)
            print(type(error).__name__, flush=True)
            return
        self.saved.append(text)
        if lease is not None:
            self.store.release(lease)
        print("saved", flush=True)


def main(url: str, path: str, clock: str, name: str, saves: str, stops: str, leases: str) -> None:
    signal.alarm(3_600)  # whatever happens to the test, this process ends

    def now() -> float:
        return float(Path(clock).read_text(encoding="ascii"))

    store = SqlStore(SQLiteDatabase(url, clock=now, ticks=now))
    with Ledger(path) as ledger:
        owner = Owner(store, ledger, name, stops=int(stops), leases=leases == "leases")
        for number in range(TRIES):
            if len(owner.saved) == int(saves) or now() >= EVENING:
                break
            try:
                owner.attempt(number)
            except (SessionHeld, StoreUnavailable):  # on a busy machine the others may write for seconds
                owner.held += 1
    store.close()
    told = {"saved": owner.saved, "refused": owner.refused, "held": owner.held}
    print(json.dumps(told), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])

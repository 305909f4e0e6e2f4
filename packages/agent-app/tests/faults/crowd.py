"""One of several processes that share a session: each queues messages, and whoever can delivers them.

python crowd.py URL LEDGER NAME ROUNDS
"""
# ruff: noqa: T201 - what a script has to tell, it prints

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from agent_app.errors import SessionExists, SessionHeld
from agent_app.store import open_store
from agent_app.store.base import Changes
from agent_app.store.leases import this_process
from agent_app.testing import Ledger
from agent_core import AgentCore, Message

if TYPE_CHECKING:
    from agent_app.store.base import SessionStore

SHARED = "shared"
SECONDS = 600.0


def deliver(store: SessionStore, ledger: Ledger) -> None:
    """Move what waits into the session, in one save."""
    lease = store.acquire(SHARED, this_process(), seconds=SECONDS)
    stored, waiting = store.load(SHARED), store.inputs(SHARED)
    said = [Message.from_dict(dict(each.message)) for each in waiting]
    changes = Changes(take_inputs=[each.seq for each in waiting], events=[{"type": "delivered"}])
    session = AgentCore().append_messages(stored.session, said)
    ledger.saved(store.save(session, stored, lease=lease, changes=changes), stored, changes)
    store.release(lease)


def main(url: str, path: str, name: str, rounds: str) -> None:
    signal.alarm(300)  # whatever happens to the test, this process ends
    store = open_store(url)
    with Ledger(path) as ledger:
        with suppress(SessionExists):
            ledger.saved(store.create(AgentCore().create_session(SHARED)))
        for number in range(int(rounds)):
            text = f"{name}, message {number}"
            ledger.queued(store.put_input(SHARED, Message("user", text).to_dict(), "queue"))
            event = {"type": "queued", "text": text}
            ledger.logged(SHARED, store.append_events(SHARED, [event]), [event])
            with suppress(SessionHeld):
                deliver(store, ledger)
            print(number, flush=True)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A process that holds a conversation, notes what the store acknowledged, and tries again after errors.

It does everything that a store can be asked for in a turn: a message is queued and delivered, a tool call is
announced and answered, a decision is asked for, made and used, events are logged, a fork is made. It goes on
with a session that it finds. Where the store was unavailable, it first looks whether the write is there
after all: `doubtful` counts those that raised and were kept.

    python workload.py URL LEDGER TURNS [NAME]
"""
# ruff: noqa: T201 - what a script has to tell, it prints

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, TypeVar

from agent_app.errors import SessionNotFound, StoreUnavailable
from agent_app.store import open_store
from agent_app.store.base import Approval, Changes
from agent_app.store.leases import this_process
from agent_app.testing import Ledger
from agent_core import AgentCore, Message
from agent_core.testing import EchoProvider

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_app.store.base import Lease, SessionStore, Stored
    from agent_core import Session

Answer = TypeVar("Answer")
TRIES = 60
SECONDS = 600.0
PAGES = 40


class Conversation:
    """One session, its store, and what to do when the store is unavailable."""

    def __init__(self, url: str, ledger: Ledger, name: str) -> None:
        self.name = name
        self.ledger = ledger
        self.errors: list[str] = []
        self.doubtful = 0
        self.store: SessionStore = self.insist(lambda: open_store(url))
        self.core = AgentCore()
        self.core.register_provider(EchoProvider())
        self.stored = self.insist(self.find)
        self.start = len(self.stored.session.messages)
        self.lease: Lease | None = None

    def insist(self, call: Callable[[], Answer], found: Callable[[], Answer | None] = lambda: None) -> Answer:
        """Make a call until it is answered; before trying again, look whether it has come about already."""
        for attempt in range(TRIES):
            try:
                if attempt and (there := found()) is not None:
                    self.doubtful += 1
                    return there
                return call()
            except StoreUnavailable as error:
                self.errors.append(str(error))
        raise SystemExit(f"the store stayed unavailable: {self.errors[-1]}")

    def find(self) -> Stored:
        try:
            return self.store.load(self.name)
        except SessionNotFound:
            stored = self.store.create(self.core.create_session(self.name), title="a conversation")
            self.ledger.saved(stored)
            return stored

    def take_turn(self, number: int) -> None:
        mark = f"{self.name} {self.start} {number}"
        self.insist(self.checkpoint_often)
        self.lease = self.insist(lambda: self.store.acquire(self.name, this_process(), seconds=SECONDS))
        self.queue(f"{mark}: question " + "about much " * (number * 40 % 300))
        self.deliver()
        self.answer(mark)
        self.ask(mark)
        self.log(mark)
        self.insist(lambda: self.store.release(self.lease))  # type: ignore[arg-type]  # taken above
        if number % 2:
            self.fork(mark)
        print(number, flush=True)

    def checkpoint_often(self) -> None:
        """Let the log go into the file every few pages, so that faults find that under way, too."""
        with self.store.writing() as transaction:
            transaction.rows(f"PRAGMA wal_autocheckpoint = {PAGES}")

    def queue(self, text: str) -> None:
        message = Message("user", text).to_dict()
        known = [waiting.seq for waiting in self.insist(lambda: self.store.inputs(self.name))]

        def found() -> object:
            return next((w for w in self.store.inputs(self.name) if w.seq not in known), None)

        self.ledger.queued(self.insist(lambda: self.store.put_input(self.name, message, "queue"), found))  # type: ignore[arg-type]

    def deliver(self) -> None:
        waiting = self.insist(lambda: self.store.inputs(self.name))
        session = self.core.append_messages(
            self.stored.session, [Message.from_dict(dict(each.message)) for each in waiting]
        )
        self.save(
            session, Changes(take_inputs=[each.seq for each in waiting], events=[{"type": "delivered"}])
        )

    def answer(self, mark: str) -> None:
        session, _ = self.core.send_request(self.stored.session, {})
        self.save(session, Changes(intents={f"{mark} call": {"tool": "look"}}, events=[{"type": "intent"}]))

    def ask(self, mark: str) -> None:
        approval = Approval(
            id=f"{mark} approval", session_id=self.name, suspension={"why": "ask"}, created=1.0
        )
        self.say(f"{mark}: looked", Changes(results=[f"{mark} call"], approvals=[approval]))
        self.decide(approval.id)
        self.say(f"{mark}: went on", Changes(use_approvals=[approval.id], events=[{"type": "done"}]))

    def decide(self, approval_id: str) -> None:
        def found() -> Approval | None:
            for approval in self.store.approvals(self.name):
                if approval.id == approval_id and approval.decision is not None:
                    return approval
            return None

        decision = {"action": "resume"}
        self.ledger.decided(self.insist(lambda: self.store.decide(approval_id, decision), found))

    def say(self, text: str, changes: Changes) -> None:
        self.save(self.core.append_messages(self.stored.session, [Message("assistant", text)]), changes)

    def log(self, mark: str) -> None:
        for part in range(3):
            event = {"type": "partial", "text": f"{mark} part {part}"}

            def found(event: dict[str, str] = event) -> list[int] | None:
                log = self.store.events(self.name, limit=100_000)
                return [e["seq"] for e in log if e.get("text") == event["text"]] or None

            def call(event: dict[str, str] = event) -> list[int]:
                return list(self.store.append_events(self.name, [event], durability="soon"))

            self.ledger.logged(self.name, self.insist(call, found), [event])

    def save(self, session: Session, changes: Changes) -> None:
        base = self.stored

        def found() -> Stored | None:
            there = self.store.load(self.name)
            return None if there.revision == base.revision else there

        call = lambda: self.store.save(session, base, lease=self.lease, changes=changes)  # noqa: E731
        self.stored = self.insist(call, found)
        self.ledger.saved(self.stored, base, changes)

    def fork(self, mark: str) -> None:
        half = len(self.stored.session.messages) // 2
        fork = self.core.fork_session(self.stored.session, {}, upto_index=half, new_session_id=f"{mark} fork")

        def found() -> Stored | None:
            try:
                return self.store.load(fork.session_id)
            except SessionNotFound:
                return None

        self.ledger.saved(self.insist(lambda: self.store.fork(self.name, fork, half + 1), found))


def main(url: str, ledger: str, turns: str, name: str = "talk") -> None:
    signal.alarm(300)  # whatever happens to the test, this process ends
    with Ledger(ledger) as book:
        conversation = Conversation(url, book, name)
        for number in range(int(turns)):
            conversation.take_turn(number)
        conversation.insist(conversation.store.close)
    print(json.dumps({"errors": conversation.errors, "doubtful": conversation.doubtful}))


if __name__ == "__main__":
    main(*sys.argv[1:])

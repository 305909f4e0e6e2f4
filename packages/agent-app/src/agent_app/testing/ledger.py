"""What a store has acknowledged, recorded out of reach of its faults, and compared with what it has.

A writer records each call that returned. A line is flushed to disk before the next call is made, so after a
crash everything in the ledger was acknowledged and must be in the store. What is not in the ledger may be in
the store or not, since the writer may have died between the store's answer and the record. So a store may
have more than was acknowledged; it may not have less, and nothing twice. Queued messages are looked for both
in the queue and in the session, and are recognised by their text; so a writer with a ledger queues no two
messages with the same text.

Several processes may share one file. Every line begins with a line break of its own: a line that was cut off
by the death of its writer then spoils no other, and counts as never written.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson

from agent_app.errors import SessionNotFound
from agent_app.store.records import encode, same_messages
from agent_core import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_app.store.base import Approval, Changes, SessionStore, Stored, Waiting


class Ledger:
    """A file with everything that was acknowledged.

    Args:
        path: The file, created if it does not exist; best on another disk than the store.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = self.path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def saved(self, stored: Stored, since: Stored | None = None, changes: Changes | None = None) -> None:
        """Record what `create`, `fork` or `save` returned.

        Args:
            since: What the save was based on; without it, all messages are recorded.
            changes: What was written with it.
        """
        start = 0 if since is None else same_messages(stored.session, since.session)
        facts = {} if changes is None else _facts(changes)
        self._record(
            "saved",
            stored.session.session_id,
            revision=stored.revision,
            start=start,
            messages=[message_digest(message) for message in stored.session.history[start:]],
            **facts,
        )

    def queued(self, waiting: Waiting) -> None:
        """Record what `put_input` returned."""
        self._record("queued", waiting.session_id, seq=waiting.seq, words=words_digest(waiting.message))

    def withdrawn(self, session_id: str, seq: int) -> None:
        """Record that `drop_input` returned True."""
        self._record("withdrawn", session_id, seq=seq)

    def decided(self, approval: Approval) -> None:
        """Record what `decide` returned."""
        self._record("decided", approval.session_id, approval=approval.id, decision=digest(approval.decision))

    def logged(self, session_id: str, numbers: Sequence[int], events: Sequence[Mapping[str, Any]]) -> None:
        """Record the numbers that `append_events` returned for some events."""
        pairs = [[number, digest(event)] for number, event in zip(numbers, events, strict=True)]
        self._record("logged", session_id, events=pairs)

    def deleted(self, session_id: str) -> None:
        """Record that `delete` returned."""
        self._record("deleted", session_id)

    def compare(self, store: SessionStore) -> Comparison:
        """Compare what was acknowledged with what a store has."""
        return compare(read_promises(self.path), store)

    def _record(self, kind: str, session_id: str, **facts: Any) -> None:
        line = b"\n%b\n" % orjson.dumps({"kind": kind, "session": session_id, **facts})
        written = self._file.write(line)
        if written != len(line):
            raise OSError(f"{self.path} took {written} of {len(line)} bytes: make room on its disk")
        os.fsync(self._file.fileno())


def _facts(changes: Changes) -> dict[str, Any]:
    """Return the parts of a save's changes that a comparison looks for."""
    return {
        "events": [digest(event) for event in changes.events],
        "asked": [approval.id for approval in changes.approvals],
        "used": list(changes.use_approvals),
        "intents": list(changes.intents),
        "results": list(changes.results),
    }


@dataclass(slots=True)
class Promise:
    """Everything that was acknowledged of one session.

    Attributes:
        revision: The last one that was acknowledged; 0 if none was.
        messages: The digest of each message; None where a writer died before it recorded its save.
        queued: The digest of each queued message, by its number.
        withdrawn: Numbers of queued messages that were taken back.
        events: The digest of each event with a number.
        unnumbered: How often events with a digest were written with saves.
        asked: Approvals that were asked for.
        decided: The digest of each decision, by its approval.
        used: Approvals that the session continued with.
        intents: Calls that were about to run and have no acknowledged result.
        results: Calls whose results were acknowledged.
        deleted: True if the session was deleted.
    """

    revision: int = 0
    messages: list[str | None] = field(default_factory=list)
    queued: dict[int, str] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    events: dict[int, str] = field(default_factory=dict)
    unnumbered: Counter[str] = field(default_factory=Counter)
    asked: set[str] = field(default_factory=set)
    decided: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    intents: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    deleted: bool = False

    @property
    def rows(self) -> int:
        """How many things were acknowledged."""
        sets = (self.queued, self.withdrawn, self.events, self.asked, self.decided, self.used)
        known = sum(mark is not None for mark in self.messages)
        return known + sum(map(len, sets)) + self.unnumbered.total() + len(self.intents | self.results)


def read_promises(path: Path) -> dict[str, Promise]:
    """Return what a ledger's file says of each session.

    Saves are read in the order of their revisions: the processes that share a ledger record theirs after the
    store has put them in order.
    """
    promises: dict[str, Promise] = {}
    for line in sorted(_lines(path), key=_order):
        _READERS[line["kind"]](promises.setdefault(line["session"], Promise()), line)
    return promises


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().split(b"\n"):
        try:
            if line:
                yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # its writer died while writing it, so nothing relied on it


def _order(line: dict[str, Any]) -> int:
    revision: int = line.get("revision", 0)
    return revision


def _saved(promise: Promise, line: dict[str, Any]) -> None:
    start = line["start"]
    unknown = [None] * (start - len(promise.messages))
    promise.messages = promise.messages[:start] + unknown + line["messages"]
    if line["revision"] > promise.revision + 1:
        promise.intents.clear()  # a save that was not recorded may have brought their results
    promise.revision = line["revision"]
    promise.unnumbered.update(line.get("events", ()))
    promise.asked.update(line.get("asked", ()))
    promise.used.update(line.get("used", ()))
    promise.intents.update(line.get("intents", ()))
    promise.results.difference_update(line.get("intents", ()))
    promise.results.update(line.get("results", ()))
    promise.intents -= promise.results


def _queued(promise: Promise, line: dict[str, Any]) -> None:
    promise.queued[line["seq"]] = line["words"]


def _withdrawn(promise: Promise, line: dict[str, Any]) -> None:
    promise.withdrawn.add(line["seq"])


def _decided(promise: Promise, line: dict[str, Any]) -> None:
    promise.decided[line["approval"]] = line["decision"]


def _logged(promise: Promise, line: dict[str, Any]) -> None:
    promise.events.update(dict(line["events"]))


def _deleted(promise: Promise, _line: dict[str, Any]) -> None:
    promise.deleted = True


_READERS = {
    "saved": _saved,
    "queued": _queued,
    "withdrawn": _withdrawn,
    "decided": _decided,
    "logged": _logged,
    "deleted": _deleted,
}


_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        acknowledged: How many messages, events, inputs, approvals, decisions and intents were.
        lost: Which of them the store does not have, one sentence each.
        wrong: What the store has twice, out of order, or should no longer have.
    """

    acknowledged: int
    lost: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """True if everything that was acknowledged is there, once."""
        return not self.lost and not self.wrong


def compare(promises: Mapping[str, Promise], store: SessionStore) -> Comparison:
    """Compare what was acknowledged with what a store has."""
    lost: list[str] = []
    wrong: list[str] = []
    for session_id, promise in promises.items():
        try:
            stored = store.load(session_id)
        except SessionNotFound:
            lost += [] if promise.deleted else [f"session {session_id!r} is missing"]
            continue
        if promise.deleted:
            wrong.append(f"session {session_id!r} was deleted and is still there")
            continue
        lost += _lost(session_id, promise, stored, store)
        wrong += _wrong(session_id, promise, stored, store)
    return Comparison(sum(promise.rows for promise in promises.values()), tuple(lost), tuple(wrong))


def _lost(session_id: str, promise: Promise, stored: Stored, store: SessionStore) -> Iterator[str]:
    yield from _lost_messages(session_id, promise, stored)
    yield from _lost_events(session_id, promise, store)
    yield from _lost_approvals(session_id, promise, store)
    counts = _deliveries(session_id, stored, store)
    for seq in promise.queued.keys() - promise.withdrawn:
        if not counts[promise.queued[seq]]:
            yield f"input {seq} of {session_id!r} is neither queued nor delivered"
    # A writer that died before recording it may have written the result, which shows in the revision.
    if stored.revision == promise.revision:
        for call_id in promise.intents - store.open_intents(session_id).keys():
            yield f"the intent of call {call_id!r} of {session_id!r} is missing"


def _wrong(session_id: str, promise: Promise, stored: Stored, store: SessionStore) -> Iterator[str]:
    for mark, count in _deliveries(session_id, stored, store).items():
        if count > 1 and mark in promise.queued.values():
            yield f"an input of {session_id!r} is there {count} times"
    for waiting in store.inputs(session_id):
        if waiting.seq in promise.withdrawn:
            yield f"input {waiting.seq} of {session_id!r} was withdrawn and still waits"
    numbers = list(_log(session_id, store))
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the events of {session_id!r} are not numbered from 1 to {len(numbers)}"
    for call_id in promise.results & store.open_intents(session_id).keys():
        yield f"call {call_id!r} of {session_id!r} has a result and still counts as running"


def _lost_messages(session_id: str, promise: Promise, stored: Stored) -> Iterator[str]:
    if stored.revision < promise.revision:
        yield f"session {session_id!r} has revision {stored.revision}, not {promise.revision}"
    found = [message_digest(message) for message in stored.session.history]
    for index, mark in enumerate(promise.messages):
        if mark is not None and (index >= len(found) or found[index] != mark):
            yield f"message {index} of {session_id!r} is not what was acknowledged"


def _lost_events(session_id: str, promise: Promise, store: SessionStore) -> Iterator[str]:
    log = _log(session_id, store)
    for number, mark in promise.events.items():
        if log.get(number) != mark:
            yield f"event {number} of {session_id!r} is not what was acknowledged"
    for mark, count in (promise.unnumbered - Counter(log.values())).items():
        yield f"{count} of the events {mark} of {session_id!r} are missing"


def _lost_approvals(session_id: str, promise: Promise, store: SessionStore) -> Iterator[str]:
    found = {approval.id: approval for approval in store.approvals(session_id)}
    for missing in promise.asked - found.keys():
        yield f"approval {missing!r} of {session_id!r} is missing"
    for approval_id, mark in promise.decided.items():
        if approval_id not in found or digest(found[approval_id].decision) != mark:
            yield f"the decision on {approval_id!r} of {session_id!r} is missing"
    for approval_id in promise.used:
        if approval_id not in found or not found[approval_id].used:
            yield f"approval {approval_id!r} of {session_id!r} was used and does not say so"


def _deliveries(session_id: str, stored: Stored, store: SessionStore) -> Counter[str]:
    """Return how often each text is in the queue and in the session together, by its digest."""
    queued = (words_digest(waiting.message) for waiting in store.inputs(session_id))
    return Counter(queued) + Counter(words_digest(message) for message in stored.session.history)


def _log(session_id: str, store: SessionStore) -> dict[int, str]:
    """Return the digests of a session's events by their numbers, in order."""
    found: dict[int, str] = {}
    while events := store.events(session_id, after=max(found, default=0), limit=_PAGE):
        found |= {event.pop("seq"): digest(event) for event in events}
    return found


_LENGTH = 24


def digest(value: Any) -> str:
    """Return a short digest of JSON values."""
    return sha256(encode(dict(value) if isinstance(value, Mapping) else value)).hexdigest()[:_LENGTH]


def message_digest(message: Message) -> str:
    """Return the digest of a message without its native form, which becomes known later."""
    return digest(message.with_native_indices(None).to_dict())


def words_digest(message: Mapping[str, Any] | Message) -> str:
    """Return the digest of a message's role and content, the same in a queue and in a session."""
    data = (message if isinstance(message, Message) else Message.from_dict(dict(message))).to_dict()
    return digest({"role": data["role"], "content": data["content"]})

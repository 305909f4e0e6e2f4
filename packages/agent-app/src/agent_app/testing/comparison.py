"""What was acknowledged, held against what a store has.

A store may have more than was acknowledged: a writer can die after the store kept something and before it
noted so. It may not have less, and nothing twice. Queued messages are looked for both in the queue and in
the session, and known by what they say; so whoever keeps a ledger queues no two messages that say the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_app.errors import SessionNotFound
from agent_app.testing.digests import digest, message_digest, words_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_app.store.base import SessionStore, Stored
    from agent_app.testing.promises import Promise

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of what was acknowledged.

    Attributes:
        acknowledged: How many things were: messages, events, inputs, approvals, decisions, intents.
        lost: Which of them the store does not have, one sentence each.
        wrong: What the store has twice, out of order, or should not have any more.
    """

    acknowledged: int
    lost: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """True if everything that was acknowledged is there, once."""
        return not self.lost and not self.wrong


def compare(promises: Mapping[str, Promise], store: SessionStore) -> Comparison:
    """Return whether a store has what was acknowledged."""
    lost: list[str] = []
    wrong: list[str] = []
    for session_id, promise in promises.items():
        try:
            stored = store.load(session_id)
        except SessionNotFound:
            lost += [] if promise.deleted else [f"session {session_id!r} is not there"]
            continue
        if promise.deleted:
            wrong.append(f"session {session_id!r} was deleted and is there")
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
    # Somebody who died before noting it may have written the result, which shows in the revision.
    if stored.revision == promise.revision:
        for call_id in promise.intents - store.open_intents(session_id).keys():
            yield f"the intent of call {call_id!r} of {session_id!r} is not there"


def _wrong(session_id: str, promise: Promise, stored: Stored, store: SessionStore) -> Iterator[str]:
    for mark, count in _deliveries(session_id, stored, store).items():
        if count > 1 and mark in promise.queued.values():
            yield f"an input of {session_id!r} is there {count} times"
    for waiting in store.inputs(session_id):
        if waiting.seq in promise.withdrawn:
            yield f"input {waiting.seq} of {session_id!r} was taken back and waits"
    numbers = list(_log(session_id, store))
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the events of {session_id!r} are not numbered from 1 to {len(numbers)}"
    for call_id in promise.results & store.open_intents(session_id).keys():
        yield f"call {call_id!r} of {session_id!r} has a result and counts as running"


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
        yield f"{count} of the events {mark} of {session_id!r} are not there"


def _lost_approvals(session_id: str, promise: Promise, store: SessionStore) -> Iterator[str]:
    found = {approval.id: approval for approval in store.approvals(session_id)}
    for missing in promise.asked - found.keys():
        yield f"approval {missing!r} of {session_id!r} is not there"
    for approval_id, mark in promise.decided.items():
        if approval_id not in found or digest(found[approval_id].decision) != mark:
            yield f"the decision on {approval_id!r} of {session_id!r} is not there"
    for approval_id in promise.used:
        if approval_id not in found or not found[approval_id].used:
            yield f"approval {approval_id!r} of {session_id!r} was used and does not say so"


def _deliveries(session_id: str, stored: Stored, store: SessionStore) -> Counter[str]:
    """Return how often something said stands in the queue and in the session, by its mark."""
    queued = (words_digest(waiting.message) for waiting in store.inputs(session_id))
    return Counter(queued) + Counter(words_digest(message) for message in stored.session.history)


def _log(session_id: str, store: SessionStore) -> dict[int, str]:
    """Return the marks of a session's events by their numbers, in order."""
    found: dict[int, str] = {}
    while events := store.events(session_id, after=max(found, default=0), limit=_PAGE):
        found |= {event.pop("seq"): digest(event) for event in events}
    return found

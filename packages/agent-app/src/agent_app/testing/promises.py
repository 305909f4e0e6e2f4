"""A ledger's lines, added up to what must be found in the store, session by session."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(slots=True)
class Promise:
    """What was acknowledged of one session.

    Attributes:
        revision: The last one that was acknowledged; 0 if none was.
        messages: The mark of each message; None where a writer died before it noted its save.
        queued: The mark of each queued message, by its number.
        withdrawn: Numbers of queued messages that were taken back.
        events: The mark of each event that was given a number.
        unnumbered: How often events of a mark were written with saves.
        asked: Approvals that were asked for.
        decided: The mark of each decision, by its approval.
        used: Approvals that the session went on with.
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
    """Return what a ledger's file promises of each session.

    Saves are taken in the order of their revisions: the processes that share a ledger note theirs after
    the store has put them in order.
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
            continue  # its writer died while writing it, and so told nobody


def _order(line: dict[str, Any]) -> int:
    revision: int = line.get("revision", 0)
    return revision


def _saved(promise: Promise, line: dict[str, Any]) -> None:
    start = line["start"]
    unknown = [None] * (start - len(promise.messages))
    promise.messages = promise.messages[:start] + unknown + line["messages"]
    if line["revision"] > promise.revision + 1:
        promise.intents.clear()  # a save that nobody noted may have brought their results
    promise.revision = line["revision"]
    promise.unnumbered.update(line.get("events", ()))
    promise.asked.update(line.get("asked", ()))
    promise.used.update(line.get("used", ()))
    if line.get("intent") is not None:
        promise.intents.add(line["intent"])
        promise.results.discard(line["intent"])
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

"""What a store has acknowledged, written down where the store's own faults do not reach.

Whoever writes to a store notes each call that returned. A line is flushed to the disk before the next call
is made, so after a crash the ledger tells what must be found: everything in it was acknowledged. What is
not in it may be there or not, since the writer may have died between the store's answer and the note.

Several processes may share one file. Every line begins with a line break of its own: a line that was cut
off by the death of its writer then spoils no other, and counts as never written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson

from agent_app.store.records import same_messages
from agent_app.testing.comparison import Comparison, compare
from agent_app.testing.digests import digest, message_digest, words_digest
from agent_app.testing.promises import read_promises

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_app.store.base import Approval, Changes, SessionStore, Stored, Waiting


class Ledger:
    """A file with what was acknowledged.

    Args:
        path: Where the file is, or is to be; best on another disk than the store.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = self.path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def saved(self, stored: Stored, since: Stored | None = None, changes: Changes | None = None) -> None:
        """Note what `create`, `fork` or `save` returned.

        Args:
            since: What the save was based on; without it, all messages are noted.
            changes: What was written with it.
        """
        start = 0 if since is None else same_messages(stored.session, since.session)
        facts = {} if changes is None else _facts(changes)
        self._note(
            "saved",
            stored.session.session_id,
            revision=stored.revision,
            start=start,
            messages=[message_digest(message) for message in stored.session.history[start:]],
            **facts,
        )

    def queued(self, waiting: Waiting) -> None:
        """Note what `put_input` returned."""
        self._note("queued", waiting.session_id, seq=waiting.seq, words=words_digest(waiting.message))

    def withdrawn(self, session_id: str, seq: int) -> None:
        """Note that `drop_input` returned True."""
        self._note("withdrawn", session_id, seq=seq)

    def decided(self, approval: Approval) -> None:
        """Note what `decide` returned."""
        self._note("decided", approval.session_id, approval=approval.id, decision=digest(approval.decision))

    def logged(self, session_id: str, numbers: Sequence[int], events: Sequence[Mapping[str, Any]]) -> None:
        """Note the numbers that `append_events` returned for some events."""
        pairs = [[number, digest(event)] for number, event in zip(numbers, events, strict=True)]
        self._note("logged", session_id, events=pairs)

    def deleted(self, session_id: str) -> None:
        """Note that `delete` returned."""
        self._note("deleted", session_id)

    def compare(self, store: SessionStore) -> Comparison:
        """Return whether everything that was acknowledged is in a store, once."""
        return compare(read_promises(self.path), store)

    def _note(self, kind: str, session_id: str, **facts: Any) -> None:
        line = b"\n%b\n" % orjson.dumps({"kind": kind, "session": session_id, **facts})
        written = self._file.write(line)
        if written != len(line):
            raise OSError(f"{self.path} took {written} of {len(line)} bytes: make room on its disk")
        os.fsync(self._file.fileno())


def _facts(changes: Changes) -> dict[str, Any]:
    """Return what a comparison looks for of what came with a save."""
    return {
        "events": [digest(event) for event in changes.events],
        "asked": [approval.id for approval in changes.approvals],
        "used": list(changes.use_approvals),
        "intent": None if changes.intent is None else changes.intent[0],
        "results": list(changes.results),
    }

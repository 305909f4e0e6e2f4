"""Long sessions, read page by page.

When a long session is loaded, only its end is read. The rest is read when it is used, and is then as it was
when the session was loaded: references are only ever added to a list, and those whose note or link was
written again since then are marked. What was removed in between, by an edit or with the session, can no
longer be read, and using it raises an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agent_app.errors import RevisionConflict, StoreDamaged
from agent_app.store import lists
from agent_core import AgentError, History

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_app.store.database import Database, Row, Transaction

T = TypeVar("T")

LONG = 1_000
"""Up to how many messages or native items a session is read as a whole."""

_LAST = 32  # of a long one, at least so many are read when it is loaded


@dataclass(frozen=True, slots=True)
class Version:
    """A session at one revision, whose pages may be read later.

    Attributes:
        current: Returns the session's present revision; raises `SessionNotFound` if it was deleted.
    """

    database: Database
    session_id: str
    revision: int
    current: Callable[[Transaction], int]

    def part(self, transaction: Transaction, list_id: int, count: int) -> Part:
        """Return the first *count* references of a list, with the last ones read."""
        start = 0 if count <= LONG else max(0, count - _LAST) & -_LAST
        return Part(self, list_id, start, self.rows(transaction, list_id, start, count))

    def rows(self, transaction: Transaction, list_id: int, start: int, end: int) -> list[Row]:
        """Return body, note and link of references as this version has them.

        Raises:
            RevisionConflict: If they were changed or removed since.
            SessionNotFound: If the session was deleted.
            StoreDamaged: If they are missing without a reason.
        """
        columns = "c.body, e.note, e.link, e.list, e.renewed"
        try:
            rows = list(lists.select(transaction, columns, list_id, start, end))
        except StoreDamaged:
            rows = []  # the list itself was removed
        # References in the list of another session are shared with it, and never written again.
        renewed = any(row[4] is not None and row[4] > self.revision and row[3] == list_id for row in rows)
        if renewed or len(rows) != end - start:
            self._refuse(transaction)
        return rows

    def _refuse(self, transaction: Transaction) -> None:
        now = self.current(transaction)
        if now != self.revision:
            raise RevisionConflict(self.session_id, self.revision, now)
        raise self.damaged("it has lost messages")

    def damaged(self, problem: str) -> StoreDamaged:
        """Return the error for a session that cannot be read as it was written."""
        return StoreDamaged(f"session {self.session_id!r}: {problem}; restore a copy; nothing was changed")


@dataclass(frozen=True, slots=True)
class Part:
    """The messages of a session, or its native items.

    Attributes:
        start: The position of the first row that is already read.
        rows: The rows that are already read: body, note and link of each.
    """

    version: Version
    list: int
    start: int
    rows: Sequence[Row]

    def items(self, reading: Callable[[Row], T]) -> History[T]:
        """Return what *reading* returns for each row."""

        def load(start: int, end: int) -> Sequence[T]:
            return self._understood(reading, self._read(start, end))

        return History.later(self.start, load).extend(self._understood(reading, self.rows))

    def links(self, count: int) -> History[bytes] | None:
        """Return the first *count* links of the integrity chain, or None if they are not known."""

        def load(start: int, end: int) -> Sequence[bytes]:
            found = [row[2] for row in self._read(start, end)]
            if None in found:
                raise self.version.damaged("it has lost links of its native history")
            return found

        start = self.start if count > self.start else max(0, count - _LAST) & -_LAST
        known = self.rows[: count - start] if start == self.start else self._read(start, count)
        last = [row[2] for row in known]
        return None if None in last else History.later(start, load).extend(last)

    def _read(self, start: int, end: int) -> Sequence[Row]:
        with self.version.database.reading() as transaction:
            return self.version.rows(transaction, self.list, start, end)

    def _understood(self, reading: Callable[[Row], T], rows: Sequence[Row]) -> Sequence[T]:
        try:
            return [reading(row) for row in rows]
        except (ValueError, TypeError, AgentError) as error:
            raise self.version.damaged(f"it cannot be read ({error})") from error


def is_long(*histories: Sequence[Any]) -> bool:
    """Say whether parts of a session may still have to be read when they are used."""
    return any(len(history) > LONG for history in histories)

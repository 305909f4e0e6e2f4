"""Saving what is new in a session, if the writer may write it and it is still what the writer thinks.

Both are looked at in the transaction of the save. Mostly all is as it was left, and the statement that gives
the session its next revision finds that out on the way; only where it does not is the session looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app.errors import RevisionConflict
from agent_app.store import leases, lists, pages as paging, records, sessions
from agent_app.store.base import Stored
from agent_app.store.lists import Part
from agent_app.store.sessions import Left, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_app.store.base import Lease
    from agent_app.store.database import Database, Transaction
    from agent_core import Session

_ADVANCE = (
    "UPDATE sessions SET revision = revision + 1, updated = ?, message_count = ?, native_count = ? "
    "WHERE id = ?"
)
_AS_KNOWN = (
    " AND revision = ? AND messages = ? AND message_count = ? AND natives = ? AND native_count = ? AND "
)
_LEASE = "EXISTS (SELECT 1 FROM leases l WHERE l.session = sessions.id AND "
_BY_ITS_HOLDER = f"{_ADVANCE}{_AS_KNOWN}{_LEASE}l.token = ?)"
_GIVEN_BACK = 0.0
_HELD_BY_NOBODY = f"{_ADVANCE}{_AS_KNOWN}NOT {_LEASE}l.expires > ?)"


def save(
    database: Database, transaction: Transaction, session: Session, base: Stored, lease: Lease | None
) -> tuple[Stored, Left]:
    """Write what is new in a session since *base*, and return what nobody may need any more.

    Raises:
        RevisionConflict: If somebody else has changed it since.
        LeaseLost, SessionHeld: If the writer may not write it.
    """
    place = _advance(database, transaction, session, base, lease)
    records.know_integrity(session)
    messages = _new_messages(transaction, place, session, base)
    natives = _new_items(transaction, place, session, base.session)
    former = sessions.write(database, transaction, session, (messages, natives), base.session)
    # Not with the revision: these are indexed, and an index is written anew even if nothing in it is another.
    if (messages.list, natives.list) != (place.messages, place.natives):
        transaction.run(
            "UPDATE sessions SET messages = ?, natives = ? WHERE id = ?",
            messages.list, natives.list, session.session_id,
        )  # fmt: skip
    count, native_count = _counts(session)
    stored = Stored(session, base.revision + 1, Place(messages.list, count, natives.list, native_count))
    pairs = ((place.messages, messages.list), (place.natives, natives.list))
    # Others may have opened a long session, and read the rest of it later as it was.
    long = place.message_count > paging.LONG or place.native_count > paging.LONG
    return stored, Left([old for old, new in pairs if old != new and not long], former)


def _advance(
    database: Database, transaction: Transaction, session: Session, base: Stored, lease: Lease | None
) -> Place:
    """Take a session to its next revision if it may be written, and return where its parts stand."""
    sessions.lock(database, transaction, session.session_id)
    now = database.now()
    if (place := _advance_known(transaction, session, base, lease, now)) is not None:
        return place
    row = sessions.find(transaction, session.session_id)
    leases.check(row.holder, session.session_id, lease, database.moment())
    if row.revision != base.revision:
        raise RevisionConflict(session.session_id, base.revision, row.revision)
    transaction.run(_ADVANCE, now, *_counts(session), session.session_id)
    return row.place


def _advance_known(
    transaction: Transaction, session: Session, base: Stored, lease: Lease | None, now: float
) -> Place | None:
    """Do that if the session is as *base* says, and the lease is there, or nobody took one and kept it."""
    if base.place is None or (lease is not None and lease.session_id != session.session_id):
        return None
    sql, right = (_HELD_BY_NOBODY, _GIVEN_BACK) if lease is None else (_BY_ITS_HOLDER, lease.token)
    known: list[Any] = [session.session_id, base.revision, *base.place, right]
    if transaction.tenant is not None:
        sql, known = f"{sql} AND tenant = ?", [*known, transaction.tenant]
    return Place(*base.place) if transaction.run(sql, now, *_counts(session), *known) else None


def _counts(session: Session) -> tuple[int, int]:
    return len(session.history), len(records.native_items(session))


def _new_messages(transaction: Transaction, place: Place, session: Session, base: Stored) -> Part:
    """Return new messages, and write what became known of old ones: their native form comes after them."""
    before = base.session
    same = records.same_messages(session, before)
    if same < len(before.history):
        equal, renewed = records.alike_from(session, before, same)
        same += equal
        marks = records.message_marks(session, same, same + renewed)
        if lists.update_links(transaction, place.messages, same, marks, base.revision + 1):
            same += renewed
    rows = records.message_rows(session, same)
    return _part(transaction, place.messages, place.message_count, same, rows)


def _new_items(transaction: Transaction, place: Place, session: Session, before: Session) -> Part:
    same = records.same_items(session, before)
    rows = records.item_rows(session, same)
    if same == len(records.native_items(before)):
        return _part(transaction, place.natives, place.native_count, same, rows)
    equal = 0
    for new, was in zip(rows, records.item_rows(before, same), strict=False):
        if new != was:
            break
        equal += 1
    rows = records.item_rows(session, same + equal)
    return _part(transaction, place.natives, place.native_count, same + equal, rows)


def _part(transaction: Transaction, list_id: int, count: int, same: int, rows: Sequence[records.Row]) -> Part:
    """Return where rows go that come behind the first *same* of a list: to it, or to one that begins so."""
    if same == count and not rows:
        return Part(list_id, same, rows)
    if same < count:  # otherwise the list ends here: no two sessions write to one
        list_id = lists.new_list(transaction, list_id, same)
    return Part(list_id, same, rows)

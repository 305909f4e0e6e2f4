"""Checks for damage, and removal of what no session refers to."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from agent_app.errors import SessionNotFound, StoreDamaged
from agent_app.store import grants, lists, queues, records, sessions
from agent_app.store.base import Report
from agent_app.store.tenants import condition
from agent_core.native import read_native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app.store.database import Database, Row, Transaction
    from agent_app.store.sessions import Left

_BATCH = 500
_UNUSED = (
    "SELECT c.id, c.hash, c.body, c.searched FROM content c "
    "WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.content = c.id) "
    "AND NOT EXISTS (SELECT 1 FROM metadata m WHERE m.content = c.id)"
)


def check(database: Database, *, deep: bool) -> Report:
    """Check that everything that sessions refer to is there; *deep* also hashes it."""
    checked = {"sessions": 0, "messages": 0, "content": 0}
    problems: list[str] = []
    try:
        problems += database.damage(checked, deep=deep)
        with database.reading() as transaction:
            for session_id in session_ids(transaction):
                problems += _session_problems(database, transaction, session_id, checked, deep=deep)
            problems += _missing_events(transaction)
            if deep:
                problems += _wrong_content(transaction, checked)
                problems += _unread(transaction, checked)
    except (StoreDamaged, SessionNotFound) as error:
        problems.append(str(error))
    return Report(checked, tuple(problems))


def session_ids(transaction: Transaction) -> list[str]:
    """Return the ids of all sessions."""
    own, tenant = condition(transaction, "tenant")
    return [row[0] for row in transaction.rows(f"SELECT id FROM sessions WHERE {own} ORDER BY id", *tenant)]


def _session_problems(
    database: Database, transaction: Transaction, session_id: str, checked: dict[str, int], *, deep: bool
) -> list[str]:
    checked["sessions"] += 1
    try:
        place = sessions.find(transaction, session_id)
        checked["messages"] += place.message_count
        missing = [
            *_missing(transaction, session_id, place.messages, place.message_count, "messages"),
            *_missing(transaction, session_id, place.natives, place.native_count, "native items"),
        ]
        return missing if missing or not deep else _broken_chain(database, transaction, session_id)
    except (StoreDamaged, ValueError, TypeError, LookupError) as error:
        return [f"session {session_id!r}: {error}"]


def _missing(transaction: Transaction, session_id: str, list_id: int, count: int, what: str) -> Iterator[str]:
    there = lists.count(transaction, list_id, count)
    if there != count:
        yield f"session {session_id!r} should have {count} {what}, and {there} are there"


def _missing_events(transaction: Transaction) -> Iterator[str]:
    """Compare the numbers of events, which have no gaps, with how many there are."""
    for session_id, there, last in transaction.rows(
        "SELECT session, count(*), max(seq) FROM events GROUP BY session HAVING count(*) <> max(seq) "
        "ORDER BY session"
    ):
        yield f"session {session_id!r} should have {last} events, and {there} are there"


def _broken_chain(database: Database, transaction: Transaction, session_id: str) -> list[str]:
    """Compare the links with what they should be; a session without any was stored as it came."""
    session = sessions.load(database, transaction, session_id).session
    place = sessions.find(transaction, session_id)
    marks = lists.read_marks(transaction, place.messages, 0, place.message_count)
    written = session.seal
    if written is None and not any(link is not None for _, _, link in marks):
        return []
    _native, problem = read_native(session.sealed(None))
    if problem is None and session.seal != written:
        problem = "the links of its messages are not those that were written"
    return [] if problem is None else [f"session {session_id!r}: {problem}"]


def _wrong_content(transaction: Transaction, checked: dict[str, int]) -> Iterator[str]:
    last = 0
    while rows := transaction.rows(
        "SELECT id, hash, body FROM content WHERE id > ? ORDER BY id LIMIT ?", last, _BATCH
    ):
        for number, known, body in rows:
            last = number
            checked["content"] += 1
            if not isinstance(body, bytes) or sha256(body).digest() != known:
                yield f"content {number} is not what it was when it was written"


def _unread(transaction: Transaction, checked: dict[str, int]) -> Iterator[str]:
    """Read everything else that belongs to sessions, as its users would."""
    checked["events"] = transaction.rows("SELECT count(*) FROM events")[0][0]
    try:
        queues.approvals(transaction, None, undecided=False)
        grants.find_all(transaction, None, None)
    except (StoreDamaged, ValueError, TypeError) as error:
        yield f"approvals or grants cannot be read ({error})"
    for table, order in (("events", "seq"), ("inputs", "seq"), ("intents", "call_hash")):
        yield from _unreadable(transaction, table, order)


def _unreadable(transaction: Transaction, table: str, order: str) -> Iterator[str]:
    for (session_id,) in transaction.rows(f"SELECT DISTINCT session FROM {table} ORDER BY session"):
        rows = transaction.rows(
            f"SELECT body FROM {table} WHERE session = ? ORDER BY {order}",
            session_id,
        )
        for (body,) in rows:
            try:
                records.decode(body)
            except (ValueError, TypeError) as error:
                yield f"session {session_id!r}: one of its {table} cannot be read ({error})"


def collect(database: Database) -> Report:
    """Remove references that no session reaches, the lists that have none left, and their content."""
    with database.writing(alone=True) as transaction:
        database.erase_log()
        removed = _collect_lists(transaction)
        return Report({"lists": removed, "content": _collect_content(database, transaction)})


def _collect_lists(transaction: Transaction) -> int:
    rows = transaction.rows("SELECT id, parent, base FROM lists ORDER BY id DESC")
    reach = _reach(transaction, rows)
    dead = [(number,) for number, _, _ in rows if number not in reach]
    ends = transaction.rows("SELECT list, max(seq) FROM entries GROUP BY list")
    unreached = [(number, reach.get(number, 0)) for number, last in ends if last >= reach.get(number, 0)]
    transaction.many("DELETE FROM entries WHERE list = ? AND seq >= ?", unreached)
    if dead and dead[0][0] == rows[0][0]:
        _keep_number(transaction, dead.pop(0)[0])
    transaction.many("DELETE FROM lists WHERE id = ?", dead)
    return len(dead)


def _keep_number(transaction: Transaction, newest: int) -> None:
    """Leave the newest list there, empty, so that its number is not given to another one.

    A reader with a session loaded long ago must not find the messages of another one in its place.
    """
    transaction.run("UPDATE lists SET parent = NULL, base = 0 WHERE id = ?", newest)


def _reach(transaction: Transaction, rows: list[Row]) -> dict[int, int]:
    """Return how many references of each list some session has; lists come before those they begin like."""
    reach: dict[int, int] = {}
    for column, count in (("messages", "message_count"), ("natives", "native_count")):
        for number, length in transaction.rows(f"SELECT {column}, {count} FROM sessions"):
            reach[number] = max(length, reach.get(number, 0))
    for number, parent, base in rows:
        if number in reach and parent is not None:
            reach[parent] = max(reach.get(parent, 0), min(base, reach[number]))
    return reach


def _collect_content(database: Database, transaction: Transaction) -> int:
    removed = last = 0
    while unused := transaction.rows(f"{_UNUSED} AND c.id > ? ORDER BY c.id LIMIT ?", last, _BATCH):
        last = unused[-1][0]
        removed += _remove(database, transaction, unused)
    return removed


def _remove(database: Database, transaction: Transaction, unused: list[Row]) -> int:
    """Remove contents, of which number, hash, body and mark are given; return how many there were."""
    # Damaged content stays: its words are unknown, and `check` must find it.
    whole = [row for row in unused if sha256(row[2]).digest() == row[1]]
    for number, _, body, searched in whole:
        if searched:
            database.drop_words(transaction, number, records.text_in(body))
    transaction.many("DELETE FROM content WHERE id = ?", [row[:1] for row in whole])
    return len(whole)


def delete(database: Database, transaction: Transaction, session_id: str) -> None:
    """Remove a locked session, with everything that no other session has. No one else may write."""
    place = sessions.find(transaction, session_id)
    own = transaction.rows("SELECT content FROM metadata WHERE session = ?", session_id)
    sessions.delete(transaction, session_id)
    found = {row[0] for row in own}
    for number in (place.messages, place.natives):
        found |= _cut(transaction, number)
    _remove_unused(database, transaction, found)
    database.erase_log()


def forget(database: Database, transaction: Transaction, left: Left) -> None:
    """Remove what a save left behind, unless another session has it. No one else may write."""
    found = set(left.contents)
    for number in left.lists:
        found |= _cut(transaction, number)
    _remove_unused(database, transaction, found)
    if left.lists:
        database.erase_log()


def _remove_unused(database: Database, transaction: Transaction, numbers: set[int]) -> None:
    """Remove those contents to which nothing refers."""
    rest = iter(sorted(numbers))
    while some := list(islice(rest, _BATCH)):
        marks = ", ".join("?" * len(some))
        _remove(database, transaction, transaction.rows(f"{_UNUSED} AND c.id IN ({marks})", *some))


def _cut(transaction: Transaction, number: int | None) -> set[int]:
    """Remove the references of a list that no session reaches, also of those it begins like; return which."""
    found: set[int] = set()
    while number is not None:
        found |= _cut_versions(transaction, number)
        reach = _reached(transaction, number)
        found |= _drop_entries(transaction, number, reach or 0)
        number = None if reach is not None else _drop_list(transaction, number)
    return found


def _cut_versions(transaction: Transaction, number: int) -> set[int]:
    """Remove the lists that begin like another one and have no user, as edits leave them behind."""
    found: set[int] = set()
    for (child,) in transaction.rows("SELECT id FROM lists WHERE parent = ?", number):
        found |= _cut_versions(transaction, child)
        if _reached(transaction, child) is None:
            found |= _drop_entries(transaction, child, 0)
            _drop_list(transaction, child)
    return found


def _drop_entries(transaction: Transaction, number: int, start: int) -> set[int]:
    rows = transaction.rows("SELECT content FROM entries WHERE list = ? AND seq >= ?", number, start)
    transaction.run("DELETE FROM entries WHERE list = ? AND seq >= ?", number, start)
    return {row[0] for row in rows}


def _drop_list(transaction: Transaction, number: int) -> int | None:
    """Remove a list, and return the one that it began like."""
    parent: int | None = transaction.rows("SELECT parent FROM lists WHERE id = ?", number)[0][0]
    if transaction.rows("SELECT max(id) FROM lists")[0][0] == number:
        _keep_number(transaction, number)
    else:
        transaction.run("DELETE FROM lists WHERE id = ?", number)
    return parent


def _reached(transaction: Transaction, number: int) -> int | None:
    """Return how many references of a list are needed by sessions and by other lists; None for no user."""
    lengths = transaction.rows(
        "SELECT max(message_count) FROM sessions WHERE messages = ? "
        "UNION ALL SELECT max(native_count) FROM sessions WHERE natives = ? "
        "UNION ALL SELECT max(base) FROM lists WHERE parent = ?",
        number, number, number,
    )  # fmt: skip
    return max((length for (length,) in lengths if length is not None), default=None)

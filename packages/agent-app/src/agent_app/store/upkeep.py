"""Looking for damage, and removing what no session refers to any more."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from agent_app.errors import StoreDamaged
from agent_app.store import lists, records, sessions
from agent_app.store.base import Report
from agent_core.native import read_native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app.store.database import Database, Row, Transaction

_BATCH = 500
_UNUSED = (
    "SELECT c.id, c.hash, c.body, c.searched FROM content c "
    "WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.content = c.id) "
    "AND NOT EXISTS (SELECT 1 FROM metadata m WHERE m.content = c.id)"
)


def check(database: Database, *, deep: bool) -> Report:
    """Look whether everything that sessions refer to is there; *deep* also hashes all of it."""
    checked = {"sessions": 0, "messages": 0, "content": 0}
    problems: list[str] = []
    try:
        problems += database.damage()
        with database.reading() as transaction:
            for session_id in session_ids(transaction):
                problems += _session_problems(database, transaction, session_id, checked, deep=deep)
            if deep:
                problems += _wrong_content(transaction, checked)
    except StoreDamaged as error:
        problems.append(str(error))
    return Report(checked, tuple(problems))


def session_ids(transaction: Transaction) -> list[str]:
    """Return the ids of all sessions."""
    return [row[0] for row in transaction.rows("SELECT id FROM sessions ORDER BY id")]


def _session_problems(
    database: Database, transaction: Transaction, session_id: str, checked: dict[str, int], *, deep: bool
) -> list[str]:
    place = sessions.find(transaction, session_id)
    checked["sessions"] += 1
    checked["messages"] += place.message_count
    try:
        missing = [
            *_missing(transaction, session_id, place.messages, place.message_count, "messages"),
            *_missing(transaction, session_id, place.natives, place.native_count, "native items"),
        ]
        return missing if missing or not deep else _broken_chain(database, transaction, session_id)
    except StoreDamaged as error:
        return [f"session {session_id!r}: {error}"]


def _missing(transaction: Transaction, session_id: str, list_id: int, count: int, what: str) -> Iterator[str]:
    there = lists.count(transaction, list_id, count)
    if there != count:
        yield f"session {session_id!r} should have {count} {what}, and {there} are there"


def _broken_chain(database: Database, transaction: Transaction, session_id: str) -> list[str]:
    """Compare the links with what they should be; without any, it was kept as it was given to us."""
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
            if sha256(body).digest() != known:
                yield f"content {number} is not what it was when it was written"


def collect(database: Database) -> Report:
    """Remove references that no session reaches, the lists that have none left, and their content."""
    with database.writing(alone=True) as transaction:
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

    Whoever has a session of long ago in hand must not find the messages of another in its place.
    """
    transaction.run("UPDATE lists SET parent = NULL, base = 0 WHERE id = ?", newest)


def _reach(transaction: Transaction, rows: list[Row]) -> dict[int, int]:
    """Return how many references of each list some session has; lists come before those they begin like."""
    reach: dict[int, int] = {}
    for column, count in (("messages", "message_count"), ("natives", "native_count")):
        for number, length in transaction.rows(f"SELECT {column}, {count} FROM sessions"):  # noqa: S608 - our own
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
    # What is damaged stays: its words are not known any more, and `check` is to find it.
    whole = [row for row in unused if sha256(row[2]).digest() == row[1]]
    for number, _, body, searched in whole:
        if searched:
            database.drop_words(transaction, number, records.text_in(body))
    transaction.many("DELETE FROM content WHERE id = ?", [row[:1] for row in whole])
    return len(whole)


def delete(database: Database, transaction: Transaction, session_id: str) -> None:
    """Remove a session that is held, with all that only it had. Nobody else may write meanwhile."""
    place = sessions.find(transaction, session_id)
    own = transaction.rows("SELECT content FROM metadata WHERE session = ?", session_id)
    sessions.delete(transaction, session_id)
    found = {row[0] for row in own}
    for number in (place.messages, place.natives):
        found |= _cut(transaction, number)
    rest = iter(sorted(found))
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
    """Remove the lists that begin like another and that nobody has any more, as edits leave them behind."""
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

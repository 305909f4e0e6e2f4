"""Looking for damage, and removing what no session refers to any more."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from agent_app.errors import StoreDamaged
from agent_app.store import lists, records, sessions
from agent_app.store.base import Report
from agent_core.native import read_native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app.store.database import Database, Row, Transaction

_BATCH = 500


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
    while unused := transaction.rows(
        "SELECT c.id, c.hash, c.body, c.searched FROM content c WHERE c.id > ? "
        "AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.content = c.id) "
        "AND NOT EXISTS (SELECT 1 FROM metadata m WHERE m.content = c.id) ORDER BY c.id LIMIT ?",
        last, _BATCH,
    ):  # fmt: skip
        last = unused[-1][0]
        # What is damaged stays: its words are not known any more, and `check` is to find it.
        whole = [row for row in unused if sha256(row[2]).digest() == row[1]]
        for number, _, body, searched in whole:
            if searched:
                text = records.text_of(records.read_message(body, None))
                database.drop_words(transaction, number, text)
        transaction.many("DELETE FROM content WHERE id = ?", [row[:1] for row in whole])
        removed += len(whole)
    return removed

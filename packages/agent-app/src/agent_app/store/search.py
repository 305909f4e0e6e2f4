"""Lists of sessions, all or those that have the words of a query, by pages.

Two ways lead from words to sessions, and which one is short depends on the words. If few messages have them,
the way goes from these messages to the lists in which they stand, and to the sessions of those. If nearly
every message has them, it goes through the sessions, the last changed first, until the page is full. Both
come to the same page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.store import lists, records
from agent_app.store.base import Page
from agent_app.store.sessions import INFO, is_name, is_text, key_hash, read_info
from agent_app.store.tenants import condition
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_app.store.database import Database, Row, Transaction

_SNIPPET = 80
_LONGEST_QUERY = 1000
_FEW = 2_000  # messages: from so many to their sessions is a short way
_WINDOW = 4  # pages of sessions are looked through, and no more messages than that:
_MOST = 250_000


class Condition(NamedTuple):
    """A part of a statement, with its values."""

    sql: str
    values: Sequence[Any]


class Search(NamedTuple):
    """What a query asks for.

    Attributes:
        matching: Finds the contents that have its words; None if no content can have them.
        title: True of a session whose title has them.
    """

    matching: Condition | None
    title: Condition


# A list is in `reach` with the place of its first hit; a list that begins like it has the hit as well.
_FROM_MESSAGES = (
    "WITH RECURSIVE first (list, seq) AS ("
    "SELECT e.list, min(e.seq) FROM ({matching}) m JOIN entries e ON e.content = m.id GROUP BY e.list), "
    "reach (list, seq) AS (SELECT list, seq FROM first "
    "UNION SELECT l.id, r.seq FROM reach r JOIN lists l ON l.parent = r.list AND l.base > r.seq), "
    "hits (id, seq) AS (SELECT h.id, min(r.seq) FROM reach r JOIN sessions h ON h.messages = r.list "
    "AND h.message_count > r.seq GROUP BY h.id) "
    "SELECT {columns}, s.messages, f.seq FROM sessions s LEFT JOIN hits f ON f.id = s.id "
    "WHERE (f.id IS NOT NULL OR {title}) AND {after} ORDER BY s.updated DESC, s.id LIMIT ?"
)
# Of each session and of those that it begins like, the first place that has one of the matching contents.
_FROM_SESSIONS = (
    "WITH RECURSIVE newest (id, list, upto) AS (SELECT s.id, s.messages, s.message_count FROM sessions s "
    "WHERE {after} ORDER BY s.updated DESC, s.id LIMIT ?), "
    "parts (id, list, upto) AS (SELECT id, list, upto FROM newest "
    "UNION ALL SELECT p.id, l.parent, CASE WHEN l.base < p.upto THEN l.base ELSE p.upto END "
    "FROM parts p JOIN lists l ON l.id = p.list WHERE l.parent IS NOT NULL), "
    "places (id, seq) AS (SELECT p.id, (SELECT e.seq FROM entries e WHERE e.list = p.list "
    "AND e.seq < p.upto AND e.content IN ({matching}) ORDER BY e.seq LIMIT 1) FROM parts p), "
    "hits (id, seq) AS (SELECT id, min(seq) FROM places WHERE seq IS NOT NULL GROUP BY id) "
    "SELECT {columns}, s.messages, f.seq FROM newest n JOIN sessions s ON s.id = n.id "
    "LEFT JOIN hits f ON f.id = s.id WHERE (f.id IS NOT NULL OR {title}) "
    "ORDER BY s.updated DESC, s.id LIMIT ?"
)
_BY_TITLE = (
    "SELECT {columns}, s.messages, NULL FROM sessions s WHERE {title} AND {after} "
    "ORDER BY s.updated DESC, s.id LIMIT ?"
)
_ALL = Condition("1 = 1", ())
# A flag is a key whose value is true; its content is so short that no other is looked at.
_FLAGS = (
    "FROM metadata m JOIN sessions s ON s.id = m.session JOIN content c ON c.id = m.content "
    "WHERE length(c.body) <= 2000 AND substr(c.body, length(c.body) - 5) = ? AND {own}"
)
_FLAG_ENDS = b":true}"
_KEYED = " (SELECT 1 FROM metadata k WHERE k.session = s.id AND k.key_hash = ?)"


def listed(
    database: Database,
    transaction: Transaction,
    query: str | None,
    cursor: str | None,
    limit: int,
    has: Sequence[str] = (),
    lacks: Sequence[str] = (),
) -> Page:
    """Return sessions, the last changed first, by pages; with a query those that have its words."""
    own, tenant = condition(transaction, "s.tenant")
    behind = _ALL if cursor is None else _behind(cursor)
    keyed = ["EXISTS" + _KEYED] * len(has) + ["NOT EXISTS" + _KEYED] * len(lacks)
    keys = [key_hash(key) for key in (*has, *lacks)]
    after = Condition(f"({' AND '.join([behind.sql, own, *keyed])})", [*behind.values, *tenant, *keys])
    asked = query if query is not None and query.strip() else None
    search = Search(None, _ALL) if asked is None else _read_query(database, transaction, asked)
    rows = _find(transaction, search, after, limit)
    return _page(transaction, rows, asked or "", limit)


def flags(transaction: Transaction, session_ids: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the keys of metadata whose value is true, by session."""
    if not session_ids:
        return {}
    own, tenant = condition(transaction, "s.tenant")
    marks = ", ".join("?" * len(session_ids))
    statement = f"SELECT m.session, c.body {_FLAGS.format(own=own)} AND s.id IN ({marks})"
    found: dict[str, list[str]] = {}
    for session_id, body in transaction.rows(statement, _FLAG_ENDS, *tenant, *session_ids):
        found.setdefault(session_id, []).extend(records.decode_stored(body))
    return dict(found)


def flag_counts(transaction: Transaction) -> dict[str, int]:
    """Return the keys of metadata whose value is true, and how many sessions have each."""
    own, tenant = condition(transaction, "s.tenant")
    statement = f"SELECT c.body, count(*) {_FLAGS.format(own=own)} GROUP BY c.id, c.body"
    rows = transaction.rows(statement, _FLAG_ENDS, *tenant)
    return {key: count for body, count in rows for key in records.decode_stored(body)}


def _read_query(database: Database, transaction: Transaction, query: str) -> Search:
    """Return how sessions are found that have the words of a query in one message, or in their title."""
    if len(query) > _LONGEST_QUERY:
        raise ArgumentError(f"a query has {_LONGEST_QUERY} characters at most, not {len(query)}: shorten it")
    words = records.words(query)
    terms = [records.folded(word) for word in words] or [records.folded(query.strip())]
    if not all(map(is_text, terms)):
        return Search(None, Condition("1 = 0", ()))  # no title has such characters, and no content
    in_title = " AND ".join(["s.title_folded LIKE ? ESCAPE '\\'"] * len(terms))
    title = Condition(f"({in_title})", [f"%{_escaped(term)}%" for term in terms])
    return Search(Condition(*database.matching(transaction, words)) if words else None, title)


def _find(transaction: Transaction, search: Search, after: Condition, limit: int) -> list[Row]:
    """Return the columns of the sessions of a page, and one more if there is one."""
    matching, title = search
    parts = {"columns": INFO, "title": title.sql, "after": after.sql}
    if matching is None:
        return transaction.rows(_BY_TITLE.format(**parts), *title.values, *after.values, limit + 1)
    if _are_many(transaction, matching):
        window, complete = _window(transaction, after, limit)
        rows = transaction.rows(
            _FROM_SESSIONS.format(**parts, matching=matching.sql),
            *after.values, window, *matching.values, *title.values, limit + 1,
        )  # fmt: skip
        if complete or len(rows) > limit:
            return rows
    return transaction.rows(
        _FROM_MESSAGES.format(**parts, matching=matching.sql),
        *matching.values, *title.values, *after.values, limit + 1,
    )  # fmt: skip


def _are_many(transaction: Transaction, matching: Condition) -> bool:
    counted = f"SELECT count(*) FROM (SELECT 1 FROM ({matching.sql}) m LIMIT ?) n"
    found: int = transaction.rows(counted, *matching.values, _FEW + 1)[0][0]
    return found > _FEW


def _window(transaction: Transaction, after: Condition, limit: int) -> tuple[int, bool]:
    """Return how many sessions can be looked through in a moment, and whether these are all."""
    most = _WINDOW * (limit + 1)
    counts = transaction.rows(
        f"SELECT s.message_count FROM sessions s WHERE {after.sql} "
        "ORDER BY s.updated DESC, s.id LIMIT ?",
        *after.values, most,
    )  # fmt: skip
    seen = 0
    for place, (count,) in enumerate(counts):
        seen += count
        if seen > _MOST and place:
            return place, False
    return len(counts), len(counts) < most


def _page(transaction: Transaction, rows: Sequence[Row], query: str, limit: int) -> Page:
    shown = rows[:limit]
    bodies = lists.read_places(transaction, [(row[8], row[9]) for row in shown if row[9] is not None])
    infos = [
        read_info(row[:8], _snippet(bodies[row[8]], query) if row[9] is not None else None) for row in shown
    ]
    more = len(rows) > limit
    return Page(tuple(infos), f"{infos[-1].updated!r}|{infos[-1].id}" if more else None)


def _snippet(body: bytes, query: str) -> str:
    """Return the piece of a message in which the words of a query stand."""
    text = records.text_of(records.read_stored_message(body))
    lowered = text.lower()
    at = min((here for word in records.words(query) if (here := lowered.find(word.lower())) >= 0), default=0)
    start = max(0, at - _SNIPPET // 2)
    return " ".join(text[start : start + 2 * _SNIPPET].split())


def _behind(cursor: str) -> Condition:
    """Return what is true of the sessions behind the one that a cursor names."""
    updated, mark, session_id = cursor.partition("|")
    try:
        if mark and is_name(session_id):
            last = float(updated)
            return Condition("(s.updated < ? OR (s.updated = ? AND s.id > ?))", [last, last, session_id])
    except ValueError:
        pass
    raise ArgumentError(f"{cursor!r} is not a cursor: pass the next_cursor of a page from list_sessions()")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

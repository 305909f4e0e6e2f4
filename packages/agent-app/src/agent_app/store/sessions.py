"""Sessions in the database: making, reading, saving what is new, forking, finding."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.errors import RevisionConflict, SessionExists, SessionNotFound, StoreDamaged
from agent_app.store import lists, records
from agent_app.store.base import Page, SessionInfo, Stored
from agent_core import AgentError, ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_app.store.database import Database, Row, Transaction
    from agent_core import History, Message, Session

_INFO = "s.id, s.title, s.agent_id, s.created, s.updated, s.message_count, s.revision, s.parent_id"
_SNIPPET = 80
_LONGEST_NAME = 500
_LONGEST_QUERY = 1000


class SessionRow:
    """Where the parts of a session stand."""

    __slots__ = ("message_count", "messages", "native_count", "natives", "revision")

    def __init__(self, row: Row) -> None:
        self.revision, self.messages, self.message_count, self.natives, self.native_count = row


class Part(NamedTuple):
    """What is written of a list: rows from a position on."""

    list: int
    at: int
    rows: Sequence[records.Row]


def is_name(text: Any) -> bool:
    """Say whether every database can keep a text as it is, and find something by it."""
    return isinstance(text, str) and 0 < len(text) <= _LONGEST_NAME and is_text(text)


def is_text(text: str) -> bool:
    """Say whether every database can keep a text as it is."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def find(transaction: Transaction, session_id: str) -> SessionRow:
    """Return where a session stands.

    Raises:
        SessionNotFound: If it does not.
    """
    if not is_name(session_id):
        raise SessionNotFound(session_id)
    rows = transaction.rows(
        "SELECT revision, messages, message_count, natives, native_count FROM sessions WHERE id = ?",
        session_id,
    )
    if not rows:
        raise SessionNotFound(session_id)
    return SessionRow(rows[0])


def hold(database: Database, transaction: Transaction, session_id: str) -> SessionRow:
    """Return where a session stands, and let nobody else write it until the transaction ends."""
    if is_name(session_id):
        database.hold(transaction, session_id)
    return find(transaction, session_id)


def create(
    database: Database,
    transaction: Transaction,
    session: Session,
    *,
    agent_id: str | None,
    title: str,
    source: tuple[str, SessionRow, int, int] | None = None,
) -> Stored:
    """Store a new session; as a fork it shares the first messages and items of *source*."""
    records.know_integrity(session)
    parent_id, place, shared, shared_items = source or (None, None, 0, 0)
    messages = lists.new_list(transaction, None if place is None else place.messages, shared)
    natives = lists.new_list(transaction, None if place is None else place.natives, shared_items)
    now = database.now()
    made = transaction.run(
        "INSERT INTO sessions (id, title, title_folded, agent_id, created, updated, parent_id, messages, "
        "message_count, natives, native_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO NOTHING",
        session.session_id, title, records.folded(title), agent_id, now, now, parent_id,
        messages, len(session.messages), natives, len(records.native_items(session)),
    )  # fmt: skip
    if not made:
        raise SessionExists(session.session_id)
    new_messages = Part(messages, shared, records.message_rows(session, shared))
    new_items = Part(natives, shared_items, records.item_rows(session, shared_items))
    _write(database, transaction, session, (new_messages, new_items), {})
    return Stored(session, _first_revision(transaction, session.session_id))


def _first_revision(transaction: Transaction, session_id: str) -> int:
    """Let a new session's revisions begin behind those of any that is gone and may have had its id."""
    revision: int = transaction.rows(
        "UPDATE sessions SET revision = (SELECT highest + 1 FROM past) WHERE id = ? RETURNING revision",
        session_id,
    )[0][0]
    return revision


def _write(
    database: Database,
    transaction: Transaction,
    session: Session,
    parts: Sequence[Part],
    before: Mapping[str, Any],
) -> None:
    """Write rows, and the metadata that differs from that before."""
    now = records.metadata_rows(session)
    changed = {
        key: row
        for key, value in now.items()
        if (row := _changed_row(key, value, before.get(key, _NOTHING))) is not None
    }
    rows = [row for part in parts for row in part.rows]
    numbers = lists.keep(database, transaction, [*rows, *changed.values()])
    for part in parts:
        lists.append(transaction, part.list, part.at, part.rows, numbers)
    for key, row in changed.items():
        transaction.run(
            "INSERT INTO metadata (session, key_hash, content) VALUES (?, ?, ?) "
            "ON CONFLICT (session, key_hash) DO UPDATE SET content = excluded.content",
            session.session_id, _key_hash(key), numbers[row.hash],
        )  # fmt: skip
    for key in before.keys() - now.keys():
        transaction.run(
            "DELETE FROM metadata WHERE session = ? AND key_hash = ?", session.session_id, _key_hash(key)
        )


_NOTHING = object()


def _changed_row(key: str, value: Any, before: Any) -> records.Row | None:
    """Return the row of a value if it is not what it was; 1, 1.0 and True are equal, and not the same."""
    if value is before:
        return None
    row = records.content_row({key: value})
    return None if value == before and row.body == records.encode({key: before}) else row


def _key_hash(key: str) -> bytes:
    """Return what a value is found by: keys have any length, and any characters."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def load(transaction: Transaction, session_id: str) -> Stored:
    """Return a whole session.

    Raises:
        StoreDamaged: If something of it is missing, or is not what was written.
    """
    place = find(transaction, session_id)
    messages = list(lists.read(transaction, place.messages, 0, place.message_count))
    items = [(body, link) for body, _, link in lists.read(transaction, place.natives, 0, place.native_count)]
    if (len(messages), len(items)) != (place.message_count, place.native_count):
        raise StoreDamaged(f"session {session_id!r} has lost messages: restore a copy; nothing was changed")
    rows = transaction.rows(
        "SELECT c.body FROM metadata m JOIN content c ON c.id = m.content WHERE m.session = ?",
        session_id,
    )
    try:
        metadata = {key: value for (body,) in rows for key, value in records.decode(body).items()}
        session = records.read_session(session_id, [tuple(row) for row in messages], items, metadata)
    except (ValueError, TypeError, AgentError) as error:
        raise StoreDamaged(f"session {session_id!r} cannot be read: {error}; restore a copy") from error
    return Stored(session, place.revision)


def page(transaction: Transaction, session_id: str, before: int | None, limit: int) -> list[Message]:
    """Return some messages of a session, the last ones or those before an index."""
    place = find(transaction, session_id)
    end = place.message_count if before is None else min(max(before, 0), place.message_count)
    rows = lists.read(transaction, place.messages, max(0, end - limit), end)
    return [records.read_message(body, note) for body, note, _ in rows]


def save(
    database: Database, transaction: Transaction, place: SessionRow, session: Session, base: Stored
) -> Stored:
    """Write what is new in a session since *base*; the session is held.

    Raises:
        RevisionConflict: If somebody else has changed it since.
    """
    if place.revision != base.revision:
        raise RevisionConflict(session.session_id, base.revision, place.revision)
    records.know_integrity(session)
    before = base.session
    messages = _new_messages(transaction, place, session, before)
    natives = _new_items(transaction, place, session, before)
    _write(database, transaction, session, (messages, natives), records.metadata_rows(before))
    transaction.run(
        "UPDATE sessions SET revision = revision + 1, updated = ?, messages = ?, message_count = ?, "
        "natives = ?, native_count = ? WHERE id = ?",
        database.now(), messages.list, len(session.messages),
        natives.list, len(records.native_items(session)), session.session_id,
    )  # fmt: skip
    return Stored(session, base.revision + 1)


def _new_messages(transaction: Transaction, place: SessionRow, session: Session, before: Session) -> Part:
    """Return new messages, and write what became known of old ones: their native form comes after them."""
    same = records.same_messages(session, before)
    rows, old = records.message_rows(session, same), records.message_rows(before, same)
    equal = _alike(rows, old, lambda row: row)
    same, rows, old = same + equal, rows[equal:], old[equal:]
    renewed = _alike(rows, old, lambda row: row.body)
    if renewed and lists.is_own(transaction, place.messages, same, same + renewed):
        lists.update_links(transaction, place.messages, same, rows[:renewed])
        same, rows = same + renewed, rows[renewed:]
    return _part(transaction, place.messages, place.message_count, same, rows)


def _new_items(transaction: Transaction, place: SessionRow, session: Session, before: Session) -> Part:
    same = records.same_items(session, before)
    rows = records.item_rows(session, same)
    equal = _alike(rows, records.item_rows(before, same), lambda row: row)
    return _part(transaction, place.natives, place.native_count, same + equal, rows[equal:])


def _alike(
    rows: Sequence[records.Row], old: Sequence[records.Row], what: Callable[[records.Row], Any]
) -> int:
    """Return with how many rows both begin that have *what* in common."""
    alike = 0
    for new, was in zip(rows, old, strict=False):
        if what(new) != what(was):
            break
        alike += 1
    return alike


def _part(transaction: Transaction, list_id: int, count: int, same: int, rows: Sequence[records.Row]) -> Part:
    """Return where rows go that come behind the first *same* of a list: to it, or to one that begins so."""
    if same < count or lists.own_end(transaction, list_id) > same:
        list_id = lists.new_list(transaction, list_id, same)
    return Part(list_id, same, rows)


def fork(
    database: Database,
    transaction: Transaction,
    session_id: str,
    session: Session,
    upto: int,
    agent_id: str | None,
) -> Stored:
    """Store a session that shares the first *upto* messages of another, as far as they are the same."""
    place = hold(database, transaction, session_id)
    records.know_integrity(session)
    shared = _shared(
        transaction, place.messages, min(upto, place.message_count),
        records.message_links(session), lambda start: records.message_rows(session, start),
    )  # fmt: skip
    shared_items = _shared(
        transaction, place.natives, place.native_count,
        records.item_links(session), lambda start: records.item_rows(session, start),
    )  # fmt: skip
    title = info(transaction, session_id).title
    source = (session_id, place, shared, shared_items)
    return create(database, transaction, session, agent_id=agent_id, title=title, source=source)


def _shared(
    transaction: Transaction,
    list_id: int,
    limit: int,
    links: History[bytes],
    rows_from: Callable[[int], Sequence[records.Row]],
) -> int:
    """Return how many rows a session has in common with a list, *limit* at most.

    An equal link says that all before it is equal too, so most rows need not be looked at.
    """
    linked = min(limit, len(links))
    last = list(lists.read_marks(transaction, list_id, linked - 1, linked)) if linked else []
    shared = linked if last and last[0][2] == links[linked - 1] else 0
    stored = lists.read_marks(transaction, list_id, shared, limit)
    for (known, note, link), row in zip(stored, rows_from(shared), strict=False):
        if (row.hash, row.note, row.link) != (known, note, link):
            break
        shared += 1
    return shared


def info(transaction: Transaction, session_id: str) -> SessionInfo:
    """Return what a list shows of a session."""
    find(transaction, session_id)
    rows = transaction.rows(f"SELECT {_INFO} FROM sessions s WHERE s.id = ?", session_id)  # noqa: S608 - our own
    return _info(rows[0])


def rename(transaction: Transaction, session_id: str, title: str, now: float) -> SessionInfo:
    """Change the title of a session that is held."""
    transaction.run(
        "UPDATE sessions SET title = ?, title_folded = ?, updated = ? WHERE id = ?",
        title, records.folded(title), now, session_id,
    )  # fmt: skip
    return info(transaction, session_id)


def retitle(transaction: Transaction, session_id: str, title: str, old: str) -> None:
    """Give a session a title that was made for it, unless somebody has given it another than *old*."""
    usable = "".join(filter(is_text, title))  # a save must not fail for what a model calls it
    transaction.run(
        "UPDATE sessions SET title = ?, title_folded = ? WHERE id = ? AND title IN ('', ?)",
        usable, records.folded(usable), session_id, "".join(filter(is_text, old)),
    )  # fmt: skip


def assign(transaction: Transaction, session_id: str, agent_id: str | None, now: float) -> SessionInfo:
    """Change the agent of a session that is held."""
    transaction.run("UPDATE sessions SET agent_id = ?, updated = ? WHERE id = ?", agent_id, now, session_id)
    return info(transaction, session_id)


def delete(transaction: Transaction, session_id: str) -> None:
    """Remove a session that is held and what belongs to it alone; its content stays until collected."""
    # Whoever still has it in hand must not take a later session of the same id for it.
    revision, token = transaction.rows(
        "SELECT s.revision, l.token FROM sessions s LEFT JOIN leases l ON l.session = s.id WHERE s.id = ?",
        session_id,
    )[0]
    highest = max(revision, token or 0)
    transaction.run("UPDATE past SET highest = ? WHERE highest < ?", highest, highest)
    transaction.run("DELETE FROM sessions WHERE id = ?", session_id)


def listed(
    database: Database, transaction: Transaction, query: str | None, cursor: str | None, limit: int
) -> Page:
    """Return sessions, the last changed first, by pages."""
    searching = query is not None and bool(query.strip())
    found = _search(database, query or "") if searching else _Search()
    where, values = [found.where], [*found.values]
    if cursor is not None:
        updated, last = _read_cursor(cursor)
        where.append("(s.updated < ? OR (s.updated = ? AND s.id > ?))")
        values += [updated, updated, last]
    rows = transaction.rows(
        f"{found.before} SELECT {_INFO}, s.messages, {found.place} FROM sessions s {found.join} "  # noqa: S608
        f"WHERE {' AND '.join(where)} ORDER BY s.updated DESC, s.id LIMIT ?",
        *values, limit + 1,
    )  # fmt: skip
    places = [(row[8], row[9]) for row in rows[:limit] if row[9] is not None]
    bodies = lists.read_places(transaction, places)
    infos = [
        _info(row[:8], _snippet(bodies[row[8]], query or "") if row[8] in bodies else None)
        for row in rows[:limit]
    ]
    more = len(rows) > limit
    return Page(tuple(infos), f"{infos[-1].updated!r}|{infos[-1].id}" if more else None)


class _Search(NamedTuple):
    """The parts of a statement that finds sessions: all of them, unless it says otherwise."""

    before: str = ""
    place: str = "NULL"
    join: str = ""
    where: str = "1 = 1"
    values: Sequence[Any] = ()


# A list is in `reach` with the place of its first hit; a list that begins like it has the hit as well.
_REACH = (
    "WITH RECURSIVE first (list, seq) AS ("
    "SELECT e.list, min(e.seq) FROM ({matching}) m JOIN entries e ON e.content = m.id GROUP BY e.list), "
    "reach (list, seq) AS (SELECT list, seq FROM first "
    "UNION SELECT l.id, r.seq FROM reach r JOIN lists l ON l.parent = r.list AND l.base > r.seq), "
    "hits (id, seq) AS (SELECT h.id, min(r.seq) FROM reach r JOIN sessions h ON h.messages = r.list "
    "AND h.message_count > r.seq GROUP BY h.id)"
)


def _search(database: Database, query: str) -> _Search:
    """Return how sessions are found that have the words of a query in one message, or in their title."""
    if len(query) > _LONGEST_QUERY:
        raise ArgumentError(f"a query has {_LONGEST_QUERY} characters at most, not {len(query)}: shorten it")
    words = records.words(query)
    terms = [records.folded(word) for word in words] or [records.folded(query.strip())]
    in_title = " AND ".join(["s.title_folded LIKE ? ESCAPE '\\'"] * len(terms))
    titles = [f"%{_escaped(term)}%" for term in terms]
    if not all(map(is_text, terms)):
        return _Search(where="1 = 0")  # no title has such characters
    if not words:
        return _Search(where=f"({in_title})", values=titles)
    matching, values = database.matching(words)
    return _Search(
        before=_REACH.format(matching=matching),
        place="f.seq",
        join="LEFT JOIN hits f ON f.id = s.id",
        where=f"(f.id IS NOT NULL OR ({in_title}))",
        values=[*values, *titles],
    )


def _snippet(body: bytes, query: str) -> str:
    """Return the piece of a message in which the words of a query stand."""
    text = records.text_of(records.read_message(body, None))
    lowered = text.lower()
    at = min((here for word in records.words(query) if (here := lowered.find(word.lower())) >= 0), default=0)
    start = max(0, at - _SNIPPET // 2)
    return " ".join(text[start : start + 2 * _SNIPPET].split())


def _info(row: Row, match: str | None = None) -> SessionInfo:
    session_id, title, agent_id, created, updated, messages, revision, parent_id = row
    return SessionInfo(
        id=session_id, title=title, agent_id=agent_id, created=created, updated=updated,
        messages=messages, revision=revision, parent_id=parent_id, match=match,
    )  # fmt: skip


def _read_cursor(cursor: str) -> tuple[float, str]:
    updated, mark, session_id = cursor.partition("|")
    try:
        if mark and is_name(session_id):
            return float(updated), session_id
    except ValueError:
        pass
    raise ArgumentError(f"{cursor!r} is no cursor of list_sessions()")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")

"""Sessions in the database: making, reading, forking."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.errors import SessionExists, SessionNotFound, StoreDamaged
from agent_app.store import lists, records
from agent_app.store.base import Lease, SessionInfo, Stored
from agent_app.store.lists import Part
from agent_app.store.pages import Version
from agent_app.store.tenants import condition
from agent_core.native import INTEGRITY, PROVENANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_app.store.database import Database, Row, Transaction
    from agent_core import History, Message, Session

PROOF = "\n"
"""What stands in the column `owner` of a lease between the owner's name and its proof, which has none."""
INFO = "s.id, s.title, s.agent_id, s.created, s.updated, s.message_count, s.revision, s.parent_id"
_LONGEST_NAME = 500
_LAST_CHARACTER = "\U0010ffff"  # no id has another one behind it
_NO_WORDS = frozenset({INTEGRITY, PROVENANCE})  # what they were is left to `collect`


class SessionRow(NamedTuple):
    """Where the parts of a session stand, and who took the right to write it last."""

    revision: int
    messages: int
    message_count: int
    natives: int
    native_count: int
    holder: Lease | None

    @property
    def place(self) -> Place:
        """Where the parts stand."""
        return Place(self.messages, self.message_count, self.natives, self.native_count)


class Place(NamedTuple):
    """Where the parts of a session stand at one revision: lists, and how much of each is the session's."""

    messages: int
    message_count: int
    natives: int
    native_count: int


class Left(NamedTuple):
    """What a save leaves behind: lists that were replaced, and the content of former metadata."""

    lists: Sequence[int]
    contents: Sequence[int]


def is_name(text: Any) -> bool:
    """Say whether every database can keep a text as it is, and find something by it."""
    return isinstance(text, str) and 0 < len(text) <= _LONGEST_NAME and is_text(text)


def is_text(text: str) -> bool:
    """Say whether every database can keep a text as it is."""
    return "\0" not in text and (text.isascii() or text.encode("utf-8", "replace").decode() == text)


def find(transaction: Transaction, session_id: str) -> SessionRow:
    """Return where a session stands.

    Raises:
        SessionNotFound: If it does not.
    """
    if not is_name(session_id):
        raise SessionNotFound(session_id)
    own, tenant = condition(transaction, "s.tenant")
    rows = transaction.rows(
        "SELECT s.revision, s.messages, s.message_count, s.natives, s.native_count, l.owner, l.token, "
        f"l.expires FROM sessions s LEFT JOIN leases l ON l.session = s.id WHERE s.id = ? AND {own}",
        session_id, *tenant,
    )  # fmt: skip
    if not rows:
        raise SessionNotFound(session_id)
    revision, messages, message_count, natives, native_count, owner, token, expires = rows[0]
    if not (type(revision) is type(message_count) is type(native_count) is int):
        raise StoreDamaged(f"session {session_id!r}: its row is damaged; restore a copy; nothing was changed")
    held = None
    if token is not None:
        held = read_lease(session_id, owner, token, expires)
    return SessionRow(revision, messages, message_count, natives, native_count, held)


def read_lease(session_id: str, owner: str, token: int, expires: float) -> Lease:
    """Return a lease from its columns; former versions wrote the owner's name alone."""
    name, mark, proof = owner.rpartition(PROOF)
    return Lease(
        session_id=session_id,
        owner=name if mark else owner,
        token=token,
        expires=expires,
        proof=proof if mark else "",
    )


def hold(database: Database, transaction: Transaction, session_id: str) -> SessionRow:
    """Return where a session stands, and let nobody else write it until the transaction ends."""
    lock(database, transaction, session_id)
    return find(transaction, session_id)


def lock(database: Database, transaction: Transaction, session_id: str) -> None:
    """Let nobody else write a session until the transaction ends."""
    if is_name(session_id):
        database.hold(transaction, session_id)


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
    parent_id, origin, shared, shared_items = source or (None, None, 0, 0)
    messages = lists.new_list(transaction, None if origin is None else origin.messages, shared)
    natives = lists.new_list(transaction, None if origin is None else origin.natives, shared_items)
    now = database.now()
    made = transaction.run(
        "INSERT INTO sessions (id, title, title_folded, agent_id, created, updated, parent_id, messages, "
        "message_count, natives, native_count, tenant) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO NOTHING",
        session.session_id, title, records.folded(title), agent_id, now, now, parent_id,
        messages, len(session.messages), natives, len(records.native_items(session)),
        tenant_of(transaction, parent_id),
    )  # fmt: skip
    if not made:
        raise SessionExists(session.session_id)
    new_messages = Part(messages, shared, records.message_rows(session, shared))
    new_items = Part(natives, shared_items, records.item_rows(session, shared_items))
    write(database, transaction, session, (new_messages, new_items), None)
    place = Place(messages, len(session.history), natives, len(records.native_items(session)))
    return Stored(session, _first_revision(transaction, session.session_id), place)


def tenant_of(transaction: Transaction, session_id: str | None) -> str:
    """Return the tenant of a transaction or, if it is about all, that of a session."""
    if transaction.tenant is not None or session_id is None:
        return transaction.tenant or ""
    rows = transaction.rows("SELECT tenant FROM sessions WHERE id = ?", session_id)
    return str(rows[0][0]) if rows else ""


def _first_revision(transaction: Transaction, session_id: str) -> int:
    """Let a new session's revisions begin behind those of any that is gone and may have had its id."""
    revision: int = transaction.rows(
        "UPDATE sessions SET revision = (SELECT highest + 1 FROM past) WHERE id = ? RETURNING revision",
        session_id,
    )[0][0]
    return revision


def write(
    database: Database,
    transaction: Transaction,
    session: Session,
    parts: Sequence[Part],
    before: Session | None,
) -> list[int]:
    """Write rows, and the metadata that differs from that of the session before; return what that was."""
    changed, gone = _changed_metadata(session, before)
    former: list[int] = []
    if before is not None and database.one_writer:  # others leave it to `collect`
        former = _former(transaction, session.session_id, [*changed, *gone])
    if database.one_writer and sum(len(part.rows) for part in parts) > lists.AT_ONCE:
        for piece in lists.pieces(parts):
            lists.append(transaction, [piece], lists.keep(database, transaction, piece.rows))
        parts = ()
    made = [Part(part.list, part.at, part.rows[:]) for part in parts if part.rows]
    rows = [row for part in made for row in part.rows]
    numbers = lists.keep(database, transaction, [*rows, *changed.values()])
    lists.append(transaction, made, numbers)
    if changed:
        marks = ", ".join(["(?, ?, ?)"] * len(changed))
        transaction.run(
            f"INSERT INTO metadata (session, key_hash, content) VALUES {marks} "
            "ON CONFLICT (session, key_hash) DO UPDATE SET content = excluded.content",
            *(
                value
                for key, row in changed.items()
                for value in (session.session_id, key_hash(key), numbers[row.hash])
            ),
        )
    for key in gone:
        transaction.run(
            "DELETE FROM metadata WHERE session = ? AND key_hash = ?", session.session_id, key_hash(key)
        )
    return former


def _former(transaction: Transaction, session_id: str, keys: Sequence[str]) -> list[int]:
    """Return the contents that some keys have now, but for hashes and numbers, which every turn changes."""
    sql = "SELECT content FROM metadata WHERE session = ? AND key_hash = ?"
    rows = (transaction.rows(sql, session_id, key_hash(key)) for key in keys if key not in _NO_WORDS)
    return [found[0][0] for found in rows if found]


_NOTHING = object()


def _changed_metadata(session: Session, before: Session | None) -> tuple[dict[str, records.Row], list[str]]:
    """Return the rows of the values that are not what they were, and the keys that are gone."""
    if before is not None and session.metadata is before.metadata:
        return {}, []
    now = records.metadata_rows(session)
    old = {} if before is None else records.metadata_rows(before)
    changed = {
        key: row
        for key, value in now.items()
        if (row := _changed_row(key, value, old.get(key, _NOTHING))) is not None
    }
    return changed, [key for key in old if key not in now]


def _changed_row(key: str, value: Any, before: Any) -> records.Row | None:
    """Return the row of a value if it is not what it was; 1, 1.0 and True are equal, and not the same."""
    if value is before:
        return None
    if value == before and records.encode(value) == records.encode(before):
        return None
    return records.content_row({key: value})


def key_hash(key: str) -> bytes:
    """Return what a value is found by: keys, and the ids that models make, have any length and characters."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def load(database: Database, transaction: Transaction, session_id: str) -> Stored:
    """Return a session; of a long one, what is not looked at yet is read later.

    Raises:
        StoreDamaged: If something of it is missing, or is not what was written.
    """
    place = find(transaction, session_id)
    version = Version(database, session_id, place.revision, partial(_revision, session_id=session_id))
    messages = version.part(transaction, place.messages, place.message_count)
    items = version.part(transaction, place.natives, place.native_count)
    rows = transaction.rows(
        "SELECT c.body FROM metadata m JOIN content c ON c.id = m.content WHERE m.session = ?",
        session_id,
    )
    try:
        metadata = {key: value for (body,) in rows for key, value in records.decode(body).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise version.damaged(f"it cannot be read ({error})") from error
    session = records.read_session(
        session_id,
        messages.items(lambda row: records.read_message(row[0], row[1])),
        items.items(lambda row: records.read_item(row[0])),
        metadata,
        lambda covered: (messages.links(covered), items.links(place.native_count)),
    )
    return Stored(session, place.revision, place.place)


def _revision(transaction: Transaction, session_id: str) -> int:
    return find(transaction, session_id).revision


def page(transaction: Transaction, session_id: str, before: int | None, limit: int) -> list[Message]:
    """Return some messages of a session, the last ones or those before an index."""
    place = find(transaction, session_id)
    end = place.message_count if before is None else min(max(before, 0), place.message_count)
    rows = lists.read(transaction, place.messages, max(0, end - limit), end)
    return [records.read_message(body, note) for body, note, _ in rows]


def fork(
    database: Database,
    transaction: Transaction,
    session_id: str,
    session: Session,
    upto: int,
    agent_id: str | None,
    base: Stored | None,
) -> Stored:
    """Store a session that shares the first *upto* messages of another, as far as they are the same.

    Args:
        base: The other one as it was read; what is the very same in it need not be compared.
    """
    place = hold(database, transaction, session_id)
    records.know_integrity(session)
    known = known_items = 0
    if base is not None and base.revision == place.revision:
        known, known_items = records.same_parts(session, base.session)
    shared = _shared(
        transaction, place.messages, min(upto, place.message_count), known,
        records.message_links(session), lambda start: records.message_rows(session, start),
    )  # fmt: skip
    shared_items = _shared(
        transaction, place.natives, place.native_count, known_items,
        records.item_links(session), lambda start: records.item_rows(session, start),
    )  # fmt: skip
    title = fork_title(info(transaction, session_id).title)
    source = (session_id, place, shared, shared_items)
    return create(database, transaction, session, agent_id=agent_id, title=title, source=source)


def _shared(
    transaction: Transaction,
    list_id: int,
    limit: int,
    known: int,
    links: History[bytes],
    rows_from: Callable[[int], Sequence[records.Row]],
) -> int:
    """Return how many rows a session has in common with a list, *limit* at most.

    An equal link says that all before it is equal too, so most rows need not be looked at.

    Args:
        known: How many they have in common for certain.
    """
    linked = min(limit, len(links))
    last = list(lists.read_marks(transaction, list_id, linked - 1, linked)) if linked else []
    equal = linked if last and last[0][2] == links[linked - 1] else 0
    shared = max(equal, min(limit, known))
    rows = rows_from(shared)
    stored = lists.read_marks(transaction, list_id, shared, min(limit, shared + len(rows)))
    for mark, row in zip(stored, rows, strict=False):
        if (row.hash, row.note, row.link) != tuple(mark):
            break
        shared += 1
    return shared


def info(transaction: Transaction, session_id: str) -> SessionInfo:
    """Return what a list shows of a session."""
    known = is_name(session_id)
    own, tenant = condition(transaction, "s.tenant")
    sql = f"SELECT {INFO} FROM sessions s WHERE s.id = ? AND {own}"
    rows = transaction.rows(sql, session_id, *tenant) if known else ()
    if not rows:
        raise SessionNotFound(session_id)
    return read_info(rows[0])


def first_messages(transaction: Transaction, session_ids: Sequence[str]) -> dict[str, Message]:
    """Return the first message of each session that is there and has one, by id."""
    if not session_ids:
        return {}
    marks = ", ".join("?" * len(session_ids))
    own, tenant = condition(transaction, "tenant")
    rows = transaction.rows(
        f"SELECT id, messages FROM sessions WHERE message_count > 0 AND id IN ({marks}) AND {own}",
        *session_ids, *tenant,
    )  # fmt: skip
    bodies = lists.read_places(transaction, [(list_id, 0) for _, list_id in rows])
    return {session_id: records.read_stored_message(bodies[list_id]) for session_id, list_id in rows}


def find_like(transaction: Transaction, given: str, limit: int) -> list[SessionInfo]:
    """Return the sessions whose id begins with a text, then those whose title it is, *limit* of each."""
    own, tenant = condition(transaction, "s.tenant")
    select = f"SELECT {INFO} FROM sessions s WHERE {own} AND"
    behind = f"{given}{_LAST_CHARACTER}"
    begun = transaction.rows(
        f"{select} s.id >= ? AND s.id < ? ORDER BY s.id LIMIT ?", *tenant, given, behind, limit
    )
    titled = transaction.rows(
        f"{select} s.title = ? ORDER BY s.updated DESC, s.id LIMIT ?", *tenant, given, limit
    )
    known = {row[0] for row in begun}
    return [read_info(row) for row in (*begun, *(row for row in titled if row[0] not in known))]


_FORK = re.compile(r" \(fork(?: (\d+))?\)$")


def fork_title(title: str) -> str:
    """Return the title of a fork of a session with that title; the fork of a fork is counted."""
    if not title:
        return ""
    found = _FORK.search(title)
    if found is None:
        return f"{title} (fork)"
    return f"{title[: found.start()]} (fork {int(found[1] or 1) + 1})"


def rename(transaction: Transaction, session_id: str, title: str, now: float) -> SessionInfo:
    """Change the title of a session that is held."""
    transaction.run(
        "UPDATE sessions SET title = ?, title_folded = ?, updated = ? WHERE id = ?",
        title, records.folded(title), now, session_id,
    )  # fmt: skip
    return info(transaction, session_id)


def retitle(transaction: Transaction, session_id: str, title: str, old: str) -> str | None:
    """Give a session a title that was made for it, unless somebody has given it another than *old*.

    Returns:
        The title, if it has it now.
    """
    usable = "".join(filter(is_text, title))  # a save must not fail for what a model calls it
    before = "".join(filter(is_text, old))
    if info(transaction, session_id).parent_id is not None:
        usable, before = fork_title(usable), fork_title(before)
    given = transaction.run(
        "UPDATE sessions SET title = ?, title_folded = ? WHERE id = ? AND title IN ('', ?)",
        usable, records.folded(usable), session_id, before,
    )  # fmt: skip
    return usable if given else None


def family(transaction: Transaction, session_id: str) -> list[SessionInfo]:
    """Return a session with all that it was forked from and all that was forked from those, oldest first.

    Raises:
        SessionNotFound: If there is no such session.
    """
    find(transaction, session_id)
    own, tenant = condition(transaction, "s.tenant")
    rows = transaction.rows(
        "WITH RECURSIVE above (id, parent_id) AS ("
        "SELECT id, parent_id FROM sessions WHERE id = ? "
        "UNION SELECT s.id, s.parent_id FROM sessions s JOIN above a ON s.id = a.parent_id), "
        "below (id) AS (SELECT id FROM above "
        "UNION SELECT s.id FROM sessions s JOIN below b ON s.parent_id = b.id) "
        f"SELECT {INFO}, l.base FROM sessions s JOIN below b ON b.id = s.id "
        f"JOIN lists l ON l.id = s.messages WHERE {own} ORDER BY s.created, s.id",
        session_id, *tenant,
    )  # fmt: skip
    found = [(read_info(row[:-1]), row[-1]) for row in rows]
    return [one if one.parent_id is None else replace(one, forked_at=base) for one, base in found]


def assign(transaction: Transaction, session_id: str, agent_id: str | None, now: float) -> SessionInfo:
    """Change the agent of a session that is held."""
    transaction.run("UPDATE sessions SET agent_id = ?, updated = ? WHERE id = ?", agent_id, now, session_id)
    return info(transaction, session_id)


def delete(transaction: Transaction, session_id: str) -> None:
    """Remove a session that is held and what is kept under its id; its messages are in lists."""
    # Whoever still has it in hand must not take a later session of the same id for it.
    revision, token = transaction.rows(
        "SELECT s.revision, l.token FROM sessions s LEFT JOIN leases l ON l.session = s.id WHERE s.id = ?",
        session_id,
    )[0]
    highest = max(revision, token or 0)
    transaction.run("UPDATE past SET highest = ? WHERE highest < ?", highest, highest)
    transaction.run("DELETE FROM sessions WHERE id = ?", session_id)


def read_info(row: Row, match: str | None = None) -> SessionInfo:
    """Return what a list shows of a session from its columns `INFO`."""
    session_id, title, agent_id, created, updated, messages, revision, parent_id = row
    return SessionInfo(
        id=session_id, title=title, agent_id=agent_id, created=created, updated=updated,
        messages=messages, revision=revision, parent_id=parent_id, match=match,
    )  # fmt: skip

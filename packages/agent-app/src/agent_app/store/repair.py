"""Saves what can be read of a damaged SQLite store into a new one.

The old files are only read. A message whose bytes have changed is kept if it can still be read, since a
person can make sense of a wrong letter, and its metadata says so. What gives rights or is acted on
(permissions, decisions, waiting messages) is kept only if it is unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_app.errors import StoreUnavailable
from agent_app.store import checksums, records, salvage
from agent_app.store.sessions import is_name, is_text
from agent_app.store.sql import SqlStore
from agent_app.store.sqlite import SQLiteDatabase
from agent_core import AgentError, ArgumentError, Message, Session
from agent_core.messages import NATIVE_INDICES
from agent_core.native import INTEGRITY, NATIVE_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from agent_app.store.database import Transaction

DAMAGED = "damaged"
"""The key of a message's metadata that says that its bytes are not those that were written."""

_FOUND = "recovered"
_OTHERS = ("inputs", "approvals", "intents", "grants")
_MOST_LINES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """What a repair has saved.

    Attributes:
        source: The damaged file, which is as it was.
        target: The new store.
        saved: How much is in the new store as it was written, by kind: sessions, messages, events and others.
        damaged: How much is there that may not be what was written: sessions that lack something, messages.
        lost: How much is known to be missing.
        where: What is wrong, one sentence each.
        problems: What a deep check of the new store finds; nothing, if all went well.
    """

    source: Path
    target: Path
    saved: Mapping[str, int]
    damaged: Mapping[str, int]
    lost: Mapping[str, int]
    where: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def repair_store(source: str | PathLike[str], target: str | PathLike[str]) -> Repaired:
    """Save what can be read of a SQLite file, and of the log next to it, into a new store.

    Args:
        target: The file of the new store; it must not exist yet.

    Raises:
        ArgumentError: If there is no file to read, or the new one already exists.
        StoreUnavailable: If it cannot be read or written.
    """
    source, target = Path(source), Path(target)
    if not source.is_file():
        raise ArgumentError(f"there is no file {source}: name the file of the store")
    if target.exists():
        raise ArgumentError(f"{target} already exists: choose another file to save to")
    try:
        log = Path(f"{source}-wal")
        remains = salvage.read_remains(source.read_bytes(), log.read_bytes() if log.exists() else None)
    except OSError as error:
        raise StoreUnavailable(f"{source} cannot be read: {error.strerror}; check the disk") from error
    found = _Found(remains)
    counts = _Counts()
    counts.where += [f"{source}: {note}" for note in remains.notes]
    if remains.log_missing:
        counts.where.append(
            f"{source}-wal is missing: the last messages are lost, and it is unknown how many"
        )
    counts.where += [
        f"page {number} of {source}: {problem}" for number, problem in sorted(remains.damaged.items())
    ]
    with closing(SqlStore(SQLiteDatabase(f"sqlite:///{target}"))) as store:
        for one in found.sessions(counts):
            _write(store, found, one, counts)
        with store.writing() as transaction:
            _write_others(transaction, "grants", found.others("grants", ""), counts)
        problems = store.check(deep=True).problems
    where = tuple(counts.where[:_MOST_LINES])
    if len(counts.where) > _MOST_LINES:
        where += (f"… and {len(counts.where) - _MOST_LINES} more",)
    return Repaired(
        source=source, target=target, saved=dict(counts.saved), damaged=dict(counts.damaged),
        lost=dict(counts.lost), where=where, problems=problems,
    )  # fmt: skip


@dataclass(slots=True)
class _Counts:
    saved: dict[str, int] = field(default_factory=lambda: defaultdict(int, sessions=0, messages=0))
    damaged: dict[str, int] = field(default_factory=lambda: defaultdict(int, sessions=0, messages=0))
    lost: dict[str, int] = field(default_factory=lambda: defaultdict(int, sessions=0, messages=0))
    where: list[str] = field(default_factory=list)


class _Saved(NamedTuple):
    """A session to be written, with the columns of its row; those are empty if the row is lost."""

    session: Session
    row: Mapping[str, Any]


class _Found:
    """The rows that were found, by what they are found by."""

    def __init__(self, remains: salvage.Remains) -> None:
        self._tables: dict[str, dict[Any, salvage.Row]] = defaultdict(dict)
        self._of: dict[str, dict[str, list[salvage.Row]]] = {name: defaultdict(list) for name in _OTHERS}
        self._blank = remains.blank
        self._used = set[int]()
        for row in remains.rows:
            length = 1 if row.table == "content" else len(checksums.TABLES[row.table].key)
            key = row.values[:length]
            known = self._tables[row.table].get(key)
            if known is None or (row.whole and not known.whole):
                self._tables[row.table][key] = row
        for name in _OTHERS:
            for row in self._tables[name].values():
                self._of[name][self._session_of(row)].append(row)
        self._events: dict[str, list[tuple[int, bytes, bool]]] = defaultdict(list)
        for (session_id, seq), row in sorted(self._tables["events"].items()):
            self._events[session_id].append((seq, row.values[2], row.whole))
        self._entries: dict[int, dict[int, salvage.Row]] = defaultdict(dict)
        for (number, seq), row in self._tables["entries"].items():
            self._entries[number][seq] = row
        self._metadata: dict[str, list[salvage.Row]] = defaultdict(list)
        for (session_id, _), row in self._tables["metadata"].items():
            self._metadata[session_id].append(row)

    @staticmethod
    def _session_of(row: salvage.Row) -> str:
        place = checksums.TABLES[row.table].columns.index("session")
        return row.values[place] or ""

    @property
    def highest(self) -> int:
        """The highest revision or lease number that any process may still use."""
        numbers = [row.values[0] for row in self._tables["past"].values() if row.whole]
        numbers += [row.values[6] for row in self._tables["sessions"].values() if row.whole]
        numbers += [row.values[2] for row in self._tables["leases"].values() if row.whole]
        return max(numbers, default=0)

    def others(self, table: str, session_id: str) -> Sequence[salvage.Row]:
        """Return rows that belong to a session; without one, those that belong to none."""
        return self._of[table][session_id]

    def events(self, session_id: str) -> Sequence[tuple[int, bytes, bool]]:
        """Return number and body of each event of a session, and whether it is what was written."""
        return self._events[session_id]

    def sessions(self, counts: _Counts) -> Iterator[_Saved]:
        """Yield all sessions of which something can be read."""
        used = set[int]()
        for row in sorted(self._tables["sessions"].values()):
            columns = dict(zip(checksums.TABLES["sessions"].columns, row.values, strict=True))
            if not is_name(columns["id"]) or not 0 <= columns["message_count"] < salvage.MOST:
                counts.lost["sessions"] += 1
                counts.where.append(f"a session on page {row.page} cannot be read")
                continue
            used |= {number for number, _, _ in self._stretches(columns["messages"], 1 << 40)}
            used.add(columns["natives"])
            yield self._session(columns, counts, whole=row.whole)
        yield from self._unnamed(used, counts)

    def _unnamed(self, used: set[int], counts: _Counts) -> Iterator[_Saved]:
        """Yield the messages of sessions whose rows are lost, and those without a known place.

        Without damage these are messages that no session refers to, and they are not saved.
        """
        known = {key[0] for key in self._tables["sessions"]}
        named = {*self._metadata, *self._events, *(key[0] for key in self._tables["leases"])} - known
        if not (named or counts.where or self._blank):
            return
        counts.lost["sessions"] += len(named)
        counts.where += [
            f"session {name!r}: its title and where its messages stand are lost; as far as they can be read, "
            f"they are in the sessions called {_FOUND!r}"
            for name in sorted(named)
        ]
        for number in sorted(set(self._entries) - used):
            end = max(self._entries[number]) + 1
            if any(self._is_message(row) for row in self._entries[number].values()):
                columns = {
                    "id": f"{_FOUND}-{number}", "title": _FOUND, "messages": number, "message_count": end,
                }  # fmt: skip
                yield self._session(columns, counts, whole=False)
        yield from self._without_place(counts)

    def _without_place(self, counts: _Counts) -> Iterator[_Saved]:
        """Yield one session with the messages to which no reference is left, as they were written."""
        messages = list[Message]()
        for (number,), row in sorted(self._tables["content"].items()):
            if number in self._used or not row.values[3]:
                continue
            message, whole = self._read(row, None, whole=row.whole)
            if message is not None:
                messages.append(message)
                (counts.saved if whole else counts.damaged)["messages"] += 1
        if messages:
            counts.lost["messages"] = max(0, counts.lost["messages"] - len(messages))
            counts.damaged["sessions"] += 1
            counts.where.append(
                f"{len(messages)} messages without a known place are in the session {_FOUND!r}"
            )
            yield _Saved(Session(_FOUND, messages), {"title": _FOUND})

    def _is_message(self, entry: salvage.Row) -> bool:
        content = self._tables["content"].get((entry.values[2],))
        return content is not None and bool(content.values[3])

    def _session(self, columns: Mapping[str, Any], counts: _Counts, *, whole: bool) -> _Saved:
        name, count = columns["id"], columns["message_count"]
        messages, right = list[Message](), True
        for place in range(count):
            message, intact = self._message(columns["messages"], place)
            right = right and intact
            if message is None:
                counts.lost["messages"] += 1
                counts.where.append(f"session {name!r}: message {place} is lost")
                continue
            messages.append(message)
            (counts.saved if intact else counts.damaged)["messages"] += 1
            if not intact:
                counts.where.append(f"session {name!r}: message {place} may have wrong letters")
        metadata, complete = self._metadata_of(name)
        items = self._items(columns) if right else None
        session = _joined(name, messages, metadata, items)
        if not whole:
            counts.where.append(f"session {name!r}: its title, dates or agent may be wrong")
        elif not complete:
            counts.where.append(f"session {name!r}: some of its metadata is lost")
        good = whole and right and complete and (items is not None or NATIVE_MESSAGES not in metadata)
        (counts.saved if good else counts.damaged)["sessions"] += 1
        if right and not good and items is None and NATIVE_MESSAGES in metadata:
            counts.where.append(f"session {name!r}: the provider's own history is lost, and will be rebuilt")
        return _Saved(session, columns)

    def _message(self, number: int, place: int) -> tuple[Message | None, bool]:
        """Return a message, and whether it is what was written."""
        entry, content = self._at(number, place)
        if entry is None or content is None:
            return None, False
        self._used.add(content.values[0])
        return self._read(content, entry.values[3], whole=entry.whole and content.whole)

    @staticmethod
    def _read(content: salvage.Row, note: bytes | None, *, whole: bool) -> tuple[Message | None, bool]:
        try:
            message = records.read_message(content.values[2], note if whole else None)
        except (KeyError, ValueError, TypeError, AgentError):  # a bit may have flipped in the name of a field
            return None, False
        if not whole:
            message = Message.from_dict(
                {**message.to_dict(), "metadata": {**message.metadata, DAMAGED: True}}
            )
        return message, whole

    def _items(self, columns: Mapping[str, Any]) -> list[Any] | None:
        """Return the native items of a session, if all are what was written."""
        found = list[Any]()
        for place in range(columns.get("native_count", 0)):
            entry, content = self._at(columns["natives"], place)
            if entry is None or content is None or not (entry.whole and content.whole):
                return None
            found.append(records.decode(content.values[2]))
        return found

    def _at(self, number: int, place: int) -> tuple[salvage.Row | None, salvage.Row | None]:
        """Return the reference at a place of a list, and its content."""
        for here, start, end in self._stretches(number, place + 1):
            if start <= place < end:
                entry = self._entries[here].get(place)
                return entry, None if entry is None else self._tables["content"].get((entry.values[2],))
        return None, None

    def _stretches(self, number: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the lists in which the references of a list stand, each with where they begin and end."""
        seen = set[int]()
        here: int | None = number
        while here is not None and end > 0 and here not in seen:
            seen.add(here)
            row = self._tables["lists"].get((here,))
            parent, base = (None, 0) if row is None else row.values[1:3]
            yield here, base, end
            here, end = parent, min(base, end)

    def _metadata_of(self, session_id: str) -> tuple[dict[str, Any], bool]:
        """Return the metadata of a session, and whether all that there is of it can be read."""
        metadata, complete = dict[str, Any](), True
        for row in self._metadata[session_id]:
            content = self._tables["content"].get((row.values[2],))
            if content is None or not (row.whole and content.whole):
                complete = False
                continue
            metadata.update(records.decode(content.values[2]))
        return metadata, complete


def _joined(name: str, messages: list[Message], metadata: dict[str, Any], items: list[Any] | None) -> Session:
    """Return a session; if it has no native items, the core rebuilds them from the messages."""
    if items is not None:
        joined = {**metadata, NATIVE_MESSAGES: items} if NATIVE_MESSAGES in metadata else metadata
        return Session(name, messages, joined)
    plain = {key: value for key, value in metadata.items() if key not in (NATIVE_MESSAGES, INTEGRITY)}
    return Session(name, [_without_indices(message) for message in messages], plain)


def _without_indices(message: Message) -> Message:
    if NATIVE_INDICES not in message.metadata:
        return message
    kept = {key: value for key, value in message.metadata.items() if key != NATIVE_INDICES}
    return Message.from_dict({**message.to_dict(), "metadata": kept})


def _write(store: SqlStore, found: _Found, one: _Saved, counts: _Counts) -> None:
    """Write a session with all that belongs to it."""
    row = one.row
    agent_id, title = row.get("agent_id"), row["title"]
    store.create(
        one.session,
        agent_id=agent_id if agent_id is None or is_name(agent_id) else None,
        title=title if is_text(title) else "",
    )
    with store.writing() as transaction:
        if "revision" in row:
            _date(transaction, row)
        transaction.run("UPDATE past SET highest = ? WHERE highest < ?", found.highest, found.highest)
        _write_events(transaction, found, one.session.session_id, counts)
        for table in _OTHERS:
            _write_others(transaction, table, found.others(table, one.session.session_id), counts)


def _date(transaction: Transaction, row: Mapping[str, Any]) -> None:
    columns = ("created", "updated", "revision", "parent_id", "last_input", "tenant")
    transaction.run(
        f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
        *(row[name] for name in columns), row["id"],
    )  # fmt: skip


def _write_events(transaction: Transaction, found: _Found, session_id: str, counts: _Counts) -> None:
    """Write the events of a session, numbered without gaps."""
    events = found.events(session_id)
    good = [body for _, body, whole in events if whole]
    missing = max((seq for seq, _, _ in events), default=0) - len(good)
    counts.saved["events"] += len(good)
    if missing:
        counts.lost["events"] += missing
        counts.where.append(
            f"session {session_id!r}: {missing} events are lost, and the others numbered again"
        )
    transaction.many(
        "INSERT INTO events (session, seq, body) VALUES (?, ?, ?)",
        [(session_id, seq, body) for seq, body in enumerate(good, 1)],
    )


def _write_others(transaction: Transaction, table: str, rows: Sequence[salvage.Row], counts: _Counts) -> None:
    columns = checksums.TABLES[table].columns
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
    for row in rows:
        if row.whole:
            transaction.run(sql, *row.values)
            counts.saved[table] += 1
        else:
            counts.lost[table] += 1
            counts.where.append(f"one of the {table} on page {row.page} is damaged, and not saved")

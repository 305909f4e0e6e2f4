"""References and the content that they share.

Content is kept once, by the hash of what it says. A list is a row of references to content; a list with a
parent begins with the first `base` references of the parent's. So a fork costs one row, and an edit in
the middle of a conversation costs what comes after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_app.errors import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_app.store.database import Database, Row as DatabaseRow, Transaction
    from agent_app.store.records import Mark, Row

AT_ONCE = 1_000
"""So many rows of a long session are made, and written, at a time."""
_BATCH = 250
_FEW = 16
_ADD = "INSERT INTO content (hash, body, searched) VALUES {} ON CONFLICT (hash) DO NOTHING"
_ADD_ONE = _ADD.format("(?, ?, ?)")
_SHARED = "SELECT 1 FROM lists WHERE parent = ? AND base > ?"


class Stretch(NamedTuple):
    """A part of a list that stands in one place: the references of *list* from *start* to *end*."""

    list: int
    start: int
    end: int


def new_list(transaction: Transaction, parent: int | None = None, base: int = 0) -> int:
    """Make a list, empty or beginning like another."""
    # What the parent itself has from its own parent is taken from there: edits make no long chains.
    while parent is not None:
        grandparent, inherited = _origin(transaction, parent)
        if base > inherited:
            break
        parent = grandparent
    rows = transaction.rows("INSERT INTO lists (parent, base) VALUES (?, ?) RETURNING id", parent, base)
    made: int = rows[0][0]
    return made


def keep(database: Database, transaction: Transaction, rows: Sequence[Row]) -> dict[bytes, int]:
    """Keep content, if it is not kept already, and return its numbers by hash."""
    wanted: dict[bytes, Row] = {}
    for row in rows:
        if row.text or row.hash not in wanted:
            wanted[row.hash] = row
    if len(wanted) == 1:  # as of most appends
        return _keep_batch(database, transaction, wanted)
    # In one order for all: writers who add the same content wait for each other, and never in a ring.
    ordered = sorted(wanted)
    numbers: dict[bytes, int] = {}
    for start in range(0, len(ordered), _BATCH):
        batch = {known: wanted[known] for known in ordered[start : start + _BATCH]}
        numbers |= _keep_batch(database, transaction, batch)
    return numbers


def _keep_batch(database: Database, transaction: Transaction, batch: dict[bytes, Row]) -> dict[bytes, int]:
    # A few are mostly new; of many, some may be known already, and their bodies need not be sent to a server.
    known = {} if database.one_writer or len(batch) <= _FEW else _known(transaction, list(batch))
    added = _add(transaction, [row for key, row in batch.items() if key not in known])
    if texts := [(number, text) for key, number in added.items() if (text := batch[key].text)]:
        database.add_words(transaction, texts)
    if len(added) == len(batch):
        return added
    if len(added) + len(known) < len(batch):  # they are known nevertheless, or somebody has just added them
        known |= _known(transaction, [key for key in batch if key not in added and key not in known])
    late = [
        (number, text)
        for key, (number, searched) in known.items()
        if not searched and (text := batch[key].text) and _claim_words(transaction, number)
    ]
    if late:
        database.add_words_late(transaction, late)
    return {key: number for key, (number, _) in known.items()} | added


def _known(transaction: Transaction, hashes: Sequence[bytes]) -> dict[bytes, tuple[int, bool]]:
    if not hashes:
        return {}
    marks = ", ".join("?" * len(hashes))
    rows = transaction.rows(
        f"SELECT hash, id, searched FROM content WHERE hash IN ({marks})",
        *hashes,
    )
    return {bytes(known): (number, bool(searched)) for known, number, searched in rows}


def _add(transaction: Transaction, rows: Sequence[Row]) -> dict[bytes, int]:
    if not rows:
        return {}
    values = [value for row in rows for value in (row.hash, row.body, int(bool(row.text)))]
    if len(rows) == 1:
        number = transaction.insert(_ADD_ONE, *values)
        return {} if number is None else {rows[0].hash: number}
    marks = ", ".join(["(?, ?, ?)"] * len(rows))
    added = transaction.rows(f"{_ADD.format(marks)} RETURNING hash, id", *values)
    return {bytes(known): number for known, number in added}


def _claim_words(transaction: Transaction, number: int) -> bool:
    """Note that searches look at a content, and say whether they did not before."""
    sql = "UPDATE content SET searched = 1 WHERE id = ? AND searched = 0"
    return bool(transaction.run(sql, number))


class Part(NamedTuple):
    """What is written of a list: rows from a position on."""

    list: int
    at: int
    rows: Sequence[Row]


def pieces(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield parts in pieces that are small enough to be made and written one after the other."""
    for part in parts:
        for start in range(0, len(part.rows), AT_ONCE):
            yield Part(part.list, part.at + start, part.rows[start : start + AT_ONCE])


def append(transaction: Transaction, parts: Sequence[Part], numbers: dict[bytes, int]) -> None:
    """Add references to lists, to content that is kept already."""
    entries = [
        (part.list, part.at + place, numbers[row.hash], row.note, row.link)
        for part in parts
        for place, row in enumerate(part.rows)
    ]
    sql = "INSERT INTO entries (list, seq, content, note, link) VALUES (?, ?, ?, ?, ?)"
    if len(entries) == 1:
        transaction.run(sql, *entries[0])
    elif entries:
        transaction.many(sql, entries)


def update_links(
    transaction: Transaction, list_id: int, at: int, rows: Sequence[Mark], revision: int
) -> bool:
    """Write notes and links that were not known yet when the references were written.

    Args:
        revision: The session's, from which on they are so.

    Returns:
        False, and nothing is written, if some of them do not belong to this list alone: a fork shares them.
    """
    sql = "UPDATE entries SET note = ?, link = ?, renewed = ? WHERE list = ? AND seq = ?"
    if len(rows) == 1:  # as after most answers: the message that was answered
        (row,) = rows
        values = (row.note, row.link, revision, list_id, at, list_id, at)
        return bool(transaction.run(f"{sql} AND NOT EXISTS ({_SHARED})", *values))
    if not rows or not _is_own(transaction, list_id, at, at + len(rows)):
        return False
    for start in range(0, len(rows), AT_ONCE):
        some = enumerate(rows[start : start + AT_ONCE], at + start)
        transaction.many(sql, [(row.note, row.link, revision, list_id, place) for place, row in some])
    return True


def stretches(transaction: Transaction, list_id: int, start: int, end: int) -> list[Stretch]:
    """Return where the references of a list from *start* to *end* stand, in order."""
    found: list[Stretch] = []
    here: int | None = list_id
    while here is not None and start < end:
        parent, base = _origin(transaction, here)
        if end > base:
            found.append(Stretch(here, max(start, base), end))
            end = base
        here = parent
    return found[::-1]


def read(transaction: Transaction, list_id: int, start: int, end: int) -> Iterator[DatabaseRow]:
    """Yield body, note and link of the references from *start* to *end*."""
    yield from select(transaction, "c.body, e.note, e.link", list_id, start, end)


def read_marks(transaction: Transaction, list_id: int, start: int, end: int) -> Iterator[DatabaseRow]:
    """Yield hash, note and link of the references from *start* to *end*: enough to compare them."""
    yield from select(transaction, "c.hash, e.note, e.link", list_id, start, end)


def select(
    transaction: Transaction, columns: str, list_id: int, start: int, end: int
) -> Iterator[DatabaseRow]:
    """Yield columns of the references (`e`) from *start* to *end* and of their content (`c`)."""
    for stretch in stretches(transaction, list_id, start, end):
        yield from transaction.rows(
            f"SELECT {columns} FROM entries e JOIN content c ON c.id = e.content "
            "WHERE e.list = ? AND e.seq >= ? AND e.seq < ? ORDER BY e.seq",
            *stretch,
        )


def read_places(transaction: Transaction, places: Sequence[tuple[int, int]]) -> dict[int, bytes]:
    """Return the body at one place of each list, by list; mostly in one go."""
    if not places:
        return {}
    wanted = " OR ".join(["(e.list = ? AND e.seq = ?)"] * len(places))
    rows = transaction.rows(
        f"SELECT e.list, c.body FROM entries e JOIN content c ON c.id = e.content WHERE {wanted}",
        *[number for place in places for number in place],
    )
    bodies: dict[int, bytes] = {row[0]: row[1] for row in rows}
    for list_id, seq in places:
        if list_id not in bodies:  # the list has it from its parent
            found = next(read(transaction, list_id, seq, seq + 1), None)
            if found is None:
                raise StoreDamaged(
                    f"list {list_id} has lost entry {seq}: restore a copy; nothing was changed"
                )
            bodies[list_id] = found[0]
    return bodies


def count(transaction: Transaction, list_id: int, end: int) -> int:
    """Return how many of the first *end* references of a list are there, and their content with them."""
    there = 0
    for stretch in stretches(transaction, list_id, 0, end):
        there += transaction.rows(
            "SELECT count(*) FROM entries e JOIN content c ON c.id = e.content "
            "WHERE e.list = ? AND e.seq >= ? AND e.seq < ?",
            *stretch,
        )[0][0]
    return there


def _is_own(transaction: Transaction, list_id: int, start: int, end: int) -> bool:
    """Say whether the references from *start* to *end* belong to one list alone, and no fork shares them."""
    shared = transaction.rows(f"{_SHARED} LIMIT 1", list_id, start)
    _parent, base = _origin(transaction, list_id)
    return not shared and base <= start and own_end(transaction, list_id) >= end


def own_end(transaction: Transaction, list_id: int) -> int:
    """Return the position behind the last reference of a list's own, or its base if it has none."""
    end: int | None = transaction.rows("SELECT max(seq) + 1 FROM entries WHERE list = ?", list_id)[0][0]
    return _origin(transaction, list_id)[1] if end is None else end


def _origin(transaction: Transaction, list_id: int) -> tuple[int | None, int]:
    """Return the list that a list begins like, and for how long."""
    rows = transaction.rows("SELECT parent, base FROM lists WHERE id = ?", list_id)
    if not rows:
        raise StoreDamaged(f"list {list_id} is missing: restore a copy of the database; nothing was changed")
    parent, base = rows[0]
    return parent, base

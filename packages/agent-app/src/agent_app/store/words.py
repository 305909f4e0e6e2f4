"""The words of messages in SQLite: most are in the index, and the newest are still to come into it.

Writing the words of one message costs as much as the rest of its commit, and those of a hundred together not
much more. So they are written together. Until then they are the tail: the contents to be searched whose
numbers are higher than any that the index has. Nothing else tells what is indexed and what is not, so no
crash can part the two, and what was committed is found at once: a search looks through the tail as well.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from agent_app.store import records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_app.store.database import Transaction

_LONGEST = 64_000  # so much text is looked through by each search, which takes a few milliseconds
_EACH = 500  # what a message counts besides its text, for reading it
_ADD = "INSERT INTO words (rowid, text) VALUES (?, ?)"
# As in the tables of the formats, so that both find the same.
_INDEX = "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'unicode61')"


class Words:
    """Adds words to the index of one database, many at a time. Whoever calls it is its only writer."""

    def __init__(self) -> None:
        self._length: int | None = None

    def add(self, transaction: Transaction, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find contents that are new in this transaction."""
        if self._length is None:
            self._length = _length(transaction)
        else:
            self._length += sum(len(text) + _EACH for _, text in texts)
        if self._length > _LONGEST:
            transaction.many(_ADD, list(_tail(transaction)))
            self._length = 0

    def undone(self) -> None:
        """Take note that a transaction has come to nothing: how long the tail is must be looked up again."""
        self._length = None


def add_late(transaction: Transaction, texts: Sequence[tuple[int, str]]) -> None:
    """Let searches find contents that were there before, and were not searched."""
    newest = _newest(transaction)
    transaction.many(_ADD, [text for text in texts if text[0] <= newest])


def drop(transaction: Transaction, content: int, text: str) -> None:
    """Let searches forget a content; the text must be what it was when it was added."""
    if content <= _newest(transaction):
        transaction.run("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", content, text)


def matching(transaction: Transaction, words: Sequence[str]) -> tuple[str, Sequence[object]]:
    """Return a statement for the contents that have all words; the last one may be unfinished."""
    wanted = " ".join(f'"{word}"' for word in words) + "*"
    indexed = "SELECT rowid AS id FROM words WHERE words MATCH ?"
    newer = _found(list(_tail(transaction)), wanted)
    if not newer:
        return indexed, [wanted]
    marks = ", ".join("?" * len(newer))
    return f"{indexed} UNION ALL SELECT id FROM content WHERE id IN ({marks})", [wanted, *newer]  # noqa: S608 - only marks


def _found(texts: Sequence[tuple[int, str]], wanted: str) -> list[int]:
    """Return which texts the index would find."""
    if not texts:
        return []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as index:
        index.execute(_INDEX)
        index.executemany(_ADD, texts)
        return [row[0] for row in index.execute("SELECT rowid FROM words WHERE words MATCH ?", [wanted])]


def _newest(transaction: Transaction) -> int:
    """Return the highest number that the index has."""
    rows = transaction.rows("SELECT rowid FROM words ORDER BY rowid DESC LIMIT 1")
    return rows[0][0] if rows else 0


def _tail(transaction: Transaction) -> Iterator[tuple[int, str]]:
    """Yield the contents that are to be searched and are not in the index, with their texts."""
    rows = transaction.rows(
        "SELECT id, body FROM content WHERE id > ? AND searched = 1 ORDER BY id", _newest(transaction)
    )
    for number, body in rows:
        try:
            yield number, records.text_in(body)
        except (ValueError, TypeError, LookupError):
            continue  # it is damaged, which whoever reads it is told; all others can be found


def _length(transaction: Transaction) -> int:
    """Return how long the tail is, by the measure of `Words.add`."""
    sql = "SELECT coalesce(sum(length(body) + ?), 0) FROM content WHERE id > ? AND searched = 1"
    found: int = transaction.rows(sql, _EACH, _newest(transaction))[0][0]
    return found

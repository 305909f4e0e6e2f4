"""The words of messages in SQLite: most are in the index, and the newest are still to come into it.

Writing the words of one message costs as much as the rest of its commit, and those of a hundred together not
much more. So they are written together. Until then they are the tail: the contents to be searched whose
numbers are higher than any that the index has. Nothing else records what is indexed, so no
crash can part the two, and what was committed is found at once: a search looks through the tail as well.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import zip_longest
from typing import TYPE_CHECKING

from agent_app.store import records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_app.store.database import Transaction

_LONGEST = 64_000  # so much text is looked through by each search, which takes a few milliseconds
_PAGES = 500  # of the index are rewritten at a time, so that others can write between
_EACH = 500  # what a message counts besides its text, for reading it
_ADD = "INSERT INTO words (rowid, text) VALUES (?, ?)"
# As in the tables of the formats, so that both find the same.
_INDEX = "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'unicode61')"
DAMAGE = ("vtable constructor failed: words", "no such table: main.words", "fts5: ")
"""What SQLite says of an index that it cannot use; of other damage to it, it says the same as of any."""


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
        """Forget the length of the tail after a rollback; it is looked up again."""
        self._length = None


def add_late(transaction: Transaction, texts: Sequence[tuple[int, str]]) -> None:
    """Let searches find contents that were there before, and were not searched."""
    newest = _newest(transaction)
    transaction.many(_ADD, [text for text in texts if text[0] <= newest])


def drop(transaction: Transaction, content: int, text: str) -> bool:
    """Let searches forget a content; the text must be what it was when it was added.

    Returns:
        Whether its words are in the index, where `merge` removes them.
    """
    if content > _newest(transaction):
        return False
    transaction.run("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", content, text)
    return True


def merge(transaction: Transaction) -> bool:
    """Rewrite a part of the index without what was dropped, and say whether there is more to do.

    What is dropped is only marked until the part that has it is rewritten. Newer versions of SQLite can
    remove it at once, and write an index then that older ones cannot read.
    """
    before: int = transaction.rows("SELECT total_changes()")[0][0]
    transaction.run("INSERT INTO words (words, rank) VALUES ('merge', ?)", -_PAGES)
    after: int = transaction.rows("SELECT total_changes()")[0][0]
    return after - before > 1  # the statement itself counts as one


def matching(transaction: Transaction, words: Sequence[str]) -> tuple[str, Sequence[object]]:
    """Return a statement for the contents that have all words; the last one may be unfinished."""
    wanted = " ".join(f'"{word}"' for word in words) + "*"
    indexed = "SELECT rowid AS id FROM words WHERE words MATCH ?"
    newer = _found(list(_tail(transaction)), wanted)
    if not newer:
        return indexed, [wanted]
    marks = ", ".join("?" * len(newer))
    return f"{indexed} UNION ALL SELECT id FROM content WHERE id IN ({marks})", [wanted, *newer]


def differences(connection: sqlite3.Connection, *, writable: bool) -> Iterator[str]:
    """Yield the faults of the index, by comparing it with a new one.

    Args:
        writable: Whether SQLite can look at its own part: that is a statement that writes nothing, and it
            still needs the right to write.
    """
    try:
        if writable:
            connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        indexed = [row[0] for row in connection.execute("SELECT id FROM words_docsize ORDER BY id")]
        texts = list(_indexed_texts(connection, indexed[-1] if indexed else 0))
        if indexed != [number for number, _ in texts]:
            yield "the search index does not have the messages that it should have"
        elif not _same_words(connection, texts):
            yield "the search index does not have the words of the messages"
    except sqlite3.Error as error:
        yield f"the search index cannot be read ({error})"


def _indexed_texts(connection: sqlite3.Connection, newest: int) -> Iterator[tuple[int, str]]:
    rows = connection.execute(
        "SELECT id, body FROM content WHERE id <= ? AND searched = 1 ORDER BY id", (newest,)
    )
    for number, body in rows:
        try:
            yield number, records.text_in(body)
        except (ValueError, TypeError, LookupError):
            continue  # it is damaged, which its hash shows


def _same_words(connection: sqlite3.Connection, texts: Sequence[tuple[int, str]]) -> bool:
    """Say whether the index finds what one finds that is made of the texts."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        fresh.execute(_INDEX)
        fresh.executemany(_ADD, texts)
        both = (connection, fresh)
        for one in both:
            one.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, words, instance)")
        try:
            sql = "SELECT term, doc, col, offset FROM temp.vocabulary"
            if any(stored != made for stored, made in zip_longest(*(one.execute(sql) for one in both))):
                return False
            terms = [row[0] for row in fresh.execute("SELECT DISTINCT term FROM temp.vocabulary")]
        finally:
            connection.execute("DROP TABLE temp.vocabulary")
        # Prefixes of one and two letters have their own index, and only this checks them.
        beginnings = {term[:length] for term in terms for length in (1, 2)}
        sql = "SELECT rowid FROM words WHERE words MATCH ?"
        return all(
            connection.execute(sql, [f'"{begun}"*']).fetchall()
            == fresh.execute(sql, [f'"{begun}"*']).fetchall()
            for begun in beginnings
        )


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
            continue  # it is damaged, which reading it reports; all others can be found


def _length(transaction: Transaction) -> int:
    """Return how long the tail is, by the measure of `Words.add`."""
    sql = "SELECT coalesce(sum(length(body) + ?), 0) FROM content WHERE id > ? AND searched = 1"
    found: int = transaction.rows(sql, _EACH, _newest(transaction))[0][0]
    return found

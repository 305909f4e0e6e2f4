"""What the store's SQL needs of a database.

Statements are written once, with `?` for parameters and in the SQL that both databases share. Where they
differ (opening, transactions, errors, searching, upkeep) each database has a method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from agent_app.store.base import Durability
    from agent_app.store.processes import Moment

Row = Sequence[Any]
HIGHEST = 2**62
"""No number in a store is as high as this."""
USAGE = b'{"type":"usage",'
"""How an event of what a model used begins in the log; the index of these has the same bytes."""


class Transaction(Protocol):
    """A transaction under way.

    Attributes:
        tenant: Whose rows it is about; None for those of all.
    """

    tenant: str | None

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Run a statement and return its rows."""

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement and return how many rows it changed."""

    def insert(self, sql: str, *values: Any) -> int | None:
        """Run a statement that inserts one row, and return its `id`; None if it inserted none."""

    def many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each set of values."""


class Database(Protocol):
    """One database. A transaction inside another one of the same thread is a part of it."""

    url: str
    read_only: str | None
    """Why nothing can be written, if that is so."""
    one_writer: bool
    """Whether whoever writes is alone, and may remove what nobody refers to any more."""
    next_position: str
    """SQL for the next position in the feed that a transaction may use."""
    usage_events: str
    """SQL for the logged events of what models used, up to its condition; there is an index of these."""

    def now(self) -> float:
        """Return the time by which rows are dated, in seconds since 1970."""

    def moment(self) -> Moment:
        """Return that time, and what the clock shows by which leases end."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """Read a state in which nothing changes until the end."""

    def writing(
        self, durability: Durability = "turn", *, alone: bool = False, joined: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Write everything or nothing; it is as safe as *durability* says when the block is left.

        Args:
            alone: Whether nobody else may write anything until it ends.
            joined: Whether transactions inside this one are simply parts of it; otherwise each of them is
                undone alone if it fails.

        Raises:
            StoreUnavailable, StoreDamaged: If that is not possible; nothing was written then.
        """

    def look(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of one statement that reads; it needs no transaction around it."""

    def glance(self, sql: str, *values: Any) -> Row | None:
        """Return the row of a quick statement; None if there is none, or if it had to be waited for."""

    def confine(self, transaction: Transaction, tenant: str) -> None:
        """Keep the rows of other tenants away from a transaction, if the database itself can do that."""

    def hold(self, transaction: Transaction, session_id: str) -> None:
        """Let nobody else write a session until the transaction ends, and see what others have written."""

    def announce(self, transaction: Transaction, session_id: str) -> None:
        """Tell those who `listen`, once the transaction is done, that a session has something new."""

    def log(self, transaction: Transaction, session_id: str, insert: str, values: Sequence[Any]) -> list[int]:
        """Write events to a session's log and to the feed, announce that, and return their numbers.

        Args:
            insert: A statement that writes them to the log and returns the `seq` of each.
        """

    def settled(self, transaction: Transaction) -> int:
        """Return the position in the feed before which nothing can appear any more."""

    def listen(self, tell: Callable[[str | None], None]) -> Callable[[], None]:
        """Have *tell* called with each session that is announced; return what ends that."""

    def add_words(self, transaction: Transaction, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find contents by their words that are new in this transaction."""

    def add_words_late(self, transaction: Transaction, texts: Sequence[tuple[int, str]]) -> None:
        """Let searches find contents by their words that were there before, and were not searched."""

    def drop_words(self, transaction: Transaction, content: int, text: str) -> None:
        """Let searches forget a content that they could find."""

    def erase_log(self) -> None:
        """After the transaction that is under way, leave nothing in the log of what it has removed."""

    def matching(self, transaction: Transaction, wanted: Sequence[str]) -> tuple[str, Sequence[Any]]:
        """Return a statement, and its values, for the `id` of each content that has all words *wanted*.

        The last word may be unfinished.
        """

    def damage(self, checked: dict[str, int], *, deep: bool) -> list[str]:
        """Return what the database itself finds wrong with its files.

        Args:
            checked: How many things were looked at, by kind; what is looked at here is added.
            deep: Whether every row is compared with its checksum, if the database keeps any.
        """

    def close(self) -> None:
        """Let go of it."""

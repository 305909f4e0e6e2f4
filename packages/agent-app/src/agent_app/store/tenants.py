"""One store for several tenants: a view on it that has the sessions of one alone.

Every session belongs to a tenant, the default one unless somebody says otherwise, and a fork belongs to the
tenant of its source. A transaction of a view knows its tenant; our statements then look at its rows alone,
and PostgreSQL's policies keep the others away in any case. A store without a tenant has all sessions: that is
what workers and the upkeep need.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app.store.base import Durability
    from agent_app.store.database import Database, Row, Transaction


class TenantDatabase:
    """A database whose transactions are about one tenant.

    Args:
        database: The database, which others share; it is not closed with this view.
    """

    def __init__(self, database: Database, tenant: str) -> None:
        self._database = database
        self._tenant = tenant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Read the rows of the tenant."""
        with self._database.reading() as transaction:
            self._confine(transaction)
            yield transaction

    @contextmanager
    def writing(
        self, durability: Durability = "turn", *, alone: bool = False, joined: bool = False
    ) -> Iterator[Transaction]:
        """Write the rows of the tenant."""
        with self._database.writing(durability, alone=alone, joined=joined) as transaction:
            self._confine(transaction)
            yield transaction

    def glance(self, _sql: str, *_values: Any) -> Row | None:
        """Return nothing: a quick statement is not a transaction, and nothing would confine it."""
        return None

    def close(self) -> None:
        """Leave the database open: others use it."""

    def _confine(self, transaction: Transaction) -> None:
        transaction.tenant = self._tenant
        self._database.confine(transaction, self._tenant)


def condition(transaction: Transaction, column: str) -> tuple[str, list[str]]:
    """Return what must be true of a column so that a row is one of the tenant's, and the value for it."""
    return ("1 = 1", []) if transaction.tenant is None else (f"{column} = ?", [transaction.tenant])

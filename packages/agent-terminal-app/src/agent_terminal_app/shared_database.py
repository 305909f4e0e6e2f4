"""Commands that work with others on one database: workers, and those who send them work."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.opening import open_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app import AgentApplication
    from agent_durable import DurableRuns
    from agent_durable.dbos_engine import DbosEngine
    from agent_durable.workers import Workers

DATABASE_VARIABLE = "AGENT_DATABASE"

database_option = click.option(
    "--database",
    envvar=DATABASE_VARIABLE,
    required=True,
    help=f"The database that all share: postgresql://… (or {DATABASE_VARIABLE}).",
)


class Shared(NamedTuple):
    """What is shared: the application's sessions, the queue of runs, the list of workers."""

    app: AgentApplication
    engine: DbosEngine
    workers: Workers

    @property
    def runs(self) -> DurableRuns:
        """Submits runs and watches them."""
        from agent_durable import DurableRuns

        return DurableRuns(self.app, self.engine)


@contextmanager
def shared_database(
    url: str, *, limits: dict[str, tuple[int, float] | None] | None = None, model: str | None = None
) -> Iterator[Shared]:
    """Open what is shared.

    Raises:
        CommandError: If this installation cannot: what is missing is named.
    """
    try:
        from agent_durable import open_engine
    except ImportError as error:
        raise CommandError(
            "workers are not installed", code=Exit.NOT_CONFIGURED, hint="pip install 'agent-durable[dbos]'"
        ) from error
    with open_settings(model=model).application(database=url) as app:
        engine, workers = open_engine(url, limits=limits)
        try:
            yield Shared(app, engine, workers)
        finally:
            engine.stop()
            workers.close()

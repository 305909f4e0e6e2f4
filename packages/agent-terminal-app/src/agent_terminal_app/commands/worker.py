"""`agent worker`: take runs from the queue, until told to stop."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

import click

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.shared_database import database_option, shared_database
from agent_terminal_app.tables import say

OFF = "off"
GIVEN_UP = 75
"""The exit code of a worker that others have given up: start it again."""


@click.command("worker")
@database_option
@click.option(
    "--concurrency", default=10, show_default=True, type=click.IntRange(1, 1000), help="Runs at a time."
)
@click.option("--model", help="Another model for agents that name none.")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="WHOM=RUNS/SECONDS",
    help="At most so many runs in so many seconds, on all workers together: tenant:NAME=10/60 or "
    "provider:NAME=100/1. It stays until a worker is given another one, or tenant:NAME=off.",
)
@click.option(
    "--grace",
    default=30.0,
    show_default=True,
    help="Seconds that steps under way have when it is told to stop.",
)
@click.option(
    "--keep-days",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="After so many days runs that are over are no longer listed; their sessions stay.",
)
def command(
    database: str,
    concurrency: int,
    model: str | None,
    limits: tuple[str, ...],
    grace: float,
    keep_days: float,
) -> None:
    """Take runs from the queue that all workers of a database share.

    SIGTERM and Ctrl+C let it finish the step of each run, and hand the runs over to other workers.
    """
    from agent_durable import Worker

    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_given: told.set())
    with shared_database(database, limits=read_limits(limits), model=model) as shared:
        worker = Worker(
            shared.app,
            shared.engine,
            shared.workers,
            concurrency=concurrency,
            keep_days=keep_days,
            given_up=lambda: os._exit(GIVEN_UP),
        )
        worker.start()
        say(f"{worker.id} takes up to {concurrency} runs at a time; Ctrl+C hands them over and stops")
        told.wait()
        say(f"{worker.id} stops: {len(worker.running)} runs are under way")
        handed = worker.drain(seconds=grace)
        say(f"{worker.id} has stopped; handed over: {len(handed)}")


def read_limits(given: tuple[str, ...]) -> dict[str, tuple[int, float] | None]:
    """Read limits as they are written on the command line; None is for one that is lifted.

    Raises:
        CommandError: If one cannot be read.
    """
    return dict(map(_read_limit, given))


def _read_limit(text: str) -> tuple[str, tuple[int, float] | None]:
    whom, _, rate = text.rpartition("=")
    kind, _, name = whom.partition(":")
    if kind in ("tenant", "provider") and name:
        if rate == OFF:
            return whom, None
        count, _, seconds = rate.partition("/")
        with suppress(ValueError):
            if min(int(count), float(seconds)) > 0:
                return whom, (int(count), float(seconds))
    hint = f"write tenant:NAME=10/60, or tenant:NAME={OFF} to lift it"
    raise CommandError(f"--limit {text!r} cannot be read", code=Exit.USAGE, hint=hint)

"""`agent worker` takes runs from a queue until it is stopped; `agent workers` lists the workers.

All commands that share a database open it here: workers, and `agent runs`, which sends them work. A server
may start workers for itself, as processes of their own (`worker_processes`): one that ends is started again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from agent_terminal_app import lazy
from agent_terminal_app.application import open_settings
from agent_terminal_app.commands.team import own_keys
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.output import moment, print_json, print_table, say
from agent_terminal_app.paths import Paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from agent_app import AgentApplication
    from agent_durable import DurableRuns
    from agent_durable.dbos_engine import DbosEngine
    from agent_durable.workers import Workers

DATABASE_VARIABLE = "AGENT_DATABASE"

WAIT_SECONDS = 10.0
_WAIT = "agent_terminal_app.database_wait"


def database_option(command: Callable[..., Any], *, wait: float = WAIT_SECONDS) -> Callable[..., Any]:
    """Add the options for the shared database and for how long to wait while it is down."""
    database = click.option(
        "--database",
        envvar=DATABASE_VARIABLE,
        required=True,
        help=f"The database that all share: postgresql://… (or {DATABASE_VARIABLE}).",
    )
    patience = click.option(
        "--database-wait",
        default=wait,
        show_default=True,
        type=click.FloatRange(min=0),
        expose_value=False,
        callback=lambda context, _option, seconds: context.meta.__setitem__(_WAIT, seconds),
        help="Seconds to wait for the database while it is down.",
    )
    return database(patience(command))


class Shared(NamedTuple):
    """What workers share: the application's sessions, the queue of runs, the list of workers."""

    app: AgentApplication
    engine: DbosEngine
    workers: Workers

    @property
    def runs(self) -> DurableRuns:
        """Submits runs and watches them."""
        return lazy.DurableRuns(self.app, self.engine, self.workers)


@contextmanager
def shared_database(
    url: str,
    *,
    limits: dict[str, tuple[int, float] | None] | None = None,
    bounds: dict[str, int] | None = None,
    model: str | None = None,
    replica: str | None = None,
) -> Iterator[Shared]:
    """Open what is shared; a database that is down is waited for as long as --database-wait says.

    Args:
        replica: The URL of a replica of the database, from which events are read.

    Raises:
        CommandError: If this installation cannot: what is missing is named.
        StoreUnavailable: If the database stays down.
    """
    open_engine = lazy.open_engine  # says what is missing before anything is opened
    opened = open_settings(model=model)
    context = click.get_current_context(silent=True)
    seconds = WAIT_SECONDS if context is None else context.meta.get(_WAIT, WAIT_SECONDS)
    lazy.wait_for(url, seconds=seconds, tell=lambda text: say(f"agent: {text}"))
    with opened.application(database=url, replica=replica) as app:
        engine, workers = open_engine(url, limits=limits, bounds=bounds)
        try:
            yield Shared(app, engine, workers)
        finally:
            engine.stop()
            workers.close()


OFF = "off"
GIVEN_UP = 75
"""The exit code of a worker that others have given up: start it again."""

DATABASE_SECONDS = 600.0
"""How long a worker waits for its database when it starts."""


@click.command("worker")
@partial(database_option, wait=DATABASE_SECONDS)
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
    help="Seconds that running steps have to finish when it is stopped.",
)
@click.option(
    "--keep-days",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="After so many days runs that are over are no longer listed; their sessions stay.",
)
@click.option(
    "--recoveries",
    default=3,
    show_default=True,
    type=click.IntRange(min=0),
    help="How many workers may die with a run before it is stopped.",
)
@click.option(
    "--most-waiting",
    type=click.IntRange(min=1),
    help="How many runs may wait, 10000 by default; more are refused. It stays until a "
    "worker is given another number.",
)
@click.option(
    "--most-waiting-of-tenant",
    type=click.IntRange(min=1),
    help="How many runs of one tenant may wait, 2500 by default.",
)
def worker_command(
    database: str,
    concurrency: int,
    model: str | None,
    limits: tuple[str, ...],
    grace: float,
    keep_days: float,
    recoveries: int,
    most_waiting: int | None,
    most_waiting_of_tenant: int | None,
) -> None:
    """Take runs from the queue that all workers of a database share.

    SIGTERM and Ctrl+C let it finish the step of each run, and hand the runs over to other workers.
    """
    given = {"total": most_waiting, "tenant": most_waiting_of_tenant}
    bounds = {name: most for name, most in given.items() if most is not None}
    # Until it has runs there is nothing to hand over. Unhandled, SIGTERM would not end the first process of a
    # container.
    signal.signal(signal.SIGTERM, lambda *_given: sys.exit(Exit.TERMINATED))
    with (
        ExitStack() as stack,
        shared_database(database, limits=read_limits(limits), bounds=bounds, model=model) as shared,
    ):
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_given: stop.set())
        worker = lazy.Worker(
            shared.app,
            shared.engine,
            shared.workers,
            concurrency=concurrency,
            keep_days=keep_days,
            recoveries=recoveries,
            given_up=lambda: os._exit(GIVEN_UP),
            own_settings=own_keys(stack, Paths.of_this_user(), database),
        )
        worker.start()
        say(f"{worker.id} takes up to {concurrency} runs at a time; Ctrl+C hands them over and stops")
        stop.wait()
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


@click.command("workers")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def workers_command(database: str, *, as_json: bool) -> None:
    """List the workers of a database, and the agents that each can run."""
    with shared_database(database) as shared:
        workers = shared.workers.all()
        limits, bounds = shared.engine.limits(), shared.engine.bounds()
    if as_json:
        print_json(workers)
        return
    rows = [
        (
            one.id,
            "draining" if one.draining else "at work",
            one.concurrency,
            f"{one.age:.0f} s ago",
            moment(one.started),
            ", ".join(one.capabilities),
            one.name,
        )
        for one in workers
    ]
    print_table(("WORKER", "IS", "RUNS", "SEEN", "SINCE", "AGENTS", "PROCESS"), rows)
    for name, rate in sorted(limits.items()):
        if rate is not None:
            say(f"of {name} at most {rate[0]} runs begin in {rate[1]:g} s")
    say(f"at most {bounds.total} runs wait, and {bounds.tenant} of one tenant")


STOP_SECONDS = 45.0
"""How long workers have to hand their runs over; `agent worker` itself takes 30 at most."""
AGAIN_SECONDS = 1.0
"""How long to wait before a worker that ended is started again."""
_NOTHING = subprocess.DEVNULL


@contextmanager
def worker_processes(count: int, database: str, model: str | None) -> Iterator[None]:
    """Keep some workers at work while the block lasts; then each hands over the runs that it has."""
    stop = threading.Event()
    threads = [threading.Thread(target=_keep, args=(database, model, stop)) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _keep(database: str, model: str | None, stop: threading.Event) -> None:
    """Start a worker, and another one when it ends, until it should stop."""
    # -P: without it, a file of the current folder, such as numbers.py, would be run in place of a library's.
    command = [sys.executable, "-P", "-m", "agent_terminal_app", "worker"]
    command += [] if model is None else ["--model", model]
    # Not an argument: the address may have a password.
    environment = {**os.environ, DATABASE_VARIABLE: database}
    while not stop.is_set():
        # A session of its own: Ctrl+C is for the server, which stops its readers before its workers.
        with subprocess.Popen(  # noqa: S603 - our own program
            command, env=environment, stdin=_NOTHING, stdout=_NOTHING, start_new_session=True
        ) as process:
            while process.poll() is None and not stop.wait(0.2):
                pass
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                _wait(process)
        if not stop.is_set():
            say(f"agent: a worker ended with code {process.returncode}; another one is started")
            stop.wait(AGAIN_SECONDS)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # others take its runs, as of any worker that dies

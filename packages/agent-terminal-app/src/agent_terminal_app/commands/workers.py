"""`agent workers`: who is at work."""

from __future__ import annotations

import click

from agent_terminal_app.shared_database import database_option, shared_database
from agent_terminal_app.tables import moment, print_json, print_table, say


@click.command("workers")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(database: str, *, as_json: bool) -> None:
    """List the workers of a database, and what each can run."""
    with shared_database(database) as shared:
        workers = shared.workers.all()
        limits = shared.engine.limits()
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

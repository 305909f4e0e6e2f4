"""`agent trace`: what a run did, when, and for how long."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import click

from agent_app.trace import traced_runs
from agent_terminal_app.application import open_readable
from agent_terminal_app.commands.sessions import complete_session
from agent_terminal_app.errors import CommandError
from agent_terminal_app.output import print_json, print_lines
from agent_terminal_app.views.sessions import find_session
from agent_terminal_app.views.waterfall import waterfall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app import AgentApplication

_PAGE = 1000


@click.command("trace")
@click.argument("session", shell_complete=complete_session)
@click.option("--all", "every", is_flag=True, help="Show every run, not only the last one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(session: str, *, every: bool, as_json: bool) -> None:
    """Draw the steps of the last run of SESSION, and how long each took."""
    with open_readable().sessions() as application:
        info = find_session(application, session)
        runs = traced_runs(_events(application, info.id))
    if not runs:
        raise CommandError(f"Session {info.id} has no run whose times were stored.")
    shown = runs if every else runs[-1:]
    if as_json:
        print_json([run.to_dict() for run in shown])
        return
    width = shutil.get_terminal_size().columns
    print_lines(line for run in shown for line in waterfall(run, width))


def _events(application: AgentApplication, session_id: str) -> Iterator[dict[str, Any]]:
    after = 0
    while page := application.events(session_id, after=after, limit=_PAGE):
        yield from page
        after = page[-1]["seq"]

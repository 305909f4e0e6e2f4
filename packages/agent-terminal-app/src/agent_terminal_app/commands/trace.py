"""`agent trace`: runs as a waterfall: what happened, when, and for how long."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

import click

from agent_app.trace import shown_time, traced_runs
from agent_terminal_app.application import open_readable
from agent_terminal_app.commands.sessions import complete_session
from agent_terminal_app.errors import CommandError
from agent_terminal_app.output import moment, one_line, print_json, print_lines
from agent_terminal_app.views.sessions import find_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_app import AgentApplication
    from agent_app.trace import Part, TracedRun

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


_NAME_WIDTH = 34
_LEAST_BAR = 10
_WORDS: Final = {"run": "run of", "handoff": "handoff to", "wait": "waits for a decision"}


def waterfall(run: TracedRun, width: int) -> Iterator[str]:
    """Yield the lines of a run: names, times, and bars that show when each part was busy."""
    begin, whole = run.parts[0].begin, max(run.last - run.parts[0].begin, 0.001)
    space = max(_LEAST_BAR, width - _NAME_WIDTH - 12)
    yield f"{run.run_id}  {moment(begin)}  {run.agent} on {run.model}"
    for part in run.parts:
        seconds = (part.end or run.last) - part.begin
        name = f"{'  ' * part.depth}{_label(part)}"[:_NAME_WIDTH]
        left = min(space - 1, int((part.begin - begin) / whole * space))
        length = max(1, min(space - left, round(seconds / whole * space)))
        waited = (
            0 if part.first is None else min(length - 1, round((part.first - part.begin) / whole * space))
        )
        drawn = f"{' ' * left}{'▁' * waited}{('▇' if part.end is not None else '░') * (length - waited)}"
        note = f"  {part.note}" if part.note else "" if part.end is not None else "  not ended"
        yield f"{name:<{_NAME_WIDTH}} {shown_time(seconds):>8}  {drawn}{note}"


def _label(part: Part) -> str:
    return one_line(f"{_WORDS.get(part.kind, part.kind)} {part.name}")

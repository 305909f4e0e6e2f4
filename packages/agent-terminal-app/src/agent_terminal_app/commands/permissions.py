"""`agent permissions`: which calls of tools run, wait or never run, and who said so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from agent_core import AgentError
from agent_runtime import SpecError
from agent_terminal_app.application import open_settings
from agent_terminal_app.commands.sessions import complete_session
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.output import one_line, print_json, print_table, say
from agent_terminal_app.views.permissions import permission_rows
from agent_terminal_app.views.sessions import SHORTEST_PREFIX, find_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_app import AgentApplication, Grant
    from agent_app.store.base import GrantEffect

_SHORT = 8


@click.group("permissions")
def command() -> None:
    """List, give and take back permissions.

    PATTERN names calls of tools: shell, shell(make test), edit(path=src/*).
    """


@command.command("list")
@click.option("--session", shell_complete=complete_session, help="Those that count in a session.")
@click.option("--all", "everything", is_flag=True, help="Also those of every session and project.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(session: str | None, *, everything: bool, as_json: bool) -> None:
    """List the rules that count in this folder, and where each comes from."""
    if session and everything:
        raise click.UsageError("--session means one session, --all means every one: leave one out.")
    opened = open_settings()
    with opened.application() as application:
        session_id = find_session(application, session).id if session else None
        project = None if session or everything else Path.cwd()
        rows = permission_rows(application, opened.settings, session_id, project)
    if as_json:
        print_json(rows)
        return
    headings = ("EFFECT", "PATTERN", "SCOPE", "ID", "FROM")
    print_table(headings, [(row.effect, row.pattern, row.scope, row.id[:_SHORT], row.origin) for row in rows])


def _giving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a permission counts."""
    options = [
        click.argument("pattern"),
        click.option("--session", shell_complete=complete_session, help="In one session only."),
        click.option("--project", is_flag=True, help="In this folder; this is the default."),
        click.option("--always", is_flag=True, help="Everywhere."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@command.command("allow")
@_giving
def allow_command(pattern: str, session: str | None, *, project: bool, always: bool) -> None:
    """Let the calls that match PATTERN run without approval.

    Calls that the configuration denies or always asks about stay that way.
    """
    _give("allow", pattern, session, project=project, always=always)


@command.command("deny")
@_giving
def deny_command(pattern: str, session: str | None, *, project: bool, always: bool) -> None:
    """Forbid the calls that match PATTERN."""
    _give("deny", pattern, session, project=project, always=always)


@command.command("revoke")
@click.argument("grants", nargs=-1, required=True, shell_complete=lambda *given: _complete_grant(given[2]))
def revoke_command(grants: tuple[str, ...]) -> None:
    """Take GRANTS back, each an id of the list or the beginning of one."""
    with open_settings().application() as application:
        found = {grant.id: grant for grant in (_find(application, given) for given in grants)}
        for grant in found.values():
            application.revoke(grant.id)
            say(f"agent: {grant.effect} {one_line(grant.pattern)} is taken back")


def _give(effect: GrantEffect, pattern: str, session: str | None, *, project: bool, always: bool) -> None:
    if sum((bool(session), project, always)) > 1:
        raise click.UsageError("--session, --project and --always exclude each other: leave the others out.")
    with open_settings().application() as application:
        session_id = find_session(application, session).id if session else None
        scope: Any = "session" if session else "always" if always else "project"
        try:
            grant = application.grant(
                pattern, scope=scope, session_id=session_id, project=Path.cwd(), effect=effect
            )
        except SpecError as error:
            raise CommandError(str(error), code=Exit.USAGE) from error
    where = {"session": f"in session {grant.key}", "project": f"in {grant.key}", "always": "everywhere"}
    say(f"agent: {grant.effect} {one_line(grant.pattern)} {where[grant.scope]}, as {grant.id[:_SHORT]}")


def _find(application: AgentApplication, given: str) -> Grant:
    """Return the grant of an id, or of the beginning of one.

    Raises:
        CommandError: If there is none, or more than one.
    """
    found = [grant for grant in application.grants() if _is_meant(grant.id, given)]
    if len(found) == 1:
        return found[0]
    problem = "several grants begin" if found else "there is no grant that begins"
    raise CommandError(f"{problem} with {given!r}", hint="`agent permissions list --all` has their ids")


def _is_meant(grant_id: str, given: str) -> bool:
    return grant_id == given or (len(given) >= SHORTEST_PREFIX and grant_id.startswith(given))


def _complete_grant(incomplete: str) -> Iterable[CompletionItem]:
    try:
        with open_settings().application() as application:
            grants = application.grants()
    except AgentError:
        return []
    return [
        CompletionItem(grant.id[:_SHORT], help=one_line(f"{grant.effect} {grant.pattern}"))
        for grant in grants
        if grant.id.startswith(incomplete)
    ]

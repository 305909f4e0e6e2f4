"""`agent sessions`: what was said before, in lists, in full, in files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from agent_terminal_app.errors import CommandError
from agent_terminal_app.opening import open_readable, open_settings
from agent_terminal_app.tables import (
    is_terminal,
    moment,
    one_line,
    print_bytes,
    print_json,
    print_lines,
    print_table,
    say,
    shown,
    writing_to,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_app import AgentApplication, SessionInfo
    from agent_core import Message

SHORTEST_PREFIX = 4
_PAGE = 200
_LONGEST_BEGINNING = 60


def complete_session(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the sessions whose ids begin like that, for shells; none if they cannot be read."""
    from agent_core import AgentError

    try:
        with open_readable().sessions() as application:
            infos = _take(application, None, _PAGE)
    except AgentError:
        return []
    return [
        CompletionItem(info.id, help=one_line(info.title)) for info in infos if info.id.startswith(incomplete)
    ]


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_limit = click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")


@click.group("sessions")
def command() -> None:
    """List, show, search, export, import, rename and delete sessions.

    SESSION is an id, the beginning of one, or a title.
    """


@command.command("list")
@_limit
@_json
def list_command(limit: int, *, as_json: bool) -> None:
    """List sessions, the last used first."""
    with open_readable().sessions() as application:
        _print_infos(application, _take(application, None, limit), as_json=as_json)


@command.command("search")
@click.argument("query")
@_limit
@_json
def search_command(query: str, limit: int, *, as_json: bool) -> None:
    """List the sessions whose title or text has all the words of QUERY."""
    with open_readable().sessions() as application:
        _print_infos(application, _take(application, query, limit), as_json=as_json)


@command.command("show")
@click.argument("session", shell_complete=complete_session)
@_json
def show_command(session: str, *, as_json: bool) -> None:
    """Print what was said in SESSION."""
    with open_readable().sessions() as application:
        info = find_session(application, session)
        messages = application.load_session(info.id).messages
        if as_json:
            print_json({**info_dict(info), "messages": [message.to_dict() for message in messages]})
        else:
            print_lines(transcript(info, messages))


@command.command("export")
@click.argument("session", shell_complete=complete_session)
@click.argument("target", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--no-redact", is_flag=True, help="Leave secrets in.")
@click.option("--events", is_flag=True, help="Write the event log as well.")
def export_command(session: str, target: Path | None, *, no_redact: bool, events: bool) -> None:
    """Write SESSION to the file TARGET, or to stdout.

    A file whose name ends in .md, .html or .json is for reading; any other can be imported whole. What looks
    like a secret is taken out unless you say --no-redact.
    """
    from agent_terminal_app.transcripts import FORMS, write_transcript

    _look_at(target)
    with open_readable().sessions() as application:
        info = find_session(application, session)
        if target is not None and target.suffix.lower() in FORMS:
            write_transcript(application, info.id, target, redact=not no_redact)
            say(f"agent: {info.id} is in {target}")
        elif target is not None and str(target) != "-":
            with writing_to(target):
                application.export_session(info.id, target, redact=not no_redact, events=events)
            say(f"agent: {info.id} is in {target}")
        else:
            _export_to_stdout(application, info.id, redact=not no_redact, events=events)


def _look_at(target: Path | None) -> None:
    """Refuse what cannot become a file: it would be replaced, and a pipe or a device be gone."""
    if target is None or str(target) == "-":
        return
    if not target.parent.is_dir():
        raise CommandError(f"there is no folder {target.parent}", hint="make it first")
    if target.exists() and not target.is_file():
        raise CommandError(f"{target} is no ordinary file", hint="without TARGET, stdout has the session")


@command.command("import")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--agent", help="The agent that the session shall belong to.")
def import_command(source: Path, agent: str | None) -> None:
    """Store the session in the file SOURCE, or from stdin with -, and print its new id.

    It works in this folder, whatever the file says.
    """
    from agent_terminal_app.arrivals import here, told_of_arrival

    with open_settings().application() as application:
        content = sys.stdin.buffer.read() if str(source) == "-" else source
        info = application.import_session(content, agent_id=agent, metadata=here())
        print_lines([info.id])
        for line in told_of_arrival(info):
            say(f"agent: {line}")


@command.command("rename")
@click.argument("session", shell_complete=complete_session)
@click.argument("title")
def rename_command(session: str, title: str) -> None:
    """Give SESSION another TITLE."""
    with open_readable().sessions() as application:
        info = application.rename_session(find_session(application, session).id, title)
        say(f"agent: {info.id} is called {one_line(info.title)!r} now")


@command.command("delete")
@click.argument("sessions", nargs=-1, required=True, shell_complete=complete_session)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def delete_command(sessions: tuple[str, ...], *, yes: bool) -> None:
    """Delete SESSIONS, each an id, the beginning of one, or a title."""
    with _for_deleting() as application:
        found = {info.id: info for info in (find_session(application, given) for given in sessions)}
        for info in found.values():
            if not yes:
                _ask_before_deleting(info)
            application.delete_session(info.id)
            say(f"agent: {info.id} is deleted")


def _for_deleting() -> AgentApplication:
    """Return the application, with its agents if they can be had: their plugins tidy up behind a session."""
    from agent_core import ConfigError

    opened = open_readable()
    try:
        return opened.application()
    except (CommandError, ConfigError) as error:
        say(f"agent: {one_line(error)}; what plugins of agents keep of the session stays")
        return opened.sessions()


def find_session(application: AgentApplication, given: str) -> SessionInfo:
    """Return the session that is meant: by its id, the beginning of its id, or its title.

    Raises:
        CommandError: If there is none, or more than one.
    """
    from agent_app import SessionNotFound

    try:
        return application.store.info(given)
    except SessionNotFound:
        infos = list(_all(application))
    begun = [info for info in infos if len(given) >= SHORTEST_PREFIX and info.id.startswith(given)]
    titled = [info for info in infos if info.title == given]
    found = begun or titled
    if not found:
        raise CommandError(f"there is no session {given!r}", hint="see `agent sessions list`")
    if len(found) > 1:
        ids = ", ".join(info.id for info in found[:5])
        raise CommandError(f"{given!r} may mean {len(found)} sessions: {ids}", hint="give more of the id")
    return found[0]


def info_dict(info: SessionInfo) -> dict[str, Any]:
    """Return what a list knows of a session as plain data."""
    return {
        "id": info.id,
        "title": info.title,
        "agent": info.agent_id,
        "created": info.created,
        "updated": info.updated,
        "messages": info.messages,
        "parent": info.parent_id,
        **({} if info.match is None else {"match": info.match}),
    }


def transcript(info: SessionInfo, messages: Any) -> Iterator[str]:
    """Yield the lines of a conversation as people read it."""
    yield f"{one_line(info.title) or '(no title)'}"
    yield f"{info.id}, {info.agent_id or 'no agent'}, {moment(info.updated)}"
    for message in messages:
        yield ""
        yield f"{message.role}:{' (interrupted)' if 'interrupted' in message.metadata else ''}"
        yield from _message_lines(message)


def _message_lines(message: Message) -> Iterator[str]:
    text = message.content if isinstance(message.content, str) else one_line(message.content)
    yield from (f"  {line}" for line in shown(text).splitlines())
    for part in message.multipart_content or ():
        if part.get("type") != "text":
            yield f"  [{part.get('type')} {one_line(part.get('name') or part.get('mime_type') or '')}]"
    for call in message.metadata.get("tool_calls") or ():
        yield f"  → {_call_line(call)}"


def _call_line(call: Mapping[str, Any]) -> str:
    inner = call.get("function") or call.get("custom") or {}
    return one_line(f"{inner.get('name', '')} {inner.get('arguments') or inner.get('input') or ''}")


def _all(application: AgentApplication, query: str | None = None) -> Iterator[SessionInfo]:
    cursor: str | None = None
    while True:
        page = application.list_sessions(query, cursor, _PAGE)
        yield from page.sessions
        if (cursor := page.cursor) is None:
            return


def _take(application: AgentApplication, query: str | None, limit: int) -> list[SessionInfo]:
    from itertools import islice

    return list(islice(_all(application, query), limit))


def _print_infos(application: AgentApplication, infos: list[SessionInfo], *, as_json: bool) -> None:
    if as_json:
        print_json([info_dict(info) for info in infos])
    elif infos:
        rows = [
            (info.id, moment(info.updated), info.messages, info.agent_id, label(application, info))
            for info in infos
        ]
        print_table(("ID", "CHANGED", "MESSAGES", "AGENT", "TITLE"), rows)
    else:
        say("agent: there are no sessions")


def label(application: AgentApplication, info: SessionInfo) -> str:
    """Return what people know a session by: its title, or how it begins; for a search also what was found."""
    title = info.title
    if not title and info.messages:
        [first] = application.read_messages(info.id, before=1, limit=1)
        title = f"({one_line(first.content)[:_LONGEST_BEGINNING]})"
    return ": ".join(text for text in (title, info.match) if text)


def _export_to_stdout(application: AgentApplication, session_id: str, *, redact: bool, events: bool) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "session"
        application.export_session(session_id, path, redact=redact, events=events)
        print_bytes(path.read_bytes())


def _ask_before_deleting(info: SessionInfo) -> None:
    """Ask on the terminal.

    Raises:
        CommandError: If there is nobody to ask.
    """
    if not is_terminal(sys.stdin):
        raise CommandError(f"{info.id} is not deleted: there is nobody to ask", hint="say --yes")
    click.confirm(f"Delete {info.id} ({one_line(info.title) or 'no title'})?", abort=True, err=True)

"""`agent sessions`: stored conversations in lists, in full, in files; and the upkeep of their database."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from agent_app import open_store
from agent_app.assets import open_assets
from agent_app.store.repair import repair_store
from agent_app.transfer import SystemMessagesRefused
from agent_core import AgentError, ConfigError
from agent_terminal_app.application import open_readable, open_settings
from agent_terminal_app.errors import CommandError
from agent_terminal_app.output import (
    is_terminal,
    moment,
    one_line,
    print_bytes,
    print_json,
    print_lines,
    print_table,
    revealed,
    say,
    writing_to,
)
from agent_terminal_app.paths import Paths
from agent_terminal_app.views.sessions import (
    FORMS,
    find_session,
    here,
    import_lines,
    info_dict,
    instruction_lines,
    labels,
    some_sessions,
    transcript,
    write_transcript,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_app import AgentApplication, SessionInfo
    from agent_app.store.repair import Repaired

_COMPLETIONS = 200
_FILES = ("", "-wal", "-shm")
_ALWAYS = ("sessions", "messages")
_SHORT = 8


def complete_session(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the sessions whose ids begin like that, for shells; none if they cannot be read."""
    try:
        with open_readable().sessions() as application:
            infos = some_sessions(application, None, _COMPLETIONS)
    except AgentError:
        return []
    return [
        CompletionItem(info.id, help=one_line(info.title)) for info in infos if info.id.startswith(incomplete)
    ]


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_limit = click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")


@click.group("sessions")
def command() -> None:
    """List, show, search, export, import, rename, delete, check and repair sessions.

    SESSION is an id, the beginning of one, or a title.
    """


@command.command("list")
@_limit
@_json
def list_command(limit: int, *, as_json: bool) -> None:
    """List sessions, the last used first."""
    with open_readable().sessions() as application:
        _print_infos(application, some_sessions(application, None, limit), as_json=as_json)


@command.command("search")
@click.argument("query")
@_limit
@_json
def search_command(query: str, limit: int, *, as_json: bool) -> None:
    """List the sessions whose title or text has all the words of QUERY."""
    with open_readable().sessions() as application:
        _print_infos(application, some_sessions(application, query, limit), as_json=as_json)


@command.command("show")
@click.argument("session", shell_complete=complete_session)
@_json
@click.option("--raw", is_flag=True, help="In a pipe, print control characters as they are.")
def show_command(session: str, *, as_json: bool, raw: bool) -> None:
    """Print the messages of SESSION."""
    with open_readable().sessions() as application:
        info = find_session(application, session)
        messages = application.load_session(info.id).messages
        if as_json:
            print_json({**info_dict(info), "messages": [message.to_dict() for message in messages]})
        else:
            print_lines(transcript(info, messages, raw=raw))


@command.command("export")
@click.argument("session", shell_complete=complete_session)
@click.argument("target", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--no-redact", is_flag=True, help="Leave secrets in.")
@click.option("--events", is_flag=True, help="Write the event log as well.")
def export_command(session: str, target: Path | None, *, no_redact: bool, events: bool) -> None:
    """Write SESSION to the file TARGET, or to stdout.

    A file whose name ends in .md, .html or .json is for reading; any other can be imported whole. Text that
    looks like a secret is left out, unless you use --no-redact.
    """
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
    """Refuse a target that cannot be replaced by a file, such as a pipe or a device."""
    if target is None or str(target) == "-":
        return
    if not target.parent.is_dir():
        raise CommandError(f"there is no folder {target.parent}", hint="make it first")
    if target.exists() and not target.is_file():
        raise CommandError(f"{target} is not a regular file", hint="without TARGET, stdout has the session")


@command.command("import")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--agent", help="The agent of the session.")
@click.option("--allow-system", is_flag=True, help="Take system messages over without a question.")
def import_command(source: Path, agent: str | None, *, allow_system: bool) -> None:
    """Store the session in the file SOURCE, or from stdin with -, and print its new id.

    It works in this folder, whatever the file says, and has what `agent sessions show` prints of it. A system
    message in it, which the model would take for instructions of yours, is shown to you first.
    """
    with open_settings().application() as application:
        content = sys.stdin.buffer.read() if str(source) == "-" else source
        bring = partial(application.import_session, content, agent_id=agent, metadata=here())
        try:
            info = bring(allow_system=allow_system)
        except SystemMessagesRefused as refusal:
            _ask_about_instructions(refusal)
            info = bring(allow_system=refusal.texts)  # these, and no others that the file has by now
        print_lines([info.id])
        for line in import_lines(info):
            say(f"agent: {line}")


def _ask_about_instructions(refusal: SystemMessagesRefused) -> None:
    """Show the system messages of a file whole, and ask whether they may come.

    Raises:
        CommandError: If stdin is not a terminal.
    """
    if not is_terminal(sys.stdin):
        raise CommandError(
            f"nothing was imported: {one_line(refusal.summary)}",
            hint="read the message in the file; import it with --allow-system if you agree to it",
        )
    for line in instruction_lines(refusal):
        say(line)
    click.confirm("Import it, and let the model follow these instructions?", abort=True, err=True)


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


@command.command("check")
@click.option("--quick", is_flag=True, help="Do not compare every row with its checksum.")
@_json
def check_command(*, quick: bool, as_json: bool) -> None:
    """Look for damage in the database: every session, message and event is read and compared."""
    with closing(open_store(f"sqlite:///{_existing(None)}")) as store:
        report = store.check(deep=not quick)
    if as_json:
        print_json({"checked": dict(report.checked), "problems": list(report.problems)})
    else:
        print_lines(f"{count} {what} checked" for what, count in report.checked.items())
        print_lines(revealed(problem) for problem in report.problems)
    if report.problems:
        hint = "save what can be read with `agent sessions repair`"
        raise CommandError(f"{len(report.problems)} problems were found", hint=hint)


@command.command("clean")
def clean_command() -> None:
    """Remove data that no session needs any more, such as attachments of deleted sessions.

    What was deleted or edited away leaves the sessions at once; this removes what is left of former versions,
    and what crashes have left behind.
    """
    with closing(open_store(f"sqlite:///{_existing(None)}")) as store:
        removed = store.collect().checked
    with closing(open_assets(Paths.of_this_user().assets)) as assets:
        files = assets.collect().checked
    say(f"agent: removed {removed['content']} contents, {removed['lists']} lists, {files['content']} files")


@command.command("repair")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--to", "target", type=click.Path(path_type=Path), help="The new file.")
@click.option("--replace", is_flag=True, help="Put the new file in place and keep the old one aside.")
@_json
def repair_command(file: Path | None, target: Path | None, *, replace: bool, as_json: bool) -> None:
    """Save the readable part of the damaged database FILE into a new one.

    Without FILE, it is the one that has your sessions. It is only read; the new file is made next to it.
    Close everything that uses it first.
    """
    source = _existing(file)
    report = repair_to(source, target)
    kept = put_in_place(report) if replace else None
    if as_json:
        print_json(
            {
                "source": str(source if kept is None else kept),
                "target": str(report.target if kept is None else source),
                "saved": dict(report.saved),
                "damaged": dict(report.damaged),
                "lost": dict(report.lost),
                "where": list(report.where),
                "problems": list(report.problems),
            }
        )
    else:
        print_lines(revealed(line) for line in repair_lines(report, kept))


def _existing(file: Path | None) -> Path:
    """Return the file of a database that is there.

    Raises:
        CommandError: If it is not.
    """
    found = Paths.of_this_user().database if file is None else file
    if not found.exists():
        raise CommandError(f"there is no database {found}", hint="name the file, or start with `agent chat`")
    return found


def _for_deleting() -> AgentApplication:
    """Return the application, with its agents if they can be had: their plugins clean up after a session."""
    opened = open_readable()
    try:
        return opened.application()
    except (CommandError, ConfigError) as error:
        say(f"agent: {one_line(error)}; what plugins keep about the session stays")
        return opened.sessions()


def _print_infos(application: AgentApplication, infos: list[SessionInfo], *, as_json: bool) -> None:
    if as_json:
        print_json([info_dict(info) for info in infos])
    elif infos:
        # The beginning of an id will do for a person, and leaves room for the title.
        length = _SHORT if is_terminal(sys.stdout) else None
        rows = [
            (info.id[:length], moment(info.updated), info.messages, info.agent_id, label)
            for info, label in zip(infos, labels(application, infos), strict=True)
        ]
        print_table(("ID", "CHANGED", "MESSAGES", "AGENT", "TITLE"), rows)
    else:
        say("agent: there are no sessions")


def _export_to_stdout(application: AgentApplication, session_id: str, *, redact: bool, events: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "session"
        application.export_session(session_id, path, redact=redact, events=events)
        print_bytes(path.read_bytes())


def _ask_before_deleting(info: SessionInfo) -> None:
    """Ask on the terminal.

    Raises:
        CommandError: If stdin is not a terminal.
    """
    if not is_terminal(sys.stdin):
        raise CommandError(f"{info.id} is not deleted: there is nobody to ask", hint="use --yes")
    click.confirm(f"Delete {info.id} ({one_line(info.title) or 'no title'})?", abort=True, err=True)


# Repair


def repair_to(source: Path, target: Path | None) -> Repaired:
    """Save what can be read of a database into a new file, by default next to it."""
    return repair_store(source, _free(source) if target is None else target)


def _free(source: Path) -> Path:
    """Return a free name next to a file."""
    names = (source.with_name(f"{source.name}.repaired{ending}") for ending in ("", *_numbers()))
    return next(name for name in names if not name.exists())


def _numbers() -> Iterator[str]:
    yield from (f"-{number}" for number in range(2, 10_000))


def put_in_place(report: Repaired) -> Path:
    """Put a repaired file in place of the damaged one, and return where that one is kept.

    Raises:
        CommandError: If the new file is not whole, or the old one cannot be moved.
    """
    if report.problems:
        raise CommandError(
            f"{report.target} is not put in place: {report.problems[0]}",
            hint="keep both files, and report this",
        )
    kept = report.source.with_name(f"{report.source.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        for ending in _FILES:
            old = Path(f"{report.source}{ending}")
            if old.exists():
                old.rename(f"{kept}{ending}")
        report.target.rename(report.source)
    except OSError as error:
        raise CommandError(
            f"{report.source} cannot be replaced: {error.strerror}",
            hint=f"the new file is {report.target}, the old one may be {kept}",
        ) from error
    return kept


def repair_lines(report: Repaired, kept: Path | None) -> Iterator[str]:
    """Yield the report of a repair.

    Args:
        kept: Where the damaged file is now, if the new one has taken its place.
    """
    yield f"saved:   {_counts(report.saved)}"
    yield f"damaged: {_counts(report.damaged)}"
    yield f"lost:    {_counts(report.lost)}"
    yield from (f"  {line}" for line in report.where)
    yield from (f"  the new file: {problem}" for problem in report.problems)
    if kept is not None:
        yield f"{report.source} is the new file; the damaged one is {kept}"
        return
    yield f"{report.target} has the saved part; {report.source} is as it was"
    yield "look at it, close everything that uses the old one, then put it in place:"
    for ending in _FILES:
        if Path(f"{report.source}{ending}").exists():
            yield f"  mv '{report.source}{ending}' '{report.source}.damaged{ending}'"
    yield f"  mv '{report.target}' '{report.source}'"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count or what in _ALWAYS)

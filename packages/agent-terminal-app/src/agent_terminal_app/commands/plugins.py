"""`agent plugins`: what is installed, and why each plugin is on or off for an agent."""

from __future__ import annotations

from typing import Any

import click

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.left_out import left_out
from agent_terminal_app.opening import open_settings
from agent_terminal_app.tables import print_json, print_table, say

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("plugins")
def command() -> None:
    """List plugins, and why each is on or off."""


@command.command("list")
@_json
def list_command(*, as_json: bool) -> None:
    """List the installed plugins, also those that cannot be loaded."""
    rows = installed_plugins()
    if as_json:
        print_json(rows)
        return
    names = ("name", "kind", "distribution", "version", "problem")
    print_table([name.upper() for name in names], [[row[name] for name in names] for row in rows])


@command.command("explain")
@click.option("--agent", help="Another agent than the default one.")
@_json
def explain_command(agent: str | None, *, as_json: bool) -> None:
    """Say why each plugin is on or off for an agent."""
    with open_settings().application(ephemeral=True) as application:
        name = agent or application.config["default_agent"]
        if name not in application.config["agents"]:
            known = ", ".join(application.config["agents"])
            raise CommandError(
                f"there is no agent {name!r}", code=Exit.NOT_CONFIGURED, hint=f"there is {known}"
            )
        decisions = [one.to_dict() for one in application.runtime.resolve(name).decisions]
        decisions += left_out(application, name, {one["plugin"] for one in decisions})
        problems = application.problems
    if as_json:
        print_json({"agent": name, "decisions": decisions})
        return
    rows = [
        (one["plugin"], one["kind"], "on" if one["enabled"] else "off", one["reason"], one["detail"])
        for one in decisions
    ]
    print_table(("PLUGIN", "KIND", "IS", "REASON", "WHY"), rows)
    for problem in problems:
        say(f"agent: plugin {problem.plugin}: {problem.reason}")


def installed_plugins() -> list[dict[str, Any]]:
    """Return what is installed, each with its distribution and what prevents it from being loaded."""
    from importlib.metadata import PackageNotFoundError, version

    from agent_core.plugin.discovery import find_installed

    def version_of(distribution: str) -> str:
        try:
            return version(distribution)
        except PackageNotFoundError:
            return ""

    return [
        {
            "name": one.name,
            "kind": one.kind.removesuffix("s"),
            "distribution": one.distribution,
            "version": version_of(one.distribution),
            "problem": one.problem,
        }
        for one in find_installed()
    ]

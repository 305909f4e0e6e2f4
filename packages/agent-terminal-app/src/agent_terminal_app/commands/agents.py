"""`agent agents`: which agents there are, and whether each of them can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.opening import Opened, open_settings
from agent_terminal_app.plugin_settings import build_problems, told_faults
from agent_terminal_app.tables import one_line, print_json, print_lines, print_table, say

if TYPE_CHECKING:
    from agent_app import AgentApplication


@click.group("agents")
def command() -> None:
    """List and check agents."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(*, as_json: bool) -> None:
    """List the agents of the configuration; the default one has a mark."""
    with open_settings().application(ephemeral=True) as application:
        rows = [
            {
                "id": name,
                "model": agent["model"],
                "default": name == application.config.get("default_agent"),
                "description": agent.get("description", ""),
            }
            for name, agent in application.config["agents"].items()
        ]
    if as_json:
        print_json(rows)
        return
    cells = [(row["id"], row["model"], "*" if row["default"] else "", row["description"]) for row in rows]
    print_table(("AGENT", "MODEL", "DEFAULT", "DESCRIPTION"), cells)


@command.command("check")
def check_command() -> int:
    """Resolve every agent and print everything that is wrong."""
    opened = open_settings()
    problems = find_problems(opened)
    if problems:
        print_lines(problems)
        return Exit.NOT_CONFIGURED
    with opened.application(ephemeral=True) as application:
        print_lines(f"{name}: ready" for name in application.config["agents"])
        for warning in [*told_faults(opened.settings), *find_warnings(application)]:
            say(f"agent: {warning}")
    return Exit.OK


def find_problems(opened: Opened) -> list[str]:
    """Return why agents cannot run, a line for each cause; empty if all of them can."""
    from agent_core import ConfigError
    from agent_runtime import BuildError

    try:
        opened.application(ephemeral=True).close()
    except ConfigError as error:
        return [one_line(error)]
    except CommandError as error:
        if isinstance(error.__cause__, BuildError):
            return build_problems(opened.settings, error.__cause__)
        raise
    return []


def find_warnings(application: AgentApplication) -> list[str]:
    """Return what prevents no agent from running and should be known all the same."""
    plugins = [f"plugin {one.plugin}: {one_line(one.reason)}" for one in application.problems]
    agents = [
        f"{name}: {one_line(warning)}"
        for name in application.config["agents"]
        for warning in application.runtime.resolve(name).warnings
    ]
    return [*plugins, *agents]

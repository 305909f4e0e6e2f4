"""`agent config`: show and change settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agent_core.clean_text import hides
from agent_plugin_kit.trust import TOP_MARKS, project_top
from agent_terminal_app.application import open_settings
from agent_terminal_app.errors import CommandError
from agent_terminal_app.output import say
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings import settings_schema, trust_project, unset_value
from agent_terminal_app.settings.files import is_there
from agent_terminal_app.settings.keypaths import find_value, leaves, literal, read_way, readings, spell
from agent_terminal_app.settings.layers import user_file
from agent_terminal_app.settings.plugins import set_checked
from agent_terminal_app.settings.secrets import for_showing
from agent_terminal_app.settings.trust import changes, trust_folder, undecided_instructions


@click.group()
def command() -> None:
    """Show and change settings."""


@command.command("get")
@click.argument("key", required=False)
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --origin each value by its key.")
def get(key: str | None, *, origin: bool, as_json: bool) -> None:
    """Print a setting, or all of them."""
    settings = open_settings().settings
    way = read_way(key) if key else ()
    value = find_value(for_showing(settings.values), way)
    if as_json:
        click.echo(json.dumps(_with_origins(settings.origins, value, way) if origin else value, indent=2))
    elif isinstance(value, Mapping):
        for inner, leaf in leaves(value, way):
            _print(spell(inner), leaf, settings.origins if origin else {})
    elif origin:
        click.echo(f"{_plain(value)}  # {settings.origins[spell(way)]}")
    else:
        click.echo(_plain(value))


# A number below zero begins like an option, and there are no options here.
@command.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Write a setting into your configuration file; comments stay."""
    paths = Paths.of_this_user()
    refusals: list[CommandError] = []
    for reading in readings(value):
        try:
            path = set_checked(paths, key, reading)
        except CommandError as error:
            refusals.append(error)
        else:
            click.echo(f"set in {path}; programs that are open use it when they start again", err=True)
            return
    raise refusals[0]


@command.command("unset")
@click.argument("key")
def unset(key: str) -> None:
    """Remove a setting, or a whole table, from your configuration file."""
    click.echo(f"removed from {unset_value(Paths.of_this_user(), key)}", err=True)


@command.command("path")
def path_() -> None:
    """Print where your configuration file is."""
    click.echo(user_file(Paths.of_this_user()))


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of configuration files."""
    click.echo(json.dumps(settings_schema(), indent=2))


@command.command("trust")
def trust() -> None:
    """Trust the settings of the project in this folder, as they are now.

    Its instructions (AGENTS.md), skills and memories may reach the model from then on.
    """
    paths, folder = Paths.of_this_user(), Path.cwd()
    says, top = undecided_instructions(paths, folder), project_top(folder)
    in_repository = any(is_there(top / mark) for mark in TOP_MARKS)
    # Outside a repository a folder with nothing in it is hardly a project: a home would trust all below it.
    if not is_there(paths.project_config(folder)) and (says or in_repository):
        trust_folder(paths, folder)
        lines = [f"  {line} may reach the model" for line in says]
        for line in lines or [f"{top} is trusted: its instructions, skills and memories may reach the model"]:
            say(line)
        return
    file = trust_project(paths, folder)
    trust_folder(paths, folder)
    for line in (*(f"  {line} may reach the model" for line in says), *changes(file)):
        say(line)
    say(f"{file.path} is trusted until it changes")


def _with_origins(origins: Mapping[str, str], value: Any, way: tuple[str, ...]) -> dict[str, Any]:
    """Return each setting by its dotted key, with its value and where that came from."""
    inside = leaves(value, way) if isinstance(value, Mapping) and value else [(way, value)]
    named = ((spell(inner), leaf) for inner, leaf in inside)
    return {name: {"value": leaf, "origin": origins.get(name)} for name, leaf in named}


def _print(name: str, leaf: Any, origins: Mapping[str, str]) -> None:
    line = f"{name} = {literal(leaf)}"
    click.echo(f"{line}  # {origins[name]}" if name in origins else line)


def _plain(value: Any) -> str:
    return _printable(value) if isinstance(value, str) else literal(value)


def _printable(text: str) -> str:
    """Show what would move a cursor as the code that it is; line breaks stay."""
    return "".join(
        one if (one.isprintable() and not hides(one)) or one == "\n" else f"\\u{ord(one):04x}" for one in text
    )

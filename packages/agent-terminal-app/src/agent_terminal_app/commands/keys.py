"""`agent keys`: store, list and remove keys. No command ever shows one."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from agent_app.defaults import SHORT_NAMES
from agent_core.errors import nearest
from agent_core.plugin.discovery import find_installed
from agent_terminal_app.application import Opened, open_readable
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.first_run.ask import hold
from agent_terminal_app.first_run.connections import SERVICES, Connection, find_connection
from agent_terminal_app.first_run.draft import Draft
from agent_terminal_app.first_run.models import CheckFailedError, offered_models
from agent_terminal_app.keys import LONGEST_KEY, KeyLookup, KeyStore, clean_key
from agent_terminal_app.paths import Paths
from agent_terminal_app.settings.keypaths import spell
from agent_terminal_app.settings.secrets import find_references


@click.group()
def command() -> None:
    """Store, list and remove keys."""


@command.command("set")
@click.argument("name")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the key from standard input.")
@click.option("--check/--no-check", default=True, help="Ask the provider whether the key works.")
@click.option("--own", is_flag=True, help='NAME is one of your own, for "stored:NAME" in settings.')
def set_(name: str, *, from_stdin: bool, check: bool, own: bool) -> None:
    """Store a key under NAME: that of a provider, or one that settings refer to.

    Where a provider takes the key, it is asked first whether the key works.
    """
    opened = open_readable()
    name = SHORT_NAMES.get(name, name)
    connection = None if own else find_user(opened, name)
    key = clean_key(_read(name, from_stdin=from_stdin))
    if check and connection is not None:
        _check(opened, connection, key)
    where = KeyStore(opened.paths).set(name, key)
    click.echo(f"the key of {name} is stored in {_shown(where)}", err=True)


@command.command("list")
def list_() -> None:
    """Print which keys there are, and where each comes from."""
    opened = open_readable()
    store = KeyStore(opened.paths)
    stored = store.names()
    for name in stored:
        click.echo(f"{name}\t{store.origin(name)}")
    for name, variable in found_in_environment():
        note = "\t(the stored key counts)" if name in stored else ""
        click.echo(f"{name}\tenvironment {variable}{note}")
    lookup = KeyLookup(store)
    for way, reference in find_references(opened.settings.values):
        click.echo(f"{spell(way)}\t{lookup.find(reference).origin}")


@command.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Forget the stored key of this name."""
    store, name = KeyStore(Paths.of_this_user()), SHORT_NAMES.get(name, name)
    if not store.remove(name):
        raise CommandError(f"there is no stored key of {name}", code=Exit.USAGE, hint="see `agent keys list`")
    click.echo(f"the key of {name} is removed", err=True)


@command.command("path")
def path() -> None:
    """Print the file that holds keys where there is no keyring."""
    click.echo(KeyStore(Paths.of_this_user()).path)


def found_in_environment() -> list[tuple[str, str]]:
    """Return the providers whose key the environment has, each with the variable."""
    found = []
    for name, plugin in _providers().items():
        for variable in getattr(plugin, "key_variables", ()):
            if os.environ.get(variable, "").strip():
                found.append((name, variable))
                break
    return found


def find_user(opened: Opened, name: str) -> Connection | None:
    """Return what would use a key of this name, as far as it can be asked whether the key works.

    Raises:
        CommandError: If nothing would use it.
    """
    there = _providers()
    if name in there:
        _need_a_key(name, there[name])
        return Connection(name=name, label=name, provider=name)
    if (service := find_connection(name, SERVICES)) is not None:
        return service
    named = [way for way, one in find_references(opened.settings.values) if one == ("stored", name)]
    if not named:
        raise _nobody(name, [*there, *(one.name for one in SERVICES)])
    return next((found for way in named if (found := _of_model(opened, name, way)) is not None), None)


def _need_a_key(name: str, plugin: Any) -> None:
    found = plugin() if isinstance(plugin, type) else plugin
    schema = getattr(found, "get_config_schema", None)
    if schema is not None and "api_key" not in schema():
        raise CommandError(f"{name} needs no key", code=Exit.USAGE)


def _of_model(opened: Opened, name: str, way: tuple[str | int, ...]) -> Connection | None:
    """Return the connection of the model whose key is meant; None for a key of something else."""
    match way:
        case ("models", str(model), "config", "api_key"):
            declared = opened.settings.values["models"][model]
            address = str(declared["config"].get("base_url", ""))
            return Connection(name=name, label=model, provider=declared["provider"], base_url=address)
    return None


def _nobody(name: str, known: list[str]) -> CommandError:
    close = nearest(name, known)
    hint = f'{close} With --own it is stored under this name, for "stored:{name}" in settings'
    return CommandError(
        f"there is no provider {name!r}, and no setting refers to it", code=Exit.USAGE, hint=hint
    )


def _providers() -> dict[str, Any]:
    """Return the installed providers by name."""
    return {found.name: found.plugin for found in find_installed(kinds=["providers"]) if not found.problem}


def _read(name: str, *, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.buffer.read(LONGEST_KEY).decode("utf-8", "replace")
    if not sys.stdin.isatty():
        raise CommandError(
            "stdin is not a terminal, so a key cannot be typed", code=Exit.USAGE, hint="give it with --stdin"
        )
    typed: str = click.prompt(f"Key of {name} (not shown)", hide_input=True, err=True)
    return typed


def _check(opened: Opened, connection: Connection, key: str) -> None:
    """Ask the provider for its models with this key.

    Raises:
        CommandError: With the provider's reason, if it does not take the key.
    """
    try:
        hold(lambda: offered_models(Draft(connection=connection, key=key), opened))
    except CheckFailedError as failure:
        raise CommandError(
            f"{connection.label} did not take the key: {failure}; nothing is stored",
            code=failure.code,
            hint="--no-check stores it all the same",
        ) from failure


def _shown(where: str) -> str:
    return "the keyring" if where == "keyring" else where

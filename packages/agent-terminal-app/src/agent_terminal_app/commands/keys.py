"""`agent keys`: store, list and remove keys of providers. No command ever shows one."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.exits import category_code
from agent_terminal_app.keys import KeyStore, clean_key
from agent_terminal_app.opening import open_settings
from agent_terminal_app.paths import Paths
from agent_terminal_app.wiring import SHORT_NAMES

_LONGEST = 10_000


@click.group()
def command() -> None:
    """Store, list and remove keys of providers."""


@command.command("set")
@click.argument("provider")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the key from standard input.")
@click.option("--check/--no-check", default=True, help="Ask the provider whether the key works.")
def set_(provider: str, *, from_stdin: bool, check: bool) -> None:
    """Store the key of a provider, after it was found to work."""
    name, found = _find(provider)
    key = clean_key(_read(name, from_stdin=from_stdin))
    if check:
        _check(name, found, key)
    where = KeyStore(Paths.of_this_user()).set(name, key)
    click.echo(f"the key of {name} is stored in {_shown(where)}", err=True)


@command.command("list")
def list_() -> None:
    """Print which providers have a key, and where it is."""
    store = KeyStore(Paths.of_this_user())
    stored = store.names()
    for name in stored:
        click.echo(f"{name}\t{store.origin(name)}")
    for name, variable in found_in_environment():
        note = "\t(the stored key counts)" if name in stored else ""
        click.echo(f"{name}\tenvironment {variable}{note}")


@command.command("remove")
@click.argument("provider")
def remove(provider: str) -> None:
    """Forget the stored key of a provider."""
    store, name = KeyStore(Paths.of_this_user()), SHORT_NAMES.get(provider, provider)
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


def _providers() -> dict[str, Any]:
    """Return the installed providers by name."""
    from agent_core.plugin.discovery import find_installed

    return {found.name: found.plugin for found in find_installed(kinds=["providers"]) if not found.problem}


def _find(provider: str) -> tuple[str, Any]:
    from agent_runtime.errors import nearest

    name, there = SHORT_NAMES.get(provider, provider), _providers()
    if name not in there:
        raise CommandError(
            f"there is no provider {provider!r}", code=Exit.USAGE, hint=nearest(provider, there)
        )
    found = there[name]() if isinstance(there[name], type) else there[name]
    schema = getattr(found, "get_config_schema", None)
    if schema is not None and "api_key" not in schema():
        raise CommandError(f"{name} needs no key", code=Exit.USAGE)
    return name, found


def _read(name: str, *, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.buffer.read(_LONGEST).decode("utf-8", "replace")
    if not sys.stdin.isatty():
        raise CommandError("nobody is there to type a key", code=Exit.USAGE, hint="give it with --stdin")
    typed: str = click.prompt(f"Key of {name} (not shown)", hide_input=True, err=True)
    return typed


def _check(name: str, provider: Any, key: str) -> None:
    """Ask the provider for its models with this key.

    Raises:
        CommandError: With the provider's reason, if it does not take the key.
    """
    own = open_settings().settings.values.get("plugins", {}).get(name, {})
    config = {"first_byte_timeout": 10, "connect_timeout": 5, **own, "api_key": key, "discover_models": True}
    try:
        provider.get_models(config)
    except Exception as error:
        reason = str(error).replace(key, "[key]")
        raise CommandError(
            f"{name} did not take the key: {reason}; nothing is stored",
            code=category_code(getattr(error, "category", None)),
            hint="--no-check stores it all the same",
        ) from error


def _shown(where: str) -> str:
    return "the keyring" if where == "keyring" else where

"""From "stored:NAME", "env:NAME" and "file:PATH" to the key itself, and to words about where it came from.

A key that is not to be had keeps no command from working: most never need it. Whoever sends a request
without it gets the provider's refusal, which says where the key should have come from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_terminal_app.errors import CommandError
from agent_terminal_app.logs import hide
from agent_terminal_app.settings.secrets import Reference, is_secret_name, read_reference

if TYPE_CHECKING:
    from agent_terminal_app.keys import KeyStore

LONGEST_KEY = 10_000
"""How many bytes a file with a key may have."""


@dataclass(frozen=True, slots=True)
class FoundKey:
    """What a reference leads to.

    Attributes:
        value: The key; empty if there is none.
        origin: Where it came from, or why there is none; for people.
    """

    value: str = field(repr=False)
    origin: str

    @property
    def is_there(self) -> bool:
        """Whether there is a key."""
        return bool(self.value)


class KeyLookup:
    """Finds the keys that settings refer to."""

    def __init__(self, store: KeyStore, environment: Mapping[str, str] | None = None) -> None:
        self._store = store
        self._environment = os.environ if environment is None else environment

    def find(self, reference: Reference) -> FoundKey:
        """Return the key behind a reference, or why there is none; from now on the log hides it."""
        ways = {"stored": self._stored, "env": self._variable, "file": self._file}
        found = ways[reference.form](reference.name)
        if found.is_there:
            hide(found.value)
        return found

    def _stored(self, name: str) -> FoundKey:
        try:
            key = self._store.get(name)
        except CommandError as error:
            return FoundKey("", str(error))
        if key is None:
            return FoundKey("", f"nowhere: no key is stored as {name!r}, run `agent keys set {name}`")
        return FoundKey(key, f"{self._store.origin(name)}, stored as {name!r}")

    def _variable(self, name: str) -> FoundKey:
        key = self._environment.get(name, "").strip()
        return FoundKey(key, f"environment {name}" if key else f"nowhere: the variable {name} is not set")

    def _file(self, name: str) -> FoundKey:
        path = Path(name).expanduser()
        try:
            if not path.is_file():  # reading a pipe may never come to an end
                return FoundKey("", f"nowhere: {path} is no file")
            with path.open("rb") as file:
                key = file.read(LONGEST_KEY).decode("utf-8", "replace").strip()
        except OSError as error:
            return FoundKey("", f"nowhere: {path} cannot be read: {error.strerror or error}")
        return FoundKey(key, f"file {path}" if key else f"nowhere: {path} is empty")


def with_keys(values: Any, lookup: KeyLookup, way: tuple[str, ...] = ()) -> Any:
    """Return settings with keys in the place of references; a key that is not to be had is left out.

    Beside an `api_key`, `api_key_origin` says where it came from, as providers want to know. Where there is
    none it is empty, so that a provider does not take another one from the environment.

    Args:
        way: Where the settings stand, from the top.
    """
    if isinstance(values, list):
        return [with_keys(item, lookup) for item in values]
    if not isinstance(values, Mapping):
        return values
    if _is_for_a_server(way):
        return {name: _looked_up(name, value, lookup) for name, value in values.items()}
    made: dict[str, Any] = {}
    for name, value in values.items():
        reference = read_reference(value) if is_secret_name(name) else None
        if reference is None:
            made[name] = with_keys(value, lookup, (*way, name))
            continue
        found = lookup.find(reference)
        if name == "api_key":
            made |= {"api_key": found.value, "api_key_origin": found.origin}
        elif found.is_there:
            made[name] = found.value
    return made


def _is_for_a_server(way: tuple[str, ...]) -> bool:
    """Say whether a table is what a plugin gives a server: its variables, or its headers."""
    match way:
        case (*_, "servers", _, "env" | "headers"):
            return True
    return False


def _looked_up(name: str, value: Any, lookup: KeyLookup) -> Any:
    """Return a value for a server: its plugin has the reference approved, so it gets that beside the key.

    Variables it looks up itself, when the server starts. Where no key is expected, `file:` begins an address.
    """
    reference = read_reference(value)
    if reference is None or reference.form == "env":
        return value
    if reference.form == "file" and not is_secret_name(name):
        return value
    return {"reference": str(reference), "value": lookup.find(reference).value or None}

"""Keys and passwords: how one is recognised in a file, and how a file refers to one instead.

A configuration file is shown, copied and shared, so secrets are kept elsewhere. A setting says where:

| value         | where the secret is                                       |
|---------------|-----------------------------------------------------------|
| `stored:NAME` | stored under this name by `agent keys set NAME`           |
| `env:NAME`    | a variable of the environment                             |
| `file:PATH`   | a file that has nothing else in it                        |
| `oauth:NAME`  | the token of a login, looked up at every request          |
| an empty text | nowhere: none is sent, also if the environment has one    |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from agent_plugin_kit import mask_secrets
from agent_plugin_kit.credentials import is_reference as is_login
from agent_terminal_app.settings.keypaths import Way, every_way

_SECRET = re.compile(r"(?:^|_)(?:api_?key|token|secret|password|authorization)$")
_CARRIERS = frozenset(
    {"extra_headers", "headers", "extra_query", "extra_body", "mcp_servers", "server_tools", "builtin_tools"}
)
_REFERENCE = re.compile(r"(stored):([A-Za-z0-9][\w.-]{0,63})|(env):([A-Za-z_]\w{0,255})|(file):(\S.{0,1000})")


class Reference(NamedTuple):
    """Where a secret is: the form ("stored", "env", "file"), and the name or path."""

    form: str
    name: str

    def __str__(self) -> str:
        return f"{self.form}:{self.name}"


def is_secret_name(name: object) -> bool:
    """Say whether a key with this name holds a secret."""
    return isinstance(name, str) and bool(_SECRET.search(name.lower().replace("-", "_")))


def read_reference(value: object) -> Reference | None:
    """Return the reference to a secret that a value is; None if it is something else."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    form, name = (part for part in found.groups() if part is not None)
    return Reference(form, name)


def find_secret(values: Mapping[str, Any]) -> Way | None:
    """Return the way to the first secret, or None; a table or a switch is not a secret, whatever its name."""
    for way in every_way(values):
        if way and is_secret_name(way[-1]) and _is_secret(_at(values, way)):
            return way
    return None


def find_references(values: Mapping[str, Any]) -> list[tuple[Way, Reference]]:
    """Return every reference to a secret, with its key."""
    named = (way for way in every_way(values) if way and is_secret_name(way[-1]))
    found = ((way, read_reference(_at(values, way))) for way in named)
    return [(way, reference) for way, reference in found if reference is not None]


def for_showing(values: Any, *, carried: bool = False) -> Any:
    """Return settings in which everything that may be a secret is masked; references stay.

    Keys are never in a file, but headers and fields for a provider may carry one under any name.
    """
    if isinstance(values, Mapping):
        return {
            name: mask_secrets({name: value})[name]
            if carried and isinstance(value, str) and read_reference(value) is None
            else for_showing(value, carried=carried or name in _CARRIERS)
            for name, value in values.items()
        }
    return [for_showing(item, carried=carried) for item in values] if isinstance(values, list) else values


def owner(values: Mapping[str, Any], way: Way) -> str:
    """Return the name to store a secret under, as far as its place shows it."""
    match way:
        case ("plugins", str(name), _, *_):
            return name
        case ("models", str(name), _, *_):
            return str(values["models"][name].get("provider", "NAME"))
    return "NAME"


def _is_secret(value: object) -> bool:
    if isinstance(value, (bool, Mapping)) or value == "" or is_login(value):
        return False
    return read_reference(value) is None


def _at(value: Any, way: Way) -> Any:
    for step in way:
        value = value[step]
    return value

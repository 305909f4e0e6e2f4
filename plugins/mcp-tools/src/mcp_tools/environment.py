"""What a server gets to know of our environment: next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_tools.errors import Lost
from mcp_tools.settings import FROM_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Mapping


USUAL: Final = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP",
    "USERNAME", "USERPROFILE",
)  # fmt: skip
"""The variables that every program needs; none of them is a secret."""


def server_environment(own: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: the usual variables and those that were declared.

    Raises:
        Lost: If a variable that it shall have is not there.
    """
    return {**{name: own[name] for name in USUAL if name in own}, **filled_in(own, given)}


def filled_in(own: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the values with those that are `env:NAME` taken from our environment.

    Raises:
        Lost: If one is not there.
    """
    return {name: _value(own, name, value) for name, value in given.items()}


def _value(own: Mapping[str, str], name: str, value: str) -> str:
    if not value.startswith(FROM_ENVIRONMENT):
        return value
    source = value.removeprefix(FROM_ENVIRONMENT)
    if source not in own:
        raise Lost(f"{name} shall be the environment variable {source}, which is not set")
    return own[source]

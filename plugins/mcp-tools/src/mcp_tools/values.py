"""The values that a server is given by name: its variables, or its headers.

What a value does to a program is part of what a person approves, so it is shown and pinned: a reference as it
is written, a text as it is, and a secret that stands there as itself by its digest, so that it is neither
shown nor kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from agent_core.encoding import canonical
from mcp_tools.errors import Lost

FROM_ENVIRONMENT: Final = "env:"
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:(?:api)?key|token|secret|pass|passwd|password|passphrase|pwd|pw|credentials?|auth|"
    r"authorization|cookie|session|webhook)$|(?:apikey|token|secret|password|passphrase)$",
    re.IGNORECASE,
)
_SECRET_START: Final = ("sk-", "sk_", "ghp_", "gho_", "github_pat_", "glpat-", "xox", "AKIA", "AIza", "eyJ")
_SHORTEST_SECRET: Final = 16
# What these say decides which code a program loads: a person must see it, whatever it looks like.
_STEERING_NAME: Final = re.compile(r"(?:PATH|OPTIONS|ARGS|ENV|HOME)$|^(?:LD|DYLD|PYTHON|PERL|RUBY|BASH)")
_HARMLESS_START: Final = ("/", "~", ".", "-")


def approved_values(given: Mapping[str, Any], *, hidden: bool = False) -> dict[str, Any]:
    """Return what a person is shown of values, and what is pinned of them.

    Args:
        hidden: Whether every text that stands there as itself is a secret.
    """
    return {name: _approved(name, given[name], hidden=hidden) for name in sorted(given)}


def filled_in(own: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the values themselves, with those that are `env:NAME` taken from our environment.

    Raises:
        Lost: If one is not there.
    """
    return {name: _value(own, name, value) for name, value in given.items()}


def _approved(name: str, value: Any, *, hidden: bool) -> Any:
    if isinstance(value, Mapping):
        return value["reference"]
    if value.startswith(FROM_ENVIRONMENT) or not (hidden or _is_secret(name, value)):
        return value
    # No text can pass for this: a value that is shown is never a table.
    return {"hidden": f"{len(value)} characters", "sha256": sha256(canonical([name, value])).hexdigest()}


def _is_secret(name: str, value: str) -> bool:
    """Say whether a text opens doors, as far as can be told; a path or an option never does."""
    if not value or value.startswith(_HARMLESS_START) or any(one.isspace() for one in value):
        return False
    if _SECRET_NAME.search(name):
        return True
    long = len(value) >= _SHORTEST_SECRET and value.startswith(_SECRET_START)
    return long and not _STEERING_NAME.search(name)


def _value(own: Mapping[str, str], name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        if value["value"] is None:
            raise Lost(f"{name} shall be {value['reference']}, and there is no such key")
        return str(value["value"])
    if not value.startswith(FROM_ENVIRONMENT):
        return str(value)
    source = value.removeprefix(FROM_ENVIRONMENT)
    if source not in own:
        raise Lost(f"{name} shall be the environment variable {source}, which is not set")
    return own[source]

"""Keys and passwords that stand where anybody may read them.

A configuration file is shown, copied and shared; what opens doors has its own place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_terminal_app.settings.ways import Way, every_way

_SECRET = re.compile(r"(?:^|_)(?:api_?key|token|secret|password|authorization)$")


def is_secret_name(name: object) -> bool:
    """Say whether a key with this name holds something that opens doors."""
    return isinstance(name, str) and bool(_SECRET.search(name.lower().replace("-", "_")))


def find_secret(values: Mapping[str, Any]) -> Way | None:
    """Return the way to the first secret, or None; a table or a switch with such a name is no secret."""
    for way in every_way(values):
        if way and is_secret_name(way[-1]) and not isinstance(_at(values, way), (bool, Mapping)):
            return way
    return None


def owner(values: Mapping[str, Any], way: Way) -> str:
    """Return the provider that a secret is for, as far as its place tells."""
    match way:
        case ("plugins", str(name), _, *_):
            return name
        case ("models", str(name), _, *_):
            return str(values["models"][name].get("provider", "PROVIDER"))
    return "PROVIDER"


def _at(value: Any, way: Way) -> Any:
    for step in way:
        value = value[step]
    return value

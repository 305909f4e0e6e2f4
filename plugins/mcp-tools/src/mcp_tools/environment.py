"""What a server gets to know of our environment: next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_tools.values import filled_in

if TYPE_CHECKING:
    from collections.abc import Mapping


USUAL: Final = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP",
    "USERNAME", "USERPROFILE",
)  # fmt: skip
"""The variables that every program needs; none of them is a secret."""


def server_environment(own: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a server: the usual variables and those that were declared.

    Raises:
        Lost: If a variable that it shall have is not there.
    """
    return {**{name: own[name] for name in USUAL if name in own}, **filled_in(own, given)}

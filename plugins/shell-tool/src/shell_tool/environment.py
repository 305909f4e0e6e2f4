"""The variables that a command sees: those of the application, without what may be a secret.

`secret_forms` knows what looks like one. Also left out is what makes bash behave otherwise than its text
says: files that it would read first, functions and options out of the environment.

What only says where to ask stays: `SSH_AUTH_SOCK` lends keys without showing them, and without it no
`git push` works. `shell_env_deny` takes it away.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from shell_tool.secret_forms import looks_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shell_tool.settings import Settings

_BASH_CONDUCT = (
    "BASH_ENV",
    "BASHOPTS",
    "BASH_FUNC_*",
    "CDPATH",
    "ENV",
    "POSIXLY_CORRECT",
    "PS4",
    "SHELLOPTS",
)
_ALWAYS = {"TERM": "dumb"}


def command_environment(present: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the variables for a command.

    What the settings name in `shell_env` is there in any case. Of the others, `shell_env_deny` takes away
    first, and `shell_env_allow` keeps what looks like a secret.
    """
    kept = {name: value for name, value in present.items() if _is_kept(name, value, settings)}
    return {**kept, **_ALWAYS, **settings.env}


def _is_kept(name: str, value: str, settings: Settings) -> bool:
    if _fits(name, settings.env_deny) or _fits(name, _BASH_CONDUCT):
        return False
    return _fits(name, settings.env_allow) or not looks_secret(name, value)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

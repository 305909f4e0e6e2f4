"""The variables that a command sees: those of the application, without what may be a secret.

A secret is known by its name, or by a value that has the form of one. Also left out is what makes bash
behave otherwise than its text says: files that it would read first, functions and options out of the
environment.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from shell_tool.settings import Settings

SECRET_NAMES = (
    *(
        "*_KEY",
        "*_KEYS",
        "*_KEY_*",
        "*APIKEY*",
        "*TOKEN*",
        "*SECRET*",
        "*PASSWORD*",
        "*PASSWD*",
        "*PASSPHRASE*",
    ),
    *(
        "*CREDENTIAL*",
        "*PRIVATE*KEY*",
        "*COOKIE*",
        "*_PAT",
        "*_AUTH",
        "*_PASS",
        "*_DSN",
        "*CONNECTION_STRING*",
    ),
)
"""Names, in capitals, that stand for secrets."""

_SECRET_VALUE = re.compile(
    r"://[^/\s:@]*:[^/\s@]+@"  # an address with a password
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?:^|[^A-Za-z0-9])(?:sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abps]-|AKIA|AIza|hf_|eyJ)[\w.-]{16,}"
)
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
    return _fits(name, settings.env_allow) or not _is_secret(name, value)


def _is_secret(name: str, value: str) -> bool:
    return _fits(name.upper(), SECRET_NAMES) or _SECRET_VALUE.search(value) is not None


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

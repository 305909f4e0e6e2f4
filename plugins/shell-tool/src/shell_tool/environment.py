"""Where a command runs, and what it sees of the environment.

It starts in the workspace. That keeps a call from starting elsewhere by mistake; it does not keep a command
from going elsewhere.

The variables that a command sees: those of the application, without what may be a secret.

`agent_plugin_kit.secrets` knows what looks like one: a command rather lacks a variable than gets a secret,
and whoever needs one that only looks like a secret names it in `shell_env_allow`. Also left out is what
makes bash behave otherwise than its text says: files that it would read first, functions and options out of
the environment, and a locale in which it would read other characters than we do.

What only says where to ask stays: `SSH_AUTH_SOCK` lends keys without showing them, and without it no
`git push` works. `shell_env_deny` takes it away.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.secrets import looks_secret
from shell_tool.syntax.builtins import is_plain_locale

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shell_tool.settings import Settings


class Refused(Exception):
    """A call cannot be run; the message says why, and what to do instead."""


def workspace_roots(context: Mapping[str, Any] | None, configured: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders of the session, or else those of the settings.

    Raises:
        Refused: If there are none.
    """
    metadata = (context or {}).get("session_metadata")
    given = metadata.get("workspace_roots") if isinstance(metadata, Mapping) else None
    texts = (
        [text for text in given if isinstance(text, str) and text] if isinstance(given, (list, tuple)) else []
    )
    roots = tuple(Path(text) for text in texts) or configured
    if not roots:
        raise Refused(
            "there is no folder to run commands in: open the session in a workspace, "
            "or name folders in the setting 'roots'"
        )
    return roots


def working_folder(asked: str | None, roots: tuple[Path, ...]) -> Path:
    """Return the folder that a call asks for, the first root by default, with all links resolved.

    Raises:
        Refused: If it is not there, is no folder, or is outside of the roots.
    """
    real_roots = [Path(os.path.realpath(root)) for root in roots]
    if asked is not None and "\0" in asked:
        raise Refused("cwd has a NUL character in it: name a folder of the workspace")
    folder = Path(os.path.realpath(roots[0] / (asked or "")))
    if not any(folder.is_relative_to(root) for root in real_roots):
        names = ", ".join(str(root) for root in roots)
        raise Refused(f"cwd {asked!r} is outside the workspace: name a folder below {names}")
    if not folder.is_dir():
        raise Refused(f"cwd {asked or str(roots[0])!r} is not a folder: make it first, or name another one")
    return folder


_BASH_CONDUCT = (
    "BASH_COMPAT",
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
# There are encodings in which a backslash may be half of a character (GBK, Big5, Shift JIS). Bash would read
# a line otherwise than whoever decided about it, so commands are never given one of these.
_LOCALES = ("LC_ALL", "LC_CTYPE", "LANG")


def command_environment(present: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the variables for a command.

    What the settings name in `shell_env` is there in any case. Of the others, `shell_env_deny` takes away
    first, and `shell_env_allow` keeps what looks like a secret.
    """
    kept = {name: value for name, value in present.items() if _is_kept(name, value, settings)}
    return _in_safe_locale({**kept, **_ALWAYS, **settings.env})


def _in_safe_locale(environment: dict[str, str]) -> dict[str, str]:
    locale = next((value for name in _LOCALES if (value := environment.get(name))), "")
    return environment if is_plain_locale(locale) else {**environment, "LC_ALL": "C.UTF-8"}


def _is_kept(name: str, value: str, settings: Settings) -> bool:
    if _fits(name, settings.env_deny) or _fits(name, _BASH_CONDUCT):
        return False
    return _fits(name, settings.env_allow) or not looks_secret(name, value)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

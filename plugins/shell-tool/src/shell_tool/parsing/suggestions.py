"""What to offer to a person who allows a command for longer than once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shell_tool.parsing.line import read_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shell_tool.parsing.commands import Command

_BY_SUBCOMMAND = frozenset(
    "apt brew cargo docker gh git go kubectl npm pip pip3 pnpm poetry uv yarn".split()  # noqa: SIM905
)
_BY_NAME = frozenset(
    "basename cat cmp cut date df diff dirname du echo file grep head jq ls make mypy pwd pytest "  # noqa: SIM905
    "realpath rg ruff sort stat tail tr tree uniq wc which".split()
)
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
# They run, or make others run, whatever comes behind them.
_RUN_ANYTHING = frozenset(("alias", "config", "dlx", "exec", "run", "shell", "tool", "x"))
_GLOB_CHARACTERS = re.compile(r"[*?\\]")


def suggest(text: str) -> list[str]:
    """Return globs that fit what a line is about, the narrowest first.

    These are the exact things, and then every use of a well known tool. Of programs that run other programs
    only the exact use is offered.
    """
    line = read_line(text)
    exact = [_GLOB_CHARACTERS.sub(r"\\\g<0>", subject) for subject in line.subjects]
    broader = [] if line.problem else [glob for command in line.commands for glob in _broader(command)]
    return list(dict.fromkeys([*exact, *broader]))


def _broader(command: Command) -> Iterator[str]:
    if command.assignments or command.given:
        return
    name, *arguments = [word.literal or "" for word in command.words]
    if name in _BY_NAME and arguments:
        yield f"{name} *"
    if name in _BY_SUBCOMMAND and len(arguments) > 1 and _is_plain_subcommand(arguments[0]):
        yield f"{name} {arguments[0]} *"


def _is_plain_subcommand(word: str) -> bool:
    return _SUBCOMMAND.fullmatch(word) is not None and word not in _RUN_ANYTHING

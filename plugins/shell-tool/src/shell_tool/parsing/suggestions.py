"""What to offer to a person who allows a command for longer than once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shell_tool.parsing.line import read_line
from shell_tool.parsing.shapes import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shell_tool.parsing.commands import Command

# No option of these runs a program of one's choice, or writes a file. That leaves out many that seem to do
# nothing but read: `rg --pre`, `sort -o`, `tree -o`, `uniq a b`, `git log --output`, `git grep -O`.
_BY_NAME = frozenset(
    "basename cat cmp cut df diff dirname du echo grep head jq ls pwd realpath stat tail tr wc which".split()  # noqa: SIM905
)
_BY_SUBCOMMAND = {
    "git": frozenset(
        "add check-ignore describe ls-files ls-tree merge-base name-rev rev-parse status".split()  # noqa: SIM905
    ),
}


def suggest(text: str) -> list[str]:
    """Return globs that fit what a line is about, the narrowest first.

    These are the exact things, and then every use of a well known tool that can neither run another program
    nor write. Where words are only known when they run, and of all other programs, only the exact use is
    offered.
    """
    line = read_line(text)
    exact = [escape(line.name(subject)) for subject in line.subjects]
    broader = [] if line.problem else [glob for command in line.commands for glob in _broader(command)]
    return list(dict.fromkeys([*exact, *broader]))


def _broader(command: Command) -> Iterator[str]:
    if command.assignments or command.given or not command.spelling.is_known:
        return
    name, *arguments = [word.literal or "" for word in command.words]
    if name in _BY_NAME and arguments:
        yield f"{name} *"
    if len(arguments) > 1 and arguments[0] in _BY_SUBCOMMAND.get(name, ()):
        yield f"{name} {arguments[0]} *"

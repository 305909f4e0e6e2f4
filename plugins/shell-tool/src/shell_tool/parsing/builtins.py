"""Where bash makes more of a text than text: in the arguments of some builtins, and in some variables.

The subscript of an array is evaluated wherever a name may stand, and evaluating runs commands:
`read 'a[$(id)]'` runs `id` although it is in single quotes. What is assigned to a variable that is a number
is evaluated as well, and what is assigned to `PS4` is expanded before each command that `set -x` shows.
Other builtins expand a text once more, or change how the rest of the line is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shell_tool.parsing.errors import NotUnderstood

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shell_tool.parsing.words import Word

_TAKE_NAMES = frozenset(("[", "export", "getopts", "read", "readonly", "test", "unset", "wait"))
_NEVER_CLEAR = frozenset(
    (
        *("alias", "bind", "compgen", "complete", "compopt", "declare", "enable", "fc", "hash", "history"),
        *("jobs", "let", "local", "mapfile", "readarray", "shopt", "typeset", "unalias"),
    )
)
_EVALUATED = frozenset(
    (
        *("HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM"),  # numbers
        *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS3", "PS4"),  # texts that are expanded
    )
)
# No program has such a name, so a pattern for the uses of a program does not fit what begins with one.
_CAPITALS = re.compile(r"[A-Z_][A-Z0-9_]+")
_SET_OPTION = re.compile(r"[-+][euxo]+|errexit|nounset|pipefail|xtrace")


def check_builtin(name: str, arguments: Sequence[Word]) -> None:
    """Raise `NotUnderstood` if bash may run something for the arguments of a builtin."""
    if name in _NEVER_CLEAR:
        raise NotUnderstood(f"{name}, which evaluates text or changes what other commands mean")
    if name in _TAKE_NAMES and not all(_is_plain(word) for word in arguments):
        raise NotUnderstood(f"{name} with an argument that bash may evaluate")
    if name == "set" and not all(_SET_OPTION.fullmatch(word.literal or "") for word in arguments):
        raise NotUnderstood("set with an option that may change what other commands mean")
    if name == "printf" and arguments and (arguments[0].literal or "-").startswith("-"):
        raise NotUnderstood("printf with an option, which may name a variable")


def check_assignments(assignments: Sequence[Word], *, for_command: bool) -> None:
    """Raise `NotUnderstood` if assignments do more than assign, or could be taken for a command."""
    for word in assignments:
        name = _assigned(word.literal or word.shown)
        check_variable(name)
        if for_command and not _CAPITALS.fullmatch(name):
            raise NotUnderstood(f"{name}= before a command, which looks like another command")


def check_variable(name: str) -> None:
    """Raise `NotUnderstood` if bash evaluates what is assigned to a variable."""
    if name in _EVALUATED:
        raise NotUnderstood(f"the variable {name}, for which bash evaluates text")


def _is_plain(word: Word) -> bool:
    text = word.literal
    return text is not None and "$" not in text and "`" not in text and _assigned(text) not in _EVALUATED


def _assigned(text: str) -> str:
    return text.partition("=")[0].removesuffix("+")

"""Where bash makes more of a text than text: in the arguments of some builtins, and in some variables.

The subscript of an array is evaluated wherever a name may stand, and evaluating runs commands:
`read 'a[$(id)]'` runs `id` although it is in single quotes. What is assigned to a variable that is a number
is evaluated as well, and what is assigned to `PS4` is expanded before each command that `set -x` shows.
Other builtins expand a text once more, or change how the rest of the line is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shell_tool.syntax.words import NotUnderstood

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shell_tool.syntax.words import Word

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
        *("BASH_COMPAT", "POSIXLY_CORRECT"),  # how the rest of the text is read
    )
)
# They say which bytes are one character, and there are encodings in which a backslash is half of one.
_LOCALE = re.compile(r"LANG|LC_\w+")
_PLAIN_LOCALE = re.compile(r"|C|POSIX|[\w@]+\.(?:UTF-?8|utf-?8)")
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
        check_variable(name, None if word.literal is None else word.literal.partition("=")[2])
        if for_command and not _CAPITALS.fullmatch(name):
            raise NotUnderstood(f"{name}= before a command, which looks like another command")


def check_variable(name: str, value: str | None) -> None:
    """Raise `NotUnderstood` if bash evaluates what is assigned to a variable, or reads on in another way."""
    if name in _EVALUATED:
        raise NotUnderstood(f"the variable {name}, for which bash evaluates text")
    if _is_locale(name, value):
        raise NotUnderstood(f"the variable {name}, by which bash may read characters in another way")


def _is_locale(name: str, value: str | None) -> bool:
    return bool(_LOCALE.fullmatch(name)) and (value is None or not is_plain_locale(value))


def is_plain_locale(value: str) -> bool:
    """Say whether bash reads the characters of a line in a locale as we do: as UTF-8, or as bytes."""
    return _PLAIN_LOCALE.fullmatch(value) is not None


def _is_plain(word: Word) -> bool:
    """Say whether bash makes nothing of an argument: a subscript names variables, whose text is evaluated."""
    text = word.literal
    if text is None or "$" in text or "`" in text or ("[" in text and text != "["):
        return False
    name, given, value = text.partition("=")
    return _assigned(text) not in _EVALUATED and not _is_locale(name, value if given else None)


def _assigned(text: str) -> str:
    return text.partition("=")[0].removesuffix("+")

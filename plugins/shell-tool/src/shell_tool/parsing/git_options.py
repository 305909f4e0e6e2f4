"""What git does is said by its subcommand, and options may stand before that: `git -C folder push`.

A rule against `git push*` is meant for such a call as well. So rules that ask or deny also see a call of git
without these options. Where one of them is not known, or may define a subcommand (`-c alias.x=push`), the
subcommand may be any.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shell_tool.parsing.spelling import Spelling, spell
from shell_tool.parsing.words import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shell_tool.parsing.commands import Command

_FLAG = re.compile(
    r"-p|-P|--(?:no-)?pager|--paginate|--bare|--no-replace-objects|--no-optional-locks|--no-lazy-fetch"
    r"|--(?:literal|glob|noglob|icase)-pathspecs|--(?:git-dir|work-tree|namespace|super-prefix)=.*",
    re.DOTALL,
)
_WITH_VALUE = frozenset(("-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix"))
_SETTING = "-c"
_DEFINES = re.compile(r"(?:alias|include|includeif)\.", re.IGNORECASE)
_ANY_USE = Spelling("git", ("git *",), ("git *",))


def without_options(command: Command) -> list[Spelling]:
    """Return a call of git as rules see it without the options before its subcommand."""
    words = command.words
    if not words or (words[0].literal or "").rpartition("/")[2] != "git" or len(words) == 1:
        return []
    at = _subcommand(words)
    if at is None:
        return [_ANY_USE]
    return [] if at == 1 else [spell([Word.text("git"), *words[at:]])]


def _subcommand(words: Sequence[Word]) -> int | None:
    """Return where the subcommand stands; None if it may be another than is written there."""
    at = 1
    while at < len(words):
        size = _option_size(words, at)
        if size is None or any(_may_vanish(word) for word in words[at : at + size]):
            return None
        if size == 0:
            return at
        at += size
    return at


def _option_size(words: Sequence[Word], at: int) -> int | None:
    """Return of how many words an option consists; 0 if there is none, None if that is not known."""
    word = words[at]
    text = word.literal
    if text is None:
        return 0 if word.shape is not None and word.shape.spelled[0] not in "*-" else None
    if text in _WITH_VALUE or (text == _SETTING and _is_plain_setting(words[at + 1 : at + 2])):
        return 2
    if _FLAG.fullmatch(text):
        return 1
    return None if text.startswith("-") else 0


def _may_vanish(word: Word) -> bool:
    return word.shape is not None and word.shape.vanishes


def _is_plain_setting(words: Sequence[Word]) -> bool:
    return all(word.literal is not None and not _DEFINES.match(word.literal) for word in words)

"""Asking a person. A dialogue is written once, against these four methods; each front end has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence


class Ask(Protocol):
    """Asks a person. None is the answer of somebody who wants to leave."""

    async def choose(self, title: str, options: Sequence[str]) -> int | None:
        """Ask which of some things it shall be, and return its number, from 0; the first is the usual one."""

    async def secret(self, prompt: str) -> str | None:
        """Ask for a text that nobody shall see."""

    async def line(self, prompt: str) -> str | None:
        """Ask for a line of text."""

    def tell(self, text: str) -> None:
        """Say something that needs no answer."""


MOST_SHOWN = 20
"""How many things of a long list are shown at once."""
_GAP = "  "


async def choose_by_typing(
    title: str,
    options: Sequence[str],
    *,
    tell: Callable[[str], None],
    read: Callable[[], Awaitable[str | None]],
) -> int | None:
    """Show a list, read numbers or parts of names until one thing is meant, and return its number.

    What stands behind two spaces in an option is about it, and no part of its name.
    """
    tell("\n".join([title, *listed(options)]))
    while (typed := await read()) is not None:
        found = matching(options, typed)
        if len(found) == 1:
            return found[0]
        told = listed(options, found) if found else [f"Nothing in the list is called {typed.strip()!r}."]
        tell("\n".join(told))
    return None


def listed(options: Sequence[str], numbers: Sequence[int] | None = None) -> list[str]:
    """Return the lines of a list, numbered from 1; of a long one the beginning."""
    chosen = range(len(options)) if numbers is None else numbers
    lines = [f"  {number + 1:>2}  {options[number]}" for number in chosen[:MOST_SHOWN]]
    more = len(chosen) - MOST_SHOWN
    return lines if more <= 0 else [*lines, f"  and {more} more: type a part of the name"]


def matching(options: Sequence[str], typed: str) -> list[int]:
    """Return the numbers of the options that somebody may have meant.

    Nothing typed means the first. A number means itself, a name means that one, and anything else means
    what has all the words in it.
    """
    wanted = typed.strip().casefold()
    if not wanted:
        return [0] if options else []
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(options):
        return [int(wanted) - 1]
    folded = [option.casefold() for option in options]
    named = [number for number, option in enumerate(folded) if wanted in (option, option.partition(_GAP)[0])]
    words = wanted.split()
    return named[:1] or [
        number for number, option in enumerate(folded) if all(word in option for word in words)
    ]

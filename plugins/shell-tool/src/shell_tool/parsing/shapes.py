"""What a word may turn out to be that is only known when it runs: an expansion, a glob, braces, a home.

A shape is written as globs, in the pattern language of permission rules. They fit every spelling that the
word can have, whatever comes out. What comes out may be several words, or none at all.
"""

from __future__ import annotations

import re
from itertools import groupby, product
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from shell_tool.parsing.pieces import Piece

BARE = re.compile(r"[\w@%+=:,./^!~#{}-]+")
"""Text that needs no quotes, if bash expands nothing in it."""

_GLOB_CHARACTERS = re.compile(r"[*?\\]")
# Text that stands for itself; a home; names of files; and what reaches to the end of the word at least.
_ACTIVE = re.compile(
    r"(?P<home>(?:^|(?<=[=:]))~[^/*?\[{]*)|(?P<files>[*?]+)|(?P<rest>[\[{].*)|[^*?\[{~]+|~", re.DOTALL
)
_ANY = "*"


class Shape(NamedTuple):
    """What a word may turn out to be.

    Attributes:
        spelled: A glob for it, in the spelling that its known parts ask for.
        spellings: Globs for all spellings: the parts that are not known may ask for quotes.
        vanishes: Whether it may become no word.
    """

    spelled: str
    spellings: tuple[str, ...]
    vanishes: bool = False


ANYTHING = Shape(_ANY, (_ANY,))
ANY_WORDS = Shape(_ANY, (_ANY,), vanishes=True)


def escape(text: str) -> str:
    """Return a glob that fits a text and nothing else."""
    return _GLOB_CHARACTERS.sub(r"\\\g<0>", text)


def shape_of(pieces: Sequence[Piece]) -> Shape:
    """Return the shape of a word that is not known."""
    parts = list(_joined(_parts(pieces)))
    texts = [text for text in parts if text is not None]
    vanishes = _vanishes(pieces)
    if all(map(BARE.fullmatch, texts)):
        return _bare(parts, vanishes=vanishes)
    # Beside what is not quoted, `]` may end what an expansion began: `$x]` becomes the name of a file.
    if any("'" in text for text in texts) or not all(piece.quoted for piece in pieces):
        return Shape(_ANY, (_ANY,), vanishes)
    quoted = f"'{_glob(parts)}'"
    return Shape(quoted, (quoted,))


def _bare(parts: Sequence[str | None], *, vanishes: bool) -> Shape:
    """Return a shape of parts that need no quotes themselves, but stand in them if others do."""
    glob = _glob(parts)
    opening = ("", "'") if parts[0] is not None else ("",)
    closing = ("", "'") if parts[-1] is not None else ("",)
    spellings = tuple(f"{one}{glob}{other}" for one, other in product(opening, closing))
    return Shape(glob, spellings, vanishes)


def _glob(parts: Sequence[str | None]) -> str:
    return "".join(_ANY if text is None else escape(text) for text in parts)


def _parts(pieces: Sequence[Piece]) -> Iterator[str | None]:
    """Yield the texts of a word, and None for what is not known, up to what may reach to its end."""
    for piece in pieces:
        if not piece.known:
            yield from piece.inside or (None,)
        elif piece.quoted:
            yield piece.text
        else:
            for found in _ACTIVE.finditer(piece.text):
                yield None if found.lastgroup else found[0]
                if found.lastgroup == "rest":
                    return


def _joined(parts: Iterable[str | None]) -> Iterator[str | None]:
    """Join what stands side by side."""
    some = (part for part in parts if part != "")
    for is_open, group in groupby(some, key=lambda part: part is None):
        yield None if is_open else "".join(part or "" for part in group)


def _vanishes(pieces: Sequence[Piece]) -> bool:
    """Say whether nothing may be left of a word; what is quoted stays, though it be empty."""
    in_braces = False
    for piece in pieces:
        in_braces = in_braces or (piece.known and piece.text.startswith("{"))
        if piece.quoted or (piece.known and not in_braces):
            return False
    return True

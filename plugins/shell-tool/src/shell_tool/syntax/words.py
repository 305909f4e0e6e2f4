"""A word of a command: its pieces as they were read, what it may turn out to be, and how rules see it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby, product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class NotUnderstood(Exception):
    """Bash may make more of a line than its text shows; the message says why."""


# A part of a word, as it was read.


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word.

    Attributes:
        text: Its characters, or, if these are only known when it runs, its source.
        known: Whether they are known.
        quoted: Whether it stays within one word, and its characters stand for themselves.
        inside: Of a part in double quotes what is in it: texts, and None for what is not known.
    """

    text: str
    known: bool = True
    quoted: bool = False
    inside: tuple[str | None, ...] = ()


# What a word may turn out to be that is only known when it runs: an expansion, a glob, braces, a home.
#
# A shape is written as globs, in the pattern language of permission rules. They fit every spelling that the
# word can have, whatever comes out. What comes out may be several words, or none at all.


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
    # Next to what is not quoted, `]` may end what an expansion began: `$x]` becomes the name of a file.
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


# A word of a command, and the one spelling in which rules see it.
#
# Bash knows many spellings of one word (`ls`, `'ls'`, `l\s`). Rules are compared with one: what needs no
# quotes has none, everything else has single quotes. So a quoted space is never taken for the end of a word,
# and a quoted `*` never for a wildcard. Expansions are shown as they were written, and have a shape.


# What bash would expand, or take for a comment, if it stood without quotes.
_EXPANDS = re.compile(r"^[~#]|[=:]~|\{.*(?:,|\.\.)")
_GLOB = re.compile(r"[*?\[]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


@dataclass(frozen=True, slots=True)
class Word:
    """A word.

    Attributes:
        literal: What it is when the command runs; None if that is not known, or may be several words.
        shown: How rules see it.
        assigns: Whether it is an assignment where one may stand.
        shape: What it may turn out to be, if that is not known.
    """

    literal: str | None
    shown: str
    assigns: bool = False
    shape: Shape | None = None

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Word:
        """Put a word together."""
        active = "".join(piece.text for piece in pieces if piece.known and not piece.quoted)
        first = pieces[0]
        is_assignment = first.known and not first.quoted and assigns(first.text)
        if all(piece.known for piece in pieces) and not _changes(active):
            text = "".join(piece.text for piece in pieces)
            return cls.assigning(text) if is_assignment else cls(text, quote(text))
        shown = "".join(map(_shown, pieces))
        if is_assignment:
            glob = escape(shown.partition("=")[0]) + "=*"
            return cls(None, shown, assigns=True, shape=Shape(glob, (glob,)))
        return cls(None, shown, shape=shape_of(pieces))

    @classmethod
    def assigning(cls, text: str) -> Word:
        """Return an assignment that is known."""
        name, _, value = text.partition("=")
        return cls(text, f"{name}={quote(value) if value else ''}", assigns=True)

    def as_argument(self) -> Word:
        """Return the word where it assigns nothing, so that its spelling is that of any other word."""
        if not self.assigns:
            return self
        if self.literal is not None:
            return Word.text(self.literal)
        assert self.shape is not None  # what is not known has one
        glob = self.shape.spelled
        return Word(None, self.shown, shape=Shape(glob, (glob, f"'{glob}")))

    @classmethod
    def unknown(cls, source: str, shape: Shape = ANYTHING) -> Word:
        """Return a word of which only the source is known, and perhaps its shape."""
        return cls(None, source, shape=shape)

    @classmethod
    def sign(cls, text: str) -> Word:
        """Return what is not a word of a command, but is shown like one: an operator."""
        return cls(text, text)

    @classmethod
    def text(cls, text: str) -> Word:
        """Return a word that is known."""
        return cls(text, quote(text))


def assigns(text: str) -> bool:
    """Say whether unquoted text begins like an assignment."""
    return _ASSIGNMENT.match(text) is not None


def quote(text: str) -> str:
    """Return the spelling of a word that is known."""
    if text in ("[", "]") or (BARE.fullmatch(text) and not _EXPANDS.search(text)):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _changes(active: str) -> bool:
    """Say whether bash makes something else of unquoted text: names of files, several words, a home."""
    return active != "[" and bool(_GLOB.search(active) or _EXPANDS.search(active))


def _shown(piece: Piece) -> str:
    return quote(piece.text) if piece.known and piece.quoted and piece.text else piece.text


# Words in a row, as rules see them.


# How many globs stand for one command; with more, words that are not known are taken together.
_MOST = 16


class Spelling(NamedTuple):
    """Something that rules are about.

    Attributes:
        shown: Its text, with expansions as they were written.
        surely: If it is not known, globs for what it may turn out to be: all of it must be allowed.
        possibly: The same in every spelling: a rule that asks or denies counts if it fits some of it.
    """

    shown: str
    surely: tuple[str, ...] = ()
    possibly: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """True if it is known before it runs."""
        return not self.surely

    @property
    def is_open(self) -> bool:
        """True if it may begin with anything."""
        return any(glob.startswith("*") for glob in self.possibly)

    def beginning(self, old: str, new: str) -> Spelling:
        """Return the same with another beginning."""
        shown, *globs = [new + text.removeprefix(old) for text in (self.shown, *self.surely, *self.possibly)]
        return Spelling(shown, tuple(globs[: len(self.surely)]), tuple(globs[len(self.surely) :]))


def spell(words: Sequence[Word]) -> Spelling:
    """Return words with a blank between them."""
    shown = " ".join(word.shown for word in words)
    if all(word.shape is None for word in words):
        return Spelling(shown)
    return Spelling(shown, _globs(words, every_spelling=False), _globs(words, every_spelling=True))


def _globs(words: Sequence[Word], *, every_spelling: bool) -> tuple[str, ...]:
    choices = [_choices(word, every_spelling=every_spelling) for word in words]
    if prod(map(len, choices)) > _MOST:
        choices = [one if len(one) == 1 else ["*"] for one in choices]
    globs = ("".join(chosen).removeprefix(" ") for chosen in product(*choices))
    return tuple(glob for glob in globs if glob)


def _choices(word: Word, *, every_spelling: bool) -> list[str]:
    """Return globs for a word together with the blank before it."""
    shape = word.shape
    if shape is None:
        return [f" {escape(word.shown)}"]
    spellings = shape.spellings if every_spelling else (shape.spelled,)
    return [*(f" {glob}" for glob in spellings), *([""] if shape.vanishes else [])]


# A simple command: assignments, words, and what it is given to read.


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command.

    Attributes:
        words: Its name and arguments.
        assignments: What is assigned for it alone, or in the shell if there are no words.
        given: Texts that it finds on its standard input, here documents and here strings.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    given: tuple[Word, ...] = ()

    @property
    def spelling(self) -> Spelling:
        """The command as rules see it."""
        names = [_as_name(word) for word in self.words[:1]]
        given = [word for text in self.given for word in (Word.sign("<<<"), text)]
        return spell([*self.assignments, *names, *self.words[1:], *given])

    def bare(self) -> list[Spelling]:
        """Return the command as rules see it without assignments, and without the folder of its program."""
        if not self.words:
            return []
        name, *arguments = self.words
        _, slash, program = (name.literal or "").rpartition("/")
        plain = Command(self.words, given=self.given)
        inside = Command((Word.text(program), *arguments), given=self.given)
        return [plain.spelling, inside.spelling] if slash and program else [plain.spelling]

    def with_given(self, text: Word) -> Command:
        """Return the command with one text more to read."""
        return replace(self, given=(*self.given, text))


def _as_name(word: Word) -> Word:
    """Return a command's name; one that looks like an assignment had quotes, and keeps them."""
    if word.literal == word.shown and assigns(word.shown):
        return replace(word, shown=f"'{word.shown}'")
    return word

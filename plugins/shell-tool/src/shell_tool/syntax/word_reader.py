"""Reading words: quotes, escapes, and what is expanded in them.

The forms of expansion that can run a command, or evaluate text (arithmetic does), are either read in full,
as `$(…)` is, or not understood.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shell_tool.syntax.words import NotUnderstood, Piece, Word

if TYPE_CHECKING:
    from collections.abc import Callable

META = " \t\n;&|()<>"
_PLAIN = re.compile(r"[^ \t\n;&|()<>\\'\"$`]+")
_IN_DOUBLE = re.compile(r"[^\"\\$`]+")
_PARAMETER = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])", re.ASCII)
# Of ${…} what neither assigns, nor evaluates, nor refers to another name.
_BRACED = re.compile(
    r"\$\{(?:#?[A-Za-z_]\w*|[0-9@*#?$!-]|[A-Za-z_]\w*(?::?[-+?]|##?|%%?)[\w./@,+*?-]*)\}", re.ASCII
)
# As many words as there are arguments, in spite of double quotes.
_ARGUMENTS = re.compile(r"\$\{?@")
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|(.))", re.DOTALL
)
_NAMED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_PIECES = {
    "\\": "_escaped",
    "'": "_single",
    '"': "_double",
    "$": "_dollar",
    "`": "backquoted",
    "<": "_process",
    ">": "_process",
}
_LAST_ASCII = "\x7e"
# Controls but tab and line end; marks of direction; halves of surrogate pairs.
_UNCLEAR = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def check_characters(text: str) -> None:
    """Raise `NotUnderstood` for characters that are read, or shown, other than they are."""
    found = _UNCLEAR.search(text)
    if found is not None:
        raise NotUnderstood(f"the character U+{ord(found[0]):04X}")


class WordReader:
    """Reads words of a text, from a position on.

    Args:
        text: The text.
        posix: Whether a shell reads it that may not know what bash added to the language.

    Attributes:
        enclosed: Whether this is within a substitution. Where one ends is found by looking for its end in
            the text before, or while, the commands in it are read; which, and how closely that is looked at,
            depends on the version of bash. So whatever may hide the end is not understood there.
    """

    def __init__(self, text: str, *, posix: bool) -> None:
        self.text = text
        self.posix = posix
        self.at = 0
        self.enclosed = False

    def starts(self, text: str) -> bool:
        """Say whether *text* comes next."""
        return self.text.startswith(text, self.at)

    @property
    def ended(self) -> bool:
        """True if nothing is left."""
        return self.at >= len(self.text)

    def at_word(self) -> bool:
        """Say whether a word begins here."""
        return not self.ended and (self.text[self.at] not in META or self._at_process())

    def word(self) -> Word:
        """Read a word.

        Raises:
            NotUnderstood: If there is none, or it may be something else than it seems.
        """
        start, pieces = self.at, list[Piece]()
        while self.at_word():
            if self._at_process() and self.at > start:
                raise NotUnderstood("a process substitution within a word")
            pieces.append(self._piece())
        if not pieces:
            raise NotUnderstood(f"no word where one should be, at character {start + 1}")
        return Word.of(pieces)

    def substitution(self, opening: str) -> Piece:
        """Read commands in parentheses, from *opening* to the closing one."""
        raise NotImplementedError

    def backquoted(self) -> Piece:
        """Read commands in backticks."""
        raise NotImplementedError

    def _at_process(self) -> bool:
        return self.starts("<(") or self.starts(">(")

    def _piece(self) -> Piece:
        character = self.text[self.at]
        read: Callable[[], Piece] = getattr(self, _PIECES[character]) if character in _PIECES else self._plain
        return read()

    def _plain(self) -> Piece:
        text = self._take(_PLAIN)
        for character in text:
            if character > _LAST_ASCII and (character.isspace() or not character.isprintable()):
                raise NotUnderstood(f"U+{ord(character):04X} without quotes")
        return Piece(text)

    def _process(self) -> Piece:
        return self.substitution(self.text[self.at : self.at + 2])

    def _escaped(self) -> Piece:
        escaped = self.text[self.at + 1 : self.at + 2]
        if escaped in ("", "\n"):  # what stands on both sides of a joined line is one word, or a reserved one
            raise NotUnderstood("a line that is continued within a word")
        self.at += 2
        return Piece(escaped, quoted=True)

    def _single(self) -> Piece:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise NotUnderstood("a quote that is not closed")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return Piece(text, quoted=True)

    def _double(self) -> Piece:
        start = self.at
        self.at += 1
        pieces: list[Piece] = []
        while not self.starts('"'):
            if self.ended:
                raise NotUnderstood("a quote that is not closed")
            pieces.append(self._in_double())
        self.at += 1
        if all(piece.known for piece in pieces):
            return Piece("".join(piece.text for piece in pieces), quoted=True)
        source = self.text[start : self.at]
        inside = tuple(piece.text if piece.known else None for piece in pieces)
        return Piece(source, known=False, quoted=_ARGUMENTS.search(source) is None, inside=inside)

    def _in_double(self) -> Piece:
        character = self.text[self.at]
        if character == "$":
            return self.dollar_in_quotes()
        if character == "`":
            return self.backquoted()
        if character == "\\":
            return self._escaped_in_double()
        return Piece(self._take(_IN_DOUBLE))

    def _escaped_in_double(self) -> Piece:
        escaped = self.text[self.at + 1 : self.at + 2]
        if escaped == "\n":
            raise NotUnderstood("a line that is continued within quotes")
        self.at += 2
        return Piece(escaped if escaped in '$`"\\' else f"\\{escaped}")

    def _dollar(self) -> Piece:
        if self.starts("$'"):
            return self._ansi_c()
        if self.starts('$"'):
            raise NotUnderstood('a text that is translated, $"…"')
        return self.dollar_in_quotes()

    def dollar_in_quotes(self) -> Piece:
        """Read what a dollar begins where quotes mean nothing: in double quotes and here documents."""
        for opening in ("$((", "$["):
            if self.starts(opening):
                raise NotUnderstood(f"arithmetic, {opening}")
        if self.starts("$("):
            return self.substitution("$(")
        if self.starts("${"):
            return self._expansion(_BRACED)
        return self._expansion(_PARAMETER)

    def _expansion(self, form: re.Pattern[str]) -> Piece:
        found = form.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return Piece(found[0], known=False)
        if form is _BRACED:
            raise NotUnderstood("an expansion of another form than ${name}")
        self.at += 1
        return Piece("$", quoted=True)

    def _ansi_c(self) -> Piece:
        # dash takes it for a dollar and a text in which a backslash escapes nothing, and so does an old bash
        # that looks for the end of a substitution.
        if self.posix or self.enclosed:
            raise NotUnderstood("$'…', which not every shell reads alike")
        found = _ANSI_C.match(self.text, self.at)
        if found is None:
            raise NotUnderstood("a quote that is not closed")
        self.at = found.end()
        text = _ESCAPE.sub(_unescaped, found[1])
        check_characters(text)
        return Piece(text, quoted=True)

    def _take(self, form: re.Pattern[str]) -> str:
        found = form.match(self.text, self.at)
        assert found is not None  # the caller looked at the first character
        self.at = found.end()
        return found[0]


def _unescaped(found: re.Match[str]) -> str:
    named, octal, two, four, other = found.groups()
    if other is not None:
        raise NotUnderstood(f"the escape \\{other} in $'…'")
    if named is not None:
        return _NAMED.get(named, named)
    number = int(octal, 8) if octal else int(two or four, 16)
    if number > ord(_LAST_ASCII):
        raise NotUnderstood("a byte in $'…' that is not a character, or another one in each locale")
    return chr(number)

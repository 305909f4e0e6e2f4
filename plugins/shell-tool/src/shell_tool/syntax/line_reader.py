"""Reading a whole line: every construct of bash that holds commands, with the commands in it.

What is between commands does not matter here: whether `a && b` runs `b` is known only when it runs, so `b`
counts. All that separates is therefore one thing. Constructs are read leniently where bash would report a
mistake, since what it does not run does no harm.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shell_tool.syntax.builtins import check_variable
from shell_tool.syntax.redirections import RedirectionReader
from shell_tool.syntax.words import Command, NotUnderstood, Piece, Spelling, Word, spell

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 10

# Bash joins a continued line before it looks for words and operators, so `(\` and `(` become one `((`.
# Next to a blank nothing can grow together.
_BLANKS = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n|\\\n(?=[ \t]))*")
_COMMENT = re.compile(r"#[^\n]*")
_SEPARATOR = re.compile(r"\|\||&&|\|&|[;|]|&(?!>)")
_PIPES = ("|", "|&")
_AFTER = r"(?=[ \t\n;&|()<>]|\Z)"
_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|function|select|coproc|!|\{|\}|\[\["
    r"|time(?:[ \t]+-p)?(?:[ \t]+--)?)" + _AFTER
)
# Behind `time`: an option that stands on the next line, or one more.
_MORE_OPTIONS = re.compile(r"[ \t]*(?:\\\n|-)")
_IN = re.compile(r"in" + _AFTER)
_NAME = re.compile(r"[A-Za-z_]\w*" + _AFTER, re.ASCII)
# Names that no program and no part of bash looks at, so that a loop over one changes nothing else.
_HARMLESS_NAME = re.compile(r"[a-z]+")
_NAMED_DESCRIPTOR = re.compile(r"\{.*\}", re.DOTALL)
_END = ""
_SYMBOLS = (";;&", ";;", ";&", ")")
_CASE_ENDS = (";;&", ";;", ";&", "esac")


class LineReader(RedirectionReader):
    """Reads a line and notes the commands in it, and what else must be allowed.

    Attributes:
        found: The commands, and the files and loops as rules see them, in the order of the text. It is
            right up to where reading ended, also if that was before the end of the text.
    """

    def __init__(self, text: str, *, posix: bool, depth: int) -> None:
        super().__init__(text, posix=posix)
        self.found: list[Command | Spelling] = []
        self._depth = depth
        self._in_pipe = False

    def read(self) -> None:
        """Read all of it.

        Raises:
            NotUnderstood: If something in it may hide a command.
        """
        self._list(_END)

    def blanks(self) -> None:
        """Skip blanks, continued lines, and a comment."""
        skipped = _BLANKS.match(self.text, self.at)
        self.at = self.at if skipped is None else skipped.end()
        comment = _COMMENT.match(self.text, self.at)
        if comment is not None:
            if self.enclosed:
                raise NotUnderstood("a comment within a substitution")
            self.at = comment.end()

    def substitution(self, opening: str) -> Piece:
        """Read commands in parentheses, from *opening* to the closing one."""
        start, outside = self.at, (self.announced, self.enclosed, self._in_pipe)
        self.at += len(opening)
        self.announced, self.enclosed, self._in_pipe = [], True, False
        self._deeper(lambda: self._list(")"))
        self.announced, self.enclosed, self._in_pipe = outside
        return Piece(self.text[start : self.at], known=False)

    def backquoted(self) -> Piece:
        """Read commands in backticks."""
        end = self.text.find("`", self.at + 1)
        inside = self.text[self.at + 1 : end]
        if end < 0 or re.search(r"[\\'\"]", inside):
            raise NotUnderstood("quotes or escapes within backticks")
        self._nested(inside, LineReader.read, enclosed=True)
        source = self.text[self.at : end + 1]
        self.at = end + 1
        return Piece(source, known=False)

    def expand(self, text: str) -> None:
        """Read the expansions in a here document."""
        self._nested(text, _expand)

    def give(self, owner: int | None, text: Word) -> None:
        """Note the text of a here document, with its command if it is for a simple one."""
        if owner is None:
            self.found.append(_given(text))
            return
        command = self.found[owner]
        assert isinstance(command, Command)
        self.found[owner] = command.with_given(text)

    def word(self) -> Word:
        """Read a word."""
        start = self.at
        word = super().word()
        if self.announced and "\n" in self.text[start : self.at]:
            raise NotUnderstood("a word that continues where a here document should begin")
        return word

    def _nested(self, text: str, read: Callable[[LineReader], None], *, enclosed: bool = False) -> None:
        inner = LineReader(text, posix=self.posix, depth=self._depth)
        inner.found, inner.enclosed = self.found, enclosed
        inner._deeper(lambda: read(inner))

    def _deeper(self, read: Callable[[], object]) -> None:
        if self._depth >= MAX_DEPTH:
            raise NotUnderstood(f"commands within commands, more than {MAX_DEPTH} deep")
        self._depth += 1
        read()
        self._depth -= 1

    def _list(self, *closers: str) -> str:
        """Read commands up to one of *closers*, which stands where a command could, and return it."""
        while True:
            self.blanks()
            closer = self._closer(closers)
            if closer is not None:
                return closer
            if self.ended:
                raise NotUnderstood(f"the end of the line where {' or '.join(closers)} should be")
            if self.starts("\n"):
                self.end_line()
            elif (separator := _SEPARATOR.match(self.text, self.at)) is not None:
                self.at = separator.end()
                self._in_pipe = separator[0] in _PIPES
                if self.posix and separator[0] == "|&":
                    raise NotUnderstood("|&, which not every shell reads alike")
            else:
                self._command()
                self._in_pipe = False

    def _closer(self, closers: tuple[str, ...]) -> str | None:
        if self.ended:
            return _END if _END in closers and not self.announced else None
        word = self._reserved() or next((symbol for symbol in _SYMBOLS if self.starts(symbol)), None)
        if word not in closers:
            return None
        self.at += len(word)
        return word

    def _reserved(self) -> str | None:
        found = _RESERVED.match(self.text, self.at)
        return None if found is None else found[0]

    def _command(self) -> None:
        word = self._reserved()
        if word is None and not self.starts("("):
            self._simple()
        elif word == "!" or (word or "").startswith("time"):
            self._check_time(word or "")
            self.at += len(word or "")
        else:
            self._compound(word)
            self._redirections()

    def _check_time(self, word: str) -> None:
        """Raise `NotUnderstood` where `time` is a program: behind a pipe, and in shells without that word."""
        if not word.startswith("time"):
            return
        if self.posix or self._in_pipe:
            raise NotUnderstood("time, which is a program in this place, or is none")
        if _MORE_OPTIONS.match(self.text, self.at + len(word)):
            raise NotUnderstood("time with options that are not plain")

    def _compound(self, word: str | None) -> None:
        readers: dict[str | None, Callable[[], object]] = {
            None: self._subshell,
            "{": lambda: self._list("}"),
            "if": self._if,
            "while": self._loop,
            "until": self._loop,
            "for": self._for,
            "case": self._case,
        }
        if word not in readers:
            raise NotUnderstood(f"{word} in this place")
        if word == "case" and self.enclosed:
            raise NotUnderstood("case within a substitution")
        self.at += len(word or "(")
        self._in_pipe = False
        self._deeper(readers[word])

    def _subshell(self) -> None:
        if self.starts("("):
            raise NotUnderstood("arithmetic, ((")
        self._list(")")

    def _if(self) -> None:
        self._list("then")
        while (closer := self._list("elif", "else", "fi")) != "fi":
            if closer == "elif":
                self._list("then")

    def _loop(self) -> None:
        self._list("do")
        self._list("done")

    def _for(self) -> None:
        self.blanks()
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise NotUnderstood("a loop over something else than a name")
        self.at = name.end()
        check_variable(name[0], None)
        words = self._for_words()
        if not _HARMLESS_NAME.fullmatch(name[0]):
            self.found.append(spell([Word.sign("for"), Word.text(name[0]), *words]))
        if self._list("do", "{") == "do":
            self._list("done")
        else:
            self._list("}")

    def _for_words(self) -> list[Word]:
        self._lines()
        found = _IN.match(self.text, self.at)
        if found is None:
            return []
        self.at = found.end()
        words = [Word.sign("in")]
        self.blanks()
        while self.at_word():
            words.append(self.word().as_argument())
            self.blanks()
        return words

    def _lines(self) -> None:
        """Skip blanks and ends of lines."""
        self.blanks()
        while self.starts("\n"):
            self.end_line()
            self.blanks()

    def _case(self) -> None:
        self.blanks()
        self.word()
        self._lines()
        if _IN.match(self.text, self.at) is None:
            raise NotUnderstood("case without in")
        self.at += len("in")
        while True:
            self._lines()
            if self._closer(("esac",)) is not None:
                return
            self._patterns()
            if self._list(*_CASE_ENDS) == "esac":
                return

    def _patterns(self) -> None:
        """Read `a|b)`."""
        if self.starts("("):
            self.at += 1
        while True:
            self.blanks()
            self.word()
            self.blanks()
            if self.starts(")"):
                self.at += 1
                return
            if not self.starts("|"):
                raise NotUnderstood("a pattern in case without )")
            self.at += 1

    def _redirections(self) -> None:
        """Read what is redirected for a whole construct."""
        self.blanks()
        while self.at_redirection():
            redirection = self.redirection()
            if redirection.file is not None:
                self.found.append(redirection.file)
            if redirection.given is not None:
                self.found.append(_given(redirection.given))
            self.blanks()

    def _simple(self) -> None:
        start, words, assignments, given = self.at, list[Word](), list[Word](), list[Word]()
        announced = len(self.announced)
        while True:
            self.blanks()
            if self.at_redirection():
                redirection = self.redirection()
                self.found += [] if redirection.file is None else [redirection.file]
                given += [] if redirection.given is None else [redirection.given]
            elif self.at_word():
                if not words:
                    self._check_name()
                word = self._argument()
                if word.assigns and not words:
                    assignments.append(word)
                else:
                    words.append(word.as_argument())
            else:
                break
        if self.starts("("):
            raise NotUnderstood("a function, or a list of values")
        if self.at == start:
            raise NotUnderstood(f"{self.text[self.at]!r} in this place")
        if words or assignments:
            own = [document._replace(owner=len(self.found)) for document in self.announced[announced:]]
            self.announced[announced:] = own
            self.found.append(Command(tuple(words), tuple(assignments), tuple(given)))

    def _check_name(self) -> None:
        """Raise `NotUnderstood` for a name that is a word of the shell in another place.

        Bash writes the commands of a substitution anew before it runs them, redirections last: so
        `$(< file ! a)` becomes `! a < file`, and runs `a`.
        """
        word = self._reserved()
        if word is not None:
            raise NotUnderstood(f"{word} in this place")

    def _argument(self) -> Word:
        start = self.at
        word = self.word()
        if self.at_redirection() and _NAMED_DESCRIPTOR.fullmatch(self.text, start, self.at):
            raise NotUnderstood("a descriptor with a name")
        return word


def _given(text: Word) -> Spelling:
    return spell([Word.sign("<<<"), text])


def _expand(reader: LineReader) -> None:
    while (dollar := reader.text.find("$", reader.at)) >= 0:
        reader.at = dollar
        reader.dollar_in_quotes()

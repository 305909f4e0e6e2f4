"""Reading redirections, and the here documents that some of them announce.

A file that is written or read is something to be allowed by itself, as `> file`, whatever command it is
for. Where a here document ends decides what is a command, so only delimiters that are plain are taken. Within
a substitution none is: there bash ends a here document also at a line that begins with the delimiter and has
the closing parenthesis in it, and what is behind that runs.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from shell_tool.syntax.word_reader import WordReader
from shell_tool.syntax.words import NotUnderstood, Spelling, Word, quote, spell

_OPERATOR = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|(&>>|&>)")
_DELIMITER = re.compile(r"(?:(['\"])([\w.-]+)\1|(\\?)([\w.-]+))(?=[ \t\n;&|()<>]|\Z)", re.ASCII)
_COPY = re.compile(r"(?:([0-9]+)-?|-)(?=[ \t\n;&|()<>]|\Z)")
# What is longer is a word for one shell and a number for another.
_MOST_DIGITS = {True: 1, False: 3}
_OF_BASH = frozenset(("<<<", "&>", "&>>"))
_WRITES = {">": ">", ">|": ">", "&>": ">", ">>": ">>", "&>>": ">>", "<": "<", "<>": "<>"}
# Rules against one of them are meant for the other as well.
_ALSO = {">> ": ("> ",), "<> ": ("> ", "< ")}
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr")


def also_done(spelling: Spelling) -> list[Spelling]:
    """Return what else is done to a file: what is appended to it is written, for instance."""
    begins = next((sign for sign in _ALSO if spelling.shown.startswith(sign)), None)
    return [] if begins is None else [spelling.beginning(begins, other) for other in _ALSO[begins]]


class Redirection(NamedTuple):
    """What a redirection is about: a file as rules see it, or a text that is given."""

    file: Spelling | None = None
    given: Word | None = None


class Document(NamedTuple):
    """A here document that begins after the end of the line, and the number of the command it is for."""

    delimiter: str
    quoted: bool
    indented: bool
    owner: int | None = None


class RedirectionReader(WordReader):
    """Reads words and redirections."""

    def __init__(self, text: str, *, posix: bool) -> None:
        super().__init__(text, posix=posix)
        self.announced: list[Document] = []

    def at_redirection(self) -> bool:
        """Say whether a redirection begins here."""
        return _OPERATOR.match(self.text, self.at) is not None

    def redirection(self) -> Redirection:
        """Read a redirection; the text of a here document comes later, with `end_line`."""
        found = _OPERATOR.match(self.text, self.at)
        assert found is not None  # the caller looked
        number, operator = found[1] or "", found[2] or found[3]
        if len(number) > _MOST_DIGITS[self.posix] or (self.posix and operator in _OF_BASH):
            raise NotUnderstood(f"{found[0]}, which not every shell reads alike")
        self.at = found.end()
        self.blanks()
        if operator in ("<<", "<<-"):
            return self._announce(indented=operator == "<<-")
        if operator == "<<<":
            word = self.word().as_argument()
            return Redirection(given=word if word.literal is not None else Word.unknown(quote(word.shown)))
        return self._file(operator)

    def blanks(self) -> None:
        """Skip blanks, continued lines, and a comment."""
        raise NotImplementedError

    def end_line(self) -> None:
        """Go over the end of a line, and over the here documents that it announced."""
        self.at += 1
        announced, self.announced = self.announced, []
        for document in announced:
            self.give(document.owner, self._document(document))

    def give(self, owner: int | None, text: Word) -> None:
        """Note the text of a here document."""
        raise NotImplementedError

    def expand(self, text: str) -> None:
        """Read the expansions in a here document."""
        raise NotImplementedError

    def _file(self, operator: str) -> Redirection:
        if operator in (">&", "<&"):
            return self._copy(operator)
        target = self.word().as_argument()
        if target.literal in _NOWHERE:
            return Redirection()
        if target.shape is not None:  # nothing, or several words, would be a mistake here
            target = replace(target, shape=target.shape._replace(vanishes=False))
        return Redirection(spell([Word.sign(_WRITES[operator]), target]))

    def _copy(self, operator: str) -> Redirection:
        """Read the number of a descriptor; bash expands anything else twice, also in single quotes."""
        found = _COPY.match(self.text, self.at)
        if found is None or len(found[1] or "") > _MOST_DIGITS[self.posix]:
            raise NotUnderstood(f"{operator} with something else than a number")
        self.at = found.end()
        return Redirection()

    def _announce(self, *, indented: bool) -> Redirection:
        if self.enclosed:
            raise NotUnderstood("a here document within a substitution")
        found = _DELIMITER.match(self.text, self.at)
        if found is None:
            raise NotUnderstood("a here document with an unusual delimiter")
        self.at = found.end()
        _, quoted, escape, plain = found.groups()
        self.announced.append(Document(quoted or plain, quoted=bool(quoted or escape), indented=indented))
        return Redirection()

    def _document(self, document: Document) -> Word:
        lines: list[str] = []
        while not self.ended:
            end = self.text.find("\n", self.at)
            line = self.text[self.at :] if end < 0 else self.text[self.at : end]
            self.at = len(self.text) if end < 0 else end + 1
            if (line.lstrip("\t") if document.indented else line) == document.delimiter:
                return self._body("".join(f"{line}\n" for line in lines), quoted=document.quoted)
            lines.append(line)
        raise NotUnderstood("a here document without an end")

    def _body(self, text: str, *, quoted: bool) -> Word:
        if quoted or not ("$" in text or "\\" in text or "`" in text):
            return Word.text(text)
        if "\\" in text or "`" in text:
            raise NotUnderstood("an escape or a backtick in a here document")
        self.expand(text)
        return Word.unknown(quote(text))

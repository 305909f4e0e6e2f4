"""What a command line is about, for rules that allow, ask and deny."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from shell_tool.syntax.builtins import check_assignments, check_builtin
from shell_tool.syntax.git import other_spellings
from shell_tool.syntax.line_reader import MAX_DEPTH, LineReader
from shell_tool.syntax.redirections import also_done
from shell_tool.syntax.word_reader import check_characters
from shell_tool.syntax.words import Command, NotUnderstood, Spelling, escape
from shell_tool.syntax.wrappers import Text, run_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MAX_LENGTH = 20_000
"""How many characters a line may have to be read at all, so that reading takes a moment and no longer."""

_MOST_PIECES = 200
_CUTS = re.compile(r"[;&|\n(){}`<>]+")
_QUOTES = re.compile(r"[\\'\"]")
_LEADING = re.compile(r"^(?:(?:if|then|elif|else|while|until|do|time|!) |\$ ?)+")


@dataclass(frozen=True, slots=True)
class Line:
    """A command line.

    Attributes:
        text: The line.
        commands: The simple commands in it, as far as they were found.
        subjects: What must be allowed, all of it: each command, and each file that is written or read. For a
            line that is not understood this is the line itself, which may be about anything.
        watched: What else asking and denying rules are compared with.
        problem: Why it is not understood; empty if it is.
    """

    text: str
    commands: tuple[Command, ...]
    subjects: tuple[Spelling, ...]
    watched: tuple[Spelling, ...]
    problem: str = ""

    def name(self, subject: Spelling) -> str:
        """Return the text of a rule that is about a subject and nothing else.

        What is only known when it runs is the same thing in the same line alone: `rm "$f"` may remove any
        file, and which ones the rest of the line says.
        """
        return subject.shown if subject.is_known or self.problem else f"«{self.text}»"


@lru_cache(maxsize=32)  # one call is looked at several times in a row
def read_line(text: str) -> Line:
    """Read a line; it need not be one that bash takes."""
    found = _Findings()
    try:
        if len(text) > MAX_LENGTH:
            raise NotUnderstood(f"more than {MAX_LENGTH} characters")  # noqa: TRY301 - one way out for all
        check_characters(text)
        found.read(Text(text, posix=False), 0)
    except NotUnderstood as problem:
        found.problem = str(problem)
    return found.line(text)


class _Findings:
    """What was found in a line so far."""

    def __init__(self) -> None:
        self.problem = ""
        self._subjects: list[Spelling] = []
        self._commands: list[Command] = []

    def read(self, text: Text, depth: int) -> None:
        """Read a text, and all texts and commands within; note the first problem, and go on behind it."""
        reader = LineReader(text.text, posix=text.posix, depth=depth)
        try:
            reader.read()
        except NotUnderstood as problem:
            self.problem = self.problem or str(problem)
        for found in reader.found:
            if isinstance(found, Command):
                self._take(found, depth, posix=text.posix)
            else:
                self._subjects.append(found)

    def line(self, text: str) -> Line:
        """Return what *text* is about."""
        subjects, commands = self._subjects, tuple(self._commands)
        watched = [other for command in commands for other in (*command.bare(), *other_spellings(command))]
        watched += [subject for subject in subjects if self.problem or not subject.is_known]
        watched += [other for subject in subjects for other in also_done(subject)]
        watched = [one for one in watched if not one.is_open]  # then the line is not understood
        if self.problem:
            watched += map(Spelling, _pieces(text[:MAX_LENGTH]))
            subjects = [Spelling(f"«{text}» is not understood", ("*",), ("*",))]
        return Line(text, commands, _unique(subjects), _unique(watched), self.problem)

    def _take(self, command: Command, depth: int, *, posix: bool) -> None:
        self._subjects.append(command.spelling)
        self._commands.append(command)
        try:
            for inner in _within(command, depth, posix=posix):
                if isinstance(inner, Command):
                    self._take(inner, depth + 1, posix=posix)
                else:
                    self.read(inner, depth + 1)
        except NotUnderstood as problem:
            self.problem = self.problem or str(problem)


def _within(command: Command, depth: int, *, posix: bool) -> list[Command | Text]:
    """Return what a command runs of its own words."""
    check_assignments(command.assignments, for_command=bool(command.words))
    if not command.words:
        return []
    name = command.words[0].literal
    if not name:
        raise NotUnderstood("the name of a command is only known when it runs")
    if depth > MAX_DEPTH:
        raise NotUnderstood(f"commands within commands, more than {MAX_DEPTH} deep")
    check_builtin(name, command.words[1:])
    return run_by(command, posix=posix)


def _pieces(text: str) -> Iterator[str]:
    """Cut a text that is not understood, roughly, into what may be commands."""
    text = text.replace("\\\n", "")
    for bare in (_QUOTES.sub("", text), _QUOTES.sub(";", text)):  # a quoted text may be a word, or a line
        for piece in _CUTS.split(bare, _MOST_PIECES):
            words = _LEADING.sub("", " ".join(piece.split()))
            if words:
                yield words


def _unique(spellings: Iterable[Spelling]) -> tuple[Spelling, ...]:
    return tuple(dict.fromkeys(spellings))


# No option of these runs a program of one's choice or writes a file, and nothing that they find in a
# workspace makes them do so. That leaves out many that seem only to read: `rg --pre`, `sort -o`, `tree -o`,
# `uniq a b`. Git is left out as a whole: settings of a repository name programs (core.fsmonitor, filters,
# hooks, editors, helpers of remotes), hardly a subcommand is without one, and any folder can be made to look
# like a repository.
FAMILIES = frozenset(
    "basename cat cmp cut df diff dirname du echo grep head jq ls pwd realpath stat tail tr wc which".split()  # noqa: SIM905
)


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
    if command.assignments or not command.spelling.is_known:
        return
    name, *arguments = [word.literal or "" for word in command.words]
    if name in FAMILIES and (arguments or command.given):
        yield f"{name} *"

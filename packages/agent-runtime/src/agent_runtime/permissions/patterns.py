r"""What a rule is about: a tool, and perhaps some of its arguments.

======================  ===========================================================================
`read_*`                the tools of that name, whatever their arguments
`shell(git status*)`    … when what the call is about fits (see `subjects`)
`edit(path=src/*)`      … when each argument that is named fits; `a.b` is argument `b` inside `a`
======================  ===========================================================================

Every part is a glob. The parentheses hold named arguments if they begin with a name and `=`; then spaces
around names and globs count for nothing. A backslash takes the next character as it is, so `\)` does not
close, `\,` does not separate and `FOO\=1` names no argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent_core.encoding import canonical
from agent_runtime.errors import SpecError
from agent_runtime.patterns import Glob, escape

Specificity = tuple[bool, int, bool, int, int, bool]
_ARGUMENT_NAME = re.compile(r"\s*(\w[\w-]*(?:\.[\w-]+)*)\s*=\s*")
# Each of these takes characters, those behind a backslash in pairs, and stops where its name says.
_WHOLE = re.compile(r"(?:\\.|[^\\])*", re.DOTALL)
_BEFORE_PARENTHESIS = re.compile(r"(?:\\.|[^\\()])*", re.DOTALL)
_BEFORE_CLOSING = re.compile(r"(?:\\.|[^\\)])*", re.DOTALL)
_BEFORE_COMMA = re.compile(r"(?:\\.|[^\\,])*", re.DOTALL)
_PAIR_OR_CLOSING = re.compile(r"\\.|\)", re.DOTALL)
_BEFORE_PADDING = re.compile(r"(?:\\.|[^\\])*?(?=\s*\Z)", re.DOTALL)
_NOTHING = object()


def _no(_glob: Glob) -> bool:
    return False


class ArgumentPattern(NamedTuple):
    """An argument by its path, and what it must fit."""

    path: tuple[str, ...]
    glob: Glob


@dataclass(frozen=True, slots=True)
class CallPattern:
    """A pattern for calls, read once.

    Attributes:
        text: The pattern as it was written.
        name: What the tool's name must fit.
        subject: What the call must be about, if the pattern says so.
        arguments: What single arguments must fit.
    """

    text: str
    name: Glob
    subject: Glob | None = None
    arguments: tuple[ArgumentPattern, ...] = ()

    @classmethod
    def parse(cls, text: str, *, where: str = "pattern") -> CallPattern:
        """Read a pattern; *where* says in errors where it was written.

        Raises:
            SpecError: If it cannot be read; the message gives the character.
        """
        return _Reading(text, where).pattern()

    @classmethod
    def exact(cls, name: str, subject: str | None = None) -> CallPattern:
        """Return a pattern for one tool, and for one subject if given; neither may be empty."""
        return cls.parse(_quoted_name(name)) if subject is None else cls.about(name, escape(subject))

    @classmethod
    def about(cls, name: str, glob: str) -> CallPattern:
        """Return a pattern for the calls of one tool that are about what fits a glob.

        Raises:
            SpecError: If the glob cannot be read.
        """
        return cls.parse(f"{_quoted_name(name)}({_in_parentheses(glob)})")

    @classmethod
    def with_argument(cls, name: str, argument: str, value: str) -> CallPattern:
        """Return a pattern for the calls of one tool in which an argument is this very text.

        Raises:
            SpecError: If that cannot be written as a pattern.
        """
        quoted = "".join(f"\\{one}" if one in ",)" else one for one in escape(value))
        return cls.parse(f"{_quoted_name(name)}({argument}={quoted})")

    @property
    def specificity(self) -> Specificity:
        """How much the pattern says; of two that match, the greater is the more specific.

        An argument part says more than none; then what the arguments spell out counts, and whether that
        is all; then how many are named; then the same of the tool's name.
        """
        globs = [argument.glob for argument in self.arguments] if self.subject is None else [self.subject]
        return (
            bool(globs),
            sum(glob.literal_length for glob in globs),
            all(glob.is_literal for glob in globs),
            len(globs),
            self.name.literal_length,
            self.name.is_literal,
        )

    def fits(self, name: str, arguments: Any, *, every: bool, or_else: Callable[[Glob], bool] = _no) -> bool:
        """Say whether a tool and the named arguments fit; the subject is another question.

        Args:
            every: Of an argument that is a list, whether every item must fit, or any.
            or_else: Asked about a text that does not fit as it is written.
        """
        if not self.name.matches(name):
            return False
        enough = _all_of if every else any
        return not self.arguments or all(
            enough(_fits(value, glob, or_else) for value in _values(arguments, path))
            for path, glob in self.arguments
        )


def _fits(value: object, glob: Glob, or_else: Callable[[Glob], bool]) -> bool:
    if value is _NOTHING:
        return False
    if isinstance(value, str):
        return glob.matches(value) or or_else(glob)
    return glob.matches(canonical(value).decode())


def _all_of(answers: Iterator[bool]) -> bool:
    """Say whether all are true, and there are some."""
    return next(answers, False) and all(answers)


def _values(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield all that stands at *path*, `_NOTHING` wherever there is nothing.

    A key may have dots itself. Whoever reads `a.b` may mean either, so both count.
    """
    if isinstance(value, (list, tuple)) and (value or path):
        for item in value:
            yield from _values(item, path)
    elif not path:
        yield value
    else:
        found = [size for size in range(1, len(path) + 1) if _has(value, ".".join(path[:size]))]
        for size in found:
            yield from _values(value[".".join(path[:size])], path[size:])
        if not found:
            yield _NOTHING


def _has(value: object, key: str) -> bool:
    return isinstance(value, Mapping) and key in value


def _quoted_name(name: str) -> str:
    return re.sub(r"[()]", r"\\\g<0>", escape(name))


def _in_parentheses(glob: str) -> str:
    """Return the argument part that means what a glob means by itself."""
    quoted = _PAIR_OR_CLOSING.sub(lambda found: "\\)" if found[0] == ")" else found[0], glob)
    return quoted.replace("=", "\\=", 1) if _ARGUMENT_NAME.match(quoted) else quoted


class _Reading(NamedTuple):
    """A pattern that is being read."""

    text: str
    where: str

    def pattern(self) -> CallPattern:
        self._check()
        opening = self._until(_BEFORE_PARENTHESIS, 0)
        name = self._glob(0, opening, "the name of a tool is missing")
        if opening == len(self.text):
            return CallPattern(self.text, name)
        start, end = opening + 1, self._closing(opening)
        if _ARGUMENT_NAME.match(self.text, start, end):
            return CallPattern(self.text, name, arguments=self._arguments(start, end))
        subject = self._glob(start, end, "the parentheses are empty; leave them out to mean any arguments")
        return CallPattern(self.text, name, subject)

    def _check(self) -> None:
        if not isinstance(self.text, str):
            raise SpecError(f"{self.where} must be a text, not {type(self.text).__name__}", field=self.where)
        if not _WHOLE.fullmatch(self.text):
            raise self._error(len(self.text) - 1, "a backslash needs a character after it; double it")

    def _closing(self, opening: int) -> int:
        """Return where the parenthesis closes, which must be at the end."""
        if self.text[opening] == ")":
            raise self._error(opening, "nothing is open that could be closed; write \\) for a parenthesis")
        closing = self._until(_BEFORE_CLOSING, opening + 1)
        if closing == len(self.text):
            raise self._error(opening, "this parenthesis is never closed; end the pattern with )")
        if closing + 1 < len(self.text):
            raise self._error(
                closing + 1, "the pattern continues after ); write \\) for one that closes nothing"
            )
        return closing

    def _arguments(self, start: int, end: int) -> tuple[ArgumentPattern, ...]:
        read: dict[tuple[str, ...], ArgumentPattern] = {}
        while start <= end:
            comma = self._until(_BEFORE_COMMA, start, end)
            argument = self._argument(start, comma)
            if argument.path in read:
                raise self._error(start, f"argument {'.'.join(argument.path)!r} is named twice")
            read[argument.path] = argument
            start = comma + 1
        return tuple(read.values())

    def _argument(self, start: int, end: int) -> ArgumentPattern:
        named = _ARGUMENT_NAME.match(self.text, start, end)
        if named is None:
            raise self._error(start, "an argument is written name=pattern; write \\, for a comma")
        glob_end = self._until(_BEFORE_PADDING, named.end(), end)
        glob = self._glob(named.end(), glob_end, f"argument {named[1]!r} has no pattern; write * for any")
        return ArgumentPattern(tuple(named[1].split(".")), glob)

    def _glob(self, start: int, end: int, problem: str) -> Glob:
        if start == end:
            raise self._error(start, problem)
        return Glob.parse(self.text[start:end])

    def _until(self, expression: re.Pattern[str], start: int, end: int | None = None) -> int:
        found = expression.match(self.text, start, len(self.text) if end is None else end)
        assert found is not None  # every one of the expressions fits the empty text as well
        return found.end()

    def _error(self, place: int, problem: str) -> SpecError:
        return SpecError(f"{self.where} {self.text!r}, character {place + 1}: {problem}", field=self.where)

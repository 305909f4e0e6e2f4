"""A simple command: assignments, words, and what it is given to read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shell_tool.parsing.spelling import Spelling, spell
from shell_tool.parsing.words import Word, assigns


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

"""A simple command: assignments, words, and what it is given to read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shell_tool.parsing.words import Word, assigns, quote


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
    given: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The command as rules see it."""
        names = [_as_name(word) for word in self.words[:1]]
        arguments = [word.shown for word in self.words[1:]]
        given = [f"<<< {quote(text)}" for text in self.given]
        return " ".join([*(word.shown for word in self.assignments), *names, *arguments, *given])

    def bare(self) -> list[str]:
        """Return the command as rules see it without assignments, and without the folder of its program."""
        if not self.words:
            return []
        name, *arguments = self.words
        _, slash, program = (name.literal or "").rpartition("/")
        plain = Command(self.words, given=self.given)
        inside = Command((Word(program, quote(program)), *arguments), given=self.given)
        return [plain.shown, inside.shown] if slash and program else [plain.shown]

    def with_given(self, text: str) -> Command:
        """Return the command with one text more to read."""
        return replace(self, given=(*self.given, text))


def _as_name(word: Word) -> str:
    """Return a command's name; one that looks like an assignment had quotes, and keeps them."""
    return f"'{word.shown}'" if word.literal == word.shown and assigns(word.shown) else word.shown

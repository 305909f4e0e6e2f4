"""Commands that people write as Markdown files: a prompt under a name, with places for arguments.

A file `review.md` in a folder of commands is the command `/review`; `git/message.md`, in a folder below, is
`/git:message`. A block of `key: value` lines between two lines of `---` may come first: `description` and
`argument-hint` are shown in lists. In the text, `$ARGUMENTS` stands for everything that follows the name, and
`$1` to `$9` for single words; without any of these, what follows is added at the end.

The files of a project come from its authors, so they count only where the person trusts the project.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FOLDERS: Final = (".agent/commands", ".claude/commands")
"""Where a project, or a home folder, has commands; the first one that has a name wins."""
_LARGEST: Final = 200_000
_HEAD: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n?", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"^([A-Za-z-]+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_PLACE: Final = re.compile(r"\$(ARGUMENTS|[1-9])(?!\w)")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomCommand:
    """A command of somebody's own.

    Attributes:
        name: What is typed behind the slash.
        text: The prompt, with places for arguments.
        description: A line about it.
        takes: What may follow the name, for people.
        path: The file.
    """

    name: str
    text: str
    description: str
    takes: str
    path: Path

    def prompt(self, given: str) -> str:
        """Return the prompt with what was typed behind the name in its places."""
        if not _PLACE.search(self.text):
            return f"{self.text.rstrip()}\n\n{given}".rstrip() if given else self.text.strip()
        words = _words(given)

        def fill(place: re.Match[str]) -> str:
            if place[1] == "ARGUMENTS":
                return given
            number = int(place[1])
            return words[number - 1] if number <= len(words) else ""

        return _PLACE.sub(fill, self.text).strip()


def find_commands(folders: Iterable[Path]) -> dict[str, CustomCommand]:
    """Return the commands of some folders by name; a file that cannot be read is none."""
    found: dict[str, CustomCommand] = {}
    for folder in folders:
        for path in _files(folder):
            command = _read(folder, path)
            if command is not None:
                found.setdefault(command.name, command)
    return found


def _files(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.rglob("*.md") if path.is_file())
    except OSError:
        return


def _read(folder: Path, path: Path) -> CustomCommand | None:
    steps = path.relative_to(folder).with_suffix("").parts
    if not all(_NAME.fullmatch(step) for step in steps):
        return None
    try:
        if path.stat().st_size > _LARGEST:
            return None
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    head = _HEAD.match(text)
    fields = dict(_FIELD.findall(head[1])) if head is not None else {}
    body = text if head is None else text[head.end() :]
    if not body.strip():
        return None
    first = next(line.strip("# ").strip() for line in body.splitlines() if line.strip())
    return CustomCommand(
        name=":".join(steps),
        text=body,
        description=_plain(fields.get("description", "")) or first,
        takes=_plain(fields.get("argument-hint", "")),
        path=path,
    )


def _plain(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _words(given: str) -> list[str]:
    try:
        return shlex.split(given)
    except ValueError:  # a quote that is not closed
        return given.split()

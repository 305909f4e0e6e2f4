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
        problem: Why the file is not a command; empty if it is one.
    """

    name: str
    text: str
    description: str
    takes: str
    path: Path
    problem: str = ""

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
    """Return the commands of some folders by name, also those whose file cannot be used."""
    found: dict[str, CustomCommand] = {}
    for folder in folders:
        for path in _files(folder):
            name = command_name(folder, path)
            if all(_NAME.fullmatch(step) for step in name.split(":")):
                found.setdefault(name, _read(name, path))
    return found


def command_name(folder: Path, path: Path) -> str:
    """Return the name of the command in a file, by its place in a folder of commands."""
    return ":".join(path.relative_to(folder).with_suffix("").parts)


def _files(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.rglob("*.md") if path.is_file())
    except OSError:
        return


def _read(name: str, path: Path) -> CustomCommand:
    try:
        if path.stat().st_size > _LARGEST:
            return _unusable(name, path, f"the file is larger than {_LARGEST // 1000} kB")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        return _unusable(name, path, f"the file cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        return _unusable(name, path, "the file is not UTF-8 text")
    head = _HEAD.match(text)
    fields = dict(_FIELD.findall(head[1])) if head is not None else {}
    body = text if head is None else text[head.end() :]
    if not body.strip():
        return _unusable(name, path, "the file has no prompt")
    first = next(line.strip("# ").strip() for line in body.splitlines() if line.strip())
    return CustomCommand(
        name=name,
        text=body,
        description=_plain(fields.get("description", "")) or first,
        takes=_plain(fields.get("argument-hint", "")),
        path=path,
    )


def _unusable(name: str, path: Path, problem: str) -> CustomCommand:
    return CustomCommand(
        name=name, text="", description=f"not usable: {problem}", takes="", path=path, problem=problem
    )


def _plain(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _words(given: str) -> list[str]:
    try:
        return shlex.split(given)
    except ValueError:  # a quote that is not closed
        return given.split()

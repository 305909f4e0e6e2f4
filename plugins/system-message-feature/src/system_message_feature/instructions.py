"""The instruction files of a project: in the folder one works in, and in those above it, nearest first.

The walk ends at the top of the repository, so that a file in a home folder does not speak for every project
below it. Only plain files are read, and of each only its beginning: they come from whoever wrote the project.
A link is followed only if it ends inside the folder, and a file that is not read is reported.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_plugin_kit.safe_files import NotOpened, Outside, read_file, steps_inside
from agent_plugin_kit.trust import project_top

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LONGEST_NAME = 200
_WRITTEN_FOR_READERS = (".md", ".mdc", ".txt")


@dataclass(frozen=True, slots=True)
class Instructions:
    """What one file says.

    Attributes:
        cut: Whether the file has more than was read.
        size: How many bytes were read.
    """

    path: Path
    text: str
    cut: bool = False
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is there, and was not read."""

    path: Path
    why: str


def find_instructions(
    roots: Sequence[str], names: Sequence[str], most_bytes: int
) -> tuple[Instructions | LeftOut, ...]:
    """Return the files that speak for these folders, nearest first; each file once, and each text.

    Projects often have the same text under two names, as a link, a copy, or a line that names the other file.
    """
    found: dict[Path, Instructions | LeftOut] = {}
    for root in roots:
        for folder in _upwards(Path(root)):
            for name in names:
                path = folder / name
                if path not in found and (read := _read(folder, name, most_bytes, names)) is not None:
                    found[path] = read
    return tuple(_without_copies(found))


def _without_copies(found: Mapping[Path, Instructions | LeftOut]) -> Iterator[Instructions | LeftOut]:
    texts: set[str] = set()
    for path, one in found.items():
        if isinstance(one, LeftOut):
            yield one
            continue
        named = path.parent / one.text.removeprefix("@").removeprefix("./")
        if one.text not in texts and (len(one.text) > _LONGEST_NAME or named not in found or named == path):
            yield one
        texts.add(one.text)


def _upwards(folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the top of its repository; alone if it is in none."""
    top = project_top(folder)
    yield from (one for one in (folder, *folder.parents) if one.is_relative_to(top))


def _read(folder: Path, name: str, most_bytes: int, names: Sequence[str]) -> Instructions | LeftOut | None:
    """Return the beginning of a file; None if there is none, or it says nothing."""
    path = folder / name
    try:
        if not os.path.lexists(path):
            return None
        data = _beginning(folder, name, most_bytes + 1, names)
    except ValueError:  # a null character: no file has such a name
        return None
    except OSError as error:
        return LeftOut(path, f"it cannot be opened: {error.strerror or error}")
    except (NotOpened, Outside) as error:
        return LeftOut(path, str(error))
    text = data[:most_bytes].decode("utf-8-sig", "ignore").replace("\0", "").strip()
    return Instructions(path, text, len(data) > most_bytes, min(len(data), most_bytes)) if text else None


def _beginning(folder: Path, name: str, most_bytes: int, names: Sequence[str]) -> bytes:
    """Return the first bytes of a file in a folder; it may be a link to a file of text inside the folder."""
    try:
        base, steps = steps_inside(folder, name)
    except Outside:
        raise Outside("it is a link that leads out of its folder") from None
    # A project that links its instructions to a file with keys does not get that file read.
    is_text = steps[-1] in names or steps[-1].lower().endswith(_WRITTEN_FOR_READERS)
    if steps != (name,) and not is_text:
        raise Outside("it is a link to a file that is neither Markdown nor text")
    return read_file(base, steps, most_bytes)

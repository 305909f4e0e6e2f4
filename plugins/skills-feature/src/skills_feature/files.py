"""Reading the files of a skill, and nothing beside them.

A path is walked from the skill's folder one name at a time, and no link is followed on the way: so nothing
outside is read, also if somebody exchanges a folder for a link meanwhile.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from stat import S_ISREG
from typing import TYPE_CHECKING

from agent_core import AgentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_MOST_LISTED = 200
_DEEPEST = 4


class SkillFileError(AgentError):
    """A file of a skill cannot be read; the message says why."""


def read_file(folder: Path, name: str, *, limit: int) -> bytes:
    """Return a file of a skill's folder.

    Raises:
        SkillFileError: If there is none, if it lies outside, is no plain file or too large.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name:
        raise SkillFileError(f"{name!r} is no path inside of the skill: name a file that the skill lists")
    try:
        descriptor = _walk(folder, parts)
    except OSError as error:
        raise SkillFileError(f"{name!r} of the skill cannot be opened: {error.strerror}") from None
    try:
        about = os.fstat(descriptor)
        if not S_ISREG(about.st_mode):
            raise SkillFileError(f"{name!r} of the skill is no plain file")
        if about.st_size > limit:
            raise SkillFileError(
                f"{name!r} of the skill is too large: {about.st_size} bytes, {limit} at most"
            )
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def _walk(folder: Path, parts: tuple[str, ...]) -> int:
    """Open what *parts* lead to, without following a link behind the folder itself."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            below = os.open(part, _FLAGS, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def list_files(folder: Path, leave_out: str) -> list[str]:
    """Return the plain files of a skill's folder, sorted; so many at most, and not too deep."""
    found: list[str] = []
    for path in _files(str(folder), _DEEPEST):
        if len(found) == _MOST_LISTED:
            break
        name = os.path.relpath(path, folder)
        if name != leave_out:
            found.append(name)
    return found


def _files(folder: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            here = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in here:
        if entry.name.startswith("."):
            continue
        if entry.is_file(follow_symlinks=False):
            yield entry.path
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, depth - 1)

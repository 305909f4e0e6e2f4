"""Reading the files of a skill, and nothing beside them.

A path is walked from the skill's folder one name at a time, and no link is followed on the way: so nothing
outside is read, also if somebody exchanges a folder for a link meanwhile. The folder of a skill that comes
with a project may be reached by a link, but only by one that stays inside of the project: where it ends is
found out first, and then walked to from the project in the same manner.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import PurePosixPath
from stat import S_ISREG
from typing import TYPE_CHECKING

from skills_feature.errors import SkillFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LISTED = 200
_DEEPEST = 4


def read_file(folder: Path, name: str, *, limit: int, within: Path | None = None) -> bytes:
    """Return a file of a skill's folder.

    Raises:
        SkillFileError: If there is none, if it lies outside, is no plain file or too large.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name:
        raise SkillFileError(f"{name!r} is no path inside of the skill: name a file that the skill lists")
    try:
        descriptor = _open(folder, within, parts)
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


def list_files(folder: Path, leave_out: str, within: Path | None = None) -> list[str]:
    """Return the plain files of a skill's folder, sorted; so many at most, and not too deep."""
    try:
        here = _open_folder(folder, within)
    except (OSError, SkillFileError):
        return []
    try:
        names = (name for name in _files(here, "", _DEEPEST) if name != leave_out)
        return list(islice(names, _MOST_LISTED))
    finally:
        os.close(here)


def _open(folder: Path, within: Path | None, parts: tuple[str, ...]) -> int:
    """Open a file that *parts* lead to; only what is a plain file by now is opened at all."""
    here = _walk(_open_folder(folder, within), parts[:-1])
    try:
        if not S_ISREG(os.stat(parts[-1], dir_fd=here, follow_symlinks=False).st_mode):
            raise SkillFileError(f"{'/'.join(parts)!r} of the skill is no plain file")
        return os.open(parts[-1], _FLAGS, dir_fd=here)
    finally:
        os.close(here)


def _open_folder(folder: Path, within: Path | None) -> int:
    if within is None:
        return os.open(folder, _FOLDER)
    base, real = os.path.realpath(within), os.path.realpath(folder)
    inside = base.rstrip("/") + "/"
    if not real.startswith(inside):
        raise SkillFileError(f"{folder} leads out of the project {within}: it is not followed")
    return _walk(os.open(base, _FOLDER | os.O_NOFOLLOW), tuple(real.removeprefix(inside).split("/")))


def _walk(here: int, parts: tuple[str, ...]) -> int:
    """Open the folder that *parts* lead to, without following a link; what was open is closed."""
    for part in parts:
        try:
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def _files(folder: int, prefix: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            here = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in here:
        if entry.name.startswith("."):
            continue
        if entry.is_file(follow_symlinks=False):
            yield prefix + entry.name
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _files_below(folder, entry.name, prefix, depth - 1)


def _files_below(folder: int, name: str, prefix: str, depth: int) -> Iterator[str]:
    try:
        below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return
    try:
        yield from _files(below, f"{prefix}{name}/", depth)
    finally:
        os.close(below)

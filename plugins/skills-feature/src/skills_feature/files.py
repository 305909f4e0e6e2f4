"""The files of a skill, and nothing outside its folder.

No link is followed on the way (`agent_plugin_kit.safe_files`). The folder of a skill that comes with a
project may itself be reached by a link, but only by one that stays inside the project: where it ends is
found out first, and then walked to from the project in the same manner.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from agent_core import AgentError
from agent_plugin_kit.safe_files import FOLDER, NotOpened, Outside, open_file, open_folder, steps_inside, walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class SkillError(AgentError):
    """A folder is no skill; the message says why, and what a skill needs."""


class SkillFileError(AgentError):
    """A file of a skill cannot be read; the message says why."""


_MOST_LISTED = 200
_DEEPEST = 4


def read_file(folder: Path, name: str, *, limit: int, within: Path | None = None) -> bytes:
    """Return a file of a skill's folder.

    Raises:
        SkillFileError: If there is none, if it is outside, is not a regular file or is too large.
    """
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name:
        raise SkillFileError(f"{name!r} is not a path inside the skill: name a file that the skill lists")
    try:
        here = walk(_open_folder(folder, within), parts[:-1])
        try:
            descriptor = open_file(here, parts[-1])
        finally:
            os.close(here)
    except NotOpened as error:
        raise SkillFileError(f"{name!r} of the skill is not read: {error}") from None
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise SkillFileError(f"{name!r} of the skill is too large: {size} bytes, {limit} at most")
        return file.read(limit)


def list_files(folder: Path, leave_out: str, within: Path | None = None) -> list[str]:
    """Return the plain files of a skill's folder, sorted; so many at most, and not too deep."""
    try:
        here = _open_folder(folder, within)
    except (NotOpened, SkillFileError):
        return []
    try:
        names = (name for name in _files(here, "", _DEEPEST) if name != leave_out)
        return list(islice(names, _MOST_LISTED))
    finally:
        os.close(here)


def _open_folder(folder: Path, within: Path | None) -> int:
    if within is None:
        return open_folder(os.path.realpath(folder))
    try:
        base, steps = steps_inside(within, folder)
    except Outside:
        raise SkillFileError(f"{folder} leads out of the project {within}: it is not followed") from None
    return open_folder(base, steps)


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
        below = os.open(name, FOLDER, dir_fd=folder)
    except OSError:
        return
    try:
        yield from _files(below, f"{prefix}{name}/", depth)
    finally:
        os.close(below)

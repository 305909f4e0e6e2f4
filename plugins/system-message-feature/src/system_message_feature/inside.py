"""Reading a plain file that lies inside of a folder, and nothing else.

The name may be a link, as long as it ends inside. Where it ends is found out first, and then walked to from
the folder one step at a time without following any link: whoever puts a link in between meanwhile gets a
refusal, and never another file.
"""

from __future__ import annotations

import os
from stat import S_ISREG
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITTEN_FOR_READERS = (".md", ".mdc", ".txt")


class NotRead(Exception):  # noqa: N818 - it is told, and nothing fails
    """Something of that name is there, and is not read; the text says why."""


def read_beginning(folder: Path, name: str, most_bytes: int, linked: Collection[str] = ()) -> bytes | None:
    """Return the beginning of a file in a folder; None if there is nothing of that name.

    Args:
        most_bytes: How much of it.
        linked: Names to which a link may lead, beside those of Markdown and text files: a project that
            links its instructions to a file with keys does not get it read.

    Raises:
        NotRead: If it is no plain file, or a link that leads out of the folder or to another kind of file.
    """
    try:
        if not os.path.lexists(folder / name):
            return None
        base = os.path.realpath(folder)
        descriptor = _open(base, _way(base, name, linked))
    except ValueError:  # a null character: no file has such a name
        return None
    except OSError as error:
        raise NotRead(f"it cannot be opened: {error.strerror or error}") from None
    try:
        return os.read(descriptor, most_bytes)
    finally:
        os.close(descriptor)


def _way(base: str, name: str, linked: Collection[str]) -> list[str]:
    """Return the steps from a folder to where a name in it ends."""
    real = os.path.realpath(os.path.join(base, name))  # noqa: PTH118 - texts, as `realpath` gives them
    inside = base.rstrip("/") + "/"
    if not real.startswith(inside):
        raise NotRead("it is a link that leads out of its folder")
    way = real.removeprefix(inside).split("/")
    if way != [name] and way[-1] not in linked and not way[-1].lower().endswith(_WRITTEN_FOR_READERS):
        raise NotRead("it is a link to a file that is neither Markdown nor text")
    return way


def _open(base: str, way: list[str]) -> int:
    """Open a plain file, step by step from the folder down."""
    here = os.open(base, _FOLDER)
    try:
        for part in way[:-1]:
            here = _exchanged(here, os.open(part, _FOLDER, dir_fd=here))
        _check(os.stat(way[-1], dir_fd=here, follow_symlinks=False))  # a device is not even opened
        descriptor = os.open(way[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)
    try:
        _check(os.fstat(descriptor))  # again: it may be another one by now
    except NotRead:
        os.close(descriptor)
        raise
    return descriptor


def _exchanged(old: int, new: int) -> int:
    os.close(old)
    return new


def _check(about: os.stat_result) -> None:
    if not S_ISREG(about.st_mode):
        raise NotRead("it is no plain file")

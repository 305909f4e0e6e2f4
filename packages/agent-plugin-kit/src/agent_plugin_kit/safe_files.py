"""Opening files below a folder, and nothing outside it, whatever other programs do in the meantime.

A check of a path is worth nothing by the time the path is used: another program may have put a link in
between. So no path is handed to the system. Each step of a name is opened by itself, relative to the folder
that is already open, and a step that turns out to be a link is refused. Wherever a link leads, nobody follows
it. Where a link is acceptable as long as it stays inside, `steps_inside` finds out first where it ends, and
the caller then walks there in the same manner.

Only regular files are opened. The open does not wait, so a FIFO without a writer blocks nobody, and a device
is not even opened.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotOpened(Exception):
    """A step of a way could not be opened.

    Attributes:
        depth: Which one: 0 is the folder that the way starts in.
        error: What the system said; None if the step is not a regular file.
        is_link: Whether the step is a symbolic link.
        mode: What the step is, as `stat` gives it, if that was found out.
    """

    def __init__(
        self, depth: int, error: OSError | None = None, *, is_link: bool = False, mode: int | None = None
    ) -> None:
        self.depth, self.error, self.is_link, self.mode = depth, error, is_link, mode
        super().__init__(self._reason())

    def _reason(self) -> str:
        if self.is_link:
            return "it is a link, and links are not followed"
        if self.error is None:
            return "it is not a regular file"
        return f"it cannot be opened: {self.error.strerror or self.error}"


class Outside(Exception):
    """A name leads out of the folder that it is given in."""


def open_folder(
    base: str | Path, steps: Sequence[str] = (), *, check: Callable[[int, int], None] | None = None
) -> int:
    """Open a folder step by step and return its descriptor, which the caller closes.

    Args:
        base: The folder to start in; its own path may have links, except at its end.
        steps: The names to go down by, one folder each.
        check: Called with the depth and the descriptor of each folder on the way, *base* included. What it
            raises is passed on, and the descriptor is closed.

    Raises:
        NotOpened: If a step is missing, is not a folder, is a link, or is closed to us.
    """
    try:
        fd = os.open(base, FOLDER)
    except OSError as error:
        raise NotOpened(0, error) from error
    return walk(fd, steps, check=check)


def walk(
    fd: int,
    steps: Sequence[str],
    *,
    check: Callable[[int, int], None] | None = None,
    open_step: Callable[[str, int], int] | None = None,
) -> int:
    """Go down from an open folder, which is closed, and return the descriptor of the last one.

    Args:
        fd: The folder.
        steps: The names to go down by.
        check: As for `open_folder`.
        open_step: Opens a name in a folder without following links, where plain opening is not enough.
    """
    for depth in range(len(steps) + 1):
        if depth:
            name = steps[depth - 1]
            try:
                child = os.open(name, FOLDER, dir_fd=fd) if open_step is None else open_step(name, fd)
            except OSError as error:
                raise NotOpened(depth, error, is_link=is_link(name, fd)) from error
            finally:
                os.close(fd)
            fd = child
        if check is not None:
            try:
                check(depth, fd)
            except BaseException:
                os.close(fd)
                raise
    return fd


def open_file(
    folder: int, name: str, *, check: Callable[[os.stat_result], None] | None = None, depth: int = 1
) -> int:
    """Open a regular file of an open folder for reading and return its descriptor, which the caller closes.

    Args:
        folder: The folder's descriptor.
        name: The file's name in it.
        check: Called with the state of the file before it is opened, and again afterwards: by then it may be
            another one. What it raises is passed on.
        depth: What `NotOpened` says of the place.

    Raises:
        NotOpened: If it is missing, is not a regular file, or is closed to us.
    """
    try:
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), check, depth)
        fd = os.open(name, FILE, dir_fd=folder)
    except OSError as error:
        raise NotOpened(depth, error, is_link=is_link(name, folder)) from error
    try:
        _check_regular(os.fstat(fd), check, depth)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_file(base: str | Path, steps: Sequence[str], limit: int) -> bytes:
    """Return the first *limit* bytes of a regular file below a folder.

    Raises:
        NotOpened: If it cannot be opened without following a link.
    """
    folder = open_folder(base, steps[:-1])
    try:
        fd = open_file(folder, steps[-1], depth=len(steps))
    finally:
        os.close(folder)
    with os.fdopen(fd, "rb") as file:
        return file.read(limit)


def steps_inside(base: str | Path, name: str | Path) -> tuple[str, tuple[str, ...]]:
    """Return where a folder really is, and the steps from there to where a name in it ends, links followed.

    Raises:
        Outside: If it ends outside of the folder.
        OSError: If the system cannot tell.
        ValueError: If the name has a null character.
    """
    real_base = os.path.realpath(base)
    real = os.path.realpath(os.path.join(real_base, name))  # noqa: PTH118 - texts, as `realpath` gives them
    inside = real_base.rstrip("/") + "/"
    if not real.startswith(inside):
        raise Outside(f"{name} leads out of {base}")
    return real_base, tuple(real.removeprefix(inside).split("/"))


def is_link(name: str, folder: int) -> bool:
    """Say whether a name in an open folder is a symbolic link; False if it is gone."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def make_private_folder(folder: str | Path) -> None:
    """Make a folder that only we may enter, and those above it that are missing, whatever the umask.

    A folder that is there stays as it is; `why_not_private` says whether to believe what is in it.

    Raises:
        OSError: If it cannot be made.
    """
    path = os.path.abspath(folder)  # noqa: PTH100 - without following links
    missing = []
    while not os.path.isdir(path):  # noqa: PTH112 - the same
        missing.append(path)
        path = os.path.dirname(path)  # noqa: PTH120 - the same
    for one in reversed(missing):
        try:
            os.mkdir(one, 0o700)  # noqa: PTH102 - the same
        except FileExistsError:
            if not os.path.isdir(one):  # noqa: PTH112 - the same
                raise
            continue  # somebody else has made it in the meantime
        os.chmod(one, 0o700)  # noqa: PTH101 - what an unusual umask took away


def why_not_private(path: str | Path) -> str | None:
    """Say why others may have written a file or folder of ours; None if they could not, or it is missing."""
    try:
        state = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(state.st_mode):
        return "is a link"
    if hasattr(os, "geteuid") and state.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (uid {state.st_uid})"
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by others (mode {stat.S_IMODE(state.st_mode):o}); run `chmod go-w` on it"
    return None


def _check_regular(state: os.stat_result, check: Callable[[os.stat_result], None] | None, depth: int) -> None:
    if check is not None:
        check(state)
    if not stat.S_ISREG(state.st_mode):
        raise NotOpened(depth, is_link=stat.S_ISLNK(state.st_mode), mode=state.st_mode)

"""Opening what is in the workspace, and nothing else.

A check of a path is worth nothing by the time the path is used: another program may have put a link in
between. So no path is ever handed to the system. Each step of a name is opened by itself, relative to the
folder that is already open, and a step that turns out to be a link is refused. Wherever a link leads,
nobody follows it.

A link inside of the workspace is refused as well, with the name of what it leads to: permission rules are
about names, and a file shall not have a second one that slips past them.

Only regular files are opened. The open does not wait, so a FIFO without a writer holds nobody up.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from files_tool.errors import Missing, Refused
from files_tool.names import shown
from files_tool.protected import checked, is_protected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from files_tool.places import Place

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def opened_folder(place: Place) -> Iterator[int]:
    """Hold a folder of the workspace open; gives its file descriptor.

    Raises:
        Refused: If it is not there, or is none, or a link is on the way.
    """
    fd = open_folder(place)
    try:
        yield fd
    finally:
        os.close(fd)


def open_folder(place: Place) -> int:
    """Open a folder step by step; the caller closes it."""
    fd = open_root(place)
    for depth, part in enumerate(place.parts, 1):
        try:
            child = os.open(part, FOLDER, dir_fd=fd)
        except OSError as error:
            raise why_not(error, place, depth, fd) from error
        finally:
            os.close(fd)
        fd = checked(place, depth, child)
    try:
        _check_kernel(place, os.fstat(fd))
    except Refused:
        os.close(fd)
        raise
    return fd


@contextmanager
def opened_file(place: Place) -> Iterator[int]:
    """Hold a regular file open for reading; gives its file descriptor.

    Raises:
        Refused: If it is not there, or is no regular file, or a link is on the way.
    """
    with opened_folder(_containing(place)) as folder:
        fd = open_file(place, folder)
    try:
        yield fd
    finally:
        os.close(fd)


def open_file(place: Place, folder: int) -> int:
    """Open a regular file in a folder that is open; the caller closes it."""
    name, depth = place.parts[-1], len(place.parts)
    try:
        check_regular(place, os.stat(name, dir_fd=folder, follow_symlinks=False))
        fd = os.open(name, FILE, dir_fd=folder)
    except OSError as error:
        raise why_not(error, place, depth, folder) from error
    try:
        check_regular(place, os.fstat(fd))  # again: it may be another one by now
    except Refused:
        os.close(fd)
        raise
    return fd


def check_regular(place: Place, state: os.stat_result) -> None:
    """Refuse whatever is no regular file."""
    if stat.S_ISLNK(state.st_mode):
        raise _is_link(place, len(place.parts))
    if not stat.S_ISREG(state.st_mode):
        what = next((what for is_kind, what in _KINDS if is_kind(state.st_mode)), "no regular file")
        advice = (
            "list it with list_files" if stat.S_ISDIR(state.st_mode) else "only regular files can be used"
        )
        raise Refused(f"{place.shown} is {what}: {advice}")
    if place.protected.is_(state):
        raise is_protected(place)
    _check_kernel(place, state)


def why_not(error: OSError, place: Place, depth: int, folder: int) -> Refused:
    """Return why a step of a name cannot be taken, in words for the model."""
    step = place.upto(depth)
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        if _leads_elsewhere(step.parts[-1], folder):
            return _is_link(place, depth)
        return Refused(f"{step.shown} is a file, not a folder: nothing can be in it")
    if error.errno == errno.ENOENT:
        return Missing(f"there is no {step.shown}: list the folder, or find it with find_files")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Refused(f"{step.shown} cannot be opened, permission is denied: do without it")
    if error.errno == errno.ENAMETOOLONG:
        return Refused(f"{shown(step.parts[-1])[:60]}… is too long for the name of a file: shorten it")
    return Refused(f"{step.shown} cannot be used: {error.strerror or error}")


def _containing(place: Place) -> Place:
    if not place.parts:
        raise Refused(f"{place.shown} is a folder: list it with list_files")
    return place.folder


def open_root(place: Place) -> int:
    """Open the root that a place is in; the caller closes it."""
    try:
        fd = os.open(place.root, FOLDER)
    except OSError as error:
        raise Refused(f"the workspace root {shown(place.root)} cannot be opened: {error.strerror}") from error
    return checked(place, 0, fd)


def _leads_elsewhere(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:  # gone again
        return False


def _is_link(place: Place, depth: int) -> Refused:
    """Return the refusal of a link; if it leads to the inside, with the name to use in its place."""
    link = place.upto(depth)
    target = os.path.realpath(place.absolute)
    if target.startswith(place.root.rstrip("/") + "/"):
        real = place.below(os.path.relpath(target, place.root))
        return Refused(f"{link.shown} is a link, and links are not followed: use {real.shown}")
    return Refused(f"{link.shown} is a link that leads out of {shown(place.root)}: it is not followed")


def _check_kernel(place: Place, state: os.stat_result) -> None:
    if is_of_the_kernel(state):
        raise Refused(f"{place.shown} belongs to the system, not to a workspace: it cannot be used")


def is_of_the_kernel(state: os.stat_result) -> bool:
    """Say whether something is no file but a switch of the system, as all is in /proc and /sys."""
    return state.st_dev in _kernel_devices()


@lru_cache(maxsize=1)
def _kernel_devices() -> frozenset[int]:
    """Return the file systems that are the kernel's own."""
    found = {folder.stat().st_dev for folder in (Path("/proc"), Path("/sys")) if folder.is_dir()}
    return frozenset(found - {Path("/").stat().st_dev})

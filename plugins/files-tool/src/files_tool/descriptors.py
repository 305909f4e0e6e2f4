"""Files and folders of the workspace, opened one step at a time, with refusals in words for the model.

`agent_plugin_kit.safe_files` opens them and follows no link. A link inside the workspace is refused as well,
with the name of the file that it leads to: permission rules are about names, and a file must not have a
second name that slips past them. So are files of the kernel, and whatever belongs to the program that runs
the tools.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_plugin_kit import safe_files
from agent_plugin_kit.safe_files import FOLDER, NotOpened, walk
from files_tool.places import Missing, Refused, is_protected, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from files_tool.places import Place

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
    try:
        fd = walk(open_root(place), place.parts, check=partial(_check_step, place))
    except NotOpened as error:
        raise why_not(error, place) from error
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
        Refused: If it is not there, or is not a regular file, or a link is on the way.
    """
    with opened_folder(_containing(place)) as folder:
        fd = open_file(place, folder)
    try:
        yield fd
    finally:
        os.close(fd)


def open_file(place: Place, folder: int) -> int:
    """Open a regular file in a folder that is open; the caller closes it."""
    try:
        return safe_files.open_file(
            folder, place.parts[-1], check=partial(check_regular, place), depth=len(place.parts)
        )
    except NotOpened as error:
        raise why_not(error, place) from error


def check_regular(place: Place, state: os.stat_result) -> None:
    """Refuse whatever is not a regular file."""
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


def why_not(refusal: NotOpened, place: Place) -> Refused:
    """Return why a step of a name cannot be taken, in words for the model."""
    step, error = place.upto(refusal.depth), refusal.error
    if refusal.is_link:
        return _is_link(place, refusal.depth)
    if error is None or error.errno in (errno.ENOTDIR, errno.ELOOP):
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
        return safe_files.open_folder(place.root, check=partial(_check_step, place))
    except NotOpened as error:
        reason = error.error.strerror if error.error else error
        raise Refused(f"the workspace root {shown(place.root)} cannot be opened: {reason}") from error


def missing_folders(place: Place) -> list[str]:
    """Return the folders that are missing on the way to a place, the uppermost first."""
    steps = place.parts[:-1]
    try:
        os.close(walk(open_root(place), steps, check=partial(_check_step, place)))
    except NotOpened as error:
        if error.error is not None and error.error.errno == errno.ENOENT:
            return ["/".join(steps[:end]) for end in range(error.depth, len(steps) + 1)]
        raise why_not(error, place) from error
    return []


def make_folders(place: Place) -> int:
    """Open the folder that a place is in, with those on the way that are missing; the caller closes it."""
    try:
        return walk(
            open_root(place), place.parts[:-1], check=partial(_check_step, place), open_step=_open_or_make
        )
    except NotOpened as error:
        raise why_not(error, place) from error


def remove_folders(root: Place, folders: Sequence[str]) -> None:
    """Remove folders that are empty, the lowest first; one that is not empty stays."""
    for path in reversed(folders):
        place = root.below(path)
        try:
            with opened_folder(place.folder) as folder:
                os.rmdir(place.parts[-1], dir_fd=folder)
        except (OSError, Refused):
            return


def _open_or_make(part: str, folder: int) -> int:
    try:
        return os.open(part, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        pass
    try:
        os.mkdir(part, dir_fd=folder)
    except FileExistsError:  # made by somebody else in this moment
        pass
    else:
        os.fsync(folder)
    return os.open(part, FOLDER, dir_fd=folder)


def _check_step(place: Place, depth: int, fd: int) -> None:
    if place.protected.identities and place.protected.is_(os.fstat(fd)):
        raise is_protected(place.upto(depth))


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
    """Say whether something is not a file but a switch of the system, as all is in /proc and /sys."""
    return state.st_dev in _kernel_devices()


@lru_cache(maxsize=1)
def _kernel_devices() -> frozenset[int]:
    """Return the file systems that are the kernel's own."""
    found = {folder.stat().st_dev for folder in (Path("/proc"), Path("/sys")) if folder.is_dir()}
    return frozenset(found - {Path("/").stat().st_dev})

"""Making folders on the way to a new file, and removing them when it is gone again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from files_tool.confined import FOLDER, open_root, opened_folder, why_not
from files_tool.errors import Refused
from files_tool.protected import checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from files_tool.places import Place


def missing_folders(place: Place) -> list[str]:
    """Return the folders that are missing on the way to a place, the uppermost first."""
    fd = open_root(place)
    try:
        for depth, part in enumerate(place.parts[:-1], 1):
            try:
                child = os.open(part, FOLDER, dir_fd=fd)
            except FileNotFoundError:
                return ["/".join(place.parts[:end]) for end in range(depth, len(place.parts))]
            except OSError as error:
                raise why_not(error, place, depth, fd) from error
            os.close(fd)
            fd = child
        return []
    finally:
        os.close(fd)


def make_folders(place: Place) -> int:
    """Open the folder that a place is in, with those on the way that are missing; the caller closes it."""
    fd = open_root(place)
    for depth, part in enumerate(place.parts[:-1], 1):
        try:
            child = _open_or_make(part, fd)
        except OSError as error:
            raise why_not(error, place, depth, fd) from error
        finally:
            os.close(fd)
        fd = checked(place, depth, child)
    return fd


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


def remove_folders(root: Place, folders: Sequence[str]) -> None:
    """Remove folders that are empty, the lowest first; one that is not stays."""
    for path in reversed(folders):
        place = root.below(path)
        try:
            with opened_folder(place.folder) as folder:
                os.rmdir(place.parts[-1], dir_fd=folder)
        except (OSError, Refused):
            return

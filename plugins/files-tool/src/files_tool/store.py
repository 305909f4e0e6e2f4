"""Contents by their digest: what changes have replaced."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from files_tool.contents import digest_of, read_all
from files_tool.errors import Refused
from files_tool.limits import LARGEST_FILE

if TYPE_CHECKING:
    from pathlib import Path


class Store:
    """A folder of contents; each is written once and flushed before anybody relies on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, digest: str, data: bytes) -> None:
        """Keep a content under its digest."""
        path = self._folder / digest
        if path.exists():
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self._folder / f"{digest}.{secrets.token_hex(4)}"
        try:
            _write(unfinished, data)
            unfinished.rename(path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            raise
        flush_folder(self._folder)

    def get(self, digest: str) -> bytes:
        """Return a content.

        Raises:
            Refused: If it is not there any more, or damaged.
        """
        try:
            fd = os.open(self._folder / digest, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = read_all(fd, LARGEST_FILE + 1)
            finally:
                os.close(fd)
        except OSError as error:
            raise Refused(f"the journal has lost what was there before: {error.strerror}") from error
        if digest_of(data) != digest:
            raise Refused("the journal's copy of what was there before is damaged")
        return data


def flush_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)

"""Which content of a file the model knows: what it read last, or wrote itself.

A change of a file that became another one since is a change of something that the model has not seen. So
the digest of what it saw is kept, for the whole session and beyond a restart: a small file per file that
was read. If one is lost or half written, the worst that happens is that the model must read its file
again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from files_tool.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from files_tool.contents import Content
    from files_tool.places import Place

_DIGEST = 64
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC  # a digest has always the same length, so nothing is cut


class Seen:
    """The contents that the model of one session knows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, place: Place, digest: str) -> None:
        """Remember what the model knows of a file; where that cannot be kept, nothing is."""
        with suppress(OSError):
            try:
                fd = os.open(self._path(place), _WRITE, 0o600)
            except FileNotFoundError:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                fd = os.open(self._path(place), _WRITE, 0o600)
            try:
                os.write(fd, digest.encode())
            finally:
                os.close(fd)

    def check(self, place: Place, content: Content) -> None:
        """Let a change of a file pass if the model knows its content, or never read it.

        Raises:
            Refused: If it read another content.
        """
        try:
            fd = os.open(self._path(place), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            known = os.read(fd, _DIGEST).decode("ascii", "replace")
        finally:
            os.close(fd)
        if known != content.digest:
            raise Refused(f"{place.shown} has changed since it was read here: read it again, then change it")

    def _path(self, place: Place) -> Path:
        name = sha256(place.absolute.encode()).hexdigest()[:32]
        return self._folder / name

"""What is in a file, held in memory, and how one state of a file is told from another."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from files_tool.confined import FILE, opened_file
from files_tool.errors import Missing, Refused
from files_tool.limits import LARGEST_FILE, amount
from files_tool.missed import PassedOver, Why

if TYPE_CHECKING:
    from files_tool.places import Place

_BLOCK = 1 << 20
_HEAD = 1 << 15
"""So much of a file is read at first: what is no text mostly shows it there, and most texts are shorter."""


@dataclass(frozen=True)
class Content:
    """A file that was read whole.

    Attributes:
        data: What is in it.
        mode: Its permission bits.
        owner: The user and the group that it belongs to.
        stamp: What tells this state of this file from any other one.
    """

    data: bytes
    mode: int
    owner: tuple[int, int]
    stamp: tuple[int, ...]

    @cached_property
    def digest(self) -> str:
        """The content's own name: the same for equal contents, and for no others."""
        return digest_of(self.data)


def digest_of(data: bytes) -> str:
    """Return the name of a content, its SHA-256."""
    return sha256(data).hexdigest()


def read_content(place: Place) -> Content:
    """Return a whole file.

    Raises:
        Refused: If it cannot be opened, or is too large to be held in memory.
    """
    with opened_file(place) as fd:
        return content_of(place, fd)


def current(place: Place) -> Content | None:
    """Return what is at a place; None for nothing.

    Raises:
        Refused: If it is there and cannot be read.
    """
    try:
        return read_content(place)
    except Missing:
        return None


def content_of(place: Place, fd: int) -> Content:
    """Return the whole of a file that is open.

    Raises:
        Refused: If it is too large, or another program keeps writing to it.
    """
    state = os.fstat(fd)
    if state.st_size > LARGEST_FILE:
        raise Refused(
            f"{place.shown} has {amount(state.st_size)}, and only files up to {amount(LARGEST_FILE)} can be "
            "changed or compared: read it in pages, or use another program"
        )
    data = read_all(fd, LARGEST_FILE + 1)
    after = os.fstat(fd)
    if len(data) > LARGEST_FILE or stamp_of(after) != stamp_of(state):
        raise Refused(f"{place.shown} is being written by another program: try again when that is done")
    owner = (state.st_uid, state.st_gid)
    return Content(data, stat.S_IMODE(state.st_mode), owner, stamp_of(state))


def read_all(fd: int, most: int) -> bytes:
    """Return what is in an open file, at most that many bytes."""
    blocks, left = [], most
    while left and (block := os.read(fd, min(left, _BLOCK))):
        blocks.append(block)
        left -= len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def read_small(name: str, folder: int) -> bytes:
    """Return a text in a folder that is open; nothing of what is no regular file by now.

    Raises:
        PassedOver: If it is too large, or no text: it has a NUL.
    """
    fd = os.open(name, FILE, dir_fd=folder)
    try:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode):
            return b""
        if state.st_size > LARGEST_FILE:
            raise PassedOver(Why.LARGE)
        head = os.read(fd, _HEAD)
        data = head if b"\0" in head or len(head) < _HEAD else head + read_all(fd, LARGEST_FILE - len(head))
        if b"\0" in data:
            raise PassedOver(Why.NO_TEXT)
        return data
    finally:
        os.close(fd)


def stamp_of(state: os.stat_result) -> tuple[int, ...]:
    """Return what changes whenever a file's content is written or another file takes its place."""
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)

"""What is in a file: its bytes, what kind it is, and why a search passes some files over."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from agent_plugin_kit.safe_files import FILE
from files_tool.descriptors import opened_file
from files_tool.limits import LARGEST_FILE, MOST_IN_FOLDER, amount
from files_tool.places import Missing, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from files_tool.places import Place


class Why(Enum):
    """Why something was passed over: one of them, and several."""

    LARGE = (f"file over {amount(LARGEST_FILE)}", f"files over {amount(LARGEST_FILE)}")
    NO_TEXT = ("file that is not text", "files that are not text")
    CLOSED_FILE = ("file that cannot be opened", "files that cannot be opened")
    CLOSED_FOLDER = ("folder that cannot be opened", "folders that cannot be opened")
    DEEP_FOLDER = ("folder that lies too deep", "folders that lie too deep")
    FULL_FOLDER = (
        f"folder beyond its first {MOST_IN_FOLDER:,} names",
        f"folders beyond their first {MOST_IN_FOLDER:,} names",
    )


class PassedOver(Exception):
    """A file is not looked into."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.name)
        self.why = why


_GONE = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
"""What was there a moment ago and is not any more, or is a link by now: then it is not part of the answer."""


class Missed:
    """Counts what was passed over."""

    def __init__(self) -> None:
        self._counts: Counter[Why] = Counter()

    def add(self, why: Why) -> None:
        """Count one."""
        self._counts[why] += 1

    def add_closed(self, error: OSError, why: Why) -> None:
        """Count what could not be opened, unless it is gone."""
        if error.errno not in _GONE:
            self.add(why)

    def has(self, why: Why) -> bool:
        """Say whether something was passed over for that reason."""
        return self._counts[why] > 0

    def forget(self) -> None:
        """Begin anew."""
        self._counts.clear()

    def include(self, other: Missed) -> None:
        """Count what another one has counted."""
        self._counts.update(other._counts)

    def text(self, verb: str) -> list[str]:
        """Return a line for the model, as in "[not searched: 1 file over 10.0 MB]"; none if nothing was."""
        counts = [
            f"{self._counts[why]} {why.value[self._counts[why] > 1]}" for why in Why if self._counts[why]
        ]
        return [f"[not {verb}: {', '.join(counts)}]"] if counts else []


_BLOCK = 1 << 20
_HEAD = 1 << 15
"""So much of a file is read at first: what is not text mostly shows it there, and most texts are shorter."""


@dataclass(frozen=True)
class Content:
    """A file that was read whole.

    Attributes:
        data: What is in it.
        mode: Its permission bits.
        owner: The user and the group that it belongs to.
        stamp: What tells this state of this file from any other one.
        names: How many names it has; more than one are hard links.
        attributes: Its extended attributes, as far as they are kept.
    """

    data: bytes
    mode: int
    owner: tuple[int, int]
    stamp: tuple[int, ...]
    names: int = 1
    attributes: tuple[tuple[str, bytes], ...] = ()

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
        Refused: If it cannot be opened, or is too large to be read into memory.
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
    mode = stat.S_IMODE(state.st_mode)
    return Content(data, mode, owner, stamp_of(state), state.st_nlink, tuple(_attributes(fd)))


def _attributes(fd: int) -> Iterator[tuple[str, bytes]]:
    """Yield the extended attributes of a file, lists of access among them.

    Those of the system's security stay away: what a policy labels, it labels anew, and a capability is a
    right of the old content.
    """
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(fd)
    except OSError:  # a file system that has none
        return
    for name in names:
        if not name.startswith(("security.", "trusted.")):
            with suppress(OSError):
                yield name, os.getxattr(fd, name)


def read_all(fd: int, most: int) -> bytes:
    """Return what is in an open file, at most that many bytes."""
    blocks, left = [], most
    while left and (block := os.read(fd, min(left, _BLOCK))):
        blocks.append(block)
        left -= len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def read_small(name: str, folder: int) -> bytes:
    """Return a text in a folder that is open; nothing of what is not a regular file by now.

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


IMAGES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_OTHERS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or a document made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"MZ", "a program or library (PE)"),
    (b"\xcf\xfa\xed\xfe", "a program or library (Mach-O)"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"BM", "a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"RIFF", "audio or video (RIFF)"),
)
_TAR, _TAR_AT = b"ustar", 257
_PNG_SIZE, _GIF_SIZE = slice(16, 24), slice(6, 10)


def image_type(head: bytes) -> str | None:
    """Return the media type of an image that models can look at; None for anything else."""
    for media_type, magic in IMAGES.items():
        if head.startswith(magic) and (media_type != "image/webp" or head[8:12] == b"WEBP"):
            return media_type
    return None


def describe(head: bytes) -> str:
    """Return what a binary file seems to be."""
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return "a tar archive"
    if head[4:8] == b"ftyp":
        return "MP4 video, or a relative of it"
    return next((name for magic, name in _OTHERS if head.startswith(magic)), "binary data")


def image_size(head: bytes, media_type: str) -> str:
    """Return an image's size where it stands at the beginning, for an answer; empty elsewhere."""
    if media_type == "image/png" and len(head) >= _PNG_SIZE.stop:
        width, height = struct.unpack(">II", head[_PNG_SIZE])
    elif media_type == "image/gif" and len(head) >= _GIF_SIZE.stop:
        width, height = struct.unpack("<HH", head[_GIF_SIZE])
    else:
        return ""
    return f"{width} x {height} pixels, "

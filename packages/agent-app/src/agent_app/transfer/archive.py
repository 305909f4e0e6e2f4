"""The parts of a file from strangers, checked before they are used.

Numbers that a file gives about itself only serve to refuse it early: sizes are counted while the file is
read. Of everything that zip files can be, only what `export_session` writes is accepted.
"""

from __future__ import annotations

import io
import os
import struct
import tempfile
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from agent_app.transfer.format import (
    ASSET_MEMBER,
    EVENTS,
    MANIFEST,
    SESSION,
    ImportRefused,
    Manifest,
    read_json,
)
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer

    from agent_app.transfer.format import Checksum, ImportLimits

Source = bytes | str | os.PathLike[str] | BinaryIO

_PIECE = 1 << 18
_IN_MEMORY = 1 << 23
_MANIFEST_BYTES = 10_000_000
_RATIO_FROM = 20_000_000  # a short text repeated a thousand times is not an attack
_END = struct.Struct("<4s4H2LH")
_LOCATOR_SIZE = 20
_ENTRY_BYTES = 512
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Parcel:
    """The parts of a file, checked as far as they are read.

    Attributes:
        manifest: Its description; empty for a session in plain JSON.
        session: The session as a dict.
        events: The event log.
        archive: The source of the assets.
    """

    manifest: Manifest
    session: Any
    events: list[Any] = field(default_factory=list)
    archive: Archive | None = None

    def open_asset(self, member: str) -> BinaryIO:
        """Return the content of an asset; reading it to its end checks it."""
        assert self.archive is not None
        return self.archive.open(member, self.manifest.members[member])


@contextmanager
def open_parcel(source: Source, limits: ImportLimits) -> Iterator[Parcel]:
    """Open a file that `export_session`, or the core's method of that name, wrote.

    Raises:
        ImportRefused: If it is not such a file.
        ArgumentError: If *source* cannot be read.
    """
    with ExitStack() as stack:
        file = _seekable(source, limits, stack)
        first = file.read(4)
        file.seek(0)
        if first == b"PK\x03\x04":
            yield _read_archive(stack.enter_context(open_archive(file, limits)), limits)
        elif first.lstrip(b" \t\r\n")[:1] in (b"{", b""):
            yield Parcel(Manifest(), _read_document(file, limits))
        else:
            text = "; a text is read as JSON, so give the path of a file as a Path"
            hint = text if isinstance(source, str) else ""
            raise ImportRefused(f"it is neither an exported session nor the JSON of one{hint}")


def _read_document(file: BinaryIO, limits: ImportLimits) -> Any:
    data = file.read(limits.document + 1)
    if len(data) > limits.document:
        raise ImportRefused(f"it is larger than {limits.document:,} bytes")
    return read_json(data, "it", limits)


def _read_archive(archive: Archive, limits: ImportLimits) -> Parcel:
    manifest = Manifest.from_dict(read_json(archive.read(MANIFEST, None), MANIFEST, limits))
    _check_members(archive, manifest)
    session = read_json(archive.read(SESSION, manifest.members[SESSION]), SESSION, limits)
    events: list[Any] = []
    if EVENTS in manifest.members:
        lines = archive.read(EVENTS, manifest.members[EVENTS]).splitlines()
        events = [read_json(line, EVENTS, limits) for line in lines]
    return Parcel(manifest, session, events, archive)


def _check_members(archive: Archive, manifest: Manifest) -> None:
    """Refuse a file that has other members than its manifest names."""
    there = archive.names - {MANIFEST}
    if SESSION not in there:
        raise ImportRefused(f"it has no {SESSION}")
    if there != set(manifest.members):
        odd = min(there.symmetric_difference(manifest.members))
        raise ImportRefused(f"{MANIFEST} and the members of the file differ: see {odd!r}")
    if {asset.member for asset in manifest.assets} != there - {SESSION, EVENTS}:
        raise ImportRefused(f"{MANIFEST} does not say what the assets in the file are")


class Archive:
    """An open zip file; counts what is unpacked."""

    def __init__(self, file: zipfile.ZipFile, limits: ImportLimits) -> None:
        self._file = file
        self._limits = limits
        self._unpacked = 0
        self._members: dict[str, zipfile.ZipInfo] = {}
        for info in file.infolist():
            self._admit(info)

    @property
    def names(self) -> set[str]:
        return set(self._members)

    def open(self, name: str, expected: Checksum | None) -> BinaryIO:
        """Return a member's content, checked on the way."""
        info = self._members.get(name)
        if info is None:
            raise ImportRefused(f"it has no {name}")
        with damage(name):
            return io.BufferedReader(_Member(self, info, self._file.open(info), expected), _PIECE)

    def read(self, name: str, expected: Checksum | None) -> bytes:
        """Return a document, whose size is limited."""
        most = _MANIFEST_BYTES if name == MANIFEST else self._limits.document
        with self.open(name, expected) as member:
            data = member.read(most + 1)
            if len(data) > most:
                raise ImportRefused(f"{name} is larger than {most:,} bytes")
            return data

    def count(self, info: zipfile.ZipInfo, member_bytes: int, more: int) -> None:
        """Count unpacked bytes, and refuse too many."""
        self._unpacked += more
        if self._unpacked > self._limits.unpacked:
            raise ImportRefused(f"it becomes larger than {self._limits.unpacked:,} bytes when it is unpacked")
        if member_bytes > _RATIO_FROM + self._limits.ratio * info.compress_size:
            raise ImportRefused(f"{info.filename} becomes {self._limits.ratio} times larger when unpacked")

    def _admit(self, info: zipfile.ZipInfo) -> None:
        name = info.orig_filename
        if name not in (MANIFEST, SESSION, EVENTS) and not ASSET_MEMBER.fullmatch(name):
            raise ImportRefused(f"it has a member {name[:80]!r}, which no export writes")
        if name in self._members:
            raise ImportRefused(f"it has {name} twice")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 0x61:
            raise ImportRefused(f"{name} is encrypted, or packed in a way that no export uses")
        self._members[name] = info


class _Member(io.RawIOBase):
    """A member that is counted and hashed while it is read."""

    def __init__(
        self, archive: Archive, info: zipfile.ZipInfo, content: IO[bytes], expected: Checksum | None
    ) -> None:
        self._archive = archive
        self._info = info
        self._content = content
        self._expected = expected
        self._digest = sha256()
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        with damage(self._info.filename):
            piece = self._content.read(len(room))
        self._size += len(piece)
        self._archive.count(self._info, self._size, len(piece))
        self._digest.update(piece)
        if not piece:
            self._compare()
        room[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._content.close()
        super().close()

    def _compare(self) -> None:
        if self._expected is None:
            return
        if (self._digest.hexdigest(), self._size) != (self._expected.sha256, self._expected.size):
            raise ImportRefused(f"{self._info.filename} was changed since it was exported")


@contextmanager
def damage(name: str) -> Iterator[None]:
    """Turn what the zip library raises into a refusal."""
    try:
        yield
    except ImportRefused:
        raise
    except _DAMAGE as error:
        raise ImportRefused(f"{name} is damaged ({error})") from error


@contextmanager
def open_archive(file: BinaryIO, limits: ImportLimits) -> Iterator[Archive]:
    """Open a zip file after checking its end: the list of members can be a bomb as well."""
    _check_end(file, limits)
    with damage("the list of its members"):
        opened = zipfile.ZipFile(file)
    with opened:
        yield Archive(opened, limits)


def _check_end(file: BinaryIO, limits: ImportLimits) -> None:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _END.size - _LOCATOR_SIZE))
    tail = file.read()
    file.seek(0)
    if len(tail) < _END.size + _LOCATOR_SIZE or tail[:4] == b"PK\x06\x07":
        raise ImportRefused("it is not a whole zip file")
    sign, disk, first_disk, here, count, length, offset, comment = _END.unpack(tail[-_END.size :])
    if sign != b"PK\x05\x06" or disk or first_disk or comment or here != count:
        raise ImportRefused("it is cut off, or something was added to it")
    if offset + length + _END.size != size:
        raise ImportRefused("something was added to it")
    if count > limits.members or length > _ENTRY_BYTES * count:
        raise ImportRefused(f"it has more than the {limits.members} members that are allowed")


def _seekable(source: Source, limits: ImportLimits, stack: ExitStack) -> BinaryIO:
    """Return the source as a seekable file of limited size."""
    if isinstance(source, str):
        source = source.encode("utf-8", "surrogatepass")
    if isinstance(source, (bytes, bytearray, memoryview)):
        source = io.BytesIO(source)
    elif isinstance(source, os.PathLike):
        source = stack.enter_context(_open_file(Path(source)))
    elif not hasattr(source, "read"):
        raise ArgumentError(
            f"a session is imported from bytes, a Path or a file, not {type(source).__name__}"
        )
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - the stack closes it
    stack.enter_context(spool)
    left = limits.packed
    while piece := source.read(_PIECE):
        if not isinstance(piece, (bytes, bytearray)):
            raise ArgumentError("a session is imported from a file that gives bytes: open it with 'rb'")
        left -= len(piece)
        if left < 0:
            raise ImportRefused(f"it is larger than {limits.packed:,} bytes")
        spool.write(piece)
    spool.seek(0)
    return spool  # type: ignore[return-value]  # it is one, only not by name


def _open_file(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror or error}") from error

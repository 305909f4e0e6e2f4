"""What the journal keeps on the disk: lines about changes, and the contents that they replaced.

Undoing a change, and redoing one, are changes as well, with a record of their own. To reverse a record is to
put back what it replaced. So undoing reverses the last record that counts, and redoing reverses the last
undoing.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from agent_plugin_kit.safe_files import make_private_folder
from files_tool.contents import digest_of, read_all
from files_tool.limits import LARGEST_FILE
from files_tool.places import Place, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path


_TAIL = 1 << 16


class Lines:
    """The lines of a file that is open for reading and appending; nobody else writes to it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __iter__(self) -> Iterator[dict[str, Any]]:
        with os.fdopen(os.dup(self._fd), "rb") as stream:
            stream.seek(0)
            for line in stream:
                yield json.loads(line)

    def append(self, line: dict[str, Any]) -> None:
        """Write one line more; it lasts from the next `flush` on."""
        data = memoryview(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        while data:
            data = data[os.write(self._fd, data) :]

    def flush(self) -> None:
        """Bring everything to the disk."""
        os.fsync(self._fd)

    def last(self) -> dict[str, Any] | None:
        """Return the last line; half a line behind it, which a crash has left, is cut off."""
        size = os.fstat(self._fd).st_size
        reach = _TAIL
        while True:
            start = max(0, size - reach)
            whole, _, half = os.pread(self._fd, size - start, start).rpartition(b"\n")
            if start == 0 or b"\n" in whole:
                break
            reach *= 4
        if half:
            os.ftruncate(self._fd, size - len(half))
        line = whole.rpartition(b"\n")[2]
        return json.loads(line) if line else None


class Store:
    """A folder of contents; each is written once and flushed before anybody relies on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, digest: str, data: bytes) -> None:
        """Keep a content under its digest."""
        path = self._folder / digest
        if path.exists():
            return
        make_private_folder(self._folder)
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
            raise Refused(f"the journal has lost the earlier content: {error.strerror}") from error
        if digest_of(data) != digest:
            raise Refused("the journal's copy of the earlier content is damaged")
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


Operation = Literal["change", "undo", "redo"]
OPERATIONS: tuple[str, ...] = get_args(Operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """What became of one file.

    Attributes:
        root: The root of the workspace that it is in.
        path: The way down from there.
        before: The digest of what was replaced; None if nothing was there.
        after: The digest of what took its place; None if nothing did.
        mode: The permission bits that it had.
        added: How many lines came.
        removed: How many lines went.
        folders: The folders that were made for it, the uppermost first.
    """

    root: str
    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    added: int = 0
    removed: int = 0
    folders: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """Where the file is."""
        return Place(self.root, tuple(self.path.split("/")))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FileRecord:
        """Read what `dataclasses.asdict` wrote."""
        return cls(**{**data, "folders": tuple(data.get("folders", ()))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One operation.

    Attributes:
        op: What it was.
        tool: By which tool, or action.
        at: When, in seconds since 1970.
        token: What the files have in their names that were written before they were moved.
        files: What it was to do.
        made: The numbers of the files for which it was done.
    """

    op: Operation
    tool: str
    at: float
    token: str
    files: tuple[FileRecord, ...]
    made: tuple[int, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """Read what `dataclasses.asdict` wrote."""
        return cls(
            **{**data, "files": tuple(FileRecord.from_dict(file) for file in data["files"]), "made": ()}
        )

    @property
    def made_files(self) -> tuple[FileRecord, ...]:
        """The files for which it was done."""
        return tuple(file for number, file in enumerate(self.files) if number in self.made)


@dataclass(frozen=True, slots=True)
class Change:
    """A change that can be reversed, or whose undoing can be.

    Attributes:
        number: Which of the session's changes it is, from 1.
        tool: Who made it.
        at: When, in seconds since 1970.
        files: What would be reversed.
    """

    number: int
    tool: str
    at: float
    files: tuple[FileRecord, ...]


@dataclass(frozen=True, slots=True)
class History:
    """A session's changes: those that count, and those that were undone since; the last ones are next."""

    done: tuple[Change, ...] = ()
    undone: tuple[Change, ...] = ()

    @classmethod
    def of(cls, records: Iterable[Record]) -> History:
        """Return what follows from the records of a session."""
        done: list[Change] = []
        undone: list[Change] = []
        number = 0
        for record in records:
            if record.op == "change":
                number += 1
                if record.made:
                    undone.clear()
                    done.append(Change(number, record.tool, record.at, record.made_files))
            elif record.op == "undo":
                _reverse(done, undone, record.made_files)
            else:
                _reverse(undone, done, record.made_files)
        return cls(tuple(done), tuple(undone))


def _reverse(source: list[Change], target: list[Change], made: Collection[FileRecord]) -> None:
    """Move a change from one pile to the other; files for which that failed stay where they were."""
    if not source or not made:
        return
    change = source.pop()
    reversed_paths = {(file.root, file.path) for file in made}
    rest = tuple(file for file in change.files if (file.root, file.path) not in reversed_paths)
    if rest:
        source.append(replace(change, files=rest))
    target.append(replace(change, files=tuple(made)))

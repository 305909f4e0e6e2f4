"""The journal of a session: every change is in it before it is made, so every change can be undone.

An operation is a line that says what is about to be done, flushed to the disk together with what will be
replaced, and afterwards a line that says for which files it was done. After a crash the second line may be
missing. Then the files tell: one that still is what it was before has not been changed. That is looked into
before anything else is done with the journal, and written down. One lock per session keeps others out, in
this process and in any other.

It also knows which content of a file the model knows: what it read last, or wrote itself. A change of a file
that has become another one since is refused until the model has read it again.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from agent_plugin_kit.safe_files import make_private_folder, why_not_private
from files_tool.contents import current, digest_of
from files_tool.places import Refused
from files_tool.records import FileRecord, History, Lines, Record, Store, flush_folder
from files_tool.steps import PartlyMade, aside, clear_aside, make_steps, new_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from files_tool.contents import Content
    from files_tool.places import Place
    from files_tool.records import Operation
    from files_tool.steps import Step


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
                make_private_folder(self._folder)
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


_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PATIENCE = 10.0
_PAUSE = 0.005
_MADE = "made"


class Journal:
    """What is known about one session's changes.

    Attributes:
        seen: What its model knows of files.
    """

    def __init__(self, folder: str, session_id: str) -> None:
        self.folder = Path(folder, _folder_name(session_id))
        self.seen = Seen(self.folder / "seen")
        self._store = Store(self.folder / "contents")
        self._path = self.folder / "journal.jsonl"

    @contextmanager
    def locked(self, is_cancelled: Callable[[], bool] = lambda: False) -> Iterator[LockedJournal]:
        """Hold the journal, alone; what a crash has left open is settled first.

        Raises:
            Refused: If it cannot be written, or another program does not let go of it.
        """
        with _told(self.folder):
            fd = self._open()
        try:
            _lock(fd, is_cancelled)
            locked = LockedJournal(Lines(fd), self._store)
            with _told(self.folder):
                locked.settle()
            yield locked
        finally:
            os.close(fd)

    def history(self) -> History:
        """Return the session's changes; a session without a journal has none."""
        if not self._path.exists():
            return History()
        with self.locked() as locked:
            return locked.history()

    def forget(self) -> None:
        """Remove everything that is kept of the session."""
        rmtree(self.folder, ignore_errors=True)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        for path in (self.folder, self._path):
            problem = why_not_private(path)
            if problem is not None:
                raise Refused(f"the journal of changes {path} {problem}, so its content cannot be trusted")
        with suppress(FileNotFoundError):
            return os.open(self._path, flags)
        make_private_folder(self.folder)
        fd = os.open(self._path, flags | os.O_CREAT, 0o600)
        flush_folder(self.folder)
        flush_folder(self.folder.parent)
        return fd


class LockedJournal:
    """A journal that nobody else writes to."""

    def __init__(self, lines: Lines, store: Store) -> None:
        self._lines = lines
        self._store = store
        self._is_settled = True

    def perform(self, op: Operation, tool: str, steps: Sequence[Step]) -> None:
        """Record what will be done, do it, and record that it was done.

        Raises:
            Refused: If it was not done, or not everywhere.
        """
        token = new_token()
        with _told("the journal"):
            if not self._is_settled:
                self.settle()
            self._record(op, tool, token, steps)
        try:
            make_steps(steps, token)
        except Refused as error:
            self._end(error.made if isinstance(error, PartlyMade) else ())
            raise
        self._end(range(len(steps)))

    def content(self, digest: str) -> bytes:
        """Return what was replaced, by its digest.

        Raises:
            Refused: If it is lost.
        """
        return self._store.get(digest)

    def history(self) -> History:
        """Return the session's changes."""
        with _told("the journal"):
            return History.of(self._records())

    def changes_of(self, place: Place, since: float) -> list[tuple[str | None, str | None]]:
        """Return what the session's calls made of a file since a time: digests, before and after."""
        with _told("the journal"):
            return [
                (file.before, file.after)
                for record in self._records()
                if record.op == "change" and record.at >= since
                for file in record.made_files
                if file.place.absolute == place.absolute
            ]

    def settle(self) -> None:
        """Find out how an operation ended that was cut short, and write it down."""
        last = self._lines.last()
        if last is not None and _MADE not in last:
            record = Record.from_dict(last)
            for number, file in enumerate(record.files):
                clear_aside(file.place, aside(record.token, number))
            made = [number for number, file in enumerate(record.files) if not _is_as_before(file)]
            self._lines.append({_MADE: made})
        self._is_settled = True

    def _record(self, op: Operation, tool: str, token: str, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.before is not None:
                self._store.put(step.before.digest, step.before.data)
        files = tuple(_file_record(step) for step in steps)
        line = asdict(Record(op=op, tool=tool, at=time.time(), token=token, files=files))
        del line[_MADE]
        self._lines.append(line)
        self._lines.flush()

    def _end(self, made: Sequence[int]) -> None:
        try:
            self._lines.append({_MADE: list(made)})
        except OSError:  # whoever looks at the journal next finds it out
            self._is_settled = False

    def _records(self) -> Iterator[Record]:
        waiting: Record | None = None
        for line in self._lines:
            if _MADE not in line:
                waiting = Record.from_dict(line)
            elif waiting is not None:
                yield replace(waiting, made=tuple(line[_MADE]))
                waiting = None


def _file_record(step: Step) -> FileRecord:
    before = step.before
    return FileRecord(
        root=step.place.root,
        path=step.place.path,
        before=None if before is None else before.digest,
        after=None if step.data is None else digest_of(step.data),
        mode=None if before is None else before.mode,
        added=step.diff.added,
        removed=step.diff.removed,
        folders=step.folders,
    )


def _is_as_before(file: FileRecord) -> bool:
    try:
        now = current(file.place)
    except Refused:
        return False
    return (None if now is None else now.digest) == file.before


def _lock(fd: int, is_cancelled: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if is_cancelled() or time.monotonic() > until:
                raise Refused("another program is changing files in this session: try again") from None
            time.sleep(_PAUSE)
        else:
            return


def _folder_name(session_id: str) -> str:
    """Return a name for a session's folder; an id that is not a plain name is replaced by a digest of it."""
    if _PLAIN.fullmatch(session_id):
        return session_id
    return "~" + sha256(session_id.encode(errors="surrogatepass")).hexdigest()[:40]


@contextmanager
def _told(where: Path | str) -> Iterator[None]:
    """Turn what goes wrong with the journal's own files into words."""
    try:
        yield
    except OSError as error:
        raise Refused(
            f"{where} cannot be written ({error.strerror or error}), so nothing was changed: make room "
            "there, or set journal to another folder"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"{where} is damaged, so nothing was changed: move it away, or set journal to another folder"
        ) from error

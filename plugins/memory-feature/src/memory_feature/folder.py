"""The memories of one scope: a folder with a file for each.

Several processes may work in one folder: chats, a server, workers, an editor. Whoever changes something locks
the folder (`flock` on the folder itself, so that no lock file lies in a project) and puts a new file in place
by renaming it, so readers need no lock and never see half a file. No link is followed
(`agent_plugin_kit.safe_files`): a project cannot have files from elsewhere read or written.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_plugin_kit.safe_files import (
    NotOpened,
    make_private_folder,
    open_file,
    open_folder,
    walk,
    why_not_private,
)
from memory_feature.memory import (
    ENDING,
    MOST_BYTES,
    Memory,
    MemoryProblem,
    checked_text,
    is_name,
    name_for,
    now,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MOST_MEMORIES: Final = 500
"""In one folder; more are not written, and not read either."""
_MOST_ENTRIES: Final = 4 * MOST_MEMORIES
LONGEST_WAIT = 30.0
"""Seconds to wait for other programs that change the same folder."""
_BETWEEN_TRIES: Final = 0.01
_UNFINISHED: Final = ".new"
_MOST_REMEMBERED: Final = 4 * MOST_MEMORIES
_read: dict[tuple[int, int, int, int], Memory | str] = {}


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a folder.

    Attributes:
        memories: The memories, oldest first.
        problems: Why files are left out, one sentence each.
        broken: The names of the files that cannot be used, each with its problem.
    """

    memories: tuple[Memory, ...] = ()
    problems: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryFolder:
    """Where the memories of one scope are.

    Attributes:
        base: The folder, or the project that it is in.
        steps: The way from the project down; empty for the person's own folder.
    """

    base: Path
    steps: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Where the files are, for people."""
        return self.base.joinpath(*self.steps)

    def read(self) -> Contents:
        """Return what is there; nothing if there is no folder."""
        try:
            folder = self._open()
        except NotOpened as error:
            missing = isinstance(error.error, FileNotFoundError)
            return Contents() if missing else Contents(problems=(f"{self.path} is not read: {error}",))
        except MemoryProblem as error:
            return Contents(problems=(str(error),))
        try:
            return self._contents(folder)
        finally:
            os.close(folder)

    def get(self, name: str) -> Memory:
        """Return one memory.

        Raises:
            MemoryProblem: If there is none of this name, or its file cannot be used.
        """
        try:
            folder = self._open()
        except NotOpened:
            raise _unknown(name) from None
        try:
            return self._get(folder, name)
        finally:
            os.close(folder)

    def add(self, text: str) -> Memory:
        """Keep a text, and return it with its name; the same text is kept once.

        Raises:
            MemoryProblem: If the text may not be kept, or there is no room.
        """
        text = checked_text(text)
        with self._locked() as folder:
            there = self._contents(folder).memories
            if same := next((one for one in there if one.text == text), None):
                return same
            _check_room(len(there))
            name, number = name_for(text), 1
            while _exists(folder, name):
                number += 1
                name = f"{name_for(text)}-{number}"
            memory = Memory(name=name, text=text, created=now())
            _put(folder, memory)
            return memory

    def change(self, name: str, text: str) -> tuple[Memory, Memory]:
        """Give a memory another text, and return it as it was and as it is.

        Raises:
            MemoryProblem: If there is no such memory, or the text may not be kept.
        """
        with self._locked() as folder:
            before = self._get(folder, name)
            after = before.with_text(text)
            _put(folder, after)
            return before, after

    def remove(self, name: str) -> Memory:
        """Remove a memory, and return what it was.

        Raises:
            MemoryProblem: If there is no such memory.
        """
        with self._locked() as folder:
            memory = self._get(folder, name)
            os.unlink(f"{name}{ENDING}", dir_fd=folder)
            return memory

    def delete_broken(self, name: str) -> None:
        """Delete a file that cannot be used as a memory; of a link, the link itself.

        Raises:
            MemoryProblem: If there is no such file, or it is a memory.
        """
        with self._locked() as folder:
            found = self._contents(folder)
            if any(one.name == name for one in found.memories):
                raise MemoryProblem(f"{name!r} can be used: forget it instead")
            if name not in found.broken:
                raise _unknown(name)
            os.unlink(f"{name}{ENDING}", dir_fd=folder)

    def restore(self, name: str, text: str, created: str = "") -> Memory:
        """Put a memory back that was removed.

        Raises:
            MemoryProblem: If another one has its name by now, or there is no room.
        """
        if not is_name(name):
            raise _unknown(name)
        with self._locked() as folder:
            if _exists(folder, name):
                raise MemoryProblem(f"there is another memory {name!r} by now: change that one")
            _check_room(len(self._contents(folder).memories))
            memory = Memory(name=name, text=checked_text(text), created=created)
            _put(folder, memory)
            return memory

    def _open(self) -> int:
        """Open the folder.

        Raises:
            NotOpened: If it is missing, or is a link.
            MemoryProblem: If others could have written the person's own memories.
        """
        real = os.path.realpath(self.base)
        if not self.steps and (why := why_not_private(real)) is not None:
            raise MemoryProblem(f"{self.base} is not read: it {why}")
        return open_folder(real, self.steps)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Lend the folder, made if it is missing, with nobody else changing it."""
        try:
            if not self.steps:
                make_private_folder(self.base)
                folder = self._open()
            else:
                folder = walk(open_folder(os.path.realpath(self.base)), self.steps, open_step=_open_or_make)
        except NotOpened as error:
            raise MemoryProblem(f"{self.path} cannot be used: {error}") from None
        except OSError as error:
            raise MemoryProblem(f"{self.path} cannot be used: {error.strerror or error}") from None
        try:
            if not _lock(folder):
                raise MemoryProblem(
                    f"{self.path} cannot be written: another program has locked it; try later"
                )
            _tidy(folder)
            yield folder
        except OSError as error:
            raise MemoryProblem(f"{self.path} cannot be written: {error.strerror or error}") from None
        finally:
            os.close(folder)

    def _contents(self, folder: int) -> Contents:
        with os.scandir(folder) as entries:
            named = (one.name for one in islice(entries, _MOST_ENTRIES) if not one.name.startswith("."))
            names = sorted(name.removesuffix(ENDING) for name in named if name.endswith(ENDING))
        memories = []
        broken = {}
        for name in names[:MOST_MEMORIES]:
            found = _known(folder, name)
            if isinstance(found, Memory):
                memories.append(found)
            else:
                broken[name] = f"{self.path / f'{name}{ENDING}'} is left out: {found}"
        problems = list(broken.values())
        if len(names) > MOST_MEMORIES:
            problems.append(f"{self.path} has more than {MOST_MEMORIES} memories: the others are left out")
        memories.sort(key=lambda one: (one.at, one.name))
        return Contents(tuple(memories), tuple(problems), broken)

    def _get(self, folder: int, name: str) -> Memory:
        found = _known(folder, name) if is_name(name) and _exists(folder, name) else None
        if found is None:
            raise _unknown(name)
        if isinstance(found, str):
            raise MemoryProblem(f"{self.path / f'{name}{ENDING}'} cannot be used: {found}")
        return found


def _unknown(name: str) -> MemoryProblem:
    return MemoryProblem(f"there is no memory {name[:100]!r}: list them to see their names")


def _check_room(count: int) -> None:
    if count >= MOST_MEMORIES:
        raise MemoryProblem(f"there are {count} memories already, which is the most: forget some first")


def _known(folder: int, name: str) -> Memory | str:
    """Return a memory, or what is wrong with its file; as it was read before if the file is the same."""
    if not is_name(name):
        return "its name may have letters, digits, - and _, and at most 80 of them"
    try:
        descriptor = open_file(folder, f"{name}{ENDING}")
    except NotOpened as error:
        return str(error)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        key = (about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)
        found = _read.get(key)
        if isinstance(found, Memory) and found.name != name:  # renamed by hand
            found = None
        if found is None:
            found = _parsed(name, file.read(MOST_BYTES + 1), min(max(about.st_mtime, 0), time.time()))
            if len(_read) >= _MOST_REMEMBERED:
                _read.clear()
            _read[key] = found
    return found


def _parsed(name: str, content: bytes, written: float) -> Memory | str:
    if len(content) > MOST_BYTES:
        return f"it has more than {MOST_BYTES:,} bytes"
    try:
        return Memory.from_file(name, content, written)
    except MemoryProblem as error:
        return str(error)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(f"{name}{ENDING}", dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _put(folder: int, memory: Memory) -> None:
    """Write a file so that a reader finds the old content or the new one, and a crash leaves one of them."""
    content = memory.to_file().encode()
    if len(content) > MOST_BYTES:
        raise MemoryProblem(f"its file would have more than {MOST_BYTES:,} bytes: shorten it")
    unfinished = f".{secrets.token_hex(8)}{_UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(unfinished, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.rename(unfinished, f"{memory.name}{ENDING}", src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise


def _lock(folder: int) -> bool:
    """Lock a folder; False if somebody does not let go of it: whoever may read a folder can lock it."""
    ends = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(_BETWEEN_TRIES)
        else:
            return True


def _tidy(folder: int) -> None:
    """Remove what a process that was killed left behind; we have the lock, so nobody is writing."""
    with os.scandir(folder) as entries:
        left = [one.name for one in entries if one.name.startswith(".") and one.name.endswith(_UNFINISHED)]
    for name in left:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def _open_or_make(name: str, parent: int) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, flags, dir_fd=parent)

"""One file replaced, made or removed, in one move.

A new content is written next to the file and takes its place at once, so nobody ever sees half of it, and
a crash leaves the one or the other. Whether the file is still the one that the step was planned for is
looked at last, right before the move.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from files_tool.contents import current, stamp_of
from files_tool.descriptors import make_folders, opened_folder, remove_folders
from files_tool.diffs import Diff, diff
from files_tool.places import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from files_tool.contents import Content
    from files_tool.places import Place


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SET_ID = stat.S_ISUID | stat.S_ISGID  # a right that was given to the old content, not to a new one
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What becomes of one file.

    Attributes:
        place: Where it is.
        before: What is there now; None for nothing.
        data: What will be there; None for nothing.
        mode: The permission bits that it gets; None for those of any new file.
        folders: The folders that are made on the way, the uppermost first.
    """

    place: Place
    before: Content | None
    data: bytes | None
    mode: int | None = None
    folders: tuple[str, ...] = ()

    @cached_property
    def diff(self) -> Diff:
        """The change, as a person reads it."""
        return diff(self.place.shown, None if self.before is None else self.before.data, self.data)


class Move:
    """A step under way: prepared, made, tidied up after.

    Attributes:
        is_made: True once the file is as it should be.
    """

    def __init__(self, step: Step, aside: str) -> None:
        self.step = step
        self.is_made = False
        self._aside = aside
        self._is_aside = False
        self._folder = -1

    def prepare(self) -> None:
        """Open the folder, and write the new content next to the file."""
        self._folder = make_folders(self.step.place)
        if self.step.data is not None:
            fd = os.open(self._aside, _NEW, 0o666, dir_fd=self._folder)
            self._is_aside = True
            try:
                self._write(fd, self.step.data)
            finally:
                os.close(fd)

    def make(self) -> None:
        """Move the new content into its place, if that still is as it was.

        Raises:
            Refused: If it is not.
        """
        self._check()
        name, folder = self.step.place.parts[-1], self._folder
        if self.step.data is None:
            os.unlink(name, dir_fd=folder)
        elif self.step.before is None:
            self._move_to_nothing(name)
        else:
            self._move(name)
        self.is_made = True
        os.fsync(folder)

    def tidy_up(self) -> None:
        """Leave nothing behind but what was made."""
        if self._folder < 0:
            return
        if self._is_aside:
            with suppress(OSError):
                os.unlink(self._aside, dir_fd=self._folder)
        os.close(self._folder)
        if not self.is_made:
            remove_folders(self.step.place, self.step.folders)

    def _write(self, fd: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        before = self.step.before
        if before is not None and before.owner != (os.geteuid(), os.getegid()):
            with suppress(PermissionError):  # only the superuser gives files away
                os.fchown(fd, *before.owner)
        if self.step.mode is not None:
            os.fchmod(fd, self.step.mode & ~_SET_ID)
        for name, value in () if before is None else before.attributes:
            try:
                os.setxattr(fd, name, value)
            except OSError as error:
                place = self.step.place.shown
                raise Refused(
                    f"{place} has the extended attribute {name}, which would be lost: {error.strerror}"
                ) from error
        os.fsync(fd)

    def _check(self) -> None:
        place, before = self.step.place, self.step.before
        try:
            found = stamp_of(os.stat(place.parts[-1], dir_fd=self._folder, follow_symlinks=False))
        except FileNotFoundError:
            found = None
        if before is None and found is not None:
            raise Refused(f"{place.shown} is there now, made by another program: read it first")
        if before is not None and found != before.stamp:
            what = "changed" if found else "removed"
            raise Refused(f"{place.shown} was {what} by another program in the meantime: read it again")

    def _move(self, name: str) -> None:
        os.rename(self._aside, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._is_aside = False

    def _move_to_nothing(self, name: str) -> None:
        """Move to a name that must be free; `rename` would replace what is there, `link` does not."""
        folder = self._folder
        try:
            os.link(self._aside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.close(os.open(name, _NEW, 0o600, dir_fd=folder))
            self._move(name)


class PartlyMade(Refused):
    """Some steps were made and could not be taken back; `made` has their numbers."""

    def __init__(self, problem: str, made: Sequence[int]) -> None:
        super().__init__(problem)
        self.made = tuple(made)


def new_token() -> str:
    """Return what the files have in their names that one change writes before they are moved."""
    return secrets.token_hex(8)


def aside(token: str, number: int) -> str:
    """Return the name of the file that a step writes before it is moved into its place."""
    return f".files-tool-{token}-{number}.tmp"


def make_steps(steps: Sequence[Step], token: str) -> None:
    """Make all steps.

    Raises:
        Refused: If one could not be made, so none is.
        PartlyMade: If one could not be made, and one before it not taken back.
    """
    moves = [Move(step, aside(token, number)) for number, step in enumerate(steps)]
    try:
        for move in moves:
            _refusing(move.prepare, move.step.place)
        for move in moves:
            _refusing(move.make, move.step.place)
    except Refused as error:
        left = _take_back(moves, token)
        if left:
            names = ", ".join(steps[number].place.shown for number in left)
            raise PartlyMade(f"{error}. It could not be undone in {names}: see to it", left) from error
        raise
    finally:
        for move in moves:
            move.tidy_up()


def clear_aside(place: Place, name: str) -> None:
    """Remove what a step that was cut short has left behind."""
    with suppress(OSError, Refused), opened_folder(place.folder) as folder:
        os.unlink(name, dir_fd=folder)


def _take_back(moves: Sequence[Move], token: str) -> list[int]:
    """Take back the steps that were made, the last one first; return the numbers of those that stay."""
    made = [number for number, move in enumerate(moves) if move.is_made]
    left = [number for number in reversed(made) if not _is_taken_back(moves[number], aside(token, number))]
    return left[::-1]


def _is_taken_back(move: Move, name: str) -> bool:
    step = move.step
    try:
        now = current(step.place)
        if (None if now is None else now.data) != step.data:
            return False
        data, mode = (None, None) if step.before is None else (step.before.data, step.before.mode)
        back = Move(Step(place=step.place, before=now, data=data, mode=mode), name)
        try:
            back.prepare()
            back.make()
        finally:
            back.tidy_up()
    except (OSError, Refused):
        return False
    move.is_made = False
    return True


def _refusing(work: Callable[[], None], place: Place) -> None:
    try:
        work()
    except OSError as error:
        raise Refused(f"{place.shown} cannot be written: {error.strerror or error}") from error

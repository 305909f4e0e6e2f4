"""What the journal remembers of changes, and what follows from it: which can be undone, and which redone.

Undoing a change, and redoing one, are changes as well, with a record of their own. To reverse a record is
to put back what it replaced. So undoing reverses the last record that counts, and redoing reverses the
last undoing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from files_tool.places import Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

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

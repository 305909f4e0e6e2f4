"""Undoing changes, and redoing them: what was replaced is put back, if nobody has touched it since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from files_tool.contents import current
from files_tool.diffs import diff, shown
from files_tool.errors import Refused
from files_tool.folders import missing_folders, remove_folders
from files_tool.moves import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from files_tool.contents import Content
    from files_tool.journal import HeldJournal
    from files_tool.places import Place
    from files_tool.records import Change, FileRecord, Operation


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes to be reversed, the next one first, and what that does to the files."""

    changes: tuple[Change, ...]
    diff: str


def plan_reversal(journal: HeldJournal, changes: Sequence[Change]) -> Plan:
    """Find out whether changes can be reversed, and return what that would do.

    Raises:
        Refused: If a file is not as the change has left it; the text names it.
    """
    now: dict[Place, Content | None] = {}
    then: dict[Place, str | None] = {}
    for number, change in enumerate(changes):
        for file in change.files:
            place = file.place
            if place not in now:
                now[place] = current(place)
                then[place] = _digest(now[place])
            _check(file, then[place], change, number)
            then[place] = file.before
    diffs = []
    for place, digest in then.items():
        there = now[place]
        data = None if digest is None else journal.content(digest)
        diffs.append(diff(place.shown, None if there is None else there.data, data))
    return Plan(tuple(changes), shown(diffs))


def reverse(journal: HeldJournal, op: Operation, changes: Sequence[Change]) -> None:
    """Reverse changes, the first one first; each is recorded by itself.

    Raises:
        Refused: If a file is not as it was left. Changes before that one are reversed.
    """
    for change in changes:
        journal.perform(op, op, [_step(journal, file, change) for file in change.files])
        for file in change.files:
            if file.before is None:
                remove_folders(file.place, file.folders)


def _step(journal: HeldJournal, file: FileRecord, change: Change) -> Step:
    now = current(file.place)
    _check(file, _digest(now), change, 0)
    return Step(
        place=file.place,
        before=now,
        data=None if file.before is None else journal.content(file.before),
        mode=file.mode,
        folders=tuple(missing_folders(file.place)) if now is None else (),
    )


def _check(file: FileRecord, digest: str | None, change: Change, before: int) -> None:
    """Refuse to reverse a change of what is another file by now; *before* could be reversed."""
    if digest != file.after:
        others = f"; set count to {before} to leave it out" if before else ""
        raise Refused(
            f"{file.place.shown} has changed since change {change.number} ({change.tool}), so nothing was "
            f"done: bring it back by hand, or keep it as it is{others}"
        )


def _digest(content: Content | None) -> str | None:
    return None if content is None else content.digest

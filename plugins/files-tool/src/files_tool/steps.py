"""Steps made together: all of them, or none."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from files_tool.confined import opened_folder
from files_tool.contents import current
from files_tool.errors import Refused
from files_tool.moves import Move, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from files_tool.places import Place


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

"""What a person was shown is what is done, or nothing is.

Between a question and its answer may lie a night and a restart, and other programs work meanwhile. So what is
shown also says which files it is about and what was in them, by digests. It is kept with the question, and
comes back with the answer. If another program has changed a file by then, the change is another one than the
one that was approved, and it is refused.

Changes that the session itself has made since are no surprise to anybody: a model that edits one file twice
in one answer is asked about both edits before the first is made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from files_tool.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from files_tool.moves import Step
    from files_tool.places import Place

    OwnChanges = Callable[[Place, float], Sequence[tuple[str | None, str | None]]]

BASIS = "basis"
"""Where it stands in a display; None there means that a refusal was shown."""

_AT, _FILES = "at", "files"
_NOTHING = ""


def basis_of(steps: Sequence[Step]) -> dict[str, Any]:
    """Return what steps start from: for each file its content's digest, and when that was so."""
    return {_AT: time.time(), _FILES: {_key(step.place): _digest(step) for step in steps}}


def is_bound(shown: Any) -> bool:
    """Say whether what a person saw says what it started from; of a call that nobody saw there is nothing."""
    return isinstance(shown, Mapping) and BASIS in shown


def check_shown(steps: Sequence[Step], shown: Any, own_changes: OwnChanges) -> None:
    """Let steps pass if they are those that were shown, or if nothing was.

    Args:
        shown: What a person saw before they decided; None if nobody was asked.
        own_changes: Returns what the session itself made of a file since then, before and after.

    Raises:
        Refused: If they are others.
    """
    if not steps or not is_bound(shown):
        return
    basis = shown[BASIS]
    if basis is None:
        raise Refused(
            "this call was shown for approval as one that is refused, so nothing was done: call it again"
        )
    files = basis[_FILES]
    changed = [
        step.place.shown
        for step in steps
        if _key(step.place) not in files or not _led_here(files[_key(step.place)], step, basis, own_changes)
    ]
    if changed:
        raise Refused(
            f"{', '.join(changed)} changed after this call was shown for approval, so nothing was done: "
            "read it again, then call it again"
        )


def _led_here(digest: str, step: Step, basis: Mapping[str, Any], own_changes: OwnChanges) -> bool:
    """Say whether a file is as it was, or as the session's own changes have left it."""
    if digest == _digest(step):
        return True
    for before, after in own_changes(step.place, basis[_AT]):
        if (before or _NOTHING) == digest:
            digest = after or _NOTHING
    return digest == _digest(step)


def _digest(step: Step) -> str:
    return _NOTHING if step.before is None else step.before.digest


def _key(place: Place) -> str:
    """Return a name for a place that is the same wherever it is kept, and no other place's."""
    return sha256(place.absolute.encode(errors="surrogateescape")).hexdigest()[:32]

"""What a walk or a search did not look into, and why: told with the answer, or it would be no true one."""

from __future__ import annotations

import errno
from collections import Counter
from enum import Enum

from files_tool.limits import LARGEST_FILE, MOST_IN_FOLDER, amount


class Why(Enum):
    """Why something was passed over: one of them, and several."""

    LARGE = (f"file over {amount(LARGEST_FILE)}", f"files over {amount(LARGEST_FILE)}")
    NO_TEXT = ("file that is no text", "files that are no text")
    CLOSED_FILE = ("file that cannot be opened", "files that cannot be opened")
    CLOSED_FOLDER = ("folder that cannot be opened", "folders that cannot be opened")
    DEEP_FOLDER = ("folder that lies too deep", "folders that lie too deep")
    FULL_FOLDER = (
        f"folder beyond its first {MOST_IN_FOLDER:,} names",
        f"folders beyond their first {MOST_IN_FOLDER:,} names",
    )


class PassedOver(Exception):  # noqa: N818 - it is counted, and nothing fails
    """A file is not looked into."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.name)
        self.why = why


_GONE = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
"""What was there a moment ago and is not any more, or is a link by now: then it is no part of the answer."""


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
        told = [f"{self._counts[why]} {why.value[self._counts[why] > 1]}" for why in Why if self._counts[why]]
        return [f"[not {verb}: {', '.join(told)}]"] if told else []

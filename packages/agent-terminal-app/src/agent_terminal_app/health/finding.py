"""What a check found. Each answers for itself: one that fails, or never comes back, is a line as well.

They look one after the other. What a check needs is imported by it, strangers' plugins among it, and threads
that import the parts of one package at the same time, each from its own end, are given modules half made:
the interpreter would rather do that than let them wait for each other for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from agent_terminal_app.errors import SettingsError

PATIENCE = 10.0
"""How many seconds a check may take before the next one has its turn."""

CONFIGURATION = "configuration"
"""The check that tells of settings that cannot be read; the others only say that they depend on them."""

Status = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: What was looked at.
        status: How it is.
        detail: What was seen.
        remedy: What to do about it; empty if that is nothing.
    """

    check: str
    status: Status
    detail: str
    remedy: str = ""


Check = Callable[[], Iterable[Finding]]


class Look:
    """A check under way, in a thread of its own, for it may never come back."""

    def __init__(self, name: str, check: Check) -> None:
        self._name = name
        self._check = check
        self._found: list[Finding] = []
        self._worker = threading.Thread(target=self._look, name=f"check {name}", daemon=True)
        self._worker.start()

    def findings(self, patience: float) -> list[Finding]:
        """Return what was found; that it is late is a finding as well."""
        self._worker.join(patience)
        if self._worker.is_alive():
            remedy = "a disk or server may hang: try again, then look at it"
            return [Finding(self._name, "FAIL", "no answer in time", remedy)]
        return [replace(finding, check=finding.check or self._name) for finding in self._found]

    def _look(self) -> None:
        try:
            self._found.extend(self._check())
        except SettingsError as error:
            self._found.append(_unreadable(self._name, error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the report has it
            problem = f"{type(error).__name__}: {error}"
            remedy = "set right what the message names, then look again"
            self._found.append(Finding(self._name, "FAIL", problem, remedy))


def look_at_all(checks: Iterable[tuple[str, Check]], patience: float = PATIENCE) -> list[Finding]:
    """Return what all checks find, in their order; one that takes too long is left behind."""
    return [finding for name, check in checks for finding in Look(name, check).findings(patience)]


def _unreadable(name: str, error: SettingsError) -> Finding:
    """Return what settings mean that cannot be read: a failure once, and that the rest could not be seen."""
    if name == CONFIGURATION:
        return Finding(name, "FAIL", str(error), error.hint or f"correct {error.path}")
    return Finding(name, "WARN", "not looked at", "first correct the configuration")

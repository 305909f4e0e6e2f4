"""What the checks of a plugin came to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a plugin does wrong.

    Attributes:
        check: The check that found it.
        hook: The hook in which it shows.
        problem: What is wrong, in words that help to mend it.
        plugin: The plugin's name.
    """

    check: str
    hook: str
    problem: str
    plugin: str = ""

    def __str__(self) -> str:
        return f"Plugin {self.plugin!r}, hook {self.hook!r}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that was not made, and why."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """The outcome of all checks that there are for a kind of plugin; each is in one of three lists.

    Attributes:
        plugin: The plugin's name.
        kind: provider, extension, feature or tool.
        findings: What is wrong; a check may find several things.
        skipped: The checks that do not apply, each with its reason.
        passed: The names of the checks that found nothing.
    """

    plugin: str
    kind: str
    findings: list[Finding]
    skipped: list[Skipped]
    passed: list[str]

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not self.findings

    def __str__(self) -> str:
        wrong = [f"  {finding.check}: {finding}" for finding in self.findings]
        skipped = [f"  {skip.check}: not checked, {skip.reason}" for skip in self.skipped]
        counts = f"{len(self.passed)} passed, {len(self.skipped)} skipped, {len(self.findings)} findings"
        return "\n".join([f"{self.kind} {self.plugin!r}: {counts}", *wrong, *skipped])


class Fault(NamedTuple):
    """What a check yields; the finding will say which check that was."""

    hook: str
    problem: str


Faults = Iterator[Fault]


class NotApplicable(Exception):  # noqa: N818  # not an error: the check is skipped
    """Raised by a check that has nothing to check here; its text is the reason."""

"""What could be granted, so that a call need not be asked for again.

The exact thing and the whole tool are always worth offering. What lies between them (every `git status`,
everything in a folder) only the tool can cut well: a beginning of a text that looks harmless may not be.
So a tool plugin may have a method `permission_suggestions(tool_name, arguments)`, which returns globs for
what its `permission_subjects` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.frozen import thaw
from agent_core.log import get_logger
from agent_runtime.errors import SpecError
from agent_runtime.permissions.call_patterns import CallPattern
from agent_runtime.permissions.rules import Rule
from agent_runtime.permissions.subjects import read_subjects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_runtime.permissions.rules import Permissions
    from agent_runtime.permissions.subjects import Subject
    from agent_runtime.phases import CallView

_LONGEST = 1000
_MOST = 20
_log = get_logger("permissions")


def suggestions(permissions: Permissions, call: CallView) -> list[str]:
    """Return patterns that, granted, would each let this very call run: the narrowest first."""
    return [pattern.text for pattern in _narrowest_first(call) if _would_run(permissions, call, [pattern])]


def together(permissions: Permissions, call: CallView) -> list[str]:
    """Return patterns that would let a call about several things run once all of them are granted.

    Each is the family of one thing, if the tool knows any, or that very thing. Empty if one is enough.
    """
    patterns = _narrowest_first(call)
    chosen: dict[str, CallPattern] = {}
    for subject in read_subjects(call).each:
        best = _best_for(subject, patterns)
        if best is None:
            return []
        chosen[best.text] = best
    for pattern in list(chosen.values()):  # some of it may be allowed already
        others = [one for one in chosen.values() if one is not pattern]
        if _would_run(permissions, call, others):
            del chosen[pattern.text]
    enough = _would_run(permissions, call, list(chosen.values()))
    return list(chosen) if enough and len(chosen) > 1 else []


def _would_run(permissions: Permissions, call: CallView, granted: Sequence[CallPattern]) -> bool:
    rules = [Rule("allow", pattern) for pattern in granted]
    return permissions.with_granted(rules).decide(call).effect == "allow"


def _best_for(subject: Subject, patterns: Sequence[CallPattern]) -> CallPattern | None:
    fitting = [one for one in patterns if one.subject is not None and subject.surely(one.subject)]
    families = [one for one in fitting if one.subject is not None and not one.subject.is_literal]
    return next(iter([*families, *fitting]), None)


def _narrowest_first(call: CallView) -> list[CallPattern]:
    patterns = {pattern.text: pattern for pattern in _patterns(call)}
    return sorted(patterns.values(), key=lambda pattern: pattern.specificity, reverse=True)


def _patterns(call: CallView) -> Iterator[CallPattern]:
    for subject in read_subjects(call).each[:_MOST]:
        if 0 < len(subject.text) <= _LONGEST:
            yield CallPattern.exact(call.name, subject.text)
    for glob in _told(call)[:_MOST]:
        try:
            pattern = CallPattern.about(call.name, glob)
        except SpecError as error:
            _log.warning("suggestion_ignored", tool=call.name, error=str(error))
            continue
        if pattern.subject is not None and pattern.subject.literal_length:  # else it is the whole tool
            yield pattern
    yield CallPattern.exact(call.name)


def _told(call: CallView) -> list[str]:
    """Return the globs that the tool has for the call; none if it has no such method, or that fails."""
    tell: Any = getattr(call.tool, "permission_suggestions", None)
    if not callable(tell):
        return []
    try:
        told = tell(call.name, thaw(call.arguments))
    except Exception as error:  # noqa: BLE001 - a plugin's code
        _log.warning("suggestions_failed", tool=call.name, error=repr(error))
        return []
    if not isinstance(told, (list, tuple)):
        _log.warning("suggestions_failed", tool=call.name, error=f"a {type(told).__name__}, not a list")
        return []
    return [glob for glob in told if isinstance(glob, str) and 0 < len(glob) <= _LONGEST]

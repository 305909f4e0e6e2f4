"""A plugin's `display` payload, checked field by field: what comes out is safe to render.

Only the result of a plugin's action may carry such a payload. Text from a model or a tool never
becomes one; that is for the caller to see to, since the validator cannot know where a dict was born.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from agent_core.display.body import read_body
from agent_core.display.fields import (
    Warn,
    boolean,
    choice,
    identifier,
    is_object,
    kind_of,
    known_fields,
    line,
)
from agent_core.display.follow_ups import Runnable, read_follow_ups

MAX_TITLE: Final = 200

_HINTS = ("title", "variant", "presentation", "dismissible", "display_id")
_KEYS = ("format", "body", *_HINTS, "actions")
_FORMATS = ("text", "markdown")
_VARIANTS = ("info", "success", "warning", "error")
_PRESENTATIONS = ("modal", "inline", "banner")


@dataclass(frozen=True, slots=True)
class DisplayReport:
    """What may be shown, and what had to be dropped or changed on the way.

    Attributes:
        display: The cleaned payload, or None when there is nothing to show.
        warnings: One for each finding, beginning with the field: ``actions[2].url: …``.
    """

    display: dict[str, Any] | None
    warnings: tuple[str, ...]


def validate_display(payload: object, *, runnable: Runnable | None = None) -> DisplayReport:
    """Check and clean a plugin's display payload; bad data never raises.

    Args:
        runnable: Called with a plugin and an action id; a `run_action` for which it says no is
            dropped.
    """
    warnings: list[str] = []
    display = _read(payload, runnable, lambda field, problem: warnings.append(f"{field}: {problem}"))
    return DisplayReport(display, tuple(warnings))


def _read(payload: object, runnable: Runnable | None, warn: Warn) -> dict[str, Any] | None:
    if not is_object(payload):
        warn("display", f"dropped, since it is {kind_of(payload)} and no object")
        return None
    given = known_fields(payload, _KEYS, "", warn)
    text_format = choice(given.get("format", "text"), "format", _FORMATS, warn) or "text"
    body = read_body(given.get("body"), text_format, warn)
    if body is None:
        return None
    hints = {key: _hint(key, given[key], warn) for key in _HINTS if key in given}
    actions = read_follow_ups(given.get("actions", []), runnable, warn)
    display = {"format": text_format, "body": body, **hints, "actions": actions or None}
    return {key: value for key, value in display.items() if value is not None}


def _hint(key: str, value: object, warn: Warn) -> str | bool | None:
    match key:
        case "title":
            return line(value, key, MAX_TITLE, warn)
        case "variant":
            return choice(value, key, _VARIANTS, warn)
        case "presentation":
            return choice(value, key, _PRESENTATIONS, warn)
        case "dismissible":
            return boolean(value, key, warn)
        case _:
            return identifier(value, key, warn)

"""A plugin's `display` payload, checked field by field: what comes out is safe to render.

Only the result of a plugin's action may carry such a payload. Text from a model or a tool never
becomes one. The caller must see to that, since the validator cannot know where a dict comes from. What
a tool shows of its result is simpler: a payload with a type and its content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from agent_core.clean_text import clean, cut, size
from agent_core.display.markdown import UrlRefusedError, neutral, plain_url
from agent_core.encoding import canonical
from agent_core.frozen import Dicts, FrozenDict, FrozenList, JsonObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# Reading one field of a plugin's dict: the value if it is usable, else None and a warning.
#
# Types are exact. A subclass may run code of its own when it is compared or printed, and nothing that
# a plugin sends may do so here; only our own frozen containers count as dict and list.

Warn = Callable[[str, str], None]
"""Called with the name of a field and what was dropped or changed there."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KINDS = {
    type(None): "missing or null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    FrozenList: "an array",
    dict: "an object",
    FrozenDict: "an object",
}
_UNKNOWN_NAMED = 8  # a payload may have a million keys, the log must not


def kind_of(value: object) -> str:
    """Name the JSON type of *value* for a warning."""
    return _KINDS.get(type(value), "something that is not JSON")


def is_object(value: object) -> TypeGuard[dict[Any, Any]]:
    return type(value) in (dict, FrozenDict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    return type(value) in (list, FrozenList)


def known_fields(given: dict[Any, Any], known: Collection[str], where: str, warn: Warn) -> JsonObject:
    """Return the fields of *given* that are *known*; the others are named in warnings."""
    unknown = [key for key in given if type(key) is not str or key not in known]
    for key in unknown[:_UNKNOWN_NAMED]:
        warn(_name(where, key), "unknown field dropped")
    if len(unknown) > _UNKNOWN_NAMED:
        warn(_name(where, "*"), f"{len(unknown) - _UNKNOWN_NAMED} more unknown fields dropped")
    return {key: given[key] for key in known if key in given}


def choice(value: object, field: str, allowed: Collection[str], warn: Warn) -> str | None:
    """Return *value* if it is one of the *allowed* words."""
    if type(value) is str and value in allowed:
        return value
    warn(field, f"dropped, since it is none of {', '.join(allowed)}")
    return None


def boolean(value: object, field: str, warn: Warn) -> bool | None:
    if type(value) is bool:
        return value
    warn(field, f"dropped: it must be a boolean, not {kind_of(value)}")
    return None


def identifier(value: object, field: str, warn: Warn) -> str | None:
    """Return *value* if it can name a plugin, an action or a display."""
    if type(value) is str and _ID.fullmatch(value):
        return value
    warn(field, f"dropped: it must be an id ({_ID.pattern})")
    return None


def string(value: object, field: str, warn: Warn) -> str | None:
    """Return *value* without unseen characters if it is a string that then still says something."""
    if type(value) is not str:
        warn(field, f"dropped: it must be a string, not {kind_of(value)}")
        return None
    text = clean(value)
    if text != value:
        warn(field, "control characters or direction marks removed")
    if not text.strip():
        warn(field, "dropped, since it is empty")
        return None
    return text


def line(value: object, field: str, limit: int, warn: Warn) -> str | None:
    """Return *value* as one line of at most *limit* characters."""
    text = string(value, field, warn)
    if text is None:
        return None
    joined = " ".join(text.split())
    if joined != text:
        warn(field, "white space collapsed to single spaces")
    if len(joined) <= limit:
        return joined
    warn(field, f"shortened to {limit} characters")
    return joined[: limit - 1].rstrip() + "…"


def _name(where: str, key: object) -> str:
    # A key comes from a plugin too, and it goes to a log.
    if type(key) is not str:
        return f"{where}<{kind_of(key)}>"
    return where + (clean(" ".join(key[:200].split()))[:40] or "<empty>")


# The body of a display: cleaned, made harmless if it is markdown, and cut to size.

MAX_BODY: Final = 64 * 1024
TRUNCATED: Final = "\n\n… (truncated)"


def read_body(value: object, text_format: str, warn: Warn) -> str | None:
    """Return what can be shown of a body, or None if that is nothing."""
    text = string(value, "body", warn)
    if text is None:
        return None
    shown, findings = _shown(text, text_format)
    if size(shown) > MAX_BODY:
        warn("body", f"truncated to {MAX_BODY // 1024} kB")
        shown, findings = _shortened(text, text_format)
    for finding in findings:
        warn("body", finding)
    return shown


def _shown(text: str, text_format: str) -> tuple[str, list[str]]:
    fits = size(text) <= MAX_BODY  # what is cut anyway is not worth reading
    return neutral(text) if fits and text_format == "markdown" else (text, [])


def _shortened(text: str, text_format: str) -> tuple[str, list[str]]:
    # Escapes make text longer, at most sixfold, but only trying shows by how much.
    keep = MAX_BODY
    while True:
        beginning = cut(text, keep - size(TRUNCATED)) + TRUNCATED
        shown, findings = _shown(beginning, text_format)
        if size(shown) <= MAX_BODY:
            return shown, findings
        keep = min(keep * 5 // 6, keep * MAX_BODY // size(shown))


# The parameters of a `run_action`: plain JSON, small enough to travel with a display.

MAX_PARAMS: Final = 8 * 1024
MAX_DEPTH: Final = 16

_INTEGERS = range(-(2**63), 2**63)  # what every JSON encoder of ours can write


class _NotJsonError(ValueError):
    """A value cannot be written as JSON; the message says why."""


def read_params(value: object, field: str, warn: Warn) -> JsonObject | None:
    """Return a copy of the parameters, or None when they are not a small JSON object."""
    try:
        params = _copy(value, MAX_DEPTH, count())
    except _NotJsonError as problem:
        warn(field, f"action dropped: {problem}")
        return None
    if not isinstance(params, dict) or len(canonical(params)) > MAX_PARAMS:
        warn(field, f"action dropped, since it must be an object of at most {MAX_PARAMS // 1024} kB")
        return None
    if params != value:
        warn(field, "control characters or direction marks removed")
    return params


def _copy(value: object, depth: int, nodes: Iterator[int]) -> object:
    if depth == 0:
        raise _NotJsonError(f"nested deeper than {MAX_DEPTH} levels")
    if next(nodes) > MAX_PARAMS:  # each takes a byte at least; one list put many times into another adds up
        raise _NotJsonError(f"more than {MAX_PARAMS // 1024} kB")
    if is_object(value):
        return {_key(key): _copy(item, depth - 1, nodes) for key, item in value.items()}
    if is_array(value):
        return [_copy(item, depth - 1, nodes) for item in value]
    return _scalar(value)


def _key(key: object) -> str:
    if type(key) is not str:
        raise _NotJsonError(f"a key must be a string, not {kind_of(key)}")
    return clean(key)


def _scalar(value: object) -> object:
    if type(value) is str:
        return clean(value)
    if value is None or type(value) is bool:
        return value
    if type(value) is int and value in _INTEGERS:
        return value
    if type(value) is float and abs(value) < float("inf"):
        return value
    raise _NotJsonError(f"a value is {kind_of(value)} and cannot be written as JSON")


# The follow-up actions of a display: open a page, copy a text, run a plugin's action.
#
# A follow-up is offered whole or not at all. Half of one, say a `run_action` without the parameters
# that its plugin meant, could do something else than its label says.

Runnable = Callable[[str, str], bool]
"""Whether an action, by plugin and action id, may be run from here."""

MAX_ACTIONS: Final = 8
MAX_LABEL: Final = 80
MAX_COPY: Final = 8 * 1024

_ACTION_KEYS = {
    "open_url": ("kind", "id", "label", "url"),
    "copy_text": ("kind", "id", "label", "text"),
    "run_action": ("kind", "id", "label", "plugin", "action_id", "params", "preserve_display"),
}


def read_follow_ups(value: object, runnable: Runnable | None, warn: Warn) -> Dicts:
    """Return the usable ones among a display's follow-up actions."""
    if not is_array(value):
        warn("actions", f"dropped: it must be an array, not {kind_of(value)}")
        return []
    if len(value) > MAX_ACTIONS:
        warn("actions", f"only the first {MAX_ACTIONS} of {len(value)} are kept")
    usable: dict[str, JsonObject] = {}
    for index, item in enumerate(value[:MAX_ACTIONS]):
        where = f"actions[{index}]"
        action = _read_follow_up(item, where, runnable, warn)
        if action is not None and action["id"] in usable:
            warn(f"{where}.id", "action dropped, since another one has that id")
        elif action is not None:
            usable[action["id"]] = action
    return list(usable.values())


def _read_follow_up(item: object, where: str, runnable: Runnable | None, warn: Warn) -> JsonObject | None:
    if not is_object(item):
        warn(where, f"dropped: it must be an object, not {kind_of(item)}")
        return None
    kind = choice(item.get("kind"), f"{where}.kind", _ACTION_KEYS, warn)
    if kind is None:
        return None
    given = known_fields(item, _ACTION_KEYS[kind], f"{where}.", warn)
    action = {
        "kind": kind,
        "id": identifier(given.get("id"), f"{where}.id", warn),
        "label": line(given.get("label"), f"{where}.label", MAX_LABEL, warn),
        **_own_fields(kind, given, where, runnable, warn),
    }
    return None if None in action.values() else action


def _own_fields(
    kind: str, given: JsonObject, where: str, runnable: Runnable | None, warn: Warn
) -> JsonObject:
    """Return the fields that only this kind has; None marks one that cannot be used."""
    if kind == "open_url":
        return {"url": read_url(given.get("url"), f"{where}.url", warn)}
    if kind == "copy_text":
        return {"text": _copy_text(given.get("text"), f"{where}.text", warn)}
    return _run_action(given, where, runnable, warn)


def read_url(value: object, field: str, warn: Warn) -> str | None:
    if type(value) is not str:
        warn(field, f"dropped: it must be a string, not {kind_of(value)}")
        return None
    try:
        url = plain_url(value)
    except UrlRefusedError as refusal:
        warn(field, f"action dropped: {refusal}")
        return None
    if url != value:
        warn(field, "rewritten in its plain spelling")
    return url


def _copy_text(value: object, field: str, warn: Warn) -> str | None:
    text = string(value, field, warn)
    if text is not None and size(text) > MAX_COPY:
        warn(field, f"action dropped, since the text is longer than {MAX_COPY // 1024} kB")
        return None
    return text


def _run_action(given: JsonObject, where: str, runnable: Runnable | None, warn: Warn) -> JsonObject:
    plugin = identifier(given.get("plugin"), f"{where}.plugin", warn)
    action_id = identifier(given.get("action_id"), f"{where}.action_id", warn)
    if plugin and action_id and runnable is not None and not runnable(plugin, action_id):
        warn(where, f"dropped, since action {action_id!r} of plugin {plugin!r} cannot be run here")
        action_id = None
    fields: JsonObject = {"plugin": plugin, "action_id": action_id}
    if "params" in given:
        fields["params"] = read_params(given["params"], f"{where}.params", warn)
    if "preserve_display" in given:
        keep = boolean(given["preserve_display"], f"{where}.preserve_display", warn)
        fields |= {} if keep is None else {"preserve_display": keep}
    return fields


MAX_TITLE: Final = 200

_HINTS = ("title", "variant", "presentation", "dismissible", "display_id")
_KEYS = ("format", "body", *_HINTS, "actions")
_FORMATS = ("text", "markdown")
VARIANTS = ("info", "success", "warning", "error")
PRESENTATIONS = ("modal", "inline", "banner")


@dataclass(frozen=True, slots=True)
class DisplayReport:
    """What may be shown, and what had to be dropped or changed on the way.

    Attributes:
        display: The cleaned payload, or None when there is nothing to show.
        warnings: One for each finding, beginning with the field: ``actions[2].url: …``.
    """

    display: JsonObject | None
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


def _read(payload: object, runnable: Runnable | None, warn: Warn) -> JsonObject | None:
    if not is_object(payload):
        warn("display", f"dropped: it must be an object, not {kind_of(payload)}")
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
            return choice(value, key, VARIANTS, warn)
        case "presentation":
            return choice(value, key, PRESENTATIONS, warn)
        case "dismissible":
            return boolean(value, key, warn)
        case _:
            return identifier(value, key, warn)


TOOL_DISPLAY_TYPES = ("text", "markdown", "diff", "table", "json", "progress", "image", "code")


def clean_tool_display(payload: Mapping[str, object]) -> JsonObject:
    """Return a tool's display with its text safe to print; an unknown type is shown as text.

    Front ends render by type and nothing else, so a tool cannot bring markup of its own.
    """
    shown: JsonObject = _clean(dict(payload))
    if shown.get("type") not in TOOL_DISPLAY_TYPES:
        shown["type"] = "text"
    return shown


def _clean(value: object) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, (list, tuple)) else value

"""The vocabulary of front ends: which elements a plugin can ask for, which dialogs, and which effects.

Plugins send dicts, which are read here as `display` payloads are: what is wrong is left out and named, bad
data never raises. A type of element or effect that is not listed is passed on, if it is plain data, for front
ends of somebody's own; one that does not know it says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_core.clean_text import size
from agent_core.display.payload import (
    MAX_LABEL,
    MAX_TITLE,
    VARIANTS,
    Warn,
    boolean,
    choice,
    identifier,
    is_array,
    is_object,
    kind_of,
    known_fields,
    line,
    read_params,
    read_url,
    string,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_core.frozen import Dicts, JsonObject

ACTION_ELEMENTS: Final = (
    "session_action",
    "message_action",
    "composer_action",
    "session_list_action",
    "application_action",
)
"""Elements that run an action: for a session, a message, what is being written, a session of a list, and the
whole application."""
COLLECTION: Final = "collection"
"""A list of things that a plugin keeps: its action returns them, others do something with one of them."""
ELEMENT_TYPES: Final = ("config", *ACTION_ELEMENTS, COLLECTION)
"""All elements; `config` is one for a setting."""
DIALOG_KINDS: Final = ("form", "confirm")
INPUT_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "any")
WIDGETS: Final = ("text", "textarea", "password", "number", "checkbox", "select", "session", "file")
"""How an input can be asked for."""
EFFECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "toast": ("text", "variant"),
    "open_session": ("session_id",),
    "reload": ("what",),
    "navigate": ("to",),
    "open_url": ("url",),
    "set_input": ("text",),
}
"""What an action can want of a front end, and the fields of each."""
RELOADS: Final = ("session", "sessions", "all")
PLACES: Final = ("sessions", "settings", "plugins", "models", "agents")
"""Where `navigate` can lead."""
_ALIASES = {"switch_session": "open_session", "refresh": "reload"}

_MOST_INPUTS, _MOST_OPTIONS, _MOST_EFFECTS = 50, 200, 20
_LONGEST_TEXT = 8 * 1024
_LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class ElementReport:
    """An element as front ends may show it, and what had to be dropped or changed.

    Attributes:
        element: None if nothing of it can be used.
        warnings: One for each finding, beginning with the field.
    """

    element: JsonObject | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffectsReport:
    """The effects that front ends can read, and what had to be dropped or changed."""

    effects: Dicts
    warnings: tuple[str, ...]


def validate_element(given: object) -> ElementReport:
    """Check and clean an element of `get_ui_elements`; fields that are not ours stay as they are."""
    warnings: list[str] = []
    element = _read_element(given, lambda field, problem: warnings.append(f"{field}: {problem}"))
    return ElementReport(element, tuple(warnings))


def validate_effects(given: object) -> EffectsReport:
    """Check and clean the `ui_effects` of an action's result."""
    warnings: list[str] = []

    def warn(field: str, problem: str) -> None:
        warnings.append(f"{field}: {problem}")

    if not is_array(given):
        warn("ui_effects", f"dropped: it must be an array, not {kind_of(given)}")
        return EffectsReport([], tuple(warnings))
    if len(given) > _MOST_EFFECTS:
        warn("ui_effects", f"only the first {_MOST_EFFECTS} of {len(given)} are kept")
    read = (
        _read_effect(one, f"ui_effects[{place}]", warn) for place, one in enumerate(given[:_MOST_EFFECTS])
    )
    return EffectsReport([one for one in read if one is not None], tuple(warnings))


# Elements


def _read_element(given: object, warn: Warn) -> JsonObject | None:
    if not is_object(given):
        warn("element", f"dropped: it must be an object, not {kind_of(given)}")
        return None
    element: JsonObject = dict(given)
    kind = element.get("ui_type", "config")
    if type(kind) is not str or not kind:
        warn("ui_type", "dropped, since it must be a name")
        return None
    _set(element, "label", lambda value: line(value, "label", MAX_LABEL, warn))
    _set(element, "description", lambda value: line(value, "description", _LONGEST_LINE, warn))
    _set(element, "icon", lambda value: identifier(value, "icon", warn))
    _set(element, "order", lambda value: _number(value, "order", warn))
    _set(element, "dialog", lambda value: _read_dialog(value, warn))
    if kind == COLLECTION:
        _set(element, "item_actions", lambda value: _identifiers(value, "item_actions", warn))
    if kind in (*ACTION_ELEMENTS, COLLECTION):
        _set(element, "action_id", lambda value: identifier(value, "action_id", warn))
        if "action_id" not in element:
            warn("action_id", f"the element is dropped: a {kind} runs an action")
            return None
    if kind == "config":
        _set(element, "widget", lambda value: choice(value, "widget", WIDGETS, warn))
    return element


def _set(element: JsonObject, key: str, read: Callable[[object], object]) -> None:
    """Read a field in place of what was given; one that cannot be used is left out."""
    if key not in element:
        return
    value = read(element[key])
    if value is None:
        del element[key]
    else:
        element[key] = value


def _identifiers(value: object, field: str, warn: Warn) -> list[str] | None:
    if not is_array(value):
        warn(field, f"dropped: it must be an array, not {kind_of(value)}")
        return None
    read = (identifier(one, f"{field}[{place}]", warn) for place, one in enumerate(value))
    return [one for one in read if one is not None]


def _number(value: object, field: str, warn: Warn) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
        return value
    warn(field, f"dropped: it must be a number, not {kind_of(value)}")
    return None


def _read_dialog(given: object, warn: Warn) -> JsonObject | None:
    if not is_object(given):
        warn("dialog", f"dropped: it must be an object, not {kind_of(given)}")
        return None
    given = known_fields(given, ("kind", "title", "body", "confirm", "inputs"), "dialog.", warn)
    dialog: JsonObject = {
        "kind": choice(given.get("kind", "form"), "dialog.kind", DIALOG_KINDS, warn) or "form"
    }
    if "title" in given:
        dialog["title"] = line(given["title"], "dialog.title", MAX_TITLE, warn)
    if "body" in given:
        dialog["body"] = _text(given["body"], "dialog.body", warn)
    confirm = given.get("confirm")
    if confirm is not None and type(confirm) is not bool:
        confirm = line(confirm, "dialog.confirm", MAX_TITLE, warn)
    dialog["confirm"] = confirm or (dialog["kind"] == "confirm" or None)
    dialog["inputs"] = _read_inputs(given.get("inputs", []), warn)
    return {key: value for key, value in dialog.items() if value is not None}


def _read_inputs(given: object, warn: Warn) -> Dicts:
    if not is_array(given):
        warn("dialog.inputs", f"dropped: it must be an array, not {kind_of(given)}")
        return []
    if len(given) > _MOST_INPUTS:
        warn("dialog.inputs", f"only the first {_MOST_INPUTS} of {len(given)} are kept")
    read = (
        _read_input(one, f"dialog.inputs[{place}]", warn) for place, one in enumerate(given[:_MOST_INPUTS])
    )
    return [one for one in read if one is not None]


INPUT_FIELDS: Final = (
    "name", "label", "description", "placeholder", "type", "widget", "required", "default", "options",
)  # fmt: skip
"""What a dialog says of one input."""


def _read_input(given: object, where: str, warn: Warn) -> JsonObject | None:
    if not is_object(given):
        warn(where, f"dropped: it must be an object, not {kind_of(given)}")
        return None
    known = known_fields(given, INPUT_FIELDS, f"{where}.", warn)
    found = {key: _read_input_field(key, value, f"{where}.{key}", warn) for key, value in known.items()}
    if "name" not in known:
        warn(f"{where}.name", "the input is dropped, since it has no name")
    if found.get("name") is None:
        return None
    return {key: value for key, value in found.items() if value is not None}


def _read_input_field(key: str, value: object, field: str, warn: Warn) -> object:
    match key:
        case "type":
            return choice(value, field, INPUT_TYPES, warn)
        case "widget":
            return choice(value, field, WIDGETS, warn)
        case "required":
            return boolean(value, field, warn)
        case "default":
            return _plain({"value": value}, field, warn)
        case "options":
            return _read_options(value, field, warn)
        case _:
            return line(value, field, _INPUT_TEXTS[key], warn)


_INPUT_TEXTS = {
    "name": MAX_TITLE, "label": MAX_LABEL, "description": _LONGEST_LINE, "placeholder": MAX_LABEL,
}  # fmt: skip


def _plain(given: JsonObject, field: str, warn: Warn) -> object:
    copied = read_params(given, field, lambda where, problem: warn(where, problem.removeprefix("action ")))
    return None if copied is None else copied["value"]


def _read_options(given: object, field: str, warn: Warn) -> list[object] | None:
    if not is_array(given):
        warn(field, f"dropped: it must be an array, not {kind_of(given)}")
        return None
    if len(given) > _MOST_OPTIONS:
        warn(field, f"only the first {_MOST_OPTIONS} of {len(given)} are kept")
    options = _plain({"value": given[:_MOST_OPTIONS]}, field, warn)
    return options if isinstance(options, list) else None


def _text(value: object, field: str, warn: Warn) -> str | None:
    text = string(value, field, warn)
    if text is not None and size(text) > _LONGEST_TEXT:
        warn(field, f"dropped, since it is longer than {_LONGEST_TEXT // 1024} kB")
        return None
    return text


# Effects


def _read_effect(given: object, where: str, warn: Warn) -> JsonObject | None:
    if not is_object(given):
        warn(where, f"dropped: it must be an object, not {kind_of(given)}")
        return None
    kind = identifier(given.get("type"), f"{where}.type", warn)
    if kind is None:
        return None
    kind = _ALIASES.get(kind, kind)
    if kind not in EFFECTS:
        copied = _plain({"value": given}, where, warn)
        return {**copied, "type": kind} if isinstance(copied, dict) else None
    known = known_fields(given, ("type", *EFFECTS[kind]), f"{where}.", warn)
    read = {
        key: _read_effect_field(kind, key, value, f"{where}.{key}", warn)
        for key, value in known.items()
        if key != "type"
    }
    effect = {"type": kind, **{key: value for key, value in read.items() if value is not None}}
    missing = [key for key in EFFECTS[kind] if key not in ("variant", "what") and key not in effect]
    if missing:
        warn(where, f"dropped: {kind} needs {', '.join(missing)}")
        return None
    return effect


def _read_effect_field(kind: str, key: str, value: object, field: str, warn: Warn) -> object:
    match key:
        case "variant":
            return choice(value, field, VARIANTS, warn)
        case "what":
            return choice(value, field, RELOADS, warn)
        case "to":
            return choice(value, field, PLACES, warn)
        case "url":
            return read_url(value, field, lambda where, problem: warn(where, problem.removeprefix("action ")))
        case "session_id":
            return line(value, field, _LONGEST_LINE, warn)
        case _:
            return line(value, field, _LONGEST_LINE, warn) if kind == "toast" else _text(value, field, warn)

"""The follow-up actions of a display: open a page, copy a text, run a plugin's action.

A follow-up is offered whole or not at all. Half of one, say a `run_action` without the parameters
that its plugin meant, could do something else than its label says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agent_core.display.fields import (
    Warn,
    boolean,
    choice,
    identifier,
    is_array,
    is_object,
    kind_of,
    known_fields,
    line,
    string,
)
from agent_core.display.links import UrlRefusedError, plain_url
from agent_core.display.params import read_params
from agent_core.display.text import size

Runnable = Callable[[str, str], bool]
"""Whether an action, by plugin and action id, may be run from here."""

MAX_ACTIONS: Final = 8
MAX_LABEL: Final = 80
MAX_COPY: Final = 8 * 1024

_KEYS = {
    "open_url": ("kind", "id", "label", "url"),
    "copy_text": ("kind", "id", "label", "text"),
    "run_action": ("kind", "id", "label", "plugin", "action_id", "params", "preserve_display"),
}


def read_follow_ups(value: object, runnable: Runnable | None, warn: Warn) -> list[dict[str, Any]]:
    """Return the usable ones among a display's follow-up actions."""
    if not is_array(value):
        warn("actions", f"dropped, since it is {kind_of(value)} and no array")
        return []
    if len(value) > MAX_ACTIONS:
        warn("actions", f"only the first {MAX_ACTIONS} of {len(value)} are kept")
    usable: dict[str, dict[str, Any]] = {}
    for index, item in enumerate(value[:MAX_ACTIONS]):
        where = f"actions[{index}]"
        action = _read(item, where, runnable, warn)
        if action is not None and action["id"] in usable:
            warn(f"{where}.id", "action dropped, since another one has that id")
        elif action is not None:
            usable[action["id"]] = action
    return list(usable.values())


def _read(item: object, where: str, runnable: Runnable | None, warn: Warn) -> dict[str, Any] | None:
    if not is_object(item):
        warn(where, f"dropped, since it is {kind_of(item)} and no object")
        return None
    kind = choice(item.get("kind"), f"{where}.kind", _KEYS, warn)
    if kind is None:
        return None
    given = known_fields(item, _KEYS[kind], f"{where}.", warn)
    action = {
        "kind": kind,
        "id": identifier(given.get("id"), f"{where}.id", warn),
        "label": line(given.get("label"), f"{where}.label", MAX_LABEL, warn),
        **_own_fields(kind, given, where, runnable, warn),
    }
    return None if None in action.values() else action


def _own_fields(
    kind: str, given: dict[str, Any], where: str, runnable: Runnable | None, warn: Warn
) -> dict[str, Any]:
    """Return the fields that only this kind has; None marks one that cannot be used."""
    if kind == "open_url":
        return {"url": _url(given.get("url"), f"{where}.url", warn)}
    if kind == "copy_text":
        return {"text": _copy_text(given.get("text"), f"{where}.text", warn)}
    return _run_action(given, where, runnable, warn)


def _url(value: object, field: str, warn: Warn) -> str | None:
    if type(value) is not str:
        warn(field, f"dropped, since it is {kind_of(value)} and no string")
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


def _run_action(given: dict[str, Any], where: str, runnable: Runnable | None, warn: Warn) -> dict[str, Any]:
    plugin = identifier(given.get("plugin"), f"{where}.plugin", warn)
    action_id = identifier(given.get("action_id"), f"{where}.action_id", warn)
    if plugin and action_id and runnable is not None and not runnable(plugin, action_id):
        warn(where, f"dropped, since action {action_id!r} of plugin {plugin!r} cannot be run here")
        action_id = None
    fields: dict[str, Any] = {"plugin": plugin, "action_id": action_id}
    if "params" in given:
        fields["params"] = read_params(given["params"], f"{where}.params", warn)
    if "preserve_display" in given:
        keep = boolean(given["preserve_display"], f"{where}.preserve_display", warn)
        fields |= {} if keep is None else {"preserve_display": keep}
    return fields

"""Reading single fields of a wire value; errors name the field and the kind found, never its value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.errors import ToolError

_SHOWN_KEYS = 12
_SHOWN_LENGTH = 40


def kind_of(value: Any) -> str:
    """Say what *value* is in the words of JSON: "a list", "an object", "nothing"."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def outline(value: Any) -> str:
    """Say what *value* looks like without telling anything that is in it."""
    if not isinstance(value, Mapping):
        return kind_of(value)
    if not value:
        return "an object without keys"
    keys = [repr(str(key)[:_SHOWN_LENGTH]) for key in value]
    shown = ", ".join(keys[:_SHOWN_KEYS])
    return f"an object with the keys {shown}" + (", …" if len(keys) > _SHOWN_KEYS else "")


def has_type(value: Any, name: str) -> bool:
    """Whether *value* is an object whose ``type`` is *name*."""
    return isinstance(value, Mapping) and value.get("type") == name


def name_in(value: Mapping[str, Any], field: str = "name") -> str:
    """Return the tool's name.

    Raises:
        ToolError: If it is missing, blank or no text.
    """
    name = value.get("name")
    if isinstance(name, str) and name.strip():
        return name
    found = "blank text" if isinstance(name, str) else kind_of(name)
    raise ToolError(None, f"{field!r} must be the name of a tool, got {found}")


def id_in(value: Mapping[str, Any], field: str) -> str | None:
    """Return the id under *field*; an empty one is none.

    Raises:
        ToolError: If it is no text: an id that is not quoted exactly answers nothing.
    """
    found = value.get(field)
    if found is None or isinstance(found, str):
        return found or None
    raise ToolError(None, f"{field!r} must be text, got {kind_of(found)}")


def text_in(value: Mapping[str, Any], field: str) -> str:
    """Return the text under *field*, or "" when there is none.

    Raises:
        ToolError: If something else is there.
    """
    found = value.get(field)
    if found is None or isinstance(found, str):
        return found or ""
    raise ToolError(None, f"{field!r} must be text, got {kind_of(found)}")


def leftovers(value: Mapping[str, Any], *known: str, **inner: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are not *known*, and those of inner objects under the inner's name."""
    outer = {key: item for key, item in value.items() if key not in known}
    return outer | {key: item for key, item in inner.items() if item}


def with_id(field: str, call_id: str | None) -> dict[str, Any]:
    """Return the id as a field, or no field: ids are never invented here."""
    return {} if call_id is None else {field: call_id}


def lacks_id(raw: Mapping[str, Any], field: str, call_id: str | None) -> bool:
    """Whether *raw* has no id of its own although one is known."""
    return call_id is not None and not raw.get(field)

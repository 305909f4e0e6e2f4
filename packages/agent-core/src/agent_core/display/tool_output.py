"""What a tool shows of its result: a payload with a type and its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_core.display.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL_DISPLAY_TYPES = ("text", "markdown", "diff", "table", "json", "progress", "image", "code")


def clean_tool_display(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's display with its text safe to print; an unknown type is shown as text.

    Front ends render by type and nothing else, so a tool cannot bring markup of its own.
    """
    shown: dict[str, Any] = _clean(dict(payload))
    if shown.get("type") not in TOOL_DISPLAY_TYPES:
        shown["type"] = "text"
    return shown


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, (list, tuple)) else value

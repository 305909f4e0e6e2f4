"""The one door through which what a plugin wants shown reaches a front end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_core.display.elements import EffectsReport, ElementReport, validate_effects, validate_element
    from agent_core.display.payload import (
        TOOL_DISPLAY_TYPES,
        DisplayReport,
        clean_tool_display,
        validate_display,
    )

__all__ = [
    "TOOL_DISPLAY_TYPES",
    "DisplayReport",
    "EffectsReport",
    "ElementReport",
    "clean_tool_display",
    "validate_display",
    "validate_effects",
    "validate_element",
]

HOMES = {
    "agent_core.display.elements": ("EffectsReport", "ElementReport", "validate_effects", "validate_element"),
    "agent_core.display.payload": (
        "TOOL_DISPLAY_TYPES",
        "DisplayReport",
        "clean_tool_display",
        "validate_display",
    ),
}
__getattr__ = lazy_names(__name__, HOMES)

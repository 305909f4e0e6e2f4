"""The one door through which a plugin's `display` payload reaches a front end."""

from __future__ import annotations

from agent_core.display.payload import TOOL_DISPLAY_TYPES, DisplayReport, clean_tool_display, validate_display

__all__ = ["TOOL_DISPLAY_TYPES", "DisplayReport", "clean_tool_display", "validate_display"]

"""The one door through which a plugin's `display` payload reaches a front end."""

from __future__ import annotations

from agent_core.display.payload import DisplayReport, validate_display

__all__ = ["DisplayReport", "validate_display"]

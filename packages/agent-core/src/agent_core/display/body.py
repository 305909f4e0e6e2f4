"""The body of a display: cleaned, made harmless if it is markdown, and cut to size."""

from __future__ import annotations

from typing import Final

from agent_core.display.fields import Warn, string
from agent_core.display.markdown import neutral
from agent_core.display.text import cut, size

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

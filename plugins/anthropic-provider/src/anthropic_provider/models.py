"""The server's description of a model, with a name and capability tags."""

from __future__ import annotations

from typing import Any

_TAGS = {
    "image_input": "vision",
    "pdf_input": "files",
    "thinking": "reasoning",
    "structured_outputs": "structured_output",
    "code_execution": "code_execution",
    "citations": "citations",
}
_EVERY_MODEL = ["streaming", "tools", "parallel_tools", "prompt_cache"]


def read_model(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model with all that the server said, and `name`, `context_window`, `tags` beside it."""
    told = {"name": model.get("display_name"), "context_window": model.get("max_input_tokens")}
    known = {key: value for key, value in told.items() if value is not None}
    capabilities = model.get("capabilities")
    if isinstance(capabilities, dict):
        known["tags"] = [*_EVERY_MODEL, *(tag for name, tag in _TAGS.items() if _has(capabilities, name))]
    return {**model, **known}


def _has(capabilities: dict[str, Any], name: str) -> bool:
    capability = capabilities.get(name)
    return isinstance(capability, dict) and capability.get("supported") is True

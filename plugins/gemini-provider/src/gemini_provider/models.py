"""The server's description of a model, with an id, a name and capability tags."""

from __future__ import annotations

from typing import Any

_GENERATES = "generateContent"
_EVERY_MODEL = ["streaming", "tools", "parallel_tools", "vision", "files", "structured_output"]


def answers(model: dict[str, Any]) -> bool:
    """Whether it is a model that answers, and not one for embeddings or the like."""
    methods = model.get("supportedGenerationMethods")
    return not isinstance(methods, list) or _GENERATES in methods


def read_model(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model with all that the server said, and `id`, `context_window`, `tags` beside it."""
    wire_name = str(model.get("name") or "")
    told = {
        "name": model.get("displayName") or wire_name,
        "context_window": model.get("inputTokenLimit"),
        "max_output_tokens": model.get("outputTokenLimit"),
    }
    known = {key: value for key, value in told.items() if value is not None}
    tags = [*_EVERY_MODEL, *(["reasoning"] if model.get("thinking") is True else [])]
    return {**model, "id": wire_name.removeprefix("models/"), **known, "tags": tags}

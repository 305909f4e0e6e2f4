"""The server's list says little about its models; their names say the rest."""

from __future__ import annotations

import re
from typing import Any

_EVERY_MODEL = ["streaming", "tools", "parallel_tools", "structured_output", "prompt_cache"]
_THINKS = re.compile(r"o\d|gpt-([5-9]|\d\d)|gpt-oss|codex|computer-use")
_SEES = re.compile(r"o1$|o1-2|o1-pro|o3(?!-mini)|o4|gpt-4o|gpt-4\.|gpt-4-turbo|gpt-([5-9]|\d\d)|computer-use")
_FREEFORM = re.compile(r"gpt-([5-9]|\d\d)")


def read_model(model: dict[str, Any]) -> dict[str, Any]:
    """Return a model with all that the server said, and capability tags if its name is a known one."""
    name = str(model.get("id"))
    told = {"reasoning": _THINKS, "vision": _SEES, "freeform_tools": _FREEFORM}
    tags = [tag for tag, known in told.items() if known.match(name)]
    if not tags:
        return dict(model)
    return {**model, "tags": [*_EVERY_MODEL, *tags]}

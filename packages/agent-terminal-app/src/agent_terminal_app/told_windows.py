"""How many tokens fit into models, as their providers told it when somebody asked them for a list.

It is kept in the cache, so that nobody has to be asked again for the sake of a meter. What cannot be read or
written is done without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_terminal_app.paths import Paths

_NAMES = ("context_window", "context_length", "max_model_len")
"""What servers call it in their lists of models."""


def told_window(model: Mapping[str, Any]) -> int | None:
    """Return the window that a provider's description of a model tells."""
    values = (model.get(name) for name in _NAMES)
    return next((value for value in values if is_window(value)), None)


def is_window(value: object) -> bool:
    """Say whether a value can be a number of tokens."""
    return isinstance(value, int) and value > 0


def keep_windows(paths: Paths, provider: str, base_url: str, models: Iterable[Mapping[str, Any]]) -> None:
    """Remember what a provider has told of its models, at the address where it was asked."""
    told = {str(model.get("id")): window for model in models if (window := told_window(model)) is not None}
    if not told:
        return
    from agent_terminal_app.settings.replacing import replace_file

    known = {**_read(paths), _key(provider, base_url): told}
    with suppress(OSError):
        replace_file(paths.windows, json.dumps(known, indent=1, sort_keys=True) + "\n", mode=0o644)


def kept_window(paths: Paths, provider: str, base_url: str, model: str) -> int | None:
    """Return what was remembered of a model."""
    told = _read(paths).get(_key(provider, base_url))
    window = told.get(model) if isinstance(told, Mapping) else None
    return window if is_window(window) else None


def _key(provider: str, base_url: str) -> str:
    return f"{provider} {base_url.rstrip('/')}".rstrip()


def _read(paths: Paths) -> dict[str, Any]:
    try:
        known = json.loads(paths.windows.read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}

"""Which model is recommended: of each good family the newest that is nothing special, then all the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from agent_terminal_app.told_windows import told_window

_VERSION = re.compile(r"\d+(?:[.-]\d{1,2}(?!\d))*")
_SPECIAL = re.compile(
    r"preview|exp|latest|mini|nano|lite|fast|turbo|search|codex|chat|thinking|\d{6,}|\d{4}-\d\d-\d\d"
)
_NO_TALKER = re.compile(
    r"embed|whisper|tts|speech|audio|realtime|transcribe|dall-e|image|imagen|veo|sora|moderation|rerank|ocr|guard"
)

Models = Sequence[Mapping[str, Any]]


def ranked(models: Models, families: Sequence[str]) -> tuple[list[Mapping[str, Any]], int]:
    """Return the models in the order to offer them, and how many of them, at the beginning, are recommended.

    Args:
        families: Patterns of names, the best family first.
    """
    best = [one for one in (_best(models, family) for family in families) if one is not None]
    rest = [model for model in models if model not in best]
    talkers = [model for model in rest if not _NO_TALKER.search(_name(model))]
    others = [model for model in rest if _NO_TALKER.search(_name(model))]
    return [*best, *talkers, *others], len(best)


def described(model: Mapping[str, Any], *, recommended: bool) -> str:
    """Return a model as a line of a list: its name, and what is known about it."""
    about = ["recommended"] if recommended else []
    if (window := told_window(model)) is not None:
        about.append(f"{window // 1000}k context" if window >= 1000 else f"{window} context")  # noqa: PLR2004
    return f"{_name(model)}  ({', '.join(about)})" if about else _name(model)


def _best(models: Models, family: str) -> Mapping[str, Any] | None:
    of_it = [one for one in models if fnmatchcase(_name(one), family) and not _NO_TALKER.search(_name(one))]
    return min(of_it, key=_order, default=None)


def _order(model: Mapping[str, Any]) -> tuple[int, tuple[int, ...], int]:
    """Put what is nothing special first, of that the newest, of that the shortest name."""
    name = _name(model)
    version = _VERSION.search(name)
    numbers = [int(part) for part in re.split(r"[.-]", version[0])] if version else []
    newest_first = tuple(-number for number in [*numbers, 0, 0, 0, 0][:4])
    return len(_SPECIAL.findall(name)), newest_first, len(name)


def _name(model: Mapping[str, Any]) -> str:
    return str(model["id"])

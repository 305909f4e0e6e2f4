"""The context of plugins: where they run, in layers.

Each layer (core, application, terminal or server) owns some keys; callers may add others. A caller
that reuses an owned key does not get its way: the owned value stays and a warning says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.frozen import FrozenDict, FrozenList, freeze
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = get_logger("context")

# A layer above may say that it, not the core, set things going.
_FROM_ABOVE = frozenset({"trigger_source"})


class Context(FrozenDict):
    """A context that remembers which of its keys belong to the layers that built it."""

    __slots__ = ("owned",)

    owned: frozenset[str]


def build_context(owned: Mapping[str, object], extra: Mapping[str, object] | None = None) -> Context:
    """Return *extra* with the keys that this layer owns on top; dicts and lists in it are frozen.

    Args:
        owned: The keys of this layer.
        extra: What the caller or the layer above passed in.
    """
    above = extra.owned if isinstance(extra, Context) else frozenset()
    merged = {key: _lend(value) for key, value in (extra or {}).items()}
    for key, value in owned.items():
        if key in above and key in _FROM_ABOVE:
            continue
        # What another layer put there is not the caller's mistake: that layer owns the key as well.
        if key in merged and key not in above and merged[key] != value:
            _log.warning("reserved_context_key", key=key, hint="the platform's own value is kept")
        merged[key] = _lend(value)
    context = Context(merged)
    context.owned = above | owned.keys()
    return context


def complete_context(defaults: Mapping[str, object], extra: Mapping[str, object] | None) -> Context:
    """Return *extra* with *defaults* for the keys that it lacks; tools get theirs like this."""
    above = extra.owned if isinstance(extra, Context) else frozenset()
    context = Context({**defaults, **(extra or {})})
    context.owned = above | defaults.keys()
    return context


def _lend(value: object) -> object:
    """Freeze what is not frozen yet; a context in a context stays the one that it is."""
    return value if isinstance(value, (FrozenDict, FrozenList)) else freeze(value)

"""The context of plugins: where they run, in layers.

Each layer (core, application, terminal or server) owns some keys; callers may add others. A caller
that reuses an owned key does not get its way: its value is left out, once, where it comes in, and a
warning says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.frozen import EMPTY, FrozenDict, FrozenList, freeze
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = get_logger("context")

LIFECYCLE_FACTS = frozenset({"original_session", "previous_agent_id", "next_agent_id", "error"})
"""What whoever runs a lifecycle says about it; in requests, and in actions of a person, nobody can."""

RESERVED_KEYS = LIFECYCLE_FACTS | {
    "core", "config", "trigger_source", "session", "lifecycle", "request_context", "request_runtime",
    "provider", "enabled_plugin_ids", "tags", "models", "available_tools", "tools", "stream",
    "final_messages", "native_messages", "native_final_messages", "turn_native_start_index",
    "cancellation",
}  # fmt: skip
"""The keys that the core sets, in requests, in actions or in both, and those of lifecycles."""

# A layer above may say that it, not the core, set things going.
_FROM_ABOVE = frozenset({"trigger_source"})
_KEPT = "the platform's own values are kept"


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
    # What another context holds was lent before.
    lent = isinstance(extra, Context)
    merged = dict(extra or EMPTY) if lent else {key: _lend(value) for key, value in (extra or EMPTY).items()}
    # What another layer put there is not the caller's mistake: that layer owns the key as well.
    wrong = [key for key in owned if key in merged and key not in above and merged[key] != owned[key]]
    if wrong:
        _log.warning("reserved_context_key", keys=wrong, hint=_KEPT)
    for key, value in owned.items():
        if key not in above or key not in _FROM_ABOVE:
            merged[key] = value if value.__class__ is str else _lend(value)
    context = Context(merged)
    context.owned = above | owned.keys()
    return context


def without_reserved(
    extra: Mapping[str, object],
    reserved: frozenset[str] = RESERVED_KEYS,
    known: Mapping[str, object] = EMPTY,
    *,
    from_above: frozenset[str] = _FROM_ABOVE,
) -> Mapping[str, object]:
    """Return what a caller passed without reserved keys; one warning names those that it got wrong.

    A plugin may pass on the context that it was given: what the layers said in it about themselves is
    left out without a warning, since it is not about the call that follows.

    Args:
        known: Values that the platform will set itself; repeating one of them is not a mistake.
        from_above: The reserved keys that a layer above may set.
    """
    above = extra.owned if isinstance(extra, Context) else frozenset()
    reused = [key for key in extra if key in reserved and not (key in above and key in from_above)]
    if not reused:
        return extra
    own = [key for key in reused if key not in above]
    wrong = [key for key in own if key not in known or known[key] != extra[key]]
    if wrong:
        _log.warning("reserved_context_key", keys=wrong, hint=_KEPT)
    rest = {key: value for key, value in extra.items() if key not in reused}
    if not isinstance(extra, Context):
        return rest
    context = Context(rest)
    context.owned = above.difference(reused)
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

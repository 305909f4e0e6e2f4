"""The context window: what is sent of a conversation that grows, by summaries and truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.lazy import lazy_names

if TYPE_CHECKING:
    from agent_runtime.context.compaction import CompactionPlugin
    from agent_runtime.context.window import ContextTransformPlugin, Limits, Truncated, limits, truncate
    from agent_runtime.tokens import TokenCounter

__all__ = [
    "CompactionPlugin",
    "ContextTransformPlugin",
    "Limits",
    "TokenCounter",
    "Truncated",
    "limits",
    "truncate",
]

# A name is loaded when it is first used: many agents have no context policy.
HOMES = {
    "agent_runtime.context.compaction": ("CompactionPlugin",),
    "agent_runtime.context.window": ("ContextTransformPlugin", "Limits", "Truncated", "limits", "truncate"),
    "agent_runtime.tokens": ("TokenCounter",),
}
__getattr__ = lazy_names(__name__, HOMES)

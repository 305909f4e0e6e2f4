"""The context window: what is sent of a conversation that grows, by summaries and truncation."""

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

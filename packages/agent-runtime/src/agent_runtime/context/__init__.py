"""Keeping a conversation within a model's window: counting, summaries, leaving out."""

from agent_runtime.context.compaction import CompactionPlugin
from agent_runtime.context.plugin import ContextTransformPlugin
from agent_runtime.context.tokens import TokenCounter
from agent_runtime.context.truncation import Truncated, truncate
from agent_runtime.context.window import Limits, limits

__all__ = [
    "CompactionPlugin",
    "ContextTransformPlugin",
    "Limits",
    "TokenCounter",
    "Truncated",
    "limits",
    "truncate",
]

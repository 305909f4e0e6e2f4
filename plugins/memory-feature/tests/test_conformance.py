"""The feature and its tools keep to their contracts."""

from __future__ import annotations

from typing import Any, ClassVar

from agent_testing.conformance import FeatureConformance, ToolConformance
from memory_feature import MemoryFeature
from memory_feature.shelf import Settings, Shelf
from memory_feature.tools import MemoryTools

TEA = {"item_id": "person/likes-tea", "text": "Likes tea."}


class TestFeature(FeatureConformance):
    plugin = MemoryFeature
    action_params: ClassVar[dict[str, Any]] = {
        "add_memory": {"text": "Likes tea."},
        "change_memory": TEA,
        "forget_memory": {"item_id": "person/likes-tea"},
        "restore_memory": TEA,
    }


class TestTools(ToolConformance):
    tool_calls: ClassVar[dict[str, Any]] = {
        "remember": {"text": "Likes tea."},
        "recall": {"query": "tea"},
        "forget": {"id": "person/likes-tea"},
    }

    def make_plugin(self) -> MemoryTools:
        return MemoryTools(lambda metadata: Shelf.of(Settings(), None, metadata))

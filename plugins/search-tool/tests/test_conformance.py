"""The feature and its tool keep to the contract."""

from __future__ import annotations

from typing import ClassVar

from agent_testing.conformance import FeatureConformance, ToolConformance
from search_tool import SearchTool
from search_tool.feature import SearchTools


class TestFeature(FeatureConformance):
    plugin = SearchTool
    config: ClassVar = {"enabled_plugins": ["search_tool"]}


class TestTools(ToolConformance):
    plugin = SearchTools
    tool_calls: ClassVar = {"web_search": {"query": "tea"}}

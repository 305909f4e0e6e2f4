"""The feature and its tools keep to the contract."""

from __future__ import annotations

from typing import ClassVar

from agent_testing.conformance import FeatureConformance, ToolConformance
from todo_tool import TodoTool
from todo_tool.feature import PlanTools


class TestFeature(FeatureConformance):
    plugin = TodoTool
    config: ClassVar = {"enabled_plugins": ["todo_tool"]}


class TestTools(ToolConformance):
    plugin = PlanTools
    tool_calls: ClassVar = {
        "write_todos": {"items": [{"text": "Boil water", "state": "in_progress"}, {"text": "Steep"}]},
        "read_todos": {},
    }

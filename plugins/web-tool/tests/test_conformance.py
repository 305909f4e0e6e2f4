"""The tool keeps to the contract."""

from __future__ import annotations

from typing import ClassVar

from agent_testing.conformance import ToolConformance
from web_tool import WebTool


class TestConformance(ToolConformance):
    plugin = WebTool
    config: ClassVar = {"enabled_plugins": ["web_tool"]}
    tool_calls: ClassVar = {"fetch_url": {"url": "http://127.0.0.1/", "start": 1}}

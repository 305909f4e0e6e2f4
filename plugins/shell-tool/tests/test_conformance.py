"""The plugin keeps to the contract."""

from typing import ClassVar

from agent_testing.conformance import ToolConformance
from shell_tool import ShellTool


class TestConformance(ToolConformance):
    plugin = ShellTool
    config: ClassVar = {"roots": ["/tmp"]}
    tool_calls: ClassVar = {
        "shell": {"command": "echo hello"},
        "shell_jobs": {},
        "shell_output": {"id": "sh_0"},
        "shell_stop": {"id": "sh_0"},
    }

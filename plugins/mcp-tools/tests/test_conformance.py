"""The plugin and its tools keep to the contract."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from agent_testing.conformance import FeatureConformance, ToolConformance
from mcp_tools import McpTools
from mcp_tools.settings import Settings

if TYPE_CHECKING:
    from mcp_tools.toolbox import Toolbox


SERVER = Path(__file__).parent / "servers" / "rough.py"


class TestFeature(FeatureConformance):
    plugin = McpTools
    config: ClassVar = {"enabled_plugins": ["mcp_tools"]}


def toolbox() -> Toolbox:
    """Return the tools of a server that is approved."""
    line = {"command": sys.executable, "args": ["-I", str(SERVER), "well"], "cwd": "/"}
    pins = Path(tempfile.mkdtemp()) / "pins.json"
    config = {"servers": {"tea": line}, "pins": str(pins)}
    plugin = McpTools()
    plugin.approve("tea", config)
    box = plugin.toolbox(Settings.read(config))
    KEPT.append(plugin)
    return box


KEPT: list[McpTools] = []


class TestTools(ToolConformance):
    tool_calls: ClassVar[dict[str, Any]] = {"tea__talk": {}, "tea__twice": {}}

    @classmethod
    def setup_class(cls) -> None:
        cls.plugin = toolbox()

    @classmethod
    def teardown_class(cls) -> None:
        KEPT.pop().close()

from __future__ import annotations

import pytest

from agent_core.interop import ToolInteropRegistry, ToolInteropTarget
from agent_core.values import ToolCall


@pytest.fixture
def registry() -> ToolInteropRegistry:
    return ToolInteropRegistry.default()


@pytest.fixture
def anyone() -> ToolInteropTarget:
    return ToolInteropTarget("anyone")


@pytest.fixture
def caller() -> ToolInteropTarget:
    """A target that knows the call it is about."""
    return ToolInteropTarget("caller", ToolCall(call_id="call_1", tool_name="look_up", payload={}))

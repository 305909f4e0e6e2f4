from __future__ import annotations

import pytest

from agent_core.interop import InspectedCall, ToolInteropRegistry, ToolInteropTarget


@pytest.fixture
def registry() -> ToolInteropRegistry:
    return ToolInteropRegistry.default()


@pytest.fixture
def anyone() -> ToolInteropTarget:
    return ToolInteropTarget("anyone")


@pytest.fixture
def caller() -> ToolInteropTarget:
    """A target that knows the call it is about."""
    return ToolInteropTarget("caller", InspectedCall(call_id="call_1", tool_name="look_up", payload={}))

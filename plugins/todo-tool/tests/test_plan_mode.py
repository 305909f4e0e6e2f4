"""In plan mode only reading calls run, and the model is told."""

from __future__ import annotations

import pytest

from agent_core import Session
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent
from todo_tool import TodoTool


def write_file(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


def read_file(path: str) -> str:
    """Read a file."""
    return f"read {path}"


@pytest.mark.parametrize(("mode", "wrote"), [(True, False), (False, True)])
def test_only_reading_calls_run(mode: bool, wrote: bool) -> None:
    calls = [ToolCall("write_file", {"path": "a"}), ToolCall("read_file", {"path": "a"})]
    model = ScriptedProvider([Reply(tool_calls=calls), "Done."])
    agent = Agent(model, tools=[write_file, read_file], plugins={"todo_tool": TodoTool})

    result = agent.run("Go.", session=Session("s", metadata={"plan_mode": mode}))

    first, second = (one["content"] for one in result.messages if one["role"] == "tool")
    assert (first == "wrote a", second) == (wrote, "read a")
    told = any("plan mode" in str(one["content"]) for one in model.requests[0].native_messages)
    assert told is mode


def test_a_setting_names_the_tools_that_run() -> None:
    model = ScriptedProvider([Reply(tool_calls=[ToolCall("write_file", {"path": "a"})]), "Done."])
    sections = {"todo_tool": {"plan_mode_tools": ["write_*"]}}
    agent = Agent(model, tools=[write_file], plugins={"todo_tool": TodoTool}, sections=sections)

    result = agent.run("Go.", session=Session("s", metadata={"plan_mode": True}))

    assert [one["content"] for one in result.messages if one["role"] == "tool"] == ["wrote a"]

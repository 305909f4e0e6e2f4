"""The tool in an agent: events while it runs, cancelling, previews, settings in a section."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_core import AgentCore, Cancellation
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent
from shell_tool import ShellTool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def agent(workspace: Path, *commands: str) -> Agent:
    calls = [ToolCall("shell", {"command": command}) for command in commands]
    return Agent(
        ScriptedProvider([Reply(tool_calls=calls), "Done."]),
        plugins={"shell_tool": ShellTool()},
        sections={"shell_tool": {"roots": [str(workspace)], "shell_grace": 0.5, "sandbox": "off"}},
    )


def events_of(run: Any, kind: str) -> list[dict[str, Any]]:
    return [event for event in run if event["type"] == kind]


def test_a_watcher_sees_the_command_its_output_and_its_result(tmp_path: Path) -> None:
    run = list(agent(tmp_path, "echo one; echo two").stream("Go."))

    [start] = events_of(run, "tool_call_start")
    parts = events_of(run, "tool_call_partial")
    [result] = events_of(run, "tool_call_result")
    assert start["preview"] == "$ echo one; echo two"
    assert start["display"] == {"type": "code", "language": "sh", "content": "echo one; echo two"}
    assert "".join(part["part"]["text"] for part in parts) == "one\ntwo\n"
    assert result["message"]["content"] == "one\ntwo\n"
    assert result["message"]["metadata"]["display"]["exit_code"] == 0


def test_a_failing_command_is_an_error_for_the_model(tmp_path: Path) -> None:
    run = list(agent(tmp_path, "echo no; exit 2").stream("Go."))

    [result] = events_of(run, "tool_call_result")
    assert result["is_error"] is True
    assert result["message"]["content"] == "no\n[exit code 2]"


def test_cancelling_the_run_ends_the_command(tmp_path: Path, gone: Callable[[int], None]) -> None:
    token = Cancellation()
    pid = 0

    for event in agent(tmp_path, "echo $$; sleep 600").stream("Go.", cancellation=token):
        if event["type"] == "tool_call_partial":
            pid = int(event["part"]["text"])
            token.cancel()

    assert pid
    gone(pid)


def test_cancelling_a_task_ends_the_command(tmp_path: Path, gone: Callable[[int], None]) -> None:
    async def leave_after_a_part() -> int:
        stream = agent(tmp_path, "echo $$; sleep 600").stream_async("Go.")
        async for event in stream:
            if event["type"] == "tool_call_partial":
                await stream.aclose()
                return int(event["part"]["text"])
        return 0

    pid = asyncio.run(leave_after_a_part())

    assert pid
    gone(pid)


def test_the_limit_of_the_platform_ends_the_command_too(tmp_path: Path, gone: Callable[[int], None]) -> None:
    core = AgentCore()
    core.register_tool(ShellTool)
    function = {"name": "shell", "arguments": '{"command": "echo $$; sleep 600"}'}
    call = {"id": "1", "type": "function", "function": function}
    config = {
        "roots": [str(tmp_path)],
        "sandbox": "off",
        "enabled_plugins": ["shell_tool"],
        "tool_timeouts": {"shell": 3},
    }

    *parts, message = core.iter_tool_messages([call], config)

    assert message["metadata"]["error"]["type"] == "timeout"
    gone(int(parts[0]["part"]["text"]))


def test_previews_are_short_and_displays_are_whole(tmp_path: Path) -> None:
    tool = ShellTool()
    state = tool.init({"roots": [str(tmp_path)]})
    long = f"echo 'a\nb' {'x' * 5_000}"

    preview = tool.format_tool_call_preview("shell", {"command": long})
    assert preview == "$ echo 'a …"
    one_line = tool.format_tool_call_preview("shell", {"command": f"echo {'x' * 5_000}"})
    assert one_line == f"$ echo {'x' * 74}…"
    assert tool.format_tool_call_display("shell", {"command": long}, state) == {
        "type": "code",
        "language": "sh",
        "content": long,
    }
    assert tool.format_tool_call_preview("shell", {"command": "ls", "background": True}) == (
        "Start in the background: ls"
    )
    assert tool.format_tool_call_preview("shell_stop", {"id": "sh_1"}) == "shell_stop id=sh_1"
    assert tool.format_tool_call_preview("shell_jobs", {}) == "shell_jobs"
    assert tool.format_tool_call_display("shell_stop", {"id": "sh_1"}, state) is None


def test_the_plugin_is_off_unless_it_is_listed() -> None:
    core = AgentCore()
    core.register_tool(ShellTool)

    assert core.get_tool_schemas({}) == []
    assert [
        schema["function"]["name"] for schema in core.get_tool_schemas({"enabled_plugins": ["shell_tool"]})
    ] == [
        "shell",
        "shell_jobs",
        "shell_output",
        "shell_stop",
    ]

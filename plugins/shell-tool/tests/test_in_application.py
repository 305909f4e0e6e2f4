"""In an application: what commands in the background wrote is there for the person, also after its end."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_app.assets import SessionAssetStore
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from shell_tool import ShellTool

if TYPE_CHECKING:
    from pathlib import Path

LINES = "".join(f"line {number}\n" for number in range(100_000))


def test_output_of_a_command_that_ends_with_the_application_is_kept(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "lines").write_text(LINES)
    start = {"command": "cat lines; touch written; sleep 600", "background": True}
    wait = {"command": "until [ -e written ]; do sleep 0.01; done"}
    script: list[Any] = [
        Reply(tool_calls=[ToolCall("shell", start)]),
        Reply(tool_calls=[ToolCall("shell", wait)]),
        "It runs.",
    ]
    agent = {"model": "m", "plugin_ids": ["shell_tool"], "sections": {"permissions": {"default": "allow"}}}
    config = {
        "agents": {"a": agent},
        "models": {"m": {"provider": "scripted"}},
        "plugins": {"shell_tool": {"shell_grace": 0.5}},
    }

    plugins = [ScriptedProvider(script), ShellTool]
    with AgentApplication(config, assets=tmp_path / "assets", plugins=plugins, installed=False) as app:
        session = app.create_session(metadata={"workspace_roots": [str(work)]}).session_id
        list(app.chat(session, "Go."))

    with closing(SessionAssetStore(tmp_path / "assets")) as store:
        assert [store.read(asset.id).decode() for asset in store.list(session)] == [LINES]

"""Commands on events: real processes, in the sandbox of this machine, and what the model reads of them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Session
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_plugin_kit.sandbox import find_way
from agent_runtime import Agent, BuildError
from hooks_feature import HooksFeature

if TYPE_CHECKING:
    from pathlib import Path

needs_sandbox = pytest.mark.skipif(isinstance(find_way(), str), reason="this machine has no sandbox")


def write_file(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


def look(word: str) -> str:
    """Look something up."""
    return f"{word}: nothing"


def agent(model: ScriptedProvider, **hooks: Any) -> Agent:
    return Agent(model, tools=[write_file, look], plugins={"hooks": HooksFeature}, sections={"hooks": hooks})


def in_folder(folder: Path) -> Session:
    return Session("s-1", metadata={"workspace_roots": [str(folder)]})


def calling(*calls: ToolCall) -> ScriptedProvider:
    return ScriptedProvider([Reply(tool_calls=list(calls)), "Done.", "Done again."])


def test_a_command_reads_the_call_and_its_exit_code_2_keeps_the_call_from_running(tmp_path: Path) -> None:
    line = "cat > event.json; echo 'not on Fridays' >&2; exit 2"
    model = calling(ToolCall("write_file", {"path": "a.txt"}), ToolCall("look", {"word": "tea"}))
    hooks = [{"command": line, "tools": ["write_*"]}]

    result = agent(model, before_tool=hooks).run("Go.", session=in_folder(tmp_path))

    contents = [one["content"] for one in result.messages if one["role"] == "tool"]
    assert contents == ["Error: the call was not allowed: not on Fridays", "tea: nothing"]
    event = json.loads((tmp_path / "event.json").read_text())
    assert (event["event"], event["tool"], event["arguments"]) == (
        "before_tool",
        "write_file",
        {"path": "a.txt"},
    )
    assert (event["folder"], event["session_id"]) == (str(tmp_path), "s-1")


def test_after_an_edit_the_model_reads_what_a_command_objects_to(tmp_path: Path) -> None:
    model = calling(ToolCall("write_file", {"path": "a.py"}), ToolCall("look", {"word": "x"}))
    line = "echo ran >> runs; echo 'a.py:1: unused import'; exit 2"

    result = asyncio.run(
        agent(model, after_edit=[{"command": line}]).run_async("Go.", session=in_folder(tmp_path))
    )

    assert (tmp_path / "runs").read_text() == "ran\n", "a call that edits nothing starts nothing"
    said = [one["content"] for one in model.requests[-1].native_messages if one["role"] == "user"]
    assert said[-1].endswith("said:\na.py:1: unused import")
    assert result.text == "Done."


def test_at_the_end_a_command_may_have_the_agent_go_on(tmp_path: Path) -> None:
    model = ScriptedProvider(["I am done.", "Now I am."])
    line = "test -e second && exit 0; touch second; echo 'the tests fail'; exit 2"

    result = agent(model, on_stop=[{"command": line}]).run("Go.", session=in_folder(tmp_path))

    assert result.text == "Now I am."
    assert "the tests fail" in model.requests[-1].native_messages[-1]["content"]


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        ({"command": "echo oh; exit 1"}, "exit code 1. oh"),
        ({"command": "sleep 600", "timeout": 0.2}, "did not end within 0.2 seconds"),
    ],
)
def test_a_command_that_fails_or_takes_too_long_is_a_warning(
    tmp_path: Path, hook: dict[str, Any], told: str
) -> None:
    events = list(agent(ScriptedProvider(["Hi."]), on_stop=[hook]).stream("Go.", session=in_folder(tmp_path)))

    [warning] = [one["message"] for one in events if one["type"] == "warning"]
    assert warning.endswith(told)
    assert events[-1]["type"] == "run_end" and events[-1]["text"] == "Hi."


@needs_sandbox
def test_a_command_writes_its_workspace_and_nothing_else(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "work", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    line = f"touch inside; touch {outside}/escaped; cat > /dev/null; env > variables"

    agent(ScriptedProvider(["Hi."]), on_stop=[{"command": line}]).run("Go.", session=in_folder(workspace))

    assert (workspace / "inside").exists() and not list(outside.iterdir())
    assert "_API_KEY" not in (workspace / "variables").read_text()


def test_a_declaration_that_is_wrong_is_refused_when_the_agent_is_built() -> None:
    with pytest.raises(BuildError, match="comand"):
        agent(ScriptedProvider(["Hi."]), on_stop=[{"comand": "x"}]).run("Go.")

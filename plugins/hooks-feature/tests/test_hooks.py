"""Commands on events: real processes, in the sandbox of this machine, and what the model reads of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
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
    assert contents == [
        f"Error: the call was not allowed: the hook `{line}` refused it: not on Fridays",
        "tea: nothing",
    ]
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


@pytest.mark.parametrize("event", ["before_tool", "after_edit", "on_stop"])
@pytest.mark.parametrize(
    ("hook", "seen"),
    [
        ({"command": "echo oh; exit 1"}, "exit code 1. oh"),
        ({"command": "sleep 600", "timeout": 0.2}, "did not end within 0.2 seconds"),
        (
            {"command": "seq 1 100000; exit 1"},
            "exit code 1.\n  …\n  99998\n  99999\n  100000",
        ),
    ],
)
def test_a_command_that_fails_or_takes_too_long_is_a_warning(
    tmp_path: Path, event: str, hook: dict[str, Any], seen: str
) -> None:
    model = calling(ToolCall("write_file", {"path": "a.py"}))

    events = list(agent(model, **{event: [hook]}).stream("Go.", session=in_folder(tmp_path)))

    [warning] = [one["message"] for one in events if one["type"] == "warning"]
    assert warning == f"hook {event}, `{hook['command']}`: {seen}"
    assert events[-1]["type"] == "run_end" and events[-1]["text"] == "Done."
    assert "wrote a.py" in [one["message"]["content"] for one in events if one["type"] == "tool_call_result"]


def test_a_person_sees_what_the_model_reads_of_a_command(tmp_path: Path) -> None:
    edit = {"command": "echo 'a.py:1: unused import'; exit 2"}
    stop = {"command": "test -e second && exit 0; touch second; echo 'the tests fail'; exit 2"}
    model = calling(ToolCall("write_file", {"path": "a.py"}))

    events = list(agent(model, after_edit=[edit], on_stop=[stop]).stream("Go.", session=in_folder(tmp_path)))

    about_the_edit, about_the_end = (one["message"] for one in events if one["type"] == "warning")
    assert about_the_edit.endswith("`: the agent reads: a.py:1: unused import")
    assert about_the_end.endswith("`: the agent continues, and reads: the tests fail")


def test_what_a_command_leaves_in_the_background_does_not_keep_the_agent_waiting(tmp_path: Path) -> None:
    # Out of its group and with our pipes: neither the end of its time nor of the pipes can be waited for.
    line = "setsid sleep 600 & echo $! > pid; echo started; exit 1"
    hook = {"command": line, "timeout": 60}
    sections = {"hooks": {"on_stop": [hook]}, "config": {"sandbox": "off"}}
    made = Agent(ScriptedProvider(["Hi."]), plugins={"hooks": HooksFeature}, sections=sections)

    try:
        events = list(made.stream("Go.", session=in_folder(tmp_path)))
        [warning] = [one["message"] for one in events if one["type"] == "warning"]
        assert warning.endswith("exit code 1. started")
    finally:
        with suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


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

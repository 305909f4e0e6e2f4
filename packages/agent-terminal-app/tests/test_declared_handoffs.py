"""Agents of the settings that hand a conversation over, in a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.command import run_agent
from agent_testing import ScriptedServer, ToolCall, chat_reply

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytest.importorskip("openai_compatible_provider")

SETTINGS = """
default_agent = "desk"
[plugins.openai_compatible]
base_url = "{url}/v1"
api_key = "env:KEY"
[models.m]
provider = "openai_compatible"
model = "x"
[agents.desk]
model = "m"
handoffs = [{handoffs}]
[agents.refunds]
model = "m"
system_prompt = "You pay back."
description = "Pays money back."
"""


def run(home: Path, server: ScriptedServer, handoffs: str, *command: str) -> subprocess.CompletedProcess[str]:
    folder = home / "config" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(SETTINGS.format(url=server.url, handoffs=handoffs))
    places = {f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "data", "state", "cache")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KEY": "k", **places}
    return run_agent(*command, environment=environment, folder=home)


def test_the_other_agent_answers_without_a_question_about_the_handoff(tmp_path: Path) -> None:
    replies = [chat_reply(tool_calls=[ToolCall("transfer_to_refunds")]), chat_reply("Your money is back.")]
    with ScriptedServer(*replies) as server:
        done = run(tmp_path, server, '"refunds"', "run", "Money back.")

        assert (done.returncode, done.stdout) == (0, "Your money is back.\n"), done.stderr
        [desk, refunds] = [request.json for request in server.requests]
        assert [tool["function"]["name"] for tool in desk["tools"] if "transfer" in str(tool)] == [
            "transfer_to_refunds"
        ]
        assert "You pay back." in refunds["messages"][0]["content"]


@pytest.mark.parametrize(
    ("handoffs", "said"),
    [
        ('"refund"', "handoff 'refund' is not declared; did you mean 'refunds'?"),
        ('{ agent = "refunds", sees = "half" }', 'handoffs[0].sees must be "all" or "without_tools"'),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(tmp_path: Path, handoffs: str, said: str) -> None:
    with ScriptedServer() as server:
        done = run(tmp_path, server, handoffs, "agents", "check")

    assert done.returncode == 3
    assert said in done.stdout + done.stderr

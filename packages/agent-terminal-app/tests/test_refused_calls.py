"""A call that is refused can be opened like any other, and shows what the model wanted."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from agent_terminal_app.testing.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

CTRL_O = "\x0f"
PROGRAM = """
import asyncio, sys
from agent_app import AgentApplication
from agent_terminal_app.chat.loop import Chat
from agent_terminal_app.chat.prompt.prompt import PromptScreen, run_prompt
from agent_terminal_app.cli import leave
from agent_terminal_app.demo import DemoCounter, DemoProvider

def open_app():
    config = {"agents": {"a": {"model": "demo"}}, "models": {"demo": {"provider": "demo"}},
              "permissions": {sys.argv[1]: ["count"]}}
    return AgentApplication(config, plugins=[DemoProvider, DemoCounter], installed=False)

async def sit():
    return await run_prompt(Chat(open_app, PromptScreen(color=True)), None)

leave(asyncio.run(sit()))
"""


@pytest.mark.parametrize("rule", ["deny", "ask"])
def test_a_call_that_a_rule_or_a_person_refuses_shows_its_arguments(tmp_path: Path, rule: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color"}
    with Terminal([sys.executable, str(program), rule], environment=environment, folder=tmp_path) as terminal:
        terminal.expect_line("ready")
        terminal.type("count to 77\r")
        if rule == "ask":
            terminal.expect_line("your answer")
            terminal.type("n\r")
        terminal.expect_line(r"✗ count\(upto=77\)")
        terminal.expect_line("ready")
        terminal.type(CTRL_O)

        terminal.expect_line(r"\s+\"upto\": 77$")

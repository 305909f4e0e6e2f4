"""Commands on events, as a person sees them in a chat."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ScriptedServer

pytestmark = pytest.mark.skipif(find_spec("hooks_feature") is None, reason="hooks are not installed")

HOOKS = """
[permissions]
allow = ["shell"]
[[plugins.hooks.before_tool]]
command = "./guard"
[[plugins.hooks.on_stop]]
command = "test -e second || { touch second; echo 'three tests fail' >&2; exit 2; }"
"""


GUARD = """#!/bin/sh
echo 'not on Fridays, when nobody is here to look at what comes of it' >&2
grep -q forbidden && exit 2 || exit 0
"""


def test_a_person_sees_why_a_hook_refuses_a_call_and_why_the_agent_continues(
    home: Home, server: ScriptedServer
) -> None:
    home.set(HOOKS)
    guard = home.project / "guard"
    guard.write_text(GUARD)
    guard.chmod(0o755)
    call = ToolCall("shell", {"command": "echo forbidden"}, "c1")
    server.play(chat_reply(tool_calls=[call]), chat_reply("I am done."), chat_reply("Now I am."))

    with home.chat() as chat:
        chat.type("go\r")
        chat.expect("Now I am.")
        chat.expect_line("ready")
        text = " ".join(chat.text.split())
        assert "✗ $ echo forbidden" in text
        assert "refused it: not on Fridays, when nobody is here to look at what comes of it" in text
        assert text.index("I am done.") < text.index("the agent continues, and reads: three tests fail")
        chat.type("/rewind list\r")
        chat.expect_line("1 in all")

    with home.chat("--continue") as chat:
        chat.expect("! Before you stop, the hook")
        assert "» Before you stop" not in chat.text

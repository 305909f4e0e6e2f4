"""A sub-agent works in the folder of the agent, with its grants, and its changes can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.testing import ToolCall
from agent_testing import ServerReply, chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ReceivedRequest, ScriptedServer

SETTINGS = """
[agents.assistant]
delegates = ["clerk"]
[agents.clerk]
description = "Writes things down."
plugin_ids = ["files_tool"]
"""


def model(request: ReceivedRequest) -> ServerReply:
    """Answer as the agent, which hands everything on, or as its clerk, who writes it into files."""
    messages = request.json["messages"]
    if len(messages) > 1 and messages[-1]["role"] == "tool":
        last = str(messages[-1]["content"])
        return chat_reply("All is written." if last == "Noted." else "Noted.")
    if messages[0]["role"] == "system":
        return chat_reply(tool_calls=[ToolCall("delegate_clerk", {"prompt": messages[-1]["content"]}, "c1")])
    name = str(messages[-1]["content"])
    return chat_reply(tool_calls=[ToolCall("write_file", {"path": f"{name}.txt", "content": "tea\n"}, "c2")])


def test_a_sub_agent_writes_in_the_project_by_the_grants_of_the_session_and_undo_knows_of_it(
    home: Home, server: ScriptedServer
) -> None:
    home.set(SETTINGS)
    server.play(*[model] * 40)

    with home.chat() as chat:
        chat.type("green\r")
        chat.expect_line("your answer")
        assert "? Ask clerk: green" in chat.text
        assert "  [a] yes, for this session: delegate_clerk" in chat.text
        chat.type("a")
        chat.expect("? Write green.txt")
        chat.expect_line("your answer")
        chat.type("allow session write_file\r")
        chat.expect("All is written.")
        chat.expect_line("ready")
        chat.type("black\r")
        chat.wait(lambda: chat.text.count("All is written.") == 2, "the second answer")
        chat.expect_line("ready")
        assert chat.text.count("[y] yes, once") == 2
        assert (home.project / "green.txt").read_text() == (home.project / "black.txt").read_text() == "tea\n"

        chat.type("/undo\r")
        chat.expect_line("press 1 2")
        chat.type("1")
        chat.expect_line("type your answer")
        chat.type("\r")
        chat.wait(lambda: not (home.project / "black.txt").exists(), "the file to go")
    assert (home.project / "green.txt").exists()

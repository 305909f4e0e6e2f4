"""A limit stops the agent: the chat names the setting, and Enter continues, now or in the next chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_core.testing import ToolCall
from agent_testing import chat_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ScriptedServer, ServerReply

NAMED = "Enter continues; `agent config set agents.assistant.max_rounds NUMBER` changes the limit"
PRICES = """
[models."openai_compatible:scripted-model"]
provider = "openai_compatible"
model = "scripted-model"
input_price = 2.0
output_price = 2.0
"""


def look(path: str, *, tokens: int = 12) -> ServerReply:
    usage = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
    return chat_reply(tool_calls=[ToolCall("read_file", {"path": path}, f"c{path}")], usage=usage)


def test_a_limit_that_is_set_changes_nothing_else_and_enter_continues_in_the_next_chat(
    home: Home, server: ScriptedServer
) -> None:
    server.play(chat_reply("Hello."))
    with home.chat() as chat:
        chat.type("hello\r")
        chat.expect("Hello.")
        chat.expect_line("ready")
    home.set("[agents.assistant]\nmax_rounds = 2\n")
    server.play(look("a"), look("b"), look("c"), chat_reply("All three are missing."))

    with home.chat() as chat:
        chat.type("look\r")
        chat.expect(
            "Enter continues; `agent config set agents.assistant.max_rounds NUMBER` changes the limit"
        )
        chat.expect_line("ready")
    with home.chat("--continue") as chat:
        chat.expect("» look")
        chat.expect("  … 2 tool calls")
        chat.expect("stopped: the model was asked 2 times, as often as max_rounds allows")
        chat.expect(
            "Enter continues; `agent config set agents.assistant.max_rounds NUMBER` changes the limit"
        )
        chat.expect_line("ready")
        chat.type("\r")
        chat.expect("All three are missing.")
        chat.expect_line("ready")
    with home.chat("--continue") as chat:
        chat.expect("All three are missing.")
        assert "stopped" not in chat.text

    first, last = server.requests[0].json, server.requests[-1].json
    assert first["messages"][0] == last["messages"][0]
    assert first["tools"] == last["tools"]


def test_a_session_that_a_limit_has_stopped_says_so_when_it_is_chosen_from_the_list(
    home: Home, server: ScriptedServer
) -> None:
    home.set("[agents.assistant]\nmax_rounds = 1\n")
    server.play(look("a"), chat_reply("It is missing."))

    with home.chat() as chat:
        chat.type("look\r")
        chat.expect("max_rounds allows")
        chat.expect_line("ready")
        chat.type("/new\r")
        chat.wait(lambda: "/new" in chat.text, "the command")
        chat.expect_line("ready")
        chat.type("/resume\r")
        chat.expect("Which session?")
        chat.type("\r")
        chat.wait(lambda: chat.text.count("Enter continues; ") == 2, "the second line about the limit")
        chat.type("\r")
        chat.expect("It is missing.")


@pytest.mark.parametrize("columns", [40, 100])
def test_a_model_that_goes_in_circles_is_stopped(home: Home, server: ScriptedServer, columns: int) -> None:
    server.play(*[look("a")] * 5, chat_reply("It is missing."))

    with home.chat(columns=columns) as chat:
        chat.type("look\r")
        chat.wait(
            lambda: (
                "Enter continues; repeated_calls in the setting agents.assistant.stop_conditions changes the"
                in " ".join(chat.text.split())
            ),
            "the name of the setting",
        )
        chat.expect_line("ready")
        chat.type("\r")
        chat.expect("It is missing.")


def test_a_run_that_costs_too_much_is_stopped(home: Home, server: ScriptedServer) -> None:
    home.set(PRICES)
    server.play(look("a", tokens=3_000_000), look("b", tokens=3_000_000), chat_reply("Both are missing."))

    with home.chat() as chat:
        chat.type("look\r")
        chat.expect("stopped: the run cost 12.0000, of 10 allowed")
        chat.expect("cost_budget in the setting agents.assistant.stop_conditions changes the limit")
        chat.expect_line("ready")
        chat.type("\r")
        chat.expect("Both are missing.")

"""Searching the web from a chat: the words, the engine that gets them, and what is missing without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.testing import ToolCall
from agent_testing import ServerReply, chat_reply, json_reply

if TYPE_CHECKING:
    from agent_terminal_app.testing.home import Home
    from agent_testing import ReceivedRequest, ScriptedServer

PAGE = {"title": "Assam", "url": "https://tea.example/assam", "content": "A strong tea."}


def model_and_engine(request: ReceivedRequest) -> ServerReply:
    """Answer as a SearXNG, or as a model that searches for everything."""
    if request.path == "/search":
        return json_reply({"results": [PAGE]})
    last = request.json["messages"][-1]
    if last["role"] == "tool":
        return chat_reply("It is strong.")
    return chat_reply(tool_calls=[ToolCall("web_search", {"query": last["content"]})])


def test_a_question_names_the_engine_and_allows_searching_for_the_session(
    home: Home, server: ScriptedServer
) -> None:
    home.set(f'[plugins.search_tool]\nsearch_url = "{server.url}"\n')
    server.play(*[model_and_engine] * 20)

    with home.chat() as chat:
        chat.type("assam tea\r")
        chat.expect_line("your answer")
        start = chat.lines.index("? Search the web: assam tea")
        assert chat.lines[start : start + 5] == [
            "? Search the web: assam tea",
            "  in ~/project",
            "  by SearXNG",
            "  [y] yes, once",
            "  [a] yes, for this session: web_search",
        ]
        chat.type("a")
        chat.expect("✓ Search the web: assam tea → 1 result by SearXNG")
        chat.expect_line("ready")
        chat.type("green tea\r")
        chat.expect("✓ Search the web: green tea → 1 result by SearXNG")
        chat.wait(lambda: chat.text.count("It is strong.") == 2, "the second answer")
    assert "https://tea.example/assam" in str(server.requests[-1].json)


def test_without_an_engine_the_chat_says_what_to_set_up(home: Home, server: ScriptedServer) -> None:
    server.play(*[model_and_engine] * 4)

    with home.chat() as chat:
        chat.type("assam tea\r")
        chat.expect("It is strong.")
        said = " ".join(chat.text.split())
    assert "[y]" not in said
    for way in ("a SearXNG with `agent config set", "BRAVE_API_KEY", "TAVILY_API_KEY", "searches by itself"):
        assert way in said

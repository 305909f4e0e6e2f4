"""Searches over real sockets: what each engine is sent, what the model reads, and what is never asked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core.product import USER_AGENT
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent
from agent_runtime.env import Prompt
from agent_testing import ScriptedServer, ServerReply, anthropic_reply, error_reply, json_reply
from search_tool import SearchTool
from search_tool.engines import SearchError, search
from search_tool.feature import MISSING, OWN_TOOLS, SCHEMA, SearchTools, _by_the_provider

PAGES = [
    {
        "title": "Assam  tea",
        "url": "https://tea.example/assam",
        "content": "Strong.",
        "description": "Strong.",
    },
    {"title": "Evil", "url": "javascript:alert(1)", "content": "x"},
    {"title": "File", "url": "file:///etc/passwd", "content": "x"},
    "no result",
]
ANSWERS = {"searxng": {"results": PAGES}, "tavily": {"results": PAGES}, "brave": {"web": {"results": PAGES}}}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BRAVE_API_KEY", "TAVILY_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def run(tools: SearchTools, **config: Any) -> dict[str, Any]:
    state = tools.init(config)
    return asyncio.run(tools.execute_tool("web_search", {"query": "assam tea"}, state))


@pytest.mark.parametrize("engine", ["searxng", "brave", "tavily"])
def test_each_engine_is_asked_in_its_own_way_and_only_pages_of_the_web_come_back(engine: str) -> None:
    with ScriptedServer(json_reply(ANSWERS[engine])) as server:
        tools = SearchTools({} if engine == "searxng" else {engine: f"{server.url}/find"})
        config = {"search_url": server.url} if engine == "searxng" else {f"{engine}_api_key": "k-1"}

        result = run(tools, search_results=3, **config)
        asked = server.request

    assert result["result"] == "1. Assam tea\n   https://tea.example/assam\n   Strong."
    assert asked.headers["user-agent"] == USER_AGENT
    if engine == "searxng":
        assert (asked.path, dict(asked.query)) == ("/search", {"q": "assam tea", "format": "json"})
    elif engine == "brave":
        assert (dict(asked.query)["q"], asked.headers["x-subscription-token"]) == ("assam tea", "k-1")
    else:
        assert asked.json == {"query": "assam tea", "max_results": 3}
        assert asked.headers["authorization"] == "Bearer k-1"


def test_the_engine_is_chosen_by_what_is_there_and_a_setting_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(**config: Any) -> str:
        settings = SearchTools().init(config)["settings"]
        return str(settings.chosen({"TAVILY_API_KEY": "t"} if config.pop("key", False) else {}))

    assert chosen() == ""
    assert chosen(brave_api_key="b", tavily_api_key="t") == "brave"
    assert chosen(search_url="http://here", brave_api_key="b") == "searxng"
    assert chosen(search_engine="tavily", search_url="http://here", tavily_api_key="t") == "tavily"
    assert chosen(search_engine="brave", search_url="http://here") == ""
    monkeypatch.setenv("TAVILY_API_KEY", "t")
    with ScriptedServer(json_reply(ANSWERS["tavily"])) as server:
        assert run(SearchTools({"tavily": server.url}))["success"]


def test_without_an_engine_the_model_reads_what_is_missing_and_nobody_is_asked() -> None:
    model = ScriptedProvider(
        [Reply(tool_calls=[ToolCall("web_search", {"query": "tea"})]), "I cannot search."]
    )

    result = Agent(model, plugins={"search_tool": SearchTool}).run("Search for tea.")

    [message] = [one for one in result.messages if one["role"] == "tool"]
    assert MISSING in message["content"] and "agent config set" in message["content"]
    tools = SearchTools()
    display = tools.format_tool_call_display("web_search", {"query": "tea"}, tools.init({}))
    assert display["refused"] == MISSING


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (error_reply(401, "no"), "refuses the key"),
        (error_reply(429, "no"), "too many searches"),
        (ServerReply(body=b"<html>"), "did not answer in JSON; a SearXNG needs `json`"),
        (json_reply({"results": "none"}), "something other than a list"),
        (json_reply({"results": [{"url": "x" * 3_000_000}]}), "more than 2,000,000 bytes"),
        (
            ServerReply(status=302, headers={"Location": "http://169.254.169.254/"}),
            "answered with status 302",
        ),
    ],
)
def test_what_goes_wrong_is_said_and_redirects_are_not_followed(reply: ServerReply, told: str) -> None:
    with ScriptedServer(reply) as server:
        assert told in run(SearchTools(), search_url=server.url)["error"]
        assert len(server.requests) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "http://localhost:9/", "http://169.254.169.254/"])
def test_an_engine_on_the_internet_must_have_a_public_address(url: str) -> None:
    with pytest.raises(SearchError, match=r"is not asked|no public address"):
        asyncio.run(search("brave", "tea", 3, key="k", url=url, seconds=5))


def test_a_provider_that_searches_itself_gets_the_request_and_our_tool_goes() -> None:
    for provider, (name, tool) in OWN_TOOLS.items():
        view: Any = SimpleNamespace(run=SimpleNamespace(model=SimpleNamespace(provider=provider)))
        ours, other = SimpleNamespace(name="web_search"), SimpleNamespace(name="fetch_url")
        prompt = Prompt(messages=[], tools=(ours, other), config={name: [{"kept": 1}]})  # type: ignore[arg-type]
        made = _by_the_provider(prompt, view)
        assert made.config[name] == [{"kept": 1}, tool] and [one.name for one in made.tools] == ["fetch_url"]
        assert _by_the_provider(made, view).config == made.config
    stranger: Any = SimpleNamespace(run=SimpleNamespace(model=SimpleNamespace(provider="scripted")))
    nothing = Prompt(messages=[], tools=(), config={})
    assert _by_the_provider(nothing, stranger) is nothing


def test_the_settings_say_which_engines_there_are() -> None:
    assert SCHEMA["search_engine"]["enum"] == ["auto", "searxng", "brave", "tavily", "provider"]


def test_without_an_engine_a_provider_that_can_search_does_after_the_call_was_approved() -> None:
    search = ToolCall("web_search", {"query": "assam  tea"}, "c1")
    with ScriptedServer(
        anthropic_reply(tool_calls=[search]),
        anthropic_reply("Assam, https://tea.example/assam: a strong tea."),
        anthropic_reply("It is strong."),
    ) as server:
        config = {"base_url": server.url, "api_key": "k"}
        agent = Agent(
            "anthropic:claude-sonnet-5",
            config=config,
            plugins={"search_tool": SearchTool},
            sections={"permissions": {"ask": ["web_search"]}},
        )
        asked = agent.run("What is assam tea?")
        assert len(server.requests) == 1
        [waiting] = asked.suspended
        assert waiting.parameters["display"]["title"] == "by anthropic, which charges for it"
        result = agent.run(session=asked.session, decisions=[{"target": waiting.id, "approved": True}])

    first, side, last = (request.json for request in server.requests)
    assert [one["name"] for one in first["tools"]] == ["web_search"] and "type" not in first["tools"][0]
    assert side["tools"] == [{"type": "web_search_20250305", "name": "web_search"}]
    assert len(side["messages"]) == 1 and "assam tea" in str(side["messages"][0]["content"])
    assert "https://tea.example/assam" in str(last["messages"][-1])
    assert (result.text, result.usage.requests) == ("It is strong.", 3)


def test_a_search_of_the_provider_that_fails_is_the_result_of_the_call() -> None:
    search = ToolCall("web_search", {"query": "tea"}, "c1")
    with ScriptedServer(
        anthropic_reply(tool_calls=[search]),
        error_reply(400, "no search for you", wire="anthropic"),
        anthropic_reply("I cannot search."),
    ) as server:
        agent = Agent(
            "anthropic:claude-sonnet-5",
            config={"base_url": server.url, "api_key": "k"},
            plugins={"search_tool": SearchTool},
        )
        result = agent.run("What is tea?")

    [message] = [one for one in result.messages if one["role"] == "tool"]
    assert (
        "the search of the provider failed" in message["content"]
        and "no search for you" in message["content"]
    )
    assert result.text == "I cannot search."

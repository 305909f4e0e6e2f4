from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import tool
from agent_provider_kit import Unreachable
from agent_testing import error_reply, gemini_models, gemini_reply, json_reply
from gemini_provider import GeminiProvider
from gemini_provider.options import function_calling, read_safety, read_thinking, tool_options

if TYPE_CHECKING:
    from agent_testing import Talk


def test_the_address_names_model_version_and_way(talk: Talk) -> None:
    talk.add("user", "Hi").call(gemini_reply("Ok"))
    assert talk.server.request.target == "/v1beta/models/gemini-3-test:generateContent"
    assert talk.server.request.headers["x-goog-api-key"] == "AIza-secret"

    talk.stream(gemini_reply("Ok"), api_version="v1", model="models/gemini-2.5-pro")
    assert talk.server.request.target == "/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse"

    talk.call(gemini_reply("Ok"), base_url=f"{talk.server.url}/proxy/v1beta/", model="tunedModels/my one")
    assert talk.server.request.target == "/proxy/v1beta/tunedModels/my%20one:generateContent"

    talk.call(gemini_reply("Ok"), base_url=f"{talk.server.url}/v1/projects/p/publishers/google")
    assert talk.server.request.path == "/v1/projects/p/publishers/google/models/gemini-3-test:generateContent"


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_the_key_may_come_from_the_environment(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.setenv(variable, "AIza-from-outside")
    del talk.config["api_key"]
    talk.add("user", "Hi").call(gemini_reply("Ok"))

    assert talk.server.request.headers["x-goog-api-key"] == "AIza-from-outside"


def test_settings_become_the_generation_config(talk: Talk) -> None:
    talk.add("user", "Hi").call(
        gemini_reply("Ok"),
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        max_output_tokens=100,
        stop_sequences=["END"],
        response_json_schema={"type": "object"},
        thinking="low",
        include_thoughts=True,
        generation_config={"enableEnhancedCivicAnswers": True},
        safety_settings={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
        cached_content="cachedContents/1",
        extra_body={"labels": {"team": "tea"}},
    )

    assert talk.sent == {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "responseJsonSchema": {"type": "object"},
            "responseMimeType": "application/json",
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True},
            "enableEnhancedCivicAnswers": True,
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "cachedContent": "cachedContents/1",
        "labels": {"team": "tea"},
    }


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, {}),
        (True, {"includeThoughts": True}),
        (False, {"thinkingBudget": 0}),
        (512, {"thinkingBudget": 512}),
        ("high", {"thinkingLevel": "high"}),
        ({"thinkingBudget": -1}, {"thinkingBudget": -1}),
    ],
)
def test_thinking_is_said_in_many_ways(setting: Any, expected: dict[str, Any]) -> None:
    assert read_thinking({"thinking": setting}) == expected


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("auto", {"mode": "AUTO"}),
        ("any", {"mode": "ANY"}),
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        ("look_up", {"mode": "ANY", "allowedFunctionNames": ["look_up"]}),
        (["a", "b"], {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}),
        ({"mode": "VALIDATED"}, {"mode": "VALIDATED"}),
    ],
)
def test_a_tool_choice_is_said_in_many_ways(setting: Any, expected: dict[str, Any]) -> None:
    assert function_calling({"tool_choice": setting}) == {"functionCallingConfig": expected}


def test_safety_settings_pass_as_the_api_takes_them() -> None:
    own = [{"category": "C", "threshold": "OFF", "method": "SEVERITY"}]

    assert read_safety(own) == own


def test_without_tools_nothing_is_said_about_them() -> None:
    assert tool_options({"tool_choice": "any", "tool_config": {"a": 1}}, []) == {}


def test_tools_are_declared_in_json_schema(talk: Talk) -> None:
    @tool
    def look_up(word: str) -> str:
        """Look a word up."""
        return word

    talk.core.register_tool(look_up)
    talk.add("user", "Hi").call(
        gemini_reply("Ok"),
        tool_choice="any",
        server_tools=[{"googleSearch": {}}],
        tool_config={"includeServerSideToolInvocations": True},
    )

    declared, search = talk.sent["tools"]
    [function] = declared["functionDeclarations"]
    assert function["name"] == "look_up" and function["description"] == "Look a word up."
    assert function["parametersJsonSchema"]["properties"]["word"]["type"] == "string"
    assert search == {"googleSearch": {}}
    assert talk.sent["toolConfig"] == {
        "functionCallingConfig": {"mode": "ANY"},
        "includeServerSideToolInvocations": True,
    }


def test_models_are_discovered_without_their_prefix(talk: Talk) -> None:
    talk.server.play(gemini_models("gemini-3-pro", "gemini-2.5-flash"))
    models = GeminiProvider().get_models({**talk.config, "discover_models": True})

    assert talk.server.request.target == "/v1beta/models?pageSize=1000"
    assert [model["id"] for model in models] == ["gemini-3-pro", "gemini-2.5-flash"]
    assert models[0]["context_window"] == 32768 and models[0]["name"] == "Gemini-3-Pro"


def test_models_that_do_not_answer_are_left_out_and_thinking_is_a_tag(talk: Talk) -> None:
    talk.server.play(
        json_reply(
            {
                "models": [
                    {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
                    {"name": "models/thinks", "thinking": True, "new": 1},
                    {"name": "tunedModels/mine"},
                ]
            }
        )
    )
    thinks, mine = GeminiProvider().get_models({**talk.config, "discover_models": True})

    assert thinks["id"] == "thinks" and "reasoning" in thinks["tags"] and thinks["new"] == 1
    assert mine["id"] == "tunedModels/mine" and "reasoning" not in mine["tags"]


def test_a_server_that_cannot_be_reached_is_reported(talk: Talk) -> None:
    with pytest.raises(Unreachable, match=r"cannot reach 127\.0\.0\.1"):
        GeminiProvider().get_models({"base_url": "http://127.0.0.1:1", "discover_models": True})


def test_an_error_while_discovering_is_read_as_googles(talk: Talk) -> None:
    talk.server.play(error_reply(400, "API key not valid.", code="INVALID_ARGUMENT", wire="gemini"))
    with pytest.raises(Exception, match=r"INVALID_ARGUMENT.*API key not valid"):
        GeminiProvider().get_models({**talk.config, "discover_models": True})


def test_without_discovery_the_configured_model_is_the_only_one() -> None:
    assert GeminiProvider().get_models({"model": "gemini-3-pro"}) == [{"id": "gemini-3-pro"}]

"""One setting, every provider: what `output_schema` and its siblings become on each wire."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from agent_core import AgentCore, ConfigError, tool
from agent_provider_kit import JsonObject, OutputSchema, read_output_schema
from agent_testing import (
    Line,
    ScriptedServer,
    Talk,
    anthropic_reply,
    chat_reply,
    gemini_reply,
    responses_reply,
)
from agent_testing.fixtures import plain_environment, scripted_server
from anthropic_provider import AnthropicProvider
from gemini_provider import GeminiProvider
from local_llama_provider import LocalLlamaProvider
from local_llama_provider.provider import request_body
from openai_compatible_provider import OpenAICompatibleProvider
from openai_responses_provider import OpenAIResponsesProvider

__all__ = ["plain_environment", "scripted_server"]

SCHEMA: JsonObject = {
    "title": "Cup of tea",
    "type": "object",
    "properties": {"kind": {"type": "string"}, "minutes": {"type": "integer", "minimum": 1}},
    "required": ["kind", "minutes"],
    "additionalProperties": False,
}
WITHOUT_BOUNDS: JsonObject = {
    **SCHEMA,
    "properties": {"kind": {"type": "string"}, "minutes": {"type": "integer", "description": "minimum: 1"}},
}
JSON_SCHEMA: JsonObject = {"name": "Cup_of_tea", "schema": SCHEMA, "strict": True}


class Provider(NamedTuple):
    """A provider and a reply in its format."""

    make: Any
    reply: Line
    model: str


PROVIDERS = {
    "chat": Provider(OpenAICompatibleProvider, chat_reply("{}"), "gpt-6"),
    "responses": Provider(OpenAIResponsesProvider, responses_reply("{}"), "gpt-6"),
    "anthropic": Provider(AnthropicProvider, anthropic_reply("{}"), "claude-opus-5-5"),
    "anthropic before 4.6": Provider(AnthropicProvider, anthropic_reply("{}"), "claude-haiku-4-5-20251001"),
    "gemini": Provider(GeminiProvider, gemini_reply("{}"), "gemini-3-flash"),
    "gemini before 3": Provider(GeminiProvider, gemini_reply("{}"), "gemini-2.5-flash"),
}


@tool
def brew(kind: str) -> str:
    """Brew a cup."""
    return kind


def sent(server: ScriptedServer, provider: str, **settings: Any) -> JsonObject:
    make, reply, model = PROVIDERS[provider]
    talk = Talk(server, make(), model=model, api_key="a secret key")
    talk.core.register_tool(brew)
    body = talk.add("user", "Tea?").call(reply, **settings).sent
    return {
        key: value for key, value in body.items() if key not in ("model", "messages", "input", "contents")
    }


@pytest.mark.parametrize(
    ("provider", "where", "expected"),
    [
        ("chat", ("response_format",), {"type": "json_schema", "json_schema": JSON_SCHEMA}),
        ("responses", ("text", "format"), {"type": "json_schema", **JSON_SCHEMA}),
        ("anthropic", ("output_config", "format"), {"type": "json_schema", "schema": WITHOUT_BOUNDS}),
        ("gemini", ("generationConfig", "responseJsonSchema"), SCHEMA),
        ("gemini", ("generationConfig", "responseMimeType"), "application/json"),
    ],
)
def test_an_output_schema_binds_the_answer(
    scripted_server: ScriptedServer, provider: str, where: tuple[str, ...], expected: Any
) -> None:
    found: Any = sent(scripted_server, provider, output_schema=SCHEMA)
    for key in where:
        found = found[key]

    assert found == expected


@pytest.mark.parametrize(
    ("provider", "effort", "expected"),
    [
        ("chat", "minimal", {"reasoning_effort": "minimal"}),
        ("chat", "none", {"reasoning_effort": "none"}),
        ("responses", "low", {"reasoning": {"effort": "low"}}),
        ("anthropic", "none", {"thinking": {"type": "disabled"}}),
        ("anthropic", "minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("anthropic", "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("anthropic before 4.6", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("anthropic before 4.6", "none", {"thinking": {"type": "disabled"}}),
        ("gemini", "none", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "minimal"}}}),
        ("gemini", "medium", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "medium"}}}),
        ("gemini before 3", "none", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
        ("gemini before 3", "high", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 24576}}}),
    ],
)
def test_the_effort_of_thinking_is_one_word(
    scripted_server: ScriptedServer, provider: str, effort: str, expected: JsonObject
) -> None:
    without = sent(scripted_server, provider)
    found = sent(scripted_server, provider, reasoning_effort=effort)
    changed = {key: value for key, value in found.items() if value != without.get(key)}
    changed.pop("max_tokens", None)

    assert changed == expected


@pytest.mark.parametrize(
    ("provider", "auto", "none", "required", "named"),
    [
        ("chat", "auto", "none", "required", {"type": "function", "function": {"name": "brew"}}),
        ("responses", "auto", "none", "required", {"type": "function", "name": "brew"}),
        ("anthropic", {"type": "auto"}, {"type": "none"}, {"type": "any"}, {"type": "tool", "name": "brew"}),
        (
            "gemini",
            {"mode": "AUTO"},
            {"mode": "NONE"},
            {"mode": "ANY"},
            {"mode": "ANY", "allowedFunctionNames": ["brew"]},
        ),
    ],
)
def test_a_tool_choice_is_said_in_one_way(
    scripted_server: ScriptedServer, provider: str, auto: Any, none: Any, required: Any, named: Any
) -> None:
    def choice(setting: Any) -> Any:
        body = sent(scripted_server, provider, tool_choice=setting)
        return body["toolConfig"]["functionCallingConfig"] if "toolConfig" in body else body["tool_choice"]

    assert list(map(choice, ("auto", "none", "required", {"name": "brew"}))) == [auto, none, required, named]


def test_one_call_at_a_time_is_asked_for_or_refused_by_name(scripted_server: ScriptedServer) -> None:
    assert sent(scripted_server, "chat", parallel_tool_calls=False)["parallel_tool_calls"] is False
    assert sent(scripted_server, "responses", parallel_tool_calls=False)["parallel_tool_calls"] is False
    choice = sent(scripted_server, "anthropic", parallel_tool_calls=False)["tool_choice"]
    assert choice == {"type": "auto", "disable_parallel_tool_use": True}
    with pytest.raises(ConfigError, match=r"parallel_tool_calls: the Gemini API"):
        sent(scripted_server, "gemini", parallel_tool_calls=False)


@pytest.mark.parametrize("provider", ["chat", "responses", "anthropic", "gemini"])
def test_a_word_is_not_taken_for_yes_or_no(scripted_server: ScriptedServer, provider: str) -> None:
    with pytest.raises(ConfigError, match="parallel_tool_calls must be true or false, not 'no'") as caught:
        sent(scripted_server, provider, parallel_tool_calls="no")

    assert caught.value.field == "parallel_tool_calls"


def local(**settings: Any) -> JsonObject:
    provider = LocalLlamaProvider()
    core = AgentCore()
    core.register_tool(brew)
    config = {"tools": core.get_tool_schemas({}), **settings}
    return request_body([{"role": "user", "content": "Tea?"}], provider.init(config))


def test_the_embedded_model_is_bound_by_a_schema_in_every_case() -> None:
    def branches(**settings: Any) -> list[str]:
        form = local(**settings)["response_format"]["json_schema"]["schema"]["oneOf"]
        return ["answer" if "answer" in each["properties"] else "call" for each in form]

    assert branches(tool_choice="auto") == ["answer", "call"]
    assert branches(tool_choice="required") == branches(tool_choice={"name": "brew"}) == ["call"]
    assert "response_format" not in local(tool_choice="none")
    alone = local(tool_choice="none", output_schema=SCHEMA)["response_format"]
    assert alone["json_schema"]["schema"] == SCHEMA
    both = local(output_schema=SCHEMA)["response_format"]["json_schema"]["schema"]["oneOf"]
    assert both[0]["properties"]["answer"] == SCHEMA
    assert local(reasoning_effort="none")["chat_template_kwargs"]["enable_thinking"] is False
    with pytest.raises(ConfigError, match="there is no tool 'boil'"):
        local(tool_choice={"name": "boil"})


@pytest.mark.parametrize("name", [*PROVIDERS, "local"])
def test_every_provider_declares_the_four_settings(name: str) -> None:
    make = LocalLlamaProvider if name == "local" else PROVIDERS[name].make

    declared = make().get_config_schema().keys()

    assert {"output_schema", "reasoning_effort", "tool_choice", "parallel_tool_calls"} <= declared


def test_a_schema_may_bring_a_name_and_say_whether_it_is_strict() -> None:
    named = {"schema": SCHEMA, "name": "tea", "strict": False}
    with_optional = {**SCHEMA, "required": ["kind"]}

    assert read_output_schema({"output_schema": named}) == OutputSchema(SCHEMA, "tea", strict=False)
    assert read_output_schema({"output_schema": SCHEMA}) == OutputSchema(SCHEMA, "Cup_of_tea", strict=True)
    found = read_output_schema({"output_schema": with_optional})
    assert found is not None and not found.strict
    assert read_output_schema({}) is None
    with pytest.raises(ConfigError, match="output_schema must be a JSON Schema object, not str"):
        read_output_schema({"output_schema": "tea"})


def test_the_apis_own_form_wins_over_the_common_one(scripted_server: ScriptedServer) -> None:
    own = {"type": "json_object"}
    thinking = {"type": "enabled", "budget_tokens": 5000}

    chat = sent(scripted_server, "chat", output_schema=SCHEMA, response_format=own)
    claude = sent(scripted_server, "anthropic", reasoning_effort="low", thinking=thinking)

    assert chat["response_format"] == own
    assert claude["thinking"] == thinking and claude["output_config"] == {"effort": "low"}

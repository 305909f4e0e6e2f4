"""The embedded model, for real: its answers are its own, so tests look at their shape."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_core import AgentCore, Cancellation, ConfigError, tool
from local_llama_provider import LocalLlamaProvider, weights
from local_llama_provider.tool_choice import answer_format, as_spoken, read_answer

if TYPE_CHECKING:
    from pathlib import Path

# What was asked before in this process must not change an answer by a rounding error.
CONFIG: dict[str, Any] = {"provider": "local_llama", "max_tokens": 24, "cache_prompt": False}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def core() -> AgentCore:
    made = AgentCore()
    made.register_provider(LocalLlamaProvider)
    return made


def ask(core: AgentCore, text: str) -> Any:
    return core.add_message(core.create_session(), "user", text)


def test_a_chat_of_two_turns_keeps_its_history(core: AgentCore) -> None:
    session, first = core.send_request(ask(core, "What is the capital of France?"), CONFIG)
    session = core.add_message(session, "user", "And of Italy?", config=CONFIG)

    session, second = core.send_request(session, CONFIG)

    assert first[0]["content"] and second[0]["content"]
    assert [message.role for message in session.messages] == ["user", "assistant", "user", "assistant"]
    assert second[0]["metadata"]["usage"]["input_tokens"] > first[0]["metadata"]["usage"]["input_tokens"]


def test_a_streamed_reply_comes_in_pieces_that_add_up(core: AgentCore) -> None:
    events = list(core.send_request_stream(ask(core, "Say hello."), CONFIG))

    said = "".join(event["message"]["content"] for event in events[:-1])
    assert len(events) > 3
    assert said == events[-1]["messages"][0]["content"]


def test_the_same_question_gets_the_same_answer_on_an_event_loop(core: AgentCore) -> None:
    config = {**CONFIG, "cache_prompt": False}
    session = ask(core, "What is the capital of France?")

    _, waited = core.send_request(session, config)
    _, awaited = asyncio.run(core.send_request_async(session, config))

    assert waited[0]["content"] == awaited[0]["content"]


def test_a_tool_is_called_with_arguments_that_fit_and_its_result_answered(core: AgentCore) -> None:
    core.register_tool(add)
    config = {**CONFIG, "max_tokens": 64}
    session, messages = core.send_request(ask(core, "Use the add tool to compute 2 plus 3."), config)
    calls = core.extract_tool_calls_from_messages(messages)
    assert [call["function"]["name"] for call in calls] == ["add"]

    (result,) = core.execute_tool_calls(calls, config)
    session = core.add_message(
        session, "tool", result["content"], result["metadata"], config, tool_result=result["tool_result"]
    )
    _, answer = core.send_request(session, config)

    assert result["content"].lstrip("-").isdigit()
    assert answer[0]["content"]
    assert core.extract_tool_calls_from_messages(answer) == []


def test_cancelling_keeps_what_was_said(core: AgentCore) -> None:
    token = Cancellation()
    final: dict[str, Any] = {}
    for event in core.send_request_stream(ask(core, "Count to one hundred."), CONFIG, cancellation=token):
        if event["type"] == "partial" and event["message"]["content"]:
            token.cancel()
        final = event

    assert final["interrupted"] is True
    assert final["messages"][0]["content"]


def test_it_says_that_it_is_a_demo_model() -> None:
    provider = LocalLlamaProvider()

    (model,) = provider.get_models({})

    assert "demo" in model["name"]
    assert model["context_window"] == 8192
    assert "demo_model" in provider.get_tags({})
    assert "demo_model" not in provider.get_tags({"model_path": "mine.gguf"})


def test_a_file_that_is_not_there_is_named(core: AgentCore, tmp_path: Path) -> None:
    missing = tmp_path / "mine.gguf"

    with pytest.raises(ConfigError, match=r"mine\.gguf") as caught:
        core.send_request(ask(core, "hello"), {**CONFIG, "model_path": str(missing)})

    assert caught.value.field == "model_path"


def test_a_file_of_ones_own_is_used(core: AgentCore, tmp_path: Path) -> None:
    own = tmp_path / "mine.gguf"
    own.symlink_to(weights.find_weights({}))

    _, messages = core.send_request(
        ask(core, "Say hello."), {**CONFIG, "model_path": str(own), "model": "mine"}
    )

    assert messages[0]["content"]
    assert messages[0]["metadata"]["model"] == "mine"


def test_without_weights_the_message_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(weights, "_PACKAGE", "not_installed_here")

    with pytest.raises(weights.WeightsMissingError, match=r"python -m local_llama_provider\.pull"):
        weights.find_weights({})


def test_weights_that_are_not_the_expected_ones_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    other = tmp_path / weights.FILE_NAME
    other.write_bytes(b"something else")

    with pytest.raises(RuntimeError, match="checksum"):
        weights.keep(other, lambda _text: None)

    assert list(weights.data_folder().iterdir()) == []


def test_the_real_weights_are_copied_into_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = weights.find_weights({})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    said: list[str] = []

    kept = weights.keep(source, said.append)

    assert kept == weights.find_weights({})
    assert kept.read_bytes() == source.read_bytes()
    assert said == [f"Ready: {kept}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"answer": "five"}', ("five", None)),
        ("not JSON", ("not JSON", None)),
        ("[1]", ("[1]", None)),
        (
            '{"name": "add", "arguments": {"a": 1}}',
            ("", {"type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}),
        ),
    ],
)
def test_an_answer_is_read_as_words_or_as_a_call(text: str, expected: object) -> None:
    assert read_answer(text) == expected


def test_the_format_has_a_branch_for_words_and_one_for_each_tool() -> None:
    schema = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

    branches = answer_format([schema])["json_schema"]["schema"]["oneOf"]

    assert [sorted(branch["properties"]) for branch in branches] == [["answer"], ["arguments", "name"]]


def test_tools_are_described_to_the_model_in_words() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}

    assert as_spoken({"role": "tool", "content": "5"})["role"] == "user"
    assert as_spoken({"role": "assistant", "content": None, "tool_calls": [call]})["content"].startswith("{")
    assert as_spoken({"role": "user", "content": [{"type": "text", "text": "hi"}]})["content"] == "hi"


def test_an_answer_fits_its_schema_and_a_choice_of_a_tool_is_kept(core: AgentCore) -> None:
    core.register_tool(add)
    city = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
    }

    _, [answer] = core.send_request(
        ask(core, "What is the capital of France?"),
        {**CONFIG, "max_tokens": 60, "output_schema": city, "tool_choice": "none"},
    )
    _, [called] = core.send_request(
        ask(core, "Hello!"), {**CONFIG, "max_tokens": 60, "tool_choice": {"name": "add"}}
    )

    assert isinstance(orjson.loads(answer["content"])["city"], str)
    assert called["metadata"]["tool_calls"][0]["function"]["name"] == "add"

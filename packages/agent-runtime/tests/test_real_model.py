"""Five lines with the embedded model, for real: its answers are its own, so tests look at their shape."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest

from agent_runtime import Agent

if find_spec("local_llama_provider") is None:
    pytest.skip("the embedded model is not installed", allow_module_level=True)

from local_llama_provider import weights

try:
    weights.find_weights({})
except weights.WeightsMissingError as missing:
    pytest.skip(str(missing), allow_module_level=True)

pytestmark = pytest.mark.slow  # loading a model and letting it answer takes seconds

# What was asked before in this process must not change an answer by a rounding error.
CONFIG = {"max_tokens": 64, "temperature": 0, "cache_prompt": False}


def test_a_streamed_run_uses_a_tool_and_answers() -> None:
    added: list[tuple[int, int]] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        added.append((a, b))
        return a + b

    agent = Agent("local", tools=[add], config=CONFIG, max_rounds=3)
    stream = agent.stream("Use the add tool to compute 2 plus 3.")
    events: list[Any] = list(stream)

    result = stream.result
    assert result is not None and result.error is None
    assert added and result.reason.code in ("natural_end", "length", "max_rounds")
    kinds = [event["type"] for event in events]
    assert kinds[0] == "run_start" and kinds[-1] == "run_end"
    assert kinds.index("tool_call_start") < kinds.index("tool_call_result")
    (first, *_) = [event for event in events if event["type"] == "tool_call_result"]
    assert first["message"]["content"] == str(sum(added[0])) and not first["is_error"]
    assert result.usage.input_tokens > 0 and result.usage.requests == result.rounds


def test_a_conversation_goes_on_in_its_session() -> None:
    agent = Agent("local", config={**CONFIG, "max_tokens": 16}, system_prompt="You answer in one word.")

    first = agent.run("What is the capital of France?")
    second = asyncio.run(agent.run_async("And of Italy?", session=first.session))

    assert first.text and second.text
    assert [message.role for message in second.session.messages] == ["user", "assistant", "user", "assistant"]
    assert second.usage.input_tokens > first.usage.input_tokens


def test_an_answer_that_is_cut_off_says_so() -> None:
    result = Agent("local", config={**CONFIG, "max_tokens": 3}).run("Tell me a story about a lighthouse.")

    assert result.text and result.reason.code == "length"

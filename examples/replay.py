"""Replay in tests: what a real model said is recorded once, and played from then on, without a key.

pytest replay.py --agent-record      # once, with a key: writes recordings/replay/....json
pytest replay.py                     # from then on
"""

import os
from pathlib import Path

from agent_runtime import Agent
from agent_testing import FunctionModel, ModelRequest, TestModel


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SERVER = os.environ.get("BASE_URL", "https://api.openai.com/v1")
KEY = os.environ.get("OPENAI_API_KEY", "not needed for a replay")
agent = Agent("openai_compatible:gpt-4o", config={"base_url": SERVER, "api_key": KEY}, tools=[add])


def test_what_a_real_model_said(agent_recording: Path) -> None:
    """The recording answers; it has no keys in it, so it can be committed."""
    assert "42" in agent.run("What is 17 plus 25?").text


def test_the_parts_fit_together() -> None:
    """TestModel calls every tool once, with arguments that fit."""
    with agent.override(model=TestModel()):
        result = agent.run("Hello.")

    assert result.usage.tool_calls == 1


def test_a_conversation_that_goes_a_certain_way() -> None:
    """FunctionModel is a model that you write."""

    def model(request: ModelRequest) -> str:
        return f"You said: {request.messages[-1]['content']}"

    with agent.override(model=FunctionModel(model)):
        assert agent.run("Hello.").text == "You said: Hello."

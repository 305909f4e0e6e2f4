"""What several test files share: a conversation of the provider with a scripted server."""

from __future__ import annotations

from agent_testing.fixtures import plain_environment, scripted_server, talk_fixture
from openai_responses_provider import OpenAIResponsesProvider

__all__ = ["plain_environment", "scripted_server", "talk"]

talk = talk_fixture(
    OpenAIResponsesProvider, path="/v1", model="scripted-model", api_key="sk-responses-secret"
)

"""What several test files share: a conversation of the provider with a scripted server."""

from __future__ import annotations

from agent_testing.fixtures import plain_environment, scripted_server, talk_fixture
from gemini_provider import GeminiProvider

__all__ = ["plain_environment", "scripted_server", "talk"]

talk = talk_fixture(GeminiProvider, model="gemini-3-test", api_key="AIza-secret")

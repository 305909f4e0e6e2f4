"""What several test files share: a conversation of the provider with a scripted server."""

from __future__ import annotations

from agent_testing.fixtures import plain_environment, scripted_server, talk_fixture
from anthropic_provider import AnthropicProvider

__all__ = ["plain_environment", "scripted_server", "talk"]

talk = talk_fixture(AnthropicProvider, model="claude-test", api_key="sk-ant-secret")

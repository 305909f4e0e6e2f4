"""What several test files share: a provider that talks to a scripted server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentCore, Session
from agent_provider_kit.testing.fixtures import scripted_server
from gemini_provider import GeminiProvider

if TYPE_CHECKING:
    from agent_core.types import MessageRole
    from agent_provider_kit.testing import Line, ScriptedServer

__all__ = ["scripted_server"]

Dicts = list[dict[str, Any]]


class Talk:
    """A conversation with the scripted server, through a core."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.provider = GeminiProvider()
        self.core = AgentCore()
        self.core.register_provider(self.provider)
        self.config: dict[str, Any] = {
            "provider": "gemini",
            "model": "gemini-3-test",
            "base_url": server.url,
            "api_key": "AIza-secret",
        }
        self.session: Session = self.core.create_session("talk")
        self.partials: Dicts = []

    @property
    def native(self) -> Dicts:
        """The session's native history."""
        return list(self.session.to_dict()["metadata"]["native_messages"])

    @property
    def last(self) -> dict[str, Any]:
        """The last message."""
        return self.session.messages[-1].to_dict()

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        body: dict[str, Any] = self.server.request.json
        return body

    def add(self, role: MessageRole, content: str, **more: Any) -> Talk:
        """Add a message."""
        self.session = self.core.add_message(self.session, role, content, **more)
        return self

    def answer(self, content: str, number: int = 0) -> Talk:
        """Add the result of one of the last calls."""
        asked = next(m for m in reversed(list(self.session.messages)) if m.metadata.get("tool_calls"))
        call = asked.metadata["tool_calls"][number]
        known = {"tool_call_id": call["id"], "tool_name": call["function"]["name"]}
        return self.add("tool", content, metadata=known)

    def call(self, *replies: Line, **config: Any) -> Talk:
        """Ask for an answer in one piece."""
        self.server.play(*replies)
        self.session, _messages = self.core.send_request(self.session, {**self.config, **config})
        return self

    def stream(self, *replies: Line, **config: Any) -> Talk:
        """Ask for an answer in pieces."""
        self.server.play(*replies)
        *partials, final = self.core.send_request_stream(self.session, {**self.config, **config})
        self.partials = [event["message"] for event in partials]
        self.session = final["session"]
        return self


@pytest.fixture
def talk(scripted_server: ScriptedServer) -> Talk:
    """A conversation that has not begun."""
    return Talk(scripted_server)

"""What several test files share: a provider that talks to a scripted server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentCore, Session
from agent_provider_kit.testing import ScriptedServer
from agent_provider_kit.testing.fixtures import scripted_server
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from agent_core.types import MessageRole
    from agent_provider_kit.testing import Line

__all__ = ["scripted_server"]

Dicts = list[dict[str, Any]]
Outcome = tuple[Session, Dicts]
Drive = Callable[[AgentCore, Session, dict[str, Any]], Outcome]


def call(core: AgentCore, session: Session, config: dict[str, Any]) -> Outcome:
    return core.send_request(session, config)[0], []


def stream(core: AgentCore, session: Session, config: dict[str, Any]) -> Outcome:
    *partials, final = core.send_request_stream(session, config)
    return final["session"], [event["message"] for event in partials]


def call_async(core: AgentCore, session: Session, config: dict[str, Any]) -> Outcome:
    return asyncio.run(core.send_request_async(session, config))[0], []


def stream_async(core: AgentCore, session: Session, config: dict[str, Any]) -> Outcome:
    async def collect() -> Dicts:
        return [event async for event in core.send_request_stream_async(session, config)]

    *partials, final = asyncio.run(collect())
    return final["session"], [event["message"] for event in partials]


DRIVERS: list[Drive] = [call, stream, call_async, stream_async]


class Talk:
    """A conversation with the scripted server, through a core."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.core = AgentCore()
        self.core.register_provider(OpenAICompatibleProvider())
        self.config: dict[str, Any] = {
            "provider": "openai_compatible",
            "model": "scripted-model",
            "base_url": f"{server.url}/v1",
            "api_key": "sk-chat-secret",
        }
        self.session: Session = self.core.create_session("talk")
        self.partials: Dicts = []
        self.drive: Drive = call

    @property
    def streams(self) -> bool:
        """Whether answers are asked for in pieces."""
        return self.drive in (stream, stream_async)

    @property
    def native(self) -> Dicts:
        """The session's native history."""
        return list(self.session.to_dict()["metadata"]["native_messages"])

    @property
    def last(self) -> dict[str, Any]:
        """The last message."""
        return self.session.messages[-1].to_dict()

    @property
    def about(self) -> dict[str, Any]:
        """The metadata of the last message."""
        about: dict[str, Any] = self.last["metadata"]
        return about

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        body: dict[str, Any] = self.server.request.json
        return body

    def add(
        self, role: MessageRole, content: str, metadata: dict[str, Any] | None = None, **more: Any
    ) -> Talk:
        """Add a message."""
        self.session = self.core.add_message(self.session, role, content, metadata, **more)
        return self

    def ask(self, *replies: Line, **config: Any) -> Talk:
        """Ask for an answer, in one piece unless `drive` says otherwise."""
        self.server.play(*replies)
        self.session, self.partials = self.drive(self.core, self.session, {**self.config, **config})
        return self

    def stream(self, *replies: Line, **config: Any) -> Talk:
        """Ask for an answer in pieces."""
        self.drive = stream
        return self.ask(*replies, **config)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor proxies of whoever runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
def talk(scripted_server: ScriptedServer) -> Talk:
    """A conversation that has not begun."""
    return Talk(scripted_server)


@pytest.fixture
def sessions_of() -> Callable[[Line], list[Session]]:
    """Ask the same question once with each of the four drivers, and return the sessions."""

    def ask(reply: Line, drive: Drive) -> Session:
        with ScriptedServer(reply) as server:
            talk = Talk(server).add("system", "Be brief.").add("user", "What is tea?")
            talk.drive = drive
            return talk.ask().session

    return lambda reply: [ask(reply, drive) for drive in DRIVERS]


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def talk_anyhow(request: pytest.FixtureRequest, talk: Talk) -> Talk:
    """A conversation through each of the four drivers in turn."""
    talk.drive = request.param
    return talk

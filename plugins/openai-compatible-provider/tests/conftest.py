"""What several test files share: a provider that talks to a scripted server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_testing import DRIVERS, ScriptedServer, Talk
from agent_testing.fixtures import plain_environment, scripted_server
from openai_compatible_provider import OpenAICompatibleProvider

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core import Session
    from agent_testing import Drive, Line

__all__ = ["plain_environment", "scripted_server"]


def talk_to(server: ScriptedServer) -> Talk:
    """Return a conversation that has not begun."""
    provider = OpenAICompatibleProvider()
    return Talk(server, provider, path="/v1", model="scripted-model", api_key="sk-chat-secret")


@pytest.fixture
def talk(scripted_server: ScriptedServer) -> Talk:
    """A conversation that has not begun."""
    return talk_to(scripted_server)


@pytest.fixture
def sessions_of() -> Callable[[Line], list[Session]]:
    """Ask the same question once with each of the four drivers, and return the sessions."""

    def ask(reply: Line, drive: Drive) -> Session:
        with ScriptedServer(reply) as server:
            talk = talk_to(server).add("system", "Be brief.").add("user", "What is tea?")
            talk.drive = drive
            return talk.ask().session

    return lambda reply: [ask(reply, drive) for drive in DRIVERS]


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def talk_anyhow(request: pytest.FixtureRequest, talk: Talk) -> Talk:
    """A conversation through each of the four drivers in turn."""
    talk.drive = request.param
    return talk

"""A conversation with the scripted server, through a core: what tests of a provider mostly need.

::

    talk = Talk(server, MyProvider(), model="scripted-model", api_key="secret")
    talk.add("user", "What is tea?").stream(my_reply("A drink."))
    assert talk.last["content"] == "A drink."
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_core import AgentCore, Session
from agent_provider_kit import Dicts, JsonObject

if TYPE_CHECKING:
    from typing import Self

    from agent_core.types import MessageRole
    from agent_testing.server import Line, ScriptedServer

Outcome = tuple[Session, Dicts]
Drive = Callable[[AgentCore, Session, JsonObject], Outcome]
"""One of the four ways to send a request; returns the new session and the partial messages."""


def by_call(core: AgentCore, session: Session, config: JsonObject) -> Outcome:
    """Ask for an answer in one piece."""
    return core.send_request(session, config)[0], []


def by_stream(core: AgentCore, session: Session, config: JsonObject) -> Outcome:
    """Ask for an answer in pieces."""
    *partials, final = core.send_request_stream(session, config)
    return final["session"], [event["message"] for event in partials]


def by_call_async(core: AgentCore, session: Session, config: JsonObject) -> Outcome:
    """Ask for an answer in one piece, on an event loop."""
    return asyncio.run(core.send_request_async(session, config))[0], []


def by_stream_async(core: AgentCore, session: Session, config: JsonObject) -> Outcome:
    """Ask for an answer in pieces, on an event loop."""

    async def collect() -> Dicts:
        return [event async for event in core.send_request_stream_async(session, config)]

    *partials, final = asyncio.run(collect())
    return final["session"], [event["message"] for event in partials]


DRIVERS: tuple[Drive, ...] = (by_call, by_stream, by_call_async, by_stream_async)
"""All four ways; a test may try each in turn."""


PATIENCE = 120.0
"""Seconds for a connection to a server on this machine, which may be busy with other tests."""


class Talk:
    """A session, a core with one provider, and a server that plays its part.

    Args:
        server: The scripted server.
        provider: The provider under test.
        path: What follows the server's address in the provider's `base_url`.
        config: Settings of the requests, in addition to `provider` and `base_url`.

    Attributes:
        session: The session as of now.
        partials: The partial messages of the last request.
        drive: How `ask` sends requests.
    """

    def __init__(self, server: ScriptedServer, provider: Any, *, path: str = "", **config: Any) -> None:
        self.server = server
        self.provider = provider
        self.core = AgentCore()
        self.core.register_provider(provider)
        self.config: JsonObject = {
            "provider": provider.name,
            "base_url": f"{server.url}{path}",
            "connect_timeout": PATIENCE,
            **config,
        }
        self.session: Session = self.core.create_session("talk")
        self.partials: Dicts = []
        self.drive: Drive = by_call

    @property
    def streams(self) -> bool:
        """Whether answers are asked for in pieces."""
        return self.drive in (by_stream, by_stream_async)

    @property
    def native(self) -> Dicts:
        """The session's native history."""
        return list(self.session.to_dict()["metadata"]["native_messages"])

    @property
    def last(self) -> JsonObject:
        """The last message."""
        return self.session.messages[-1].to_dict()

    @property
    def about(self) -> JsonObject:
        """The metadata of the last message."""
        about: JsonObject = self.last["metadata"]
        return about

    @property
    def sent(self) -> JsonObject:
        """The body of the last request."""
        body: JsonObject = self.server.request.json
        return body

    def add(self, role: MessageRole, content: str, metadata: JsonObject | None = None, **more: Any) -> Self:
        """Add a message."""
        self.session = self.core.add_message(self.session, role, content, metadata, **more)
        return self

    def answer(self, content: str, number: int = 0) -> Self:
        """Add the result of one of the last calls."""
        asked = next(m for m in reversed(list(self.session.messages)) if m.metadata.get("tool_calls"))
        call = asked.metadata["tool_calls"][number]
        known = {"tool_call_id": call["id"], "tool_name": call["function"]["name"]}
        return self.add("tool", content, metadata=known)

    def ask(self, *replies: Line, **config: Any) -> Self:
        """Ask for an answer in the way that `drive` says; the server plays *replies*."""
        self.server.play(*replies)
        self.session, self.partials = self.drive(self.core, self.session, {**self.config, **config})
        return self

    def call(self, *replies: Line, **config: Any) -> Self:
        """Ask for an answer in one piece."""
        self.drive = by_call
        return self.ask(*replies, **config)

    def stream(self, *replies: Line, **config: Any) -> Self:
        """Ask for an answer in pieces."""
        self.drive = by_stream
        return self.ask(*replies, **config)

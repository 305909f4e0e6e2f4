"""One question to a remote agent, from its card to its last word.

The talking is done by a task of its own, and whoever asked reads from a queue: so a time limit is a limit
of the talk alone, cancelling interrupts it wherever it waits, and the generator may be read from any task.
However the talk ends before the remote task does, the remote agent is told that nobody waits any more.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import httpx
from a2a.client import A2AClientError, ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, Role, SendMessageRequest

from agent_core.errors import RequestCancelled
from agent_runtime.remote.answers import Answer
from agent_runtime.remote.cards import BINDINGS, read_card
from agent_runtime.remote.failures import as_remote_error
from agent_runtime.remote.transport import Wire, open_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from a2a.client import Client
    from a2a.types import AgentCard, StreamResponse

    from agent_core import CancellationToken
    from agent_runtime.remote.agent import RemoteAgent
    from agent_runtime.remote.reply import RemoteReply

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
CANCEL_SECONDS = 2.0


async def converse(
    agent: RemoteAgent, prompt: str, cancellation: CancellationToken | None
) -> AsyncGenerator[dict[str, Any] | RemoteReply, None]:
    """Yield progress as it comes and, last, the reply.

    Raises:
        RemoteAgentError: If the agent cannot be asked, or its answer cannot be used.
        RequestCancelled: When *cancellation* is cancelled.
    """
    if cancellation is not None and cancellation.cancelled:
        raise RequestCancelled
    heard: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    talk = asyncio.create_task(_Talk(agent, heard.put_nowait).hold(prompt))
    talk.add_done_callback(lambda _: heard.put_nowait(None))
    forget = _watch(cancellation, talk)
    try:
        while (item := await heard.get()) is not None:
            yield item
        yield _outcome(talk, cancellation)
    finally:
        forget()
        await _end(talk)


def _watch(cancellation: CancellationToken | None, talk: asyncio.Task[Any]) -> Callable[[], None]:
    if cancellation is None:
        return lambda: None
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(talk.cancel)

    key = cancellation.add_callback(interrupt)
    return lambda: cancellation.remove_callback(key)


def _outcome(talk: asyncio.Task[RemoteReply], cancellation: CancellationToken | None) -> RemoteReply:
    if talk.cancelled() and cancellation is not None and cancellation.cancelled:
        raise RequestCancelled
    return talk.result()


async def _end(talk: asyncio.Task[Any]) -> None:
    """Interrupt the talk unless that has been done: a second time would keep it from saying goodbye."""
    if not talk.done():
        if not talk.cancelling():
            talk.cancel()
        await asyncio.wait([talk])
    if not talk.cancelled():
        talk.exception()  # has been raised, or nobody is there any more to be told


class _Talk:
    def __init__(self, agent: RemoteAgent, emit: Callable[[dict[str, Any]], None]) -> None:
        self._agent = agent
        self._emit = emit
        self._answer = Answer()

    async def hold(self, prompt: str) -> RemoteReply:
        """Ask, and return the reply."""
        try:
            wire = Wire(self._agent)
            async with open_client(wire) as http:
                await self._hold(prompt, wire, http)
        except Exception as error:  # the SDK lets a stranger's nonsense surface as anything
            raise as_remote_error(self._agent, error) from error
        reply = self._answer.reply()
        return replace(reply, text=self._agent.without_token(reply.text))

    async def _hold(self, prompt: str, wire: Wire, http: httpx.AsyncClient) -> None:
        client: Client | None = None
        try:
            async with asyncio.timeout(self._agent.endpoint.timeout):
                card = await read_card(self._agent, http)
                wire.allow_answer()
                client = _client(card, http)
                await self._listen(client, prompt)
                await self._poll(client)
        finally:
            if client is not None and self._answer.task_id and not self._answer.is_over:
                wire.allow_answer()
                await self._take_back(client)

    async def _listen(self, client: Client, prompt: str) -> None:
        """Send the question and read what is streamed; a broken stream of a known task is no end."""
        text = prompt.encode(errors="replace").decode()  # a model may write half a surrogate pair
        request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
        try:
            async with aclosing(_events(client, request)) as events:
                async for event in events:
                    self._show(self._answer.take(event))
                    if self._answer.is_over:
                        return
        except A2AClientError as error:
            if not self._answer.task_id or not isinstance(error.__cause__, httpx.TransportError):
                raise
        if not self._answer.task_id:
            raise self._agent.error("protocol", "it ended its stream without an answer", "try again")

    async def _poll(self, client: Client) -> None:
        """Ask how the task is doing until it is over, at first often, later seldom."""
        pause = FIRST_PAUSE
        while not self._answer.is_over:
            await self._agent.clock.sleep_async(pause, lambda _: lambda: None)
            pause = min(pause * 1.5, LONGEST_PAUSE)
            self._show(self._answer.take_task(await client.get_task(GetTaskRequest(id=self._answer.task_id))))

    async def _take_back(self, client: Client) -> None:
        with suppress(Exception):  # it may have ended meanwhile, or not know how to stop
            async with asyncio.timeout(CANCEL_SECONDS):
                await client.cancel_task(CancelTaskRequest(id=self._answer.task_id))

    def _show(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            part = item["part"]
            self._emit({"part": {**part, "text": self._agent.without_token(part["text"])}})


def _client(card: AgentCard, http: httpx.AsyncClient) -> Client:
    """Return the SDK's client; who cannot stream is polled, so that there is a task that can be cancelled."""
    streams = card.capabilities.streaming
    config = ClientConfig(httpx_client=http, polling=not streams, supported_protocol_bindings=BINDINGS)
    return ClientFactory(config).create(card)


def _events(client: Client, request: SendMessageRequest) -> AsyncGenerator[StreamResponse, None]:
    return cast("AsyncGenerator[StreamResponse, None]", client.send_message(request))


async def fetch_card(agent: RemoteAgent) -> AgentCard:
    """Return the agent's card.

    Raises:
        RemoteAgentError: If there is none that can be used.
    """
    try:
        async with open_client(Wire(agent)) as http, asyncio.timeout(agent.endpoint.timeout):
            return await read_card(agent, http)
    except Exception as error:  # the SDK lets a stranger's nonsense surface as anything
        raise as_remote_error(agent, error) from error

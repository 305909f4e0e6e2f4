"""One question to a remote agent over A2A, from its card to its reply.

A task of its own talks to the agent, and whoever asked reads from a queue: so a time limit covers only the
talk, cancelling interrupts it wherever it waits, and the generator may be read from any task. However the
talk ends before the remote task does, the remote agent is asked to cancel it.

A card is written by a stranger, and it says where to send the question. Only interfaces at the origin of
the endpoint are used: whoever declared the endpoint chose that place, and the token is meant for it.

The pieces in which an artifact is streamed become parts of it once it is stored. So texts that follow each
other in an artifact are one text, and an agent that is polled gives the same result as one that streams.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import httpx
from a2a.client import A2ACardResolver, A2AClientError, AgentCardResolutionError, ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import AgentCard, CancelTaskRequest, GetTaskRequest, Role, SendMessageRequest, TaskState
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, TransportProtocol
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from agent_core.clean_text import clean
from agent_core.errors import RequestCancelled
from agent_core.frozen import EMPTY
from agent_runtime.remote.agent import RemoteAgentError, RemoteReply, RemoteTask
from agent_runtime.remote.network import Wire, open_client, origin
from agent_runtime.results import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping

    from a2a.client import Client
    from a2a.types import (
        Artifact,
        Message,
        Part,
        StreamResponse,
        Task,
        TaskArtifactUpdateEvent,
        TaskStatus,
    )

    from agent_core import Cancellation
    from agent_runtime.remote.agent import Progress, RemoteAgent


FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
CANCEL_SECONDS = 2.0
BINDINGS = [str(TransportProtocol.JSONRPC.value), str(TransportProtocol.HTTP_JSON.value)]
_OVER = {"completed", "failed", "rejected", "canceled", "input_required", "auth_required"}
_WAITS = "input_required"
_COUNTS = tuple(name for name in Usage.__slots__ if not name.startswith("cost"))
_LARGEST_COUNT = 10**12
_LONGEST = 500
_DENIED = {401, 403, 407}


async def converse(
    agent: RemoteAgent,
    prompt: str,
    task: RemoteTask | None,
    cancellation: Cancellation | None,
    trace: Mapping[str, str] = EMPTY,
) -> AsyncGenerator[Progress | RemoteReply, None]:
    """Yield progress as it comes and, last, the reply. With a *task*, the prompt answers its question.

    Raises:
        RemoteAgentError: If the agent cannot be asked, or its answer cannot be used.
        RequestCancelled: When *cancellation* is cancelled.
    """
    if cancellation is not None and cancellation.cancelled:
        raise RequestCancelled
    items: asyncio.Queue[Progress | None] = asyncio.Queue()
    talk = asyncio.create_task(_Talk(agent, task, items.put_nowait, trace).hold(prompt))
    talk.add_done_callback(lambda _: items.put_nowait(None))
    forget = _watch(cancellation, talk)
    try:
        while (item := await items.get()) is not None:
            yield item
        yield _outcome(talk, cancellation)
    finally:
        forget()
        await _end(talk)


def _watch(cancellation: Cancellation | None, talk: asyncio.Task[RemoteReply]) -> Callable[[], None]:
    if cancellation is None:
        return lambda: None
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(talk.cancel)

    key = cancellation.add_callback(interrupt)
    return lambda: cancellation.remove_callback(key)


def _outcome(talk: asyncio.Task[RemoteReply], cancellation: Cancellation | None) -> RemoteReply:
    if talk.cancelled() and cancellation is not None and cancellation.cancelled:
        raise RequestCancelled
    return talk.result()


async def _end(talk: asyncio.Task[RemoteReply]) -> None:
    """Interrupt the talk unless that has been done: a second time would keep it from saying goodbye."""
    if not talk.done():
        if not talk.cancelling():
            talk.cancel()
        await asyncio.wait([talk])
    if not talk.cancelled():
        talk.exception()  # has been raised, or nobody is left to read it


class _Talk:
    def __init__(
        self,
        agent: RemoteAgent,
        task: RemoteTask | None,
        emit: Callable[[Progress], None],
        trace: Mapping[str, str],
    ) -> None:
        self._agent = agent
        self._task = task
        self._trace = trace
        self._emit = emit
        self._answer = Answer(task)

    async def hold(self, prompt: str) -> RemoteReply:
        """Ask, and return the reply."""
        try:
            wire = Wire(self._agent, self._trace)
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
        """Send the question and read what is streamed; a broken stream of a known task is not an end."""
        text = prompt.encode(errors="replace").decode()  # a model may write half a surrogate pair
        task_id, context_id, _ = self._task or (None, None, None)
        message = new_text_message(text, context_id=context_id, task_id=task_id, role=Role.ROLE_USER)
        request = SendMessageRequest(message=message)
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
        await _cancel_task(client, self._answer.task_id)

    def _show(self, items: list[Progress]) -> None:
        for item in items:
            part = item["part"]
            self._emit({"part": {**part, "text": self._agent.without_token(part["text"])}})


async def _cancel_task(client: Client, task_id: str) -> None:
    with suppress(Exception):  # it may have ended by now, or not know how to stop
        async with asyncio.timeout(CANCEL_SECONDS):
            await client.cancel_task(CancelTaskRequest(id=task_id))


async def cancel(agent: RemoteAgent, task: RemoteTask) -> None:
    """Ask the agent to cancel a task that nobody continues, if it can be asked."""
    with suppress(Exception):  # the SDK lets a stranger's nonsense surface as anything
        wire = Wire(agent)
        async with open_client(wire) as http, asyncio.timeout(agent.endpoint.timeout):
            card = await read_card(agent, http)
            wire.allow_answer()
            await _cancel_task(_client(card, http), task.task_id)


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
        RemoteAgentError: If it has no card that can be used.
    """
    try:
        async with open_client(Wire(agent)) as http, asyncio.timeout(agent.endpoint.timeout):
            return await read_card(agent, http)
    except Exception as error:  # the SDK lets a stranger's nonsense surface as anything
        raise as_remote_error(agent, error) from error


def card_url(url: str) -> str:
    """Return where the agent card is: at the well-known path, unless *url* is that of a card."""
    parsed = httpx.URL(url)
    if parsed.path.endswith(".json"):
        return url
    return str(parsed.copy_with(path=parsed.path.rstrip("/") + AGENT_CARD_WELL_KNOWN_PATH))


async def read_card(agent: RemoteAgent, client: httpx.AsyncClient) -> AgentCard:
    """Return the agent's card, with only the interfaces that may be used.

    Raises:
        RemoteAgentError: If none is left.
        A2AClientError: If there is no card, or it cannot be read.
    """
    resolver = A2ACardResolver(client, card_url(agent.endpoint.url))
    return narrowed(agent, await resolver.get_agent_card(relative_card_path="/"))


def narrowed(agent: RemoteAgent, card: AgentCard) -> AgentCard:
    """Return a copy of *card* with only the interfaces that may be used."""
    spoken = [one for one in card.supported_interfaces if one.protocol_binding in BINDINGS]
    if not spoken:
        offered = ", ".join(sorted({one.protocol_binding for one in card.supported_interfaces})) or "none"
        problem = (
            f"its card offers no interface that is spoken here ({offered}; spoken are {', '.join(BINDINGS)})"
        )
        raise agent.error("protocol", problem, "check that endpoint.url is an A2A agent")
    own = [one for one in spoken if _is_at(one.url, agent.endpoint.url)]
    if not own:
        raise agent.error(
            "refused_address",
            f"its card sends callers to another place, {spoken[0].url[:200]}",
            "declare that address as endpoint.url if you trust it",
        )
    copy = AgentCard()
    copy.CopyFrom(card)
    del copy.supported_interfaces[:]
    copy.supported_interfaces.extend(own)
    return copy


def _is_at(url: str, endpoint: str) -> bool:
    try:
        return origin(url) == origin(endpoint)
    except httpx.InvalidURL:
        return False


class Answer:
    """What is known of one task so far.

    Attributes:
        task_id: The task's id, once it is known.
        state: The task's state in lower case; empty before the first event.
    """

    def __init__(self, task: RemoteTask | None = None) -> None:
        self.task_id = "" if task is None else task.task_id
        self.state = ""
        self._context_id = "" if task is None else task.context_id
        self._question = ""  # the one that the task waits with now
        self._answered = "" if task is None else task.question
        self._words = ""
        self._last_message = ""
        self._artifacts: dict[str, list[Part]] = {}
        self._usage: Usage | None = None

    @property
    def is_over(self) -> bool:
        """True once there is nothing more to wait for."""
        return self.state in _OVER

    def reply(self) -> RemoteReply:
        """Return how the task ended."""
        text = self._words
        if self.state == "completed":  # what was made comes first, words about it are a substitute
            made = "\n\n".join(filter(None, map(written, self._artifacts.values())))
            text = made or text or self._last_message
        waits = self.state == _WAITS and bool(self.task_id)
        task = RemoteTask(self.task_id, self._context_id, self._question) if waits else None
        return RemoteReply(text, self.state, self.task_id, self._usage, task)

    def take(self, event: StreamResponse) -> list[Progress]:
        """Learn from one event of the stream, and return what can be shown of it."""
        kind = event.WhichOneof("payload")
        if kind == "task":
            return self.take_task(event.task)
        if kind == "message":
            return self._take_message(event.message)
        if kind == "status_update":
            self.task_id = event.status_update.task_id or self.task_id
            self._context_id = event.status_update.context_id or self._context_id
            self._read_usage(event.status_update.metadata)
            return self._take_status(event.status_update.status)
        return self._take_chunk(event.artifact_update) if kind == "artifact_update" else []

    def take_task(self, task: Task) -> list[Progress]:
        """Learn from a task as it stands now, and return what is new."""
        self.task_id = task.id or self.task_id
        self._context_id = task.context_id or self._context_id
        self._read_usage(task.metadata)
        for message in task.history:
            if message.role == Role.ROLE_AGENT:
                self._last_message = said(message.parts)
        shown = [part for artifact in task.artifacts for part in self._take_artifact(artifact)]
        return shown + self._take_status(task.status)

    def _take_message(self, message: Message) -> list[Progress]:
        self._read_usage(message.metadata)
        self._words, self.state = said(message.parts), "completed"
        return [_part("text", self._words)]

    def _take_status(self, status: TaskStatus) -> list[Progress]:
        before, self.state = self.state, _state_name(status.state)
        if self.state == _WAITS:
            self._question = status.message.message_id or status.timestamp.ToJsonString()
            if self._question == self._answered:  # what was just answered; the agent has not got to it yet
                self.state = before
                return []
        words = said(status.message.parts)
        is_news = (words and words != self._words) or before != self.state
        self._words = words or ("" if before != self.state else self._words)
        return [_part("status", words or self.state)] if is_news and not self.is_over else []

    def _take_artifact(self, artifact: Artifact) -> list[Progress]:
        text = written(artifact.parts)
        before = written(self._artifacts.get(artifact.artifact_id, ()))
        self._artifacts[artifact.artifact_id] = list(artifact.parts)
        return [_part("artifact", text)] if text and text != before else []

    def _take_chunk(self, update: TaskArtifactUpdateEvent) -> list[Progress]:
        self.task_id = update.task_id or self.task_id
        if not update.append:
            return self._take_artifact(update.artifact)
        self._artifacts.setdefault(update.artifact.artifact_id, []).extend(update.artifact.parts)
        text = written(update.artifact.parts)
        return [_part("artifact", text)] if text else []

    def _read_usage(self, metadata: Any) -> None:
        """Read counts of tokens; the protocol has no place for them, `usage` in the metadata is a habit."""
        usage = MessageToDict(metadata).get("usage")
        if isinstance(usage, dict):
            known: dict[str, Any] = {name: int(usage[name]) for name in _COUNTS if _is_count(usage.get(name))}
            self._usage = Usage(**known) if known else self._usage


def _is_count(value: object) -> bool:
    """Say whether a stranger's number can be added up: a negative one would widen the caller's budget."""
    return isinstance(value, (int, float)) and 0 <= value <= _LARGEST_COUNT


def said(parts: Iterable[Part]) -> str:
    """Return parts of a message as text; files are named, not fetched."""
    return "\n".join(filter(None, map(_part_text, parts)))


def written(parts: Iterable[Part]) -> str:
    """Return the parts of an artifact as text: what is not text stands on a line of its own."""
    runs = groupby(parts, key=lambda part: part.WhichOneof("content") == "text")
    lines = ("".join(part.text for part in run) if is_text else said(run) for is_text, run in runs)
    return "\n".join(filter(None, lines))


def _part_text(part: Part) -> str:
    kind = part.WhichOneof("content")
    if kind == "data":
        return json.dumps(MessageToDict(part.data), ensure_ascii=False)
    if kind == "raw":
        return f"[{part.filename or part.media_type or 'file'}, {len(part.raw)} bytes]"
    return part.url if kind == "url" else part.text


def _part(kind: str, text: str) -> Progress:
    return {"part": {"type": kind, "text": text}}


def _state_name(state: int) -> str:
    try:
        name: str = TaskState.Name(state)
    except ValueError:  # of a later version of the protocol
        return f"unknown ({state})"
    return name.removeprefix("TASK_STATE_").lower()


def as_remote_error(agent: RemoteAgent, error: Exception) -> RemoteAgentError:
    """Return *error* in our terms."""
    found = (_from_transport(agent, one) for one in _causes(error))
    known = next((one for one in found if one is not None), None)
    return known or _from_protocol(agent, error)


def _from_transport(agent: RemoteAgent, error: BaseException) -> RemoteAgentError | None:
    if isinstance(error, RemoteAgentError):
        return error
    if isinstance(error, httpx.HTTPStatusError):
        return _from_status(agent, error.response.status_code)
    if isinstance(error, httpx.InvalidURL):
        return agent.error("protocol", f"its URL cannot be used: {_words(error)}", "correct endpoint.url")
    if isinstance(error, httpx.TransportError):
        problem = f"it cannot be reached: {_words(error)}"
        return agent.error("unreachable", problem, "check endpoint.url, and that the agent is running")
    return None


def _from_protocol(agent: RemoteAgent, error: Exception) -> RemoteAgentError:
    if isinstance(error, TimeoutError):
        problem = f"it gave no answer within {agent.endpoint.timeout:g} seconds and was given up"
        return agent.error("timeout", problem, "ask for less, or raise endpoint.timeout")
    if isinstance(error, AgentCardResolutionError):
        problem = "what it sent is not an agent card"
        return agent.error("protocol", problem, "check that endpoint.url is an A2A agent, or its card")
    if isinstance(error, A2AError):
        return agent.error("protocol", f"it answered with an error: {_words(error)}", "tell its owner")
    problem = f"its answer cannot be read ({type(error).__name__}: {_words(error)})"
    return agent.error("protocol", problem, "check that it speaks A2A 0.3 or 1.0")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _from_status(agent: RemoteAgent, status: int) -> RemoteAgentError:
    if status in _DENIED:
        problem = f"it does not let us in (HTTP {status})"
        had = "renew endpoint.token" if agent.endpoint.token else "set endpoint.token"
        return agent.error("auth", problem, had)
    if httpx.codes.is_redirect(status):
        problem = f"it sends callers elsewhere (HTTP {status}), which is not followed"
        return agent.error("protocol", problem, "declare the address behind it as endpoint.url")
    hint = (
        "check the path of endpoint.url"
        if status == httpx.codes.NOT_FOUND
        else "try again, or tell its owner"
    )
    return agent.error("protocol", f"it answered HTTP {status}", hint)


def _words(error: BaseException) -> str:
    text = clean(str(error)) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"

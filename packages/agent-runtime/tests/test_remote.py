"""Remote agents: a real A2A server on this machine answers, fails, stalls and misbehaves."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from hypothesis import given, strategies as st
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from agent_core import AgentCore, Cancellation, Session
from agent_core.errors import RequestCancelled
from agent_core.product import USER_AGENT
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Decision,
    DecisionError,
    ModelSpec,
    RunRequest,
)
from agent_runtime.remote import RemoteAgent, RemoteAgentError, RemoteDelegateTool, RemoteReply, discover
from agent_runtime.remote.agent import shown
from agent_runtime.remote.network import Wire, look_up, open_client, read_address, why_refused
from agent_runtime.remote.protocol import Answer, card_url, said
from agent_runtime.specs import RemoteEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from a2a.server.events import EventQueue
    from starlette.requests import Request

    from agent_runtime import AgentRuntime

TOKEN = "correct-horse"


# A server whose agent does what the prompt names.


class Behaviour(AgentExecutor):
    """Does what the question asks for, and notes what reaches it."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.answers: list[tuple[str, str]] = []

    async def _go_on(self, task: TaskUpdater, answer: str) -> None:
        """Go on with a task that asked for a city."""
        await task.start_work(new_text_message("looking"))
        if answer == "somewhere":
            await task.requires_input(new_text_message("where exactly?"))
            return
        await task.add_artifact([new_text_part(f"rain in {answer}")])
        await task.complete()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        question = context.get_user_input()
        if question.startswith("repeat"):
            return await event_queue.enqueue_event(new_text_message(question))
        if question == "message":
            return await event_queue.enqueue_event(new_text_message("just words"))
        assert context.message is not None
        if (known := context.current_task) is not None:
            self.answers.append((known.id, question))
            return await self._go_on(TaskUpdater(event_queue, known.id, known.context_id), question)
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        act: Callable[[TaskUpdater], Awaitable[None]] = getattr(self, f"_{question}")
        return await act(TaskUpdater(event_queue, task.id, task.context_id))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None and context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        self.cancelled.set()

    async def _answer(self, task: TaskUpdater) -> None:
        await task.add_artifact([new_text_part("42")])
        await task.complete()

    async def _progress(self, task: TaskUpdater) -> None:
        await task.start_work(new_text_message("thinking"))
        await task.add_artifact([new_text_part("one ")], artifact_id="a")
        await task.add_artifact([new_text_part("two")], artifact_id="a", append=True)
        await task.complete(new_text_message("done"))

    async def _words(self, task: TaskUpdater) -> None:
        usage = {"usage": {"input_tokens": 7, "output_tokens": 3}}
        await task.update_status(
            TaskState.TASK_STATE_COMPLETED, new_text_message("only words"), metadata=usage
        )

    async def _echo(self, task: TaskUpdater) -> None:
        await task.add_artifact([new_text_part(f"you sent {TOKEN}")])
        await task.complete()

    async def _fail(self, task: TaskUpdater) -> None:
        await task.failed(new_text_message("the oven is cold"))

    async def _reject(self, task: TaskUpdater) -> None:
        await task.reject(new_text_message("not my job"))

    async def _give_up(self, task: TaskUpdater) -> None:
        await task.cancel()

    async def _input(self, task: TaskUpdater) -> None:
        await task.requires_input(new_text_message("which city?"))

    async def _auth(self, task: TaskUpdater) -> None:
        await task.requires_auth(new_text_message("log in first"))

    async def _crash(self, task: TaskUpdater) -> None:
        raise RuntimeError("no such thing")

    async def _huge(self, task: TaskUpdater) -> None:
        for _ in range(50):
            await task.add_artifact([new_text_part("x" * 10_000)])
        await asyncio.Event().wait()

    async def _wait(self, task: TaskUpdater) -> None:
        await task.start_work(new_text_message("waiting"))
        await asyncio.Event().wait()


@dataclass
class Server:
    """A server of this module, while it runs."""

    url: str
    behaviour: Behaviour
    requests: list[tuple[str, dict[str, str]]]

    def agent(self, *, path: str = "", **limits: Any) -> RemoteAgent:
        settings = {"token": TOKEN, "allow_private": True, **limits}
        return RemoteAgent("cook", RemoteEndpoint(self.url + path, **settings), clock=NoPause())


class NoPause:
    """A clock on which no pause takes time; whoever waits gives way to others all the same."""

    def now(self) -> float:
        return 0.0

    def sleep(self, seconds: float, wake: Any) -> None:
        return None

    async def sleep_async(self, seconds: float, wake: Any) -> None:
        await asyncio.sleep(0)

    def call_later(self, seconds: float, callback: Any) -> Any:
        return callback


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop on which time passes when the test says so, besides by itself."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


class NamingLoop(asyncio.SelectorEventLoop):
    """A loop on which `kitchen.test` has the addresses given, the first ones first, and later none."""

    def __init__(self, *answers: list[str]) -> None:
        super().__init__()
        self.answers = list(answers)

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        if host != "kitchen.test" or not self.answers:
            raise OSError(f"{host} has no address")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in self.answers.pop(0)]


def card_of(url: str, *interfaces: AgentInterface, streaming: bool = True) -> AgentCard:
    return AgentCard(
        name="Cook",
        description="Cooks\nwhat you\x07 like.",
        version="1",
        supported_interfaces=interfaces
        or [AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="cook", name="cook", description="cooks", tags=["food"])],
    )


def kitchen(url: str, behaviour: Behaviour, *, streaming: bool = True, rest: bool = False) -> list[Any]:
    binding = "HTTP+JSON" if rest else "JSONRPC"
    interface = AgentInterface(url=f"{url}/rpc", protocol_binding=binding, protocol_version="1.0")
    card = card_of(url, interface, streaming=streaming)
    handler = DefaultRequestHandlerV2(behaviour, InMemoryTaskStore(), card)
    if rest:
        return [*create_agent_card_routes(card), *create_rest_routes(handler, path_prefix="/rpc")]
    return [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]


class Guard:
    """Lets only those in who have the token, and notes every request."""

    def __init__(self, app: Any, requests: list[Any]) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self._requests.append((scope["path"], headers))
        allowed = headers.get("authorization") == f"Bearer {TOKEN}" or scope["path"].startswith("/open")
        app = (
            self._app if allowed else PlainTextResponse(f"no entry with {headers.get('authorization')}", 401)
        )
        await app(scope, receive, send)


@contextmanager
def served(routes: Callable[[str, Behaviour], list[Any]]) -> Iterator[Server]:
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    behaviour, requests = Behaviour(), []  # type: Behaviour, list[Any]
    app = Guard(Starlette(routes=routes(url, behaviour)), requests)
    config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Server(url, behaviour, requests)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="module")
def cook() -> Iterator[Server]:
    with served(kitchen) as server:
        yield server


@pytest.fixture(scope="module")
def slow_cook() -> Iterator[Server]:
    with served(lambda url, behaviour: kitchen(url, behaviour, streaming=False)) as server:
        yield server


def ask(agent: RemoteAgent, prompt: str, **options: Any) -> RemoteReply:
    return asyncio.run(agent.send(prompt, **options))


def failure(agent: RemoteAgent, prompt: str = "answer") -> RemoteAgentError:
    with pytest.raises(RemoteAgentError) as caught:
        ask(agent, prompt)
    assert caught.value.agent_id == "cook"
    assert TOKEN not in str(caught.value)
    return caught.value


def items_of(agent: RemoteAgent, prompt: str) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        return [item async for item in agent.stream(prompt)]

    return asyncio.run(read())


# Answers


def test_an_artifact_is_the_result(cook: Server) -> None:
    reply = ask(cook.agent(), "answer")

    assert reply.text == "42" and reply.state == "completed" and reply.error is None
    assert reply.task_id and reply.usage is None


def test_an_agent_may_answer_with_a_message_and_no_task(cook: Server) -> None:
    assert ask(cook.agent(), "message") == RemoteReply("just words", "completed")


def test_words_are_the_result_where_nothing_was_made_and_usage_is_read_from_the_metadata(
    cook: Server,
) -> None:
    reply = ask(cook.agent(), "words")

    assert reply.text == "only words"
    assert reply.usage is not None and reply.usage.total_tokens == 10
    assert reply.to_result() == {"success": True, "result": "only words"}


def test_progress_streams_before_the_result(cook: Server) -> None:
    items = items_of(cook.agent(), "progress")

    assert items == [
        {"part": {"type": "status", "text": "submitted"}},
        {"part": {"type": "status", "text": "thinking"}},
        {"part": {"type": "artifact", "text": "one "}},
        {"part": {"type": "artifact", "text": "two"}},
        {"success": True, "result": "one two"},
    ]


def test_send_reports_progress_to_a_callback(cook: Server) -> None:
    told: list[dict[str, Any]] = []

    assert ask(cook.agent(), "progress", on_progress=told.append).text == "one two"
    assert {"part": {"type": "status", "text": "thinking"}} in told


def test_an_agent_that_cannot_stream_is_polled(slow_cook: Server) -> None:
    assert ask(slow_cook.agent(), "progress").text == "one two"
    assert ask(slow_cook.agent(), "message").text == "just words"


def test_the_rest_binding_is_spoken_as_well() -> None:
    with served(lambda url, behaviour: kitchen(url, behaviour, rest=True)) as server:
        assert ask(server.agent(), "answer").text == "42"


def test_the_older_version_of_the_protocol_is_spoken_as_well() -> None:
    def routes(url: str, behaviour: Behaviour) -> list[Any]:
        interface = AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="0.3")
        card = card_of(url, interface)
        handler = DefaultRequestHandlerV2(behaviour, InMemoryTaskStore(), card)
        rpc = create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)
        return [*create_agent_card_routes(card), *rpc]

    with served(routes) as server:
        assert ask(server.agent(), "progress").text == "one two"
        assert ask(server.agent(), "fail").error == "the remote agent failed: the oven is cold"


def test_the_endpoint_may_be_the_address_of_the_card_itself(cook: Server) -> None:
    assert ask(cook.agent(path="/.well-known/agent-card.json"), "answer").text == "42"


@pytest.mark.parametrize(
    ("prompt", "state", "error"),
    [
        ("fail", "failed", "the remote agent failed: the oven is cold"),
        ("reject", "rejected", "the remote agent refused the task: not my job"),
        ("give_up", "canceled", "the remote agent cancelled the task: it gave no reason"),
        ("input", "input_required", "the remote agent asks for more before it continues: which city?"),
        (
            "auth",
            "auth_required",
            "the remote agent asks for authorisation before it continues: log in first",
        ),
    ],
)
@pytest.mark.parametrize("server", ["cook", "slow_cook"])
def test_a_task_without_a_result_says_why(
    server: str, prompt: str, state: str, error: str, request: pytest.FixtureRequest
) -> None:
    agent = request.getfixturevalue(server).agent()

    reply = ask(agent, prompt)

    assert (reply.state, reply.error) == (state, error)
    assert items_of(agent, prompt)[-1] == {"success": False, "error": error}


# Limits


def test_a_huge_answer_is_not_read_to_its_end_and_the_task_is_taken_back(cook: Server) -> None:
    cook.behaviour.cancelled.clear()

    error = failure(cook.agent(max_bytes=100_000), "huge")

    assert error.category == "too_large" and "100000 bytes" in str(error)
    assert cook.behaviour.cancelled.is_set()


def test_a_card_may_be_larger_than_an_answer_but_not_without_limit(cook: Server) -> None:
    def too_much(url: str, _: Behaviour) -> list[Any]:
        async def card(request: Request) -> Response:
            return JSONResponse({"name": "x" * 300_000})

        return [Route("/.well-known/agent-card.json", card)]

    assert failure(cook.agent(max_bytes=10), "answer").problem.startswith(
        "its answer is larger than 10 bytes"
    )
    with served(too_much) as server:
        error = failure(server.agent())
        assert error.category == "too_large" and "its agent card is larger than 262144 bytes" in str(error)


@pytest.mark.parametrize("server", ["cook", "slow_cook"])
def test_a_call_ends_when_its_time_is_over_and_the_task_is_taken_back(
    server: str, request: pytest.FixtureRequest
) -> None:
    found: Server = request.getfixturevalue(server)
    found.behaviour.cancelled.clear()
    told: list[str] = []

    def wait_long(item: dict[str, Any]) -> None:
        told.append(item["part"]["text"])
        if told[-1] == "waiting":
            loop.skipped += 1000

    loop = SkippingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner, pytest.raises(RemoteAgentError) as caught:
        runner.run(found.agent(timeout=900).send("wait", on_progress=wait_long))

    assert told[-1] == "waiting"
    assert caught.value.category == "timeout" and "within 900 seconds" in str(caught.value)
    assert found.behaviour.cancelled.is_set()


def test_a_server_that_never_says_anything_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        agent = RemoteAgent("cook", RemoteEndpoint(url, timeout=0.2, allow_private=True))

        assert failure(agent).category == "timeout"


# Cancelling


@pytest.mark.parametrize("server", ["cook", "slow_cook"])
def test_cancelling_reaches_the_server(server: str, request: pytest.FixtureRequest) -> None:
    found: Server = request.getfixturevalue(server)
    found.behaviour.cancelled.clear()
    cancellation = Cancellation()

    def lose_interest(item: dict[str, Any]) -> None:
        if item["part"]["text"] == "waiting":
            cancellation.cancel()

    with pytest.raises(RequestCancelled):
        ask(found.agent(), "wait", cancellation=cancellation, on_progress=lose_interest)
    assert found.behaviour.cancelled.is_set()


def test_cancelling_from_another_thread_interrupts_the_wait(cook: Server) -> None:
    cook.behaviour.cancelled.clear()
    cancellation, begun = Cancellation(), threading.Event()

    def watch() -> None:
        begun.wait()
        cancellation.cancel()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(RequestCancelled):
        ask(cook.agent(), "wait", cancellation=cancellation, on_progress=lambda _: begun.set())
    watcher.join()
    assert cook.behaviour.cancelled.is_set()


def test_nothing_is_sent_for_a_caller_who_has_left_already(cook: Server) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    before = len(cook.requests)

    with pytest.raises(RequestCancelled):
        ask(cook.agent(), "answer", cancellation=cancellation)
    assert len(cook.requests) == before


def test_leaving_a_stream_takes_the_task_back_and_leaves_no_task_behind(cook: Server) -> None:
    cook.behaviour.cancelled.clear()

    async def leave() -> set[asyncio.Task[Any]]:
        async with aclosing(cook.agent().stream("wait")) as items:
            async for _ in items:
                break
        return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}

    assert asyncio.run(leave()) == set()
    assert cook.behaviour.cancelled.is_set()


def test_closing_a_stream_does_not_interrupt_its_saying_goodbye(cook: Server) -> None:
    cook.behaviour.cancelled.clear()
    cancellation = Cancellation()

    async def leave() -> None:
        items = cook.agent().stream("wait", cancellation=cancellation)
        async for item in items:
            if item["part"]["text"] == "waiting":
                break
        cancellation.cancel()
        for _ in range(5):  # meanwhile the talk is on its way out
            await asyncio.sleep(0)
        await items.aclose()

    asyncio.run(leave())
    assert cook.behaviour.cancelled.is_set()


def test_a_call_leaves_no_callback_on_the_token(cook: Server) -> None:
    cancellation = Cancellation()

    ask(cook.agent(), "answer", cancellation=cancellation)

    assert cancellation._callbacks == {}


# Strangers


def test_a_wrong_token_is_a_matter_of_authorisation_and_is_not_repeated(cook: Server) -> None:
    wrong = failure(cook.agent(token="wr0ng"))
    missing = failure(cook.agent(token=None))

    assert wrong.category == missing.category == "auth"
    assert wrong.hint == "renew endpoint.token" and missing.hint == "set endpoint.token"
    assert "wr0ng" not in str(wrong) and "wr0ng" not in repr(cook.agent(token="wr0ng"))


def test_a_token_that_a_server_echoes_is_not_repeated() -> None:
    agent = RemoteAgent("cook", RemoteEndpoint("https://example.com/a?key=1", token="s3cret"))

    error = agent.error("protocol", "it said: s3cret is wrong", "stop")

    assert str(error) == "Remote agent 'cook' at https://example.com/a: it said: *** is wrong; stop"


def test_a_token_in_an_answer_is_not_handed_on(cook: Server) -> None:
    items = items_of(cook.agent(), "echo")

    assert items[-2:] == [
        {"part": {"type": "artifact", "text": "you sent ***"}},
        {"success": True, "result": "you sent ***"},
    ]


@pytest.mark.parametrize("token", ["two words", "line\n", "caf\xe9", "\x00"])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(cook: Server, token: str) -> None:
    error = failure(cook.agent(token=token))

    assert error.category == "auth" and token not in str(error)


def answering(*responses: Callable[[], Response]) -> Callable[[str, Behaviour], list[Any]]:
    def routes(url: str, behaviour: Behaviour) -> list[Any]:
        async def card(request: Request) -> Response:
            return responses[0]()

        return [Route("/.well-known/agent-card.json", card)]

    return routes


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (lambda: PlainTextResponse("<html>hello</html>"), "what it sent is not an agent card"),
        (lambda: JSONResponse([1]), "what it sent is not an agent card"),
        (lambda: JSONResponse({"skills": 7}), "what it sent is not an agent card"),
        (lambda: JSONResponse({}), "its card offers no interface that is spoken here (none;"),
        (lambda: PlainTextResponse("[" * 100_000), "its answer cannot be read (RecursionError"),
        (lambda: PlainTextResponse(b"\xff\xfe\xfd"), "its answer cannot be read (UnicodeDecodeError"),
        (lambda: Response("{}", headers={"Content-Encoding": "gzip"}), "it compressed its answer (gzip)"),
        (lambda: RedirectResponse("http://127.0.0.1:1/"), "it sends callers elsewhere (HTTP 307)"),
        (lambda: PlainTextResponse("", 404), "it answered HTTP 404"),
        (lambda: PlainTextResponse("", 500), "it answered HTTP 500"),
    ],
)
def test_what_is_no_agent_is_reported_as_such(response: Callable[[], Response], problem: str) -> None:
    with served(answering(response)) as server:
        error = failure(server.agent())

    assert error.category == "protocol" and error.problem.startswith(problem)


def test_a_card_that_points_elsewhere_is_refused_and_nothing_is_sent_there() -> None:
    with (
        served(kitchen) as elsewhere,
        served(lambda *_: create_agent_card_routes(card_of(elsewhere.url))) as server,
    ):
        error = failure(server.agent())

        assert error.category == "refused_address" and f"{elsewhere.url}/rpc" in str(error)
        assert elsewhere.requests == []


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "/rpc", "", "http://[", "http:///rpc"])
def test_a_card_with_a_useless_address_is_refused(url: str) -> None:
    interface = AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
    with served(lambda own, _: create_agent_card_routes(card_of(own, interface))) as server:
        assert failure(server.agent()).category == "refused_address"


def test_of_several_interfaces_the_one_at_home_is_used() -> None:
    def routes(url: str, behaviour: Behaviour) -> list[Any]:
        foreign = AgentInterface(url="http://10.0.0.1/", protocol_binding="JSONRPC", protocol_version="1.0")
        own = AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
        card = card_of(url, foreign, own)
        return [*create_agent_card_routes(card), *kitchen(url, behaviour)[1:]]

    with served(routes) as server:
        assert ask(server.agent(), "answer").text == "42"


def test_an_agent_that_only_speaks_what_we_do_not_is_reported_as_such() -> None:
    interface = AgentInterface(url="http://127.0.0.1/", protocol_binding="GRPC", protocol_version="1.0")
    with served(lambda url, _: create_agent_card_routes(card_of(url, interface))) as server:
        error = failure(server.agent())

    assert error.category == "protocol" and "(GRPC; spoken are JSONRPC, HTTP+JSON)" in str(error)


def test_an_agent_that_crashes_is_reported_in_its_words(cook: Server) -> None:
    error = failure(cook.agent(), "crash")

    assert error.category == "protocol" and error.problem.startswith("it answered with an error: ")


def speaking(
    *events: dict[str, Any] | str | Callable[[], AsyncIterator[str]],
) -> Callable[[str, Behaviour], list[Any]]:
    """Answer every question with these events, and the question how a task is doing with the last."""

    def routes(url: str, behaviour: Behaviour) -> list[Any]:
        async def rpc(request: Request) -> Response:
            asked = await request.json()
            if asked["method"] == "GetTask":
                return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": TASK | {"status": DONE}})
            if events and callable(events[0]):
                return StreamingResponse(events[0](), media_type="text/event-stream")
            lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
            body = "".join(f"data: {line}\n\n" for line in lines)
            return Response(body, media_type="text/event-stream")

        return [*create_agent_card_routes(card_of(url)), Route("/rpc", rpc, methods=["POST"])]

    return routes


TASK = {"id": "t1", "contextId": "c1"}
DONE = {"state": "TASK_STATE_COMPLETED", "message": {"messageId": "m", "parts": [{"text": "late"}]}}
WORKING = {
    "jsonrpc": "2.0",
    "id": "1",
    "result": {"task": TASK | {"status": {"state": "TASK_STATE_WORKING"}}},
}


def test_a_stream_that_ends_too_early_is_followed_by_asking_how_the_task_is_doing() -> None:
    with served(speaking(WORKING)) as server:
        assert ask(server.agent(), "anything").text == "late"


def test_a_stream_that_breaks_is_followed_by_asking_how_the_task_is_doing() -> None:
    async def half() -> AsyncIterator[str]:
        yield f"data: {json.dumps(WORKING)}\n\n"
        raise ConnectionResetError

    with served(speaking(half)) as server:
        assert ask(server.agent(), "anything").text == "late"


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "it ended its stream without an answer"),
        (["not json"], "it answered with an error: Invalid JSON-RPC response"),
        ([{"jsonrpc": "2.0", "error": {"code": -32603, "message": "oh"}}], "it answered with an error: oh"),
        ([{"jsonrpc": "2.0", "result": {"task": 7}}], "its answer cannot be read"),
    ],
)
def test_what_is_no_answer_is_reported_as_such(events: list[Any], problem: str) -> None:
    with served(speaking(*events)) as server:
        error = failure(server.agent())

    assert error.category == "protocol" and error.problem.startswith(problem)


def test_nobody_at_the_address_is_reported_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    agent = RemoteAgent("cook", RemoteEndpoint(f"http://127.0.0.1:{port}", allow_private=True))

    error = failure(agent)

    assert error.category == "unreachable" and error.url == f"http://127.0.0.1:{port}"
    assert items_of(agent, "answer") == [{"success": False, "error": str(error)}]


def test_a_name_that_nobody_has_is_unreachable() -> None:
    # RFC 6761: the resolver knows that there is no such name without asking anybody
    error = failure(RemoteAgent("cook", RemoteEndpoint("http://nobody.invalid/")))

    assert error.category == "unreachable" and "nobody.invalid" in str(error)


@pytest.mark.parametrize(
    ("url", "category"),
    [
        ("http://[", "unreachable"),
        ("http://", "protocol"),
        ("http:///path", "protocol"),
        ("http://example.com:port", "protocol"),
        (f"http://{'a' * 70}.example", "unreachable"),
    ],
)
def test_an_address_that_cannot_be_used_is_reported_as_such(url: str, category: str) -> None:
    assert failure(RemoteAgent("cook", RemoteEndpoint(url))).category == category


def test_a_prompt_that_is_no_text_is_refused(cook: Server) -> None:
    with pytest.raises(TypeError, match="prompt must be text, not int"):
        ask(cook.agent(), 7)  # type: ignore[arg-type]


def test_half_a_surrogate_pair_does_not_keep_a_question_from_being_sent(cook: Server) -> None:
    assert ask(cook.agent(), "repeat: \ud800!").text == "repeat: ?!"


def test_credentials_in_the_address_are_refused_and_not_shown() -> None:
    error = failure(RemoteAgent("cook", RemoteEndpoint("https://me:secret@example.com/agent")))

    assert error.category == "auth" and error.hint == "use endpoint.token instead"
    assert "secret" not in str(error) and error.url == "https://example.com/agent"


# Addresses


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("127.0.0.1", "loopback"),
        ("127.1", "loopback"),
        ("2130706433", "loopback"),
        ("0x7f000001", "loopback"),
        ("017700000001", "loopback"),
        ("0177.0.0.01", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("0", "unspecified"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("169.254.169.254", "link-local"),
        ("100.64.0.1", "non-public"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("240.0.0.1", "reserved"),
        ("::1", "loopback"),
        ("::", "unspecified"),
        ("fe80::1", "link-local"),
        ("fe80::1%1", "link-local"),
        ("fec0::1", "site-local"),
        ("fc00::1", "private"),
        ("ff02::1", "multicast"),
        ("::127.0.0.1", "reserved"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:7f00:1", "loopback"),
        ("::ffff:169.254.169.254", "link-local"),
        ("64:ff9b::10.0.0.1", "private"),
        ("2002:7f00:1::", "loopback"),
        ("8.8.8.8", None),
        ("134744072", None),
        ("::ffff:8.8.8.8", None),
        ("2606:4700:4700::1111", None),
        ("64:ff9b::8.8.8.8", None),
    ],
)
def test_only_public_addresses_may_be_called(host: str, why: str | None) -> None:
    address = read_address(host)

    assert address is not None
    assert why_refused(address) == why


@pytest.mark.parametrize("host", ["example.com", "localhost", "1.2.3.4.5", "0x7f.example", "", "::g"])
def test_a_name_is_no_address(host: str) -> None:
    assert read_address(host) is None


@given(st.ip_addresses(v=4))
def test_an_address_that_is_refused_is_refused_in_every_disguise(address: IPv4Address) -> None:
    number = int(address)
    spelled = [str(number), hex(number), f"0{number:o}"]
    wrapped = [(0xFFFF << 32) | number, (0x0064FF9B << 96) | number, (0x2002 << 112) | (number << 80)]

    assert all(read_address(text) == address for text in spelled)
    if why_refused(address) is not None:
        assert all(why_refused(IPv6Address(one)) is not None for one in wrapped)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::1]", "[::ffff:127.0.0.1]"])
def test_nothing_is_sent_to_a_private_address_unless_it_is_allowed(cook: Server, host: str) -> None:
    port = cook.url.rpartition(":")[2]
    before = len(cook.requests)

    error = failure(RemoteAgent("cook", RemoteEndpoint(f"http://{host}:{port}", token=TOKEN)))

    assert error.category == "refused_address" and "endpoint.allow_private" in error.hint
    assert len(cook.requests) == before


def test_a_name_is_looked_up_to_addresses() -> None:
    found = asyncio.run(look_up("localhost", 80))

    assert found and all(address.is_loopback for address in found)


def test_the_connection_goes_to_the_judged_address_and_keeps_the_name(cook: Server) -> None:
    port = cook.url.rpartition(":")[2]
    agent = replace(cook.agent(), endpoint=replace(cook.agent().endpoint, url=f"http://localhost:{port}"))

    error = failure(agent)  # its card says 127.0.0.1, which is another origin

    path, headers = cook.requests[-1]
    assert path == "/.well-known/agent-card.json" and headers["host"] == f"localhost:{port}"
    assert headers["user-agent"] == USER_AGENT
    assert error.category == "refused_address"


def test_a_name_that_changes_its_address_during_a_call_gains_nothing() -> None:
    def named(url: str, behaviour: Behaviour) -> list[Any]:
        return kitchen(url.replace("127.0.0.1", "kitchen.test"), behaviour)

    with served(named) as server, asyncio.Runner(loop_factory=lambda: NamingLoop(["127.0.0.1"])) as runner:
        endpoint = replace(server.agent().endpoint, url=server.url.replace("127.0.0.1", "kitchen.test"))
        reply = runner.run(RemoteAgent("cook", endpoint).send("answer"))

        assert reply.text == "42"
        assert all(headers["host"].startswith("kitchen.test:") for _, headers in server.requests)


def test_one_private_address_of_a_name_is_enough_to_refuse_it(cook: Server) -> None:
    before = len(cook.requests)
    url = cook.url.replace("127.0.0.1", "kitchen.test")
    loop = NamingLoop(["8.8.8.8", "127.0.0.1"])
    with asyncio.Runner(loop_factory=lambda: loop) as runner, pytest.raises(RemoteAgentError) as caught:
        runner.run(RemoteAgent("cook", RemoteEndpoint(url)).send("answer"))

    assert caught.value.problem.startswith("kitchen.test has 127.0.0.1, a loopback address")
    assert len(cook.requests) == before


def test_the_next_address_of_a_name_is_tried_where_nobody_answers() -> None:
    def named(url: str, behaviour: Behaviour) -> list[Any]:
        return kitchen(url.replace("127.0.0.1", "kitchen.test"), behaviour)

    loop = NamingLoop(["127.0.0.2", "127.0.0.1"])
    with served(named) as server, asyncio.Runner(loop_factory=lambda: loop) as runner:
        endpoint = replace(server.agent().endpoint, url=server.url.replace("127.0.0.1", "kitchen.test"))

        assert runner.run(RemoteAgent("cook", endpoint).send("answer")).text == "42"


def test_the_token_goes_to_the_endpoint_only() -> None:
    async def fetch(agent: RemoteAgent, url: str) -> None:
        async with open_client(Wire(agent)) as client:
            await client.get(url)

    with served(kitchen) as home, served(kitchen) as elsewhere:
        asyncio.run(fetch(home.agent(), f"{home.url}/open"))
        asyncio.run(fetch(home.agent(), f"{elsewhere.url}/open"))
        assert home.requests[0][1]["authorization"] == f"Bearer {TOKEN}"
        assert "authorization" not in elsewhere.requests[0][1]


@pytest.mark.parametrize(
    ("url", "card"),
    [
        ("https://a.example", "https://a.example/.well-known/agent-card.json"),
        ("https://a.example/", "https://a.example/.well-known/agent-card.json"),
        ("https://a.example/x/", "https://a.example/x/.well-known/agent-card.json"),
        ("https://a.example/x?tenant=1", "https://a.example/x/.well-known/agent-card.json?tenant=1"),
        ("https://a.example/cards/me.json", "https://a.example/cards/me.json"),
    ],
)
def test_the_card_is_at_the_well_known_path(url: str, card: str) -> None:
    assert card_url(url) == card


def test_an_address_is_shown_without_secrets() -> None:
    assert shown("https://me:pw@a.example:8443/x?key=1#y") == "https://a.example:8443/x"


# Events, one by one


def update(state: TaskState, words: str = "") -> StreamResponse:
    status = TaskStatus(state=state, message=new_text_message(words) if words else None)
    return StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", status=status))


def chunk(key: str, text: str, *, append: bool) -> StreamResponse:
    artifact = Artifact(artifact_id=key, parts=[new_text_part(text)])
    return StreamResponse(
        artifact_update=TaskArtifactUpdateEvent(task_id="t", artifact=artifact, append=append)
    )


@given(st.lists(st.tuples(st.sampled_from("ab"), st.text(max_size=5), st.booleans())))
def test_artifacts_grow_and_are_replaced_as_the_protocol_says(chunks: list[tuple[str, str, bool]]) -> None:
    answer, expected = Answer(), {}  # type: Answer, dict[str, str]
    for key, text, append in chunks:
        answer.take(chunk(key, text, append=append))
        expected[key] = (expected.get(key, "") if append else "") + text
    answer.take(update(TaskState.TASK_STATE_COMPLETED))

    assert answer.reply().text == "\n\n".join(filter(None, expected.values()))


def test_what_was_shown_before_is_not_shown_again() -> None:
    answer = Answer()
    task = Task(id="t", status=update(TaskState.TASK_STATE_WORKING, "hm").status_update.status)
    task.artifacts.add(artifact_id="a", parts=[new_text_part("x")])

    assert [item["part"]["text"] for item in answer.take_task(task)] == ["x", "hm"]
    assert answer.take_task(task) == []
    assert not answer.is_over


def test_the_words_of_one_state_are_not_those_of_the_next() -> None:
    answer = Answer()
    answer.take(update(TaskState.TASK_STATE_WORKING, "nearly there"))
    answer.take(update(TaskState.TASK_STATE_FAILED))

    assert answer.reply().error == "the remote agent failed: it gave no reason"


def test_the_last_message_of_the_history_is_the_result_where_there_is_no_other() -> None:
    answer = Answer()
    task = Task(id="t", status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED))
    task.history.extend([new_text_message("it is 42"), new_text_message("and you?", role=Role.ROLE_USER)])
    answer.take_task(task)

    assert answer.reply().text == "it is 42"


def test_parts_that_are_no_text_are_named() -> None:
    data = Part()
    data.data.struct_value.update({"ä": 1})
    raw = Part(raw=b"123", filename="x.bin")

    assert said([Part(text="hello"), data, raw, Part(raw=b""), Part(url="https://a.example/f")]) == (
        'hello\n{"ä": 1.0}\n[x.bin, 3 bytes]\n[file, 0 bytes]\nhttps://a.example/f'
    )


@pytest.mark.parametrize(
    "counts", [{"input_tokens": -5}, {"input_tokens": "many"}, {}, 7, {"input_tokens": 1e300}]
)
def test_counts_that_cannot_be_added_up_are_left_out(counts: Any) -> None:
    answer = Answer()
    task = Task(id="t")
    task.metadata.update({"usage": counts})
    answer.take_task(task)

    assert answer.reply().usage is None


def test_a_state_that_is_not_known_yet_is_waited_for() -> None:
    answer = Answer()
    answer.take(update(77))  # type: ignore[arg-type]

    assert not answer.is_over and answer.state == "unknown (77)"


# Discovery


def test_an_agent_is_discovered_by_its_card(cook: Server) -> None:
    [spec] = asyncio.run(discover("chef", cook.url, token=TOKEN, allow_private=True))

    assert spec.id == "chef" and spec.description == "Cooks what you like."
    assert spec.endpoint == RemoteEndpoint(cook.url, token=TOKEN, allow_private=True)
    assert ask(RemoteAgent(spec.id, spec.endpoint), "answer").text == "42"


def test_discovery_has_a_time_limit_of_its_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RemoteAgentError) as caught:
            asyncio.run(discover("cook", url, timeout=0.2, allow_private=True))

    assert caught.value.category == "timeout"


def test_discovery_refuses_private_addresses_too(cook: Server) -> None:
    with pytest.raises(RemoteAgentError) as caught:
        asyncio.run(discover("cook", cook.url, token=TOKEN))

    assert caught.value.category == "refused_address"


# As a tool


def kitchen_core(server: Server, *replies: Reply) -> tuple[AgentCore, dict[str, Any]]:
    core = AgentCore()
    core.register_provider(ScriptedProvider(replies))
    core.register_tool(RemoteDelegateTool("delegate_cook", server.agent()))
    return core, {"provider": "scripted", "model": "script"}


def call_of(prompt: str) -> dict[str, Any]:
    arguments = json.dumps({"prompt": prompt})
    return {"id": "1", "type": "function", "function": {"name": "delegate_cook", "arguments": arguments}}


def test_a_synchronous_caller_gets_the_reply_as_the_result_of_the_tool(cook: Server) -> None:
    core, config = kitchen_core(cook)

    [answered] = core.execute_tool_calls([call_of("progress")], config)
    [failed] = core.execute_tool_calls([call_of("fail")], config)
    [asked] = core.execute_tool_calls([call_of("input")], config)

    assert answered["content"] == "one two" and "error" not in answered["metadata"]
    assert "the oven is cold" in failed["content"]
    assert failed["metadata"]["error"] == {"type": "tool_failed"}
    assert "which city?" in asked["content"] and asked["metadata"]["error"] == {"type": "suspended"}


def test_an_asynchronous_caller_sees_the_progress_of_the_tool_that_a_model_called(cook: Server) -> None:
    core, config = kitchen_core(cook, Reply(tool_calls=[ToolCall("delegate_cook", {"prompt": "progress"})]))
    session = core.add_message(core.create_session("s"), "user", "cook something")
    _, messages = core.send_request(session, config)
    calls = core.extract_tool_calls_from_messages(messages)

    async def run() -> list[dict[str, Any]]:
        return [item async for item in core.iter_tool_messages_async(calls, config)]

    *progress, last = asyncio.run(run())
    assert [item["part"]["text"] for item in progress] == ["submitted", "thinking", "one ", "two"]
    assert last["content"] == "one two"


def test_what_a_remote_delegate_used_is_counted_by_the_run_above(cook: Server) -> None:
    script = [Reply(tool_calls=[ToolCall("delegate_cook", {"prompt": "words"})]), Reply(text="served")]
    runtime = (
        AgentRuntimeBuilder()
        .with_provider("scripted", ScriptedProvider(script))
        .with_model(ModelSpec("m", "scripted", "script"))
        .with_agent_spec(AgentSpec("host", "m", delegates=("cook",)))
        .with_remote_agents("cook", cook.url, TOKEN, allow_private=True)
        .build_and_discover()
    )

    result = runtime.run_to_completion(RunRequest("host", "hello"))

    assert result.text == "served" and result.usage.total_tokens == 10
    assert [message["content"] for message in result.messages if message["role"] == "tool"] == ["only words"]


def test_the_trace_of_the_call_goes_along_to_a_remote_agent(cook: Server) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    script = [Reply(tool_calls=[ToolCall("delegate_cook", {"prompt": "words"})]), Reply(text="served")]
    runtime = (
        AgentRuntimeBuilder()
        .with_provider("scripted", ScriptedProvider(script))
        .with_model(ModelSpec("m", "scripted", "script"))
        .with_agent_spec(AgentSpec("host", "m", delegates=("cook",)))
        .with_remote_agents("cook", cook.url, TOKEN, allow_private=True)
        .build_and_discover()
    )
    before = len(cook.requests)

    runtime.run_to_completion(RunRequest("host", "hello", trace={"traceparent": parent}))

    assert {headers.get("traceparent") for _, headers in cook.requests[before:]} == {parent}


@pytest.mark.parametrize("driver", ["sync", "async"])
def test_cancelling_the_call_of_a_tool_reaches_the_server(cook: Server, driver: str) -> None:
    cook.behaviour.cancelled.clear()
    core, config = kitchen_core(cook)
    cancellation = Cancellation()
    seen: list[dict[str, Any]] = []

    def see(item: dict[str, Any]) -> None:
        seen.append(item)
        if item.get("part", {}).get("text") == "waiting":
            cancellation.cancel()

    async def run() -> None:
        async for item in core.iter_tool_messages_async([call_of("wait")], config, cancellation=cancellation):
            see(item)

    if driver == "async":
        asyncio.run(run())
    else:
        for item in core.iter_tool_messages([call_of("wait")], config, cancellation=cancellation):
            see(item)
    assert seen[-1]["metadata"]["interrupted"] is True
    assert cook.behaviour.cancelled.wait(60)


def test_arguments_that_do_not_fit_never_reach_the_agent(cook: Server) -> None:
    core, config = kitchen_core(cook)
    before = len(cook.requests)
    call = call_of("answer")
    call["function"]["arguments"] = '{"prompt": "answer", "urgent": true}'

    [message] = core.execute_tool_calls([call], config)

    assert "urgent" in message["content"] and len(cook.requests) == before


def test_the_tool_takes_a_prompt_and_nothing_else(cook: Server) -> None:
    tool = RemoteDelegateTool("delegate_cook", replace(cook.agent(), description="Cooks."))
    [schema] = tool.get_tool_schemas()

    assert schema["function"]["name"] == "delegate_cook" and "Cooks." in schema["function"]["description"]
    assert schema["function"]["parameters"]["required"] == ["prompt"]
    assert schema["function"]["parameters"]["additionalProperties"] is False
    assert tool.parallel and tool.timeout > cook.agent().endpoint.timeout


# What is needed


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_loads_neither_the_sdk_nor_a_client() -> None:
    loaded = "sorted({'a2a', 'httpx', 'asyncio', 'pydantic'} & set(sys.modules))"

    assert run_python(f"import sys, agent_runtime.remote; print({loaded})") == "[]"


def test_without_the_sdk_the_error_says_what_to_install() -> None:
    code = """
import asyncio, sys
sys.modules["a2a"] = None
from agent_runtime.remote import RemoteAgent, RemoteAgentError
from agent_runtime.specs import RemoteEndpoint
try:
    asyncio.run(RemoteAgent("cook", RemoteEndpoint("https://example.com")).send("hello"))
except RemoteAgentError as error:
    print(error.category, error.hint)
"""
    assert run_python(code) == "not_installed run: pip install 'keelwork-runtime[a2a]'"


# An agent that asks


@pytest.fixture(scope="module")
def resting_cook() -> Iterator[Server]:
    with served(lambda url, behaviour: kitchen(url, behaviour, rest=True)) as server:
        yield server


@pytest.mark.parametrize("server", ["cook", "slow_cook", "resting_cook"])
def test_a_question_is_answered_on_the_same_task(server: str, request: pytest.FixtureRequest) -> None:
    there: Server = request.getfixturevalue(server)
    agent = there.agent()
    asked = ask(agent, "input")
    assert asked.waiting is not None and asked.waiting.task_id == asked.task_id

    again = ask(agent, "somewhere", task=asked.waiting)
    assert (again.text, again.state, again.task_id) == ("where exactly?", "input_required", asked.task_id)
    reply = ask(agent, "Oslo", task=again.waiting)

    assert (reply.text, reply.state, reply.task_id) == ("rain in Oslo", "completed", asked.task_id)
    assert reply.waiting is None
    assert there.behaviour.answers[-2:] == [(asked.task_id, "somewhere"), (asked.task_id, "Oslo")]


def waiting_runtime(server: Server) -> AgentRuntime:
    replies = [Reply(tool_calls=[ToolCall("delegate_cook", {"prompt": "input"})]), Reply(text="Thanks.")]
    endpoint = RemoteEndpoint(server.url, token=TOKEN, allow_private=True)
    return (
        AgentRuntimeBuilder()
        .with_provider("scripted", ScriptedProvider(replies))
        .with_model(ModelSpec("m", "scripted"))
        .with_agent_spec(AgentSpec("boss", "m", delegates=("cook",)))
        .with_agent_spec(AgentSpec("cook", endpoint=endpoint))
        .build()
    )


def test_a_run_waits_for_the_answer_to_a_remote_agents_question_and_passes_it_on(cook: Server) -> None:
    runtime = waiting_runtime(cook)
    result = runtime.run_to_completion(RunRequest("boss", "Cook."))

    [question] = result.suspended
    assert (question.message, question.action) == ("which city?", "answer")
    silent = [Decision(question.id)]
    with pytest.raises(DecisionError, match="does not fit"):
        runtime.run_to_completion(RunRequest("boss", session=result.session, decisions=silent))
    stored = Session.from_dict(json.loads(json.dumps(result.session.to_dict())))
    decided = [Decision(question.id, value="Oslo")]
    result = runtime.run_to_completion(RunRequest("boss", session=stored, decisions=decided))

    assert result.text == "Thanks."
    assert [one.content for one in result.session.messages if one.role == "tool"] == ["rain in Oslo"]


def test_a_question_that_nobody_answers_takes_the_remote_task_back(cook: Server) -> None:
    runtime = waiting_runtime(cook)
    cook.behaviour.cancelled.clear()
    result = runtime.run_to_completion(RunRequest("boss", "Cook."))

    decided = [Decision(result.suspended[0].id, approved=False, reason="no idea")]
    result = runtime.run_to_completion(RunRequest("boss", session=result.session, decisions=decided))

    assert cook.behaviour.cancelled.wait(60)
    [answer] = [one.content for one in result.session.messages if one.role == "tool"]
    assert "the agent's question was not answered: no idea" in answer

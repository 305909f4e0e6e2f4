"""The four HTTP providers against a mock server that nobody here wrote: `@copilotkit/aimock` from npm."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pytest

from agent_core import AgentCore, Session, tool
from agent_provider_kit import ProviderFailure
from anthropic_provider import AnthropicProvider
from gemini_provider import GeminiProvider
from openai_compatible_provider import OpenAICompatibleProvider
from openai_responses_provider import OpenAIResponsesProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_core.types import MessageRole

INSTALL_SECONDS = 60
START_ATTEMPTS = 1200
ATTEMPT_SECONDS = 0.05
STOP_SECONDS = 60
ANSWER = "Tea is an infusion of leaves in hot water, and it tastes of patience."
ARGUMENTS = {"word": "oolong", "limit": 2}
FIXTURES: dict[str, Any] = {
    "fixtures": [
        {"match": {"userMessage": "What is tea?"}, "response": {"content": ANSWER}},
        {
            "match": {"userMessage": "Look it up", "toolName": "look_up", "hasToolResult": False},
            "response": {"toolCalls": [{"name": "look_up", "arguments": ARGUMENTS}]},
        },
        {
            "match": {"userMessage": "Look it up", "toolResultContains": "2 kinds of oolong"},
            "response": {"content": "Two kinds were found."},
        },
    ]
}


class Wire(NamedTuple):
    """One wire format: who speaks it, and below which path the mock server does."""

    make: Callable[[], Any]
    plugin: str
    model: str
    path: str = ""


WIRES = {
    "chat": Wire(OpenAICompatibleProvider, "openai_compatible", "gpt-4o-mini", "/v1"),
    "responses": Wire(OpenAIResponsesProvider, "openai_responses", "gpt-4o-mini", "/v1"),
    "anthropic": Wire(AnthropicProvider, "anthropic", "claude-sonnet-4-5"),
    "gemini": Wire(GeminiProvider, "gemini", "gemini-2.5-flash"),
}


class Chaos(NamedTuple):
    """What the mock server can be told to do to each request, and what it must be called here."""

    field: str
    action: str
    category: str
    status: int | None


CHAOS = {
    "disconnect": Chaos("disconnectRate", "disconnect", "transport", None),
    "drop": Chaos("dropRate", "drop", "transient", 500),
    "rate limit": Chaos("rateLimitRate", "rateLimit", "transient", 429),
    "malformed": Chaos("malformedRate", "malformed", "stream_broken", None),
}

each_chaos = pytest.mark.parametrize("chaos", CHAOS.values(), ids=list(CHAOS))
each_way = pytest.mark.parametrize("way", ["call", "stream"])


class Mock(NamedTuple):
    """The running mock server."""

    port: int

    def control(self, method: str, what: str, body: Any = None) -> Any:
        """Ask the server's control interface, and return what it says."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            sent = None if body is None else orjson.dumps(body)
            connection.request(method, f"/__aimock/{what}", sent, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            said = reply.read()
        assert reply.status == 200, said
        return orjson.loads(said)

    def wreak(self, chaos: Chaos) -> None:
        """Let the same thing go wrong with every request from now on."""
        assert self.control("POST", "chaos", {chaos.field: 1}) == {"chaos": {chaos.field: 1}}

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        assert self.control("DELETE", "chaos") == {"chaos": {}}

    def served(self) -> list[dict[str, Any]]:
        """Give what the server says it did with each request, oldest first."""
        return [entry["response"] for entry in self.control("GET", "journal")]


class Talk:
    """A conversation with the mock server, through a core."""

    def __init__(self, mock: Mock, wire: Wire) -> None:
        self.core = AgentCore()
        self.core.register_provider(wire.make())
        self.core.register_tool(look_up)
        self.config: dict[str, Any] = {
            "provider": wire.plugin,
            "model": wire.model,
            "base_url": f"http://127.0.0.1:{mock.port}{wire.path}",
            "api_key": "sk-mock-secret",
        }
        self.session: Session = self.core.create_session("talk")
        self.partials: list[dict[str, Any]] = []

    @property
    def last(self) -> dict[str, Any]:
        """The last message."""
        return self.session.messages[-1].to_dict()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tool calls of the last message."""
        return list(self.last["metadata"].get("tool_calls") or [])

    def add(self, role: MessageRole, content: str, **more: Any) -> Talk:
        """Add a message."""
        self.session = self.core.add_message(self.session, role, content, **more)
        return self

    def ask(self, way: str) -> Talk:
        """Ask for an answer, in one piece or in pieces."""
        if way == "call":
            self.session, _messages = self.core.send_request(self.session, self.config)
            return self
        *self.partials, final = self.core.send_request_stream(self.session, self.config)
        self.session = final["session"]
        return self

    def run_tools(self) -> Talk:
        """Execute the calls of the last message, and add what came of them."""
        for message in self.core.execute_tool_calls(self.calls, self.config):
            more = {"metadata": message["metadata"], "tool_result": message["tool_result"]}
            self.add("tool", message["content"], **more)
        return self


@tool
def look_up(word: str, limit: int) -> str:
    """Look a word up."""
    return f"{limit} kinds of {word}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def install(folder: Path) -> Path:
    """Install the mock server into a folder and return its program; skip where that cannot be done."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on the PATH, and the mock server comes from there")
    options = ["--engine-strict", "--no-audit", "--no-fund", "--loglevel=error"]
    command = [npm, "install", *options, "--prefix", str(folder), "@copilotkit/aimock@1.43"]
    log = folder / "npm.txt"  # a file: whatever npm started and left behind would keep a pipe open
    try:
        with log.open("wb") as output:
            subprocess.run(
                command,
                cwd=folder,
                check=True,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=INSTALL_SECONDS,
            )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install the mock server within {INSTALL_SECONDS} seconds")
    except subprocess.CalledProcessError:
        said = " ".join(log.read_text(encoding="utf-8", errors="replace").split())
        pytest.skip(f"npm could not install the mock server: {said[:300]}")
    return folder / "node_modules" / ".bin" / "llmock"


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when the server listens; fail when it ended instead or takes too long."""
    for _attempt in range(START_ATTEMPTS):
        if listens(port):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ATTEMPT_SECONDS)
            break
    pytest.fail(f"the mock server did not start: {log.read_text(encoding='utf-8')}")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mock]:
    """The mock server in strict mode, as a process of its own."""
    folder = tmp_path_factory.mktemp("aimock")
    program = install(folder)
    fixtures, log, port = folder / "fixtures.json", folder / "log.txt", free_port()
    fixtures.write_bytes(orjson.dumps(FIXTURES))
    command = [str(program), "-p", str(port), "-h", "127.0.0.1", "-f", str(fixtures), "--strict"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for(process, port, log)
        yield Mock(port)
    finally:
        stop(process)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor proxies of whoever runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
def mock(running: Mock) -> Iterator[Mock]:
    """The mock server, calm again afterwards."""
    yield running
    running.calm()


@pytest.fixture(params=list(WIRES.values()), ids=list(WIRES))
def talk(request: pytest.FixtureRequest, mock: Mock) -> Talk:
    """A conversation that has not begun, in each wire format in turn."""
    return Talk(mock, request.param)


@each_way
def test_a_text_reply_arrives_whole(talk: Talk, way: str) -> None:
    talk.add("user", "What is tea?").ask(way)

    assert (talk.last["role"], talk.last["content"]) == ("assistant", ANSWER)
    assert not talk.calls


def test_a_streamed_reply_arrives_in_several_pieces(talk: Talk) -> None:
    assert len(talk.add("user", "What is tea?").ask("stream").partials) > 2


@each_way
def test_a_tool_call_arrives_with_its_arguments_and_its_result_is_understood(talk: Talk, way: str) -> None:
    talk.add("user", "Look it up").ask(way)
    [call] = talk.calls
    assert call["function"]["name"] == "look_up"
    assert orjson.loads(call["function"]["arguments"]) == ARGUMENTS

    talk.run_tools().ask(way)
    assert talk.last["content"] == "Two kinds were found."


@each_way
def test_a_request_that_strict_mode_does_not_know_is_a_failure(talk: Talk, way: str) -> None:
    talk.add("user", "Something that no fixture has")

    with pytest.raises(ProviderFailure) as caught:
        talk.ask(way)
    assert caught.value.status == 503
    assert "no fixture matched" in caught.value.provider_message


@each_way
@each_chaos
def test_chaos_is_a_failure_and_never_a_silent_success(
    talk: Talk, mock: Mock, chaos: Chaos, way: str
) -> None:
    talk.add("user", "What is tea?")
    mock.wreak(chaos)

    with pytest.raises(ProviderFailure) as caught:
        talk.ask(way)
    assert mock.served()[-1]["chaosAction"] == chaos.action
    assert (caught.value.category, caught.value.status) == (chaos.category, chaos.status)
    assert "sk-mock-secret" not in str(caught.value)
    assert [message.role for message in talk.session.messages] == ["user"]


@each_chaos
def test_after_chaos_the_same_conversation_goes_on(talk: Talk, mock: Mock, chaos: Chaos) -> None:
    talk.add("user", "What is tea?")
    mock.wreak(chaos)
    with pytest.raises(ProviderFailure):
        talk.ask("stream")

    mock.calm()
    assert talk.ask("stream").last["content"] == ANSWER

"""Every field of every declaration does something: two values of it make two runs that differ."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_core import AgentCore, Message, ProviderError, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Command,
    ConsecutiveErrors,
    ContentMatch,
    ContextPolicy,
    CostBudget,
    HealthRegistry,
    MaxRounds,
    ModelSpec,
    Phase,
    PluginRegistrar,
    RemoteEndpoint,
    RepeatedCalls,
    ResolveError,
    RetryPolicy,
    RunRequest,
    RunResult,
    StopCondition,
    StopOnTool,
    Timeout,
    TokenBudget,
    ToolSettings,
)
from agent_runtime.policies import CONDITIONS
from agent_runtime.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_runtime import AgentRuntime

USAGE = {"input_tokens": 1_000_000, "cached_input_tokens": 400_000, "output_tokens": 2_000_000}


class Busy(ProviderError):
    """A provider that may be asked again."""

    category = "transient"
    retryable = True
    retry_after: float | None = None

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__("scripted", "stream_api", "busy")
        self.retry_after = retry_after


class Stopping:
    """A plugin that ends every run after its first step."""

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.phase_hook(Phase.STEP_END, lambda view: Command().stop("by_plugin"))


class World:
    """A runtime with two scripted providers, three tools and two agents besides the one that is run."""

    def __init__(self, script: Any = ("done",), **given: Any) -> None:
        self.clock = ManualClock(auto_advance=True)
        self.provider = ScriptedProvider(script)
        self.other = ScriptedProvider(repeat("said by the other"))
        self.model: ModelSpec = given.pop("model_spec", ModelSpec("m", "p", "first"))
        self.spec = AgentSpec(**{"id": "agent", "model": self.model.id, **given})
        self.runtime = self._built()

    def _built(self) -> AgentRuntime:
        builder = AgentRuntimeBuilder().with_clock(self.clock).with_health(HealthRegistry())
        builder.with_provider("p", self.provider).with_provider("q", self.other)
        builder.with_model(self.model).with_model(ModelSpec("n", "q", "second"))
        builder.with_plugin("stopping", Stopping)
        for one in (self.search, self.fail, self.wait):
            builder.with_tool(one.__name__, one)
        builder.with_agent_specs(
            [AgentSpec("helper", "n"), AgentSpec("boss", "n", delegates=(self.spec.id,))]
        )
        return builder.with_agent_spec(self.spec).build_unchecked()

    def search(self, query: str = "") -> str:
        """Search."""
        return f"found {query}"

    def fail(self) -> str:
        """Fail."""
        raise ValueError("it does not work")

    def wait(self) -> str:
        """Let ten seconds pass."""
        self.clock.advance(10)
        return "waited"

    def run(self, messages: Any = "Begin", **given: Any) -> RunResult:
        return self.runtime.run_to_completion(RunRequest(self.spec.id, messages, **given))

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.runtime.run(RunRequest(self.spec.id, "Begin")) if one["type"] == kind]

    def sent(self, **given: Any) -> list[str]:
        """Run, and return what the model read in its first request."""
        self.run(**given)
        return [message["content"] for message in self.provider.requests[0].native_messages]

    def settings(self) -> dict[str, Any]:
        """Run, and return the settings of the first request to either provider."""
        self.run()
        return (self.provider.requests or self.other.requests)[0].config

    def offered(self) -> list[str]:
        """Run, and return the tools that the model was offered."""
        return sorted(schema["function"]["name"] for schema in self.settings()["tools"])

    def ending(self) -> tuple[str, int]:
        """Run, and return why and after how many rounds it ended."""
        result = self.run()
        return result.reason.code, result.rounds

    def told(self) -> str:
        """Run, and return the first result that a tool gave."""
        messages = self.run().messages
        return next(str(message["content"]) for message in messages if message["role"] == "tool")


def calling(name: str, times: int = 10, **arguments: Any) -> list[Any]:
    """A script that calls a tool again and again, each time with other arguments unless asked not to."""
    usage = {"input_tokens": 60, "output_tokens": 40}
    calls = [
        ToolCall(name, arguments or ({"query": str(n)} if name == "search" else {})) for n in range(times)
    ]
    return [
        *(Reply(text=f"step {n}", tool_calls=[call], usage=usage) for n, call in enumerate(calls, 1)),
        "done",
    ]


def conversation() -> Session:
    """A conversation of twenty messages, about a hundred tokens each."""
    said = [Message("user" if n % 2 == 0 else "assistant", f"{n} " + "x" * 400) for n in range(20)]
    return AgentCore().append_messages(Session("long"), said)


# --- Observers: each takes a value of the field and returns what can be seen of it


def agent(
    observe: Callable[[World], Any], script: Any = ("done",), **given: Any
) -> Callable[[str, Any], Any]:
    return lambda field, value: observe(World(script, **given, **{field: value}))


def model(
    observe: Callable[[World], Any], script: Any = ("done",), **given: Any
) -> Callable[[str, Any], Any]:
    def look(field: str, value: Any) -> Any:
        spec = ModelSpec(**{"id": "m", "provider": "p", "model": "first", field: value})
        return observe(World(script, model_spec=spec, **given))

    return look


def retry(observe: Callable[[World], Any], script: Any) -> Callable[[str, Any], Any]:
    def look(field: str, value: Any) -> Any:
        return observe(
            World(script, sections={"retry": {"max_retries": 1, "stream_retries": 1, field: value}})
        )

    return look


def context(observe: Callable[[World], Any], **policy: Any) -> Callable[[str, Any], Any]:
    def look(field: str, value: Any) -> Any:
        given = ContextPolicy(**{"compact_at": None, **policy, field: value})
        return observe(World(repeat("summary"), context_policy=given))

    return look


def condition(kind: type[StopCondition], script: Any, **given: Any) -> Callable[[str, Any], Any]:
    def look(field: str, value: Any) -> Any:
        declared = [{"type": kind.type, field: value}]
        return World(script, stop_conditions=declared, **given).ending()

    return look


def refused(world: World) -> str:
    """Return how resolving fails, or what the agent says."""
    try:
        return world.run().text
    except ResolveError as error:
        return error.code


def description_of_delegate(world: World) -> str:
    (descriptor,) = (one for one in world.runtime.resolve("boss").descriptors if "delegate" in one.name)
    return str(descriptor.schema["function"]["description"])


def is_shortened(world: World) -> bool:
    """Return whether something of a long conversation is left out of what is sent."""
    return len(world.sent(session=conversation())) < 21


def retries(world: World) -> int:
    return len(world.events("retry"))


def pauses(world: World) -> bool:
    return any(event["seconds"] > 0 for event in world.events("retry"))


def answered_by(world: World) -> str:
    return str(world.events("usage")[0]["model"])


def compactions(world: World) -> int:
    request = RunRequest("agent", "Go on", session=conversation())
    return sum(event["type"] == "compaction" for event in world.runtime.run(request))


# --- Tools that run in parallel, and tools that do not end


def most_at_once(concurrency: int) -> int:
    running, most = 0, 0

    @tool(parallel=True)
    async def work() -> str:
        """Work, and wait for a colleague for a while."""
        nonlocal running, most
        running += 1
        for _ in range(200):
            most = max(most, running)
            await asyncio.sleep(0)
        running -= 1
        return "done"

    script = [Reply(tool_calls=[ToolCall("work") for _ in range(4)]), "done"]
    _run_with(work, script, {"concurrency": concurrency})
    return most


def hanging(settings: dict[str, Any]) -> str:
    async def hang() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return "never"

    script = [Reply(tool_calls=[ToolCall("hang")]), "done"]
    return str(_run_with(tool(hang), script, settings).messages[2]["content"])


def _run_with(one: Any, script: Any, settings: dict[str, Any]) -> RunResult:
    builder = (
        AgentRuntimeBuilder().with_model(ModelSpec("m", "p")).with_provider("p", ScriptedProvider(script))
    )
    builder.with_tool(one.name, one).with_agent_spec(AgentSpec("agent", "m", sections={"tools": settings}))
    return asyncio.run(builder.build().run_to_completion_async(RunRequest("agent", "Begin")))


# --- A remote agent


class Server(BaseHTTPRequestHandler):
    """An A2A agent that says who asked, at length, or never."""

    protocol_version = "HTTP/1.1"
    closing: threading.Event

    def do_GET(self) -> None:
        interface = {"url": f"http://{self.headers['host']}/rpc", "protocolBinding": "JSONRPC"}
        self._answer(
            {
                "name": "Far",
                "description": "Far away.",
                "version": "1",
                "skills": [],
                "capabilities": {},
                "defaultInputModes": ["text/plain"],
                "defaultOutputModes": ["text/plain"],
                "supportedInterfaces": [{**interface, "protocolVersion": "1.0"}],
            }
        )

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = asked["params"]["message"]["parts"][0]["text"]
        if prompt == "hang":
            self.closing.wait()
        known = self.headers.get("authorization") == "Bearer right"
        text = {"who": "a friend" if known else "a stranger", "length": "x" * 5000}.get(prompt, "hello")
        message = {"messageId": "1", "role": "ROLE_AGENT", "parts": [{"text": text}]}
        self._answer({"jsonrpc": "2.0", "id": asked["id"], "result": {"message": message}})

    def _answer(self, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def far_away() -> Iterator[str]:
    closing = threading.Event()
    handler = type("Handler", (Server,), {"closing": closing})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            closing.set()
            server.shutdown()
            thread.join()


def remote(prompt: str) -> Callable[[str, Any], Any]:
    """Ask a remote agent as a delegate, and return what the model reads, in short."""

    def look(field: str, value: Any) -> str:
        with far_away() as url:
            given = {"url": url, "allow_private": True, field: value.format(url) if field == "url" else value}
            told = _asked(RemoteEndpoint(**given), prompt).replace(url, "URL")
        return told.removeprefix("Remote agent 'far' at ").partition(";")[0]

    return look


def _asked(endpoint: RemoteEndpoint, prompt: str) -> str:
    script: list[Any] = [Reply(tool_calls=[ToolCall("delegate_far", {"prompt": prompt})]), "done"]
    builder = (
        AgentRuntimeBuilder().with_model(ModelSpec("m", "p")).with_provider("p", ScriptedProvider(script))
    )
    builder.with_agent_spec(AgentSpec("far", endpoint=endpoint))
    builder.with_agent_spec(AgentSpec("agent", "m", delegates=("far",)))
    result = builder.build().run_to_completion(RunRequest("agent", "Begin"))
    return str(result.messages[2]["content"])


# --- The table


LATE = "Error: it gave no result within {} seconds and was given up; it may have run in part"


class Row(NamedTuple):
    """Two values of a field with what is seen of each, and how to look."""

    kind: type
    field: str
    one: tuple[Any, Any]
    two: tuple[Any, Any]
    look: Callable[[str, Any], Any]


ROWS = [
    # AgentSpec
    Row(
        AgentSpec,
        "id",
        ("one", "one"),
        ("two", "two"),
        agent(lambda world: world.events("run_start")[0]["agent_id"]),
    ),
    Row(
        AgentSpec,
        "model",
        ("m", "first"),
        ("n", "second"),
        agent(lambda world: world.settings()["model"]),
    ),
    Row(
        AgentSpec,
        "system_prompt",
        ("", ["Begin"]),
        ("Be kind.", ["Be kind.", "Begin"]),
        agent(World.sent),
    ),
    Row(
        AgentSpec,
        "description",
        ("It reads.", "Hand a task to another agent and get its answer. It reads."),
        ("It writes.", "Hand a task to another agent and get its answer. It writes."),
        agent(description_of_delegate),
    ),
    Row(
        AgentSpec,
        "max_rounds",
        (2, ("max_rounds", 2)),
        (5, ("max_rounds", 5)),
        agent(World.ending, calling("search")),
    ),
    Row(
        AgentSpec,
        "plugin_ids",
        ((), ("natural_end", 4)),
        (("stopping",), ("by_plugin", 1)),
        agent(World.ending, calling("search", 3)),
    ),
    Row(
        AgentSpec,
        "delegates",
        ((), ["fail", "search", "wait"]),
        (("helper",), ["delegate_helper", "fail", "search", "wait"]),
        agent(World.offered),
    ),
    Row(
        AgentSpec,
        "handoffs",
        ((), ["fail", "search", "wait"]),
        (("helper",), ["fail", "search", "transfer_to_helper", "wait"]),
        agent(World.offered),
    ),
    Row(
        AgentSpec,
        "allowed_tools",
        (None, ["fail", "search", "wait"]),
        (("s*",), ["search"]),
        agent(World.offered),
    ),
    Row(
        AgentSpec,
        "excluded_tools",
        ((), ["fail", "search", "wait"]),
        (("s*",), ["fail", "wait"]),
        agent(World.offered),
    ),
    Row(
        AgentSpec,
        "context_policy",
        (None, False),
        (ContextPolicy(max_tokens=1000, keep_recent=1, compact_at=None), True),
        agent(is_shortened),
    ),
    Row(
        AgentSpec,
        "stop_conditions",
        ((), ("natural_end", 4)),
        ((StopOnTool(("search",)),), ("stop_on_tool", 1)),
        agent(World.ending, calling("search", 3)),
    ),
    Row(
        AgentSpec,
        "endpoint",
        (None, "done"),
        (RemoteEndpoint("https://example.com"), "remote_agent_not_directly_runnable"),
        agent(refused),
    ),
    Row(
        AgentSpec,
        "sections",
        ({}, ("error", 0)),
        ({"retry": {}}, ("natural_end", 1)),
        agent(World.ending, [Busy(), "done"]),
    ),
    # ModelSpec
    Row(ModelSpec, "id", ("m", "m"), ("big", "big"), model(answered_by)),
    Row(
        ModelSpec,
        "provider",
        ("p", "done"),
        ("q", "said by the other"),
        model(lambda world: world.run().text),
    ),
    Row(
        ModelSpec,
        "model",
        ("large", "large"),
        ("small", "small"),
        model(lambda world: world.settings()["model"]),
    ),
    Row(
        ModelSpec,
        "context_window",
        (None, False),
        (1000, True),
        model(is_shortened, context_policy=ContextPolicy(keep_recent=1, compact_at=None)),
    ),
    Row(
        ModelSpec,
        "max_output_tokens",
        (None, False),
        (1500, True),
        model(is_shortened, context_policy=ContextPolicy(max_tokens=3000, keep_recent=1, compact_at=None)),
    ),
    Row(
        ModelSpec,
        "input_price",
        (None, 0.0),
        (3, 3.0),
        model(lambda world: world.run().usage.cost, [Reply(text="done", usage=USAGE)]),
    ),
    Row(
        ModelSpec,
        "output_price",
        (None, 0.0),
        (3, 6.0),
        model(lambda world: world.run().usage.cost, [Reply(text="done", usage=USAGE)]),
    ),
    Row(
        ModelSpec,
        "cached_input_price",
        (None, 0.0),
        (1, 0.4),
        model(lambda world: world.run().usage.cost, [Reply(text="done", usage=USAGE)]),
    ),
    Row(
        ModelSpec,
        "config",
        ({}, None),
        ({"temperature": 1}, 1),
        model(lambda world: world.settings().get("temperature")),
    ),
    # RetryPolicy
    Row(RetryPolicy, "max_retries", (0, 0), (3, 3), retry(retries, repeat(Busy()))),
    Row(
        RetryPolicy,
        "stream_retries",
        (0, 0),
        (3, 3),
        retry(retries, repeat(Reply(text="half", error=Busy()))),
    ),
    Row(RetryPolicy, "base_delay", (0, False), (5, True), retry(pauses, [Busy(), "done"])),
    Row(RetryPolicy, "max_delay", (0, False), (5, True), retry(pauses, [Busy(), "done"])),
    Row(RetryPolicy, "max_retry_after", (10, 0), (100, 1), retry(retries, [Busy(30), "done"])),
    Row(RetryPolicy, "deadline", (None, 1), (20, 0), retry(retries, [Busy(30), "done"])),
    Row(
        RetryPolicy,
        "fallback_models",
        ((), ""),
        (("n",), "said by the other"),
        retry(lambda world: world.run().text, repeat(Busy())),
    ),
    # ContextPolicy
    Row(ContextPolicy, "max_tokens", (1000, True), (9000, False), context(is_shortened, keep_recent=1)),
    Row(
        ContextPolicy,
        "reserve_tokens",
        (10, False),
        (2000, True),
        context(is_shortened, max_tokens=3000, keep_recent=1),
    ),
    Row(ContextPolicy, "keep_recent", (1, True), (50, False), context(is_shortened, max_tokens=1000)),
    Row(
        ContextPolicy,
        "compact_at",
        (None, 0),
        (0.5, 1),
        context(compactions, max_tokens=2000, keep_recent=2),
    ),
    Row(
        ContextPolicy,
        "truncate",
        (True, True),
        (False, False),
        context(is_shortened, max_tokens=1000, keep_recent=1),
    ),
    Row(
        ContextPolicy,
        "prompt_cache",
        (True, True),
        (False, False),
        context(lambda world: world.settings()["cache"]),
    ),
    # ToolSettings
    Row(ToolSettings, "concurrency", (1, 1), (3, 3), lambda _field, value: most_at_once(value)),
    Row(
        ToolSettings,
        "timeout",
        (0.01, LATE.format(0.01)),
        (0.02, LATE.format(0.02)),
        lambda field, value: hanging({field: value}),
    ),
    Row(
        ToolSettings,
        "timeouts",
        ({}, LATE.format(0.01)),
        ({"hang": 0.02}, LATE.format(0.02)),
        lambda field, value: hanging({"timeout": 0.01, field: value}),
    ),
    # RemoteEndpoint
    Row(
        RemoteEndpoint,
        "url",
        ("{}", "hello"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1: it cannot be reached: All connection attempts failed"),
        remote("hello"),
    ),
    Row(RemoteEndpoint, "token", (None, "a stranger"), ("right", "a friend"), remote("who")),
    Row(
        RemoteEndpoint,
        "timeout",
        (0.1, "URL: it gave no answer within 0.1 seconds and was given up"),
        (0.2, "URL: it gave no answer within 0.2 seconds and was given up"),
        remote("hang"),
    ),
    Row(
        RemoteEndpoint,
        "max_bytes",
        (3000, "URL: its answer is larger than 3000 bytes"),
        (1_000_000, "x" * 5000),
        remote("length"),
    ),
    Row(
        RemoteEndpoint,
        "allow_private",
        (True, "hello"),
        (False, "URL: 127.0.0.1 is a loopback address, and nothing was sent"),
        remote("hello"),
    ),
    # Stop conditions
    Row(
        MaxRounds,
        "rounds",
        (2, ("max_rounds", 2)),
        (3, ("max_rounds", 3)),
        condition(MaxRounds, calling("search")),
    ),
    Row(
        Timeout,
        "seconds",
        (15, ("timeout", 2)),
        (35, ("timeout", 4)),
        condition(Timeout, calling("wait")),
    ),
    Row(
        TokenBudget,
        "tokens",
        (150, ("token_budget", 2)),
        (350, ("token_budget", 4)),
        condition(TokenBudget, calling("search")),
    ),
    Row(
        CostBudget,
        "amount",
        (0.00015, ("cost_budget", 2)),
        (0.00035, ("cost_budget", 4)),
        condition(
            CostBudget,
            calling("search"),
            model_spec=ModelSpec("m", "p", input_price=1, output_price=1),
        ),
    ),
    Row(
        ConsecutiveErrors,
        "count",
        (2, ("consecutive_errors", 2)),
        (4, ("consecutive_errors", 4)),
        condition(ConsecutiveErrors, calling("fail")),
    ),
    Row(
        StopOnTool,
        "tools",
        (["se*"], ("stop_on_tool", 1)),
        (["fail"], ("natural_end", 4)),
        condition(StopOnTool, calling("search", 3)),
    ),
    Row(
        ContentMatch,
        "text",
        ("ep 2", ("content_match", 2)),
        ("ep 3", ("content_match", 3)),
        condition(ContentMatch, calling("search")),
    ),
    Row(
        ContentMatch,
        "pattern",
        ("*2", ("content_match", 2)),
        ("st?? 3", ("content_match", 3)),
        condition(ContentMatch, calling("search")),
    ),
    Row(
        RepeatedCalls,
        "count",
        (2, ("repeated_calls", 2)),
        (4, ("repeated_calls", 4)),
        condition(RepeatedCalls, calling("search", query="the same")),
    ),
]
KINDS = (AgentSpec, ModelSpec, RetryPolicy, ContextPolicy, ToolSettings, RemoteEndpoint, *CONDITIONS.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind.__name__}.{row.field}")
def test_a_field_changes_what_happens(row: Row) -> None:
    seen = [row.look(row.field, value) for value, _ in (row.one, row.two)]

    assert seen[0] != seen[1]
    for outcome, (_, expected) in zip(seen, (row.one, row.two), strict=True):
        assert outcome == expected


def test_the_table_has_every_field_of_every_declaration_and_no_other() -> None:
    declared = [(kind.__name__, field.name) for kind in KINDS for field in fields(kind)]

    assert sorted((row.kind.__name__, row.field) for row in ROWS) == sorted(declared)


def test_the_longest_pause_is_kept_whatever_the_first_one_is() -> None:
    """`base_delay` and `max_delay` differ only over several pauses."""
    script = [*repeat(Busy(), 6), "done"]
    world = World(script, sections={"retry": {"max_retries": 6, "base_delay": 4, "max_delay": 8}})

    seconds = [event["seconds"] for event in world.events("retry")]

    assert len(seconds) == 6 and all(
        0 <= one <= limit for one, limit in zip(seconds, [4, *[8] * 5], strict=True)
    )

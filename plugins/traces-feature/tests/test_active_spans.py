"""A program's own spans belong below the tool or the request that makes them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_provider_kit.http_transport import HttpTransport
from agent_runtime import Agent
from agent_testing import ScriptedServer, chat_reply
from traces_feature import trace_agents

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from opentelemetry.trace import Tracer

Run = "Callable[[Agent[Any, Any]], object]"


class Spans(InMemorySpanExporter):
    """The spans that have ended, as a tree of names."""

    tracer: Tracer

    def above(self, name: str) -> list[str]:
        """Return the names of the spans above each span of a name, sorted."""
        ended = self.get_finished_spans()
        by_id = {span.context.span_id: span.name for span in ended if span.context is not None}
        return sorted(
            "" if span.parent is None else by_id[span.parent.span_id] for span in ended if span.name == name
        )


@pytest.fixture
def spans() -> Iterator[Spans]:
    made, tracers = Spans(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(made))
    made.tracer = tracers.get_tracer("a program")
    undo = trace_agents(tracer_provider=tracers)
    yield made
    undo()


def _run(agent: Agent[Any, Any]) -> object:
    return agent.run("Go.")


def _stream(agent: Agent[Any, Any]) -> object:
    return list(agent.stream("Go."))


def _run_async(agent: Agent[Any, Any]) -> object:
    return asyncio.run(agent.run_async("Go."))


def _stream_async(agent: Agent[Any, Any]) -> object:
    async def read() -> list[Any]:
        return [event async for event in agent.stream_async("Go.")]

    return asyncio.run(read())


every_way = pytest.mark.parametrize(
    "run", [_run, _stream, _run_async, _stream_async], ids=lambda run: run.__name__[1:]
)


def calls(*names: str) -> list[Any]:
    return [Reply(tool_calls=[ToolCall(name, {}, name) for name in names]), "Done."]


@every_way
def test_a_span_of_a_tool_is_below_its_call(spans: Spans, run: Any) -> None:
    def plain() -> str:
        with spans.tracer.start_as_current_span("own plain"):
            return "seen"

    async def awaited() -> str:
        with spans.tracer.start_as_current_span("own awaited"):
            await asyncio.sleep(0)
            return "seen"

    run(Agent(ScriptedProvider([calls("plain")[0], *calls("awaited")]), tools=[plain, awaited]))

    assert spans.above("own plain") == ["execute_tool plain"]
    assert spans.above("own awaited") == ["execute_tool awaited"]
    assert not trace.get_current_span().get_span_context().is_valid  # nothing is left behind


@every_way
def test_tools_that_run_at_once_have_a_span_each(spans: Spans, run: Any) -> None:
    both = threading.Barrier(2)

    def meet(name: str) -> str:
        both.wait(60)
        with spans.tracer.start_as_current_span(f"own {name}"):
            both.wait(60)
        return "met"

    def left() -> str:
        return meet("left")

    def right() -> str:
        return meet("right")

    run(Agent(ScriptedProvider(calls("left", "right")), tools=[left, right]))

    assert spans.above("own left") == ["execute_tool left"]
    assert spans.above("own right") == ["execute_tool right"]
    assert spans.above("execute_tool left") == spans.above("execute_tool right") == ["step 1"]


class Counter:
    """A tool that yields parts."""

    name, version = "count", "1"

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}]


class BlockingCounter(Counter):
    def stream_tool(self, tool_name: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for number in range(2):
            with self._tracer.start_as_current_span("own part"):
                part = {"part": number}
            yield part
        yield {"success": True, "result": "counted"}


class AwaitedCounter(Counter):
    async def stream_tool_async(
        self, tool_name: str, arguments: dict[str, Any]
    ) -> AsyncIterator[dict[str, Any]]:
        for number in range(2):
            with self._tracer.start_as_current_span("own part"):
                await asyncio.sleep(0)
                part = {"part": number}
            yield part
        yield {"success": True, "result": "counted"}


@every_way
@pytest.mark.parametrize("kind", [BlockingCounter, AwaitedCounter])
def test_each_part_of_a_tool_that_streams_is_below_its_call(
    spans: Spans, run: Any, kind: type[Counter]
) -> None:
    run(Agent(ScriptedProvider(calls("count")), tools=[kind(spans.tracer)]))

    assert spans.above("own part") == ["execute_tool count"] * 2


@every_way
def test_the_request_to_a_model_is_made_below_its_span(spans: Spans, run: Any) -> None:
    class Model(ScriptedProvider):
        def _note(self, *given: Any) -> None:
            spans.tracer.start_span("own request").end()
            super()._note(*given)

    run(Agent(Model([*calls("look")], name="m"), tools=[look]))

    assert spans.above("own request") == ["chat m", "chat m"]


def look() -> str:
    return "seen"


@every_way
def test_the_headers_of_a_real_request_can_carry_the_span(
    spans: Spans, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    original = HttpTransport.send

    async def noting(*given: Any, **options: Any) -> Any:
        span: Any = trace.get_current_span()
        seen.append(span.name)
        return await original(*given, **options)

    monkeypatch.setattr(HttpTransport, "send", noting)
    with ScriptedServer(chat_reply("Hello.")) as server:
        config = {"base_url": f"{server.url}/v1", "api_key": "k"}
        run(Agent("openai_compatible:m", config=config))

    assert seen == ["chat m"]


def test_what_the_program_had_active_is_above_the_run_and_its_baggage_reaches_tools(spans: Spans) -> None:
    found: list[object] = []

    def read() -> str:
        found.append(baggage.get_baggage("tenant"))
        return "read"

    agent = Agent(ScriptedProvider(calls("read")), tools=[read])
    token = context.attach(baggage.set_baggage("tenant", "acme"))
    try:
        with spans.tracer.start_as_current_span("own program"):
            asyncio.run(agent.run_async("Go."))
    finally:
        context.detach(token)

    assert found == ["acme"]
    assert spans.above("invoke_agent agent") == ["own program"]

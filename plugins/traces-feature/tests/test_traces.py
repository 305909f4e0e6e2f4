"""Runs as spans and metrics, sent to a real receiver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, RunContext
from agent_testing import ScriptedServer, chat_reply
from agent_testing.otlp import OtlpReceiver
from traces_feature import TracesFeature, trace_agents

if TYPE_CHECKING:
    from collections.abc import Iterator

USED = {"input_tokens": 10, "output_tokens": 5, "cached_input_tokens": 4}


class Receiver(OtlpReceiver):
    """A collector, and what sends to it."""

    def __init__(self) -> None:
        super().__init__()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{self.url}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{self.url}/v1/metrics"))
        self.meters = MeterProvider([reader])

    def tree(self) -> dict[str, Any]:
        self.tracers.force_flush()
        return super().tree()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made
        made.tracers.shutdown()
        made.meters.shutdown()


@pytest.fixture
def traced(receiver: Receiver) -> Iterator[Receiver]:
    undo = trace_agents(tracer_provider=receiver.tracers, meter_provider=receiver.meters)
    yield receiver
    undo()


def calling(name: str, **arguments: Any) -> Reply:
    return Reply(tool_calls=[ToolCall(name, arguments)], usage=USED)


def look(ctx: RunContext) -> str:
    return "seen"


def test_a_run_is_a_tree_of_spans_with_tokens_and_times(traced: Receiver) -> None:
    agent = Agent(ScriptedProvider([calling("look"), Reply(chunks=["do", "ne"], usage=USED)]), tools=[look])

    stream = agent.stream("Go.", run_id="r")
    list(stream)

    assert traced.tree() == {
        "invoke_agent agent": {
            "step 1": {"chat scripted": {}, "execute_tool look": {}},
            "step 2": {"chat scripted": {}},
        }
    }
    run = traced.attributes("invoke_agent agent")
    assert run["gen_ai.operation.name"] == "invoke_agent"
    assert (run["agent.run.id"], run["agent.run.reason"], run["agent.run.rounds"]) == ("r", "natural_end", 2)
    assert (run["gen_ai.usage.input_tokens"], run["gen_ai.usage.cache_read.input_tokens"]) == (20, 8)
    assert traced.attributes("execute_tool look")["gen_ai.tool.call.id"] == "call_1"
    chats = [span for span in traced.spans if span.name == "chat scripted"]
    keys = {item.key for item in chats[1].attributes}
    assert "gen_ai.response.time_to_first_chunk" in keys
    assert len({span.trace_id for span in traced.spans}) == 1
    assert not any(
        "messages" in item.key or "arguments" in item.key for s in traced.spans for item in s.attributes
    )


def test_delegates_and_handoffs_belong_to_the_trace(traced: Receiver) -> None:
    helper = Agent(ScriptedProvider(["helped"]), name="helper")
    refunds = Agent(ScriptedProvider(["paid"]), name="refunds")
    desk = Agent(
        ScriptedProvider([calling("delegate_helper", prompt="Help."), calling("transfer_to_refunds")]),
        name="desk",
        delegates=[helper],
        handoffs=[refunds],
    )

    assert desk.run("Go.").agent == "refunds"

    [(name, below)] = traced.tree().items()
    assert name == "invoke_agent desk"
    assert "invoke_agent helper" in below["step 1"]["execute_tool delegate_helper"]
    assert "handoff refunds" in below
    assert "invoke_agent refunds" in below
    assert len({span.trace_id for span in traced.spans}) == 1


def test_a_failure_and_a_run_that_is_left_end_their_spans(traced: Receiver) -> None:
    def broken() -> str:
        raise OSError("no disk")

    agent = Agent(ScriptedProvider([calling("broken"), ValueError("odd")]), tools=[broken])
    list(agent.stream("Go."))
    left = Agent(ScriptedProvider([Reply(chunks=["a", "b"])]), name="left").stream("Go.")
    next(left)
    next(left)
    left.close()

    traced.tracers.force_flush()
    assert traced.attributes("execute_tool broken")["error.type"] == "exception"
    assert "error.type" in traced.attributes("invoke_agent agent")
    assert any(span.name == "invoke_agent left" for span in traced.spans)


def test_metrics_are_those_of_the_conventions(traced: Receiver) -> None:
    Agent(ScriptedProvider([calling("look"), Reply(text="done", usage=USED)]), tools=[look]).run("Go.")

    traced.meters.force_flush()
    names = {metric.name for metric in traced.metrics}
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "agent.run.duration"} <= names


def test_content_is_recorded_on_request_and_without_secrets(receiver: Receiver) -> None:
    key = "sk-" + "abc123" * 6

    def post(token: str, text: str) -> str:
        return f"posted {text}"

    feature = TracesFeature(content=True, tracer_provider=receiver.tracers, meter_provider=receiver.meters)
    agent = Agent(
        ScriptedProvider([calling("post", token="hidden", text=f"key {key}"), "done"]),
        tools=[post],
        plugins={"traces": feature},
    )
    agent.run("Post it.")

    receiver.tracers.force_flush()
    tool = receiver.attributes("execute_tool post")
    assert key not in str(receiver.spans)
    assert "[secret]" in tool["gen_ai.tool.call.arguments"]
    assert "Post it." in receiver.attributes("invoke_agent agent")["gen_ai.input.messages"]


def test_a_request_names_the_model_as_its_provider_does(traced: Receiver) -> None:
    with ScriptedServer(chat_reply("Hi.", model="m-2026", response_id="answer-1")) as server:
        config = {"base_url": f"{server.url}/v1", "api_key": "k"}
        Agent("openai_compatible:m", config=config).run("Hello.")

    traced.tracers.force_flush()
    chat = traced.attributes("chat m")
    assert (chat["gen_ai.request.model"], chat["gen_ai.response.model"]) == ("m", "m-2026")
    assert chat["gen_ai.response.id"] == "answer-1"
    assert [one.string_value for one in chat["gen_ai.response.finish_reasons"].values] == ["stop"]
    traced.meters.force_flush()
    [duration] = [metric for metric in traced.metrics if metric.name == "gen_ai.client.operation.duration"]
    about = {item.key: item.value.string_value for item in duration.histogram.data_points[0].attributes}
    assert (about["gen_ai.provider.name"], about["gen_ai.request.model"]) == ("openai", "m")


def test_messages_are_recorded_in_the_form_of_the_conventions(receiver: Receiver) -> None:
    key = "sk-" + "abc123" * 6

    def post(password: str, text: str) -> str:
        return "posted"

    feature = TracesFeature(content=True, tracer_provider=receiver.tracers, meter_provider=receiver.meters)
    call = ToolCall("post", {"password": "hunter2", "text": f"the key is {key}"}, "c1")
    provider = ScriptedProvider([Reply(text="Now.", tool_calls=[call]), "x" * 9000])
    Agent(provider, tools=[post], plugins={"traces": feature}).run(f"Post {key}.")

    receiver.tracers.force_flush()
    run = receiver.attributes("invoke_agent agent")
    first, second = (
        json.loads(item.value.string_value)
        for span in sorted(receiver.spans, key=lambda span: span.start_time_unix_nano)
        for item in span.attributes
        if span.name == "chat scripted" and item.key == "gen_ai.output.messages"
    )
    assert json.loads(run["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Post [secret]."}]}
    ]
    assert first == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Now."},
                {
                    "type": "tool_call",
                    "id": "c1",
                    "name": "post",
                    "arguments": {"password": "[secret]", "text": "the key is [secret]"},
                },
            ],
            "finish_reason": "tool_call",
        }
    ]
    for answer in (second, json.loads(run["gen_ai.output.messages"])):
        [message] = answer
        assert message["finish_reason"] == "stop"
        assert message["parts"] == [{"type": "text", "content": "x" * 8000}]


def test_a_section_of_an_agent_switches_content_on(receiver: Receiver) -> None:
    feature = TracesFeature(tracer_provider=receiver.tracers, meter_provider=receiver.meters)
    agent = Agent(
        ScriptedProvider(["done"]), plugins={"traces": feature}, sections={"traces": {"content": True}}
    )
    agent.run("Hello.")

    receiver.tracers.force_flush()
    assert "done" in receiver.attributes("invoke_agent agent")["gen_ai.output.messages"]


def test_a_run_that_waits_goes_on_in_the_same_trace(traced: Receiver) -> None:
    agent = Agent(
        ScriptedProvider([calling("look"), "done"]),
        tools=[look],
        sections={"permissions": {"default": "ask"}},
    )
    waiting = agent.run("Go.")

    agent.run(session=waiting.session, decisions=[{"target": waiting.suspended[0].id}])

    traced.tracers.force_flush()
    runs = [span for span in traced.spans if span.name == "invoke_agent agent"]
    assert len(runs) == 2
    assert len({span.trace_id for span in runs}) == 1

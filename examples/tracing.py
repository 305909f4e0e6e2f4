"""Tracing: every run, step, model call and tool call becomes an OpenTelemetry span."""

import os

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor, SpanExporter

from agent_runtime import Agent
from traces_feature import trace_agents


def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: a drink"


def traced(model: object, question: str, exporter: SpanExporter) -> str:
    """Ask an agent, and send what happened to an exporter: OTLPSpanExporter() reaches a collector."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    stop = trace_agents(tracer_provider=provider)
    try:
        return Agent(model, name="scout", tools=[look_up]).run(question).output
    finally:
        stop()


if __name__ == "__main__":
    print(traced(os.environ.get("MODEL", "local"), "What is tea?", ConsoleSpanExporter()))

"""What is counted, read as an exporter would; and nothing where OpenTelemetry is not installed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import metrics as otel
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from agent_durable import Job, Outcome, Queue
from agent_durable.metrics import Metrics

JOB = Job(run_id="r", session_id="s", capability="my.agent.0123456789ab")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    """Read what this test counts; a process has one provider for good, so that is not used."""
    found = InMemoryMetricReader()
    provider = MeterProvider([found])
    monkeypatch.setattr(otel, "get_meter", provider.get_meter)
    return found


def read(reader: InMemoryMetricReader) -> dict[str, list[tuple[dict[str, Any], Any]]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: [
            (dict(point.attributes or {}), getattr(point, "value", getattr(point, "sum", None)))
            for point in metric.data.data_points
        ]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_runs_steps_queue_and_workers_are_counted(reader: InMemoryMetricReader) -> None:
    metrics = Metrics(lambda: Queue(3, 12.5), lambda: 2)
    metrics.started(JOB)
    metrics.started(JOB)
    metrics.stepped(JOB, Outcome(units=("model", "tool pay c1")), 0.5)
    metrics.stepped(JOB, Outcome(units=("model",)), 0.25)
    metrics.ended(JOB, Outcome(over=True, code="natural_end"))
    metrics.ended(JOB, Outcome(over=True, code="error"))

    agent = {"agent": "my.agent"}
    assert read(reader) == {
        "agent.runs.started": [(agent, 2)],
        "agent.runs.ended": [({**agent, "status": "done"}, 1), ({**agent, "status": "failed"}, 1)],
        "agent.step.duration": [({**agent, "kind": "tool"}, 0.5), ({**agent, "kind": "model"}, 0.25)],
        "agent.queue.length": [({}, 3)],
        "agent.queue.age": [({}, 12.5)],
        "agent.workers": [({}, 2)],
    }


def test_a_database_that_is_away_gives_no_number_and_spoils_no_other(reader: InMemoryMetricReader) -> None:
    def away() -> Queue:
        raise ConnectionError("away")

    metrics = Metrics(away, lambda: 2)
    metrics.started(JOB)

    found = read(reader)

    assert found["agent.workers"] == [({}, 2)]
    assert not found.get("agent.queue.length")
    assert "agent.runs.started" in found


def test_without_opentelemetry_nothing_is_counted() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from agent_durable import Job, Outcome, Queue
from agent_durable.metrics import Metrics
job = Job(run_id="r", session_id="s", capability="a.1")
metrics = Metrics(lambda: Queue(0, 0.0), lambda: 0)
metrics.started(job); metrics.stepped(job, Outcome(), 1.0); metrics.ended(job, Outcome())
print("counted nothing")
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout == "counted nothing\n"

"""A run that two workers do after each other is one trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_testing.otlp import OtlpReceiver

if TYPE_CHECKING:
    from conftest import Site

pytest.importorskip("traces_feature")


def test_a_run_over_two_workers_arrives_whole(site: Site) -> None:
    with OtlpReceiver() as collector:
        first = site.worker(TOOL_SECONDS="0.3", OTLP=collector.url)
        _session, run_id = site.say("Count to 6")
        site.wait(lambda: len(site.effects()) >= 2)
        assert run_id in first.stop()
        second = site.worker(TOOL_SECONDS="0.05", OTLP=collector.url)
        assert site.wait_over(run_id) == ["done"]
        second.stop()

        spans = collector.spans
        runs = [span for span in spans if span.name == "invoke_agent counter"]
        assert len(runs) == 2
        assert len({span.trace_id for span in spans}) == 1
        known = {span.span_id for span in spans}
        assert [span.name for span in spans if span.parent_span_id and span.parent_span_id not in known] == []
        tools = [span for span in spans if span.name.startswith("execute_tool")]
        assert len(tools) >= 6
        assert {span.name for span in spans if span.name.startswith("step")} >= {
            f"step {n}" for n in range(1, 8)
        }

"""Traces for all runs of a process, or for the agents that ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace

from agent_runtime import watch_runs
from traces_feature.spans import Instruments, RunSpans

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from agent_runtime import PluginRegistrar, RunScope

_NAME = "keelwork.agents"


class TracesFeature:
    """Traces the runs of the agents that name it.

    Args:
        content: Whether what is said, called and returned is recorded; secrets are blotted out.
        tracer_provider: Where spans go; by default the one that the program has set up.
        meter_provider: Where metrics go.
    """

    name = "traces"
    version = "0.1.0"

    def __init__(
        self,
        *,
        content: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._content = content
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        self._instruments = Instruments(metrics.get_meter(_NAME, meter_provider=meter_provider))

    @staticmethod
    def config_schemas() -> list[tuple[str, dict[str, Any]]]:
        """Return the schema of the section "traces"."""
        content = {"type": "boolean", "description": "Whether texts and arguments are recorded."}
        schema = {"type": "object", "properties": {"content": content}, "additionalProperties": False}
        return [("traces", schema)]

    def register(self, registrar: PluginRegistrar) -> None:
        """Have the agent's runs watched."""
        content = self._content or registrar.spec.section("traces").get("content") is True
        registrar.watch(lambda scope: self.watch(scope, content=content))

    def watch(self, scope: RunScope, *, content: bool | None = None) -> RunSpans:
        """Return what makes spans of one run."""
        recorded = self._content if content is None else content
        return RunSpans(scope, self._tracer, self._instruments, content=recorded)


def trace_agents(
    *,
    content: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> Callable[[], None]:
    """Trace every run of this process; return how to end that.

    Args:
        content: Whether what is said, called and returned is recorded; secrets are blotted out.
        tracer_provider: Where spans go; by default the one that the program has set up.
        meter_provider: Where metrics go.
    """
    feature = TracesFeature(content=content, tracer_provider=tracer_provider, meter_provider=meter_provider)
    return watch_runs(feature.watch)

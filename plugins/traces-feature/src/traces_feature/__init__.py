"""OpenTelemetry traces and metrics of agent runs, by the GenAI semantic conventions.

`trace_agents()` traces every run of the process; `TracesFeature` traces the runs of the agents that name it.
"""

from traces_feature.feature import TracesFeature, trace_agents

__all__ = ["TracesFeature", "trace_agents"]

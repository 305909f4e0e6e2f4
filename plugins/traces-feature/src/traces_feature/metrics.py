"""The metrics of the GenAI conventions: duration, time to the first chunk, tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import Meter


class Instruments:
    """Where the figures go."""

    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "How long an answer or a tool took."
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk", "s", "How long until the first piece of an answer."
        )
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of an answer.")
        self._runs = meter.create_histogram("agent.run.duration", "s", "How long a run took.")

    def answered(
        self, provider: str, model: str, used: Mapping[str, Any], seconds: float, first: float | None
    ) -> None:
        """Note an answer of a model."""
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        self._duration.record(seconds, about)
        if first is not None:
            self._first.record(first, about)
        self._tokens.record(used.get("input_tokens", 0), {**about, "gen_ai.token.type": "input"})
        self._tokens.record(used.get("output_tokens", 0), {**about, "gen_ai.token.type": "output"})

    def ran(self, tool: str, seconds: float, *, failed: bool) -> None:
        """Note a call of a tool."""
        about: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        self._duration.record(seconds, {**about, "error.type": "_OTHER"} if failed else about)

    def ended(self, agent: str, reason: str, seconds: float) -> None:
        """Note the end of a run."""
        self._runs.record(seconds, {"gen_ai.agent.name": agent, "agent.run.reason": reason})

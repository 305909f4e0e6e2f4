"""Handoffs: another agent goes on with the conversation, as a part of the same run.

The agent calls a tool, which ends its part; the agent that it named goes on with the whole session, or
with what a filter lets it see. To whoever watches it is one run: one `run_start`, one `run_end`, one
usage, one id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from agent_core.steps import Emit, with_events
from agent_runtime.commands import Command
from agent_runtime.phases import Phase
from agent_runtime.results import Reason, Usage

if TYPE_CHECKING:
    from agent_core import Message
    from agent_core.events import Event, HandoffEvent
    from agent_core.steps import Flow
    from agent_runtime.agent_run import AgentRun
    from agent_runtime.env import PluginRegistrar
    from agent_runtime.phases import PhaseView
    from agent_runtime.results import RunResult
    from agent_runtime.runs import RunRequest
    from agent_runtime.runtime import AgentRuntime

MOST_HANDOFFS = 16
"""How often the agents of one run may hand over."""

CODE = "handoff"
Sees = Callable[["Sequence[Message]"], "Sequence[Message]"]


def without_tools(messages: Sequence[Message]) -> Sequence[Message]:
    """Return a conversation without calls of tools and their results: a filter for `Handoff.sees`."""
    return [
        message
        for message in messages
        if message.role != "tool" and not (message.role == "assistant" and message.metadata.get("tool_calls"))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """An agent that may run as a part of a run.

    Attributes:
        name: Its name, by which handoffs find it.
        runtime: Runs it, under the id `agent_id`.
        handoffs: The agents that it may hand over to, by name, each with what that agent sees.
        find: Returns another agent, by its name.
    """

    name: str
    runtime: AgentRuntime
    handoffs: Mapping[str, Sees | None]
    find: Callable[[str], Station]


def tool_name(agent: str) -> str:
    """Return the name of the tool that hands over to an agent."""
    return f"transfer_to_{re.sub(r'[^A-Za-z0-9_-]', '_', agent)}"[:64]


class HandoffTool:
    """The tool that hands over to another agent."""

    version = "1"
    stateless = True

    def __init__(self, agent: str, description: str, name: str | None = None) -> None:
        self.name = name or tool_name(agent)
        self.agent = agent
        about = f"Hand the conversation over to the agent {agent}. {description}".strip()
        parameters = {"type": "object", "properties": {}, "additionalProperties": False}
        called = {"name": self.name, "description": about, "parameters": parameters}
        self._schemas = [{"type": "function", "function": called}]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return self._schemas

    def execute_tool(self, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, object]:
        return {"success": True, "result": f"The conversation is now with the agent {self.agent}."}


class HandoffPlugin:
    """Ends an agent's part of a run when it has handed over."""

    name = "handoffs"
    version = "1"

    def __init__(self, tools: Sequence[HandoffTool]) -> None:
        self._agents = {tool.name: tool.agent for tool in tools}

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.phase_hook(Phase.AFTER_TOOL_EXECUTE, self._hand_over)

    def _hand_over(self, view: PhaseView) -> Command | None:
        if view.call is None or view.result is None or "error" in view.result["metadata"]:
            return None
        agent = self._agents.get(view.call.name)
        return None if agent is None else Command().stop(CODE, agent)


def run_with_handoffs(first: Station, request: RunRequest, run: AgentRun) -> Flow[RunResult]:
    """Run an agent and those that it hands over to, as one run."""
    station, journey = first, _Journey(request)
    while True:
        flow = station.runtime.run_flow(journey.request)
        result = yield from with_events(flow, journey.shown)
        journey.add(result)
        if result.reason.code != CODE or result.suspended:
            return journey.whole(result)
        if journey.handoffs >= MOST_HANDOFFS:
            reason = Reason(
                "max_handoffs", f"the agents handed over {journey.handoffs} times, as often as allowed"
            )
            return (yield from journey.ended(replace(result, reason=reason)))
        target = result.reason.detail
        run.sees, run.before = station.handoffs.get(target), len(result.session.messages)
        event: HandoffEvent = {"type": "handoff", "from_agent": station.name, "to_agent": target}
        yield Emit([event])
        station = station.find(target)
        journey.go_on(target, result)


class _Journey:
    """A run of several agents: what they used together, and what a watcher sees of them."""

    def __init__(self, request: RunRequest) -> None:
        # The agents that take over belong to the trace of the first, which is written here when it begins.
        self.request = self._asked = replace(request, trace=dict(request.trace))
        self.handoffs = 0
        self._used = Usage()
        self._rounds = 0
        self._begun_at: int | None = None

    def add(self, result: RunResult) -> None:
        """Count what one agent used."""
        if self._begun_at is None:
            self._begun_at = len(result.session.messages) - len(result.added)
        self._used += result.usage
        self._rounds += result.rounds

    def go_on(self, agent: str, result: RunResult) -> None:
        """Make the request for the agent that goes on."""
        asked, used = self._asked, self._used
        self.handoffs += 1
        self.request = replace(
            asked,
            agent_id=agent,
            messages=(),
            session=result.session,
            decisions=(),
            run_id=result.run_id,
            limits=None if asked.limits is None else asked.limits.left(used),
            token_budget=None
            if asked.token_budget is None
            else max(0, asked.token_budget - used.total_tokens),
            cost_budget=None if asked.cost_budget is None else max(0.0, asked.cost_budget - used.cost),
        )

    def shown(self, events: list[Event]) -> list[Event]:
        """Return what a watcher sees of the events of one agent."""
        return [shown for event in events if (shown := self._shown(event)) is not None]

    def _shown(self, event: Event) -> Event | None:
        if event["type"] == "run_start" and self.handoffs:
            return None
        if event["type"] == "run_end" and event["reason"]["code"] == CODE:
            return None
        if event["type"] == "run_end" and self.handoffs:
            used = self._used + Usage.from_dict(event["usage"])
            messages = [message.frozen_dict() for message in event["session"].history[self._begun_at :]]
            rounds = self._rounds + event["rounds"]
            return cast("Event", {**event, "usage": used.to_dict(), "rounds": rounds, "messages": messages})
        if event["type"] == "usage" and self.handoffs:
            total = self._used + Usage.from_dict(event["total"])
            return cast("Event", {**event, "total": total.to_dict()})
        return event

    def whole(self, result: RunResult) -> RunResult:
        """Return what all agents together came to."""
        if not self.handoffs:
            return result
        added = result.session.history[self._begun_at :]
        return replace(result, usage=self._used, rounds=self._rounds, added=added)

    def ended(self, result: RunResult) -> Flow[RunResult]:
        """End a run between two agents."""
        whole = self.whole(result)
        end: Event = {
            "type": "run_end",
            "run_id": whole.run_id,
            "agent_id": whole.agent,
            "reason": whole.reason._asdict(),
            "text": whole.text,
            "rounds": whole.rounds,
            "usage": whole.usage.to_dict(),
            "session": whole.session,
            "messages": [message.frozen_dict() for message in whole.added],
        }
        yield Emit([end])
        return whole

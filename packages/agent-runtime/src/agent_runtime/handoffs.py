"""Handoffs: another agent continues the conversation, as a part of the same run.

The agent calls a tool, which ends its part; the agent that it named continues with the whole session, or
with what a filter lets it see. To whoever watches it is one run: one `run_start`, one `run_end`, one
usage, one id.
"""

from __future__ import annotations

import re
from time import time
from typing import TYPE_CHECKING, Any, cast

from agent_core.dict_form import replace
from agent_core.steps import Emit, with_events
from agent_runtime.commands import Command
from agent_runtime.env import TaggedTransform
from agent_runtime.phases import Phase
from agent_runtime.results import Reason, Usage
from agent_runtime.runs import Checkpoint, Keep
from agent_runtime.suspension import RUN, SavedRun, read_saved_run
from agent_runtime.verdicts import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_core import Message, Session
    from agent_core.events import Event, HandoffEvent
    from agent_core.steps import Flow
    from agent_runtime.clock import Clock
    from agent_runtime.env import PluginRegistrar, Prompt, ResolvedAgent, Sees
    from agent_runtime.phases import PhaseView
    from agent_runtime.results import RunResult
    from agent_runtime.runs import RunRequest
    from agent_runtime.specs import HandoffSpec

MOST_HANDOFFS = 16
"""How often the agents of one run may hand over."""

CODE = "handoff"


def without_tools(messages: Sequence[Message]) -> Sequence[Message]:
    """Return a conversation without calls of tools and their results: a filter for `Handoff.sees`."""
    return [
        message
        for message in messages
        if message.role != "tool" and not (message.role == "assistant" and message.metadata.get("tool_calls"))
    ]


SEES: dict[str, Sees | None] = {"all": None, "without_tools": without_tools}
"""What `HandoffSpec.sees` may say."""


def tool_name(agent: str) -> str:
    """Return the name of the tool that hands over to an agent."""
    return f"transfer_to_{re.sub(r'[^A-Za-z0-9_-]', '_', agent)}"[:64]


class HandoffTool:
    """The tool that hands over to another agent."""

    version = "1"
    stateless = True
    idempotent = True

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
        return {"success": True, "result": _announcement(self.agent)}


def _announcement(agent: str) -> str:
    return f"The conversation is now with the agent {agent}."


def declared_name(handoff: HandoffSpec) -> str:
    """Return the name of the tool of a declared handoff."""
    return handoff.tool_name or tool_name(handoff.agent)


class HandoffPlugin:
    """Ends an agent's part of a run when it has handed over.

    Args:
        agents: The agents that take over, by the names of the tools.
    """

    name = "handoffs"
    version = "1"

    def __init__(self, agents: Mapping[str, str]) -> None:
        self._agents = agents

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.phase_hook(Phase.AFTER_TOOL_EXECUTE, self._hand_over)
        registrar.phase_hook(Phase.RUN_START, self._hand_over_now)
        registrar.tool_gate(self._only_one)

    def _only_one(self, view: PhaseView) -> Block | None:
        """Refuse all but the first handoff of an answer."""
        made = [call for message in view.messages for call in message.tool_calls]
        wanted = [call for call in made if (call.get("function") or {}).get("name") in self._agents]
        if view.call is None or view.call.name not in self._agents or not wanted[1:]:
            return None
        first = wanted[0]
        if view.call.id == first.get("id"):
            return None
        return Block(f"the conversation goes to the agent {self._agents[first['function']['name']]} already")

    def _hand_over_now(self, view: PhaseView) -> Command | None:
        """Hand over if a process that died had only come to write down that it does."""
        for message in reversed(view.session.messages):
            if message.role != "tool":
                break
            agent = self._agents.get(str(message.metadata.get("tool_name")))
            if agent is not None and message.content == _announcement(agent):
                return Command().stop(CODE, agent)
        return None

    def _hand_over(self, view: PhaseView) -> Command | None:
        if view.call is None or view.result is None or "error" in view.result["metadata"]:
            return None
        agent = self._agents.get(view.call.name)
        return None if agent is None else Command().stop(CODE, agent)


def run_with_handoffs(
    first: ResolvedAgent,
    request: RunRequest,
    clock: Clock,
    run_part: Callable[[ResolvedAgent, RunRequest], Flow[RunResult]],
    *,
    keeps: bool,
) -> Flow[RunResult]:
    """Run an agent and those that it hands over to, as one run.

    Args:
        first: The agent that the run begins with, unless the session has a run that another one was at.
        run_part: Runs one of them until it ends or hands over.
        keeps: Whether somebody answers `Keep`.
    """
    agent, before = _begins_with(first, request)
    journey = _Journey(request, clock, before)
    while True:
        seeing = journey.seeing(agent, first)
        result = yield from with_events(run_part(seeing, journey.part(agent)), journey.shown)
        journey.add(result)
        target = result.reason.detail
        if result.reason.code != CODE or target not in agent.handoffs:
            return journey.whole(result)
        if journey.handoffs >= MOST_HANDOFFS:
            reason = Reason(
                "max_handoffs", f"the agents handed over {journey.handoffs} times, as often as allowed"
            )
            return (yield from journey.ended(replace(result, reason=reason), keeps=keeps))
        journey.hand_over(agent.spec.id, result)
        event: HandoffEvent = {"type": "handoff", "from_agent": agent.spec.id, "to_agent": target}
        if keeps:
            event["at"] = time()
            yield Keep(Checkpoint("input", journey.kept(target, result)))
        yield Emit([event])
        agent = agent.handoffs[target].find()


def hands_over(agent: ResolvedAgent, reason: Reason) -> bool:
    """Say whether a part of a run ended because another agent goes on."""
    return reason.code == CODE and reason.detail in agent.handoffs


def _begins_with(first: ResolvedAgent, request: RunRequest) -> tuple[ResolvedAgent, Mapping[str, Any]]:
    """Return the agent that a run begins with, and what others did in it before.

    It is the first, or the one at which the session's run is that is to go on.
    """
    saved = read_saved_run(request.session)
    if saved is not None and (request.decisions or (request.resumable and saved.run_id == request.run_id)):
        agent = _reached(first, saved.agent_id)
        if agent is not None:
            return agent, saved.journey
    return first, {}


def _reached(first: ResolvedAgent, agent_id: str) -> ResolvedAgent | None:
    """Return an agent that a run of the first one may be handed to, directly or not."""
    seen, waiting = {first.spec.id}, [first]
    while waiting:
        agent = waiting.pop()
        if agent.spec.id == agent_id:
            return agent
        waiting += [other.find() for name, other in agent.handoffs.items() if name not in seen]
        seen.update(agent.handoffs)
    return None


class _Journey:
    """A run of several agents: what they used together, and what a watcher sees of them.

    What it must know of the agents before is plain data, which the session keeps with the run: so another
    process can continue it.
    """

    def __init__(self, request: RunRequest, clock: Clock, before: Mapping[str, Any]) -> None:
        # The agents that take over belong to the trace of the first, which is written here when it begins.
        self._asked = replace(request, trace=dict(request.trace))
        self._clock, self._began = clock, clock.now()
        self._session, self._is_first = request.session, True
        self.handoffs = int(before.get("handoffs", 0))
        self._used = Usage.from_dict(before.get("usage", {}))
        self._rounds = int(before.get("rounds", 0))
        self._begun_at: int | None = before.get("begun_at")
        self._from, self._seen_before = before.get("from_agent"), int(before.get("before", 0))
        self._run_id = request.run_id

    def part(self, agent: ResolvedAgent) -> RunRequest:
        """Return the request for one agent: what is left of all that the run may use."""
        asked, used = self._asked, self._used
        request = replace(asked, agent_id=agent.spec.id, journey=self._to_dict())
        if not self.handoffs:
            return request
        begins = asked if self._is_first else replace(asked, messages=(), decisions=())
        elapsed = self._clock.now() - self._began
        timeout, tokens, cost = asked.timeout, asked.token_budget, asked.cost_budget
        return replace(
            request,
            messages=begins.messages,
            decisions=begins.decisions,
            session=self._session,
            run_id=self._run_id,
            # A model that was asked for is that of the first agent.
            config={key: value for key, value in asked.config.items() if key != "model"},
            timeout=max(0.001, timeout - elapsed) if isinstance(timeout, (int, float)) else timeout,
            limits=None if asked.limits is None else asked.limits.left(used),
            token_budget=None if tokens is None else max(0, tokens - used.total_tokens),
            cost_budget=None if cost is None else max(0.0, cost - used.cost),
        )

    def seeing(self, agent: ResolvedAgent, first: ResolvedAgent) -> ResolvedAgent:
        """Return an agent that sees no more of the conversation than the one before it lets it see."""
        origin = None if self._from is None else _reached(first, self._from)
        successor = None if origin is None else origin.handoffs.get(agent.spec.id)
        sees, before = None if successor is None else successor.sees, self._seen_before
        if sees is None:
            return agent

        def cut(prompt: Prompt, _view: PhaseView) -> Prompt:
            front = [message for message in prompt.messages[:1] if message.role == "system"]
            own = prompt.messages[len(front) :]
            return replace(prompt, messages=[*front, *sees(own[:before]), *own[before:]])

        transforms = (TaggedTransform("handoffs", cut), *agent.env.request_transforms)
        return replace(agent, env=replace(agent.env, request_transforms=transforms))

    def add(self, result: RunResult) -> None:
        """Count what one agent used."""
        if self._begun_at is None:
            self._begun_at = len(result.session.messages) - len(result.added)
        self._used += result.usage
        self._rounds += result.rounds
        self._is_first = False

    def hand_over(self, agent_id: str, result: RunResult) -> None:
        """Note that an agent has handed over."""
        self.handoffs += 1
        self._from, self._seen_before = agent_id, len(result.session.messages)
        self._session, self._run_id = result.session, result.run_id

    def kept(self, agent_id: str, result: RunResult) -> Session:
        """Return the session for the store: with the run as that of the agent that goes on."""
        if not self._asked.resumable:
            return result.session
        run = SavedRun(
            run_id=result.run_id,
            agent_id=agent_id,
            rounds=0,
            seconds=0.0,
            usage={},
            state={},
            waiting=(),
            begun_at=len(result.session.messages),
            trace=self._asked.trace,
            journey=self._to_dict(),
        )
        return result.session.with_metadata({RUN: run.to_dict()})

    def _to_dict(self) -> dict[str, Any]:
        if not self.handoffs:
            return {}
        return {
            "handoffs": self.handoffs,
            "usage": self._used.to_dict(),
            "rounds": self._rounds,
            "begun_at": self._begun_at,
            "from_agent": self._from,
            "before": self._seen_before,
        }

    def shown(self, events: list[Event]) -> list[Event]:
        """Return what a watcher sees of the events of one agent."""
        return [shown for event in events if (shown := self._shown(event)) is not None]

    def _shown(self, event: Event) -> Event | None:
        if event["type"] == "run_start" and not self._is_first:
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

    def ended(self, result: RunResult, *, keeps: bool) -> Flow[RunResult]:
        """End a run between two agents."""
        whole = self.whole(result)
        if keeps:
            yield Keep(Checkpoint("end", whole.session))
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

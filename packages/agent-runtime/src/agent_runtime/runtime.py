"""The public face: agents by id, run in four ways."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agent_core import AsyncEventStream, EventStream
from agent_core.drivers import call, call_async
from agent_core.steps import run_blocking
from agent_runtime.clock import SYSTEM_CLOCK, Clock
from agent_runtime.health import HEALTH, HealthRegistry
from agent_runtime.loop import run_request
from agent_runtime.resolve import Resolver

if TYPE_CHECKING:
    from agent_core.steps import Flow
    from agent_runtime.env import ResolvedAgent
    from agent_runtime.errors import BuildProblem
    from agent_runtime.registries import RegistrySet
    from agent_runtime.results import RunResult
    from agent_runtime.runs import RunRequest


class AgentRuntime:
    """Resolves and runs the agents that were declared; `AgentRuntimeBuilder` makes one.

    Attributes:
        registries: What was declared and registered. Agents may be added while it is in use.
        problems: What was found while building and did not prevent it, such as an unreachable source
            of remote agents.
    """

    def __init__(
        self,
        registries: RegistrySet,
        *,
        clock: Clock = SYSTEM_CLOCK,
        health: HealthRegistry = HEALTH,
        problems: tuple[BuildProblem, ...] = (),
    ) -> None:
        self.registries = registries
        self.problems = problems
        self._clock = clock
        self._resolver = Resolver(registries, clock=clock, health=health)

    def copy(self) -> AgentRuntime:
        """Return a runtime that can be changed without this one, and has resolved the same agents already.

        The two share plugins and what is known of the models' health.
        """
        made = AgentRuntime(self.registries.copy(), clock=self._clock, problems=self.problems)
        made._resolver = self._resolver.copy(made.registries)
        return made

    def resolve(self, agent_id: str) -> ResolvedAgent:
        """Return an agent ready to run; each call makes a fresh environment.

        Raises:
            ResolveError: One of its subclasses, if anything about the agent is not as it must be.
        """
        return self._resolver.resolve(agent_id)

    def run(self, request: RunRequest) -> EventStream[RunResult]:
        """Run an agent and yield its events; the last is `run_end`.

        The stream may be closed at any time; its `result` then has what was produced up to there.

        Raises:
            ResolveError: If the agent cannot be resolved.
            ArgumentError: If there is nothing to ask, at the first event.
            DecisionError: If a decision does not fit, at the first event.
        """
        return EventStream(self.run_flow(request))

    def run_async(self, request: RunRequest) -> AsyncEventStream[RunResult]:
        """Do what `run` does, on the running event loop."""
        return AsyncEventStream(self._run_flow_async(request))

    def run_to_completion(self, request: RunRequest) -> RunResult:
        """Run an agent and return what it came to.

        A run that fails does not raise: `reason.code` is "error", and `raise_for_error` raises it.
        """
        return call(self.run_flow(replace(request, silent=True)))

    async def run_to_completion_async(self, request: RunRequest) -> RunResult:
        """Do what `run_to_completion` does, on the running event loop."""
        return await call_async(self._run_flow_async(replace(request, silent=True)))

    def run_flow(self, request: RunRequest) -> Flow[RunResult]:
        """Return a run as a flow, for layers that drive flows of their own."""
        return run_request(self.resolve(request.agent_id), request, self._clock)

    def _run_flow_async(self, request: RunRequest) -> Flow[RunResult]:
        """Return a run as a flow; what has not been resolved yet may ask a server, and so not the loop."""
        if self._resolver.knows(request.agent_id):
            return self.run_flow(request)
        return self._resolving_flow(request)

    def _resolving_flow(self, request: RunRequest) -> Flow[RunResult]:
        agent = yield from run_blocking(partial(self.resolve, request.agent_id))
        return (yield from run_request(agent, request, self._clock))

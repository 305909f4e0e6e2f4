"""From an agent's id to something that runs, in three stages: lookup, plugins, tools.

`resolve` decides from values alone and returns everything or raises one `ResolveError`. What depends
only on the registries is decided once and kept until they change; the environment, which a run may
look at as its own, is made anew each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from agent_core import FunctionTool, ModelDiscoveryCache
from agent_core.frozen import FrozenDict, JsonObject, freeze
from agent_core.log import get_logger
from agent_runtime.clock import SYSTEM_CLOCK, Clock
from agent_runtime.env import ResolvedAgent, Successor
from agent_runtime.executor import Executor, ProviderExecutor
from agent_runtime.handoffs import SEES
from agent_runtime.health import HEALTH, HealthRegistry
from agent_runtime.loop import run_request
from agent_runtime.resolve.lookup import Found, Target, find_target, look_up
from agent_runtime.resolve.plugins import (
    Chain,
    build_chain,
    build_core,
    enable,
    enabled_entries,
    place,
    request_config,
)
from agent_runtime.resolve.tools import (
    add_tool,
    collect_tools,
    filter_tools,
    global_tools,
    placed_tools,
    table_of,
)
from agent_runtime.retry import RetryingExecutor
from agent_runtime.sections import read_claims, tool_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core import AgentCore, Decision, Resolution, ToolDescriptor
    from agent_core.steps import Flow
    from agent_runtime.env import TaggedTool
    from agent_runtime.registries import PluginEntry, RegistrySet, ToolEntry
    from agent_runtime.results import RunResult
    from agent_runtime.runs import RunRequest
    from agent_runtime.specs import AgentSpec


_log = get_logger("runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What the registries alone decide about an agent.

    Attributes:
        version: That of the registries when it was made.
        entries: The plugins that are on.
        core: Has the tools that every agent is offered, and no others.
        config: The configuration of its requests.
        resolution: What the core decided for that configuration.
        is_fixed: Whether only the runtime's own plugins place something into its runs: those place the same
            each time, while `register` of another one is called whenever the agent is resolved.
    """

    version: tuple[int, ...]
    found: Found
    chain: Chain
    entries: tuple[PluginEntry, ...]
    core: AgentCore
    config: dict[str, Any]
    resolution: Resolution
    is_fixed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Equipment:
    """What an agent runs with, as long as its plugins place the same tools.

    Attributes:
        placed: The tools that were placed when it was made.
    """

    plan: _Plan
    placed: Mapping[str, TaggedTool]
    core: AgentCore
    config: FrozenDict
    provider: Executor
    models: Mapping[str, ProviderExecutor]
    descriptors: tuple[ToolDescriptor, ...]
    tools: Mapping[str, object]
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...]


class Resolver:
    """Resolves the agents of one set of registries."""

    def __init__(
        self,
        registries: RegistrySet,
        *,
        clock: Clock = SYSTEM_CLOCK,
        health: HealthRegistry = HEALTH,
    ) -> None:
        self._registries = registries
        self._clock = clock
        self._health = health
        self._known_models = ModelDiscoveryCache()
        self._plans: dict[str, _Plan] = {}
        self._equipment: dict[str, _Equipment] = {}
        self._fixed: dict[str, tuple[_Plan, ResolvedAgent]] = {}

    def resolve(self, agent_id: str) -> ResolvedAgent:
        """Return the agent, ready to run.

        Raises:
            ResolveError: One of its subclasses, if anything about the agent is not as it must be.
        """
        plan = self._plan(agent_id)
        if plan.is_fixed and (known := self._fixed.get(agent_id)) is not None and known[0] is plan:
            return known[1]
        registrar = place(plan.found.spec, plan.entries)
        equipment = self._equip(plan, registrar.tools)
        agent = ResolvedAgent(
            spec=plan.found.spec,
            model=plan.found.target.model,
            provider=equipment.provider,
            config=equipment.config,
            env=registrar.env(tuple(entry.plugin for entry in plan.entries)),
            tools=equipment.tools,
            decisions=equipment.decisions,
            warnings=equipment.warnings,
            core=equipment.core,
            models=equipment.models,
            descriptors=equipment.descriptors,
            tool_settings=tool_settings(plan.found.spec),
            unclaimed=plan.chain.unclaimed,
            handoffs=self._handoffs(plan.found.spec),
        )
        if plan.is_fixed:
            self._fixed[agent_id] = plan, agent
        return agent

    def copy(self, registries: RegistrySet) -> Resolver:
        """Return a resolver for a copy of the registries, with what is decided already."""
        made = Resolver(registries, clock=self._clock, health=self._health)
        made._known_models = self._known_models
        # A delegate is looked up by the resolver that its caller was resolved with.
        kept = [
            id
            for id, plan in self._plans.items()
            if not (plan.found.spec.delegates or plan.found.spec.handoffs)
        ]
        made._plans = {id: self._plans[id] for id in kept}
        made._equipment = {id: self._equipment[id] for id in kept if id in self._equipment}
        made._fixed = {id: self._fixed[id] for id in kept if id in self._fixed}
        return made

    def knows(self, agent_id: str) -> bool:
        """Say whether an agent was resolved before and nothing has changed since."""
        known = self._plans.get(agent_id)
        return known is not None and known.version == self._registries.version and agent_id in self._equipment

    def _plan(self, agent_id: str) -> _Plan:
        known, version = self._plans.get(agent_id), self._registries.version
        if known is not None and known.version == version and _has_same_claims(known):
            return known
        found = look_up(self._registries, agent_id)
        chain = build_chain(self._registries, found)
        core = self._core(found.spec, chain, global_tools(self._registries))
        config = request_config(chain, found.spec, found.target)
        resolution = enable(core, found.spec, chain, config)
        entries = enabled_entries(chain, resolution.decisions)
        plan = self._plans[agent_id] = _Plan(
            version=version,
            found=found,
            chain=chain,
            entries=entries,
            core=core,
            config=config,
            resolution=resolution,
            is_fixed=not any(
                entry in chain.declared and hasattr(entry.plugin, "register") for entry in entries
            ),
        )
        return plan

    def _equip(self, plan: _Plan, placed: Mapping[str, TaggedTool]) -> _Equipment:
        agent_id = plan.found.spec.id
        known = self._equipment.get(agent_id)
        if known is not None and known.plan is plan and _same(known.placed, placed):
            return known
        equipment = self._equipment[agent_id] = self._equipped(plan, placed)
        for warning in plan.chain.warnings:
            _log.warning("agent_resolved", agent_id=agent_id, warning=warning)
        return equipment

    def _equipped(self, plan: _Plan, placed: Mapping[str, TaggedTool]) -> _Equipment:
        spec, core, config, resolution = plan.found.spec, plan.core, plan.config, plan.resolution
        tools = collect_tools(self._registries, spec, self._run_child, self._clock)
        for entry in placed_tools(spec, placed):
            add_tool(spec.id, tools, entry)
        if spec.delegates or spec.handoffs or placed:
            core = self._core(spec, plan.chain, tools)
            resolution = enable(core, spec, plan.chain, config)
        table = table_of(spec, resolution, tools)
        filtered = filter_tools(spec, table.available)
        only: JsonObject = {"allowed_tools": filtered.names}
        if len(filtered.names) < len(table.available):
            resolution = enable(core, spec, plan.chain, {**config, **only})
            table = table_of(spec, resolution, tools)
        return _Equipment(
            plan=plan,
            placed=dict(placed),
            core=core,
            config=freeze({**config, **only}),
            provider=self._executor(core, plan, only),
            models=self._models(core, plan, only),
            descriptors=table.effective,
            tools={name: binding.plugin.plugin for name, binding in table.bindings.items()},
            decisions=resolution.decisions,
            warnings=(*plan.chain.warnings, *resolution.warnings, *filtered.warnings),
        )

    def _core(self, spec: AgentSpec, chain: Chain, tools: Sequence[ToolEntry]) -> AgentCore:
        return build_core(self._registries, spec, chain, tools, self._known_models)

    def _executor(self, core: AgentCore, plan: _Plan, only: JsonObject) -> Executor:
        found = plan.found
        own, *others = (_asking(core, plan, target, only) for target in (found.target, *found.fallbacks))
        if found.retry is None:
            return own
        return RetryingExecutor((own, *others), found.retry, self._health)

    def _models(self, core: AgentCore, plan: _Plan, only: JsonObject) -> dict[str, ProviderExecutor]:
        """Return an executor for every declared model whose provider is there."""
        agent_id, known = plan.found.spec.id, self._registries.providers
        targets = [
            find_target(self._registries, agent_id, name)
            for name, model in self._registries.models.items()
            if model.provider in known
        ]
        return {target.model.id: _asking(core, plan, target, only) for target in targets}

    def _handoffs(self, spec: AgentSpec) -> dict[str, Successor]:
        return {
            one.agent: Successor(partial(self.resolve, one.agent), SEES[one.sees]) for one in spec.handoffs
        }

    def _run_child(self, request: RunRequest) -> Flow[RunResult]:
        """Run a delegate, resolved when it is called."""
        return run_request(self.resolve(request.agent_id), request, self._clock)


def _has_same_claims(plan: _Plan) -> bool:
    """Say whether declared plugins still have the schemas by which the agent's sections were checked."""
    return read_claims(plan.found.spec, plan.chain.declared) == plan.chain.claims


def _asking(core: AgentCore, plan: _Plan, target: Target, only: JsonObject) -> ProviderExecutor:
    config = {**request_config(plan.chain, plan.found.spec, target), **only}
    return ProviderExecutor(core, target.model, freeze(config))


def _same(known: Mapping[str, TaggedTool], placed: Mapping[str, TaggedTool]) -> bool:
    return known.keys() == placed.keys() and all(_is_same(known[id].tool, placed[id].tool) for id in placed)


def _is_same(one: object, other: object) -> bool:
    """Say whether two tools are one.

    A bound method is another object each time that it is looked up, and so is a method that is a tool. Of
    any other object only the same one will do: two that are equal now may go different ways.
    """
    return one is other or (isinstance(one, (MethodType, FunctionTool)) and bool(one == other))


def resolve(registries: RegistrySet, agent_id: str) -> ResolvedAgent:
    """Return an agent ready to run, from the registries alone.

    Raises:
        ResolveError: One of its subclasses, if anything about the agent is not as it must be.
    """
    return Resolver(registries).resolve(agent_id)

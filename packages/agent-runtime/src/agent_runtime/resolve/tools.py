"""Stage 3: the tools of an agent, from all sources, without two of one name, filtered."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_core import PluginError
from agent_core.errors import ToolIdConflictError, nearest
from agent_core.resolve.tools import gather_tools
from agent_runtime.delegates import DelegateTool, check_delegation, tool_name
from agent_runtime.errors import (
    AgentNotFound,
    EnvBuildError,
    RemoteAgentNotDirectlyRunnable,
    ToolIdConflict,
)
from agent_runtime.handoffs import HandoffTool, declared_name
from agent_runtime.patterns import Glob
from agent_runtime.registries import ToolEntry
from agent_runtime.remote import RemoteAgent, RemoteDelegateTool
from agent_runtime.remote.agent import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_core import Resolution, ToolDescriptor
    from agent_core.resolve.tools import ToolTable
    from agent_runtime.clock import Clock
    from agent_runtime.delegates import RunChild
    from agent_runtime.env import TaggedTool
    from agent_runtime.registries import RegistrySet
    from agent_runtime.specs import AgentSpec, HandoffSpec


class Filtered(NamedTuple):
    """The names of the tools that are left, and what the lists' author should know."""

    names: list[str]
    warnings: list[str]


def global_tools(registries: RegistrySet) -> list[ToolEntry]:
    """Return the tools that every agent is offered."""
    return [entry for _, entry in registries.tools.items()]


def collect_tools(
    registries: RegistrySet, spec: AgentSpec, run_child: RunChild, clock: Clock
) -> list[ToolEntry]:
    """Return the global tools, then one for each delegate and for each agent that may take over.

    Raises:
        AgentNotFound, DelegateCycle, RemoteAgentNotDirectlyRunnable, ToolIdConflict: If the delegates or
            handoffs cannot be so.
    """
    check_delegation(registries, spec.id)
    tools = global_tools(registries)
    for agent_id in dict.fromkeys(spec.delegates):
        add_tool(spec.id, tools, _delegate(registries, spec, agent_id, run_child, clock))
    for handoff in spec.handoffs:
        add_tool(spec.id, tools, _handoff(registries, spec, handoff))
    return tools


def _delegate(
    registries: RegistrySet, spec: AgentSpec, agent_id: str, run_child: RunChild, clock: Clock
) -> ToolEntry:
    delegate, name = registries.agents.get(agent_id), tool_name(agent_id)
    if delegate is None:
        raise AgentNotFound(agent_id, registries.agents, wanted_by=spec.id)
    if delegate.endpoint is None:
        tool: object = DelegateTool(name, delegate, run_child, clock)
    else:
        tool = RemoteDelegateTool(name, RemoteAgent(agent_id, delegate.endpoint, delegate.description, clock))
    return ToolEntry.of(name, tool, f"delegate {agent_id!r}")


def _handoff(registries: RegistrySet, spec: AgentSpec, handoff: HandoffSpec) -> ToolEntry:
    target, name = registries.agents.get(handoff.agent), declared_name(handoff)
    if target is None:
        raise AgentNotFound(handoff.agent, registries.agents, wanted_by=spec.id, role="handoff")
    if target.endpoint is not None:
        raise RemoteAgentNotDirectlyRunnable(handoff.agent, shown(target.endpoint.url), wanted_by=spec.id)
    tool = HandoffTool(handoff.agent, handoff.description or target.description, name)
    return ToolEntry.of(name, tool, f"handoff {handoff.agent!r}")


def add_tool(agent_id: str, tools: list[ToolEntry], new: ToolEntry) -> None:
    """Add a tool whose id must be new.

    Raises:
        ToolIdConflict: With both owners.
    """
    for there in tools:
        if there.id == new.id:
            raise ToolIdConflict(agent_id, new.id, (there.owner, new.owner))
    tools.append(new)


def placed_tools(spec: AgentSpec, placed: Mapping[str, TaggedTool]) -> list[ToolEntry]:
    """Return the tools that plugins placed.

    Raises:
        EnvBuildError: If one of them is not a tool.
    """
    entries = []
    for id, (plugin, given) in placed.items():
        try:
            entries.append(ToolEntry.of(id, given, f"plugin {plugin!r}", name=f"{plugin}.{id}"))
        except (PluginError, ValueError) as error:
            raise EnvBuildError(spec.id, plugin, f"its tool {id!r} cannot be used: {error}") from error
    return entries


def table_of(spec: AgentSpec, resolution: Resolution, tools: Sequence[ToolEntry]) -> ToolTable:
    """Return all tools by the names that the model calls.

    Raises:
        ToolIdConflict: If two owners offer one name.
        EnvBuildError: If a tool plugin cannot say what it offers.
    """
    try:
        return gather_tools(resolution)
    except ToolIdConflictError as error:
        owners = {entry.wrapper.name: entry.owner for entry in tools}
        first, second = (owners.get(name, f"plugin {name!r}") for name in error.owners)
        raise ToolIdConflict(spec.id, error.tool, (first, second)) from error
    except PluginError as error:
        raise EnvBuildError(spec.id, error.plugin, error.problem, hint="correct the tool plugin") from error


def filter_tools(spec: AgentSpec, available: Sequence[ToolDescriptor]) -> Filtered:
    """Apply the agent's lists: what is not allowed goes, and excluding wins."""
    names = [tool.name for tool in available]
    allowed = names if spec.allowed_tools is None else _matching(names, spec.allowed_tools)
    excluded = _matching(names, spec.excluded_tools)
    warnings = [
        f"{field} of agent {spec.id!r} names {pattern!r}, which no tool has: {nearest(pattern, names)}"
        for field, patterns in (
            ("allowed_tools", spec.allowed_tools),
            ("excluded_tools", spec.excluded_tools),
        )
        for pattern in patterns or ()
        if not _matching(names, (pattern,))
    ]
    return Filtered([name for name in names if name in allowed and name not in excluded], warnings)


def _matching(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    globs = [Glob.parse(pattern) for pattern in patterns]
    return [name for name in names if any(glob.matches(name) for glob in globs)]

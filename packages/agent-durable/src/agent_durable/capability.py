"""Which runs a worker can take: those of agents that mean the same to it as to whoever submitted them.

An agent's capability is its id with a hash of all that decides how it behaves: its declaration, its model,
and its plugins with their versions. A worker of another version of the application has other capabilities,
and so never picks up a run that it could not resolve, or would resolve to something else.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from agent_core import AgentError
from agent_core.encoding import canonical
from agent_core.frozen import freeze

if TYPE_CHECKING:
    from agent_app import AgentApplication
    from agent_runtime import ResolvedAgent

_DIGITS = 12


def capability(app: AgentApplication, agent_id: str) -> str:
    """Return what a worker must have to run an agent.

    Raises:
        ResolveError: If the agent cannot be resolved here either.
    """
    return _named(app.runtime.resolve(agent_id))


def capabilities(app: AgentApplication) -> dict[str, str]:
    """Return what this application can run, by agent; agents that cannot be resolved are left out."""
    found = {}
    for agent_id in app.config.get("agents", {}):
        try:
            found[agent_id] = capability(app, agent_id)
        except AgentError:
            continue
    return found


def provider_of(app: AgentApplication, agent_id: str) -> str:
    """Return the provider that answers for an agent first."""
    return app.runtime.resolve(agent_id).model.provider


def _named(agent: ResolvedAgent) -> str:
    plugins = {
        decision.plugin: _version(agent, decision.plugin) for decision in agent.decisions if decision.enabled
    }
    about: dict[str, Any] = {
        "spec": agent.spec.to_dict(),
        "model": agent.model.to_dict(),
        "plugins": plugins,
        "tools": sorted(agent.tools),
    }
    digest = sha256(canonical(freeze(about))).hexdigest()
    return f"{agent.spec.id}.{digest[:_DIGITS]}"


def _version(agent: ResolvedAgent, plugin_id: str) -> str:
    owners = (plugin for plugin in agent.env.plugins if getattr(plugin, "name", "") == plugin_id)
    return str(getattr(next(owners, None), "version", ""))

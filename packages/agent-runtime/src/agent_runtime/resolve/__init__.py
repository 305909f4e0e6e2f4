"""From an agent's id to something that runs, in three stages: lookup, plugins, tools."""

from agent_runtime.resolve.resolver import Resolver as Resolver, resolve as resolve

"""Stage 1: the declaration, the model that it names, who provides that, and how often it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_runtime.errors import (
    AgentNotFound,
    ModelNotFound,
    ProviderNotFound,
    RemoteAgentNotDirectlyRunnable,
)
from agent_runtime.remote.agent import shown
from agent_runtime.sections import retry_policy

if TYPE_CHECKING:
    from agent_runtime.registries import ProviderEntry, RegistrySet
    from agent_runtime.specs import AgentSpec, ModelSpec, RetryPolicy


@dataclass(frozen=True, slots=True)
class Target:
    """A model and who provides it."""

    model: ModelSpec
    provider: ProviderEntry


@dataclass(frozen=True, slots=True)
class Found:
    """What stage 1 found.

    Attributes:
        target: The agent's own model.
        fallbacks: The models that go on in its place, in order.
        retry: None if a question is asked once.
    """

    spec: AgentSpec
    target: Target
    fallbacks: tuple[Target, ...]
    retry: RetryPolicy | None


def look_up(registries: RegistrySet, agent_id: str) -> Found:
    """Fetch everything that the declaration names.

    Raises:
        AgentNotFound, RemoteAgentNotDirectlyRunnable, ModelNotFound, ProviderNotFound,
        InvalidPluginConfig: If it is not there, or the retry section is wrong.
    """
    spec = registries.agents.get(agent_id)
    if spec is None:
        raise AgentNotFound(agent_id, registries.agents)
    if spec.endpoint is not None:
        raise RemoteAgentNotDirectlyRunnable(agent_id, shown(spec.endpoint.url))
    target = find_target(registries, agent_id, spec.model)
    retry = retry_policy(spec)
    names = () if retry is None else retry.fallback_models
    fallbacks = tuple(find_target(registries, agent_id, name, where="fallback model") for name in names)
    return Found(spec, target, fallbacks, retry)


def find_target(registries: RegistrySet, agent_id: str, model_id: str, *, where: str = "model") -> Target:
    model = registries.models.get(model_id)
    if model is None:
        raise ModelNotFound(agent_id, model_id, registries.models, where=where)
    provider = registries.providers.get(model.provider)
    if provider is None:
        # NAME:MODEL reaches each model of a server that the settings name.
        models = registries.models.items()
        servers = [name for name, one in models if ":" not in name and "base_url" in one.config]
        raise ProviderNotFound(agent_id, model.provider, model_id, [*registries.providers, *servers])
    return Target(model, provider)

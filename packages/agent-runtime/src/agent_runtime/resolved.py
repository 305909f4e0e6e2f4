"""A resolved agent: everything that a run needs, decided and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core import AgentCore, Decision, ToolDescriptor
    from agent_runtime.env import ExecutionEnv
    from agent_runtime.executor import Executor, ProviderExecutor
    from agent_runtime.specs import AgentSpec, ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """How the tools of an agent run: its section "tools".

    Attributes:
        concurrency: How many calls of one step may run at once, of those that may at all.
        timeout: Seconds after which a call is given up, where its tool says nothing else.
        timeouts: The same for single tools, by name; stronger than what the tool says.
    """

    concurrency: int = 8
    timeout: float | None = None
    timeouts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAgent:
    """An agent that can run.

    Attributes:
        spec: Its declaration.
        model: The model that is asked first.
        provider: What asks the model; a `RetryingExecutor` if the agent wants retries or fallbacks.
        config: The configuration of its requests.
        env: What its plugins placed into its runs; fresh with each resolve.
        tools: The tools that it may call, by id.
        decisions: Why each plugin is on or off.
        warnings: What the declaration's author should know.
        core: Runs requests and tools.
        models: Executors for other declared models, for questions beside the conversation.
        descriptors: What the model sees of the tools.
        tool_settings: How its tools run.
    """

    spec: AgentSpec
    model: ModelSpec
    provider: Executor
    config: Mapping[str, Any]
    env: ExecutionEnv
    tools: Mapping[str, Any]
    decisions: tuple[Decision, ...]
    warnings: tuple[str, ...]
    core: AgentCore
    models: Mapping[str, ProviderExecutor]
    descriptors: tuple[ToolDescriptor, ...]
    tool_settings: ToolSettings

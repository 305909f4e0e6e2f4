"""Agents declared as data, checked before anyone talks to them, and run by one loop.

Start with `Agent` for one agent, or with `AgentRuntimeBuilder` for several. A run is a stream of events
(`agent_core.events`) and ends in a `RunResult`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_core.events import Event
    from agent_core.functions import File, ToolReturn, tool
    from agent_runtime.agent import Agent, AgentSettings
    from agent_runtime.assembly import Handoff
    from agent_runtime.builder import AgentRuntimeBuilder
    from agent_runtime.chat import Chat
    from agent_runtime.clock import Clock
    from agent_runtime.commands import Action, Command, Effect, Update
    from agent_runtime.env import ExecutionEnv, PluginRegistrar, Prompt, ResolvedAgent
    from agent_runtime.errors import (
        AgentNotFound,
        BuildError,
        BuildProblem,
        DecisionError,
        DelegateCycle,
        EnvBuildError,
        InvalidPluginConfig,
        ModelNotFound,
        ModelUnavailable,
        PhaseLoopExceeded,
        PluginNotFound,
        ProviderNotFound,
        RemoteAgentNotDirectlyRunnable,
        ResolveError,
        SpecError,
        SpecFileError,
        StateError,
        ToolIdConflict,
    )
    from agent_runtime.files import Declarations, load_specs
    from agent_runtime.guardrails import GuardrailTripped
    from agent_runtime.handoffs import without_tools
    from agent_runtime.health import HealthRegistry
    from agent_runtime.json_form import to_json
    from agent_runtime.limits import UsageLimits
    from agent_runtime.options import RunOptions
    from agent_runtime.permissions import PermissionsPlugin
    from agent_runtime.phases import CallView, Phase, PhaseView
    from agent_runtime.policies import (
        ConsecutiveErrors,
        ContentMatch,
        CostBudget,
        MaxRounds,
        RepeatedCalls,
        RunStats,
        Stop,
        StopCondition,
        StopOnTool,
        Timeout,
        TokenBudget,
    )
    from agent_runtime.registries import DuplicateId, RegistrySet
    from agent_runtime.remote import RemoteAgentError
    from agent_runtime.results import LimitReached, OutputNotProduced, Reason, RunResult, Usage
    from agent_runtime.retry import RetryingExecutor
    from agent_runtime.run_context import ModelRetry, RunContext
    from agent_runtime.run_stream import AsyncRunSteps, AsyncRunStream, RunStep, RunSteps, RunStream
    from agent_runtime.runs import Checkpoint, RunInfo, RunRequest, RunScope
    from agent_runtime.runtime import AgentRuntime
    from agent_runtime.schema import spec_schema
    from agent_runtime.specs import (
        AgentSpec,
        ContextPolicy,
        HandoffSpec,
        ModelSpec,
        RemoteEndpoint,
        RetryPolicy,
        ToolSettings,
    )
    from agent_runtime.state import State, StateKey
    from agent_runtime.suspension import Decision, Suspension, waiting
    from agent_runtime.tool_sets import DynamicTools, ToolSet, dynamic
    from agent_runtime.verdicts import Block, ResumeMode, SetResult, Suspend, Verdict
    from agent_runtime.watch import Watcher, watch_runs

__all__ = [
    "Action",
    "Agent",
    "AgentNotFound",
    "AgentRuntime",
    "AgentRuntimeBuilder",
    "AgentSettings",
    "AgentSpec",
    "AsyncRunSteps",
    "AsyncRunStream",
    "Block",
    "BuildError",
    "BuildProblem",
    "CallView",
    "Chat",
    "Checkpoint",
    "Clock",
    "Command",
    "ConsecutiveErrors",
    "ContentMatch",
    "ContextPolicy",
    "CostBudget",
    "Decision",
    "DecisionError",
    "Declarations",
    "DelegateCycle",
    "DuplicateId",
    "DynamicTools",
    "Effect",
    "EnvBuildError",
    "Event",
    "ExecutionEnv",
    "File",
    "GuardrailTripped",
    "Handoff",
    "HandoffSpec",
    "HealthRegistry",
    "InvalidPluginConfig",
    "LimitReached",
    "MaxRounds",
    "ModelNotFound",
    "ModelRetry",
    "ModelSpec",
    "ModelUnavailable",
    "OutputNotProduced",
    "PermissionsPlugin",
    "Phase",
    "PhaseLoopExceeded",
    "PhaseView",
    "PluginNotFound",
    "PluginRegistrar",
    "Prompt",
    "ProviderNotFound",
    "Reason",
    "RegistrySet",
    "RemoteAgentError",
    "RemoteAgentNotDirectlyRunnable",
    "RemoteEndpoint",
    "RepeatedCalls",
    "ResolveError",
    "ResolvedAgent",
    "ResumeMode",
    "RetryPolicy",
    "RetryingExecutor",
    "RunContext",
    "RunInfo",
    "RunOptions",
    "RunRequest",
    "RunResult",
    "RunScope",
    "RunStats",
    "RunStep",
    "RunSteps",
    "RunStream",
    "SetResult",
    "SpecError",
    "SpecFileError",
    "State",
    "StateError",
    "StateKey",
    "Stop",
    "StopCondition",
    "StopOnTool",
    "Suspend",
    "Suspension",
    "Timeout",
    "TokenBudget",
    "ToolIdConflict",
    "ToolReturn",
    "ToolSet",
    "ToolSettings",
    "Update",
    "Usage",
    "UsageLimits",
    "Verdict",
    "Watcher",
    "dynamic",
    "load_specs",
    "spec_schema",
    "to_json",
    "tool",
    "waiting",
    "watch_runs",
    "without_tools",
]

# A name is loaded when it is first used, so that a program pays only for the parts that it touches.
_HOMES = {
    "agent_runtime.agent": ("Agent", "AgentSettings"),
    "agent_runtime.assembly": ("Handoff",),
    "agent_runtime.guardrails": ("GuardrailTripped",),
    "agent_runtime.handoffs": ("without_tools",),
    "agent_runtime.limits": ("UsageLimits",),
    "agent_runtime.run_context": ("ModelRetry", "RunContext"),
    "agent_runtime.run_stream": ("AsyncRunStream", "AsyncRunSteps", "RunStep", "RunSteps", "RunStream"),
    "agent_runtime.watch": ("Watcher", "watch_runs"),
    "agent_runtime.tool_sets": ("DynamicTools", "ToolSet", "dynamic"),
    "agent_core.functions": ("File", "ToolReturn", "tool"),
    "agent_runtime.options": ("RunOptions",),
    "agent_runtime.builder": ("AgentRuntimeBuilder",),
    "agent_runtime.chat": ("Chat",),
    "agent_runtime.clock": ("Clock",),
    "agent_runtime.commands": ("Action", "Command", "Effect", "Update"),
    "agent_runtime.env": ("ExecutionEnv", "PluginRegistrar", "Prompt", "ResolvedAgent"),
    "agent_runtime.errors": (
        "AgentNotFound",
        "BuildError",
        "BuildProblem",
        "DecisionError",
        "DelegateCycle",
        "EnvBuildError",
        "InvalidPluginConfig",
        "ModelNotFound",
        "ModelUnavailable",
        "PhaseLoopExceeded",
        "PluginNotFound",
        "ProviderNotFound",
        "RemoteAgentNotDirectlyRunnable",
        "ResolveError",
        "SpecError",
        "SpecFileError",
        "StateError",
        "ToolIdConflict",
    ),
    "agent_core.events": ("Event",),
    "agent_runtime.files": ("Declarations", "load_specs"),
    "agent_runtime.verdicts": ("Block", "ResumeMode", "SetResult", "Suspend", "Verdict"),
    "agent_runtime.health": ("HealthRegistry",),
    "agent_runtime.permissions": ("PermissionsPlugin",),
    "agent_runtime.phases": ("CallView", "Phase", "PhaseView"),
    "agent_runtime.policies": (
        "ConsecutiveErrors",
        "ContentMatch",
        "CostBudget",
        "MaxRounds",
        "RepeatedCalls",
        "RunStats",
        "Stop",
        "StopCondition",
        "StopOnTool",
        "Timeout",
        "TokenBudget",
    ),
    "agent_runtime.registries": ("DuplicateId", "RegistrySet"),
    "agent_runtime.remote": ("RemoteAgentError",),
    "agent_runtime.json_form": ("to_json",),
    "agent_runtime.results": ("LimitReached", "OutputNotProduced", "Reason", "RunResult", "Usage"),
    "agent_runtime.retry": ("RetryingExecutor",),
    "agent_runtime.runs": ("Checkpoint", "RunInfo", "RunRequest", "RunScope"),
    "agent_runtime.runtime": ("AgentRuntime",),
    "agent_runtime.schema": ("spec_schema",),
    "agent_runtime.specs": (
        "AgentSpec",
        "ContextPolicy",
        "HandoffSpec",
        "ModelSpec",
        "RemoteEndpoint",
        "RetryPolicy",
        "ToolSettings",
    ),
    "agent_runtime.state": ("State", "StateKey"),
    "agent_runtime.suspension": ("Decision", "Suspension", "waiting"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value

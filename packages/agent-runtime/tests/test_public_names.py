"""What others build on: a change here breaks them, so it must be made here as well, on purpose."""

from __future__ import annotations

import ast
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import agent_runtime
from agent_runtime import AgentRuntime, AgentRuntimeBuilder, PluginRegistrar

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = [
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
    "tool",
    "to_json",
    "waiting",
    "watch_runs",
    "without_tools",
]

METHODS: dict[type, dict[str, str]] = {
    AgentRuntime: {
        "copy": "()",
        "resolve": "(agent_id)",
        "run": "(request)",
        "run_async": "(request)",
        "run_flow": "(request)",
        "run_to_completion": "(request)",
        "run_to_completion_async": "(request)",
    },
    AgentRuntimeBuilder: {
        "build": "()",
        "build_and_discover": "()",
        "build_and_discover_async": "()",
        "build_unchecked": "()",
        "with_agent_spec": "(spec)",
        "with_agent_specs": "(specs)",
        "with_clock": "(clock)",
        "with_health": "(health)",
        "with_model": "(model)",
        "with_plugin": "(id, plugin, *, kind=None)",
        "with_provider": "(id, provider, *, config=None, extensions=())",
        "with_remote_agents": "(name, url, token=None, *, allow_private=False)",
        "with_spec_file": "(path)",
        "with_tool": "(id, tool)",
    },
    PluginRegistrar: {
        "action_handler": "(name, handler)",
        "effect_handler": "(name, handler)",
        "end_hook": "(hook)",
        "env": "(plugins)",
        "phase_hook": "(phase, hook)",
        "request_transform": "(transform)",
        "result_transform": "(transform)",
        "state_key": "(key)",
        "tool": "(id, tool)",
        "tool_gate": "(gate)",
        "watch": "(watch)",
    },
}

FIELDS = {
    "AgentSpec": "id model system_prompt description max_rounds plugin_ids delegates handoffs "
    "allowed_tools excluded_tools context_policy stop_conditions endpoint sections",
    "ModelSpec": "id provider model context_window max_output_tokens input_price output_price "
    "cached_input_price config",
    "RunRequest": "agent_id messages session decisions run_id config stream silent timeout token_budget "
    "cost_budget limits deps cancellation context checkpoint pauses resumable inbox granted ask_anyway "
    "parents trace journey",
    "RunResult": "text added session reason usage rounds run_id agent suspended error produced",
    "ResolvedAgent": "spec model provider config env tools decisions warnings core models descriptors "
    "tool_settings unclaimed handoffs",
    "ExecutionEnv": "phase_hooks tool_gates scheduled_action_handlers effect_handlers request_transforms "
    "result_transforms end_hooks watches key_registrations tools plugins",
    "ContextPolicy": "max_tokens reserve_tokens keep_recent compact_at truncate prompt_cache",
    "RetryPolicy": "max_retries stream_retries base_delay max_delay max_retry_after deadline fallback_models",
    "RemoteEndpoint": "url token timeout max_bytes allow_private",
    "ToolSettings": "concurrency timeout timeouts",
}

UNWANTED = ["asyncio", "yaml", "a2a", "httpx", "pydantic", "aiohttp", "structlog", "jsonschema_rs", "logging"]
REPORT = """
import json, sys
print(json.dumps(sorted(sys.modules)))
"""


def signature_of(function: Callable[..., Any]) -> str:
    """Return names, kinds and defaults of the parameters; types are another tool's business."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return str(
        inspect.Signature([parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters])
    )


def public_members(of: object) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(of) if not name.startswith("_")}


def test_the_package_offers_these_names_and_no_others() -> None:
    assert sorted(agent_runtime.__all__) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_used(name: str) -> None:
    assert getattr(agent_runtime, name) is not None


def test_names_have_one_home_for_type_checkers_and_for_python() -> None:
    source = Path(agent_runtime.__file__).read_text(encoding="utf-8")
    seen_by_type_checkers = {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("agent_") and node.level == 0
        for alias in node.names
    }

    assert seen_by_type_checkers == agent_runtime._HOME_OF
    assert sorted(seen_by_type_checkers) == sorted(NAMES)


def test_no_name_is_also_that_of_a_module() -> None:
    """Python puts a module into its package once it is loaded, in the place of what has its name."""
    modules = {module.name for module in pkgutil.iter_modules(agent_runtime.__path__)}

    assert modules.isdisjoint(NAMES)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'agent_runtime' has no attribute 'AgentCrew'"):
        _ = agent_runtime.AgentCrew


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: str(kind.__name__))
def test_the_main_classes_have_these_methods_with_these_signatures(kind: type) -> None:
    found = {name: member for name, member in public_members(kind).items() if inspect.isfunction(member)}

    assert {name: signature_of(member) for name, member in found.items()} == METHODS[kind]


@pytest.mark.parametrize("name", FIELDS)
def test_the_main_values_have_these_fields_in_this_order(name: str) -> None:
    fields = getattr(agent_runtime, name).__annotations__

    # KW_ONLY's own mark is not a field of the class.
    assert [field for field in fields if field != "_"] == FIELDS[name].split()


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(getattr(agent_runtime, name), type)])
def test_every_public_class_has_a_docstring_and_so_have_its_methods(name: str) -> None:
    value = getattr(agent_runtime, name)
    members = {f"{name}.{member}": found for member, found in public_members(value).items()}
    described = {
        member: bool(inspect.getdoc(found))
        for member, found in {name: value, **members}.items()
        if inspect.isroutine(found) or isinstance(found, (type, property))
    }

    assert [member for member, has in described.items() if not has] == []


# --- What importing costs


def loaded_by(code: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code + REPORT], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


def test_importing_the_package_loads_nothing_but_itself() -> None:
    modules = loaded_by("import agent_runtime")

    assert {name for name in modules if name.startswith("agent_")} == {"agent_runtime"}
    assert modules.isdisjoint(UNWANTED)


def test_importing_every_public_name_loads_nothing_heavy() -> None:
    modules = loaded_by(f"from agent_runtime import {', '.join(NAMES)}")

    assert "agent_runtime.loop" in modules
    assert modules.isdisjoint(UNWANTED)


def test_a_run_on_a_blocking_provider_loads_no_event_loop() -> None:
    modules = loaded_by(
        """
from agent_runtime import Agent
from agent_core.testing import EchoProvider
agent = Agent(EchoProvider, sections={"permissions": {"default": "allow"}}, context_policy={})
assert agent.run("Hello").text == "Hello"
assert list(agent.stream("Hello"))[-1]["text"] == "Hello"
"""
    )

    # The section is checked by its schema, which is what takes the validator.
    assert modules.isdisjoint(set(UNWANTED) - {"jsonschema_rs"})

"""Every way in which an agent cannot be resolved: a code for programs, and words for whoever declared it."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest

import agent_runtime
from agent_core import AgentError
from agent_core.errors import ResolveError as CoreResolveError, nearest
from agent_core.testing import ScriptedProvider
from agent_runtime import (
    AgentNotFound,
    AgentRuntimeBuilder,
    AgentSpec,
    DelegateCycle,
    EnvBuildError,
    InvalidPluginConfig,
    ModelNotFound,
    ModelSpec,
    PluginNotFound,
    PluginRegistrar,
    ProviderNotFound,
    RemoteAgentNotDirectlyRunnable,
    RemoteEndpoint,
    ResolveError,
    RunRequest,
    StateKey,
    ToolIdConflict,
)
from agent_runtime.errors import describe


def search(query: str) -> str:
    """Search."""
    return query


class Memory:
    """Claims a section, and places a tool."""

    name = "memory"

    def config_schemas(self) -> list[tuple[str, dict[str, Any]]]:
        return [("memory", {"type": "object", "properties": {"size": {"type": "integer"}}})]

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.tool("search", search)


class Broken:
    """Cannot be set up."""

    name = "broken"

    def register(self, registrar: PluginRegistrar) -> None:
        raise ConnectionError("the database is down")


class Counting:
    """Places a state key and handlers."""

    name = "counting"

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.state_key(StateKey("count", 0))
        registrar.action_handler("count", print)
        registrar.effect_handler("shout", print)


class CountingToo(Counting):
    name = "counting_too"


class HandlingToo:
    name = "handling_too"

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.action_handler("count", print)


class ShoutingToo:
    name = "shouting_too"

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.effect_handler("shout", print)


def built(*specs: AgentSpec) -> Any:
    made = AgentRuntimeBuilder().with_model(ModelSpec("gpt", "openai")).with_model(ModelSpec("lost", "opena"))
    made.with_provider("openai", ScriptedProvider()).with_tool("search", search)
    for plugin in (Memory, Broken, Counting, CountingToo, HandlingToo, ShoutingToo):
        made.with_plugin(plugin.name, plugin)
    return made.with_agent_specs(specs).build_unchecked()


class Case(NamedTuple):
    """A declaration, and the error that it leads to."""

    error: type[ResolveError]
    code: str
    stage: str
    problem: str
    hint: str
    attributes: dict[str, Any]
    fields: dict[str, Any]
    others: tuple[AgentSpec, ...] = ()

    def raised(self) -> ResolveError:
        spec = AgentSpec("assistant", **{"model": "gpt", **self.fields})
        with pytest.raises(ResolveError) as caught:
            built(spec, *self.others).resolve("assistant")
        return caught.value


CASES = {
    "model": Case(
        ModelNotFound,
        "model_not_found",
        "lookup",
        "model 'gtp' is not declared",
        "did you mean 'gpt'?",
        {"model": "gtp"},
        {"model": "gtp"},
    ),
    "fallback model": Case(
        ModelNotFound,
        "model_not_found",
        "lookup",
        "fallback model 'claude' is not declared",
        "known are 'gpt', 'lost'",
        {"model": "claude"},
        {"sections": {"retry": {"fallback_models": ["gpt", "claude"]}}},
    ),
    "provider": Case(
        ProviderNotFound,
        "provider_not_found",
        "lookup",
        "there is no provider 'opena', which the model 'lost' names",
        "did you mean 'openai'?",
        {"provider": "opena", "model": "lost"},
        {"model": "lost"},
    ),
    "provider of a fallback": Case(
        ProviderNotFound,
        "provider_not_found",
        "lookup",
        "there is no provider 'opena', which the model 'lost' names",
        "did you mean 'openai'?",
        {"provider": "opena", "model": "lost"},
        {"sections": {"retry": {"fallback_models": ["lost"]}}},
    ),
    "remote agent": Case(
        RemoteAgentNotDirectlyRunnable,
        "remote_agent_not_directly_runnable",
        "lookup",
        "it lives at https://example.com/agent and cannot be run here",
        "list 'assistant' among the delegates of an agent of yours",
        {"url": "https://example.com/agent"},
        {"endpoint": RemoteEndpoint("https://example.com/agent")},
    ),
    "plugin": Case(
        PluginNotFound,
        "plugin_not_found",
        "plugins",
        "plugin 'memroy' is not registered",
        "did you mean 'memory'?",
        {"plugin": "memroy"},
        {"plugin_ids": ["memroy"]},
    ),
    "section": Case(
        InvalidPluginConfig,
        "invalid_plugin_config",
        "plugins",
        "section 'memory' does not fit plugin 'memory': memory.size: \"big\" is not of type \"integer\"",
        "correct sections['memory'] of the agent",
        {"plugin": "memory", "section": "memory"},
        {"plugin_ids": ["memory"], "sections": {"memory": {"size": "big"}}},
    ),
    "section of the runtime": Case(
        InvalidPluginConfig,
        "invalid_plugin_config",
        "lookup",
        "section 'retry' does not fit plugin 'runtime': retry has no field 'retries': "
        "did you mean 'max_retries'?",
        "correct sections['retry'] of the agent",
        {"plugin": "runtime", "section": "retry"},
        {"sections": {"retry": {"retries": 5}}},
    ),
    "register": Case(
        EnvBuildError,
        "env_build_error",
        "plugins",
        "plugin 'broken' cannot be set up: ConnectionError: the database is down",
        "correct the plugin, or leave it out of plugin_ids",
        {"plugin": "broken"},
        {"plugin_ids": ["broken"]},
    ),
    "state key twice": Case(
        EnvBuildError,
        "env_build_error",
        "plugins",
        "plugin 'counting_too' cannot be set up: state key 'count' is placed by plugin 'counting' already",
        "give one of the two another name",
        {"plugin": "counting_too"},
        {"plugin_ids": ["counting", "counting_too"]},
    ),
    "action handler twice": Case(
        EnvBuildError,
        "env_build_error",
        "plugins",
        "plugin 'handling_too' cannot be set up: action 'count' is placed by plugin 'counting' already",
        "give one of the two another name",
        {"plugin": "handling_too"},
        {"plugin_ids": ["counting", "handling_too"]},
    ),
    "effect handler twice": Case(
        EnvBuildError,
        "env_build_error",
        "plugins",
        "plugin 'shouting_too' cannot be set up: effect 'shout' is placed by plugin 'counting' already",
        "give one of the two another name",
        {"plugin": "shouting_too"},
        {"plugin_ids": ["counting", "shouting_too"]},
    ),
    "tool": Case(
        ToolIdConflict,
        "tool_id_conflict",
        "tools",
        "tool 'search' is offered by global tool 'search' and by plugin 'memory'",
        "rename one of them or leave it out",
        {"tool": "search", "owners": ("global tool 'search'", "plugin 'memory'")},
        {"plugin_ids": ["memory"]},
    ),
    "delegate": Case(
        AgentNotFound,
        "agent_not_found",
        "tools",
        "delegate 'writter' is not declared",
        "did you mean 'writer'?",
        {"missing": "writter"},
        {"delegates": ["writter"]},
        (AgentSpec("writer", "gpt"),),
    ),
    "circle": Case(
        DelegateCycle,
        "delegate_cycle",
        "tools",
        "its delegates form a circle: assistant → writer → assistant",
        "remove one of these delegations",
        {"path": ("assistant", "writer", "assistant")},
        {"delegates": ["writer"]},
        (AgentSpec("writer", "gpt", delegates=("assistant",)),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_has_its_code_its_agent_its_stage_and_a_hint(name: str) -> None:
    case = CASES[name]

    error = case.raised()

    assert type(error) is case.error
    assert (error.code, error.stage, error.agent_id) == (case.code, case.stage, "assistant")
    assert (error.problem, error.hint) == (case.problem, case.hint)
    assert {attribute: getattr(error, attribute) for attribute in case.attributes} == case.attributes


@pytest.mark.parametrize("name", CASES)
def test_an_error_says_who_what_and_what_to_do(name: str) -> None:
    case = CASES[name]

    assert str(case.raised()) == f"Agent 'assistant': {case.problem}; {case.hint}"


@pytest.mark.parametrize("name", CASES)
def test_an_error_as_events_carry_it_has_its_code(name: str) -> None:
    error = CASES[name].raised()

    assert describe(error).items() >= {"type": type(error).__name__, "code": error.code}.items()


def test_an_agent_that_is_not_declared_is_an_error_of_the_lookup() -> None:
    with pytest.raises(AgentNotFound) as caught:
        built(AgentSpec("assistant", "gpt")).resolve("assistent")

    error = caught.value
    assert (error.code, error.stage, error.agent_id, error.missing) == (
        "agent_not_found",
        "lookup",
        "assistent",
        "assistent",
    )
    assert str(error) == "Agent 'assistent': it is not declared; did you mean 'assistant'?"


def test_where_nothing_is_declared_the_hint_says_so() -> None:
    with pytest.raises(AgentNotFound, match="none is known"):
        AgentRuntimeBuilder().build().resolve("assistant")


def test_the_cause_of_a_failed_register_is_kept() -> None:
    assert isinstance(CASES["register"].raised().__cause__, ConnectionError)


@pytest.mark.parametrize("drive", ["run", "run_async", "run_to_completion", "run_to_completion_async"])
def test_running_an_agent_that_cannot_be_resolved_raises_before_anything_happens(drive: str) -> None:
    runtime = built(AgentSpec("assistant", "gpt", plugin_ids=("memroy",)))

    async def start() -> None:
        started = getattr(runtime, drive)(RunRequest("assistant", "Hello"))
        if drive == "run_async":  # resolves with the first event, since that may take long
            await anext(started)
        else:
            await started

    with pytest.raises(PluginNotFound):
        asyncio.run(start())


# --- The tree


def subclasses() -> list[type[ResolveError]]:
    return ResolveError.__subclasses__()


def test_every_kind_of_error_is_covered_above() -> None:
    assert {case.error for case in CASES.values()} | {AgentNotFound} == set(subclasses())


def test_codes_are_stable_and_each_belongs_to_one_error() -> None:
    assert {kind.__name__: kind.code for kind in subclasses()} == {
        "AgentNotFound": "agent_not_found",
        "ModelNotFound": "model_not_found",
        "ProviderNotFound": "provider_not_found",
        "PluginNotFound": "plugin_not_found",
        "InvalidPluginConfig": "invalid_plugin_config",
        "EnvBuildError": "env_build_error",
        "ToolIdConflict": "tool_id_conflict",
        "RemoteAgentNotDirectlyRunnable": "remote_agent_not_directly_runnable",
        "DelegateCycle": "delegate_cycle",
    }


@pytest.mark.parametrize("kind", [ResolveError, *subclasses()])
def test_every_error_can_be_imported_from_the_package_and_is_one_of_the_cores(kind: type[Exception]) -> None:
    assert getattr(agent_runtime, kind.__name__) is kind
    assert issubclass(kind, CoreResolveError) and issubclass(kind, AgentError)


def test_the_url_of_a_remote_agent_is_shown_without_what_may_be_secret_in_it() -> None:
    endpoint = RemoteEndpoint("https://me:secret@example.com/agent?key=secret")

    with pytest.raises(RemoteAgentNotDirectlyRunnable) as caught:
        built(AgentSpec("far", endpoint=endpoint)).resolve("far")

    assert "secret" not in str(caught.value) and "https://example.com/agent" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("gtp", ["claude", "gpt"], "did you mean 'gpt'?"),
        ("llama", ["claude", "gpt"], "known are 'claude', 'gpt'"),
        ("llama", [], "none is known"),
        (5, ["five"], "known are 'five'"),
    ],
)
def test_a_hint_has_the_nearest_name_or_all_that_there_are(name: Any, known: list[str], hint: str) -> None:
    assert nearest(name, known) == hint

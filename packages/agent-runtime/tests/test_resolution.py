"""From an agent's id to something that runs: lookup, plugins, tools, in this order and completely or not."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, FunctionTool, tool
from agent_core.testing import ScriptedProvider
from agent_runtime import (
    AgentNotFound,
    AgentRuntime,
    AgentRuntimeBuilder,
    AgentSpec,
    ContextPolicy,
    DelegateCycle,
    EnvBuildError,
    ExecutionEnv,
    InvalidPluginConfig,
    ModelNotFound,
    ModelSpec,
    PermissionsPlugin,
    Phase,
    PluginNotFound,
    PluginRegistrar,
    ProviderNotFound,
    RemoteEndpoint,
    ResolvedAgent,
    ResolveError,
    RetryPolicy,
    RunRequest,
    StateKey,
    ToolIdConflict,
    ToolSettings,
)
from agent_runtime.context import CompactionPlugin, ContextTransformPlugin
from agent_runtime.defaults import LoopActionHandlersPlugin, MaxRoundsPlugin
from agent_runtime.executor import ProviderExecutor
from agent_runtime.patterns import Glob
from agent_runtime.registries import ToolEntry
from agent_runtime.resolve import resolve
from agent_runtime.retry import RetryingExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULTS = (LoopActionHandlersPlugin, MaxRoundsPlugin)


def spec(id: str = "a", model: str = "m", **fields: Any) -> AgentSpec:  # noqa: A002 - as the field is called
    return AgentSpec(id, model, **fields)


def builder(
    *specs: AgentSpec, plugins: Mapping[str, Any] | None = None, tools: Mapping[str, Any] | None = None
) -> AgentRuntimeBuilder:
    """A builder with a model `m` of a provider `p`, which is scripted."""
    made = AgentRuntimeBuilder().with_model(ModelSpec("m", "p", "big")).with_provider("p", ScriptedProvider())
    for id, plugin in (plugins or {}).items():  # noqa: A001 - as the argument is called
        made.with_plugin(id, plugin)
    for id, one in (tools or {}).items():  # noqa: A001 - as above
        made.with_tool(id, one)
    return made.with_agent_specs(specs)


def runtime(*specs: AgentSpec, **given: Any) -> AgentRuntime:
    return builder(*specs, **given).build_unchecked()


def resolved(one: AgentSpec, *others: AgentSpec, **given: Any) -> ResolvedAgent:
    return runtime(one, *others, **given).resolve(one.id)


def function_named(name: str) -> FunctionTool[..., str]:
    def answer() -> str:
        """Answer."""
        return name

    return tool(answer, name=name)


def placing(*calls: Callable[[PluginRegistrar], object], **about: Any) -> Any:
    """A plugin that places things, and says about itself what the test gives it."""

    class Placing:
        version = "1"

        def __init__(self) -> None:
            self.registered = 0

        def register(self, registrar: PluginRegistrar) -> None:
            self.registered += 1
            for place in calls:
                place(registrar)

    for name, value in about.items():
        setattr(Placing, name, value)
    return Placing()


def with_tools(*names: str) -> Any:
    return placing(
        *(lambda registrar, name=name: registrar.tool(name, function_named(name)) for name in names)
    )


class Kit:
    """A tool plugin with two tools."""

    name = "kit"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
            for name in ("saw", "drill")
        ]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": tool_name}


class Tagged:
    """A feature with tags."""

    name = "tagged"
    version = "1"

    def __init__(
        self, *, gives: tuple[str, ...] = (), needs: tuple[str, ...] = (), forbids: tuple[str, ...] = ()
    ) -> None:
        self._gives, self._needs, self._forbids = gives, needs, forbids
        self.registered = 0

    def get_tags(self, config: dict[str, Any]) -> list[str]:
        return list(self._gives)

    def required_tags(self) -> list[str]:
        return list(self._needs)

    def forbidden_tags(self) -> list[str]:
        return list(self._forbids)

    def register(self, registrar: PluginRegistrar) -> None:
        self.registered += 1


def decided(agent: ResolvedAgent) -> dict[str, tuple[bool, str]]:
    return {decision.plugin: (decision.enabled, decision.reason) for decision in agent.decisions}


# --- The order of the stages


FAILING = placing(lambda registrar: 1 / 0)
STAGES: list[tuple[type[ResolveError], dict[str, Any]]] = [
    (ModelNotFound, {"model": "none"}),
    (ProviderNotFound, {"model": "homeless"}),
    (InvalidPluginConfig, {"sections": {"retry": {"max_retries": -1}}}),
    (ModelNotFound, {"sections": {"retry": {"fallback_models": ["none"]}}}),
    (PluginNotFound, {"plugin_ids": ["none"]}),
    (InvalidPluginConfig, {"sections": {"config": {"disabled_plugins": 5}}}),
    (EnvBuildError, {"plugin_ids": ["failing"]}),
    (AgentNotFound, {"delegates": ["none"]}),
    (ToolIdConflict, {"plugin_ids": ["search"]}),
]


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """A declaration with both mistakes; where that is one field, all of it, or what the first has."""
    both = {**second, **first}
    for key in first.keys() & second.keys():
        mine, other = first[key], second[key]
        if not isinstance(mine, str):
            both[key] = {**other, **mine} if isinstance(mine, dict) else [*other, *mine]
    return both


@pytest.mark.parametrize(("earlier", "later"), [*combinations(range(len(STAGES)), 2)])
def test_of_two_mistakes_the_one_of_the_earlier_stage_is_reported(earlier: int, later: int) -> None:
    (error, wrong), (_, wrong_too) = STAGES[earlier], STAGES[later]
    made = builder(
        spec(**merged(wrong, wrong_too)),
        plugins={"failing": FAILING, "search": with_tools("find")},
        tools={"find": function_named("find")},
    ).with_model(ModelSpec("homeless", "nobody"))

    with pytest.raises(ResolveError) as caught:
        made.build_unchecked().resolve("a")

    assert type(caught.value) is error


def test_each_stage_is_named_in_its_errors() -> None:
    def stage_of(**wrong: Any) -> str:
        with pytest.raises(ResolveError) as caught:
            resolved(spec(**wrong), plugins={"failing": FAILING})
        return caught.value.stage

    assert stage_of(model="none") == "lookup"
    assert stage_of(sections={"retry": {"max_retries": -1}}) == "lookup"
    assert stage_of(plugin_ids=["none"]) == "plugins"
    assert stage_of(plugin_ids=["failing"]) == "plugins"
    assert stage_of(sections={"tools": {"concurrency": 0}}) == "plugins"
    assert stage_of(delegates=["none"]) == "tools"


@settings(max_examples=40)
@given(st.sets(st.sampled_from(range(len(STAGES))), max_size=4))
def test_resolving_gives_everything_or_one_resolve_error(chosen: set[int]) -> None:
    wrong: dict[str, Any] = {}
    for number in sorted(chosen):
        wrong = merged(wrong, STAGES[number][1])
    made = runtime(
        spec(**wrong),
        plugins={"failing": FAILING, "search": with_tools("find")},
        tools={"find": function_named("find")},
    )

    try:
        agent = made.resolve("a")
    except ResolveError as error:
        assert chosen and error.agent_id == "a" and error.hint and error.code != ResolveError.code  # noqa: PT017
    else:
        assert not chosen
        assert all(getattr(agent, field.name) is not None for field in fields(ResolvedAgent))


def test_a_plugin_of_ours_that_is_not_there_is_named_by_its_package() -> None:
    with pytest.raises(PluginNotFound) as caught:
        runtime(spec(plugin_ids=["memory"])).resolve("a")

    assert caught.value.hint == "install it with `pip install keelwork-memory-feature`"


def test_an_agent_that_could_not_be_resolved_can_be_once_the_mistake_is_mended() -> None:
    made = runtime(spec(plugin_ids=["late"]))
    with pytest.raises(PluginNotFound):
        made.resolve("a")

    made.registries.agents.replace("a", spec())

    assert made.resolve("a").spec == spec()


# --- Stage 1


def test_a_model_is_followed_to_its_provider_and_to_the_name_that_the_provider_knows() -> None:
    agent = resolved(spec())

    assert agent.model == ModelSpec("m", "p", "big")
    assert agent.provider.id == "p" and agent.provider.model == agent.model
    assert agent.config["provider"] == "p" and agent.config["model"] == "big"


def test_settings_come_from_the_provider_then_the_model_then_the_agent() -> None:
    one = spec(sections={"config": {"c": "agent"}})
    made = AgentRuntimeBuilder().with_agent_spec(one)
    made.with_provider("p", ScriptedProvider(), config={"a": "provider", "b": "provider", "c": "provider"})
    made.with_model(ModelSpec("m", "p", config={"b": "model", "c": "model"}))

    config = made.build().resolve("a").config

    assert {key: config[key] for key in "abc"} == {"a": "provider", "b": "model", "c": "agent"}


def test_a_model_without_a_name_leaves_the_choice_to_the_provider() -> None:
    made = AgentRuntimeBuilder().with_provider("p", ScriptedProvider()).with_model(ModelSpec("m", "p"))

    assert "model" not in made.with_agent_spec(spec()).build().resolve("a").config


@pytest.mark.parametrize(
    ("sections", "retries"),
    [
        ({}, False),
        ({"retry": {"max_retries": 0, "stream_retries": 0}}, False),
        ({"retry": {}}, True),
        ({"retry": {"max_retries": 1, "stream_retries": 0}}, True),
        ({"retry": {"max_retries": 0, "stream_retries": 1}}, False),
        ({"retry": {"max_retries": 0, "stream_retries": 0, "fallback_models": ["m"]}}, True),
    ],
)
def test_only_an_agent_that_may_ask_more_than_once_gets_a_retrying_executor(
    sections: dict[str, Any], retries: bool
) -> None:
    provider = resolved(spec(sections=sections)).provider

    assert isinstance(provider, RetryingExecutor if retries else ProviderExecutor)


def test_fallback_models_stand_behind_the_agents_own_in_order_each_with_its_own_settings() -> None:
    names = ["second", "third"]
    one = spec(sections={"retry": {"fallback_models": names, "max_retries": 7}, "config": {"c": 1}})
    made = builder(one).with_provider("q", ScriptedProvider(), config={"key": "q"})
    made.with_model(ModelSpec("second", "q", "small")).with_model(ModelSpec("third", "p", "huge"))

    executor = made.build().resolve("a").provider

    assert isinstance(executor, RetryingExecutor)
    assert executor.policy == RetryPolicy(max_retries=7, fallback_models=("second", "third"))
    assert [target.model.id for target in executor.targets] == ["m", "second", "third"]
    configs = [target.config for target in executor.targets if isinstance(target, ProviderExecutor)]
    assert [(config["provider"], config["model"], config.get("key"), config["c"]) for config in configs] == [
        ("p", "big", None, 1),
        ("q", "small", "q", 1),
        ("p", "huge", None, 1),
    ]


def test_other_declared_models_can_be_asked_outside_the_conversation() -> None:
    made = builder(spec()).with_model(ModelSpec("cheap", "p", "mini")).with_model(ModelSpec("gone", "nobody"))

    models = made.build_unchecked().resolve("a").models

    assert models.keys() == {"m", "cheap"}
    assert models["cheap"].config["model"] == "mini"


# --- Stage 2: which plugins


def classes(agent: ResolvedAgent) -> list[type]:
    return [type(plugin) for plugin in agent.env.plugins]


def test_every_agent_has_the_default_plugins_and_no_others() -> None:
    agent = resolved(spec(max_rounds=3, stop_conditions=[{"type": "timeout", "seconds": 5}]))
    loop_actions, rounds = agent.env.plugins

    assert (type(loop_actions), type(rounds)) == DEFAULTS
    assert [condition.to_dict() for condition in rounds.conditions] == [
        {"type": "max_rounds", "rounds": 3},
        {"type": "timeout", "seconds": 5},
    ]


@pytest.mark.parametrize("name", ["loop_action_handlers", "max_rounds"])
@pytest.mark.parametrize("more", [{}, {"force_enabled_plugins": []}, {"enabled_plugins": []}])
def test_no_setting_removes_a_default_plugin_and_a_warning_says_so(name: str, more: dict[str, Any]) -> None:
    agent = resolved(spec(sections={"config": {"disabled_plugins": [name], **more}}))

    assert tuple(classes(agent)) == DEFAULTS
    assert decided(agent)[name] == (True, "required")
    assert agent.warnings == (f"plugin {name!r} cannot be disabled: the runtime needs it",)
    assert agent.config["disabled_plugins"] == []


def test_no_tag_removes_a_default_plugin() -> None:
    tagged = Tagged(gives=("quiet",), forbids=("loop",))

    assert set(DEFAULTS) <= set(classes(resolved(spec(plugin_ids=["t"]), plugins={"t": tagged})))


def test_disabling_a_default_leaves_the_other_names_of_the_list_disabled() -> None:
    one = spec(plugin_ids=["mine"], sections={"config": {"disabled_plugins": ["max_rounds", "mine"]}})
    mine = placing()

    agent = resolved(one, plugins={"mine": mine})

    assert decided(agent)["mine"] == (False, "disabled")
    assert mine.registered == 0 and mine not in agent.env.plugins


def test_an_id_of_a_plugin_of_the_runtime_cannot_be_taken() -> None:
    with pytest.raises(EnvBuildError, match=r"'max_rounds'.*register it under another id"):
        resolved(spec(plugin_ids=["max_rounds"]), plugins={"max_rounds": placing()})
    with pytest.raises(EnvBuildError, match=r"'max_rounds'.*give one of the two another id"):
        resolved(spec(), tools={"max_rounds": function_named("max_rounds")})


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({}, ()),
        ({"context_policy": ContextPolicy()}, (CompactionPlugin, ContextTransformPlugin)),
        ({"context_policy": {}}, (CompactionPlugin, ContextTransformPlugin)),
        ({"sections": {"permissions": {}}}, (PermissionsPlugin,)),
        (
            {"sections": {"permissions": {}}, "context_policy": {}},
            (PermissionsPlugin, CompactionPlugin, ContextTransformPlugin),
        ),
    ],
)
def test_a_setting_brings_the_plugins_that_it_needs(fields: dict[str, Any], more: tuple[type, ...]) -> None:
    assert tuple(classes(resolved(spec(**fields)))) == (*DEFAULTS, *more)


@pytest.mark.parametrize("name", ["permissions", "context_compaction", "context_transform"])
def test_plugins_that_a_setting_brings_cannot_be_disabled_either(name: str) -> None:
    sections = {"permissions": {}, "config": {"disabled_plugins": [name]}}

    agent = resolved(spec(sections=sections, context_policy={}))

    assert decided(agent)[name] == (True, "required")
    assert any(repr(name) in warning for warning in agent.warnings)


def test_a_context_policy_works_with_the_agents_model_and_the_compaction_section() -> None:
    policy = ContextPolicy(keep_recent=3)
    agent = resolved(spec(context_policy=policy, sections={"compaction": {"max_summary_tokens": 300}}))
    compaction, transform = agent.env.plugins[-2:]

    assert (compaction.policy, compaction.model) == (policy, agent.model)
    assert (transform.policy, transform.model) == (policy, agent.model)
    assert agent.warnings == ()
    with pytest.raises(InvalidPluginConfig, match="compaction"):
        resolved(spec(context_policy=policy, sections={"compaction": {"max_summary_tokens": "many"}}))


def test_declared_plugins_come_first_in_their_order_and_once() -> None:
    plugins = {name: placing() for name in ("one", "two", "three")}

    agent = resolved(spec(plugin_ids=["three", "one", "three"]), plugins=plugins)

    assert agent.env.plugins[:2] == (plugins["three"], plugins["one"])
    assert tuple(classes(agent)[2:]) == DEFAULTS
    assert [plugin.registered for plugin in plugins.values()] == [1, 0, 1]


def test_a_plugin_of_every_kind_can_be_named() -> None:
    class Extension:
        name = "loud"
        version = "1"

        def process_chunk(self, chunk: Any, partials: Any, finals: Any, native: Any, state: Any) -> Any:
            return partials, finals, native, state

    plugins = {"kit": Kit, "loud": Extension, "tagged": Tagged, "bare": placing()}

    agent = resolved(spec(plugin_ids=list(plugins)), plugins=plugins)

    assert {one.plugin: one.kind for one in agent.decisions if one.plugin in plugins} == {
        "kit": "tool",
        "loud": "extension",
        "tagged": "feature",
        "bare": "feature",
    }
    assert agent.tools.keys() == {"saw", "drill"}


def test_a_plugin_goes_by_its_id_and_not_by_its_own_name() -> None:
    agent = resolved(spec(plugin_ids=["b", "a1"]), plugins={"a1": Tagged, "b": Tagged()})

    assert {"a1", "b"} <= decided(agent).keys() and "tagged" not in decided(agent)


# --- Stage 2: enablement by tags


def off_and_on(plugin: Any, reason: str, **fields: Any) -> None:
    agent = resolved(spec(plugin_ids=["t"], **fields), plugins={"t": plugin})
    enabled = reason not in ("missing_tags", "forbidden_tags", "disabled", "is_enabled_false")

    assert decided(agent)["t"] == (enabled, reason.removesuffix("_false"))
    assert plugin.registered == (1 if enabled else 0)
    assert (plugin in agent.env.plugins) is enabled


def test_a_plugin_whose_required_tag_nobody_gives_is_off_and_places_nothing() -> None:
    off_and_on(Tagged(needs=("gpu",)), "missing_tags")


def test_a_plugin_with_a_forbidden_tag_is_off_and_places_nothing() -> None:
    off_and_on(Tagged(gives=("cloud",), forbids=("cloud",)), "forbidden_tags")


@pytest.mark.parametrize(("opinion", "reason"), [(True, "is_enabled"), (False, "is_enabled_false")])
def test_a_plugin_may_decide_for_itself(opinion: bool, reason: str) -> None:
    off_and_on(placing(is_enabled=lambda _self, config: opinion), reason)


def test_forcing_is_stronger_than_tags_and_than_disabling() -> None:
    forced = {"force_enabled_plugins": ["t"]}

    off_and_on(Tagged(needs=("gpu",)), "disabled", sections={"config": {"disabled_plugins": ["t"]}})
    off_and_on(Tagged(needs=("gpu",)), "forced", sections={"config": forced})
    off_and_on(Tagged(needs=("gpu",)), "forced", sections={"config": {**forced, "disabled_plugins": ["t"]}})


def test_naming_a_plugin_that_is_off_by_default_switches_it_on() -> None:
    off_and_on(placing(default_enabled=False), "default")


def test_a_registered_plugin_that_an_agent_does_not_name_takes_no_part() -> None:
    other = placing()

    agent = resolved(spec(), plugins={"other": other})

    assert other.registered == 0 and "other" not in decided(agent)


def test_tags_of_one_plugin_switch_another_on_and_an_off_plugin_takes_its_dependents_along() -> None:
    def run(**config: Any) -> dict[str, tuple[bool, str]]:
        plugins = {"giver": Tagged(gives=("gpu",)), "taker": Tagged(needs=("gpu",))}
        one = spec(plugin_ids=["giver", "taker"], sections={"config": config})
        return decided(resolved(one, plugins=plugins))

    assert run()["taker"] == (True, "default")
    assert run(disabled_plugins=["giver"])["taker"] == (False, "missing_tags")


def test_a_global_tool_may_give_the_tag_that_a_plugin_needs() -> None:
    class Gpu(Kit):
        def get_tags(self, config: dict[str, Any]) -> list[str]:
            return ["gpu"]

    needing = Tagged(needs=("gpu",))

    resolved(spec(plugin_ids=["t"]), plugins={"t": needing}, tools={"gpu": Gpu})

    assert needing.registered == 1


def test_a_core_tool_plugin_that_is_off_offers_no_tools() -> None:
    class Picky(Kit):
        def required_tags(self) -> list[str]:
            return ["workshop"]

    assert resolved(spec(plugin_ids=["kit"]), plugins={"kit": Picky}).tools == {}


def test_a_plugin_that_cannot_say_whether_it_is_on_is_named() -> None:
    def is_enabled(_self: Any, config: Any) -> bool:
        raise KeyError("mood")

    with pytest.raises(EnvBuildError, match=r"plugin 't'.*is_enabled raised KeyError: 'mood'") as caught:
        resolved(spec(plugin_ids=["t"]), plugins={"t": placing(is_enabled=is_enabled)})

    assert caught.value.plugin == "t"


# --- Stage 2: extensions


class Shouting:
    """An extension that makes everything loud."""

    name = "shouting"
    version = "1"

    def process_chunk(self, chunk: Any, partials: Any, finals: Any, native: Any, state: Any) -> Any:
        return [{**one, "content": one["content"].upper()} for one in partials], finals, native, state


class ForOpenAI(Shouting):
    providers = "openai"


def test_an_extension_is_only_for_the_providers_that_it_names() -> None:
    one = spec(plugin_ids=["e"])
    made = builder(one, plugins={"e": ForOpenAI}).with_provider("other", ScriptedProvider(name="openai"))
    made.with_model(ModelSpec("o", "other")).with_agent_spec(spec("b", "o", plugin_ids=["e"]))

    assert decided(made.build().resolve("a"))["e"] == (False, "not_selected")
    assert decided(made.build().resolve("b"))["e"] == (True, "default")


def test_an_extension_for_which_there_is_no_provider_is_a_warning() -> None:
    agent = resolved(spec(plugin_ids=["e"]), plugins={"e": ForOpenAI})

    assert "e" not in decided(agent)
    assert agent.warnings == (
        "extension 'e' does nothing: none of the providers it is for is registered (('openai',))",
    )


# --- Stage 2: sections


SCHEMA = {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": False}


def claiming(**schemas: Any) -> Any:
    return placing(config_schemas=lambda _self: list(schemas.items()))


def test_a_section_that_fits_its_schema_is_accepted() -> None:
    one = spec(plugin_ids=["memory"], sections={"memory": {"size": 3}})

    assert resolved(one, plugins={"memory": claiming(memory=SCHEMA)}).warnings == ()


def test_a_section_that_does_not_fit_is_refused_with_its_plugin_and_place() -> None:
    one = spec(plugin_ids=["mine"], sections={"memory": {"size": "large"}})

    with pytest.raises(InvalidPluginConfig, match=r"memory\.size") as caught:
        resolved(one, plugins={"mine": claiming(memory=SCHEMA)})

    assert (caught.value.plugin, caught.value.section, caught.value.stage) == ("mine", "memory", "plugins")
    assert caught.value.hint == "correct sections['memory'] of the agent"


def test_a_section_that_is_absent_is_nothing_to_complain_about() -> None:
    schema = {**SCHEMA, "required": ["size"]}

    assert resolved(spec(plugin_ids=["m"]), plugins={"m": claiming(memory=schema)}).warnings == ()


def test_a_section_that_nobody_claims_is_a_warning_with_the_nearest_name() -> None:
    one = spec(plugin_ids=["memory"], sections={"memroy": {"size": 3}})

    assert resolved(one, plugins={"memory": claiming(memory=SCHEMA)}).warnings == (
        "section 'memroy' of agent 'a' belongs to no plugin: did you mean 'memory'?",
    )


def test_a_section_whose_plugin_is_not_among_the_agents_is_unclaimed() -> None:
    agent = resolved(spec(sections={"memory": {}}), plugins={"memory": claiming(memory=SCHEMA)})

    (warning,) = agent.warnings
    assert warning == (
        "section 'memory' of agent 'a' belongs to no plugin: "
        "known are 'config', 'permissions', 'results', 'retry', 'tools'"
    )


def test_two_plugins_may_claim_one_section_and_both_must_agree() -> None:
    plugins = {"one": claiming(shared=SCHEMA), "two": claiming(shared={"required": ["size"]})}

    resolved(spec(plugin_ids=["one", "two"], sections={"shared": {"size": 1}}), plugins=plugins)
    with pytest.raises(InvalidPluginConfig) as caught:
        resolved(spec(plugin_ids=["one", "two"], sections={"shared": {}}), plugins=plugins)

    assert caught.value.plugin == "two"


@pytest.mark.parametrize(
    "schemas",
    [
        lambda _self: 1 / 0,
        lambda _self: None,
        lambda _self: [("memory", SCHEMA, "more")],
        lambda _self: [("memory", {"type": "no such type"})],
        lambda _self: [("memory", object())],
    ],
)
def test_a_plugin_with_schemas_that_are_none_is_named(schemas: Any) -> None:
    one = spec(plugin_ids=["m"], sections={"memory": {}})

    with pytest.raises(EnvBuildError, match="plugin 'm' cannot be set up"):
        resolved(one, plugins={"m": placing(config_schemas=schemas)})


@pytest.mark.parametrize(
    "answer",
    [
        {"ab": SCHEMA},
        ["ab"],
        "ab",
        [{"key": "memory", "schema": SCHEMA}],
        [("memory",)],
        [(3, SCHEMA)],
        [("", SCHEMA)],
        [("memory", "object")],
        [("memory", None)],
        {("memory", "other")},
        [("memory", SCHEMA), None],
    ],
    ids=repr,
)
def test_what_is_no_list_of_pairs_is_refused_by_its_shape(answer: Any) -> None:
    one = spec(plugin_ids=["m"], sections={"memory": {}})

    with pytest.raises(EnvBuildError, match=r"config_schemas must return a list of \(section, JSON Schema\)"):
        resolved(one, plugins={"m": placing(config_schemas=lambda _self: answer)})


class Polite:
    """A core feature with a setting."""

    name = "polite"
    version = "1"

    def get_config_schema(self) -> dict[str, Any]:
        return {"tone": {"type": "string"}}


def test_the_section_of_a_core_plugin_holds_its_settings() -> None:
    one = spec(plugin_ids=["polite"], sections={"polite": {"tone": "kind"}})

    agent = resolved(one, plugins={"polite": Polite})

    assert agent.config["polite"] == {"tone": "kind"} and agent.warnings == ()
    assert "tone" not in agent.config  # which other plugins get as well


def test_a_setting_that_the_core_plugin_does_not_have_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidPluginConfig, match="there is no setting 'tune': did you mean 'tone'"):
        resolved(spec(plugin_ids=["polite"], sections={"polite": {"tune": 1}}), plugins={"polite": Polite})
    with pytest.raises(InvalidPluginConfig, match="must be a mapping, not str"):
        resolved(spec(plugin_ids=["polite"], sections={"polite": "kind"}), plugins={"polite": Polite})


def test_a_core_plugin_that_cannot_list_its_settings_is_a_warning() -> None:
    def get_config_schema(_self: Any) -> Any:
        raise KeyError("tone")

    broken = placing(get_config_schema=get_config_schema)

    agent = resolved(spec(plugin_ids=["p1"], sections={"p1": {"tone": 1}}), plugins={"p1": broken})

    assert agent.warnings == ("Plugin 'p1', hook 'get_config_schema': raised KeyError: 'tone'",)
    assert "tone" not in agent.config


@pytest.mark.parametrize("name", ["disabled_plugins", "enabled_plugins", "force_enabled_plugins"])
@pytest.mark.parametrize("value", [5, "max_rounds", [5], {"max_rounds": True}])
def test_lists_of_plugins_that_are_none_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidPluginConfig, match=rf"config\['{name}'\] must") as caught:
        resolved(spec(sections={"config": {name: value}}))

    assert caught.value.section == "config"


@pytest.mark.parametrize("name", ["disabled_plugins", "enabled_plugins", "force_enabled_plugins"])
def test_an_empty_list_of_plugins_may_be_written_as_nothing(name: str) -> None:
    assert resolved(spec(sections={"config": {name: None}})).warnings == ()


def test_plugins_wanted_by_the_config_section_must_be_there() -> None:
    with pytest.raises(PluginNotFound, match="'max_round' is not registered; did you mean 'max_rounds'"):
        resolved(spec(sections={"config": {"enabled_plugins": ["max_round"]}}))


def test_a_forced_plugin_that_nobody_has_is_a_warning() -> None:
    agent = resolved(spec(sections={"config": {"force_enabled_plugins": ["max_round"]}}))

    [warning] = agent.warnings
    assert "'max_round', which is not registered: did you mean 'max_rounds'?" in warning


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [("provider", "q", "model"), ("model", "tiny", "model"), ("allowed_tools", [], "allowed_tools")],
)
def test_a_setting_that_a_field_of_the_agent_decides_is_ignored_with_a_warning(
    key: str, value: Any, field: str
) -> None:
    tools = {"find": function_named("find")}
    agent = resolved(spec(sections={"config": {key: value}}), tools=tools)

    assert (
        agent.config["provider"] == "p" and agent.config["model"] == "big" and agent.tools.keys() == {"find"}
    )
    assert agent.warnings == (f"config[{key!r}] of agent 'a' is ignored: its field {field!r} decides that",)


@pytest.mark.parametrize("section", ["retry", "tools", "config"])
@pytest.mark.parametrize("value", [None, 5, [], "text"])
def test_a_section_of_the_runtime_that_is_no_mapping_is_refused(section: str, value: Any) -> None:
    with pytest.raises(InvalidPluginConfig) as caught:
        resolved(spec(sections={section: value}))

    assert caught.value.section == section


def test_the_tools_section_says_how_tools_run() -> None:
    section: dict[str, Any] = {"concurrency": 2, "timeout": 3.5, "timeouts": {"slow": 60}}

    agent = resolved(spec(sections={"tools": section}))

    assert agent.tool_settings == ToolSettings(**section)
    assert agent.config["tool_timeout"] == 3.5 and agent.config["tool_timeouts"] == {"slow": 60}
    assert resolved(spec()).tool_settings == ToolSettings()
    for wrong in ({"concurency": 2}, {"concurrency": 0}, {"timeout": 0}, {"timeouts": {"slow": -1}}):
        with pytest.raises(InvalidPluginConfig, match="tools"):
            resolved(spec(sections={"tools": wrong}))


# --- Stage 3


def helper(**fields: Any) -> AgentSpec:
    return spec("helper", description="Helps.", **fields)


def test_tools_come_from_the_registry_then_from_delegates_then_from_plugins() -> None:
    agent = resolved(
        spec(delegates=["helper"], plugin_ids=["mine"]),
        helper(),
        tools={"first": function_named("x"), "kit": Kit},
        plugins={"mine": with_tools("last")},
    )

    assert list(agent.tools) == ["first", "saw", "drill", "delegate_helper", "last"]
    assert [descriptor.name for descriptor in agent.descriptors] == list(agent.tools)
    assert agent.env.tools.keys() == {"last"}


def test_a_function_is_called_by_the_id_that_it_is_registered_under() -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    agent = resolved(spec(), tools={"plus": add})

    assert agent.tools.keys() == {"plus"}
    assert agent.descriptors[0].schema["function"]["description"] == "Add two numbers."


def test_a_delegate_that_lives_elsewhere_is_a_tool_too() -> None:
    remote = AgentSpec("far", description="Far away.", endpoint=RemoteEndpoint("https://example.com/a2a"))

    agent = resolved(spec(delegates=["far", "far"]), remote)

    assert list(agent.tools) == ["delegate_far"]
    assert type(agent.tools["delegate_far"]).__name__ == "RemoteDelegateTool"
    assert "Far away." in agent.descriptors[0].schema["function"]["description"]


@pytest.mark.parametrize(
    ("given", "tool_id", "owners"),
    [
        pytest.param(
            {"tools": {"find": function_named("x")}, "plugins": {"mine": with_tools("find")}},
            "find",
            ("global tool 'find'", "plugin 'mine'"),
            id="plugin and global",
        ),
        pytest.param(
            {"tools": {"delegate_helper": function_named("x")}},
            "delegate_helper",
            ("global tool 'delegate_helper'", "delegate 'helper'"),
            id="delegate and global",
        ),
        pytest.param(
            {"plugins": {"mine": with_tools("find"), "yours": with_tools("find")}},
            "find",
            ("plugin 'mine'", "plugin 'yours'"),
            id="plugin and plugin",
        ),
        pytest.param(
            {"plugins": {"mine": with_tools("delegate_helper")}},
            "delegate_helper",
            ("delegate 'helper'", "plugin 'mine'"),
            id="plugin and delegate",
        ),
        pytest.param(
            {"tools": {"kit": Kit, "saw": function_named("x")}},
            "saw",
            ("global tool 'kit'", "global tool 'saw'"),
            id="a tool of a global plugin and a global tool",
        ),
        pytest.param(
            {"tools": {"kit": Kit}, "plugins": {"mine": with_tools("saw")}},
            "saw",
            ("global tool 'kit'", "plugin 'mine'"),
            id="a tool of a global plugin and one that was placed",
        ),
        pytest.param(
            {"tools": {"saw": function_named("x")}, "plugins": {"workshop": Kit}},
            "saw",
            ("plugin 'workshop'", "global tool 'saw'"),
            id="a tool of a core plugin and a global tool",
        ),
    ],
)
def test_two_owners_of_one_tool_are_both_named(
    given: dict[str, Any], tool_id: str, owners: tuple[str, str]
) -> None:
    one = spec(plugin_ids=list(given.get("plugins", {})), delegates=["helper"])

    with pytest.raises(ToolIdConflict) as caught:
        resolved(one, helper(), **given)

    assert (caught.value.tool, caught.value.stage) == (tool_id, "tools")
    assert set(caught.value.owners) == set(owners)
    assert all(owner in str(caught.value) for owner in owners)


def test_two_delegates_whose_tools_would_have_one_name_are_both_named() -> None:
    with pytest.raises(ToolIdConflict) as caught:
        resolved(spec(delegates=["x.y", "x_y"]), spec("x.y"), spec("x_y"))

    assert (caught.value.tool, caught.value.owners) == ("delegate_x_y", ("delegate 'x.y'", "delegate 'x_y'"))


def test_a_placed_tool_that_is_none_is_blamed_on_its_plugin() -> None:
    plugin = placing(lambda registrar: registrar.tool("find", 42))

    with pytest.raises(EnvBuildError, match=r"plugin 'mine'.*tool 'find' cannot be used"):
        resolved(spec(plugin_ids=["mine"]), plugins={"mine": plugin})


def test_a_tool_plugin_that_cannot_say_what_it_offers_is_named() -> None:
    class Mute(Kit):
        def get_tool_schemas(self) -> list[dict[str, Any]]:
            raise OSError("no power")

    with pytest.raises(EnvBuildError, match=r"plugin 'mute'.*no power"):
        resolved(spec(), tools={"mute": Mute})


@pytest.mark.parametrize(
    ("allowed", "excluded", "left"),
    [
        (None, [], ["find", "find_all", "saw", "drill", "delegate_helper"]),
        ([], [], []),
        (["saw"], [], ["saw"]),
        (["saw", "find"], [], ["find", "saw"]),
        (["find*"], [], ["find", "find_all"]),
        (["?aw"], [], ["saw"]),
        (["*"], ["find*"], ["saw", "drill", "delegate_helper"]),
        (["find"], ["find"], []),
        (None, ["*"], []),
        (None, ["delegate_*", "drill"], ["find", "find_all", "saw"]),
    ],
)
def test_lists_of_tools_are_patterns_and_excluding_wins(
    allowed: list[str] | None, excluded: list[str], left: list[str]
) -> None:
    agent = resolved(
        spec(delegates=["helper"], allowed_tools=allowed, excluded_tools=excluded),
        helper(),
        tools={"find": function_named("x"), "find_all": function_named("x"), "kit": Kit},
    )

    assert list(agent.tools) == left
    assert [one.name for one in agent.descriptors] == left
    assert agent.warnings == ()


names = st.text("ab_", min_size=1, max_size=4)
patterns = st.lists(st.text("ab_*?", min_size=1, max_size=4), max_size=3)


@settings(max_examples=40)
@given(st.sets(names, max_size=5), st.none() | patterns, patterns)
def test_a_tool_is_left_if_something_allows_it_and_nothing_excludes_it(
    ids: set[str], allowed: list[str] | None, excluded: list[str]
) -> None:
    def fits(name: str, listed: list[str]) -> bool:
        return any(Glob.parse(pattern).matches(name) for pattern in listed)

    one = spec(allowed_tools=allowed, excluded_tools=excluded)
    agent = resolved(one, tools={name: function_named(name) for name in sorted(ids)})

    assert agent.tools.keys() == {
        name for name in ids if (allowed is None or fits(name, allowed)) and not fits(name, excluded)
    }
    useless = [p for p in [*(allowed or ()), *excluded] if not any(fits(name, [p]) for name in ids)]
    assert len(agent.warnings) == len(useless)


def test_a_pattern_that_no_tool_has_is_a_warning_with_the_nearest_name() -> None:
    agent = resolved(
        spec(allowed_tools=["serach", "find"], excluded_tools=["mail*"]),
        tools={"search": function_named("x"), "find": function_named("x")},
    )

    assert agent.warnings == (
        "allowed_tools of agent 'a' names 'serach', which no tool has: did you mean 'search'?",
        "excluded_tools of agent 'a' names 'mail*', which no tool has: known are 'search', 'find'",
    )


# --- Delegates


def test_a_circle_of_delegates_is_refused_with_the_way_around_it() -> None:
    specs = [spec("a", delegates=["b"]), spec("b", delegates=["c"]), spec("c", delegates=["a"])]

    with pytest.raises(DelegateCycle, match="a → b → c → a") as caught:
        resolved(*specs)

    assert caught.value.path == ("a", "b", "c", "a")
    with pytest.raises(DelegateCycle, match="a → a"):
        resolved(spec(delegates=["a"]))


def test_delegates_may_stand_eight_deep_and_no_deeper() -> None:
    line = [spec(f"a{n}", delegates=[f"a{n + 1}"]) for n in range(8)]
    made = runtime(*line, spec("a8"))

    assert list(made.resolve("a1").tools) == ["delegate_a2"]
    with pytest.raises(DelegateCycle, match="deeper than 8"):
        made.resolve("a0")


def test_a_deep_way_is_found_although_a_short_one_leads_to_the_same_agent() -> None:
    line = [spec(f"a{n}", delegates=[f"a{n + 1}"]) for n in range(8)]

    with pytest.raises(DelegateCycle, match="deeper than 8") as caught:
        resolved(spec("root", delegates=["a2", "a1"]), *line, spec("a8"))

    assert caught.value.path[:2] == ("root", "a1")


def test_many_ways_through_the_same_agents_are_not_all_followed() -> None:
    """Ten million of them: it would not come to an end."""
    layers = [[f"a{layer}_{n}" for n in range(10)] for layer in range(7)]
    specs = [
        spec(name, delegates=layers[number + 1] if number < 6 else [])
        for number, layer in enumerate(layers)
        for name in layer
    ]

    assert len(runtime(spec("root", delegates=layers[0]), *specs).resolve("root").tools) == 10


# --- What comes out


def everything() -> AgentRuntime:
    key: StateKey[int] = StateKey("mine.count", 0)
    mine = function_named("mine")
    plugin = placing(
        lambda registrar: registrar.phase_hook(Phase.RUN_START, print),
        lambda registrar: registrar.tool_gate(print),
        lambda registrar: registrar.action_handler("act", print),
        lambda registrar: registrar.effect_handler("effect", print),
        lambda registrar: registrar.request_transform(print),
        lambda registrar: registrar.state_key(key),
        lambda registrar: registrar.tool("mine", mine),
    )
    return runtime(
        spec(plugin_ids=["all"], delegates=["helper"]), helper(), plugins={"all": plugin}, tools={"kit": Kit}
    )


def test_a_resolved_agent_has_everything_that_a_run_needs() -> None:
    agent = everything().resolve("a")

    assert isinstance(agent.core, AgentCore)
    assert isinstance(agent.env, ExecutionEnv)
    assert agent.spec.id == "a" and agent.model.id == "m" and agent.provider.id == "p"
    assert agent.config["allowed_tools"] == list(agent.tools) == [one.name for one in agent.descriptors]
    assert isinstance(agent.tools["saw"], Kit)
    assert {"p", "all", "loop_action_handlers", "max_rounds", "kit"} <= decided(agent).keys()
    assert agent.warnings == ()


def test_everything_in_the_environment_is_tagged_with_the_plugin_that_placed_it() -> None:
    env = everything().resolve("a").env
    hooks = [hook for placed in env.phase_hooks.values() for hook in placed]
    handlers = [*env.scheduled_action_handlers.values(), *env.effect_handlers.values()]
    entries: list[Any] = [*hooks, *env.tool_gates, *handlers, *env.request_transforms, *env.key_registrations]

    assert {entry.plugin for entry in entries} == {"all", "loop_action_handlers", "max_rounds"}
    assert [hook.plugin for hook in env.phase_hooks[Phase.RUN_START]] == ["all"]
    assert [gate.plugin for gate in env.tool_gates] == ["all"]
    assert env.scheduled_action_handlers["act"].plugin == env.effect_handlers["effect"].plugin == "all"
    assert [transform.plugin for transform in env.request_transforms] == ["all"]
    assert [one.plugin for one in env.key_registrations if one.key.name == "mine.count"] == ["all"]
    assert env.tools.keys() == {"mine"}


def test_each_resolve_makes_a_fresh_environment_that_is_like_the_one_before() -> None:
    made = everything()
    first, second = made.resolve("a").env, made.resolve("a").env

    assert first is not second
    assert first == second
    for name in ("phase_hooks", "scheduled_action_handlers", "effect_handlers", "tools"):
        assert getattr(first, name) is not getattr(second, name)


def test_a_plugin_is_asked_at_each_resolve_what_it_places() -> None:
    plugin = placing()
    made = runtime(spec(plugin_ids=["one"]), plugins={"one": plugin})

    for _ in range(3):
        made.resolve("a")

    assert plugin.registered == 3


def test_resolving_from_the_registries_alone_gives_the_same() -> None:
    made = everything()
    agent, other = made.resolve("a"), resolve(made.registries, "a")

    assert (agent.spec, agent.model, agent.config, agent.decisions) == (
        other.spec,
        other.model,
        other.config,
        other.decisions,
    )
    assert agent.tools.keys() == other.tools.keys()


# --- What is kept between resolves


def changes(made: AgentRuntime) -> dict[str, Callable[[], None]]:
    registries = made.registries
    return {
        "agents.replace": lambda: registries.agents.replace("a", spec(system_prompt="new")),
        "agents.add": lambda: registries.agents.add("b", spec("b")),
        "tools.add": lambda: registries.tools.add(
            "new", ToolEntry.of("new", function_named("new"), "global tool 'new'")
        ),
        "models.add": lambda: registries.models.add("n", ModelSpec("n", "p")),
        "models.remove": lambda: registries.models.remove("none"),
        "providers.remove": lambda: registries.providers.remove("none"),
        "plugins.remove": lambda: registries.plugins.remove("none"),
    }


def test_the_core_is_kept_while_the_registries_are_as_they_were() -> None:
    made = everything()

    first, second = made.resolve("a"), made.resolve("a")

    assert first.core is second.core
    assert first.provider is second.provider and first.tools is second.tools


@pytest.mark.parametrize("change", changes(runtime()))
def test_the_core_is_made_anew_when_a_registry_changes(change: str) -> None:
    made = everything()
    before = made.resolve("a")

    changes(made)[change]()

    assert made.resolve("a").core is not before.core


def test_a_replaced_agent_and_a_new_tool_are_seen_at_once_and_the_old_result_stays_as_it_was() -> None:
    made = everything()
    before = made.resolve("a")
    changes(made)["agents.replace"]()
    changes(made)["tools.add"]()

    after = made.resolve("a")

    assert after.spec.system_prompt == "new" and "new" in after.tools
    assert before.spec.system_prompt == "" and "new" not in before.tools


def test_a_removed_agent_is_gone() -> None:
    made = everything()
    made.resolve("a")

    made.registries.agents.remove("a")

    with pytest.raises(AgentNotFound):
        made.resolve("a")


def test_a_plugin_that_places_another_tool_each_time_gets_it_each_time() -> None:
    made = runtime(
        spec(plugin_ids=["one"]),
        plugins={"one": placing(lambda registrar: registrar.tool("x", function_named("x")))},
    )
    first, second = made.resolve("a"), made.resolve("a")

    assert first.env.tools["x"] is not second.env.tools["x"]
    assert second.tools["x"] is second.env.tools["x"]


def test_a_method_that_is_placed_as_a_tool_does_not_cost_a_new_core_each_time() -> None:
    class Library:
        name = "library"

        def find(self, title: str) -> str:
            """Find a book."""
            return title

        def register(self, registrar: PluginRegistrar) -> None:
            registrar.tool("find", self.find)

    made = runtime(spec(plugin_ids=["library"]), plugins={"library": Library})

    assert made.resolve("a").core is made.resolve("a").core


def test_an_agent_is_made_anew_only_if_a_declared_plugin_places_something() -> None:
    plain = spec("plain", sections={"permissions": {"deny": ["shell"]}})
    made = runtime(plain, spec("other", plugin_ids=["placing"]), plugins={"placing": placing()})
    first = made.resolve("plain")

    assert made.resolve("plain") is first
    assert made.resolve("other") is not made.resolve("other")
    made.registries.agents.replace("plain", spec("plain", sections={"permissions": {"deny": ["files"]}}))
    assert made.resolve("plain").env.tool_gates != first.env.tool_gates


def test_a_provider_is_not_asked_for_its_models_at_every_resolve() -> None:
    class Counting(ScriptedProvider):
        asked = 0

        def get_models(self, config: dict[str, Any]) -> list[dict[str, Any]]:
            self.asked += 1
            return [{"id": "big"}]

    provider = Counting()
    made = AgentRuntimeBuilder().with_provider("p", provider).with_model(ModelSpec("m", "p", "big"))
    built = made.with_agent_spec(spec()).build()
    first = provider.asked

    built.resolve("a")

    assert provider.asked == first == 1


def test_a_model_that_the_provider_does_not_list_is_not_found() -> None:
    provider = ScriptedProvider(models=[{"id": "gpt-4o"}])
    made = AgentRuntimeBuilder().with_provider("p", provider).with_model(ModelSpec("m", "p", "gpt-4p"))

    with pytest.raises(ModelNotFound, match=r"'gpt-4p'.*did you mean 'gpt-4o'"):
        made.with_agent_spec(spec()).build_unchecked().resolve("a")


def test_a_schema_that_a_plugin_changed_is_checked_again() -> None:
    schemas: dict[str, Any] = {"memory": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    plugin = placing(config_schemas=lambda _self: list(schemas.items()))
    runtime = (
        builder(plugins={"m": plugin})
        .with_agent_spec(spec(plugin_ids=["m"], sections={"memory": {"size": 3}}))
        .build()
    )
    before = runtime.resolve("a")
    assert runtime.resolve("a").core is before.core  # while nothing changes, nothing is made anew

    schemas["memory"]["properties"]["size"]["type"] = "string"  # in place, as a plugin may do it
    with pytest.raises(InvalidPluginConfig, match=r"memory\.size"):
        runtime.resolve("a")

    schemas["memory"] = {"type": "object"}
    assert runtime.resolve("a").warnings == ()
    del schemas["memory"]
    assert "belongs to no plugin" in runtime.resolve("a").warnings[0]


def test_an_unclaimed_section_is_logged_when_the_agent_is_resolved(caplog: pytest.LogCaptureFixture) -> None:
    runtime = builder().with_agent_spec(spec(sections={"memroy": {}})).build()
    for _ in range(3):
        runtime.resolve("a")

    lines = [text for text in caplog.messages if text.startswith("agent_resolved")]
    assert len(lines) == 1
    assert "agent_id='a'" in lines[0] and "'memroy'" in lines[0]


def test_nothing_prints_the_settings_which_may_have_keys_in_them() -> None:
    secret = {"api_key": "sk-very-secret"}
    model = ModelSpec("gpt", "scripted", config=secret)
    spec = AgentSpec("a", "gpt", sections={"config": secret, "retry": {"max_retries": 1}})
    builder = AgentRuntimeBuilder().with_provider("scripted", ScriptedProvider(), config=secret)
    agent = builder.with_model(model).with_agent_spec(spec).build().resolve("a")

    things = [model, spec, agent, agent.provider, agent.core.resolve(dict(agent.config))]
    things.append(RunRequest("a", "hello", config=secret))

    assert agent.config["api_key"] == "sk-very-secret"
    assert [thing for thing in things if "very-secret" in repr(thing)] == []

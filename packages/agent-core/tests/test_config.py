"""Reading a configuration: an error names its key; what is right in it is frozen."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, ConfigError, ConfigTypeError, PluginMutationError, plugin_config
from agent_core.config import config_key, names, read_config
from agent_core.testing import EchoProvider, ScriptedProvider

Case = Callable[..., AbstractContextManager[None]]

CALL = {"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
Ask = Callable[[AgentCore, Any], Any]
ASKING: dict[str, Ask] = {
    "resolve": lambda core, config: core.resolve(config),
    "get_plugins_for_config": lambda core, config: core.get_plugins_for_config(config),
    "explain_plugins": lambda core, config: core.explain_plugins(config),
    "get_ui_schema": lambda core, config: core.get_ui_schema(config),
    "get_completions": lambda core, config: core.get_completions(config, ""),
    "apply_feature_completion": lambda core, config: core.apply_feature_completion(config, "", {}),
    "get_template": lambda core, config: core.get_template(config),
    "get_available_tools": lambda core, config: core.get_available_tools(config),
    "get_tool_schemas": lambda core, config: core.get_tool_schemas(config),
    "execute_tool_calls": lambda core, config: core.execute_tool_calls([CALL], config),
    "iter_tool_messages": lambda core, config: list(core.iter_tool_messages([CALL], config)),
    "stream_tool_call": lambda core, config: list(core.stream_tool_call(CALL, config)),
    "format_tool_call_preview": lambda core, config: core.format_tool_call_preview(CALL, config),
    "get_session_actions": lambda core, config: core.get_session_actions(config),
    "execute_session_action": lambda core, config: core.execute_session_action(
        core.create_session(), config, "plugin", "action", {}
    ),
    "execute_lifecycle_actions": lambda core, config: core.execute_lifecycle_actions(
        core.create_session(), config, "session_create"
    ),
    "core_messages_to_native": lambda core, config: core.core_messages_to_native([], config),
    "send_request": lambda core, config: core.send_request(core.create_session(), config),
    "send_request_stream": lambda core, config: list(core.send_request_stream(core.create_session(), config)),
}
WITHOUT_PROVIDER = [
    "get_ui_schema",
    "get_completions",
    "apply_feature_completion",
    "get_template",
    "get_available_tools",
    "get_tool_schemas",
    "execute_tool_calls",
    "get_session_actions",
    "execute_lifecycle_actions",
]


def echo_core() -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider)
    return core


def test_a_configuration_that_is_no_dict_is_refused_everywhere(case: Case) -> None:
    configs: list[object] = [None, "text", 3, [("provider", "echo")]]
    for config, method in product(configs, ASKING):
        with case(config, method):
            with pytest.raises(ConfigTypeError) as caught:
                ASKING[method](echo_core(), config)

            assert str(caught.value) == f"config must be a dict, not {type(config).__name__}"
            assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("method", WITHOUT_PROVIDER)
def test_a_configuration_is_checked_where_no_provider_is_needed_too(method: str) -> None:
    with pytest.raises(ConfigTypeError, match="config must be a dict, not NoneType"):
        ASKING[method](AgentCore(), None)


NAME_LISTS = [
    "enabled_plugins",
    "disabled_plugins",
    "force_enabled_plugins",
    "allowed_tools",
    "excluded_tools",
]


def test_a_list_of_names_that_is_none_is_refused_with_its_key(case: Case) -> None:
    rows: list[tuple[object, str]] = [
        ("compaction", "must be a list of names, not str"),
        ("", "must be a list of names, not str"),
        (3, "must be a list of names, not int"),
        (False, "must be a list of names, not bool"),
        ({"compaction": True}, "must be a list of names, not dict"),
        ([3], "must contain only names"),
        ([["compaction"]], "must contain only names"),
        ([None], "must contain only names"),
    ]
    for (value, problem), key in product(rows, NAME_LISTS):
        with case(value, problem, key):
            with pytest.raises(ConfigError) as caught:
                echo_core().resolve({key: value})

            assert caught.value.field == key
            assert str(caught.value) == f"config[{key!r}] {problem}"


@pytest.mark.parametrize("key", ["provider", "model"])
@pytest.mark.parametrize("value", [3, ["echo"], {"name": "echo"}, b"echo", True])
def test_a_provider_or_model_that_is_no_string_is_refused_with_its_key(key: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        echo_core().resolve({key: value})

    assert caught.value.field == key
    assert str(caught.value) == f"config[{key!r}] must be a string, not {type(value).__name__}"


@pytest.mark.parametrize(
    ("config", "key", "problem"),
    [
        (
            {"tool_timeout": "5"},
            "tool_timeout",
            "config['tool_timeout'] must be a number of seconds, not str",
        ),
        (
            {"tool_timeout": True},
            "tool_timeout",
            "config['tool_timeout'] must be a number of seconds, not bool",
        ),
        (
            {"tool_timeouts": 5},
            "tool_timeouts",
            "config['tool_timeouts'] must be a dict from tool to seconds, not int",
        ),
        (
            {"tool_timeouts": {"run": "5"}},
            "tool_timeouts",
            "config['tool_timeouts']['run'] must be a number of seconds, not str",
        ),
    ],
)
def test_a_timeout_that_is_no_number_is_refused_with_its_key(
    config: dict[str, Any], key: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        echo_core().resolve(config)

    assert (caught.value.field, str(caught.value)) == (key, problem)


@pytest.mark.parametrize(
    "config",
    [
        dict.fromkeys([*NAME_LISTS, "provider", "model", "tool_timeout", "tool_timeouts"]),
        {"tool_timeout": 2.5, "tool_timeouts": {"run": 1, "wait": None}},
        {"disabled_plugins": (), "enabled_plugins": set(), "force_enabled_plugins": frozenset()},
        {"anything": {"else": [object()]}, 3: "a key that is not a string"},
        MappingProxyType({"provider": "echo"}),
    ],
)
def test_what_is_left_open_or_is_not_the_cores_own_is_accepted(config: dict[str, Any]) -> None:
    assert echo_core().resolve(config).provider.name == "echo"


def test_names_come_as_a_list_whatever_they_were() -> None:
    assert names({"enabled_plugins": ("a", "b")}, "enabled_plugins") == ["a", "b"]
    assert names({"enabled_plugins": None}, "enabled_plugins") == []
    assert names({}, "enabled_plugins") == []


def test_a_configuration_is_frozen_to_its_depth_and_the_callers_own_is_left_alone() -> None:
    config = {"provider": "echo", "nested": {"list": [{"deep": 1}]}}
    frozen = read_config(config)
    config["nested"]["list"].append("later")  # type: ignore[index]

    assert frozen == {"provider": "echo", "nested": {"list": [{"deep": 1}]}}
    with pytest.raises(TypeError):
        frozen["nested"]["list"][0]["deep"] = 2


def test_a_plugin_that_changes_the_configuration_in_place_is_named() -> None:
    class Meddling:
        name = "meddling"

        def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
            config["nested"]["value"] = 2
            return state

    core = echo_core()
    core.register_feature(Meddling)
    config = {"nested": {"value": 1}}

    with pytest.raises(PluginMutationError, match="'meddling', hook 'init'"):
        core.send_request(core.create_session(), config)
    assert config == {"nested": {"value": 1}}


class Secret:
    """Prints like every other secret."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret(***)"


class Unhashable(Secret):
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [Secret, Unhashable])
def test_two_objects_that_print_alike_are_never_taken_for_each_other(kind: type[Secret]) -> None:
    provider = ScriptedProvider(["one", "two", "three"])
    core = AgentCore()
    core.register_provider(provider)
    keys = [kind("alice"), kind("bob")]
    for key in (*keys, keys[0]):
        core.send_request(core.create_session(), {"auth": {"key": key}})

    assert [request.config["auth"]["key"].value for request in provider.requests] == ["alice", "bob", "alice"]


def test_configurations_have_one_key_only_if_they_are_equal() -> None:
    secret = Unhashable("s")

    assert config_key({"a": 1, "b": [2]}) == config_key({"b": (2,), "a": 1})
    assert config_key(MappingProxyType({"a": 1})) == config_key({"a": 1})
    assert config_key({"at": Path("home")}) == config_key({"at": Path("home")})
    assert config_key({"key": secret}) == config_key({"key": secret})
    assert config_key({"key": {"a", "b"}}) == config_key({"key": {"b", "a"}})
    assert config_key({"big": 2**80}) == config_key({"big": 2**80})
    assert config_key({"key": secret}) != config_key({"key": Unhashable("s")})
    assert config_key({"a": secret, "b": None}) != config_key({"a": None, "b": secret})
    assert config_key({"at": Path("home")}) != config_key({"at": Path("away")})
    assert config_key({"at": Path("home")}) != config_key({"at": "home"})
    assert config_key({"big": 2**80}) != config_key({"big": 2**80 + 1})


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
configs = st.dictionaries(st.text(max_size=2), plain, max_size=3)


def exact(value: object) -> object:
    """Return the value with its types, since Python says that True equals 1."""
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    return [exact(item) for item in value] if isinstance(value, list) else (type(value), value)


@settings(max_examples=40)
@given(configs, configs)
def test_keys_are_equal_exactly_where_plain_configurations_are(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    assert (config_key(first) == config_key(second)) == (exact(first) == exact(second))
    assert config_key(first) == config_key(dict(reversed(first.items())))


class Described:
    """A feature that says which keys it reads."""

    name = "described"
    version = "1"

    def get_config_schema(self) -> dict[str, Any]:
        return {"temperature": {"type": "number"}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"temprature": 1}, ["config['temprature'] is not known: did you mean 'temperature'?"]),
        ({"exclude_tools": []}, ["config['exclude_tools'] is not known: did you mean 'excluded_tools'?"]),
        ({"temperature": 1, "excluded_tools": [], "something_else_altogether": 1}, []),
    ],
)
def test_a_key_that_looks_like_a_known_one_is_reported_with_it(
    config: dict[str, Any], expected: list[str]
) -> None:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_feature(Described)

    assert core.check_config(config) == expected


# Sections of plugins


class Sectioned:
    """Notes the configuration that each of its hooks is given."""

    version = "1"

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: dict[str, dict[str, Any]] = {}

    def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        self.seen["init"] = config
        return state

    def is_enabled(self, config: dict[str, Any]) -> bool | None:
        self.seen["is_enabled"] = config
        return None

    def get_tags(self, config: dict[str, Any]) -> list[str]:
        self.seen["get_tags"] = config
        return []

    def get_models(self, config: dict[str, Any], models: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.seen["get_models"] = config
        return models

    def get_ui_elements(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        self.seen["get_ui_elements"] = config
        return []

    def prepare_tools(self, tools: list[Any], *, config: dict[str, Any]) -> list[Any]:
        self.seen["prepare_tools"] = config
        return tools

    def get_template(self, config: dict[str, Any]) -> str:
        self.seen["get_template"] = config
        return ""

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": "look"}]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: Any, context: dict[str, Any]
    ) -> dict[str, Any]:
        self.seen["context"] = context["config"]
        return {}


class SectionedTool:
    name = "tool"

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]

    def execute_tool(self, name: str, arguments: Any, state: dict[str, Any]) -> dict[str, Any]:
        self.seen = state["config"]
        return {"success": True, "result": "done"}


def test_a_plugin_finds_the_settings_of_its_section_and_never_those_of_another() -> None:
    one, two, tool = Sectioned("one"), Sectioned("two"), SectionedTool()
    core = echo_core()
    for feature in (one, two):
        core.register_feature(feature)
    core.register_tool(tool)
    config = {"one": {"enabled": True, "depth": 1}, "two": {"enabled": False}, "tool": {"depth": 9}}

    core.send_request(core.add_message(core.create_session(), "user", "hello"), config)
    core.get_ui_schema(config)
    core.get_template(config)
    core.execute_tool_calls([CALL], config)

    assert set(one.seen) == {
        "init",
        "is_enabled",
        "get_tags",
        "get_models",
        "get_ui_elements",
        "prepare_tools",
        "get_template",
    }
    for seen in one.seen.values():
        assert (seen["enabled"], seen["depth"], seen["two"]) == (True, 1, {"enabled": False})
    for seen in two.seen.values():
        assert seen["enabled"] is False
        assert "depth" not in seen
    assert (tool.seen["depth"], tool.seen.get("enabled")) == (9, None)


def test_what_a_request_sets_by_its_key_counts_before_a_section() -> None:
    one = Sectioned("one")
    core = echo_core()
    core.register_feature(one)

    core.send_request(
        core.add_message(core.create_session(), "user", "hello"), {"one": {"depth": 1}, "depth": 2}
    )

    assert (one.seen["init"]["depth"], one.seen["init"]["one"]) == (2, {"depth": 1})


def test_the_configuration_in_a_context_is_the_one_that_all_plugins_share() -> None:
    one = Sectioned("one")
    core = echo_core()
    core.register_feature(one)
    config = {"one": {"depth": 1}}

    core.execute_session_action(core.create_session(), config, "one", "look", {})

    assert one.seen["context"] == config
    assert plugin_config(one.seen["context"], "one") == {"one": {"depth": 1}, "depth": 1}


def test_the_name_of_a_plugin_is_no_misspelt_key() -> None:
    class Near(Sectioned):
        def get_config_schema(self) -> dict[str, Any]:
            return {"sections": {"type": "integer"}}

    core = echo_core()
    core.register_feature(Near("section"))

    assert core.resolve({"section": {"sections": 1}}).warnings == ()


class Seeing(Described):
    """A feature that relies on its defaults."""

    name = "seeing"

    def __init__(self, depth: int | None = 3, name: str = "seeing") -> None:
        self.name = name
        self.depth = depth
        self.enabled_with: Any = None

    def get_config_schema(self) -> dict[str, Any]:
        return {"depth": {"type": "integer", "default": self.depth}, "model": {"default": "not ours to fill"}}

    def is_enabled(self, config: dict[str, Any], tags: list[str]) -> bool | None:
        self.enabled_with = config.get("depth")
        return None


def seen_config(config: dict[str, Any], *features: Any) -> dict[str, Any]:
    core, provider = AgentCore(), ScriptedProvider(["ok"])
    core.register_provider(provider)
    for feature in features:
        core.register_feature(feature)
    core.send_request(core.add_message(core.create_session(), "user", "hello"), config)
    return {key: value for key, value in provider.requests[0].config.items() if key != "tools"}


def test_a_declared_default_is_there_for_hooks_and_a_set_value_wins() -> None:
    seeing = Seeing()

    assert seen_config({}, seeing) == {"depth": 3}
    assert seeing.enabled_with == 3
    assert seen_config({"depth": 5}, Seeing()) == {"depth": 5}
    assert seen_config({"depth": None}, Seeing()) == {"depth": None}
    assert seen_config({}, Seeing(depth=None)) == {}


def test_the_default_of_a_plugin_that_is_off_is_not_filled_in() -> None:
    assert seen_config({"disabled_plugins": ["seeing"]}, Seeing()) == {"disabled_plugins": ["seeing"]}


def test_two_defaults_for_one_key_are_not_filled_in_and_both_owners_are_named() -> None:
    features = (Seeing(3, "one"), Seeing(4, "two"))
    core = AgentCore()
    core.register_provider(EchoProvider)
    for feature in features:
        core.register_feature(feature)

    [warning] = core.resolve({}).warnings
    assert warning.startswith("config['depth'] has the default 3 in plugin 'one' and 4 in plugin 'two'")
    assert seen_config({}, *features) == {}
    assert core.resolve({"depth": 1}).warnings == ()


def test_a_default_does_not_hide_what_a_section_says() -> None:
    seeing = Seeing()
    config = seen_config({"seeing": {"depth": 7}}, seeing)

    assert "depth" not in config
    assert plugin_config(config, "seeing")["depth"] == 7
    assert seeing.enabled_with == 7

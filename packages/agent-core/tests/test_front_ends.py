"""What front ends ask for: settings, elements to show, completions, templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentCore, PluginError, PluginMutationError, tool
from agent_core.testing import EchoProvider

if TYPE_CHECKING:
    from collections.abc import Callable

Dicts = list[dict[str, Any]]


def plugin(name: str, *, base: type = object, **members: Any) -> type:
    """Return a plugin class; members that are not functions are what the hook of that name returns."""
    hooks = {
        key: value if callable(value) or key == "priority" else _returning(value)
        for key, value in members.items()
    }
    return type(name, (base,), {"name": name, "version": "1", **hooks})


def _returning(value: Any) -> Callable[..., Any]:
    def hook(self: object, *arguments: Any) -> Any:
        return value

    return hook


def _failing(self: object, *arguments: Any) -> Any:
    raise LookupError("no idea")


def provider(name: str = "echo", **members: Any) -> type:
    return plugin(name, base=EchoProvider, **members)


def tool_plugin(name: str, **members: Any) -> type:
    return plugin(name, get_tool_schemas=[], execute_tool=lambda self, tool_name, arguments: {}, **members)


def core_with(*features: type, main: type | None = None, extensions: Any = (), tools: Any = ()) -> AgentCore:
    core = AgentCore()
    core.register_provider(main or provider(), list(extensions))
    for feature in features:
        core.register_feature(feature)
    for found in tools:
        core.register_tool(found)
    return core


def element(name: str, **fields: Any) -> dict[str, Any]:
    return {"ui_type": "panel", "id": name, **fields}


# get_config_schema


def test_every_plugin_and_key_has_one_entry_in_the_order_of_registration() -> None:
    core = core_with(
        plugin("notes", get_config_schema={"depth": {"type": "integer", "default": 3}}),
        main=provider(get_config_schema={"api_key": {"type": "string", "required": True}, "depth": {}}),
        extensions=[plugin("cache", get_config_schema={"prompt_cache_key": {"type": "string"}})],
        tools=[tool_plugin("shell", get_config_schema={"cwd": {"type": "string"}})],
    )

    assert core.get_config_schema() == [
        {"key": "api_key", "plugin": "echo", "type": "string", "required": True},
        {"key": "depth", "plugin": "echo"},
        {"key": "prompt_cache_key", "plugin": "cache", "type": "string"},
        {"key": "depth", "plugin": "notes", "type": "integer", "default": 3},
        {"key": "cwd", "plugin": "shell", "type": "string"},
    ]


def test_plugins_that_are_off_have_their_settings_listed_all_the_same() -> None:
    off = plugin("off", get_config_schema={"on": {"type": "boolean"}}, required_tags=["never"])

    assert [entry["plugin"] for entry in core_with(off).get_config_schema()] == ["off"]


def test_keys_that_change_are_described_as_they_are_now() -> None:
    schema: dict[str, Any] = {"depth": {"type": "integer", "default": 3}}
    notes = plugin("notes", get_config_schema=schema)
    core = core_with(notes)
    first = core.get_config_schema()
    schema["depth"]["default"] = 4
    schema["width"] = {}
    second = core.get_config_schema()
    del schema["width"]

    assert [entry.get("default") for entry in first] == [3]
    assert [(entry["key"], entry.get("default")) for entry in second] == [("depth", 4), ("width", None)]
    assert [entry["key"] for entry in core_with(notes).get_config_schema()] == ["depth"]


def test_a_plugin_may_name_key_and_plugin_itself() -> None:
    schema = {"depth": {"key": "notes.depth", "plugin": "notes family"}}

    assert core_with(plugin("notes", get_config_schema=schema)).get_config_schema() == [
        {"key": "notes.depth", "plugin": "notes family"}
    ]


def test_what_describes_no_key_is_left_out() -> None:
    schema = {"": {"type": "string"}, 5: {"type": "string"}, "enabled": True, "depth": {"type": "integer"}}

    entries = core_with(plugin("notes", get_config_schema=schema)).get_config_schema()

    assert [entry["key"] for entry in entries] == ["depth"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "must return a dict, returned None"),
        ([{"key": "depth"}], "must return a dict, returned list"),
        (_failing, "raised LookupError: no idea"),
    ],
)
def test_a_schema_that_cannot_be_read_costs_only_its_own_settings(
    answer: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = plugin("good", get_config_schema={"depth": {}})
    core = core_with(plugin("notes", get_config_schema=answer), good)

    for _ in range(2):
        assert core.get_config_schema() == [{"key": "depth", "plugin": "good"}]

    expected = {"plugin": "notes", "hook": "get_config_schema", "problem": problem}
    assert core.get_plugin_problems({}) == [expected]
    assert core.check_config({}) == [f"Plugin 'notes', hook 'get_config_schema': {problem}"]
    assert [text for text in caplog.messages if text.startswith("plugin_problem")] == [
        f"plugin_problem plugin='notes' hook='get_config_schema' problem={problem!r}"
    ]


def test_without_plugins_there_are_no_settings() -> None:
    assert AgentCore().get_config_schema() == []


# get_ui_schema


def test_elements_come_from_provider_extensions_features_and_tools_in_this_order() -> None:
    core = core_with(
        plugin("late", get_ui_elements=[element("5")], priority=200),
        plugin("early", get_ui_elements=[element("4")], priority=1),
        main=provider(get_ui_elements=[element("1"), element("2")]),
        extensions=[plugin("cache", get_ui_elements=[element("3")])],
        tools=[
            tool_plugin("last", get_ui_elements=[element("7")], priority=200),
            tool_plugin("shell", get_ui_elements=[element("6")]),
        ],
    )

    shown = core.get_ui_schema({})

    assert [found["id"] for found in shown] == ["1", "2", "3", "4", "5", "6", "7"]
    assert [found["plugin"] for found in shown] == ["echo", "echo", "cache", "early", "late", "shell", "last"]


@pytest.mark.parametrize("ui_type", [None, "", 7])
def test_an_element_of_no_type_is_a_setting(ui_type: Any) -> None:
    core = core_with(
        plugin("notes", get_ui_elements=[{"key": "depth", "ui_type": ui_type, "label": "Depth"}])
    )

    assert core.get_ui_schema({}) == [
        {"plugin": "notes", "key": "depth", "ui_type": "config", "label": "Depth"}
    ]


def test_an_element_may_name_another_plugin() -> None:
    core = core_with(plugin("notes", get_ui_elements=[element("1", plugin="family")]))

    assert core.get_ui_schema({})[0]["plugin"] == "family"


@pytest.mark.parametrize("ui_type", ["session_action", "message_action"])
def test_an_element_that_runs_an_action_says_who_owns_it(ui_type: str) -> None:
    button = {"ui_type": ui_type, "action_id": "do"}
    core = core_with(
        plugin("notes", get_ui_elements=[button, {**button, "action_owner": "application"}]),
        main=provider(get_ui_elements=[button]),
        extensions=[plugin("cache", get_ui_elements=[button])],
        tools=[tool_plugin("shell", get_ui_elements=[button])],
    )

    owners = [(found["plugin"], found.get("action_owner")) for found in core.get_ui_schema({})]

    assert owners == [
        ("echo", None),
        ("cache", "provider_extension"),
        ("notes", "feature"),
        ("notes", "application"),
        ("shell", None),
    ]


@pytest.mark.parametrize("fields", [{"ui_type": "panel", "action_id": "do"}, {"ui_type": "session_action"}])
def test_other_elements_have_no_owner(fields: dict[str, Any]) -> None:
    assert "action_owner" not in core_with(plugin("notes", get_ui_elements=[fields])).get_ui_schema({})[0]


def test_settings_stand_behind_everything_else_and_of_one_key_the_last_counts() -> None:
    core = core_with(
        plugin("notes", get_ui_elements=[{"key": "model", "label": "Better"}, element("panel")]),
        main=provider(
            get_ui_elements=[
                {"key": "model", "label": "Model"},
                {"key": "effort", "ui_type": "config"},
                {"ui_type": "config", "label": "no key"},
            ]
        ),
    )

    shown = core.get_ui_schema({})

    assert [(found.get("key"), found.get("label"), found["plugin"]) for found in shown] == [
        (None, "no key", "echo"),
        (None, None, "notes"),
        ("model", "Better", "notes"),
        ("effort", None, "echo"),
    ]


def _all_arguments(self: Any, config: Any, tags: Any, models: Any, context: Any) -> Dicts:
    return [{"config": config, "tags": tags, "models": models, "provider": context["provider"]}]


def _without_context(self: Any, config: Any, tags: Any, models: Any) -> Dicts:
    return [{"config": config, "tags": tags, "models": models, "provider": "echo"}]


def _with_context_only(self: Any, config: Any, ui_context: Any) -> Dicts:
    return [{"config": config, **{key: ui_context[key] for key in ("tags", "models", "provider")}}]


def _context_by_name(self: Any, config: Any, *, context: Any) -> Dicts:
    return _with_context_only(self, config, context)


@pytest.mark.parametrize("hook", [_all_arguments, _without_context, _with_context_only, _context_by_name])
def test_elements_may_depend_on_configuration_tags_models_and_context(hook: Any) -> None:
    [shown] = core_with(plugin("notes", get_ui_elements=hook)).get_ui_schema({"model": "echo"})

    assert shown == {
        "plugin": "notes",
        "ui_type": "config",
        "config": {"model": "echo"},
        "tags": ["streaming"],
        "models": [{"id": "echo", "name": "Echo"}],
        "provider": "echo",
    }


def test_a_hook_that_takes_the_configuration_alone_will_do() -> None:
    def elements(self: Any, config: dict[str, Any]) -> Dicts:
        return [element(config["wanted"])]

    core = core_with(plugin("notes", get_ui_elements=elements))

    assert core.get_ui_schema({"wanted": "x"})[0]["id"] == "x"


def test_the_context_lists_the_tools() -> None:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return command

    def elements(self: Any, config: Any, context: Any) -> Dicts:
        return [
            {"tools": [t.name for t in context["tools"]], "all": [t.name for t in context["available_tools"]]}
        ]

    core = core_with(plugin("notes", get_ui_elements=elements), tools=[shell])

    [shown] = core.get_ui_schema({"excluded_tools": ["shell"]})

    assert (shown["tools"], shown["all"]) == ([], ["shell"])


def test_plugins_that_are_off_show_nothing() -> None:
    core = core_with(
        plugin("off", get_ui_elements=[element("off")], required_tags=["never"]),
        plugin("on", get_ui_elements=[element("on")], required_tags=["streaming"]),
        extensions=[plugin("cache", get_ui_elements=[element("cache")])],
    )

    assert [found["id"] for found in core.get_ui_schema({"disabled_plugins": ["cache"]})] == ["on"]


def test_without_a_provider_features_and_tools_are_still_shown() -> None:
    core = AgentCore()
    core.register_feature(plugin("notes", get_ui_elements=[element("feature")]))
    core.register_tool(tool_plugin("shell", get_ui_elements=[element("tool")]))

    assert [found["id"] for found in core.get_ui_schema({})] == ["feature", "tool"]


def test_without_plugins_nothing_is_shown() -> None:
    assert AgentCore().get_ui_schema({}) == []


@pytest.mark.parametrize("core", [AgentCore(), core_with()], ids=["no plugins", "a provider"])
def test_the_configuration_is_a_dict(core: AgentCore) -> None:
    for question in (
        core.get_ui_schema,
        lambda config: core.get_completions(config, "/"),
        lambda config: core.apply_feature_completion(config, "/", {}),
        core.get_template,
    ):
        with pytest.raises(TypeError, match="config must be a dict"):
            question([])  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "must return a list of dicts, returned None"),
        ({"id": "x"}, "must return a list of dicts, returned dict"),
        ([element("1"), "junk"], "must return a list of dicts, returned str"),
        (_failing, "raised LookupError: no idea"),
    ],
)
def test_elements_that_cannot_be_shown_cost_only_themselves(answer: Any, problem: str) -> None:
    good = plugin("good", get_ui_elements=[element("2")])
    core = core_with(plugin("notes", get_ui_elements=answer), good)

    shown = [(one["plugin"], one["id"]) for one in core.get_ui_schema({})]

    assert shown == [*[("notes", "1")] * isinstance(answer, list), ("good", "2")]
    expected = {"plugin": "notes", "hook": "get_ui_elements", "problem": problem}
    assert core.get_plugin_problems({}) == [expected]


def test_a_front_end_may_change_what_it_got_without_changing_the_plugin() -> None:
    constant = [{"key": "model", "options": [{"id": "a"}], "default": ("x",)}]
    core = core_with(
        plugin(
            "notes",
            get_ui_elements=constant,
            get_config_schema={"k": {"enum": ["a"]}},
            get_completions=constant,
        )
    )

    core.get_ui_schema({})[0]["options"][0]["id"] = "changed"
    core.get_config_schema()[0]["enum"].append("changed")
    core.get_completions({}, "")[0]["options"].clear()

    assert core.get_ui_schema({})[0]["options"] == [{"id": "a"}]
    assert core.get_config_schema()[0]["enum"] == ["a"]
    assert core.get_completions({}, "")[0]["options"] == [{"id": "a"}]


# get_completions


def test_completions_of_all_features_are_collected_in_the_order_of_registration() -> None:
    def commands(self: Any, config: dict[str, Any], text: str) -> Dicts:
        return [{"replacement": f"/{name}", "start": -len(text)} for name in config["commands"]]

    core = core_with(
        plugin("late", get_completions=commands, priority=200),
        plugin("silent"),
        plugin("early", get_completions=[{"replacement": "@file"}], priority=1),
    )

    assert core.get_completions({"commands": ["help", "hello"]}, "/he") == [
        {"replacement": "/help", "start": -3},
        {"replacement": "/hello", "start": -3},
        {"replacement": "@file"},
    ]


@pytest.mark.parametrize("broken", [_failing, None, "word", {"replacement": "x"}])
def test_a_feature_whose_completions_fail_is_passed_over_with_a_warning(
    broken: Any, caplog: pytest.LogCaptureFixture
) -> None:
    core = core_with(
        plugin("one", get_completions=[{"replacement": "a"}]),
        plugin("broken", get_completions=broken),
        plugin("two", get_completions=[{"replacement": "b"}]),
    )

    assert core.get_completions({}, "") == [{"replacement": "a"}, {"replacement": "b"}]
    [warning] = caplog.messages
    assert warning.startswith("completions_failed plugin='broken'")


def test_junk_among_a_features_completions_is_left_out() -> None:
    core = core_with(plugin("notes", get_completions=[{"replacement": "a"}, "junk", {"replacement": "b"}]))

    assert core.get_completions({}, "") == [{"replacement": "a"}, {"replacement": "b"}]


def test_completions_need_no_provider() -> None:
    core = AgentCore()

    assert core.get_completions({}, "x") == []
    core.register_feature(plugin("notes", get_completions=[{"replacement": "a"}]))
    assert core.get_completions({}, "x") == [{"replacement": "a"}]


# apply_feature_completion


def test_the_first_feature_that_makes_something_of_a_completion_has_it() -> None:
    def snippet(self: Any, config: Any, text: str, completion: dict[str, Any]) -> str:
        return f"{text}|{completion['replacement']}|{config['x']}"

    core = core_with(
        plugin("silent"),
        plugin("empty", apply_completion=""),
        plugin("nothing", apply_completion=None),
        plugin("junk", apply_completion=["x"]),
        plugin("caring", apply_completion=snippet, priority=200),
        plugin("too_late", apply_completion="never", priority=1),
    )

    assert core.apply_feature_completion({"x": 1}, "/he", {"replacement": "/help"}) == "/he|/help|1"


def test_a_completion_that_no_feature_cares_for_becomes_nothing() -> None:
    assert AgentCore().apply_feature_completion({}, "text", {}) == ""
    assert core_with(plugin("empty", apply_completion="")).apply_feature_completion({}, "text", {}) == ""


def test_a_feature_that_fails_to_apply_a_completion_is_named() -> None:
    with pytest.raises(PluginError, match="LookupError") as raised:
        core_with(plugin("broken", apply_completion=_failing)).apply_feature_completion({}, "", {})

    assert (raised.value.plugin, raised.value.hook) == ("broken", "apply_completion")


def test_a_feature_cannot_change_the_completion_that_it_is_lent() -> None:
    def change(self: Any, config: Any, text: str, completion: dict[str, Any]) -> str:
        completion["meta"].append("x")
        return "done"

    completion: dict[str, Any] = {"meta": []}

    with pytest.raises(PluginMutationError, match="notes"):
        core_with(plugin("notes", apply_completion=change)).apply_feature_completion({}, "", completion)
    assert completion == {"meta": []}


# get_template


def test_the_template_is_that_of_the_first_feature_that_has_one() -> None:
    def greeting(self: Any, config: dict[str, Any]) -> str:
        return f"Dear {config['who']}"

    core = core_with(
        plugin("silent"),
        plugin("empty", get_template=""),
        plugin("letters", get_template=greeting, priority=200),
        plugin("other", get_template="Hi", priority=1),
    )

    assert core.get_template({"who": "Ada"}) == "Dear Ada"


def test_without_a_template_there_is_an_empty_one() -> None:
    assert AgentCore().get_template({}) == ""
    assert core_with(plugin("silent")).get_template({}) == ""


@pytest.mark.parametrize("answer", [None, 5, ["Dear"], _failing])
def test_a_template_that_is_no_text_names_its_feature(answer: Any) -> None:
    with pytest.raises(PluginError) as raised:
        core_with(plugin("letters", get_template=answer)).get_template({})

    assert (raised.value.plugin, raised.value.hook) == ("letters", "get_template")

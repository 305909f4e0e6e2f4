"""What an application has where its settings say little."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app import defaults
from agent_app.defaults import DEFAULT_AGENT, READING, complete_config, is_embedded, read_model
from agent_core import ConfigError


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "installed_names", lambda: {"files_tool", "session_title", "mine"})


def test_without_settings_there_is_an_assistant_with_the_embedded_model_and_no_tools() -> None:
    config = complete_config({})

    assert list(config["agents"]) == [config["default_agent"]] == [DEFAULT_AGENT]
    assert config["models"] == {"local": {"provider": "local_llama", "model": ""}}
    agent = config["agents"][DEFAULT_AGENT]
    assert agent["more_plugins"] == ["session_title"]
    assert agent["sections"]["session_title"] == {"title_model": False}


def test_a_larger_model_has_the_installed_tools_and_is_asked_for_titles_if_wanted() -> None:
    agent = complete_config({"model": "openai:x"}, titles=True)["agents"][DEFAULT_AGENT]
    said = {"model": "openai:x", "plugins": {"session_title": {"title_model": False}}}

    assert agent["more_plugins"] == ["files_tool", "session_title"]
    assert agent["sections"]["session_title"] == {"title_model": True}
    settings = complete_config(said, titles=True)["agents"][DEFAULT_AGENT]["sections"]["session_title"]
    assert settings == {"title_model": False}


def test_the_setting_plugin_ids_replaces_the_usual_ones_and_must_name_installed_plugins() -> None:
    assert complete_config({"plugin_ids": ["mine"]})["agents"][DEFAULT_AGENT]["more_plugins"][0] == "mine"
    with pytest.raises(ConfigError, match="there is no plugin 'mien', which the setting plugin_ids names; "):
        complete_config({"plugin_ids": ["mien"]})


@pytest.mark.parametrize("setting", ["plugin_ids", "more_plugins"])
def test_a_plugin_of_ours_that_is_not_installed_is_named_by_its_package(setting: str) -> None:
    with pytest.raises(ConfigError, match="install it with `pip install keelwork-memory-feature`"):
        complete_config({setting: ["memory"]})
    with pytest.raises(ConfigError, match="install it with `pip install keelwork-files-tool`"):
        complete_config({"agents": {"a": {"more_plugins": ["files_undo"]}}})


def test_an_agent_that_names_its_plugins_gets_no_others() -> None:
    config = complete_config({"agents": {"a": {"plugin_ids": []}, "b": {"model": "gemini:y"}}})

    assert "more_plugins" not in config["agents"]["a"]
    assert config["default_agent"] == "a"
    assert config["models"]["gemini:y"] == {"provider": "gemini", "model": "y"}


def test_calls_that_only_read_need_no_approval_unless_everything_else_is_denied() -> None:
    assert complete_config({})["permissions"] == {"default": "ask", "allow": [*READING]}
    strict = {"default": "deny", "allow": ["x"]}
    assert complete_config({"permissions": strict})["permissions"] == strict


def test_names_of_models() -> None:
    assert read_model("openai:gpt") == {"provider": "openai_responses", "model": "gpt"}
    assert read_model("local") == {"provider": "local_llama", "model": ""}
    assert [is_embedded(name) for name in ("local", "local_llama:", "openai:x")] == [True, True, False]


def test_installed_plugins_are_those_that_may_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("AGENT_LOAD_PLUGINS", "no_such_plugin")

    assert defaults.installed_names() == set()


def test_a_declared_assistant_changes_single_fields_of_the_built_in_one() -> None:
    built_in = complete_config({})["agents"][DEFAULT_AGENT]
    declared = complete_config({"agents": {DEFAULT_AGENT: {"max_rounds": 7}}})["agents"][DEFAULT_AGENT]

    assert built_in["max_rounds"] == 200
    assert declared == {**built_in, "max_rounds": 7}


@pytest.mark.parametrize(
    ("given", "types"),
    [
        ([{"type": "repeated_calls", "count": 9}], ["repeated_calls", "cost_budget"]),
        ([{"type": "timeout", "seconds": 60}], ["timeout", "repeated_calls", "cost_budget"]),
        ([], []),
    ],
)
def test_whoever_changes_one_condition_of_the_assistant_keeps_the_others(
    given: list[dict[str, Any]], types: list[str]
) -> None:
    declared = complete_config({"agents": {DEFAULT_AGENT: {"stop_conditions": given}}})["agents"]

    conditions = declared[DEFAULT_AGENT]["stop_conditions"]
    assert conditions[: len(given)] == given
    assert [one["type"] for one in conditions] == types


def test_an_agent_of_another_name_and_one_that_lives_elsewhere_are_as_they_are_declared() -> None:
    agents = {"helper": {}, DEFAULT_AGENT: {"endpoint": "https://example.org"}}
    declared = complete_config({"agents": agents})["agents"]

    assert not any("system_prompt" in agent or "max_rounds" in agent for agent in declared.values())


def test_an_agent_may_name_its_provider_and_model_apart() -> None:
    values = {
        "agents": {
            "flat": {"provider": "anthropic", "model": "claude-x", "summarization": {"agent_id": "flat"}},
            "declared": {"provider": "anthropic", "model": "mine"},
        },
        "models": {"mine": {"provider": "anthropic", "model": "claude-y"}},
    }

    config = complete_config(values)

    assert [agent["model"] for agent in config["agents"].values()] == ["anthropic:claude-x", "mine"]
    assert config["models"]["anthropic:claude-x"] == {"provider": "anthropic", "model": "claude-x"}
    assert config["agents"]["flat"]["summarization"] == {"agent_id": "flat"}
    assert not any("provider" in agent for agent in config["agents"].values())

"""The configuration of an application: read once, checked at the start."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app import AgentApplication, StoreError, StoreUnavailable
from agent_app.agents import build_agent_config, choose_agent, resolve_request_config
from agent_core import AgentError, ArgumentError, ConfigError
from agent_core.testing import ScriptedProvider
from agent_runtime import BuildError

MODELS = {"m": {"provider": "scripted"}}


def open_app(config: Any, *plugins: Any, **more: Any) -> AgentApplication:
    return AgentApplication(config, plugins=[ScriptedProvider(["hi"]), *plugins], installed=False, **more)


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"agent": {}}, "'agents'"),
        ({"default": "a"}, "default_agent"),
        ({1: 2}, "1"),
        ([], "mapping"),
        (None, "mapping"),
        ({"agents": []}, "agents must be"),
        ({"agents": {"a": "m"}}, "agents.a"),
        ({"models": {"m": "gpt"}}, "models.m"),
        ({"plugins": "all"}, "plugins"),
        ({"permissions": "ask"}, "permissions"),
        ({"agents": {"alpha": {"model": "m"}}, "models": MODELS, "default_agent": "alfa"}, "'alpha'"),
    ],
)
def test_a_configuration_that_is_none_is_refused_with_what_was_meant(config: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        open_app(config)


def test_an_agent_that_cannot_run_is_told_at_the_start() -> None:
    with pytest.raises(BuildError, match="nowhere"):
        open_app({"agents": {"a": {"model": "nowhere"}}, "models": MODELS})
    with pytest.raises(BuildError, match="systemprompt"):
        open_app({"agents": {"a": {"model": "m", "systemprompt": "x"}}, "models": MODELS})


def test_without_agents_sessions_can_still_be_kept() -> None:
    with open_app({}) as app:
        session = app.create_session()
        assert app.load_session(session.session_id) == session
        events = list(app.chat(session.session_id, "hello"))
        assert events[-1]["type"] == "error"
        assert "default_agent" in events[-1]["error"]["message"]
        app.delete_session(session.session_id)


def test_which_agent_is_meant() -> None:
    agents: dict[str, Any] = {"agents": {"a": {}, "b": {}}}

    assert choose_agent({"agents": {"a": {}}}, None) == "a"
    assert choose_agent(agents, None) is None
    assert choose_agent({**agents, "default_agent": "b"}, None) == "b"
    assert choose_agent(agents, "a") == "a"
    with pytest.raises(ArgumentError, match="not declared"):
        choose_agent(agents, "c")


def test_a_session_of_an_agent_that_is_gone_belongs_to_the_default() -> None:
    with open_app({"agents": {"a": {"model": "m"}}, "models": MODELS}) as app:
        session = app.create_session()
        app.save_session(session.with_metadata({"agent_id": "gone"}))

        assert list(app.chat(session.session_id, "hello"))[-1]["type"] == "final"


def test_settings_are_laid_over_each_other() -> None:
    assert resolve_request_config({"a": 1, "b": 1, "c": 1}, {"b": 2, "c": 2}, {"c": 3}) == {
        "a": 1,
        "b": 2,
        "c": 3,
    }
    assert resolve_request_config({"a": 1}, None, None) == {"a": 1}
    assert build_agent_config({"a": 1}, "x") == {"a": 1, "agent_id": "x"}


def test_a_provider_gets_its_settings_from_the_configuration() -> None:
    config = {"agents": {"a": {"model": "m"}}, "models": MODELS, "plugins": {"scripted": {"top_p": 0.5}}}
    with open_app(config) as app:
        core, base, _ = app.update_agent("a", app.create_session_ephemeral())
        assert base["top_p"] == 0.5
        assert base["agent_id"] == "a"
        assert hasattr(core, "send_request")
        assert app.problems == ()


def test_settings_of_a_plugin_that_is_not_there_are_told() -> None:
    with open_app({"plugins": {"scriptd": {"top_p": 0.5}}}) as app:
        [problem] = app.problems
        assert problem.plugin == "scriptd"
        assert "'scripted'" in problem.reason


def test_a_plugin_that_is_off_by_itself_takes_part_only_where_it_is_named() -> None:
    class Shy:
        name = "shy"
        version = "1"
        default_enabled = False

        def get_actions(self, state: Any) -> list[dict[str, Any]]:
            return [{"id": "hide", "label": "Hide", "inputs": {}}]

        def execute_action(self, action_id: str, session: Any, native: Any, *_: Any) -> dict[str, Any]:
            return {"native_messages": native}

    agents = {"a": {"model": "m"}, "b": {"model": "m", "plugin_ids": ["shy"]}}
    with open_app({"agents": agents, "models": MODELS, "default_agent": "a"}, Shy) as app:
        without, named = app.create_session("a"), app.create_session("b")
        assert app.get_actions(without.session_id) == []
        assert [one["id"] for one in app.get_actions(named.session_id)] == ["hide"]


@pytest.mark.parametrize("url", ["", "mysql://host/name", "sqlite", "/tmp/sessions.db"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(AgentError):
        open_app({}, store=url)


def test_a_store_that_cannot_be_opened_says_where(tmp_path: Any) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match="file") as caught:
        open_app({}, store=f"sqlite:///{blocked}/sessions.db")
    assert isinstance(caught.value, StoreUnavailable)

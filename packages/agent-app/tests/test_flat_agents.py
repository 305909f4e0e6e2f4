"""Agents whose entry is one flat dict of settings, as the platform's pages write them."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app import AgentApplication
from agent_core import ConfigError
from agent_core.testing import EchoProvider, ScriptedProvider
from agent_runtime import BuildError


class MyFeature:
    """The example of the page on feature plugins, as far as it is about settings."""

    name = "my_feature"
    version = "1.0.0"
    priority = 100
    seen: list[dict[str, Any]]
    configs: list[dict[str, Any]]

    def __init__(self) -> None:
        self.seen = []
        self.configs = []

    def get_config_schema(self) -> dict[str, Any]:
        return {
            "enabled": {"type": "boolean", "default": True},
            "max_items": {"type": "integer", "default": 100},
        }

    def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        self.configs.append(config)
        return {**state, "config": config}

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"id": "summarize_range", "label": "Summarize range", "inputs": {"start": {"type": "integer"}}}
        ]

    def get_ui_elements(
        self, config: dict[str, Any], tags: list[str], models: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        if not self._is_enabled(config):
            return []
        return [
            {"ui_type": "session_action", "id": "summarize", "action_id": "summarize_range", "label": "S"}
        ]

    def execute_action(
        self,
        action_id: str,
        session: Any,
        native_messages: list[dict[str, Any]],
        params: dict[str, Any],
        context: dict[str, Any] | None,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        assert context is not None
        base_config = context.get("base_config", context["config"])
        self.seen.append(base_config)
        if not self._is_enabled(base_config):
            error = {"type": "disabled", "message": "Feature is not enabled."}
            return {"native_messages": native_messages, "error": error}
        return {"native_messages": native_messages, "status": "ok"}

    def _is_enabled(self, config: dict[str, Any]) -> bool:
        return bool((config.get("my_feature") or {}).get("enabled", True))


def open_app(agents: dict[str, Any], *plugins: Any, **config: Any) -> AgentApplication:
    plugins = (EchoProvider, *plugins)
    return AgentApplication({"agents": agents, **config}, plugins=plugins, installed=False)


def run_action(app: AgentApplication) -> dict[str, Any]:
    name = app.create_session().session_id
    return app.execute_session_action(name, "my_feature", "summarize_range", {})[1]


def test_an_agent_can_be_written_as_one_flat_dict() -> None:
    entry = {"provider": "echo", "model": "echo", "temperature": 0.5, "summarization": {"agent_id": "x"}}
    with open_app({"default": entry}) as app:
        name = app.create_session().session_id
        events = list(app.chat(name, "hello"))
        _, base_config, _ = app.update_agent("default", app.load_session(name))

    assert events[-1]["type"] == "final"
    assert {key: base_config[key] for key in entry} == entry
    assert base_config["agent_id"] == "default"


def test_a_flat_agent_stands_beside_one_with_a_declared_model() -> None:
    agents = {"flat": {"provider": "echo"}, "declared": {"model": "m", "reasoning": {"effort": "low"}}}
    models = {"m": {"provider": "echo", "model": "echo"}}
    with open_app(agents, models=models, default_agent="flat") as app:
        assert [one["id"] for one in app.list_models()] == ["m", "echo"]
        for name in agents:
            session_id = app.create_session(name).session_id
            assert list(app.chat(session_id, "hello"))[-1]["type"] == "final"
        _, base_config, _ = app.update_agent("declared", app.create_session_ephemeral())
        assert base_config["reasoning"] == {"effort": "low"}


def test_the_agent_called_default_is_the_default() -> None:
    agent = {"provider": "echo", "model": "echo-1"}
    for config, chosen in (
        ({"agents": {"other": agent, "default": agent}}, "default"),
        ({"agents": {"other": agent, "default": agent}, "default_agent": "other"}, "other"),
    ):
        with AgentApplication(config, plugins=[EchoProvider], installed=False) as app:
            session = app.create_session()
            *_, final = app.chat(session.session_id, "hello")

            assert final["type"] == "final"
            assert [one["id"] for one in app.list_agents() if one["default"]] == [chosen]


def test_a_flat_agent_may_name_a_declared_model_of_its_provider() -> None:
    models = {"m": {"provider": "echo", "model": "echo", "config": {"top_p": 0.1}}}
    with open_app({"a": {"provider": "echo", "model": "m"}}, models=models) as app:
        assert [one["id"] for one in app.list_models()] == ["m"]
        _, base_config, _ = app.update_agent("a", app.create_session_ephemeral())
        assert (base_config["model"], base_config["top_p"]) == ("echo", 0.1)


def test_the_feature_of_the_page_is_configured_and_switched_off_as_printed() -> None:
    feature = MyFeature()
    with open_app({"default": {"provider": "echo", "my_feature": {"max_items": 5}}}, feature) as app:
        assert run_action(app) == {"status": "ok"}
        assert len(app.get_ui_schema(app.create_session().session_id)) == 1
    assert feature.seen[-1]["my_feature"] == {"max_items": 5}

    with open_app({"default": {"provider": "echo", "my_feature": {"enabled": False}}}, feature) as app:
        assert run_action(app)["error"]["type"] == "disabled"
        assert app.get_ui_schema(app.create_session().session_id) == []


@pytest.mark.parametrize("where", ["sections", "plugins"])
def test_every_section_of_a_plugin_is_in_the_base_config_wherever_it_was_written(where: str) -> None:
    feature, settings = MyFeature(), {"my_feature": {"enabled": False}}
    entry: dict[str, Any] = {"provider": "echo", **({"sections": settings} if where == "sections" else {})}
    with open_app(
        {"default": entry}, feature, **({"plugins": settings} if where == "plugins" else {})
    ) as app:
        assert run_action(app)["error"]["type"] == "disabled"


@pytest.mark.parametrize("where", ["flat", "sections", "plugins"])
def test_the_settings_of_one_plugin_never_meet_those_of_another(where: str) -> None:
    class Other(MyFeature):
        name = "other_feature"

    mine, other = MyFeature(), Other()
    settings = {"my_feature": {"enabled": False, "max_items": 3}, "other_feature": {"enabled": True}}
    entry: dict[str, Any] = {"provider": "echo", **(settings if where == "flat" else {})}
    if where == "sections":
        entry["sections"] = settings
    more = {"plugins": settings} if where == "plugins" else {}
    with open_app({"default": entry}, mine, other, **more) as app:
        list(app.chat(app.create_session().session_id, "hello"))
        _, base_config, _ = app.update_agent("default", app.create_session_ephemeral())

    assert {key: base_config[key] for key in settings} == settings
    assert not {"enabled", "max_items"} & base_config.keys()
    assert (mine.configs[-1]["enabled"], mine.configs[-1]["max_items"]) == (False, 3)
    assert other.configs[-1]["enabled"] is True
    assert "max_items" not in other.configs[-1]


def test_a_session_changes_the_setting_of_a_plugin_by_its_key() -> None:
    feature = MyFeature()
    with open_app({"default": {"provider": "echo", "my_feature": {"max_items": 5}}}, feature) as app:
        session = app.create_session(metadata={"overrides": {"max_items": 7}})
        list(app.chat(session.session_id, "hello"))

    assert feature.configs[-1]["max_items"] == 7


def test_the_base_config_of_a_plugin_also_has_the_whole_configuration() -> None:
    feature = MyFeature()
    agents = {
        "default": {"provider": "echo", "summarization": {"agent_id": "other"}},
        "other": {"provider": "echo"},
    }
    with open_app(agents, feature, default_agent="default") as app:
        run_action(app)

    (base_config,) = feature.seen
    assert base_config["agents"] == agents
    assert base_config["summarization"] == {"agent_id": "other"}
    assert (base_config["provider"], base_config["agent_id"]) == ("echo", "default")


def test_a_plugin_can_send_a_request_with_the_base_config_that_it_was_given() -> None:
    class Asker(MyFeature):
        name = "my_feature"

        def execute_action(self, action_id: str, session: Any, *rest: Any) -> dict[str, Any]:
            context = rest[2]
            app = context["app"]
            core, _, other = app.update_agent("default", session)
            asked = core.add_message(other, "user", "tea", config=context["config"])
            events = list(app.send_request(core, asked, context["base_config"], {}, stream=False))
            return {"status": events[-1]["type"]}

    with open_app({"default": {"provider": "echo"}}, Asker()) as app:
        assert run_action(app) == {"status": "final"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_plugin_can_send_a_finished_conversation_to_another_agent_as_the_page_does(stream: bool) -> None:
    class Summarizing(MyFeature):
        def execute_action(self, action_id: str, session: Any, *rest: Any) -> dict[str, Any]:
            context = rest[2]
            app, base_config = context["app"], context["base_config"]
            agent_id = base_config.get("summarization", {}).get("agent_id")
            core, config, own = app.update_agent(agent_id, session)
            events = list(app.send_request(core, own, config, {}, stream=stream))
            return {key: events[-1].get(key) for key in ("type", "text", "error")}

    agents = {
        "default": {"provider": "scripted", "summarization": {"agent_id": "writer"}},
        "writer": {"provider": "writer"},
    }
    writer = ScriptedProvider(["All about tea."], name="writer")
    config = {"agents": agents, "default_agent": "default"}
    plugins = [ScriptedProvider(["With hot water."]), writer, Summarizing]
    with AgentApplication(config, plugins=plugins, installed=False) as app:
        name = app.create_session().session_id
        list(app.chat(name, "How is tea made?"))
        session, result = app.execute_session_action(name, "my_feature", "summarize_range", {})

    assert result == {"type": "final", "text": "All about tea.", "error": None}
    [request] = writer.requests
    assert [item["content"] for item in request.native_messages] == ["How is tea made?", "With hot water."]
    assert len(session.messages) == 2  # what the action asked for is stored nowhere


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ({"provider": "echo", "systemprompt": "Be brief."}, "system_prompt"),
        ({"provider": "eco"}, "eco"),
        ({"provider": 3}, "provider"),
        ({"provider": "echo", "model": ["echo"]}, "model"),
    ],
)
def test_what_is_most_likely_a_mistake_is_refused(entry: dict[str, Any], match: str) -> None:
    with pytest.raises((BuildError, ConfigError), match=match):
        open_app({"a": entry}).close()


class WithoutSchema:
    """A feature that does not describe its settings."""

    name = "plain"
    version = "1"

    def finalize(self, final_messages: Any, native_messages: Any, state: Any) -> Any:
        return final_messages, native_messages, state


@pytest.mark.parametrize("value", [5, "on", True, ["enabled"], None])
@pytest.mark.parametrize("where", ["flat", "sections", "plugins"])
@pytest.mark.parametrize("plugin", ["my_feature", "plain"])
def test_a_section_that_is_no_mapping_is_refused_by_name(value: Any, where: str, plugin: str) -> None:
    entry: dict[str, Any] = {"provider": "echo", **({plugin: value} if where == "flat" else {})}
    if where == "sections":
        entry["sections"] = {plugin: value}
    more = {"plugins": {plugin: value}} if where == "plugins" else {}

    with pytest.raises((BuildError, ConfigError), match=plugin) as caught:
        open_app({"a": entry}, MyFeature, WithoutSchema, **more).close()

    assert "mapping" in str(caught.value)


@pytest.mark.parametrize("section", ["retry", "tools", "permissions", "results", "config"])
def test_a_section_of_the_runtime_that_is_no_mapping_is_refused_by_name(section: str) -> None:
    with pytest.raises((BuildError, ConfigError), match=section):
        open_app({"a": {"provider": "echo", section: 5}}).close()

"""The catalogue of an application: models by name, keys that are lent, tools that fit, context windows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.catalogue import Catalogue, Key, ToolChange, offered_models, ranked
from agent_app.context_windows import WindowCache, Windows, context_window
from agent_app.services import OVERRIDES
from agent_core import AgentError
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path


class Listing(ScriptedProvider):
    """A provider that lists its models."""

    def __init__(self, *models: dict[str, Any], name: str = "listing") -> None:
        super().__init__(itertools.repeat(Reply(text="Yes.")), name=name)
        self._listed = list(models)

    def get_models(self, config: dict[str, Any]) -> list[dict[str, Any]]:
        return self._listed


class Todos:
    """A tool plugin of the name that an application gives its agents, and off by itself."""

    name = "todo_tool"
    version = "1"
    default_enabled = False

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "todo", "description": "x", "parameters": {}}}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": ""}


class Other(Todos):
    """Another tool plugin, which nobody names."""

    name = "other_tool"


SMALL = {"id": "small", "context_window": 5}


def application(*plugins: Any, agent: dict[str, Any] | None = None, **model: Any) -> AgentApplication:
    provider = plugins[0].name
    config = {
        "agents": {"a": {"model": "m", **(agent or {})}},
        "models": {"m": {"provider": provider, **model}},
    }
    return AgentApplication(config, plugins=plugins, installed=False)


# Models


def test_a_name_stands_for_a_declared_model_or_for_one_of_a_provider() -> None:
    with application(Listing(), model="small") as app:
        catalogue = Catalogue(app)

        assert catalogue.declare("m").model == "small"
        declared = catalogue.declare("listing:big")

        assert (declared.id, declared.provider, declared.model) == ("listing:big", "listing", "big")
        assert app.runtime.registries.models.get("listing:big") == declared
        assert catalogue.declared_models() == [
            {"id": "m", "provider": "listing", "model": "small", "agents": ["a"]}
        ]


@pytest.mark.parametrize(("name", "kind"), [("litsing:big", "provider"), ("n", "model")])
def test_a_name_that_stands_for_nothing_is_refused_with_the_nearest(name: str, kind: str) -> None:
    with application(Listing()) as app, pytest.raises(AgentError, match=f"there is no such {kind}: "):
        Catalogue(app).declare(name)


def test_a_short_name_is_declared_by_the_name_of_its_provider() -> None:
    with application(Listing(name="openai_responses")) as app:
        assert Catalogue(app).declare("openai:x").id == "openai_responses:x"
        assert Catalogue(app).find_provider("openai") == "openai_responses"


def test_a_provider_is_found_unless_a_model_has_its_name() -> None:
    with application(Listing(name="m")) as app:
        assert Catalogue(app).find_provider("m") is None
    with application(Listing()) as app:
        assert Catalogue(app).find_provider("listing") == "listing"
        assert Catalogue(app).find_provider("none") is None


def test_an_offer_is_listed_and_its_windows_are_remembered(tmp_path: Path) -> None:
    cache = WindowCache(tmp_path / "cache" / "windows.json")
    with application(Listing(SMALL, {"id": "x"})) as app:
        offered = Catalogue(app).offered_by("listing", "a", cache)
        [(provider, agent)] = Catalogue(app).providers_in_use()

        assert [model["id"] for model in offered] == ["small", "x"]
        assert provider == "listing"
        assert offered_models(agent.core, agent.config) == offered
    assert (cache.get("listing", "", "small"), cache.get("listing", "", "x")) == (5, None)


@pytest.mark.parametrize(
    ("names", "families", "first"),
    [
        (["gpt-4o", "gpt-5-mini", "gpt-5", "gpt-5.2", "gpt-5-2025-08-07"], ["gpt-*"], "gpt-5.2"),
        (["gpt-4o", "gpt-5", "gpt-image-1"], ["gpt-*"], "gpt-5"),
        (
            ["claude-3-5-sonnet-20241022", "claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929"],
            ["claude-sonnet-*"],
            "claude-sonnet-4-5-20250929",
        ),
        (["gemini-2.5-pro", "gemini-3-pro-preview", "gemini-2.0-flash"], ["gemini-*-pro*"], "gemini-2.5-pro"),
        (["text-embedding-3", "tiny"], [], "tiny"),
    ],
)
def test_the_newest_ordinary_model_of_a_family_comes_first(
    names: list[str], families: list[str], first: str
) -> None:
    models, recommended = ranked([{"id": name} for name in names], families)

    assert (models[0]["id"], recommended) == (first, len(families))
    assert sorted(str(model["id"]) for model in models) == sorted(names)


# Keys


def test_a_provider_is_lent_its_stored_key_once_and_keeps_its_own() -> None:
    asked: list[str] = []

    def key_of(provider: str) -> Key | None:
        asked.append(provider)
        return Key("secret", "a file")

    with application(Listing()) as app:
        catalogue = Catalogue(app, key_of)
        session = app.create_session("a")
        app.save_session(session.with_metadata({OVERRIDES: {"model": "listing:big"}}))

        catalogue.lend_key_of_session(session.session_id)
        catalogue.lend_key("listing")
        catalogue.lend_key("none")

        entry = app.runtime.registries.providers.get("listing")
        assert entry is not None
        assert (entry.config["api_key"], entry.config["api_key_origin"]) == ("secret", "a file")
    assert asked == ["listing"]


# Tools and plugins


def test_tools_come_with_a_larger_model_and_go_with_the_embedded_one() -> None:
    with application(Listing(), Todos, Other) as app:
        catalogue = Catalogue(app)

        assert catalogue.fit_agent("a", "listing:big", {}) == ToolChange(gained=("todo_tool",))
        assert catalogue.fit_agent("a", "listing:big", {}) == ToolChange()
        assert catalogue.fit_agent("a", "local", {}) == ToolChange(lost=("todo_tool",))
        assert catalogue.fit_agent("a", "listing:big", {"plugin_ids": []}) == ToolChange()
        assert catalogue.fit_agent("none", "listing:big", {}) == ToolChange()


def test_an_agent_that_names_its_plugins_keeps_them() -> None:
    with application(Listing(), Todos, agent={"plugin_ids": []}) as app:
        assert Catalogue(app).fit_agent("a", "listing:big", {}) == ToolChange()
        [skipped] = Catalogue(app).skipped_plugins("a", [])
        assert skipped["detail"] == "plugin_ids of the agent do not name it"


def test_each_skipped_plugin_has_its_reason() -> None:
    with application(Listing(), Todos, Other) as app:
        reasons = {one["plugin"]: one["detail"] for one in Catalogue(app).skipped_plugins("a", [])}
        embedded = {
            one["plugin"]: one["detail"]
            for one in Catalogue(app).skipped_plugins("a", ["other_tool"], model="local")
        }

    assert reasons == {
        "todo_tool": "the setting plugin_ids does not name it",
        "other_tool": "it is off unless plugin_ids or more_plugins name it, of the agent or of all",
    }
    assert embedded == {
        "todo_tool": "the embedded model has no tools, unless plugin_ids or more_plugins name some"
    }


# Context windows


def test_servers_name_the_window_in_several_ways() -> None:
    for model, window in (
        ({"context_window": 9}, 9),
        ({"context_length": 8, "id": "x"}, 8),
        ({"max_model_len": 7}, 7),
        ({"context_window": None, "context_length": 6}, 6),
        ({"context_window": 0}, None),
        ({"context_window": "many"}, None),
        ({}, None),
    ):
        assert context_window(model) == window, model


@pytest.mark.parametrize("content", ["", "[]", '{"p": 5}', '{"p": {"x": "many"}}', "\x00"])
def test_a_damaged_cache_is_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "windows.json"
    path.write_text(content)
    cache = WindowCache(path)

    assert cache.get("p", "", "x") is None
    cache.keep("p", "", [{"id": "x", "context_window": 7}])
    assert cache.get("p", "/", "x") == 7
    assert [file.name for file in tmp_path.iterdir()] == ["windows.json"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = WindowCache(tmp_path / "file" / "windows.json")

    cache.keep("p", "", [{"id": "x", "context_window": 7}])

    assert cache.get("p", "", "x") is None


def test_a_window_is_declared_listed_set_or_remembered(tmp_path: Path) -> None:
    cache = WindowCache(tmp_path / "windows.json")
    cache.keep("listing", "", [{"id": "y", "context_window": 11}])

    with application(Listing(SMALL), model="small", context_window=1000) as app:
        assert Windows(app, cache).known("m") == 1000
        assert Windows(app, cache).find("a", "m") == 1000
    with application(Listing(SMALL, {"id": "big", "context_window": 9}, {"id": "x"}), model="small") as app:
        windows = Windows(app, cache)
        assert (windows.known("m"), windows.was_looked_for("m")) == (None, False)
        assert windows.find("a", "m") == 5
        assert (windows.known("m"), windows.was_looked_for("m")) == (5, True)
    with application(Listing(SMALL, {"id": "x"}), model="x") as app:
        assert Windows(app, cache).find("a", "m") is None
        assert Windows(app, cache).find("none", "m") is None
    with application(Listing(SMALL, {"id": "y"}), model="y") as app:
        assert Windows(app, cache).find("a", "m") == 11
    with application(Listing(SMALL, {"id": "x"}), model="x", config={"context_size": 3}) as app:
        assert Windows(app, cache).find("a", "m") == 3

"""Which files an application keeps from tools, and that no one but the program that opens it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core import ConfigError
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONFIG: dict[str, Any] = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}


class Keeper:
    """A plugin that keeps a file of its own."""

    name = "keeper"
    version = "1"

    @staticmethod
    def own_paths(settings: Mapping[str, Any]) -> list[str]:
        return [settings["file"]]

    def get_config_schema(self) -> dict[str, Any]:
        return {"file": {"type": "string"}}


def protected(config: Mapping[str, Any], *plugins: Any, **options: Any) -> Any:
    given = {"plugins": [ScriptedProvider(), *plugins], "installed": False, **options}
    with AgentApplication({**CONFIG, **config}, **given) as app:
        return app.runtime.resolve("a").config.get("protected_paths", [])


def test_an_application_in_memory_keeps_nothing_from_anybody() -> None:
    assert protected({}) == []


def test_the_files_of_the_database_the_assets_and_given_paths_are_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "way").symlink_to("keys")
    place = tmp_path.resolve()

    found = protected({}, store="sqlite:///app.db", assets="assets", protected=["way", tmp_path / "x"])

    ends = ("app.db", "app.db-wal", "app.db-shm", "app.db-journal", "assets")
    assert found == [str(place / name) for name in ("keys", "x", *ends)]


def test_what_plugins_keep_is_protected_wherever_an_agent_says_that_it_is(tmp_path: Path) -> None:
    own = {"model": "m", "sections": {"keeper": {"file": str(tmp_path / "b")}}}
    config = {
        "agents": {
            "a": {"model": "m"},
            "b": own,
            "flat": {"model": "m", "keeper": {"file": str(tmp_path / "c")}},
        },
        "default_agent": "a",
        "plugins": {"keeper": {"file": str(tmp_path / "a")}},
    }

    found = protected(config, Keeper)

    assert found == [str(tmp_path.resolve() / name) for name in ("a", "b", "c")]


def test_a_plugin_that_fails_to_name_its_files_stops_no_one() -> None:
    assert protected({}, Keeper) == []


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (
            {"agents": {"a": {"model": "m", "sections": {"config": {"protected_paths": []}}}}},
            "agents.a.sections.config.protected_paths",
        ),
        ({"agents": {"a": {"model": "m", "protected_paths": []}}}, "agents.a.protected_paths"),
        (
            {"agents": {"a": {"model": "m", "config": {"protected_paths": []}}}},
            "agents.a.config.protected_paths",
        ),
        (
            {"models": {"m": {"provider": "scripted", "config": {"protected_paths": []}}}},
            "models.m.config.protected_paths",
        ),
    ],
    ids=["agent", "flat agent", "section of a flat agent", "model"],
)
def test_a_configuration_does_not_say_what_is_protected(config: Mapping[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match="cannot be set here") as refused:
        protected(config, protected=["/srv/keys"])

    assert refused.value.field == field


def test_settings_of_a_provider_a_session_or_a_caller_change_nothing(tmp_path: Path) -> None:
    given: dict[str, Any] = {"plugins": [ScriptedProvider()], "installed": False, "protected": [tmp_path]}
    config = {**CONFIG, "plugins": {"scripted": {"protected_paths": []}}}
    with AgentApplication(config, **given) as app:
        session = app.create_session(metadata={"overrides": {"protected_paths": []}})
        _, base, _ = app.update_agent("a", session)

        assert app.runtime.resolve("a").config["protected_paths"] == [str(tmp_path.resolve())]
        assert base["protected_paths"] == [str(tmp_path.resolve())]

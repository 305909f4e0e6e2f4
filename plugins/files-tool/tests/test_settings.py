"""Settings: where things are kept unless somebody says otherwise, and what cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import AgentCore, ConfigError, PluginError
from files_tool import FilesTool
from files_tool.settings import SCHEMA, Settings

if TYPE_CHECKING:
    from pathlib import Path


def test_the_journal_is_kept_in_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert Settings.read({}).journal == str(tmp_path / "state/files-tool")

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for not_there in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", not_there)
        assert Settings.read({}).journal == str(tmp_path / "home/.local/state/files-tool")
    assert Settings.read({"journal": "~/kept"}).journal == str(tmp_path / "home/kept")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("roots", "one"),
        ("roots", [5]),
        ("journal", 5),
        ("excluded_files", {"a": 1}),
        ("excluded_files", [None]),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.read({key: value})
    assert caught.value.field == key

    core = AgentCore()
    core.register_tool(FilesTool)
    with pytest.raises((ConfigError, PluginError), match=key):
        core.get_tool_schemas({key: value, "enabled_plugins": ["files_tool"]})


def test_every_setting_is_described() -> None:
    assert SCHEMA.keys() == {"roots", "journal", "excluded_files"}
    assert all(setting["description"].endswith(".") for setting in SCHEMA.values())

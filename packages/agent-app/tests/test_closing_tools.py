"""When an application closes, the tools that were made for it close first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}


class Kettle:
    """A tool that has something to keep until the last moment."""

    name = "kettle"
    version = "1"
    last: list[Any]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return []

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": f"{tool_name} {arguments}"}

    def close(self) -> None:
        self.last.append(self)


def closed(plugin: Any, folder: Path) -> AgentApplication:
    plugins = [ScriptedProvider([]), plugin]
    with AgentApplication(CONFIG, assets=folder, plugins=plugins, installed=False) as app:
        return app


def test_a_tool_that_was_made_for_the_application_is_closed_while_there_is_a_store(tmp_path: Path) -> None:
    kept: list[Any] = []

    class Keeping(Kettle):
        def close(self) -> None:
            kept.append(app.create_session().session_id)

    plugins = [ScriptedProvider([]), Keeping]
    with AgentApplication(CONFIG, assets=tmp_path, plugins=plugins, installed=False) as app:
        assert kept == []

    assert len(kept) == 1


def test_a_tool_that_was_given_is_left_to_whoever_made_it(tmp_path: Path) -> None:
    Kettle.last = []

    closed(Kettle(), tmp_path)
    assert Kettle.last == []

    closed(Kettle, tmp_path)
    assert [type(one) for one in Kettle.last] == [Kettle]


def test_a_tool_that_cannot_be_closed_is_told_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Kettle):
        def close(self) -> None:
            raise RuntimeError("it boils")

    closed(Broken, tmp_path)

    assert "tool_not_closed" in caplog.text and "it boils" in caplog.text

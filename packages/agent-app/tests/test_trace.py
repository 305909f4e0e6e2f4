"""The runs of a session, and what each did when, read from the end of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, SessionNotFound, trace
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator


class Kettle:
    name = "kettle"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        parameters = {"type": "object", "properties": {}}
        return [
            {"type": "function", "function": {"name": "boil", "description": "", "parameters": parameters}}
        ]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": "it boils"}


def opened(script: list[Any], **permissions: Any) -> AgentApplication:
    config = {
        "agents": {"a": {"model": "m", "plugin_ids": ["kettle"]}},
        "models": {"m": {"provider": "scripted"}},
        "permissions": permissions or {"default": "allow"},
    }
    return AgentApplication(config, plugins=[ScriptedProvider(script), Kettle()], installed=False)


BOIL = Reply(tool_calls=[ToolCall("boil", {})])


@pytest.fixture
def app() -> Iterator[AgentApplication]:
    with opened([BOIL, "Tea.", "More tea.", RuntimeError("no water")]) as app:
        yield app


def say(app: AgentApplication, session_id: str, text: str = "") -> None:
    for _event in app.chat(session_id, text):
        pass


def kinds(traced: dict[str, Any] | None) -> list[str]:
    assert traced is not None
    return [part["kind"] for part in traced["parts"]]


def test_each_run_is_listed_and_can_be_drawn(app: AgentApplication) -> None:
    session_id = app.create_session().session_id
    say(app, session_id, "Boil.")
    say(app, session_id, "More.")

    later, first = app.list_runs(session_id)["items"]

    assert (first["reason"], later["reason"]) == ("natural_end", "natural_end")
    assert (first["agent_id"], first["model"]) == ("a", "m")
    assert first["at"] <= later["at"] and first["seq"] < later["seq"]
    assert kinds(app.trace(session_id, first["run_id"])) == ["run", "step", "model", "tool", "step", "model"]
    assert kinds(app.trace(session_id, later["run_id"])) == ["run", "step", "model"]
    drawn = app.trace(session_id, first["run_id"])
    assert drawn is not None and all(part["end"] >= part["begin"] for part in drawn["parts"])


def test_a_run_that_failed_says_so(app: AgentApplication) -> None:
    session_id = app.create_session().session_id
    say(app, session_id, "Boil.")
    say(app, session_id, "More.")
    say(app, session_id, "Again.")

    last = app.list_runs(session_id)["items"][0]

    assert last["reason"] == "error"
    drawn = app.trace(session_id, last["run_id"])
    assert drawn is not None and "no water" in drawn["parts"][0]["note"]


def test_a_run_that_waited_for_a_decision_is_one_run() -> None:
    with opened([BOIL, "Tea.", "More tea."], default="ask") as app:
        session_id = app.create_session().session_id
        say(app, session_id, "Boil.")
        assert [one["reason"] for one in app.list_runs(session_id)["items"]] == ["suspended"]
        [approval] = app.approvals(session_id)
        app.decide(approval.id, decision=True)
        say(app, session_id)
        say(app, session_id, "More.")

        _, first = app.list_runs(session_id)["items"]

        assert first["reason"] == "natural_end"
        drawn = kinds(app.trace(session_id, first["run_id"]))
        assert drawn.count("run") == 2 and "wait" in drawn and "tool" in drawn


def test_the_log_is_read_page_by_page(app: AgentApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = app.create_session().session_id
    say(app, session_id, "Boil.")
    say(app, session_id, "More.")
    whole = app.list_runs(session_id)["items"]
    monkeypatch.setattr(trace, "_PAGE", 2)

    newest = app.list_runs(session_id, limit=1)
    oldest = app.list_runs(session_id, newest["before"], limit=1)

    assert [*newest["items"], *oldest["items"]] == whole
    assert oldest["before"] is None
    assert len(kinds(app.trace(session_id, whole[1]["run_id"]))) == 6


def test_what_is_not_there(app: AgentApplication) -> None:
    session_id = app.create_session().session_id

    assert app.list_runs(session_id) == {"items": [], "before": None}
    assert app.trace(session_id, "none") is None
    with pytest.raises(SessionNotFound):
        app.list_runs("none")

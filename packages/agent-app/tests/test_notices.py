"""What plugins tell a person who opens a session: read from what they return, whatever that is."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app import AgentApplication
from agent_app.notices import LONGEST_NOTICE, MOST_NOTICES, SESSION_OPEN, Notice, read_notices
from agent_core import Session
from agent_core.testing import EchoProvider


class Waiting:
    """A feature for which something waits."""

    name = "waiting"
    version = "1"

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": "tell", "trigger": SESSION_OPEN}, {"id": "approve", "inputs": {"what": {}}}]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: Any, context: Any
    ) -> dict[str, Any]:
        told = {"text": "tea\nwaits", "action_id": "approve", "params": {"what": "tea"}}
        return {"notices": ["the kettle is old", told]}


class Broken(Waiting):
    """One that fails."""

    name = "broken"

    def execute_action(self, *_given: Any) -> dict[str, Any]:
        raise RuntimeError("no")


def test_features_of_the_agent_tell_before_there_is_a_session() -> None:
    config = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "echo"}}}
    with AgentApplication(config, plugins=[EchoProvider, Broken, Waiting], installed=False) as app:
        session, results = app.run_session_lifecycle(SESSION_OPEN, Session(""))

        assert read_notices(results) == [
            Notice(plugin="waiting", text="the kettle is old"),
            Notice(plugin="waiting", text="tea waits", action_id="approve", params={"what": "tea"}),
        ]
        assert session == Session("")
        assert app.list_sessions().sessions == ()


@pytest.mark.parametrize(
    "told",
    [None, "text", 5, {"text": "x"}, [None, 5, "", "  ", {}, {"text": 5}, {"text": " "}, []]],
    ids=["none", "text", "number", "dict", "entries"],
)
def test_what_is_no_notice_is_left_out(told: Any) -> None:
    assert read_notices([{"plugin": "p", "result": {"notices": told}}, {"plugin": "p", "error": "x"}]) == []


def test_an_action_that_is_none_is_not_offered() -> None:
    told = [{"text": "a", "action_id": 5}, {"text": "b", "action_id": "x", "params": "y"}]

    found = read_notices([{"plugin": "p", "result": {"notices": told}}])

    assert found == [Notice(plugin="p", text="a"), Notice(plugin="p", text="b")]


def test_nobody_is_told_more_than_can_be_read() -> None:
    found = read_notices([{"plugin": "p", "result": {"notices": ["x" * 10_000] * 100}}])

    assert len(found) == MOST_NOTICES
    assert len(found[0].text) == LONGEST_NOTICE + 1

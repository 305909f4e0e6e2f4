"""In an application, another agent may make the titles, and they are stored with the session."""

from __future__ import annotations

from typing import Any

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider
from session_title_feature import SessionTitleFeature


def application(settings: dict[str, Any], said: list[Any], named: list[Any]) -> AgentApplication:
    """Return an application whose agents both have the feature."""
    agent = {"plugin_ids": ["session_title"], "sections": {"session_title": settings}}
    config = {
        "default_agent": "main",
        "agents": {"main": {**agent, "model": "large"}, "namer": {**agent, "model": "small"}},
        "models": {"large": {"provider": "scripted"}, "small": {"provider": "small"}},
    }
    plugins = [ScriptedProvider(said), ScriptedProvider(named, name="small"), SessionTitleFeature]
    return AgentApplication(config, plugins=plugins, installed=False)


def chat(app: AgentApplication, session_id: str, text: str) -> None:
    *_, last = app.chat(session_id, text, stream=False)
    assert last["type"] == "final"


def test_the_title_is_stored_with_the_session() -> None:
    with application({}, ["With hot water.", "Tea", "Yes."], []) as app:
        session_id = app.create_session().session_id

        chat(app, session_id, "How do I brew tea?")
        chat(app, session_id, "Really?")

        session = app.load_session(session_id)
        assert session.metadata["title"] == "Tea"
        assert session.messages[-1].content == "Yes."


def test_another_agent_names_the_session_and_its_own_session_gets_no_title() -> None:
    with application({"title_agent": "namer"}, ["With hot water."], ["Tea"]) as app:
        session_id = app.create_session().session_id

        chat(app, session_id, "How do I brew tea?")

        assert app.load_session(session_id).metadata["title"] == "Tea"
        assert len(app.list_sessions().sessions) == 1


def test_an_agent_that_fails_costs_nobody_the_answer() -> None:
    with application({"title_agent": "namer"}, ["With hot water."], [RuntimeError("down")]) as app:
        session_id = app.create_session().session_id

        chat(app, session_id, "How do I brew tea?")

        session = app.load_session(session_id)
        assert session.messages[-1].content == "With hot water."
        assert session.metadata["title"] == "How do I brew tea?"

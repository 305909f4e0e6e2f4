"""Another configuration for the agents of an application that is in use."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app import AgentApplication
from agent_core import ConfigError
from agent_core.testing import ScriptedProvider
from agent_runtime import ResolveError

CONFIG: dict[str, Any] = {
    "agents": {"main": {"model": "m"}, "other": {"model": "m"}},
    "default_agent": "main",
    "models": {"m": {"provider": "scripted", "model": "m-1"}},
}


@pytest.fixture
def app() -> AgentApplication:
    return AgentApplication(CONFIG, plugins=[ScriptedProvider(["one", "two"])], installed=False)


def agents(app: AgentApplication) -> list[str]:
    return [one["id"] for one in app.list_agents()]


def answer(app: AgentApplication, session_id: str) -> Any:
    *_, final = app.chat(session_id, "hi")
    return final["text"]


def with_agents(**changed: Any) -> dict[str, Any]:
    return {**CONFIG, "agents": {"main": {"model": "m"}, **changed}}


def test_agents_come_and_go_and_a_session_without_its_agent_has_the_default_one(
    app: AgentApplication,
) -> None:
    session = app.create_session(agent_id="other").session_id

    app.use_agents(with_agents(third={"model": "m", "delegates": ["main"]}))

    assert agents(app) == ["main", "third"]
    assert answer(app, session) == "one"
    assert answer(app, app.create_session(agent_id="third").session_id) == "two"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"bad": {"model": "m", "max_rounds": 0}}, ConfigError),
        ({"bad": {"model": "no such model"}}, ResolveError),
        ({"bad": {"model": "m", "delegates": ["bad"]}}, ResolveError),
    ],
)
def test_if_one_could_not_run_all_stay_as_they_were(
    app: AgentApplication, changed: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        app.use_agents(with_agents(**changed))

    assert agents(app) == ["main", "other"]
    assert list(app.config["agents"]) == ["main", "other"]

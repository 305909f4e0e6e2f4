"""A session may ask for another model than its agent's: a declared one, or PROVIDER:MODEL."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app import AgentApplication
from agent_core import AgentError
from agent_core.testing import ScriptedProvider

RETRY = {"retry": {"max_retries": 0, "fallback_models": ["spare"]}}


def make(*providers: Any, **agent: Any) -> AgentApplication:
    config = {
        "agents": {"helper": {"model": "own", **agent}},
        "models": {
            "own": {"provider": "first"},
            "other": {"provider": "second", "model": "b", "input_price": 2.0},
            "spare": {"provider": "third"},
        },
    }
    return AgentApplication(config, plugins=list(providers), installed=False)


def scripted(name: str, *lines: Any) -> ScriptedProvider:
    return ScriptedProvider(list(lines), name=name)


def open_session(app: AgentApplication, model: Any) -> str:
    return app.create_session(metadata={"overrides": {"model": model}}).session_id


def say(app: AgentApplication, session_id: str) -> list[dict[str, Any]]:
    return list(app.chat(session_id, "Hello"))


def test_a_declared_model_answers_in_place_of_the_agents_own() -> None:
    app = make(scripted("first"), scripted("second", "I am the other."), scripted("third"))

    events = say(app, open_session(app, "other"))

    assert events[-1]["text"] == "I am the other."
    assert [event["model"] for event in events if event["type"] == "run_start"] == ["other"]


def test_another_session_of_the_same_agent_is_not_touched() -> None:
    app = make(scripted("first", "I am the first."), scripted("second", "Other."), scripted("third"))

    say(app, open_session(app, "other"))

    assert say(app, app.create_session().session_id)[-1]["text"] == "I am the first."


def test_provider_and_model_will_do_where_nothing_is_declared() -> None:
    app = make(scripted("first"), scripted("second", "Me?"), scripted("third"))

    events = say(app, open_session(app, "second:anything"))

    assert events[-1]["text"] == "Me?"
    assert app.runtime.registries.models.get("second:anything") is not None


@pytest.mark.parametrize("model", ["nobody:known", None])
def test_anything_else_is_left_to_the_agents_own_provider(model: Any) -> None:
    app = make(scripted("first", "I answer."), scripted("second"), scripted("third"))

    assert say(app, open_session(app, model))[-1]["text"] == "I answer."


def test_fallbacks_of_the_agent_stay() -> None:
    class DownError(AgentError):
        category = "unavailable"

    app = make(
        scripted("first"),
        scripted("second", DownError("it is down")),
        scripted("third", "I go on."),
        sections=RETRY,
    )

    events = say(app, open_session(app, "other"))

    assert events[-1]["text"] == "I go on."
    assert [event["instead_of"] for event in events if event["type"] == "fallback"] == ["other"]


def test_actions_and_lifecycles_are_told_the_settings_of_the_model_that_answers() -> None:
    seen: list[tuple[Any, Any]] = []

    class Watching:
        name = "watching"
        version = "1"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": "look", "label": "Look"}]

        def execute_action(
            self, action_id: str, session: Any, native_messages: Any, params: Any, context: Any
        ) -> dict[str, Any]:
            seen.append((context["config"]["provider"], context["config"]["model"]))
            return {}

    app = make(scripted("first"), scripted("second"), scripted("third"), Watching)

    app.execute_session_action(open_session(app, "other"), "watching", "look", {})

    assert seen == [("second", "b")]

"""What was sent for an answer, and what an edit would keep."""

from __future__ import annotations

from typing import Any

import pytest

from agent_app import AgentApplication
from agent_core import ArgumentError, MessageIndexError
from agent_core.testing import Reply, ScriptedProvider, ToolCall

SECRET = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz0123"


class Notes:
    name = "notes"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [
            {"type": "function", "function": {"name": "note", "description": "Writes.", "parameters": {}}}
        ]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": "written"}


@pytest.fixture
def provider() -> ScriptedProvider:
    usage = {"input_tokens": 40, "output_tokens": 2, "cached_input_tokens": 30}
    return ScriptedProvider([Reply(tool_calls=[ToolCall("note", {})], usage=usage), "noted", "again"])


@pytest.fixture
def app(provider: ScriptedProvider) -> AgentApplication:
    config = {
        "agents": {"main": {"model": "m", "system_prompt": "Be brief."}},
        "models": {"m": {"provider": "scripted", "model": "m-1"}},
    }
    return AgentApplication(config, plugins=[provider, Notes], installed=False)


def talk(app: AgentApplication) -> str:
    session_id = app.create_session().session_id
    for text in (f"note it; my key is {SECRET}", "and now?"):
        for _event in app.chat(session_id, text):
            pass
    return session_id


def test_the_request_of_each_answer_is_rebuilt_as_the_provider_has_received_it(
    app: AgentApplication, provider: ScriptedProvider
) -> None:
    session_id = talk(app)
    answers = [1, 3, 5]

    requests = [app.sent_request(session_id, index) for index in answers]

    for rebuilt, seen in zip(requests, provider.requests, strict=True):
        assert len(rebuilt["messages"]) == len(seen.native_messages)
        assert [one["name"] for one in rebuilt["tools"]] == ["note"]
        assert rebuilt["rebuilt"] is True
        assert rebuilt["model"] == "m"
        assert rebuilt["at"] is not None
    assert [message["role"] for message in requests[1]["messages"]] == ["system", "user", "assistant", "tool"]
    assert requests[0]["usage"]["cached_input_tokens"] == 30


def test_secrets_are_left_out_of_it(app: AgentApplication) -> None:
    session_id = talk(app)

    assert SECRET in str(app.load_session(session_id).messages[0])
    assert SECRET not in str(app.sent_request(session_id, 1))


def test_only_answers_have_a_request(app: AgentApplication) -> None:
    session_id = talk(app)

    with pytest.raises(ArgumentError, match="not an answer"):
        app.sent_request(session_id, 0)
    with pytest.raises(MessageIndexError):
        app.sent_request(session_id, 99)


def test_an_edit_keeps_what_comes_before_it_and_the_rest_stays_in_the_session(app: AgentApplication) -> None:
    session_id = talk(app)

    plan = app.edit_plan(session_id, 4)

    assert plan.pop("kept_tokens") > 5
    assert plan == {"kept_messages": 4, "other_messages": 1, "rebuilt_items": 0}
    assert app.edit_plan(session_id, 0)["kept_messages"] == 0
    assert len(app.load_session(session_id).messages) == 6
    assert len(app.list_sessions().sessions) == 1

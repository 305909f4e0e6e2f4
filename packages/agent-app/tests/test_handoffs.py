"""Agents of an application that hand a conversation over, as settings declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

USED = {"input_tokens": 1, "output_tokens": 1}
TRANSFER = Reply(tool_calls=[ToolCall("transfer_to_refunds")], usage=USED)
PAY = Reply(tool_calls=[ToolCall("pay", {}, "p")], usage=USED)


class Till:
    name, version = "till", "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": "paid"}


def application(folder: Path, desk: list[Any], refunds: list[Any], **section: Any) -> AgentApplication:
    config = {
        "agents": {
            "desk": {"model": "d", "handoffs": ["refunds"]},
            "refunds": {"model": "r", "sections": section},
        },
        "models": {"d": {"provider": "d"}, "r": {"provider": "r"}},
        "default_agent": "desk",
    }
    plugins = [ScriptedProvider(desk, name="d"), ScriptedProvider(refunds, name="r"), Till()]
    return AgentApplication(config, store=f"sqlite:///{folder}/app.db", plugins=plugins, installed=False)


def test_a_request_goes_from_agent_to_agent_and_the_next_begins_with_the_first(tmp_path: Path) -> None:
    refunds = Reply(text="It is back.", usage=USED)
    with application(tmp_path, [TRANSFER, "You are welcome."], [refunds]) as app:
        session_id = app.create_session("desk").session_id

        events = list(app.chat(session_id, "Money back."))
        assert (events[-1]["type"], events[-1]["text"]) == ("final", "It is back.")
        assert events[-1]["usage"]["requests"] == 2
        assert [event["type"] for event in events].count("run_start") == 1
        assert {"type": "handoff", "from_agent": "desk", "to_agent": "refunds"}.items() <= next(
            event for event in app.events(session_id) if event["type"] == "handoff"
        ).items()

        events = list(app.chat(session_id, "Thanks."))
        assert events[-1]["text"] == "You are welcome."
        assert [one["handoffs"] for one in app.list_agents()] == [["refunds"], []]


def test_a_decision_reaches_the_agent_that_took_over_also_in_another_process(tmp_path: Path) -> None:
    asks = {"permissions": {"ask": ["pay"]}}
    with application(tmp_path, [TRANSFER], [PAY], **asks) as app:
        session_id = app.create_session("desk").session_id
        waiting = list(app.chat(session_id, "Money back."))[-1]
        assert waiting["reason"]["code"] == "suspended"

    with application(tmp_path, [], [Reply(text="It is back.", usage=USED)], **asks) as app:
        app.decide(waiting["approvals"][0], decision=True)
        final = list(app.chat(session_id))[-1]
        assert final["text"] == "It is back."
        assert final["usage"]["requests"] == 3
        roles = [message.role for message in app.load_session(session_id).messages]
        assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]

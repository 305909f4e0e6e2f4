"""A provider mends histories that its server would refuse, right before they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import AgentCore, PluginError
from agent_core.testing import ScriptedProvider

Dicts = list[dict[str, Any]]


class Mending(ScriptedProvider):
    """Answers calls that have no result."""

    def repair_native(self, native_messages: Dicts) -> tuple[Dicts, list[str]]:
        items: Dicts = []
        report = []
        for place, item in enumerate(native_messages):
            items.append(item)
            follower = native_messages[place + 1 : place + 2]
            if item.get("tool_calls") and not (follower and follower[0]["role"] == "tool"):
                call_id = item["tool_calls"][0]["id"]
                items.append({"role": "tool", "content": "interrupted", "tool_call_id": call_id})
                report.append(f"answered {call_id}")
        return items, report


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def orphaned(core: AgentCore) -> Any:
    session = core.add_message(core.create_session(), "user", "hello")
    session = core.add_message(session, "assistant", "", {"tool_calls": [CALL], "mine": 1})
    return core.add_message(session, "user", "go on")


def test_what_is_sent_was_mended_and_the_session_follows(drive: Any) -> None:
    provider = Mending(["fine", "and again"])
    core = AgentCore()
    core.register_provider(provider)

    session, _, _ = drive(core, orphaned(core), {})

    assert [item["role"] for item in provider.requests[0].native_messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert [message.role for message in session.messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert session.messages[1].metadata["mine"] == 1
    assert session.metadata["native_rebuilt"]["reason"] == "repaired"
    assert session.metadata["native_rebuilt"]["repairs"] == ["answered c1"]


def test_a_good_history_is_sent_as_it_is_and_nothing_is_reported(drive: Any) -> None:
    core = AgentCore()
    core.register_provider(Mending(["fine", "and again"]))
    session, _, _ = drive(core, orphaned(core), {})

    again, _, _ = drive(core, core.add_message(session, "user", "more", config={}), {})

    assert "native_rebuilt" not in again.metadata
    assert list(again.messages[: len(session.messages)]) == list(session.messages)


def test_a_repair_that_answers_nonsense_is_named() -> None:
    class Confused(ScriptedProvider):
        def repair_native(self, native_messages: Dicts) -> Any:
            return native_messages

    core = AgentCore()
    core.register_provider(Confused(["fine"]))

    with pytest.raises(PluginError, match="repair_native"):
        core.send_request(orphaned(core), {})

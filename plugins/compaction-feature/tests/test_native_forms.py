"""Other native forms than one item per message, and other plugins that change them too."""

from __future__ import annotations

from typing import Any

from agent_core import AgentCore, Session
from agent_core.testing import ScriptedProvider
from compaction_feature import CompactionFeature

Dicts = list[dict[str, Any]]
LONG = "many words that say little " * 40
CONFIG = {"compaction_trigger": "tick", "compaction_threshold": 1, "compaction_keep": 1}


class PiecesProvider(ScriptedProvider):
    """Keeps the text of a message and each of its calls as items of their own."""

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [item for message in messages for item in self._pieces(message)]

    def _pieces(self, message: dict[str, Any]) -> Dicts:
        calls = message["metadata"].get("tool_calls", ())
        answered = message["metadata"].get("tool_call_id")
        text = {"role": message["role"], "content": message["content"], "tool_call_id": answered}
        return [text, *({"call": call} for call in calls)]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        messages: Dicts = []
        for index, item in enumerate(native_messages):
            if "call" in item:
                messages[-1]["metadata"].setdefault("tool_calls", []).append(item["call"])
                messages[-1]["metadata"]["native_indices"].append(index)
                continue
            about = {"native_indices": [index], **(item.get("_metadata") or {})}
            if item.get("tool_call_id"):
                about["tool_call_id"] = item["tool_call_id"]
            messages.append({"role": item["role"], "content": item["content"], "metadata": about})
        return messages


class Shouting:
    """Writes everything in capitals, after the compaction at the same lifecycle."""

    name = "shouting"
    version = "1"
    priority = 200

    def get_actions(self) -> Dicts:
        return [{"id": "shout", "trigger": "tick"}]

    def execute_action(
        self, action_id: str, session: Session, native_messages: Dicts, params: dict[str, Any]
    ) -> dict[str, Any]:
        return {"native_messages": [{**item, "content": item["content"].upper()} for item in native_messages]}


def session_with_calls(core: AgentCore) -> Session:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in "ab"]
    session = core.create_session("s")
    session = core.add_message(session, "user", LONG, {"mark": 0})
    session = core.add_message(session, "assistant", LONG, {"tool_calls": calls, "mark": 1})
    session = core.add_message(session, "tool", LONG, {"tool_call_id": "a", "mark": 2})
    session = core.add_message(session, "tool", LONG, {"tool_call_id": "b", "mark": 3})
    return core.add_message(session, "user", LONG, {"mark": 4})


def test_a_message_of_several_items_goes_and_comes_back_whole() -> None:
    core = AgentCore()
    core.register_provider(PiecesProvider(["Short."]))
    core.register_feature(CompactionFeature)
    session = session_with_calls(core)

    compacted, told = core.execute_session_action(
        session, {}, "compaction", "compact_range", {"start": 1, "end": 4}
    )
    back, _ = core.execute_session_action(compacted, {}, "compaction", "undo_compaction", {})

    assert told["adjusted"] is False
    assert len(compacted.metadata["native_messages"]) == 3
    assert [message.metadata.get("mark") for message in compacted.messages] == [0, None, 4]
    assert [message.metadata["mark"] for message in back.messages] == [0, 1, 2, 3, 4]
    assert [message.native_indices for message in back.messages] == [(0,), (1, 2, 3), (4,), (5,), (6,)]


def test_what_another_plugin_changes_afterwards_is_what_counts() -> None:
    core = AgentCore()
    core.register_provider(ScriptedProvider(["Short."]))
    core.register_feature(CompactionFeature)
    core.register_feature(Shouting)
    session = core.create_session()
    for word in ("one", "two", "three"):
        session = core.add_message(session, "user", f"{word} {LONG}")

    session, results = core.execute_lifecycle_actions(session, CONFIG, "tick")

    assert [record["plugin"] for record in results] == ["compaction", "shouting"]
    assert [message.content.isupper() for message in session.messages] == [True, True]

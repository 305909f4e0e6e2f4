"""In an application, another agent may write the summaries, and what is stored is what was compacted."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core.testing import ScriptedProvider
from compaction_feature import CompactionFeature

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "many words that say little " * 40
SETTINGS = {
    "compaction_agent": "writer",
    "compaction_trigger": "request_complete",
    "compaction_threshold": {"messages": 5},
    "compaction_keep": 2,
}


@contextmanager
def application(
    settings: dict[str, Any], said: list[Any], written: list[Any]
) -> Iterator[tuple[AgentApplication, ScriptedProvider]]:
    """Hold an application whose agents both have the feature; yield it with the writer's provider."""
    writer = ScriptedProvider(written, name="small")
    always = {"compaction_trigger": "request_complete", "compaction_threshold": 0, "compaction_keep": 0}
    config = {
        "default_agent": "main",
        "agents": {
            "main": {"model": "large", "plugin_ids": ["compaction"], "sections": {"compaction": settings}},
            "writer": {"model": "small", "plugin_ids": ["compaction"], "sections": {"config": always}},
        },
        "models": {"large": {"provider": "scripted"}, "small": {"provider": "small"}},
    }
    plugins = [ScriptedProvider(said), writer, CompactionFeature]
    with AgentApplication(config, plugins=plugins, installed=False) as app:
        yield app, writer


def talk(app: AgentApplication, rounds: int) -> str:
    session_id = app.create_session().session_id
    for number in range(rounds):
        *_, last = app.chat(session_id, f"{number} {LONG}", stream=False)
        assert last["type"] == "final"
    return session_id


def test_a_long_session_is_compacted_when_a_request_completes_and_stored_like_that() -> None:
    with application(SETTINGS, ["a", "b", "c"], ["What was said."]) as (app, writer):
        session = app.load_session(talk(app, 3))

        assert [message.role for message in session.messages] == ["user", "user", "assistant"]
        assert session.messages[0].content.endswith("What was said.")
        assert len(writer.requests) == 1  # the writer's own session is temporary and stays as it is
        assert app.store.check(deep=True).problems == ()


def test_what_was_compacted_is_put_back_from_the_store() -> None:
    with application({}, ["a", "b", "c", "What was said."], []) as (app, _):
        session_id = talk(app, 3)
        before = app.load_session(session_id)

        compacted, _ = app.execute_session_action(session_id, "compaction", "compact_range", {"end": 4})
        app.execute_session_action(session_id, "compaction", "undo_compaction", {})
        after = app.load_session(session_id)

        assert len(compacted.messages) == 3
        assert after.messages == before.messages
        assert after.metadata["native_messages"] == before.metadata["native_messages"]


def test_the_conversation_goes_on_with_the_summary() -> None:
    with application(SETTINGS, ["a", "b", "c", "d"], ["What was said."]) as (app, _):
        session_id = talk(app, 3)

        *_, last = app.chat(session_id, "And now?", stream=False)

        assert last["text"] == "d"
        assert len(app.load_session(session_id).messages) == 5


def test_an_agent_that_fails_leaves_the_session_as_it_is() -> None:
    with application(SETTINGS, ["a", "b", "c"], [RuntimeError("down"), RuntimeError("down")]) as (app, _):
        session_id = talk(app, 3)
        before = app.load_session(session_id)

        _, result = app.execute_session_action(session_id, "compaction", "compact_range", {"end": 4})

        assert len(before.messages) == 6
        assert "agent 'writer' failed" in result["error"]["message"]
        assert app.load_session(session_id).messages == before.messages


def test_an_agent_that_is_not_declared_is_named() -> None:
    with application({"compaction_agent": "nobody"}, ["a", "b"], []) as (app, _):
        session_id = talk(app, 2)

        _, result = app.execute_session_action(
            session_id, "compaction", "compact_range", {"start": 0, "end": 2}
        )

        assert "'nobody' is not declared" in result["error"]["message"]

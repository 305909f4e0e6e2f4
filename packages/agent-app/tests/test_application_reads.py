"""What a front end asks the application for, so that it needs no store: each with its async twin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_app import AgentApplication, SessionNotFound
from agent_core import ArgumentError, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Suspend

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
PICTURE = {"type": "image", "mime_type": "image/png", "data": "aGVsbG8="}
Ask = Callable[..., Any]


class Guard:
    """A runtime plugin with a tool that needs an approval."""

    name = "guard"
    version = "1"

    def register(self, registrar: Any) -> None:
        def post() -> str:
            """Publish."""
            return "posted"

        registrar.tool("post", tool(post))
        registrar.tool_gate(lambda view: None if view.call.decision else Suspend("Publish?"))


def open_app(url: str, script: Any = ("one", "two")) -> AgentApplication:
    return AgentApplication(CONFIG, store=url, plugins=[ScriptedProvider(script), Guard()], installed=False)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[AgentApplication]:
    with open_app(f"sqlite:///{tmp_path}/sessions.db") as application:
        yield application


@pytest.fixture(params=["plain", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Call a method, or its twin on an event loop."""

    def call(app: AgentApplication, name: str, *given: Any, **named: Any) -> Any:
        if request.param == "plain":
            return getattr(app, name)(*given, **named)
        return asyncio.run(getattr(app, f"{name}_async")(*given, **named))

    return call


def test_one_session_is_described_as_in_the_list(app: AgentApplication, ask: Ask) -> None:
    session_id = app.create_session().session_id
    app.rename_session(session_id, "Lunch")

    assert [ask(app, "session_info", session_id)] == list(app.list_sessions().sessions)
    with pytest.raises(SessionNotFound):
        ask(app, "session_info", "nobody")


def test_the_holder_of_a_session_is_known_to_other_applications(
    app: AgentApplication, ask: Ask, tmp_path: Path
) -> None:
    session_id = app.create_session().session_id

    with open_app(f"sqlite:///{tmp_path}/sessions.db") as other:
        assert ask(other, "holder", session_id) is None
        with app.chat(session_id, "hi") as events:
            next(iter(events))
            assert ask(other, "holder", session_id).session_id == session_id
        assert ask(other, "holder", session_id) is None


def test_the_log_is_read_in_pages(app: AgentApplication, ask: Ask) -> None:
    session_id = app.create_session().session_id
    shown = [event["type"] for event in app.chat(session_id, "hi")]

    events = ask(app, "events", session_id)
    assert [event["type"] for event in events] == ["session_created", *shown]
    assert ask(app, "events", session_id, 1, 2) == events[1:3]
    assert ask(app, "events", session_id, len(events)) == []
    assert ask(app, "last_event", session_id) == len(events)


@given(count=st.integers(0, 300))
@settings(max_examples=40, deadline=None)
def test_the_last_event_of_a_log_is_found(count: int) -> None:
    with open_app("sqlite://") as app:
        app.store.create(Session("s"))
        app.store.append_events("s", [{"type": "note"}] * count)

        assert app.last_event("s") == count


def test_a_queued_message_can_be_withdrawn_once(app: AgentApplication, ask: Ask) -> None:
    session_id = app.create_session().session_id
    first, second = (app.enqueue(session_id, text, "queue") for text in ("first", "second"))

    assert list(ask(app, "queued", session_id)) == [first, second]
    assert ask(app, "withdraw", session_id, first.seq) is True
    assert ask(app, "withdraw", session_id, first.seq) is False
    assert list(ask(app, "queued", session_id)) == [second]


def test_what_was_delivered_cannot_be_withdrawn(app: AgentApplication, ask: Ask) -> None:
    session_id = app.create_session().session_id
    waiting = app.enqueue(session_id, "hello", "queue")
    list(app.chat(session_id))

    assert ask(app, "withdraw", session_id, waiting.seq) is False


def test_a_message_that_is_enqueued_twice_under_a_key_is_there_once(app: AgentApplication) -> None:
    session_id = app.create_session().session_id

    first = app.enqueue(session_id, "once", "queue", key="k")
    again = app.enqueue(session_id, "once", "queue", key="k")
    other = app.enqueue(session_id, "once", "queue", key="another")

    assert (again.seq, again.message) == (first.seq, first.message)
    assert [waiting.seq for waiting in app.queued(session_id)] == [first.seq, other.seq]
    found = app.input_under(session_id, "k")
    assert found is not None
    assert found["input"] == first.seq
    assert app.input_under(session_id, "unknown") is None


def test_a_queued_message_brings_its_attachments(app: AgentApplication, ask: Ask) -> None:
    session_id = app.create_session().session_id

    ask(app, "enqueue", session_id, "Look", "queue", attachments=[PICTURE])
    list(app.chat(session_id))

    said = app.load_session(session_id).messages[0]
    assert said.content == "Look"
    assert [part["type"] for part in said.multipart_content or ()] == ["text", "image"]


def test_an_attachment_needs_no_text_and_must_be_a_part(app: AgentApplication, ask: Ask) -> None:
    session_id = app.create_session().session_id

    assert ask(app, "enqueue", session_id, "", attachments=[PICTURE]).message["content"] == ""
    with pytest.raises(ArgumentError, match="content parts"):
        ask(app, "enqueue", session_id, "Look", attachments="picture.png")


def test_approvals_that_were_decided_are_returned_if_wanted(tmp_path: Path, ask: Ask) -> None:
    script = [Reply(tool_calls=[ToolCall("post", {})]), "done"]
    with open_app(f"sqlite:///{tmp_path}/approvals.db", script) as app:
        session_id = app.create_session().session_id
        list(app.chat(session_id, "post it"))
        [waiting] = ask(app, "approvals", session_id)
        app.decide(waiting.id, decision=True)

        assert list(ask(app, "approvals", session_id)) == []
        [decided] = ask(app, "approvals", session_id, decided=True)
        assert (decided.id, decided.decision, decided.used) == (waiting.id, {"approved": True}, False)


def test_an_application_knows_its_models_and_whether_it_keeps_anything(app: AgentApplication) -> None:
    assert [spec.provider for spec in app.models.values()] == ["scripted"]
    assert "scripted" in app.providers
    assert not app.is_ephemeral
    with open_app("sqlite://") as other:
        assert other.is_ephemeral

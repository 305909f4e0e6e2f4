"""Every change is an event: in the session's log, and in the one stream of all sessions."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, SessionBusy
from agent_core import ArgumentError, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "agents": {
        "a": {"model": "m", "description": "Answers.", "plugin_ids": ["titles", "files"]},
        "b": {"model": "m", "plugin_ids": []},
    },
    "default_agent": "a",
    "models": {"m": {"provider": "scripted", "context_window": 1000}},
    "permissions": {"ask": ["wipe"]},
}


class Titles:
    """A feature with an action, an element and a suggestion."""

    name = "titles"
    version = "1"

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": "note", "label": "Note"}]

    def execute_action(
        self, action_id: str, session: Any, native_messages: Any, params: Any
    ) -> dict[str, Any]:
        return {"session_metadata": {"noted": True}}

    def get_ui_elements(self, config: Any) -> list[dict[str, Any]]:
        return [{"ui_type": "session_action", "id": "note", "label": "Note", "action_id": "note"}]

    def get_completions(self, config: Any, text: str) -> list[dict[str, Any]]:
        return [{"replacement": "/note", "start": -len(text)}]

    def apply_completion(self, config: Any, text: str, completion: Any) -> str:
        return "/note now"

    def get_config_schema(self) -> dict[str, Any]:
        return {"note_length": {"type": "integer"}}


class Files:
    """A tool that is asked about."""

    name = "files"
    version = "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("wipe", wipe)


@tool
def wipe() -> str:
    """Remove everything."""
    return "gone"


class Keeper:
    """An application plugin that makes, changes and deletes sessions."""

    name = "keeper"
    version = "1"

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        about = {"inputs": {"session_id": {"type": "string"}}}
        return [{"id": "tidy", "label": "Tidy", **about}, {"id": "look", "label": "Look", **about}]

    def execute_action(
        self, app: AgentApplication, action_id: str, params: Any, context: Any, state: Any
    ) -> dict[str, Any]:
        if action_id == "look":
            return {"status": "ok"}
        seen = app.load_session(params["session_id"])
        made = app.create_session_ephemeral(session_id="made")
        return {"mutations": {"created": [made], "updated": [seen.with_metadata({"tidy": True})]}}

    def get_ui_elements(self, config: Any) -> list[dict[str, Any]]:
        return [{"ui_type": "application_action", "id": "tidy", "label": "Tidy", "action_id": "tidy"}]


@pytest.fixture
def make(address: str, tmp_path: Path) -> Iterator[Callable[..., AgentApplication]]:
    apps: list[AgentApplication] = []

    def open_app(*script: Any) -> AgentApplication:
        plugins = [ScriptedProvider(list(script)), Titles, Files, Keeper]
        made = AgentApplication(
            CONFIG, store=address, assets=tmp_path / "assets", plugins=plugins, installed=False
        )
        apps.append(made)
        return made

    yield open_app
    for app in apps:
        app.close()


@pytest.fixture
def app(make: Callable[..., AgentApplication]) -> AgentApplication:
    return make("one", "two", "three")


def types(events: Any) -> list[str]:
    return [event["type"] for event in events]


def last(app: AgentApplication, session_id: str) -> dict[str, Any]:
    event = dict(app.events(session_id)[-1])
    assert json.loads(json.dumps(event)) == event
    return {key: value for key, value in event.items() if key != "seq"}


def until(events: Any, kind: str) -> list[dict[str, Any]]:
    found = []
    for event in events:
        found.append(event)
        if event["type"] == kind:
            break
    return found


# What is logged


def test_creating_renaming_switching_and_saving_are_logged(app: AgentApplication) -> None:
    session = app.create_session()
    name = session.session_id
    assert last(app, name) == {"type": "session_created", "agent_id": "a"}

    app.rename_session(name, "Tea")
    assert last(app, name) == {"type": "session_renamed", "title": "Tea"}

    app.switch_agent(name, "b")
    assert last(app, name) == {"type": "agent_switched", "previous_agent_id": "a", "agent_id": "b"}

    stored = app.load_session(name)
    app.save_session(stored)  # as it is: nothing has changed
    app.save_session(stored.with_metadata({"mood": "calm"}))
    assert types(app.events(name))[3:] == ["session_changed"]
    assert last(app, name) == {"type": "session_changed", "messages": 0}


def test_a_fork_is_in_both_logs(app: AgentApplication) -> None:
    name = app.create_session().session_id
    list(app.chat(name, "hello"))

    branch = app.fork_session(name, upto_index=0).session_id

    assert last(app, name) == {"type": "session_forked", "branch_id": branch, "upto_index": 0}
    assert last(app, branch) == {"type": "session_created", "agent_id": "a", "parent_id": name}
    assert [one.id for one in app.branches(branch)] == [name, branch]


def test_messages_that_wait_are_logged_when_they_come_change_go_and_are_delivered(
    app: AgentApplication,
) -> None:
    name = app.create_session().session_id
    first = app.enqueue(name, "hello", "queue")
    message = {"role": "user", "content": "hello", "metadata": {}}
    assert last(app, name) == {
        "type": "input_queued", "input": first.seq, "mode": "queue", "message": message,
    }  # fmt: skip

    edited = app.edit_queued(name, first.seq, "goodbye")
    assert edited is not None and edited.to_dict()["mode"] == "queue"
    assert last(app, name)["type"] == "input_edited"
    assert last(app, name)["message"]["content"] == "goodbye"
    assert app.queued(name) == [edited]

    assert app.withdraw(name, first.seq)
    assert last(app, name) == {"type": "input_withdrawn", "input": first.seq}
    assert not app.withdraw(name, first.seq)
    assert app.edit_queued(name, first.seq, "again") is None
    assert types(app.events(name))[-1] == "input_withdrawn"  # what did not happen is not logged

    second = app.enqueue(name, "now", "queue")
    list(app.chat(name))
    (delivered,) = [one for one in app.events(name) if one["type"] == "input_delivered"]
    assert delivered["inputs"] == [second.seq]


def test_decisions_and_grants_are_logged(make: Callable[..., AgentApplication]) -> None:
    app = make(Reply(tool_calls=[ToolCall("wipe", {})]), "done", Reply(tool_calls=[ToolCall("wipe", {})]))
    name = app.create_session().session_id
    list(app.chat(name, "wipe it"))
    (asked,) = app.approvals(name)
    assert json.loads(json.dumps(asked.to_dict()))["id"] == asked.id

    app.decide(asked.id, {"approved": True, "grant": {"scope": "session", "pattern": "wipe"}})

    decided, granted = app.events(name)[-2:]
    assert (decided["type"], decided["approval_id"], decided["decision"]) == (
        "decision_made", asked.id, {"approved": True},
    )  # fmt: skip
    assert (granted["type"], granted["grant"]["pattern"]) == ("grant_given", "wipe")
    (grant,) = app.grants(name)
    app.revoke(grant.id)
    assert last(app, name) == {"type": "grant_revoked", "grant": grant.to_dict()}


def feed_of(app: AgentApplication, count: int, after: str = "0") -> list[Any]:
    """Return the events of all sessions when there are that many.

    PostgreSQL holds events back while anybody's older transaction is under way, also in another database.
    """
    deadline = time.monotonic() + 60
    while len(found := list(app.all_events(after))) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_a_grant_for_all_is_in_the_stream_of_all(app: AgentApplication) -> None:
    after = app.last_cursor()
    grant = app.grant("wipe", scope="always")

    (event,) = feed_of(app, 1, after)
    assert (event["type"], event["grant"], "session_id" in event) == ("grant_given", grant.to_dict(), False)


def test_a_grant_that_answers_what_waits_logs_the_decision(make: Callable[..., AgentApplication]) -> None:
    app = make(Reply(tool_calls=[ToolCall("wipe", {})]))
    name = app.create_session().session_id
    list(app.chat(name, "wipe it"))

    app.grant("wipe", scope="session", session_id=name)

    assert types(app.events(name))[-2:] == ["grant_given", "decision_made"]


def test_actions_and_what_they_change_are_logged(app: AgentApplication) -> None:
    name = app.create_session().session_id
    app.execute_session_action(name, "titles", "note", {})
    assert last(app, name) == {"type": "action_executed", "plugin": "titles", "action_id": "note"}

    after = feed_of(app, 2)[-1]["cursor"]
    app.execute_application_action("keeper", "tidy", {"session_id": name})
    app.execute_application_action("keeper", "look", {})

    assert [(event["type"], event.get("session_id")) for event in feed_of(app, 4, after)] == [
        ("session_created", "made"),
        ("session_changed", name),
        ("action_executed", name),
        ("action_executed", None),
    ]


def test_a_deleted_session_is_named_in_the_stream_of_all(app: AgentApplication) -> None:
    name = app.create_session().session_id
    after = feed_of(app, 1)[-1]["cursor"]

    app.delete_session(name, "tidying")

    (event,) = feed_of(app, 1, after)
    del event["cursor"]
    assert event == {"type": "session_deleted", "session_id": name, "reason": "tidying"}


def test_files_of_a_session_are_logged_and_read(app: AgentApplication) -> None:
    name = app.create_session().session_id
    about = app.add_asset(name, b"green", name="tea.txt")
    assert last(app, name) == {"type": "asset_added", "asset": about}
    assert app.list_assets(name) == [about]
    assert app.read_asset(name, about["id"]) == (about, b"green")
    assert app.remove_asset(name, about["id"])
    assert last(app, name) == {"type": "asset_removed", "asset_id": about["id"]}
    assert not app.remove_asset(name, about["id"])


# The stream of all sessions


def test_a_second_window_learns_of_what_the_first_one_does(
    make: Callable[..., AgentApplication], kind: str
) -> None:
    first = make("hello")
    second = first if kind == "sqlite memory" else make()
    with second.subscribe_all(second.last_cursor()) as stream:
        name = first.create_session().session_id
        first.rename_session(name, "Tea")
        list(first.chat(name, "hi"))
        first.delete_session(name)
        seen = until(stream, "session_deleted")

    # The log of a session goes with it: whoever reads late sees only its end.
    assert types(seen)[-1] == "session_deleted"
    assert {event["session_id"] for event in seen} == {name}


def test_the_stream_of_all_is_resumed_where_it_was_left(app: AgentApplication) -> None:
    name = app.create_session().session_id
    list(app.chat(name, "hi"))
    app.rename_session(name, "Tea")
    whole = feed_of(app, len(app.events(name)))
    with app.subscribe_all() as stream:
        assert [next(stream) for _ in whole] == whole

    for place, event in enumerate(whole):
        with app.subscribe_all(event["cursor"]) as stream:
            assert [next(stream) for _ in whole[place + 1 :]] == whole[place + 1 :]
    assert app.last_cursor() == whole[-1]["cursor"]
    assert [one["seq"] for one in whole] == [one["seq"] for one in app.events(name)]


@pytest.mark.parametrize("cursor", ["x", "-1", "1.0", "²", 3, str(2**70)])
def test_a_cursor_that_is_none_is_refused(app: AgentApplication, cursor: Any) -> None:
    with pytest.raises(ArgumentError, match=r"cursor|after"), app.subscribe_all(cursor) as stream:
        next(stream)


def test_the_stream_of_all_is_followed_on_an_event_loop(app: AgentApplication) -> None:
    async def work() -> list[str]:
        found = []
        async with app.subscribe_all_async(await app.last_cursor_async()) as stream:
            name = (await app.create_session_async()).session_id
            await app.rename_session_async(name, "Tea")
            async for event in stream:
                found.append(event["type"])
                if event["type"] == "session_renamed":
                    break
        return found

    assert asyncio.run(work()) == ["session_created", "session_renamed"]


# What front ends ask for


def test_the_state_of_a_session_is_plain_data(app: AgentApplication) -> None:
    name = app.create_session().session_id
    waits = app.enqueue(name, "hello", "queue")

    state = app.session_state(name)

    assert json.loads(json.dumps(state)) == state
    assert (state["running"], state["holder"], state["last_event"]) == (None, None, 2)
    assert state["info"] == app.session_info(name).to_dict()
    assert state["queued"] == [waits.to_dict()]
    page = app.list_sessions()
    assert [info.id for info in page] == [name] == [page[0].id] and len(page) == 1
    assert json.loads(json.dumps(page.to_dict())) == {
        "sessions": [app.session_info(name).to_dict()], "cursor": None,
    }  # fmt: skip


@pytest.mark.parametrize("read", ["info", "holder", "inputs", "approvals"])
def test_whoever_goes_on_from_a_state_misses_no_event(
    app: AgentApplication, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    """A page that took a last event newer than the approvals next to it would never show the question."""
    name = app.create_session().session_id
    original = getattr(app.store, read)

    def changed_behind_it(*given: Any, **more: Any) -> Any:
        found = original(*given, **more)
        monkeypatch.undo()
        app.rename_session(name, "changed")
        return found

    monkeypatch.setattr(app.store, read, changed_behind_it)
    state = app.session_state(name)

    assert "session_renamed" in [event["type"] for event in app.events(name, state["last_event"])]


def test_agents_models_elements_and_suggestions_are_plain_data(app: AgentApplication) -> None:
    name = app.create_session().session_id

    assert [(one["id"], one["model"], one["default"]) for one in app.list_agents()] == [
        ("a", "m", True), ("b", "m", False),
    ]  # fmt: skip
    [model] = app.list_models()
    assert (model["id"], model["provider"], model["model"]) == ("m", "scripted", "")
    assert (model["context_window"], model["input_price"], model["output_price"]) == (1000, None, None)
    assert model["agents"] == ["a", "b"]
    assert [one["plugin"] for one in app.get_ui_schema()] == ["keeper"]
    assert [one["plugin"] for one in app.get_ui_schema(name)] == ["keeper", "titles"]
    assert app.get_completions(name, "/n") == [{"replacement": "/note", "start": -2}]
    assert app.apply_completion(name, "/n", {"replacement": "/note"}) == "/note now"
    assert "note_length" in [one["key"] for one in app.get_config_schema(name)]
    app.switch_agent(name, "b")
    assert app.get_completions(name, "/n") == []


# Runs that nobody waits for


class Gate:
    """An answer that begins, and ends when somebody opens the gate."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self, native_messages: list[dict[str, Any]]) -> str:
        self.opened.wait(60)
        return "late"


def test_a_detached_run_goes_on_and_is_found_again(make: Callable[..., AgentApplication]) -> None:
    gate = Gate()
    app = make(gate)
    name = app.create_session().session_id

    started = app.start_run(name, "hello")

    assert started == {"session_id": name, "after": 1}
    state = app.session_state(name)
    assert state["running"] == "here" and state["holder"]["session_id"] == name
    with pytest.raises(SessionBusy):
        app.start_run(name, "again")
    with app.subscribe(name, started["after"]) as stream:
        gate.opened.set()
        seen = until(stream, "final")
    assert types(seen)[0] == "run_start"
    assert seen[-1]["text"] == "late"
    assert app.load_session(name).messages[-1].content == "late"


def test_a_detached_run_is_cancelled_by_its_session(make: Callable[..., AgentApplication]) -> None:
    app = make(Reply(chunks=["half", "never"], delay=[0, math.inf]))
    name = app.create_session().session_id
    started = app.start_run(name, "hello")

    with app.subscribe(name, started["after"]) as stream:
        until(stream, "text")
        assert app.cancel(name)
        seen = until(stream, "final")

    assert seen[-1]["reason"]["code"] == "cancelled"
    assert app.load_session(name).messages[-1].content == "half"


def test_what_cannot_begin_is_said_to_whoever_starts_it(app: AgentApplication) -> None:
    name = app.create_session().session_id
    with pytest.raises(ArgumentError, match="nothing to say"):
        app.start_run(name)
    assert app.session_state(name)["running"] is None


def test_closing_stops_detached_runs_and_keeps_what_they_have(
    address: str, make: Callable[..., AgentApplication], kind: str
) -> None:
    if kind == "sqlite memory":
        pytest.skip("it is gone when it is closed")
    app = make(Reply(chunks=["half", "never"], delay=[0, math.inf]))
    name = app.create_session().session_id
    started = app.start_run(name, "hello")
    with app.subscribe(name, started["after"]) as stream:
        until(stream, "text")

    app.close()

    again = make()
    assert again.load_session(name).messages[-1].content == "half"
    assert types(again.events(name))[-1] == "final"
    assert again.holder(name) is None


def test_a_detached_run_on_an_event_loop_outlives_the_task_that_began_it(
    make: Callable[..., AgentApplication],
) -> None:
    app = make("hello")

    async def begin(name: str) -> dict[str, Any]:
        return await app.start_run_async(name, "hi")

    async def work() -> list[str]:
        name = (await app.create_session_async()).session_id
        started = await asyncio.create_task(begin(name))
        found = []
        async with app.subscribe_async(name, started["after"]) as stream:
            async for event in stream:
                found.append(event["type"])
                if event["type"] == "final":
                    break
        await app.stop_runs_async()
        return found

    seen = asyncio.run(work())
    assert (seen[0], seen[-1]) == ("run_start", "final")


def test_runs_on_an_event_loop_are_stopped_and_stored(make: Callable[..., AgentApplication]) -> None:
    app = make(Reply(chunks=["half", "never"], delay=[0, math.inf]))

    async def work() -> str:
        name = (await app.create_session_async()).session_id
        started = await app.start_run_async(name, "hi")
        async with app.subscribe_async(name, started["after"]) as stream:
            async for event in stream:
                if event["type"] == "text":
                    break
        await app.stop_runs_async()
        return name

    name = asyncio.run(work())
    assert app.load_session(name).messages[-1].content == "half"
    assert types(app.events(name))[-1] == "final"


def test_a_run_that_is_refused_hides_no_other(
    make: Callable[..., AgentApplication],
) -> None:
    app = make(Reply(chunks=["a", "b"], delay=math.inf))
    name = app.create_session().session_id
    app.start_run(name, "hi")
    with pytest.raises(SessionBusy):
        app.start_run(name, "again")

    app.stop_runs()

    assert app.session_state(name)["running"] is None
    assert types(app.events(name))[-1] == "final"

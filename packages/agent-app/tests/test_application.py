"""The application as a whole: opened and closed, many sessions at once, shared with others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_app import AgentApplication, SessionHeld, SessionOutdated, open_store
from agent_app.session_writer import with_writer
from agent_app.transfer import ImportRefused
from agent_core import Message, Session, tool
from agent_core.errors import RequestCancelled
from agent_core.testing import EchoProvider, Reply, ScriptedProvider, ToolCall

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Make = Callable[..., AgentApplication]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_app(script: Any = (), *plugins: Any, **more: Any) -> AgentApplication:
        provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
        more.setdefault("store", f"sqlite:///{tmp_path}/sessions.db")
        apps.append(AgentApplication(CONFIG, plugins=[provider, *plugins], installed=False, **more))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def texts(session: Session) -> list[str]:
    return [str(message.content) for message in session.messages]


def test_everything_works_without_a_file_and_without_settings() -> None:
    with AgentApplication(CONFIG, plugins=[ScriptedProvider(["hi"])], installed=False) as app:
        session_id = app.create_session().session_id
        assert list(app.chat(session_id, "hello"))[-1]["text"] == "hi"
        assert app.problems == ()


def test_a_store_may_be_given_in_place_of_its_address(tmp_path: Path, make: Make) -> None:
    store = open_store(f"sqlite:///{tmp_path}/own.db")
    app = make(["hi"], store=store)
    session_id = app.create_session().session_id

    assert app.store is store
    assert store.load(session_id).session == app.load_session(session_id)


def test_what_another_application_stored_is_seen_at_once(make: Make) -> None:
    one, two = make(["one", "three"]), make(["two"])
    session_id = one.create_session().session_id
    list(one.chat(session_id, "1"))
    assert texts(two.load_session(session_id)) == ["1", "one"]
    list(two.chat(session_id, "2"))
    assert texts(one.load_session(session_id)) == ["1", "one", "2", "two"]
    list(one.chat(session_id, "3"))
    assert texts(two.load_session(session_id)) == ["1", "one", "2", "two", "3", "three"]


def test_many_sessions_run_beside_each_other(make: Make) -> None:
    def echo(native: Any) -> str:
        return f"echo {native[-1]['content']}"

    app = make([echo] * 20)

    async def talk(number: int) -> list[str]:
        session = await app.create_session_async()
        async for _ in app.chat_async(session.session_id, f"number {number}"):
            pass
        return texts(await app.load_session_async(session.session_id))

    async def work() -> list[list[str]]:
        return await asyncio.gather(*(talk(number) for number in range(20)))

    expected = [[f"number {number}", f"echo number {number}"] for number in range(20)]
    assert asyncio.run(work()) == expected
    assert app.store.check(deep=True).problems == ()


def test_a_plugin_may_ask_another_agent_within_a_lifecycle(make: Make) -> None:
    class Title:
        name = "title"
        version = "1"

        def get_actions(self, state: Any) -> list[dict[str, Any]]:
            return [{"id": "title", "label": "Title", "inputs": {}, "trigger": "request_complete"}]

        def execute_action(
            self,
            action_id: str,
            session: Session,
            native_messages: Any,
            params: Any,
            context: Any,
            state: Any,
        ) -> dict[str, Any]:
            app = context["app"]
            core, config, beside = app.update_agent("a", Session("beside", session.messages))
            beside = core.add_message(beside, "user", "Find a title.")
            last = list(app.send_request(core, beside, config, stream=False))[-1]
            app.rename_session(session.session_id, last["text"])
            return {"native_messages": native_messages, "session_metadata": {"titled": True}}

    class Once(Title):
        def execute_action(
            self,
            action_id: str,
            session: Session,
            native_messages: Any,
            params: Any,
            context: Any,
            state: Any,
        ) -> dict[str, Any]:
            if session.session_id == "beside":
                return {"native_messages": native_messages}
            return super().execute_action(action_id, session, native_messages, params, context, state)

    app = make(["hi", "A greeting"], Once)
    session_id = app.create_session().session_id
    events = list(app.chat(session_id, "hello"))

    assert events[-1]["type"] == "final"
    assert app.store.info(session_id).title == "A greeting"
    assert app.load_session(session_id).metadata["titled"] is True
    assert [one.id for one in app.list_sessions().sessions] == [session_id]


def test_tools_find_the_application_and_their_own_key(make: Make) -> None:
    seen: list[Any] = []

    class Tools:
        name = "tools"
        version = "1"

        def register(self, registrar: Any) -> None:
            def look(context: dict[str, Any]) -> str:
                """Look around."""
                seen.append((context["app"], context["idempotency_key"], context["caller"]))
                return "seen"

            registrar.tool("look", tool(look, parallel=False))

    calls = [ToolCall("look"), ToolCall("look")]
    app = make([Reply(tool_calls=calls), "done"], Tools)
    session_id = app.create_session().session_id
    events = list(app.chat(session_id, "look", context={"caller": "me", "app": "mine"}))

    run_id = next(event["run_id"] for event in events if event["type"] == "run_start")
    assert seen == [(app, f"{run_id}:call_1", "me"), (app, f"{run_id}:call_2", "me")]


def test_attached_files_belong_to_their_session_and_its_branches(make: Make, tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looking:
        name = "looking"
        version = "1"

        def get_actions(self, state: Any) -> list[dict[str, Any]]:
            return [{"id": "look", "label": "Look", "inputs": {}, "trigger": "request_prepare"}]

        def execute_action(
            self, app: Any, action: str, params: Any, context: Any, state: Any
        ) -> dict[str, Any]:
            seen.append(context["session_asset_store"])
            return {}

    app = make(["hi"], Looking, assets=tmp_path / "assets")
    session_id = app.create_session().session_id
    list(app.chat(session_id, "hello"))
    branch = app.fork_session(session_id, upto_index=0)
    app.delete_session(session_id)

    assert type(seen[0]).__name__ == "SessionAssetStore"
    assert app.load_session(branch.session_id).messages[0].content == "hello"


def test_whoever_leaves_while_a_session_is_being_opened_holds_nothing(make: Make) -> None:
    app = make()
    session_id = app.create_session().session_id

    def work(_keeper: Any, _active: Any) -> Any:
        raise AssertionError("nobody wants this any more")

    flow = with_writer(app._services, session_id, work)
    step: Any = next(flow)
    with pytest.raises(RequestCancelled):
        flow.throw(RequestCancelled())
    step.work.blocking()  # a thread that was on its way comes late

    assert app.store.holder(session_id) is None
    assert app.save_session(app.load_session(session_id)).session_id == session_id


def test_the_right_to_write_is_renewed_while_a_run_goes_on_and_not_after_it(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[Callable[[], None]] = []

    class ByHand:
        def call_later(self, _seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
            alarms.append(callback)
            return lambda: None

    monkeypatch.setattr("agent_app.session_writer.SYSTEM_CLOCK", ByHand())
    app = make(["hi"])
    session_id = app.create_session().session_id
    events = app.chat(session_id, "hello")
    next(events)
    before = app.store.holder(session_id)
    alarms.pop()()
    after = app.store.holder(session_id)

    assert before is not None
    assert after is not None
    assert after.expires > before.expires
    assert len(alarms) == 1
    assert list(events)[-1]["type"] == "final"
    alarms.pop()()
    assert alarms == []
    assert app.store.holder(session_id) is None


def test_a_session_is_free_after_every_operation(make: Make) -> None:
    app = make(["hi", RuntimeError("boom")])
    session = app.create_session()
    operations: list[Callable[[], Any]] = [
        lambda: list(app.chat(session.session_id, "hello")),
        lambda: list(app.chat(session.session_id, "fail")),
        lambda: app.switch_agent(session.session_id, "a"),
        lambda: app.save_session(app.load_session(session.session_id)),
        lambda: app.fork_session(session.session_id, upto_index=0),
    ]
    for operation in operations:
        operation()
        assert app.store.holder(session.session_id) is None


def test_a_second_application_in_one_process_is_somebody_else(make: Make) -> None:
    one, two = make(["hi"]), make()
    session = one.create_session()
    events = one.chat(session.session_id, "hello")
    next(events)

    with pytest.raises(SessionHeld):
        two.save_session(two.load_session(session.session_id).with_metadata({"x": 1}))
    assert list(events)[-1]["type"] == "final"
    assert two.save_session(two.load_session(session.session_id)).messages[0] is not None


def test_long_sessions_are_read_by_pages(make: Make) -> None:
    app = make()
    messages = [Message("user" if place % 2 == 0 else "assistant", str(place)) for place in range(200)]
    session = app.save_session(Session("long", messages))

    assert [m.content for m in app.read_messages("long", limit=3)] == ["197", "198", "199"]
    assert [m.content for m in app.read_messages("long", before=2)] == ["0", "1"]
    assert app.read_messages("long", before=0) == []
    assert app.list_sessions().sessions[0].messages == len(session.messages)


def test_a_session_of_before_does_not_take_the_place_of_what_came_since(make: Make) -> None:
    app = make(["Hello."])
    before = app.create_session()
    list(app.chat(before.session_id, "Hi"))
    stored = app.load_session(before.session_id)

    with pytest.raises(SessionOutdated, match="load it again"):
        app.save_session(before.with_metadata({"x": 1}))
    with pytest.raises(SessionOutdated):
        app.save_session(Session(before.session_id, [Message("user", "Hi"), Message("assistant", "Bye.")]))

    assert app.load_session(before.session_id) == stored
    again = Session(before.session_id, [*map(replace, stored.messages), Message("user", "More")])
    assert len(app.save_session(again).messages) == 3
    assert app.save_session(before, replace=True).messages == before.messages


def test_a_title_that_a_plugin_gives_is_listed_unless_a_person_gave_one(make: Make) -> None:
    app = make()
    session = app.create_session()

    named = app.save_session(session.with_metadata({"title": "By a model"}))
    assert app.list_sessions().sessions[0].title == "By a model"

    app.rename_session(session.session_id, "By me")
    app.save_session(named.with_metadata({"title": "By a model, once more"}))
    assert app.list_sessions().sessions[0].title == "By me"


def test_a_session_goes_out_as_a_file_and_comes_back_under_another_id(make: Make, tmp_path: Path) -> None:
    app = make(["Hello."])
    session = app.create_session(metadata={"workspace_roots": ["/srv"], "title_by": "person"})
    list(app.chat(session.session_id, "Hi"))
    app.rename_session(session.session_id, "Greetings")

    app.export_session(session.session_id, tmp_path / "session.zip")
    back = app.import_session(tmp_path / "session.zip", metadata={"workspace_roots": ["/here"]})

    assert back.id != session.session_id
    assert back.title == "Greetings"
    assert texts(app.load_session(back.id)) == ["Hi", "Hello."]
    assert app.load_session(back.id).metadata["title_by"] == "person"
    assert app.load_session(back.id).metadata["workspace_roots"] == ["/here"]
    assert back.left_out == ("agent_id", "workspace_roots")


@pytest.mark.parametrize("said", ["go on", ""])
def test_a_call_that_a_file_leaves_open_is_not_run(make: Make, said: str) -> None:
    ran: list[str] = []

    class Tools:
        name = "tools"
        version = "1"

        def register(self, registrar: Any) -> None:
            @tool
            def work(number: int) -> str:
                """Work."""
                ran.append(str(number))
                return "worked"

            registrar.tool("work", work)

    call = {"id": "c", "type": "function", "function": {"name": "work", "arguments": '{"number": 1}'}}
    theirs = {
        "session_id": "s",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "", "metadata": {"tool_calls": [call]}},
        ],
        "metadata": {
            "agent_run": {"run_id": "r", "waiting": [{"id": "c", "settled": ["permissions"]}], "calls": ["c"]}
        },
    }
    app = make(["Done."], Tools)
    info = app.import_session(json.dumps(theirs))

    assert list(app.chat(info.id, said, run_id="r"))[-1]["type"] == "final"
    assert ran == [] and app.load_session(info.id).messages[2].metadata["interrupted"] is True


class Place:
    """A path of somebody else's class."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


@pytest.mark.parametrize("kind", [str, Path, Place])
def test_a_path_may_be_a_text_or_of_any_class_that_is_one(tmp_path: Path, kind: Any) -> None:
    options: dict[str, Any] = {"plugins": [EchoProvider], "installed": False}
    folder, secret, file = kind(tmp_path / "assets"), kind(tmp_path / "secret"), kind(tmp_path / "s.zip")
    config = {"agents": {"a": {"provider": "echo"}}}
    with AgentApplication(config, assets=folder, protected=[secret], **options) as app:
        name = app.create_session().session_id
        list(app.chat(name, "hello"))
        app.add_asset(name, b"x", name="n.txt")
        assert str(tmp_path / "secret") in app.runtime.resolve("a").config["protected_paths"]

        app.export_session(name, file)
        asyncio.run(app.export_session_async(name, file))
        source = Path(file) if kind is str else file
        made = app.import_session(source)

        assert [message.content for message in app.load_session(made.id).messages] == ["hello", "hello"]
        assert len(app.list_assets(made.id)) == 1


def test_a_text_is_no_path_when_something_is_imported(tmp_path: Path) -> None:
    options: dict[str, Any] = {"plugins": [EchoProvider], "installed": False}
    with AgentApplication({"agents": {"a": {"provider": "echo"}}}, **options) as app:
        app.export_session(app.create_session().session_id, tmp_path / "s.zip")

        with pytest.raises(ImportRefused, match="give the path of a file as a Path"):
            app.import_session(str(tmp_path / "s.zip"))

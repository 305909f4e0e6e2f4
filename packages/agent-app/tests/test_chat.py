"""Talking in stored sessions: one at a time, everything kept, branches that destroy nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, SessionBusy, SessionExists, SessionHeld, SessionNotFound
from agent_core import ArgumentError, MessageIndexError, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

AGENTS = {
    "a": {"model": "m", "system_prompt": "I am a"},
    "b": {"model": "m", "system_prompt": "I am b"},
}
MODELS = {"m": {"provider": "scripted"}}
Make = Callable[..., AgentApplication]
Events = list[dict[str, Any]]


def run_inline(app: AgentApplication, session_id: str, text: str, **more: Any) -> Events:
    return list(app.chat(session_id, text, **more))


def run_async(app: AgentApplication, session_id: str, text: str, **more: Any) -> Events:
    async def work() -> Events:
        return [event async for event in app.chat_async(session_id, text, **more)]

    return asyncio.run(work())


class Adder:
    """A runtime plugin with a tool that adds."""

    name = "adder"
    version = "1"

    def register(self, registrar: Any) -> None:
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        registrar.tool("add", tool(add))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_app(
        script: Any = (), *plugins: Any, models: Mapping[str, Any] = MODELS, name: str = "sessions"
    ) -> AgentApplication:
        config = {"agents": AGENTS, "models": models, "default_agent": "a"}
        provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
        url = f"sqlite:///{tmp_path}/{name}.db"
        apps.append(AgentApplication(config, store=url, plugins=[provider, *plugins], installed=False))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def texts(session: Session) -> list[str]:
    return [str(message.content) for message in session.messages]


@pytest.mark.parametrize("drive", [run_inline, run_async])
@pytest.mark.parametrize("stream", [True, False])
def test_a_chat_says_runs_and_keeps_everything(
    make: Make, drive: Callable[..., Events], stream: bool
) -> None:
    app = make([Reply(text="Let me see.", tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "It is 3."], Adder)
    session_id = app.create_session().session_id
    events = drive(app, session_id, "1+2?", stream=stream)

    final = events[-1]
    assert final["type"] == "final"
    assert final["text"] == "It is 3."
    assert final["reason"]["code"] == "natural_end"
    assert [message["role"] for message in final["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert final["session"] == app.load_session(session_id)
    assert texts(final["session"]) == ["1+2?", "Let me see.", "3", "It is 3."]
    numbers = [event["seq"] for event in events if event["type"] != "text"]
    assert numbers == sorted(set(numbers))
    assert [event["type"] for event in events].count("final") == 1


@pytest.mark.parametrize("drive", [run_inline, run_async])
def test_a_second_chat_goes_on_where_the_first_ended(make: Make, drive: Callable[..., Events]) -> None:
    provider = ScriptedProvider(["one", "two"])
    app = make(provider)
    session_id = app.create_session().session_id
    drive(app, session_id, "first")
    drive(app, session_id, "second")

    seen = [item.get("content") for item in provider.requests[1].native_messages]
    assert seen[-3:] == ["first", "one", "second"]
    assert texts(app.load_session(session_id)) == ["first", "one", "second", "two"]


def test_another_application_on_the_same_store_goes_on(make: Make) -> None:
    first = make(["one"])
    session_id = first.create_session().session_id
    run_inline(first, session_id, "first")
    first.close()
    second = make(["two"])
    run_inline(second, session_id, "second")

    assert texts(second.load_session(session_id)) == ["first", "one", "second", "two"]
    assert second.store.check(deep=True).problems == ()


def test_a_session_that_is_running_is_busy_for_everything_that_would_write_it(make: Make) -> None:
    app = make(["one"])
    session = app.create_session()
    events = app.chat(session.session_id, "first")
    next(events)

    for operation in (
        lambda: next(app.chat(session.session_id, "second")),
        lambda: app.switch_agent(session.session_id, "b"),
        lambda: app.save_session(session.with_metadata({"x": 1})),
        lambda: app.execute_session_action(session.session_id, "nobody", "nothing", {}),
    ):
        with pytest.raises(SessionBusy, match="enqueue"):
            operation()
    assert list(events)[-1]["type"] == "final"
    assert texts(app.load_session(session.session_id)) == ["first", "one"]


def test_a_session_in_use_elsewhere_is_held_and_the_holder_is_named(make: Make) -> None:
    one, two = make(["one"]), make(["two"])
    session_id = one.create_session().session_id
    events = one.chat(session_id, "first")
    next(events)

    with pytest.raises(SessionHeld, match="process") as caught:
        next(two.chat(session_id, "second"))
    assert "process" in caught.value.holder.owner
    with pytest.raises(SessionHeld):
        two.delete_session(session_id)
    list(events)
    assert run_inline(two, session_id, "second")[-1]["type"] == "final"
    assert texts(one.load_session(session_id)) == ["first", "one", "second", "two"]


def test_whoever_was_taken_over_cannot_write_any_more(make: Make) -> None:
    one, two = make([Reply(text="ab", chunks=["a", "b"])]), make(["yes"])
    session_id = one.create_session().session_id
    events = one.chat(session_id, "first")
    next(event for event in events if event["type"] == "text")
    taken = list(two.chat(session_id, "mine now", take_over=True))
    last = list(events)[-1]

    assert taken[-1]["type"] == "final"
    assert last["type"] == "error"
    assert last["error"]["type"] == "LeaseLost"
    assert texts(two.load_session(session_id)) == ["first", "mine now", "yes"]


def test_whoever_was_taken_over_cannot_write_into_the_log_any_more(make: Make) -> None:
    chunks = ["a", "b", "c", "d"]
    one, two = make([Reply(text="abcd", chunks=chunks)]), make(["yes"])
    session_id = one.create_session().session_id
    events = one.chat(session_id, "first")
    next(event for event in events if event["type"] == "text")
    list(two.chat(session_id, "mine now", take_over=True))
    logged = list(two.store.events(session_id))
    rest = list(events)

    assert [event["type"] for event in rest if event["type"] != "text"] == ["error"]
    assert "seq" not in rest[-1]
    assert two.store.events(session_id) == logged


def test_after_a_failed_request_the_session_is_free_and_keeps_what_was_said(make: Make) -> None:
    app = make([RuntimeError("boom"), "better"])
    session_id = app.create_session().session_id
    failed = run_inline(app, session_id, "hello")

    assert failed[-1]["type"] == "error"
    assert "boom" in failed[-1]["error"]["message"]
    assert texts(app.load_session(session_id)) == ["hello"]
    assert run_inline(app, session_id, "")[-1]["text"] == "better"


def test_leaving_early_keeps_what_came_and_frees_the_session(make: Make) -> None:
    app = make([Reply(text="abc", chunks=["a", "b", "c"]), "next"])
    session_id = app.create_session().session_id
    with app.chat(session_id, "hello") as events:
        next(event for event in events if event["type"] == "text")

    assert events.result == app.load_session(session_id)
    assert texts(app.load_session(session_id))[:1] == ["hello"]
    assert app.store.holder(session_id) is None
    assert run_inline(app, session_id, "again")[-1]["text"] == "next"


def test_a_task_that_is_cancelled_leaves_the_session_free(make: Make) -> None:
    reached = threading.Event()

    def slow(_messages: Any) -> Reply:
        reached.set()
        return Reply(text="ab", chunks=["a", "b"], delay=float("inf"))

    app = make([slow, "next"])
    session_id = app.create_session().session_id

    async def work() -> None:
        async def talk() -> None:
            async for _ in app.chat_async(session_id, "hello"):
                pass

        task = asyncio.create_task(talk())
        await asyncio.to_thread(reached.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert app.store.holder(session_id) is None
    assert texts(app.load_session(session_id))[0] == "hello"
    assert run_inline(app, session_id, "again")[-1]["type"] == "final"


@pytest.mark.parametrize("drive", [run_inline, run_async])
def test_cancel_stops_a_run_that_waits_for_the_model(make: Make, drive: Callable[..., Events]) -> None:
    reached = threading.Event()

    def slow(_messages: Any) -> Reply:
        reached.set()
        return Reply(text="never", delay=float("inf"))

    app = make([slow])
    session_id = app.create_session().session_id
    assert app.cancel(session_id) is False

    def stop() -> None:
        reached.wait()
        app.cancel(session_id)

    thread = threading.Thread(target=stop)
    thread.start()
    events = drive(app, session_id, "hello")
    thread.join()

    assert events[-1]["type"] == "final"
    assert events[-1]["reason"]["code"] == "cancelled"
    assert app.cancel(session_id) is False


def test_attachments_become_parts_of_the_message(make: Make) -> None:
    app = make(["nice", "again"])
    session_id = app.create_session().session_id
    picture = {"type": "image", "data": "aGk=", "media_type": "image/png"}
    run_inline(app, session_id, "look", attachments=[picture])
    run_inline(app, session_id, "", attachments=[picture])

    said = [message for message in app.load_session(session_id).messages if message.role == "user"]
    assert said[0].multipart_content == [{"type": "text", "text": "look"}, picture]
    assert said[1].multipart_content == [picture]


@pytest.mark.parametrize("attachments", ["file.png", {"type": "image"}, [3], ["file.png"]])
def test_attachments_that_are_none_are_refused(make: Make, attachments: Any) -> None:
    app = make([])
    session_id = app.create_session().session_id

    with pytest.raises(ArgumentError, match="attachments"):
        app.chat(session_id, "look", attachments=attachments)
    assert texts(app.load_session(session_id)) == []


def test_settings_come_from_the_agent_then_the_session_then_the_caller(make: Make) -> None:
    provider = ScriptedProvider(["one", "two"])
    settings = {"temperature": 0.1, "top_p": 0.1, "seed": 1}
    app = make(provider, models={"m": {"provider": "scripted", "config": settings}})
    own = {"overrides": {"top_p": 0.2, "seed": 2}}
    session_id = app.create_session(metadata=own).session_id
    run_inline(app, session_id, "hello", overrides={"seed": 3})
    run_inline(app, session_id, "hello")

    keys = ("temperature", "top_p", "seed")
    assert [provider.requests[0].config[key] for key in keys] == [0.1, 0.2, 3]
    assert provider.requests[1].config["seed"] == 2


def test_nothing_to_say_is_refused_and_changes_nothing(make: Make) -> None:
    app = make([])
    session_id = app.create_session().session_id

    with pytest.raises(ArgumentError, match="nothing to say"):
        run_inline(app, session_id, "")
    with pytest.raises(ArgumentError, match="text"):
        app.chat(session_id, 3)  # type: ignore[arg-type]
    with pytest.raises(SessionNotFound):
        run_inline(app, "nowhere", "hello")
    assert app.store.holder(session_id) is None


def test_a_fork_shares_the_beginning_and_leaves_its_source_alone(make: Make) -> None:
    app = make(["one", "two", "other"])
    source = app.create_session().session_id
    run_inline(app, source, "first")
    run_inline(app, source, "second")
    before = app.load_session(source)
    fork = app.fork_session(source, upto_index=1, agent_id="b")
    run_inline(app, fork.session_id, "elsewhere")

    assert app.load_session(source) == before
    assert texts(app.load_session(fork.session_id)) == ["first", "one", "elsewhere", "other"]
    assert app.store.info(fork.session_id).parent_id == source
    assert app.store.info(fork.session_id).agent_id == "b"


def test_an_edit_makes_a_branch_that_asks_anew(make: Make) -> None:
    app = make(["one", "two", "other"])
    source = app.create_session().session_id
    run_inline(app, source, "first")
    run_inline(app, source, "second")
    before = app.load_session(source)
    branch = app.edit_message(source, -2, "changed")
    events = run_inline(app, branch.session_id, "")

    assert texts(branch) == ["first", "one", "changed"]
    assert events[-1]["text"] == "other"
    assert app.load_session(source) == before


def test_regenerating_asks_again_without_the_whole_answer(make: Make) -> None:
    script = ["hello", Reply(text="hm", tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "three", "3"]
    app = make(script, Adder)
    source = app.create_session().session_id
    run_inline(app, source, "first")
    run_inline(app, source, "1+2?")
    before = app.load_session(source)
    branch = app.regenerate(source, -1)
    run_inline(app, branch.session_id, "")

    assert texts(branch) == ["first", "hello", "1+2?"]
    assert texts(app.load_session(branch.session_id))[-1] == "3"
    assert app.load_session(source) == before


def test_places_that_are_none_are_refused(make: Make) -> None:
    app = make(["one"])
    source = app.create_session().session_id
    run_inline(app, source, "first")

    operations: list[Callable[[], Session]] = [
        lambda: app.fork_session(source, upto_index=2),
        lambda: app.fork_session(source, upto_index=-3),
        lambda: app.edit_message(source, 2, "x"),
        lambda: app.regenerate(source, 2),
    ]
    for operation in operations:
        with pytest.raises(MessageIndexError):
            operation()
    with pytest.raises(ArgumentError, match="not an answer"):
        app.regenerate(source, 0)
    with pytest.raises(ArgumentError, match="index"):
        app.fork_session(source, upto_index=True)
    assert len(app.list_sessions().sessions) == 1
    assert texts(app.fork_session(source, upto_index=-1)) == ["first", "one"]


def test_a_branch_in_the_middle_of_a_tool_round_says_that_the_call_may_have_run(make: Make) -> None:
    script = [Reply(text="hm", tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "three", "I see"]
    app = make(script, Adder)
    source = app.create_session().session_id
    run_inline(app, source, "1+2?")
    branch = app.fork_session(source, upto_index=1)
    run_inline(app, branch.session_id, "and?")

    answer = app.load_session(branch.session_id).messages[2]
    assert answer.role == "tool"
    assert "may have run" in str(answer.content)
    assert answer.metadata["uncertain"] is True


def test_a_switched_session_is_answered_by_its_new_agent(make: Make) -> None:
    provider = ScriptedProvider(["one", "two"])
    app = make(provider)
    session_id = app.create_session("a").session_id
    run_inline(app, session_id, "first")
    app.switch_agent(session_id, "b")
    run_inline(app, session_id, "second")

    assert "I am b" in str(provider.requests[1].native_messages)
    assert "I am a" not in str(provider.requests[1].native_messages)
    with pytest.raises(ArgumentError, match="not declared"):
        app.switch_agent(session_id, "c")


def test_deleting_a_session_that_runs_ends_the_run_and_tells_it(make: Make) -> None:
    app = make([Reply(text="abc", chunks=["a", "b", "c"])])
    session_id = app.create_session().session_id
    events = app.chat(session_id, "hello")
    next(event for event in events if event["type"] == "text")
    app.delete_session(session_id)
    rest = list(events)

    assert rest[-1]["type"] == "error"
    assert app.list_sessions().sessions == ()
    with pytest.raises(SessionNotFound):
        app.load_session(session_id)
    with pytest.raises(SessionNotFound):
        app.delete_session(session_id)


def test_an_ephemeral_session_can_be_talked_in_and_saved_later(make: Make) -> None:
    app = make(["hi"])
    core, config, session = app.update_agent("b", app.create_session_ephemeral())
    events = list(app.send_request(core, core.add_message(session, "user", "hello"), config))
    session = events[-1]["session"]

    assert app.list_sessions().sessions == ()
    assert "seq" not in events[0]
    saved = app.save_session(session)
    assert texts(app.load_session(saved.session_id)) == ["hello", "hi"]
    assert app.store.info(saved.session_id).agent_id == "b"


def test_send_request_uses_the_settings_that_it_is_given(make: Make) -> None:
    provider = ScriptedProvider(["hi", "ho"])
    app = make(provider)
    core, config, session = app.update_agent("b", app.create_session_ephemeral())
    session = core.add_message(session, "user", "hello")
    list(app.send_request(core, session, {**config, "top_p": 0.5}, {"temperature": 0.3}, stream=False))

    seen = provider.requests[0]
    assert (seen.config["top_p"], seen.config["temperature"]) == (0.5, 0.3)
    assert "I am b" in str(seen.native_messages)
    with pytest.raises(ArgumentError, match="update_agent"):
        app.send_request(None, session, config)  # type: ignore[arg-type]


def test_ids_and_agents_of_new_sessions_are_checked(make: Make) -> None:
    app = make([])
    app.create_session(session_id="mine")

    with pytest.raises(SessionExists, match="mine"):
        app.create_session(session_id="mine")
    with pytest.raises(ArgumentError, match="'b'"):
        app.create_session("bb")
    assert app.create_session().metadata["agent_id"] == "a"


def test_sessions_are_renamed_listed_and_found(make: Make) -> None:
    app = make(["The quick brown fox", "nothing of interest"])
    fox, other = app.create_session().session_id, app.create_session().session_id
    run_inline(app, fox, "tell me")
    run_inline(app, other, "go on")
    app.rename_session(other, "Lazy dogs")

    assert [one.id for one in app.list_sessions("brown fox").sessions] == [fox]
    assert [one.id for one in app.list_sessions("lazy").sessions] == [other]
    first = app.list_sessions(limit=1)
    second = app.list_sessions(cursor=first.cursor, limit=1)
    assert {first.sessions[0].id, second.sessions[0].id} == {fox, other}
    assert second.cursor is None
    assert [message.content for message in app.read_messages(fox, limit=1)] == ["The quick brown fox"]
    assert [message.content for message in app.read_messages(fox, before=1)] == ["tell me"]
    with pytest.raises(ArgumentError, match="title"):
        app.rename_session(fox, None)  # type: ignore[arg-type]


def test_two_threads_on_one_session_never_mix(make: Make) -> None:
    app = make([str(number) for number in range(8)])
    session_id = app.create_session().session_id
    outcomes: list[str] = []

    def talk(number: int) -> None:
        try:
            outcomes.append(run_inline(app, session_id, f"question {number}")[-1]["type"])
        except SessionBusy:
            outcomes.append("busy")

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    roles = [message.role for message in app.load_session(session_id).messages]
    assert roles == ["user", "assistant"] * outcomes.count("final")
    assert set(outcomes) <= {"final", "busy"}
    assert outcomes.count("final") >= 1


def twin_results(app: AgentApplication, call: Callable[[str, Sequence[Any]], Any]) -> list[Any]:
    """Do one of everything, and return what can be compared."""
    session = call("create_session", ["b"])
    session_id = session.session_id
    results: list[Any] = [session.metadata, call("load_session", [session_id]).messages == session.messages]
    results.append(call("rename_session", [session_id, "T"]).title)
    results.append(call("save_session", [session.with_metadata({"x": 1})]).metadata["x"])
    results.append(call("enqueue", [session_id, "hello"]).message["content"])
    results.append(call("cancel", [session_id]))
    results.append(list(call("approvals", [session_id])))
    results.append(call("switch_agent", [session_id, "a"]).metadata["agent_id"])
    results.append([one.title for one in call("list_sessions", []).sessions])
    results.append(call("read_messages", [session_id]))
    results.append(call("update_agent", ["b", session])[1]["agent_id"])
    results.append(call("run_session_lifecycle", ["any", session])[1])
    results.append(call("create_session_ephemeral", ["a"]).metadata)
    results.append(call("get_actions", []))
    results.append(call("delete_session", [session_id]))
    return results


def test_each_twin_gives_the_same(make: Make) -> None:
    one, two = make([], name="one"), make([], name="two")
    plain = twin_results(one, lambda name, values: getattr(one, name)(*values))
    awaited = twin_results(two, lambda name, values: asyncio.run(getattr(two, f"{name}_async")(*values)))

    assert plain == awaited


def test_the_branching_twins_give_the_same(make: Make) -> None:
    app = make(["one"])
    source = app.create_session().session_id
    run_inline(app, source, "first")

    async def work() -> list[Session]:
        return [
            await app.fork_session_async(source, upto_index=0),
            await app.edit_message_async(source, 0, "changed"),
            await app.regenerate_async(source, 1),
        ]

    assert [texts(one) for one in asyncio.run(work())] == [
        texts(app.fork_session(source, upto_index=0)),
        texts(app.edit_message(source, 0, "changed")),
        texts(app.regenerate(source, 1)),
    ]

"""The event log: written before it is shown, read from any place, followed live."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, SessionNotFound
from agent_app.events import EventHub
from agent_core import ArgumentError
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Make = Callable[..., AgentApplication]
Events = list[dict[str, Any]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_app(script: Any = ()) -> AgentApplication:
        url = f"sqlite:///{tmp_path}/sessions.db"
        plugins = [ScriptedProvider(script)]
        apps.append(AgentApplication(CONFIG, store=url, plugins=plugins, installed=False))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def until_final(events: Iterator[dict[str, Any]]) -> Events:
    """Return the events up to the end of a request, and let go of the stream."""
    found: Events = []
    for event in events:
        found.append(event)
        if event["type"] in ("final", "error"):
            break
    return found


def shown(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event as a log shows it: without the whole session, as plain data."""
    plain: dict[str, Any] = json.loads(json.dumps({k: v for k, v in event.items() if k != "session"}))
    return plain


def whole(events: Iterable[dict[str, Any]]) -> Events:
    """Return the events that are not pieces of a text."""
    return [event for event in events if event["type"] != "text"]


def said(events: Iterable[dict[str, Any]]) -> str:
    """Return the pieces of text, added up."""
    return "".join(event["text"] for event in events if event["type"] == "text")


def test_what_is_shown_is_what_is_logged_with_rising_numbers(make: Make) -> None:
    app = make([Reply(text="abc", chunks=["a", "b", "c"]), RuntimeError("boom")])
    session_id = app.create_session().session_id
    seen = [*app.chat(session_id, "first"), *app.chat(session_id, "second")]
    logged = app.store.events(session_id)

    assert [event["seq"] for event in logged] == list(range(1, len(logged) + 1))
    assert logged[0]["type"] == "session_created"
    assert json.loads(json.dumps(whole(logged[1:]))) == [shown(event) for event in whole(seen)]
    assert said(logged) == said(seen) == "abc"
    assert logged[-1]["type"] == "error"


def test_an_event_is_in_the_log_before_it_is_shown(make: Make) -> None:
    app = make([Reply(text="abc", chunks=["a", "b", "c"])])
    session_id = app.create_session().session_id
    for event in whole(app.chat(session_id, "hello")):
        assert app.store.events(session_id, after=event["seq"] - 1, limit=1)[0]["type"] == event["type"]


def test_pieces_of_a_text_are_shown_at_once_and_logged_soon_after(make: Make) -> None:
    app = make([Reply(text="abc", chunks=["a", "b", "c"])])
    session_id = app.create_session().session_id
    events = app.chat(session_id, "hello")
    piece = next(event for event in events if event["type"] == "text")

    assert piece == {"type": "text", "text": "a"}
    with app.subscribe(session_id) as stream:  # nobody asks for the next piece meanwhile
        assert next(event for event in stream if event["type"] == "text")["text"] == "a"
    assert said(events) == "bc"
    assert said(app.store.events(session_id)) == "abc"


def test_a_store_that_is_slow_to_log_pieces_holds_up_neither_the_loop_nor_the_next_pieces(make: Make) -> None:
    app = make([Reply(chunks=["word "] * 40, delay=0.01)])
    session_id = app.create_session().session_id
    save, logging, go_on = app.store.save, threading.Event(), threading.Event()
    in_time: list[bool] = []

    def slowly(session: Any, base: Any, **given: Any) -> Any:
        if {event["type"] for event in given["changes"].events} == {"text"}:
            logging.set()
            in_time.append(go_on.wait(10))
        return save(session, base, **given)

    app.store.save = slowly  # type: ignore[method-assign]
    behind = 0

    async def read() -> None:
        nonlocal behind
        async for event in app.chat_async(session_id, "go"):
            behind += logging.is_set() and event["type"] == "text"
            if behind == 10:
                go_on.set()

    asyncio.run(read())

    assert in_time
    assert all(in_time)
    logged = [event for event in app.store.events(session_id) if event["type"] == "text"]
    assert "".join(event["text"] for event in logged) == "word " * 40


def test_reading_from_any_cursor_gives_exactly_the_rest(make: Make) -> None:
    app = make([Reply(text="abc", chunks=["a", "b", "c"])])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "hello"))
    logged = list(app.store.events(session_id))

    for cursor in range(len(logged)):
        with app.subscribe(session_id, after=cursor) as stream:
            assert until_final(iter(stream)) == logged[cursor:]


@pytest.mark.parametrize("cursor", range(4))
def test_a_thread_gets_what_is_there_and_then_what_comes(make: Make, cursor: int) -> None:
    app = make(["one", Reply(text="abc", chunks=["a", "b", "c"])])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "first"))
    before = len(app.store.events(session_id))
    found: Events = []
    replayed = threading.Event()

    def follow() -> None:
        with app.subscribe(session_id, after=cursor) as stream:
            for event in stream:
                found.append(event)
                if event["seq"] == before:
                    replayed.set()
                if event["seq"] > before and event["type"] == "final":
                    return

    thread = threading.Thread(target=follow)
    thread.start()
    replayed.wait()
    list(app.chat(session_id, "second"))
    thread.join()

    assert found == list(app.store.events(session_id))[cursor:]


def test_a_task_gets_what_is_there_and_then_what_comes(make: Make) -> None:
    app = make(["one", Reply(text="abc", chunks=["a", "b", "c"])])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "first"))
    before = len(app.store.events(session_id))

    async def follow(ready: asyncio.Event) -> Events:
        found: Events = []
        async with app.subscribe_async(session_id) as stream:
            async for event in stream:
                found.append(event)
                if event["seq"] == before:
                    ready.set()
                if event["seq"] > before and event["type"] == "final":
                    break
        return found

    async def work() -> list[Events]:
        ready = [asyncio.Event() for _ in range(3)]
        readers = [asyncio.create_task(follow(one)) for one in ready]
        for one in ready:
            await one.wait()
        async for _ in app.chat_async(session_id, "second"):
            pass
        return await asyncio.gather(*readers)

    for found in asyncio.run(work()):
        assert found == list(app.store.events(session_id))


def test_a_reader_of_another_application_sees_the_events_too(make: Make) -> None:
    writer, reader = make(["one"]), make()
    session_id = writer.create_session().session_id
    list(writer.chat(session_id, "hello"))

    with reader.subscribe(session_id) as stream:
        assert until_final(iter(stream)) == list(writer.store.events(session_id))


def test_a_reader_who_does_not_read_holds_nobody_up(make: Make) -> None:
    app = make([Reply(text="x" * 300, chunks=["x"] * 300)])
    session_id = app.create_session().session_id
    with app.subscribe(session_id) as stream:
        assert next(stream)["type"] == "session_created"
        events = list(app.chat(session_id, "hello"))

        assert events[-1]["type"] == "final"
        followed = until_final(iter(stream))
        assert whole(followed) == [shown(event) for event in whole(events)]
        assert said(followed) == "x" * 300


def test_a_reader_is_woken_and_need_not_look_again_and_again(make: Make) -> None:
    app = make()
    session_id = app.create_session().session_id
    hub = EventHub(app.store, poll_seconds=threading.TIMEOUT_MAX)
    looked, found = threading.Event(), list[Any]()
    news = hub._news

    def look(session_id: str | None, after: int) -> Any:
        events = news(session_id, after)
        looked.set()
        return events

    hub._news = look  # type: ignore[method-assign]
    reader = hub._follow(session_id, 1)
    thread = threading.Thread(target=lambda: found.append(next(reader)), daemon=True)
    thread.start()
    looked.wait()
    app.store.append_events(session_id, [{"type": "note"}])
    hub.wake(session_id)
    thread.join(timeout=60)

    assert found == [[{"type": "note", "seq": 2}]]
    reader.close()  # type: ignore[attr-defined]


def test_a_reader_on_an_event_loop_is_woken_too(make: Make) -> None:
    app = make()
    session_id = app.create_session().session_id
    hub = EventHub(app.store, poll_seconds=3_600)

    async def work() -> Any:
        looked, loop, news = asyncio.Event(), asyncio.get_running_loop(), hub._news

        def look(session_id: str | None, after: int) -> Any:
            events = news(session_id, after)
            loop.call_soon_threadsafe(looked.set)
            return events

        hub._news = look  # type: ignore[method-assign]
        reader = hub._follow_async(session_id, 1)
        first = asyncio.ensure_future(anext(reader))
        await looked.wait()
        await asyncio.to_thread(app.store.append_events, session_id, [{"type": "note"}])
        hub.wake(session_id)
        events = await asyncio.wait_for(first, 60)
        await reader.aclose()  # type: ignore[attr-defined]
        return events

    assert asyncio.run(work()) == [{"type": "note", "seq": 2}]
    assert hub._listening == {}


def test_readers_that_leave_are_forgotten_and_those_that_wait_take_no_more_room(make: Make) -> None:
    app = make()
    session_id = app.create_session().session_id
    app.store.append_events(session_id, [{"type": "note"}])
    hub = EventHub(app.store, poll_seconds=0.001)
    listening = hub._listening
    readers = [hub._follow(session_id, 0) for _ in range(3)]
    for reader in readers:
        next(reader)

    assert len(listening[session_id]) == 3
    for reader in readers:
        reader.close()  # type: ignore[attr-defined]
    assert listening == {}


def test_the_events_of_a_deleted_session_end(make: Make) -> None:
    app = make(["one"])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "hello"))
    found: Events = []
    begun = threading.Event()

    def follow() -> None:
        for event in app.subscribe(session_id):
            found.append(event)
            if event["type"] == "final":
                begun.set()

    thread = threading.Thread(target=follow)
    thread.start()
    begun.wait()
    app.delete_session(session_id)
    thread.join()

    assert found[-1]["type"] == "final"


def test_the_events_of_a_deleted_session_end_for_a_task(make: Make) -> None:
    app = make(["one"])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "hello"))

    async def work() -> Events:
        found: Events = []
        async for event in app.subscribe_async(session_id):
            found.append(event)
            if event["type"] == "final":
                await app.delete_session_async(session_id)
        return found

    assert asyncio.run(work())[-1]["type"] == "final"


@pytest.mark.parametrize("cursor", [-1, 99, "3", 1.5, None, True])
def test_a_cursor_that_is_none_is_refused(make: Make, cursor: Any) -> None:
    app = make(["one"])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "hello"))

    with pytest.raises(ArgumentError):
        next(app.subscribe(session_id, after=cursor))


def test_an_unknown_session_has_no_events(make: Make) -> None:
    app = make()

    with pytest.raises(SessionNotFound):
        next(app.subscribe("nowhere"))

    async def work() -> None:
        async for _ in app.subscribe_async("nowhere"):
            pass

    with pytest.raises(SessionNotFound):
        asyncio.run(work())


def test_the_log_goes_on_through_restarts(make: Make) -> None:
    first = make(["one"])
    session_id = first.create_session().session_id
    list(first.chat(session_id, "first"))
    last = first.store.events(session_id)[-1]["seq"]
    first.close()
    events = list(make(["two"]).chat(session_id, "second"))

    assert events[0]["seq"] == last + 1

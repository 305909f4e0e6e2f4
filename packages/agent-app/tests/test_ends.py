"""A request that has begun ends with `final` or `error`, also when its store fails at any event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from shutil import copyfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.errors import StoreUnavailable
from agent_app.session_writer import SessionWriter
from agent_app.store.leases import this_process
from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_core import Session

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Events = list[dict[str, Any]]
Make = Callable[[list[Any]], AgentApplication]


@tool(name="look")
def look() -> str:
    """Look."""
    return "nothing to see"


class Tools:
    name, version = "tools", "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("look", look)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_one(script: list[Any]) -> AgentApplication:
        url = f"sqlite:///{tmp_path / f'{len(apps)}.db'}"
        apps.append(
            AgentApplication(CONFIG, store=url, plugins=[ScriptedProvider(script), Tools()], installed=False)
        )
        apps[-1].create_session(session_id="s")
        return apps[-1]

    yield make_one
    for app in apps:
        app.close()


def at_event(app: AgentApplication, kind: str, do: Callable[[], object]) -> None:
    """Do something just before an event of a kind is written."""
    at_write(app, lambda kinds: do() if kind in kinds else None)


def at_write(app: AgentApplication, do: Callable[[list[str]], object]) -> None:
    """Do something before each write of a request, given the types of the events that it has."""
    write = SessionWriter._write

    def interrupted(self: SessionWriter, **given: Any) -> Any:
        events = [event for event, _ in self._events]
        if self._services.app is app and (events or self.waits or given.get("end")):
            do([event["type"] for event in [*events, given.get("end")] if event])
        return write(self, **given)

    SessionWriter._write = interrupted  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    write = SessionWriter._write
    yield
    SessionWriter._write = write  # type: ignore[method-assign]


def chat(app: AgentApplication, *, way: str = "waiting") -> Events:
    if way == "waiting":
        return list(app.chat("s", "Go."))

    async def collect() -> Events:
        return [event async for event in app.chat_async("s", "Go.")]

    return asyncio.run(collect())


def texts(session: Session) -> list[str]:
    return [str(message.content) for message in session.messages]


@pytest.mark.parametrize("way", ["waiting", "awaiting"])
def test_a_session_that_is_taken_over_at_the_last_event_ends_with_it_all_the_same(
    make: Make, way: str
) -> None:
    app = make(["Done."])

    def looks(session_id: str) -> bool | None:
        return True  # so that it stores the answer, and looks

    app.store.has_inputs = looks  # type: ignore[method-assign]
    at_event(
        app, "final", lambda: app.store.acquire("s", f"another {this_process()}", seconds=60, take_over=True)
    )

    events = chat(app, way=way)

    assert events[-1]["type"] == "final"
    assert texts(app.load_session("s")) == ["Go.", "Done."]


@pytest.mark.parametrize("way", ["waiting", "awaiting"])
def test_a_session_that_is_taken_over_before_its_answer_is_stored_ends_with_an_error(
    make: Make, way: str
) -> None:
    app = make(["Done."])
    at_event(
        app, "final", lambda: app.store.acquire("s", f"another {this_process()}", seconds=60, take_over=True)
    )

    events = chat(app, way=way)

    assert (events[-1]["type"], events[-1]["error"]["type"]) == ("error", "LeaseLost")
    assert texts(app.load_session("s")) == ["Go."]
    assert not any(event["type"] == "final" for event in app.events("s"))


def test_a_full_disk_at_the_last_event_does_not_hide_the_answer(make: Make) -> None:
    answer = "Done. " * 20_000  # the event of it needs new pages
    app = make([answer])

    def fill() -> None:
        with app.store.writing() as transaction:
            pages = transaction.rows("PRAGMA page_count")[0][0]
            transaction.rows(f"PRAGMA max_page_count = {pages}")

    at_event(app, "final", fill)

    events = chat(app)

    assert (events[-1]["type"], events[-1]["text"]) == ("final", answer)
    assert texts(app.load_session("s")) == ["Go.", answer]


@pytest.mark.parametrize("by", ["deleted", "replaced"])
def test_a_store_whose_file_is_gone_acknowledges_nothing_more(make: Make, tmp_path: Path, by: str) -> None:
    app = make([Reply(text="Looking.", tool_calls=[ToolCall("look", {})]), "Done.", "Still here."])
    store = tmp_path / "0.db"

    def take_away() -> None:
        store.rename(tmp_path / "moved.db")
        if by == "replaced":
            copyfile(tmp_path / "moved.db", store)

    at_event(app, "tool_call_result", take_away)

    events = chat(app)

    assert (events[-1]["type"], events[-1]["error"]["type"]) == ("error", "StoreUnavailable")
    assert f"{by}" in events[-1]["error"]["message"]
    with pytest.raises(StoreUnavailable, match="while it was in use"):
        app.create_session(session_id="another")
    (tmp_path / "moved.db").rename(store)
    assert chat(app)[-1]["type"] == "final"


def test_a_session_that_is_taken_over_between_two_turns_ends_with_an_error(make: Make) -> None:
    app = make(["One.", "Two."])
    at_event(app, "text", lambda: None if app.store.inputs("s") else app.enqueue("s", "More.", "queue"))
    at_event(
        app,
        "turn_end",
        lambda: app.store.acquire("s", f"another {this_process()}", seconds=60, take_over=True),
    )

    events = chat(app)

    assert events[-1]["type"] == "error"
    assert events[-1]["error"]["type"] == "LeaseLost"
    assert [event["type"] for event in events].count("error") == 1
    assert texts(app.load_session("s")) == ["Go.", "One."]


@pytest.mark.parametrize("for_good", [True, False])
@pytest.mark.parametrize("way", ["waiting", "awaiting"])
def test_whichever_event_cannot_be_logged_the_last_one_is_an_end(
    make: Make, way: str, *, for_good: bool
) -> None:
    script = [Reply(text="Looking.", tool_calls=[ToolCall("look", {})]), "Done."]
    whole = [event["type"] for event in chat(make(script), way=way)]

    for place in range(len(whole)):
        app = make(script)
        count = 0

        def fail(_kinds: list[str], *, place: int = place) -> None:
            nonlocal count
            count += 1
            if count == place + 1 or (for_good and count > place):
                raise StoreUnavailable("the disk is full")

        at_write(app, fail)
        events = chat(app, way=way)

        ends = [event["type"] for event in events if event["type"] in ("final", "error")]
        assert len(ends) == 1
        assert events[-1]["type"] == ends[0]
        stored = texts(app.load_session("s"))
        assert stored[:1] == ([] if for_good and place == 0 else ["Go."])
        if ends == ["final"]:
            assert stored[-1] == "Done."
        elif "Done." in stored:  # it must not be denied
            assert events[-1]["error"]["message"].endswith("a second try stored everything up to here")


def test_a_turn_that_was_interrupted_and_cannot_be_stored_does_not_end_as_if_it_were(make: Make) -> None:
    app = make([Reply(text="Looking.", tool_calls=[ToolCall("look", {})]), "Done."])
    failed = False

    def interrupt_then_fail(kinds: list[str]) -> None:
        nonlocal failed
        if "tool_call_start" in kinds:
            app.enqueue("s", "Stop.", "interrupt")
        elif app.store.inputs("s") and not failed:
            failed = True
            raise StoreUnavailable("the disk is full")

    at_write(app, interrupt_then_fail)

    events = chat(app)

    assert failed
    assert events[-1]["type"] == "error"
    assert [message.role for message in app.load_session("s").messages] == ["user", "assistant", "tool"]
    assert list(app.chat("s"))[-1]["type"] == "final"
    assert texts(app.load_session("s")).count("Stop.") == 1

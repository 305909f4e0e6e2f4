"""Nothing that one request changes is reachable from another, and nothing is decided twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, ModelDiscoveryCache, Session
from agent_core.testing import EchoProvider

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Drive = Callable[..., tuple[Session, Dicts, Dicts]]


class Words:
    """Answers with the words that it was sent, and keeps what it needs for that in its state alone."""

    name = "words"
    version = "1"

    def init(self, config: dict[str, Any]) -> State:
        return {"heard": [], "marker": config.get("marker")}

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": message["role"], "content": message["content"]} for message in messages]

    def process_chunk(
        self, chunk: str, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        state["heard"].append(chunk)
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        answer = {"role": "assistant", "content": " ".join(state["heard"]), "marker": state["marker"]}
        return (
            [answer],
            [*native_messages, answer],
            {**state, "session_metadata_patch": {"seen": state["seen"]}},
        )


class Blocking(Words):
    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        yield from native_messages[-1]["content"].split()


class Awaiting(Words):
    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:
        for word in native_messages[-1]["content"].split():
            await asyncio.sleep(0)
            yield word


class Counting:
    """An extension that counts the chunks of its request."""

    name = "counting"
    version = "1"

    def init(self, config: dict[str, Any], state: State) -> State:
        return {**state, "seen": 0}

    def process_chunk(
        self, chunk: str, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        state["seen"] += 1
        return partials, finals, native_messages, state


def core_of(provider: type) -> AgentCore:
    core = AgentCore()
    core.register_provider(provider, [Counting])
    return core


def question(core: AgentCore, number: int, words: int = 12) -> tuple[Session, dict[str, Any], str]:
    """Return a session, a configuration and the answer that is due, none like any other."""
    text = " ".join(f"{number}.{word}" for word in range(words))
    session = core.add_message(core.create_session(f"s{number}"), "user", text)
    return session, {"marker": number}, text


def is_the_answer_to(number: int, session: Session, words: int = 12) -> bool:
    message = session.messages[-1]
    return (
        session.session_id == f"s{number}"
        and message.content == " ".join(f"{number}.{word}" for word in range(words))
        and message.metadata["marker"] == number
        and session.metadata["seen"] == words
        and len(session.messages) == 2
    )


both = pytest.mark.parametrize("provider", [Blocking, Awaiting])


@both
def test_interleaved_streams_on_one_core_do_not_mix(provider: type) -> None:
    core = core_of(provider)
    streams = []
    for number in range(5):
        session, config, _ = question(core, number, words=number)
        streams.append(core.send_request_stream(session, config))

    rounds = list(zip_longest(*streams))

    for number, events in enumerate(zip(*rounds, strict=True)):
        mine = [event for event in events if event is not None]
        assert [e["message"]["content"] for e in mine[:-1]] == [f"{number}.{w}" for w in range(number)]
        assert is_the_answer_to(number, mine[-1]["session"], words=number)


@settings(max_examples=20)
@given(order=st.lists(st.integers(0, 2), max_size=40), close=st.sets(st.integers(0, 2)))
def test_in_whatever_order_streams_are_read_or_closed_each_has_its_own(
    order: list[int], close: set[int]
) -> None:
    core = core_of(Blocking)
    asked = [question(core, number) for number in range(3)]
    streams = [core.send_request_stream(session, config) for session, config, _ in asked]
    read = [0, 0, 0]
    for number in order:
        read[number] += next(streams[number], None) is not None

    for number, stream in enumerate(streams):
        if number in close:
            stream.close()
        else:
            list(stream)

    for number, stream in enumerate(streams):
        if number in close and read[number] == 0:
            assert stream.result is None
            continue
        assert stream.result is not None
        said = stream.result.session.messages[-1].content.split()
        due = asked[number][2].split()
        assert said == (due[: read[number]] if number in close else due)


@both
def test_threads_on_one_core_do_not_mix(provider: type) -> None:
    core = core_of(provider)
    start = threading.Barrier(8)

    def ask(number: int) -> bool:
        session, config, _ = question(core, number)
        start.wait()
        streamed = [*core.send_request_stream(session, config)][-1]["session"]
        called, _ = core.send_request(session, config)
        return is_the_answer_to(number, streamed) and called == streamed

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))


@both
def test_fifty_streams_on_one_loop_do_not_mix(provider: type) -> None:
    core = core_of(provider)

    async def ask(number: int) -> bool:
        session, config, _ = question(core, number)
        *_, final = [event async for event in core.send_request_stream_async(session, config)]
        return is_the_answer_to(number, final["session"])

    async def ask_all() -> list[bool]:
        return await asyncio.gather(*map(ask, range(50)))

    assert all(asyncio.run(ask_all()))


def test_blocking_providers_are_all_asked_at_once() -> None:
    """Each waits for all the others; with too few threads nobody would ever answer."""
    meeting = threading.Barrier(40)

    class Meeting(Words):
        def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
            meeting.wait(60)
            return (
                [],
                [],
                native_messages,
                {**state, "heard": native_messages[-1]["content"].split(), "seen": 12},
            )

    core = AgentCore()
    core.register_provider(Meeting)

    async def ask(number: int) -> bool:
        session, config, _ = question(core, number)
        return is_the_answer_to(number, (await core.send_request_async(session, config))[0])

    async def ask_all() -> list[bool]:
        return await asyncio.gather(*map(ask, range(40)))

    assert all(asyncio.run(ask_all()))


def test_a_plugin_that_is_registered_meanwhile_does_not_join_requests_under_way() -> None:
    called: list[str] = []

    class Late:
        name = "late"
        version = "1"

        def finalize(
            self, final_messages: Dicts, native_messages: Dicts, state: State
        ) -> tuple[Dicts, Dicts, State]:
            called.append("late")
            return final_messages, native_messages, state

    core = core_of(Blocking)
    session, config, _ = question(core, 0)
    stream = core.send_request_stream(session, config)
    next(stream)

    core.register_feature(Late)
    *_, final = stream
    before = list(called)
    core.send_request(session, config)

    assert is_the_answer_to(0, final["session"])
    assert before == []
    assert called == ["late"]


def test_a_request_inside_a_request_is_a_request_of_its_own(drive: Drive) -> None:
    """A feature may ask the model on its own account while a turn is being finished."""

    class Summarising:
        name = "summarising"
        version = "1"

        def finalize(
            self, final_messages: Dicts, native_messages: Dicts, state: State, context: dict[str, Any]
        ) -> tuple[Dicts, Dicts, State]:
            core, config = context["core"], {"disabled_plugins": ["summarising"], "marker": "inner"}
            inner, _ = core.send_request(core.add_message(core.create_session(), "user", "a b"), config)
            patch = {"inner": inner.messages[-1].content, "seen": state["seen"]}
            return final_messages, native_messages, {**state, "session_metadata_patch": patch}

    core = core_of(Blocking)
    core.register_feature(Summarising)
    session, config, _ = question(core, 0)

    session, _, _ = drive(core, session, config)

    assert is_the_answer_to(0, session)
    assert session.metadata["inner"] == "a b"


class Asked:
    """Counts how often it is asked whether it is on."""

    name = "asked"
    version = "1"

    def __init__(self) -> None:
        self.count = 0

    def is_enabled(self, config: dict[str, Any]) -> None:
        self.count += 1


class TestDecidingOnce:
    @staticmethod
    def core(cache: ModelDiscoveryCache | None = None) -> tuple[AgentCore, Asked, Session]:
        core, asked = AgentCore(cache), Asked()
        core.register_provider(EchoProvider)
        core.register_feature(asked)
        return core, asked, Session("s", [])

    def test_requests_with_equal_configurations_ask_once(self, drive: Drive) -> None:
        core, asked, session = self.core()

        for _ in range(5):
            session = core.add_message(session, "user", "again", config={"b": [1], "a": 2})
            session, _, _ = drive(core, session, {"a": 2, "b": [1]})

        assert asked.count == 1

    def test_another_configuration_asks_again(self, drive: Drive) -> None:
        core, asked, session = self.core()

        for temperature in (0.1, 0.2, 0.1):
            drive(core, session, {"temperature": temperature})

        assert asked.count == 2

    def test_a_configuration_that_the_caller_changes_in_place_asks_again(self, drive: Drive) -> None:
        core, asked, session = self.core()
        config: dict[str, Any] = {"nested": {"list": [1]}}
        drive(core, session, config)

        config["nested"]["list"].append(2)
        drive(core, session, config)

        assert asked.count == 2

    def test_a_cache_that_was_cleared_asks_again(self, drive: Drive) -> None:
        cache = ModelDiscoveryCache()
        core, asked, session = self.core(cache)
        drive(core, session, {})

        cache.clear()
        drive(core, session, {})

        assert asked.count == 2

    def test_models_that_grew_old_ask_again(self, drive: Drive) -> None:
        now = [0.0]
        core, asked, session = self.core(ModelDiscoveryCache(lifetime=60, clock=lambda: now[0]))
        drive(core, session, {})
        now[0] = 59.0
        drive(core, session, {})
        young = asked.count

        now[0] = 60.0
        drive(core, session, {})

        assert (young, asked.count) == (1, 2)

    def test_a_new_plugin_asks_again(self, drive: Drive) -> None:
        core, asked, session = self.core()
        drive(core, session, {})

        core.register_feature(type("Other", (), {"name": "other", "version": "1"}))
        drive(core, session, {})

        assert asked.count == 2

    def test_a_decision_that_failed_is_not_remembered(self, drive: Drive) -> None:
        core, asked, session = self.core()

        class Moody:
            name = "moody"
            version = "1"
            well = False

            def is_enabled(self, config: dict[str, Any]) -> None:
                if not self.well:
                    raise LookupError("not today")

        core.register_feature(Moody)
        with pytest.raises(RuntimeError, match="not today"):
            drive(core, session, {})

        Moody.well = True
        drive(core, session, {})

        assert asked.count == 2

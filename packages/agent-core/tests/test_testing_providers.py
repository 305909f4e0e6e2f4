"""The providers and the step-by-step driver that `agent_core.testing` has for plugin authors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import repeat
from math import inf
from typing import Any

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot

from agent_core import AgentCore, ArgumentError, Cancellation, ProviderError, RequestCancelled, Session
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Run, Work, ask, run_blocking
from agent_core.testing import (
    EchoProvider,
    Reply,
    ScriptedIO,
    ScriptedProvider,
    ScriptEnded,
    ToolCall,
)

Drive = Callable[..., tuple[Session, list[dict[str, Any]], list[dict[str, Any]]]]


def core_with(provider: Any) -> AgentCore:
    core = AgentCore()
    core.register_provider(provider)
    return core


def asking(core: AgentCore, text: str = "Hello?") -> Session:
    return core.add_message(core.create_session("s"), "user", text)


def said(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


def texts(partials: list[dict[str, Any]]) -> list[str]:
    return [event["message"]["content"] for event in partials]


def test_importing_the_testing_package_needs_no_pytest() -> None:
    code = "import sys, agent_core.testing; assert not {'pytest', 'asyncio'} & set(sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)


class TestEchoProvider:
    def test_it_says_back_what_the_user_said_last(self, drive: Drive) -> None:
        core = core_with(EchoProvider)
        session = core.add_message(asking(core, "first"), "assistant", "noted")
        session = core.add_message(session, "user", "and then second")

        new, messages, _ = drive(core, session, {})

        assert said(messages) == ["and then second"]
        assert said([message.to_dict() for message in new.messages[-2:]]) == [
            "and then second",
            "and then second",
        ]

    def test_the_answer_comes_word_by_word(self) -> None:
        core = core_with(EchoProvider)

        *partials, final = core.send_request_stream(asking(core, "one two three"), {})

        assert texts(partials) == ["one ", "two ", "three"]
        assert final["type"] == "final"

    @given(st.text())
    def test_no_space_is_lost_on_the_way(self, text: str) -> None:
        core = core_with(EchoProvider)

        _, messages = core.send_request(asking(core, text), {})

        assert said(messages) == [text]

    def test_without_a_user_message_there_is_nothing_to_say(self, drive: Drive) -> None:
        core = core_with(EchoProvider)
        session = core.add_message(core.create_session(), "system", "Be quiet.")

        new, messages, partials = drive(core, session, {})

        assert (messages, partials, len(new.messages)) == ([], [], 1)

    def test_leaving_early_keeps_the_words_so_far(self) -> None:
        core = core_with(EchoProvider)

        with core.send_request_stream(asking(core, "one two three"), {}) as stream:
            next(stream)
            next(stream)

        assert stream.result is not None
        assert said(stream.result.messages) == ["one two "]
        assert stream.result.interrupted


class TestChatFormat:
    """The native format that both providers speak."""

    @given(
        st.lists(
            st.fixed_dictionaries(
                {
                    "role": st.sampled_from(["system", "user", "assistant", "tool"]),
                    "content": st.text() | st.none(),
                    "metadata": st.fixed_dictionaries(
                        {}, optional={"tool_calls": st.just([{"id": "c"}]), "tool_call_id": st.text()}
                    ),
                },
                optional={
                    "multipartContent": st.lists(
                        st.fixed_dictionaries({"type": st.text(), "text": st.text()}), min_size=1
                    ),
                    "tool_result": st.dictionaries(st.text(), st.text()),
                },
            )
        )
    )
    def test_everything_that_a_message_says_survives_the_way_there_and_back(
        self, messages: list[dict[str, Any]]
    ) -> None:
        provider = EchoProvider()

        assert provider.from_native_messages(provider.to_native_messages(messages)) == messages

    def test_metadata_of_native_items_becomes_metadata_of_messages(self) -> None:
        item = {"role": "user", "content": "x", "_metadata": {"pinned": True}, "usage": {"total": 3}}

        [message] = EchoProvider().from_native_messages([item])

        assert message["metadata"] == {"pinned": True, "usage": {"total": 3}}


class TestWhatAScriptSays:
    def test_a_text_is_the_whole_answer(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider(["Good day."]))

        new, messages, _ = drive(core, asking(core), {})

        assert messages == [
            {"role": "assistant", "content": "Good day.", "metadata": {"native_indices": [1]}}
        ]
        assert new.metadata["native_messages"] == [
            {"role": "user", "content": "Hello?"},
            {"role": "assistant", "content": "Good day."},
        ]

    def test_chunks_arrive_one_by_one_and_add_up(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider([Reply(chunks=["Good", " ", "day."])]))

        _, messages, partials = drive(core, asking(core), {})

        assert said(messages) == ["Good day."]
        assert texts(partials) in ([], ["Good", " ", "day."])

    def test_chunks_that_contradict_the_text_are_refused(self) -> None:
        with pytest.raises(ArgumentError, match="must add up to its text"):
            Reply(text="Good day.", chunks=["Good", "night."])

    def test_an_empty_reply_is_an_empty_message(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider([Reply()]))

        _, messages, _ = drive(core, asking(core), {})

        assert said(messages) == [""]
        assert messages[0]["metadata"]["finish_reason"] == "stop"

    def test_lines_are_played_in_order_over_the_turns_of_a_conversation(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider(["one", "two"]))

        session, _, _ = drive(core, asking(core), {})
        session, _, _ = drive(core, core.add_message(session, "user", "And?"), {})

        assert [message.content for message in session.messages] == ["Hello?", "one", "And?", "two"]

    def test_a_function_sees_the_history_and_decides(self, drive: Drive) -> None:
        def count(native_messages: list[dict[str, Any]]) -> str:
            return f"You said {len(native_messages)} thing, {native_messages[-1]['content']!r}."

        core = core_with(ScriptedProvider([count]))

        _, messages, _ = drive(core, asking(core), {})

        assert said(messages) == ["You said 1 thing, 'Hello?'."]

    def test_a_script_may_be_endless(self) -> None:
        core = core_with(ScriptedProvider(repeat("again")))
        session = asking(core)

        for _ in range(3):
            session, messages = core.send_request(session, {})

            assert said(messages) == ["again"]

    def test_tool_calls_are_found_where_the_core_looks_for_them(self, drive: Drive) -> None:
        reply = Reply(text="Let me see.", tool_calls=[ToolCall("add", {"b": 2, "a": 1}), ToolCall("now")])
        core = core_with(ScriptedProvider([reply]))

        _, messages, _ = drive(core, asking(core), {})

        assert messages[0]["metadata"]["finish_reason"] == "tool_calls"
        assert core.extract_tool_calls_from_messages(messages) == snapshot(
            [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a":1,"b":2}'},
                },
                {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ]
        )

    def test_call_ids_count_on_through_the_conversation(self) -> None:
        core = core_with(ScriptedProvider([Reply(tool_calls=[ToolCall("a"), ToolCall("b")])] * 2))

        session, _ = core.send_request(asking(core), {})
        _, messages = core.send_request(core.add_message(session, "user", "Again."), {})

        assert [call["id"] for call in messages[0]["metadata"]["tool_calls"]] == ["call_3", "call_4"]

    def test_a_call_may_have_an_id_and_arguments_that_are_no_json(self) -> None:
        call = ToolCall("add", '{"a": ', id="mine")

        assert call.to_dict(1) == {
            "id": "mine",
            "type": "function",
            "function": {"name": "add", "arguments": '{"a": '},
        }

    def test_a_freeform_call_carries_text(self) -> None:
        assert ToolCall("patch", input="*** begin").to_dict(7) == {
            "id": "call_7",
            "type": "custom",
            "custom": {"name": "patch", "input": "*** begin"},
        }

    def test_usage_is_told_and_extra_fields_stay_native(self, drive: Drive) -> None:
        reply = Reply(text="Hm.", usage={"output_tokens": 2}, extra={"text": "signed", "signature": "abc"})
        core = core_with(ScriptedProvider([reply]))

        new, messages, _ = drive(core, asking(core), {})

        assert said(messages) == ["Hm."]
        assert messages[0]["metadata"]["usage"] == {"output_tokens": 2}
        assert "signature" not in messages[0]["metadata"]
        assert new.metadata["native_messages"][-1]["signature"] == "abc"

    def test_models_are_those_it_was_given(self) -> None:
        core = core_with(ScriptedProvider(["x"], models=[{"id": "small"}, {"id": "large"}]))

        assert core.resolve({"model": "large"}).models == [{"id": "small"}, {"id": "large"}]


class TestWhenAScriptFails:
    def test_an_exception_in_the_script_is_what_the_provider_fails_with(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider([ConnectionError("refused")], name="mine"))

        with pytest.raises(ProviderError, match=r"'mine'.*ConnectionError: refused") as caught:
            drive(core, asking(core), {})

        assert isinstance(caught.value.__cause__, ConnectionError)
        assert caught.value.partial is None

    def test_a_function_may_answer_with_an_exception(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider([lambda _: TimeoutError("too slow")]))

        with pytest.raises(ProviderError, match="too slow"):
            drive(core, asking(core), {})

    def test_an_error_in_the_middle_comes_after_the_text(self) -> None:
        core = core_with(ScriptedProvider([Reply(chunks=["Good ", "d"], error=ConnectionError("lost"))]))
        stream = core.send_request_stream(asking(core), {})
        partials = [next(stream), next(stream)]

        with pytest.raises(ProviderError, match="ConnectionError: lost") as caught:
            next(stream)

        assert texts(partials) == ["Good ", "d"]
        assert caught.value.partial is not None
        assert said(caught.value.partial["messages"]) == ["Good d"]

    def test_an_error_in_the_middle_reaches_async_readers_too(self) -> None:
        core = core_with(ScriptedProvider([Reply(chunks=["Good ", "d"], error=ConnectionError("lost"))]))
        partials = []

        async def read() -> None:
            async for event in core.send_request_stream_async(asking(core), {}):
                partials.append(event)  # noqa: PERF401  # what was read counts although it ends badly

        with pytest.raises(ProviderError, match="ConnectionError: lost") as caught:
            asyncio.run(read())

        assert texts(partials) == ["Good ", "d"]
        assert caught.value.partial is not None
        assert said(caught.value.partial["messages"]) == ["Good d"]

    def test_one_request_too_many_says_so(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider(["only"]))
        drive(core, asking(core), {})

        with pytest.raises(ProviderError, match="request 2 came, but the script is at its end") as caught:
            drive(core, asking(core), {})

        assert isinstance(caught.value.__cause__, ScriptEnded)

    def test_a_line_that_means_nothing_is_named(self) -> None:
        core = core_with(ScriptedProvider([{"text": "no reply"}]))  # type: ignore[list-item]  # on purpose

        with pytest.raises(ProviderError, match="no dict"):
            core.send_request(asking(core), {})

    def test_a_lone_text_is_no_script(self) -> None:
        with pytest.raises(ArgumentError, match="into a list"):
            ScriptedProvider("Hello")


class TestDelays:
    def test_each_chunk_waits_for_its_turn(self) -> None:
        slept: list[float] = []
        provider = ScriptedProvider([Reply(chunks=["a", "b"], usage={}, delay=0.5)], sleep=slept.append)
        core = core_with(provider)

        seen = [len(slept) for _ in core.send_request_stream(asking(core), {})]

        assert slept == [0.5, 0.5, 0.5]
        assert seen[:2] == [1, 2]

    def test_chunks_may_wait_differently(self, drive: Drive) -> None:
        slept: list[float] = []
        reply = Reply(chunks=["a", "b", "c", "d"], delay=[0, 1, 2])
        core = core_with(ScriptedProvider([reply], sleep=slept.append))

        drive(core, asking(core), {})

        assert slept == [1, 2, 2]

    def test_on_an_event_loop_waiting_is_awaited(self) -> None:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(0)
            slept.append(seconds)

        core = core_with(ScriptedProvider([Reply(chunks=["a", "b"], delay=0.5)], sleep=sleep))

        _, messages = asyncio.run(core.send_request_async(asking(core), {}))

        assert said(messages) == ["ab"]
        assert slept == [0.5, 0.5]

    def test_a_real_delay_ends(self, drive: Drive) -> None:
        core = core_with(ScriptedProvider([Reply(chunks=["a", "b"], delay=0.001)]))

        _, messages, _ = drive(core, asking(core), {})

        assert said(messages) == ["ab"]


def cancel_once_it_waits(provider: ScriptedProvider, token: Cancellation, request_id: str) -> None:
    """Cancel from another thread, as soon as the provider is waiting on behalf of the request."""
    waits = threading.Event()

    class Watched(Cancellation):
        def add_callback(self, callback: Callable[[], None]) -> object:
            key = super().add_callback(callback)
            waits.set()
            return key

    def cancel() -> None:
        waits.wait()
        token.cancel()

    provider._tokens[request_id] = Watched()
    threading.Thread(target=cancel, daemon=True).start()


class TestCancelling:
    def test_a_read_that_would_wait_forever_ends_and_keeps_the_text(self, drive: Drive) -> None:
        provider = ScriptedProvider([Reply(chunks=["Good ", "day."], delay=[0, inf])])
        core, token = core_with(provider), Cancellation()
        cancel_once_it_waits(provider, token, "r")

        new, messages, _ = drive(core, asking(core), {}, request_id="r", cancellation=token)

        assert said(messages) == ["Good "]
        assert new.messages[-1].metadata["interrupted"] == "cancelled"
        assert provider.cancelled == ["r"]

    def test_the_provider_serves_the_next_request(self, drive: Drive) -> None:
        provider = ScriptedProvider([Reply(text="never", delay=inf), "later"])
        core, token = core_with(provider), Cancellation()
        cancel_once_it_waits(provider, token, "r")
        session, messages, _ = drive(core, asking(core), {}, request_id="r", cancellation=token)

        _, later, _ = drive(core, session, {}, request_id="r2", cancellation=Cancellation())

        assert messages == []
        assert said(later) == ["later"]

    def test_a_cancellation_that_comes_first_counts_when_the_request_begins(self) -> None:
        provider = ScriptedProvider([Reply(text="never", delay=inf)])
        provider.cancel_request("r")
        stream = provider.stream_api([], provider.init({}), "r")

        with pytest.raises(RequestCancelled):
            next(stream)

    def test_requests_without_an_id_cannot_be_cancelled_by_one(self) -> None:
        provider = ScriptedProvider(["free"])
        provider.cancel_request("r")

        assert list(provider.stream_api([], provider.init({}))) == [{"text": "free"}]

    def test_a_cancelled_task_does_not_leave_a_thread_behind(self) -> None:
        provider = ScriptedProvider([Reply(text="never", delay=inf)])
        core = core_with(provider)

        async def give_up() -> None:
            task = asyncio.create_task(core.send_request_async(asking(core), {}))
            while not provider.requests:  # noqa: ASYNC110  # the provider tells nobody when it is asked
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(give_up())  # would not return while a worker thread waits


class TestWhatItRemembers:
    def test_each_request_is_recorded_as_the_provider_got_it(self, drive: Drive) -> None:
        provider = ScriptedProvider(["one", "two"])
        core = core_with(provider)
        core.register_tool(asking_price)
        session, _, _ = drive(core, asking(core), {"temperature": 0}, request_id="first")

        drive(core, core.add_message(session, "user", "And?"), {})

        first, second = provider.requests
        assert first.native_messages == [{"role": "user", "content": "Hello?"}]
        assert first.request_id == "first"
        assert first.config["temperature"] == 0
        assert [tool["function"]["name"] for tool in first.config["tools"]] == ["asking_price"]
        assert [item["content"] for item in second.native_messages] == ["Hello?", "one", "And?"]
        assert second.request_id is None

    def test_threads_share_one_script_without_losing_or_doubling_a_line(self) -> None:
        provider = ScriptedProvider([Reply(chunks=[f"{n}", "!"]) for n in range(40)])
        core = core_with(provider)
        answers: list[str] = []

        def ask_often() -> None:
            for _ in range(10):
                answers.extend(said(core.send_request(asking(core), {})[1]))

        threads = [threading.Thread(target=ask_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sorted(answers) == sorted(f"{n}!" for n in range(40))
        assert len(provider.requests) == 40


def asking_price(item: str) -> float:
    """Look up what something costs."""
    return len(item) / 2


def shout(word: str) -> Flow[str]:
    """A small flow: it makes a word loud, shows it, and reads an echo of it."""
    loud: str = yield from run_blocking(word.upper)
    yield Emit([loud])
    reader = yield from ask(OpenStream(Work()))
    heard: list[str] = []
    try:
        while (echoes := (yield from ask(Read(reader)))) is not None:
            heard += echoes
    finally:
        yield CloseStream(reader)
    return f"{loud}, {', '.join(heard)}"


class TestScriptedIO:
    def test_it_answers_each_step_and_keeps_what_was_shown(self) -> None:
        io = ScriptedIO(["HEY", "reader", ["hey"], ["ey", "y"], None])

        assert io.run(shout("hey")) == "HEY, hey, ey, y"
        assert [type(step) for step in io.steps] == [Run, OpenStream, Read, Read, Read, CloseStream]
        assert io.events == ["HEY"]
        assert io.answers == []

    def test_a_function_answers_with_what_it_makes_of_the_step(self) -> None:
        io = ScriptedIO([lambda step: step.work.blocking(), "reader", None])

        assert io.run(shout("hey")) == "HEY, "

    def test_an_exception_is_thrown_where_the_flow_waits(self) -> None:
        io = ScriptedIO(["HEY", "reader", ConnectionError("lost")])

        with pytest.raises(ConnectionError, match="lost"):
            io.run(shout("hey"))

        assert isinstance(io.steps[-1], CloseStream)

    def test_what_a_function_raises_is_thrown_into_the_flow(self) -> None:
        def fail(step: Any) -> None:
            raise ConnectionError(type(step).__name__)

        with pytest.raises(ConnectionError, match="Run"):
            ScriptedIO([fail]).run(shout("hey"))

    def test_a_flow_that_asks_for_more_is_told_so(self) -> None:
        def ask_twice() -> Flow[None]:
            yield from run_blocking(dict)
            yield from run_blocking(list)

        io = ScriptedIO([{}])

        with pytest.raises(ScriptEnded, match="asked for Run, but there are no answers left"):
            io.run(ask_twice())

    def test_answers_that_nobody_asked_for_are_left(self) -> None:
        def ask_nothing() -> Flow[str]:
            yield Emit(["done"])
            return "nothing"

        io = ScriptedIO(["spare"])

        assert io.run(ask_nothing()) == "nothing"
        assert io.answers == ["spare"]

    def test_it_drives_a_whole_request(self) -> None:
        core = core_with(ScriptedProvider(["never asked"]))
        run = lambda step: step.work.blocking()  # noqa: E731  # reads as the answer that it is
        io = ScriptedIO([run, "reader", [{"text": "Good "}], [{"text": "day."}], None])

        result = io.run(core.request_flow(asking(core), {}, stream=True))

        assert said(result.messages) == ["Good day."]
        assert texts(io.events[:-1]) == ["Good ", "day."]

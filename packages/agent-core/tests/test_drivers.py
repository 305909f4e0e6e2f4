"""One flow, four ways to run it, and every way to leave early."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing
from itertools import combinations
from typing import Any, cast

import pytest

from agent_core import AgentCore, AgentError, Batch, ProviderError, RequestCancelled, Session
from agent_core.drivers import AsyncEventStream, EventStream, call, call_async
from agent_core.steps import CloseStream, Emit, Flow, OpenStream, Read, Run, Work, ask, run_blocking
from agent_core.testing import EchoProvider, ScriptedIO

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Drive = Callable[..., tuple[Session, Dicts, Dicts]]

FORMS = ("call_api", "stream_api", "call_api_async", "stream_api_async")


class Speaking:
    """Says one sentence, in whatever form it is asked for."""

    name = "speaking"
    version = "1"
    pieces = ("one ", "two ", "three")

    def init(self, config: dict[str, Any]) -> State:
        return {"heard": []}

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": message["role"], "text": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [{"role": item["role"], "content": item["text"]} for item in native_messages]

    def process_chunk(
        self, chunk: str, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        state["heard"].append(chunk)
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        if not state["heard"]:
            return [], native_messages, state
        answer = {"role": "assistant", "text": "".join(state["heard"])}
        return [answer], [*native_messages, answer], state


class Streams(Speaking):
    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
        yield from self.pieces


class StreamsAsync(Speaking):
    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[Any]:
        for piece in self.pieces:
            await asyncio.sleep(0)
            yield piece


class Calls(Speaking):
    def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
        return [], [], native_messages, {**state, "heard": [*self.pieces]}


class CallsAsync(Speaking):
    async def call_api_async(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
        await asyncio.sleep(0)
        return [], [], native_messages, {**state, "heard": [*self.pieces]}


BY_FORM = dict(zip(FORMS, (Calls, Streams, CallsAsync, StreamsAsync), strict=True))


def offering(*forms: str) -> type:
    return type("Offering", tuple(BY_FORM[form] for form in forms), {})


class FailingAction:
    """Fails after every answer."""

    name = "failing-action"
    version = "1"

    def get_actions(self) -> Dicts:
        return [{"id": "fail", "trigger": "response_finalize"}]

    def execute_action(self, action_id: str, session: Session, native: Any, params: Any) -> Any:
        raise LookupError("no such thing")


def asking(provider: object) -> tuple[AgentCore, Session]:
    core = AgentCore()
    core.register_provider(provider)
    return core, core.add_message(core.create_session(), "user", "hello", config={})


def answer(session: Session) -> tuple[Any, Any]:
    last = session.messages[-1]
    return last.content, last.metadata.get("interrupted")


class TestForms:
    @pytest.mark.parametrize(
        "forms",
        [forms for size in (1, 2, 4) for forms in combinations(FORMS, size)],
        ids=" ".join,
    )
    def test_whatever_forms_a_provider_offers_every_driver_gives_the_same_session(
        self, drive: Drive, forms: tuple[str, ...]
    ) -> None:
        expected, _ = AgentCore.send_request(*asking(Calls), {})
        core, session = asking(offering(*forms))
        session = Session(expected.session_id, session.messages, session.metadata)

        session, messages, partials = drive(core, session, {})

        assert session == expected
        assert [message["content"] for message in messages] == ["one two three"]
        assert "".join(event["message"]["content"] for event in partials) in ("", "one two three")

    @pytest.mark.parametrize("form", ["stream_api", "stream_api_async"])
    @pytest.mark.parametrize(
        "pieces",
        [
            (Batch(["one ", "two ", "three"]),),
            (Batch(["one "]), "two ", Batch([]), Batch(["three"])),
            (Batch(), "one ", Batch(["two ", "three"])),
        ],
    )
    def test_a_batch_is_its_chunks_one_after_the_other(
        self, drive: Drive, form: str, pieces: tuple[Any, ...]
    ) -> None:
        core, session = asking(type("Batching", (BY_FORM[form],), {"pieces": pieces}))

        session, _, partials = drive(core, session, {})

        assert answer(session) == ("one two three", None)
        assert [event["message"]["content"] for event in partials] in ([], ["one ", "two ", "three"])

    def test_a_chunk_that_is_a_plain_list_is_one_chunk(self, drive: Drive) -> None:
        seen: list[Any] = []

        class Listing(Streams):
            pieces = (["a", "b"],)  # type: ignore[assignment]  # a chunk may be anything

            def process_chunk(
                self, chunk: Any, native_messages: Dicts, state: State
            ) -> tuple[Dicts, Dicts, Dicts, State]:
                seen.append(chunk)
                return [], [], native_messages, state

        drive(*asking(Listing), {})

        assert seen == [["a", "b"]]

    def test_partials_of_a_call_are_shown_to_those_who_stream(self, drive: Drive) -> None:
        class Telling(Speaking):
            def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
                partials = [{"role": "assistant", "content": "one "}, {"role": "assistant", "content": "two"}]
                return partials, [{"role": "assistant", "text": "one two"}], native_messages, state

        core, session = asking(Telling)

        session, _, partials = drive(core, session, {})

        assert answer(session) == ("one two", None)
        assert [event["message"]["content"] for event in partials] in ([], ["one ", "two"])

    @pytest.mark.parametrize("form", FORMS)
    def test_a_provider_sees_the_callers_context_variables(self, drive: Drive, form: str) -> None:
        who = contextvars.ContextVar("who", default="nobody")

        def pieces(_self: Any) -> tuple[str, ...]:
            return (who.get(),)

        core, session = asking(type("Looking", (BY_FORM[form],), {"pieces": property(pieces)}))

        who.set("ada")
        session, _, _ = drive(core, session, {})

        assert answer(session) == ("ada", None)

    def test_one_task_reads_a_whole_async_stream(self, drive: Drive) -> None:
        """Timeouts and task groups that a stream holds open across its items depend on that."""
        tasks: set[Any] = set()

        class Strict(StreamsAsync):
            async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[Any]:
                async with asyncio.timeout(60):
                    for piece in self.pieces:
                        tasks.add(asyncio.current_task())
                        yield piece

        core, session = asking(Strict)

        assert answer(drive(core, session, {})[0]) == ("one two three", None)
        assert len(tasks) == 1


class TestErrors:
    @pytest.mark.parametrize("form", FORMS)
    def test_what_a_provider_raises_names_it_and_its_hook(self, drive: Drive, form: str) -> None:
        def fail(self: Any, native_messages: Dicts, state: State) -> Any:
            raise ConnectionError("the line is dead")

        async def fail_async(self: Any, native_messages: Dicts, state: State) -> Any:
            raise ConnectionError("the line is dead")

        async def fail_streaming(self: Any, native_messages: Dicts, state: State) -> AsyncIterator[Any]:
            raise ConnectionError("the line is dead")
            yield

        hook: Any = {"call_api_async": fail_async, "stream_api_async": fail_streaming}.get(form, fail)
        core, session = asking(type("Failing", (Speaking,), {form: hook}))

        with pytest.raises(ProviderError, match="the line is dead") as caught:
            drive(core, session, {})

        assert (caught.value.plugin, caught.value.hook) == ("speaking", form)
        assert isinstance(caught.value.__cause__, ConnectionError)
        assert caught.value.partial is None

    @pytest.mark.parametrize("form", ["stream_api", "stream_api_async"])
    def test_an_error_in_the_middle_carries_what_was_said_before(self, drive: Drive, form: str) -> None:
        class Breaking:
            def __iter__(self) -> Iterator[str]:
                yield from ("one ", "two ")
                raise ConnectionError("the line is dead")

        core, before = asking(type("Failing", (BY_FORM[form],), {"pieces": Breaking()}))

        with pytest.raises(ProviderError, match="the line is dead") as caught:
            drive(core, before, {})

        assert (caught.value.plugin, caught.value.hook) == ("speaking", form)
        partial = caught.value.partial
        assert partial is not None
        assert partial["interrupted"] is True
        assert answer(partial["session"]) == ("one two ", "error")
        assert [message["content"] for message in partial["messages"]] == ["one two "]
        assert len(before.messages) == 1

    def test_it_carries_it_even_if_an_action_fails_as_well(self, drive: Drive) -> None:
        class Breaking(Streams):
            def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
                yield "one "
                raise ConnectionError("the line is dead")

        core, session = asking(Breaking)
        core.register_feature(FailingAction)

        with pytest.raises(ProviderError, match="the line is dead") as caught:
            drive(core, session, {})

        assert caught.value.partial is not None
        assert answer(caught.value.partial["session"]) == ("one ", "error")

    def test_an_error_of_the_platform_passes_as_it_is(self, drive: Drive) -> None:
        class Refusing(Speaking):
            def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
                yield "one "
                raise ProviderError("speaking", "stream_api", "quota exceeded")

        core, session = asking(Refusing)

        with pytest.raises(ProviderError) as caught:
            drive(core, session, {})

        assert caught.value.problem == "quota exceeded"
        assert caught.value.partial is not None
        assert answer(caught.value.partial["session"]) == ("one ", "error")

    @pytest.mark.parametrize("form", ["call_api", "stream_api"])
    def test_even_an_exception_that_python_uses_for_itself_is_reported(self, drive: Drive, form: str) -> None:
        """A future cannot carry StopIteration; a plugin that forgot a default for next() raises it."""

        def fail(self: Any, native_messages: Dicts, state: State) -> Any:
            return next(iter(()))

        core, session = asking(type("Failing", (Speaking,), {form: fail}))

        with pytest.raises(ProviderError) as caught:
            drive(core, session, {})

        assert (caught.value.plugin, caught.value.hook) == ("speaking", form)

    def test_a_stream_whose_cleaning_up_fails_still_has_its_result(self, drive: Drive) -> None:
        class Untidy:
            def __init__(self) -> None:
                self.pieces = iter(["one ", "two"])

            def __iter__(self) -> Untidy:
                return self

            def __next__(self) -> str:
                return next(self.pieces)

            def close(self) -> None:
                raise OSError("cannot close")

        class Untidily(Speaking):
            def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
                return Untidy()

        core, session = asking(Untidily)

        session, _, _ = drive(core, session, {})

        assert answer(session) == ("one two", None)


class Noting(Streams):
    """Notes when its stream is let go of."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
        try:
            yield from self.pieces
        finally:
            self.closed.set()


class NotingAsync(StreamsAsync):
    def __init__(self) -> None:
        self.closed = threading.Event()

    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[Any]:
        try:
            for piece in self.pieces:
                await asyncio.sleep(0)
                yield piece
        finally:
            await asyncio.sleep(0)  # as a connection would
            self.closed.set()


class Stuck(Noting):
    """Never says more than its first word."""

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
        self.go_on = threading.Event()
        try:
            yield "one "
            self.go_on.wait()
        finally:
            self.closed.set()


class StuckAsync(NotingAsync):
    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[Any]:
        try:
            yield "one "
            await asyncio.Event().wait()
        finally:
            self.closed.set()


both_forms = pytest.mark.parametrize("provider_class", [Noting, NotingAsync])


class TestLeavingEarly:
    @both_forms
    def test_a_stream_that_was_read_to_its_end_has_its_result(self, provider_class: type[Any]) -> None:
        core, session = asking(provider_class)
        stream = core.send_request_stream(session, {})
        before = stream.result

        *_, final = stream

        assert before is None
        assert stream.result is not None
        assert stream.result.session is final["session"]
        assert stream.result.messages == final["messages"]
        assert not stream.result.interrupted
        assert "interrupted" not in final

    @both_forms
    def test_closing_keeps_what_was_said_up_to_then(self, provider_class: type[Any]) -> None:
        provider = provider_class()
        core, session = asking(provider)
        stream = core.send_request_stream(session, {})

        assert next(stream)["message"]["content"] == "one "
        stream.close()

        assert provider.closed.wait(60)
        assert stream.result is not None
        assert stream.result.interrupted
        assert answer(stream.result.session) == ("one ", "cancelled")
        assert [message["content"] for message in stream.result.messages] == ["one "]

    @both_forms
    def test_leaving_a_with_block_closes(self, provider_class: type[Any]) -> None:
        provider = provider_class()
        core, session = asking(provider)

        with core.send_request_stream(session, {}) as stream:
            for _ in stream:
                break

        assert provider.closed.wait(60)
        assert stream.result is not None
        assert answer(stream.result.session) == ("one ", "cancelled")

    def test_an_exception_in_a_with_block_closes_and_passes(self) -> None:
        provider = Noting()
        core, session = asking(provider)

        stream = core.send_request_stream(session, {})

        def stumble() -> None:
            with stream:
                next(stream)
                raise LookupError

        with pytest.raises(LookupError):
            stumble()

        assert provider.closed.is_set()
        assert stream.result is not None
        assert answer(stream.result.session) == ("one ", "cancelled")

    def test_a_stream_that_is_simply_dropped_is_closed_at_once(self) -> None:
        provider = Noting()
        core, session = asking(provider)
        gc.disable()

        try:
            for _ in core.send_request_stream(session, {}):
                break
            closed = provider.closed.is_set()
        finally:
            gc.enable()

        assert closed

    @both_forms
    def test_leaving_at_the_final_event_is_not_leaving_early(self, provider_class: type[Any]) -> None:
        core, session = asking(provider_class())

        with core.send_request_stream(session, {}) as stream:
            for event in stream:
                if event["type"] == "final":
                    break

        assert stream.result is not None
        assert stream.result.session is event["session"]
        assert not stream.result.interrupted
        assert stream.result.left
        assert answer(stream.result.session) == ("one two three", None)

    def test_leaving_while_the_partials_of_a_call_are_shown_keeps_its_answer(self) -> None:
        class Telling(Speaking):
            def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
                partials = [{"role": "assistant", "content": "one "}, {"role": "assistant", "content": "two"}]
                return partials, [{"role": "assistant", "text": "one two"}], native_messages, state

        core, session = asking(Telling)

        with core.send_request_stream(session, {}) as stream:
            next(stream)

        assert stream.result is not None
        assert answer(stream.result.session) == ("one two", "cancelled")

    def test_closing_before_anything_was_read_asks_nobody(self) -> None:
        asked: list[Any] = []

        class Asked(Streams):
            def init(self, config: dict[str, Any]) -> State:
                asked.append(config)
                return super().init(config)

        core, session = asking(Asked)
        asked.clear()

        with core.send_request_stream(session, {}) as stream:
            pass

        assert stream.result is None
        assert asked == []

    def test_closing_twice_and_reading_on_is_harmless(self) -> None:
        core, session = asking(Noting)
        stream = core.send_request_stream(session, {})
        next(stream)

        stream.close()
        kept = stream.result
        stream.close()

        assert list(stream) == []
        assert stream.result is kept

    @pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
    def test_an_interrupt_during_a_read_passes_and_the_result_is_kept(
        self, signal: type[BaseException]
    ) -> None:
        class Interrupted(Streams):
            def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
                yield "one "
                raise signal

        core, session = asking(Interrupted)
        stream = core.send_request_stream(session, {})

        with pytest.raises(signal):
            list(stream)

        assert stream.result is not None
        assert stream.result.interrupted
        assert answer(stream.result.session) == ("one ", "cancelled")

    def test_an_interrupt_in_the_middle_of_response_actions_keeps_the_answer(self) -> None:
        class Slow:
            name = "slow"
            version = "1"

            def get_actions(self) -> Dicts:
                return [{"id": "think", "trigger": "response_finalize"}]

            def execute_action(self, action_id: str, session: Session, native: Any, params: Any) -> Any:
                raise KeyboardInterrupt

        core, session = asking(Streams)
        core.register_feature(Slow)
        stream = core.send_request_stream(session, {})

        with pytest.raises(KeyboardInterrupt):
            list(stream)

        assert stream.result is not None
        assert answer(stream.result.session) == ("one two three", None)
        assert stream.result.left

    def test_an_action_that_fails_costs_nobody_what_was_said_before_leaving(self) -> None:
        core, session = asking(Streams)
        core.register_feature(FailingAction)

        with core.send_request_stream(session, {}) as stream:
            next(stream)

        assert stream.result is not None
        assert answer(stream.result.session) == ("one ", "cancelled")

    def test_what_chunks_brought_is_kept_even_if_nothing_can_be_finalized(self) -> None:
        class Halfway(Speaking):
            def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
                yield from ("one", "two")

            def process_chunk(
                self, chunk: str, native_messages: Dicts, state: State
            ) -> tuple[Dicts, Dicts, Dicts, State]:
                said = {"role": "assistant", "text": chunk}
                return [{"content": chunk}], [said], native_messages, state

            def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
                raise ValueError("the end is missing")

        core, session = asking(Halfway)

        with core.send_request_stream(session, {}) as stream:
            next(stream)

        assert stream.result is not None
        assert answer(stream.result.session) == ("one", "cancelled")

    def test_a_conversation_can_go_on_after_it_was_interrupted(self) -> None:
        core, session = asking(Noting)
        with core.send_request_stream(session, {}) as stream:
            next(stream)
        assert stream.result is not None

        session = core.add_message(stream.result.session, "user", "go on", config={})
        session, _ = core.send_request(session, {})

        assert [message.content for message in session.messages] == [
            "hello",
            "one ",
            "go on",
            "one two three",
        ]
        assert "native_rebuilt" not in session.metadata


class TestLeavingEarlyOnALoop:
    @both_forms
    def test_closing_keeps_what_was_said_up_to_then(self, provider_class: type[Any]) -> None:
        provider = provider_class()
        core, session = asking(provider)

        async def leave() -> Any:
            async with aclosing(core.send_request_stream_async(session, {})) as stream:
                async for _ in stream:
                    break
            return stream.result

        result = asyncio.run(leave())

        assert provider.closed.wait(60)
        assert result.interrupted
        assert answer(result.session) == ("one ", "cancelled")

    @both_forms
    def test_leaving_an_async_with_block_closes(self, provider_class: type[Any]) -> None:
        provider = provider_class()
        core, session = asking(provider)

        async def leave() -> Any:
            async with core.send_request_stream_async(session, {}) as stream:
                await anext(stream)
            return stream.result

        result = asyncio.run(leave())

        assert provider.closed.wait(60)
        assert answer(result.session) == ("one ", "cancelled")

    @both_forms
    def test_leaving_at_the_final_event_is_not_leaving_early(self, provider_class: type[Any]) -> None:
        core, session = asking(provider_class())

        async def leave() -> Any:
            async with core.send_request_stream_async(session, {}) as stream:
                async for event in stream:
                    if event["type"] == "final":
                        break
            return stream.result

        result = asyncio.run(leave())

        assert answer(result.session) == ("one two three", None)
        assert not result.interrupted

    @pytest.mark.parametrize("provider_class", [Stuck, StuckAsync])
    def test_cancelling_the_task_keeps_what_was_said_up_to_then(self, provider_class: type[Any]) -> None:
        provider = provider_class()
        core, session = asking(provider)

        async def leave() -> Any:
            stream = core.send_request_stream_async(session, {})
            reading = asyncio.Event()

            async def read() -> None:
                async for _ in stream:
                    reading.set()

            task = asyncio.create_task(read())
            await reading.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return stream.result

        result = asyncio.run(leave())

        if isinstance(provider, Stuck):
            provider.go_on.set()  # a thread that hangs is left behind; it tidies up when it can
        assert provider.closed.wait(60)
        assert result.interrupted
        assert answer(result.session) == ("one ", "cancelled")

    @pytest.mark.parametrize("form", ["call_api", "call_api_async"])
    def test_cancelling_the_task_of_a_call_ends_it_even_if_the_provider_hangs(self, form: str) -> None:
        hanging = threading.Event()
        started = threading.Event()

        class Hanging(Speaking):
            def call_api(self, native_messages: Dicts, state: State) -> Any:
                started.set()
                hanging.wait()

            async def call_api_async(self, native_messages: Dicts, state: State) -> Any:
                started.set()
                await asyncio.Event().wait()

        setattr(Hanging, "call_api" if form == "call_api_async" else "call_api_async", None)
        core, session = asking(Hanging)

        async def leave() -> None:
            task = asyncio.create_task(core.send_request_async(session, {}))
            await asyncio.to_thread(started.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(leave())
        hanging.set()


class TestTheLoopStaysFree:
    @pytest.mark.parametrize("form", ["call_api", "stream_api"])
    @pytest.mark.parametrize("stream", [False, True])
    def test_a_provider_that_blocks_lets_other_coroutines_run(self, form: str, stream: bool) -> None:
        """It waits for something that only another coroutine on the same loop will do."""
        released = threading.Event()

        class Blocking(Speaking):
            def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
                assert released.wait(60)
                return [], [{"role": "assistant", "text": "at last"}], native_messages, state

            def stream_api(self, native_messages: Dicts, state: State) -> Iterator[Any]:
                assert released.wait(60)
                yield "at last"

        setattr(Blocking, "call_api" if form == "stream_api" else "stream_api", None)
        core, session = asking(Blocking)

        async def ask() -> Session:
            if not stream:
                return (await core.send_request_async(session, {}))[0]
            *_, final = [event async for event in core.send_request_stream_async(session, {})]
            return cast("Session", final["session"])

        async def release() -> None:
            await asyncio.sleep(0)
            released.set()

        async def both() -> Session:
            asked, _ = await asyncio.gather(ask(), release())
            return asked

        assert answer(asyncio.run(both())) == ("at last", None)

    def test_finding_out_which_models_there_are_does_not_block_it_either(self) -> None:
        released = threading.Event()

        class Discovering(EchoProvider):
            def get_models(self, config: dict[str, Any]) -> Dicts:
                assert released.wait(60)
                return []

        core = AgentCore()
        core.register_provider(Discovering)
        session = core.create_session()

        async def both() -> None:
            async def release() -> None:
                released.set()

            await asyncio.gather(core.send_request_async(session, {}), release())

        asyncio.run(both())


class TestFlows:
    """Drivers run any flow, not only requests."""

    @staticmethod
    def counting(work: Work[Any]) -> Flow[str]:
        yield Emit(["before"])
        number = yield from ask(Run(work))
        yield Emit([number, "after"])
        return f"came to {number}"

    def test_a_flow_is_run_as_a_call_or_as_a_stream(self) -> None:
        work: Work[int] = Work(blocking=lambda: 3)

        stream = EventStream(self.counting(work))

        assert call(self.counting(work)) == "came to 3"
        assert list(stream) == ["before", 3, "after"]
        assert stream.result == "came to 3"

    def test_a_flow_is_run_on_a_loop_as_a_call_or_as_a_stream(self) -> None:
        async def three() -> int:
            return 3

        async def run() -> tuple[str, list[Any], str | None]:
            stream = AsyncEventStream(self.counting(Work(awaitable=three)))
            events = [event async for event in stream]
            return await call_async(self.counting(Work(awaitable=three))), events, stream.result

        assert asyncio.run(run()) == ("came to 3", ["before", 3, "after"], "came to 3")

    def test_an_error_of_a_step_is_thrown_into_the_flow_which_may_live_with_it(self) -> None:
        def fail() -> None:
            raise ConnectionError("gone")

        def careful() -> Flow[str]:
            try:
                yield from run_blocking(fail)
            except ConnectionError as error:
                return f"lived with: {error}"
            return "unreachable"

        assert call(careful()) == "lived with: gone"
        assert asyncio.run(call_async(careful())) == "lived with: gone"

    def test_an_error_that_the_flow_does_not_catch_reaches_the_caller(self) -> None:
        def fail() -> None:
            raise ConnectionError("gone")

        with pytest.raises(ConnectionError, match="gone"):
            call(run_blocking(fail))
        with pytest.raises(ConnectionError, match="gone"):
            asyncio.run(call_async(run_blocking(fail)))

    def test_a_flow_that_is_left_may_take_more_steps_to_finish(self) -> None:
        done: list[str] = []

        def tidy() -> Flow[str]:
            try:
                while True:
                    yield Emit(["tick"])
            except RequestCancelled:
                yield Emit(["nobody sees this"])
                yield from run_blocking(lambda: done.append("saved"))
                return "tidied"

        with EventStream(tidy()) as stream:
            next(stream)

        assert done == ["saved"]
        assert stream.result == "tidied"

    def test_a_flow_that_cannot_finish_when_left_leaves_no_result_and_hides_no_reason(self) -> None:
        def clumsy() -> Flow[str]:
            try:
                while True:
                    yield Emit(["tick"])
            except RequestCancelled as signal:
                raise AgentError("cannot finish") from signal

        stream = EventStream(clumsy())
        next(stream)

        stream.close()

        assert stream.result is None

    def test_the_same_holds_on_a_loop(self) -> None:
        def clumsy() -> Flow[str]:
            try:
                while True:
                    yield Emit(["tick"])
            except RequestCancelled as signal:
                raise AgentError("cannot finish") from signal

        async def leave() -> str | None:
            async with AsyncEventStream(clumsy()) as stream:
                await anext(stream)
            return stream.result

        assert asyncio.run(leave()) is None

    def test_what_fails_while_a_flow_finishes_is_thrown_into_it_too(self) -> None:
        def fail() -> None:
            raise ConnectionError("gone")

        def tidy() -> Flow[str]:
            try:
                while True:
                    yield Emit(["tick"])
            except RequestCancelled:
                try:
                    yield from run_blocking(fail)
                except ConnectionError as error:
                    return f"not saved: {error}"
                return "saved"

        with EventStream(tidy()) as stream:
            next(stream)

        assert stream.result == "not saved: gone"

    def test_a_stream_that_a_flow_left_open_is_closed_at_its_end(self) -> None:
        closed: list[bool] = []

        def numbers() -> Generator[int, None, None]:
            try:
                yield from range(10)
            finally:
                closed.append(True)

        def forgetful() -> Flow[list[Any] | None]:
            reader = yield from ask(OpenStream(Work(blocking=numbers)))
            return (yield from ask(Read(reader)))

        assert call(forgetful()) == [0]
        assert closed == [True]

    def test_a_request_can_be_driven_by_hand(self) -> None:
        core, session = asking(Streams)
        core.resolve({})
        io = ScriptedIO([None, ["one "], Batch(["two ", "three"]), None])

        result = io.run(core.request_flow(session, {}, stream=True))

        assert [type(step) for step in io.steps] == [OpenStream, Read, Read, Read, CloseStream]
        assert [event["type"] for event in io.events] == ["partial", "partial", "partial", "final"]
        assert answer(result.session) == ("one two three", None)

    def test_a_request_driven_by_hand_can_fail_by_hand(self) -> None:
        core, session = asking(Streams)
        core.resolve({})
        io = ScriptedIO([None, ["one "], TimeoutError("too slow")])

        with pytest.raises(ProviderError, match="too slow") as caught:
            io.run(core.request_flow(session, {}, stream=True))

        assert caught.value.partial is not None
        assert answer(caught.value.partial["session"]) == ("one ", "error")

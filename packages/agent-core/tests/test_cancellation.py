"""Taking a request back: what it had is kept and marked, and nothing of it stays behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from agent_core import AgentCore, ArgumentTypeError, Cancellation, ProviderError, Session
from agent_core.testing import EchoProvider, Reply, ScriptedProvider

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Drive = Callable[..., tuple[Session, Dicts, Dicts]]


class Foreign:
    """Somebody else's token: it can call back, and knows nothing else."""

    def __init__(self) -> None:
        self.callbacks: dict[int, Callable[[], None]] = {}

    def add_callback(self, callback: Callable[[], None]) -> int:
        self.callbacks[len(self.callbacks)] = callback
        return len(self.callbacks) - 1

    def remove_callback(self, token: Any) -> None:
        del self.callbacks[token]

    def cancel(self) -> None:
        for callback in list(self.callbacks.values()):
            callback()


class Unforgetful:
    """A token that only calls back, as the pages ask of it."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def add_callback(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def cancel(self) -> None:
        for callback in self._callbacks:
            callback()


class TestTheToken:
    def test_it_starts_out_not_cancelled(self) -> None:
        assert not Cancellation().cancelled

    def test_callbacks_are_called_once_in_the_order_in_which_they_came(self) -> None:
        token, calls = Cancellation(), list[int]()
        for number in range(3):
            token.add_callback(lambda number=number: calls.append(number))  # type: ignore[misc]  # a late binding

        token.cancel()
        token.cancel()

        assert token.cancelled
        assert calls == [0, 1, 2]

    def test_a_callback_that_comes_too_late_is_called_at_once(self) -> None:
        token, calls = Cancellation(), list[str]()
        token.cancel()

        token.add_callback(lambda: calls.append("late"))

        assert calls == ["late"]

    def test_a_removed_callback_is_not_called(self) -> None:
        token, calls = Cancellation(), list[str]()
        key = token.add_callback(lambda: calls.append("removed"))
        token.add_callback(lambda: calls.append("kept"))

        token.remove_callback(key)
        token.remove_callback(key)
        token.remove_callback("never given")
        token.cancel()

        assert calls == ["kept"]

    def test_the_same_function_may_be_there_twice(self) -> None:
        token, calls = Cancellation(), list[int]()

        def callback() -> None:
            calls.append(1)

        first = token.add_callback(callback)
        token.add_callback(callback)
        token.remove_callback(first)
        token.cancel()

        assert calls == [1]

    def test_a_callback_that_fails_does_not_stop_the_others(self) -> None:
        token, calls = Cancellation(), list[str]()

        def fail() -> None:
            raise LookupError("first")

        token.add_callback(fail)
        token.add_callback(lambda: calls.append("cancelled"))

        with pytest.raises(LookupError, match="first"):
            token.cancel()

        assert calls == ["cancelled"]
        assert token.cancelled

    def test_callbacks_may_use_the_token(self) -> None:
        token, seen = Cancellation(), list[bool]()

        def callback() -> None:
            seen.append(token.cancelled)
            token.remove_callback(key)

        key = token.add_callback(callback)
        token.cancel()

        assert seen == [True]

    def test_of_many_threads_that_cancel_one_does(self) -> None:
        token, calls = Cancellation(), list[int]()
        token.add_callback(lambda: calls.append(1))
        threads = [threading.Thread(target=token.cancel) for _ in range(16)]

        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert calls == [1]


class Watched(Cancellation):
    """A token that shows how many callbacks wait."""

    @property
    def waiting(self) -> int:
        return len(self._callbacks)


class Stream:
    """Says "one ", and then nothing until it is released or cancelled."""

    name = "stream"
    version = "1"

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self.release = threading.Event()
        self.cancelled: list[str] = []

    def init(self, config: dict[str, Any]) -> State:
        return {"heard": []}

    def process_chunk(
        self, chunk: str, native_messages: Dicts, state: State
    ) -> tuple[Dicts, Dicts, Dicts, State]:
        state["heard"].append(chunk)
        return [{"role": "assistant", "content": chunk}], [], native_messages, state

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        if not state["heard"]:
            return [], native_messages, state
        answer = {"role": "assistant", "content": "".join(state["heard"])}
        return [answer], [*native_messages, answer], state


class Hanging(Stream):
    """Cannot be cancelled: its read hangs on an event."""

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        yield "one "
        self.hangs.set()
        self.release.wait()
        yield "two"


class HangingAsync(Stream):
    async def stream_api_async(self, native_messages: Dicts, state: State) -> AsyncIterator[str]:
        yield "one "
        self.hangs.set()
        await asyncio.Event().wait()


class Ending(Hanging):
    """Ends its stream quietly when it is cancelled."""

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        yield "one "
        self.hangs.set()
        self.release.wait()

    def cancel_request(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self.release.set()


class Breaking(Ending):
    """Breaks its stream off with an error when it is cancelled, as a closed connection does."""

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[str]:
        yield from super().stream_api(native_messages, state)
        raise ConnectionError("closed")


class CallHanging(Stream):
    def call_api(self, native_messages: Dicts, state: State) -> Any:
        self.hangs.set()
        self.release.wait()
        answer = {"role": "assistant", "content": "too late"}
        return [], [answer], native_messages, state


class CallHangingAsync(Stream):
    async def call_api_async(self, native_messages: Dicts, state: State) -> Any:
        self.hangs.set()
        await asyncio.Event().wait()


class CallEnding(Stream):
    """Answers with its partial text when it is cancelled."""

    def call_api(self, native_messages: Dicts, state: State) -> Any:
        self.hangs.set()
        self.release.wait()
        return [], [], native_messages, {**state, "heard": ["one "]}

    def cancel_request(self, request_id: str) -> None:
        self.cancelled.append(request_id)
        self.release.set()


class CallBreaking(CallEnding):
    def call_api(self, native_messages: Dicts, state: State) -> Any:
        super().call_api(native_messages, state)
        raise ConnectionError("closed")


def asking(provider: object) -> tuple[AgentCore, Session]:
    core = AgentCore()
    core.register_provider(provider)
    return core, core.add_message(core.create_session(), "user", "hello", config={})


def cancel_when(event: threading.Event, token: Cancellation) -> threading.Thread:
    """Cancel in another thread, as soon as the provider hangs."""

    def wait_and_cancel() -> None:
        assert event.wait(60)
        token.cancel()

    thread = threading.Thread(target=wait_and_cancel)
    thread.start()
    return thread


def contents(session: Session) -> list[tuple[Any, Any]]:
    return [(message.content, message.metadata.get("interrupted")) for message in session.messages]


class TestFromAnotherThread:
    @pytest.mark.parametrize("provider_class", [Hanging, HangingAsync, Ending, Breaking])
    def test_a_stream_that_hangs_ends_and_keeps_what_it_said(
        self, drive: Drive, provider_class: type[Stream]
    ) -> None:
        provider, token = provider_class(), Watched()
        core, session = asking(provider)
        canceller = cancel_when(provider.hangs, token)

        session, messages, _ = drive(core, session, {}, cancellation=token)

        canceller.join()
        provider.release.set()
        assert contents(session) == [("hello", None), ("one ", "cancelled")]
        assert [message["content"] for message in messages] == ["one "]
        assert token.waiting == 0

    @pytest.mark.parametrize(
        ("provider_class", "kept"),
        [
            (CallHanging, []),
            (CallHangingAsync, []),
            (CallEnding, [("one ", "cancelled")]),
            (CallBreaking, []),
        ],
    )
    def test_a_call_that_hangs_ends_and_keeps_its_partial_answer(
        self, drive: Drive, provider_class: type[Stream], kept: list[Any]
    ) -> None:
        provider, token = provider_class(), Watched()
        core, session = asking(provider)
        canceller = cancel_when(provider.hangs, token)

        session, _, _ = drive(core, session, {}, cancellation=token)

        canceller.join()
        provider.release.set()
        assert contents(session) == [("hello", None), *kept]
        assert token.waiting == 0

    @pytest.mark.parametrize("provider_class", [Ending, Breaking, CallEnding, CallBreaking])
    def test_the_provider_learns_which_request_was_cancelled(
        self, drive: Drive, provider_class: type[Stream]
    ) -> None:
        provider, token = provider_class(), Watched()
        core, session = asking(provider)
        canceller = cancel_when(provider.hangs, token)

        drive(core, session, {}, request_id="r-9", cancellation=token)

        canceller.join()
        assert provider.cancelled == ["r-9"]

    def test_the_final_event_says_that_it_was_interrupted(self) -> None:
        provider, token = Hanging(), Watched()
        core, session = asking(provider)
        cancel_when(provider.hangs, token)

        *_, final = core.send_request_stream(session, {}, cancellation=token)

        provider.release.set()
        assert final["type"] == "final"
        assert final["interrupted"] is True

    def test_the_conversation_goes_on_afterwards(self, drive: Drive) -> None:
        provider, token = Ending(), Watched()
        core, session = asking(provider)
        canceller = cancel_when(provider.hangs, token)
        session, _, _ = drive(core, session, {}, cancellation=token)
        canceller.join()

        session, _, _ = drive(core, core.add_message(session, "user", "go on", config={}), {})

        assert contents(session)[1:] == [("one ", "cancelled"), ("go on", None), ("one ", None)]
        assert "native_rebuilt" not in session.metadata


class TestFromTheSameThread:
    def test_a_token_that_was_cancelled_before_asks_nobody(self, drive: Drive) -> None:
        provider, token = ScriptedProvider(["never said"]), Watched()
        core, session = asking(provider)
        token.cancel()

        session, messages, partials = drive(core, session, {}, cancellation=token)

        assert provider.requests == []
        assert messages == partials == []
        assert contents(session) == [("hello", None)]
        assert token.waiting == 0

    @pytest.mark.parametrize("provider_class", [Hanging, Ending, Breaking])
    def test_a_consumer_that_cancels_gets_no_more_partials(self, provider_class: type[Stream]) -> None:
        """Not one more chunk is waited for: the second would never come."""
        provider, token = provider_class(), Watched()
        core, session = asking(provider)
        events = []

        for event in core.send_request_stream(session, {}, cancellation=token):
            events.append(event)
            token.cancel()

        provider.release.set()
        assert [event["type"] for event in events] == ["partial", "final"]
        assert contents(events[-1]["session"])[-1] == ("one ", "cancelled")
        assert not provider.hangs.is_set()
        assert token.waiting == 0

    @pytest.mark.parametrize("provider_class", [Hanging, HangingAsync, Ending, Breaking])
    def test_a_consumer_on_a_loop_that_cancels_gets_no_more_partials(
        self, provider_class: type[Stream]
    ) -> None:
        provider, token = provider_class(), Watched()
        core, session = asking(provider)
        events: Dicts = []

        async def consume() -> None:
            async for event in core.send_request_stream_async(session, {}, cancellation=token):
                events.append(event)
                token.cancel()

        asyncio.run(consume())

        provider.release.set()
        assert [event["type"] for event in events] == ["partial", "final"]
        assert contents(events[-1]["session"])[-1] == ("one ", "cancelled")

    @pytest.mark.parametrize("provider_class", [HangingAsync, CallHangingAsync, Hanging, CallHanging])
    def test_another_coroutine_on_the_loop_can_cancel(self, provider_class: type[Stream]) -> None:
        provider, token = provider_class(), Watched()
        core, session = asking(provider)

        async def cancel() -> None:
            await asyncio.to_thread(provider.hangs.wait)
            token.cancel()

        async def both() -> Session:
            (asked, _), _ = await asyncio.gather(
                core.send_request_async(session, {}, cancellation=token), cancel()
            )
            return asked

        asked = asyncio.run(both())

        provider.release.set()
        assert len(asked.messages) == len(session.messages) + isinstance(provider, (Hanging, HangingAsync))

    def test_closing_a_stream_removes_the_callback(self) -> None:
        token = Watched()
        core, session = asking(EchoProvider)

        with core.send_request_stream(session, {}, cancellation=token) as stream:
            next(stream)
            waiting = token.waiting

        assert waiting > 0
        assert token.waiting == 0


class TestCallbacks:
    @pytest.mark.parametrize("form", [EchoProvider, CallHanging, Hanging, CallEnding])
    def test_they_are_removed_after_a_request_that_went_well(self, drive: Drive, form: type[Any]) -> None:
        provider, token = form(), Watched()
        if isinstance(provider, Stream):
            provider.release.set()

        session, _, _ = drive(*asking(provider), {}, cancellation=token)

        assert token.waiting == 0
        assert contents(session)[-1][1] is None
        assert len(session.messages) == 2

    @pytest.mark.parametrize(
        "script", [[ConnectionError("gone")], [Reply(text="one", error=ConnectionError("gone"))]]
    )
    def test_they_are_removed_after_a_request_that_failed(self, drive: Drive, script: list[Any]) -> None:
        token = Watched()
        core, session = asking(ScriptedProvider(script))

        with pytest.raises(ProviderError, match="gone"):
            drive(core, session, {}, cancellation=token)

        assert token.waiting == 0

    @pytest.mark.parametrize("hook", ["init", "to_native_messages", "process_chunk", "finalize"])
    def test_they_are_removed_when_a_hook_fails(self, drive: Drive, hook: str) -> None:
        def fail(*_given: Any) -> Any:
            raise LookupError(hook)

        token = Watched()
        core = AgentCore()
        core.register_provider(type("Failing", (EchoProvider,), {hook: fail}))
        session = Session("s", [*core.add_message(core.create_session(), "user", "hello").messages])

        with pytest.raises(Exception, match=hook):
            drive(core, session, {}, cancellation=token)

        assert token.waiting == 0

    def test_a_cancel_request_that_fails_harms_neither_the_canceller_nor_the_request(
        self, drive: Drive
    ) -> None:
        class Clumsy(Ending):
            def cancel_request(self, request_id: str) -> None:
                self.release.set()
                raise LookupError("no such request")

        provider, token = Clumsy(), Watched()
        core, session = asking(provider)
        canceller = cancel_when(provider.hangs, token)

        session, _, _ = drive(core, session, {}, cancellation=token)

        canceller.join()
        assert contents(session)[-1] == ("one ", "cancelled")

    def test_one_token_takes_back_all_its_requests(self) -> None:
        providers = [Ending(), Ending()]
        token = Watched()
        sessions: list[Session] = []

        def ask(provider: Stream) -> None:
            core, session = asking(provider)
            sessions.append(core.send_request(session, {}, cancellation=token)[0])

        threads = [threading.Thread(target=ask, args=(provider,)) for provider in providers]
        for thread in threads:
            thread.start()
        for provider in providers:
            assert provider.hangs.wait(60)

        token.cancel()
        for thread in threads:
            thread.join()

        assert [contents(session)[-1] for session in sessions] == [("one ", "cancelled")] * 2

    def test_a_token_of_somebody_else_will_do(self, drive: Drive) -> None:
        """Only adding and removing callbacks is asked of it, and it is given back what it gave."""

        provider, token = Ending(), Foreign()
        core, session = asking(provider)

        def cancel() -> None:
            assert provider.hangs.wait(60)
            token.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        session, _, _ = drive(core, session, {}, cancellation=token)

        canceller.join()
        assert contents(session)[-1] == ("one ", "cancelled")
        assert token.callbacks == {}

    def test_a_token_that_could_never_cancel_is_refused(self, drive: Drive) -> None:
        core, session = asking(Ending())

        with pytest.raises(ArgumentTypeError, match="'object' has no add_callback"):
            drive(core, session, {}, cancellation=object())

    def test_a_token_that_cannot_forget_is_taken(
        self, drive: Drive, caplog: pytest.LogCaptureFixture
    ) -> None:
        token = Unforgetful()
        provider = Ending()
        core, session = asking(provider)

        def cancel() -> None:
            assert provider.hangs.wait(60)
            token.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        session, _, _ = drive(core, session, {}, cancellation=token)

        canceller.join()
        assert contents(session)[-1] == ("one ", "cancelled")
        assert caplog.messages == []


class TestTools:
    def test_a_token_of_somebody_else_ends_a_tool_and_those_behind_it(self) -> None:
        token, heard = Foreign(), list[bool]()

        class Tool:
            name = "tool"

            def get_tool_schemas(self) -> Dicts:
                return [{"type": "function", "function": {"name": "work", "parameters": {"type": "object"}}}]

            def execute_tool(self, tool_name: str, arguments: State, cancellation: Cancellation) -> str:
                heard.append(cancellation.cancelled)
                token.cancel()
                heard.append(cancellation.cancelled)
                return "done"

        core = AgentCore()
        core.register_tool(Tool)
        calls = [{"id": name, "function": {"name": "work", "arguments": "{}"}} for name in "ab"]

        first, second = core.iter_tool_messages(calls, {}, cancellation=token)

        assert heard == [False, True]
        assert first["metadata"]["interrupted"]
        assert second["content"] == "Error: it was cancelled before it ran"
        assert token.callbacks == {}

    def test_a_token_that_cannot_forget_is_taken_for_tools(self, caplog: pytest.LogCaptureFixture) -> None:
        token, core = Unforgetful(), AgentCore()
        token.cancel()

        [message] = core.iter_tool_messages([{"id": "a"}], {}, cancellation=token)

        assert message["role"] == "tool"
        assert caplog.messages == []

    def test_the_token_is_let_go_when_the_reader_leaves_early(self) -> None:
        token, core = Foreign(), AgentCore()

        with core.iter_tool_messages([{"junk": 1}, {"junk": 2}], {}, cancellation=token) as messages:
            next(messages)
            assert token.callbacks

        assert token.callbacks == {}


class Broken:
    """A token whose own code fails."""

    def __init__(self, *, adds: bool) -> None:
        self._adds = adds

    def add_callback(self, callback: Callable[[], None]) -> object:
        if not self._adds:
            raise ValueError("no callbacks here")
        return callback

    def remove_callback(self, token: object) -> None:
        raise ValueError("it stays")


@pytest.mark.parametrize("adds", [True, False])
def test_a_token_that_fails_costs_no_answer(*, adds: bool) -> None:
    core = AgentCore()
    core.register_provider(EchoProvider)
    session = core.add_message(core.create_session(), "user", "hello")

    _, messages = core.send_request(session, {}, cancellation=Broken(adds=adds))

    assert [message["content"] for message in messages] == ["hello"]

"""Whatever goes wrong with a call is reported in its message, and the other calls go on."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, closing
from itertools import product
from typing import Any

import pytest

from agent_core import AgentCore, Cancellation, RegistrationError, RequestCancelled, Session, ToolError
from agent_core.testing import EchoProvider

Case = Callable[..., AbstractContextManager[None]]

Dicts = list[dict[str, Any]]
Drive = Callable[..., Dicts]
Body = Callable[..., Any]


def _execute(core: AgentCore, calls: Any, config: dict[str, Any]) -> Dicts:
    return core.execute_tool_calls(calls, config)


def _execute_async(core: AgentCore, calls: Any, config: dict[str, Any]) -> Dicts:
    return asyncio.run(core.execute_tool_calls_async(calls, config))


def _iterate(core: AgentCore, calls: Any, config: dict[str, Any], **options: Any) -> Dicts:
    return list(core.iter_tool_messages(calls, config, **options))


def _iterate_async(core: AgentCore, calls: Any, config: dict[str, Any], **options: Any) -> Dicts:
    async def collect() -> Dicts:
        return [event async for event in core.iter_tool_messages_async(calls, config, **options)]

    return asyncio.run(collect())


def _driver_name(driver: Drive) -> str:
    return driver.__name__[1:]


@pytest.fixture(params=[_execute, _execute_async], ids=_driver_name)
def run(request: pytest.FixtureRequest) -> Drive:
    """Run calls, waiting and on an event loop: ``run(core, calls, config)`` returns the messages."""
    driver: Drive = request.param
    return driver


@pytest.fixture(params=[_iterate, _iterate_async], ids=_driver_name)
def watch(request: pytest.FixtureRequest) -> Drive:
    """Run calls, perhaps with a token, and return messages and partial output, as they came."""
    driver: Drive = request.param
    return driver


class Executing:
    """Its tool `bad` does what the test says; `good` and `better` always answer.

    `started` is set by a `bad` that hangs, and `notified` when that one learns that nobody waits for it.
    """

    name = "mixed"
    version = "1"
    timeout: Any = None

    def __init__(self, body: Body, timeout: Any = None) -> None:
        self.body = body
        self.timeout = timeout
        self.ran: list[str] = []
        self.started = threading.Event()
        self.notified = threading.Event()

    def get_tool_schemas(self) -> Dicts:
        return [{"type": "function", "function": {"name": name}} for name in ("bad", "good", "better")]

    def execute_tool(self, tool_name: str, arguments: Any, cancellation: Any) -> Any:
        self.ran.append(tool_name)
        return self.body(cancellation) if tool_name == "bad" else "fine"


class Streaming(Executing):
    def stream_tool(self, tool_name: str, arguments: Any, cancellation: Any) -> Iterator[Any]:
        yield {"part": tool_name}
        yield {"success": True, "result": self.execute_tool(tool_name, arguments, cancellation)}


class ExecutingAsync(Executing):
    async def execute_tool(self, tool_name: str, arguments: Any, cancellation: Any) -> Any:
        answer = super().execute_tool(tool_name, arguments, cancellation)
        return await answer if isinstance(answer, Awaitable) else answer


class StreamingAsync(ExecutingAsync):
    async def stream_tool(self, tool_name: str, arguments: Any, cancellation: Any) -> AsyncIterator[Any]:
        yield {"part": tool_name}
        yield {"success": True, "result": await self.execute_tool(tool_name, arguments, cancellation)}


FORMS = [Executing, Streaming, ExecutingAsync, StreamingAsync]


def call(name: str = "bad", call_id: str | None = None) -> dict[str, Any]:
    return {"id": call_id or name, "type": "function", "function": {"name": name, "arguments": "{}"}}


def core_with(*tools: Any) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider)
    for plugin in tools:
        core.register_tool(plugin)
    return core


def kind(message: dict[str, Any]) -> Any:
    return message["metadata"].get("error", {}).get("type")


def unused(*_: Any) -> Any:
    raise AssertionError("this was not to be run")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("god", "Tool 'god': there is no such tool; did you mean 'good'?"),
        ("GOOD", "there is no such tool; known are bad, good, better"),
        ("search", "there is no such tool; known are bad, good, better"),
    ],
)
def test_the_error_about_an_unknown_tool_names_the_nearest_one(run: Drive, name: str, complaint: str) -> None:
    message, fine = run(core_with(Executing(unused)), [call(name), call("good")], {})

    assert complaint in message["content"]
    assert message["metadata"] == {
        "tool_call_id": name,
        "tool_name": name,
        "error": {"type": "unknown_tool"},
    }
    assert message["tool_result"] == {"type": "tool_result", "text": message["content"], "is_error": True}
    assert fine["content"] == "fine"


def test_where_there_are_no_tools_the_error_says_so(run: Drive) -> None:
    [message] = run(core_with(), [call("search")], {})

    assert "there is no such tool; known are none" in message["content"]


@pytest.mark.parametrize(
    ("junk", "call_id"),
    [
        (None, None),
        (5, None),
        ("good", None),
        ([], None),
        ({}, None),
        ({"name": "good"}, None),
        ({"id": "7", "type": "function", "function": {"name": ""}}, "7"),
        ({"id": "7", "type": "function", "function": {}}, "7"),
        ({"type": "function_call", "call_id": "7", "id": "item"}, "7"),
        ({"id": 7, "type": "function", "function": {"name": "good"}}, None),
        ({"id": "7", "type": "server_tool_use", "name": "good"}, "7"),
    ],
)
def test_a_call_that_cannot_be_read_is_answered_and_the_others_are_run(
    run: Drive, junk: Any, call_id: str | None
) -> None:
    before, message, after = run(core_with(Executing(unused)), [call("good"), junk, call("better")], {})

    assert message["metadata"] == {
        "tool_call_id": call_id,
        "tool_name": None,
        "error": {"type": "unreadable_call"},
    }
    assert message["content"].startswith("Error: ")
    assert (before["content"], after["content"]) == ("fine", "fine")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Panic(BaseException):
    """What a library in another language raises when it breaks."""


ERRORS = [
    (ValueError("wrong word"), "Error: ValueError: wrong word"),
    (ValueError(), "Error: ValueError"),
    (KeyError("word"), "Error: KeyError: 'word'"),
    (ToolError("bad", "too much"), "Error: Tool 'bad': too much"),
    (TimeoutError("no route"), "Error: TimeoutError: no route"),
    (StopIteration("over"), "StopIteration"),
    (SystemExit(3), "Error: SystemExit: 3"),
    (Panic("at the disco"), "Error: Panic: at the disco"),
    (asyncio.CancelledError(), "Error: CancelledError"),
    (RequestCancelled(), "Error: RequestCancelled"),
    (UnprintableError(), "Error: UnprintableError"),
    (RecursionError("too deep"), "Error: RecursionError: too deep"),
]


def raising(error: BaseException) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


def test_what_a_tool_raises_is_reported_and_the_other_calls_go_on(run: Drive, case: Case) -> None:
    timeouts: list[float | None] = [None, 60.0]
    for (error, complaint), form, timeout in product(ERRORS, FORMS, timeouts):
        with case(error, complaint, form, timeout):
            message, fine = run(core_with(form(raising(error), timeout)), [call(), call("good")], {})

            assert kind(message) == "exception"
            assert complaint in message["content"]
            assert message["tool_result"]["is_error"] is True
            assert message["metadata"]["tool_plugin"] == "mixed"
            assert fine["content"] == "fine"


@pytest.mark.parametrize("form", FORMS[:2])
def test_an_interrupt_from_the_keyboard_is_nobodys_error(form: type[Executing]) -> None:
    def interrupt(_: Any) -> Any:
        raise KeyboardInterrupt

    plugin = form(interrupt)
    stream = core_with(plugin).iter_tool_messages([call("good"), call(), call("better")], {})

    with pytest.raises(KeyboardInterrupt):
        list(stream)

    assert plugin.ran == ["good", "bad"]
    assert stream.result is not None
    assert [kind(message) for message in stream.result] == [None, "cancelled", "cancelled"]


def test_a_failure_is_logged_with_names(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Any) -> Any:
        raise ValueError("wrong word")

    with caplog.at_level(logging.WARNING, "agent_core.tools"):
        core_with(Executing(fail)).execute_tool_calls([call()], {})

    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == (
        "iter_tool_messages_stream_error tool_name='bad' plugin='mixed' error='ValueError: wrong word'"
    )


class Yielding:
    """Yields the items of the test's choice; the last may be an exception to raise."""

    name = "yielding"
    version = "1"

    def __init__(self, *items: Any) -> None:
        self.items = items

    def get_tool_schemas(self) -> Dicts:
        return [{"type": "function", "function": {"name": "bad"}}]

    def stream_tool(self, tool_name: str, arguments: Any) -> Any:
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            yield item


class YieldingAsync(Yielding):
    async def stream_tool(self, tool_name: str, arguments: Any) -> Any:
        for item in super().stream_tool(tool_name, arguments):
            yield item


RESULT = {"success": True, "result": "said"}


@pytest.mark.parametrize("form", [Yielding, YieldingAsync])
@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ([], "Error: the tool ended without a result"),
        ([{"part": "a"}, {"half": "done"}], "Error: the tool ended without a result"),
        (["text", 5, None], "Error: the tool yielded 3 items that are not dicts, and no result"),
    ],
)
def test_a_tool_that_gives_no_result_is_reported(
    run: Drive, form: type[Yielding], items: list[Any], complaint: str
) -> None:
    [message] = run(core_with(form(*items)), [call()], {})

    assert (kind(message), message["content"]) == ("no_result", complaint)


@pytest.mark.parametrize("form", [Yielding, YieldingAsync])
@pytest.mark.parametrize(
    "items",
    [
        ["junk", RESULT, 5],
        [{"success": False, "error": "not yet"}, {"part": "again"}, RESULT],
        [RESULT, {"part": "afterwards"}],
        [RESULT, ValueError("afterwards")],
    ],
)
def test_the_last_result_counts_whatever_stands_around_it(
    run: Drive, form: type[Yielding], items: list[Any]
) -> None:
    [message] = run(core_with(form(*items)), [call()], {})

    assert (kind(message), message["content"]) == (None, "said")


def test_a_stream_tool_that_forgets_to_yield_has_no_result(run: Drive) -> None:
    class Forgetful(Yielding):
        def stream_tool(self, tool_name: str, arguments: Any) -> None:
            return None

    [message] = run(core_with(Forgetful()), [call()], {})

    assert kind(message) == "no_result"


async def _coroutine() -> str:
    return "awaited"


async def _async_generator() -> AsyncIterator[dict[str, Any]]:
    yield RESULT


@pytest.mark.parametrize("make", [_coroutine, _async_generator])
def test_a_plain_tool_that_returns_something_to_await_learns_what_to_write(
    run: Drive, make: Callable[[], Any]
) -> None:
    plugin = Executing(lambda _: make())

    message, fine = run(core_with(plugin), [call(), call("good")], {})

    assert kind(message) == "exception"
    assert "it is not async but returned a" in message["content"]
    assert "`async def`" in message["content"]
    assert fine["content"] == "fine"


@pytest.mark.parametrize(("make", "content"), [(_coroutine, "awaited"), (_async_generator, "said")])
def test_a_plain_tool_may_return_something_to_await_if_its_plugin_says_so(
    run: Drive, make: Callable[[], Any], content: str
) -> None:
    class Declared(Executing):
        is_async = True

    [message] = run(core_with(Declared(lambda _: make())), [call()], {})

    assert message["content"] == content


def _endless(items: list[Any]) -> list[Any]:
    items.append(items)
    return items


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("answer", [_endless([]), Unspeakable()], ids=["endless", "unspeakable"])
def test_a_result_that_cannot_be_put_into_words_is_reported(run: Drive, answer: Any) -> None:
    [message] = run(core_with(Executing(lambda _: answer)), [call()], {})

    assert kind(message) == "unreadable_result"
    assert message["content"].startswith("Error: the tool ran, but its result cannot be read: ")


class Formatting(Executing):
    formatted: Any = "worded"
    display: Any = None

    def format_tool_result(self, result: dict[str, Any]) -> Any:
        return _raise(self.formatted)

    def to_display_format(self, text: str) -> Any:
        return _raise(self.display)


def _raise(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


@pytest.mark.parametrize(
    ("formatted", "complaint"),
    [
        (ValueError("no words"), "hook 'format_tool_result': raised ValueError: no words"),
        ({"functionResponse": {"response": 5}}, "'functionResponse.response' must be an object"),
        ({"role": "tool", "tool_call_id": 5, "content": "x"}, "'tool_call_id' must be text"),
    ],
)
def test_if_a_plugin_cannot_word_its_result_the_model_learns_that_the_tool_ran(
    run: Drive, formatted: Any, complaint: str
) -> None:
    plugin = Formatting(lambda _: "done")
    plugin.formatted = formatted

    message, fine = run(core_with(plugin), [call(), call("search")], {})

    assert kind(message) == "unreadable_result"
    assert "the tool ran, but its result cannot be read" in message["content"]
    assert complaint in message["content"]
    assert kind(fine) == "unknown_tool"


def test_a_display_that_fails_costs_only_the_display(run: Drive, caplog: pytest.LogCaptureFixture) -> None:
    plugin = Formatting(lambda _: "done")
    plugin.display = ValueError("no picture")

    with caplog.at_level(logging.WARNING, "agent_core.tools"):
        [message] = run(core_with(plugin), [call()], {})

    assert message["content"] == "worded"
    assert {"error", "display"}.isdisjoint(message["metadata"])
    assert "no picture" in caplog.text


@pytest.mark.parametrize("content", [_endless([]), {1: _endless([])}], ids=["list", "dict"])
def test_a_display_without_an_end_costs_only_the_display(run: Drive, content: Any) -> None:
    plugin = Formatting(lambda _: "done")
    plugin.display = {"type": "json", "content": content}

    [message] = run(core_with(plugin), [call()], {})

    assert message["content"] == "worded"
    assert {"error", "display"}.isdisjoint(message["metadata"])


@pytest.mark.parametrize("odd", [object(), float("nan"), {1}, b"x"], ids=["object", "nan", "set", "bytes"])
def test_whatever_a_tool_returns_its_message_can_be_kept(run: Drive, odd: Any) -> None:
    plugin = Formatting(lambda _: {"success": True, "state_update": {"seen": [odd]}})
    plugin.formatted = {"type": "tool_result", "text": "worded", "more": {"odd": odd}}
    plugin.display = {"type": "json", "content": [odd, 1]}
    core = core_with(plugin)

    [message] = run(core, [call()], {})
    kept = core.add_message(
        Session("s"), "tool", message["content"], message["metadata"], tool_result=message["tool_result"]
    )

    assert message["content"] == "worded"
    assert message["metadata"]["display"]["content"][1] == 1
    assert json.loads(json.dumps(kept.to_dict(), allow_nan=False)) == kept.to_dict()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Tools hang on this; it is set when the test is over, so that their threads can end."""
    event = threading.Event()
    yield event
    event.set()


def hanging(form: type[Executing], release: threading.Event, timeout: Any = None) -> Executing:
    """Return a plugin whose `bad` never ends by itself."""

    async def hang_async() -> None:
        await asyncio.Event().wait()

    def hang(cancellation: Any) -> Any:
        cancellation.add_callback(plugin.notified.set)
        plugin.started.set()
        return hang_async() if isinstance(plugin, ExecutingAsync) else release.wait()

    plugin = form(hang, timeout)
    return plugin


SOON = 0.02


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("own", "config"),
    [
        (SOON, {}),
        ({"bad": SOON}, {}),
        (None, {"tool_timeout": SOON}),
        (None, {"tool_timeouts": {"bad": SOON}}),
        (1000, {"tool_timeouts": {"bad": SOON}, "tool_timeout": 1000}),
        (SOON, {"tool_timeout": 1000}),
        ({"good": 1000}, {"tool_timeout": SOON}),
    ],
)
def test_a_tool_that_hangs_is_given_up_in_time_and_notified(
    run: Drive, release: threading.Event, form: type[Executing], own: Any, config: dict[str, Any]
) -> None:
    plugin = hanging(form, release, own)
    # On a busy machine any limit may be short; those that are to go on have none.
    config = {**config, "tool_timeouts": {"good": None, "better": None, **config.get("tool_timeouts", {})}}

    before, message, after = run(core_with(plugin), [call("good"), call(), call("better")], config)

    assert kind(message) == "timeout"
    assert message["content"] == (
        "Error: it gave no result within 0.02 seconds and was given up; it may have run in part"
    )
    assert "interrupted" not in message["metadata"]
    assert not plugin.started.is_set() or plugin.notified.wait(timeout=60)  # it may be late even to begin
    assert (before["content"], after["content"]) == ("fine", "fine")


@pytest.mark.parametrize("own", [None, 1000.0, {"bad": 1000.0}])
def test_the_configuration_may_lift_a_limit(own: Any) -> None:
    # Without a limit nothing stands between the caller and the tool, not even a thread.
    plugin = Executing(lambda _: threading.current_thread().name, own)
    core = core_with(plugin)

    [message] = core.execute_tool_calls([call()], {"tool_timeouts": {"bad": None}, "tool_timeout": None})

    assert message["content"] == threading.current_thread().name


@pytest.mark.parametrize("timeout", [0, -1, "10", True, {"bad": 0}, {"bad": "soon"}])
def test_a_limit_that_is_none_is_refused_at_registration(timeout: Any) -> None:
    with pytest.raises(RegistrationError, match="its timeout must be seconds above 0") as caught:
        core_with(Executing(unused, timeout))
    assert caught.value.plugin == "mixed"


def test_a_streamed_call_raises_what_went_wrong(release: threading.Event) -> None:
    def fail(_: Any) -> Any:
        raise ValueError("wrong word")

    failing, slow = core_with(Streaming(fail)), core_with(hanging(Streaming, release, SOON))

    with pytest.raises(ToolError, match="Tool 'bad': it raised ValueError: wrong word") as caught:
        list(failing.stream_tool_call(call(), {}))
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ToolError, match=r"Tool 'bad': it gave no result within 0\.02 seconds"):
        list(slow.stream_tool_call(call(), {}))


def cancel_when_started(plugin: Executing, token: Cancellation) -> threading.Thread:
    def cancel() -> None:
        assert plugin.started.wait(timeout=60)
        token.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    return thread


@pytest.mark.parametrize("form", FORMS)
def test_cancelling_from_another_thread_ends_a_tool_that_hangs(
    watch: Drive, release: threading.Event, form: type[Executing]
) -> None:
    plugin, token = hanging(form, release), Cancellation()
    thread = cancel_when_started(plugin, token)

    events = watch(core_with(plugin), [call("good"), call(), call("better")], {}, cancellation=token)

    thread.join()
    messages = [event for event in events if "role" in event]
    assert [kind(message) for message in messages] == [None, "cancelled", "cancelled"]
    assert messages[1]["content"] == "Error: it was cancelled; it may have run in part"
    assert messages[2]["content"] == "Error: it was cancelled before it ran"
    assert [message["metadata"].get("interrupted") for message in messages] == [None, True, True]
    assert [message["metadata"]["tool_call_id"] for message in messages] == ["good", "bad", "better"]
    assert plugin.ran == ["good", "bad"]
    assert plugin.notified.is_set()
    assert token._callbacks == {}


def test_a_tool_that_gave_its_result_and_then_hangs_has_given_its_result(
    watch: Drive, release: threading.Event
) -> None:
    class Lingering(Executing):
        def stream_tool(self, tool_name: str, arguments: Any) -> Iterator[Any]:
            yield RESULT
            self.started.set()
            release.wait()

    plugin, token = Lingering(unused), Cancellation()
    thread = cancel_when_started(plugin, token)

    kept, not_run = watch(core_with(plugin), [call(), call("good")], {}, cancellation=token)

    thread.join()
    assert (kind(kept), kept["content"], kept["metadata"]["interrupted"]) == (None, "said", True)
    assert not_run["content"] == "Error: it was cancelled before it ran"


def test_with_a_token_that_is_cancelled_already_nothing_is_run(watch: Drive) -> None:
    plugin, token = Executing(unused), Cancellation()
    token.cancel()

    messages = watch(core_with(plugin), [call("good"), {"junk": 1}, call("search")], {}, cancellation=token)

    assert [kind(message) for message in messages] == ["cancelled", "unreadable_call", "cancelled"]
    assert messages[0]["metadata"]["tool_plugin"] == "mixed"
    assert plugin.ran == []


class Parting(Executing):
    """Shows a part and then hangs, noting how it ended."""

    def __init__(self, release: threading.Event) -> None:
        super().__init__(unused)
        self.release = release
        self.ended = threading.Event()

    def stream_tool(self, tool_name: str, arguments: Any) -> Iterator[Any]:
        self.ran.append(tool_name)
        try:
            yield {"part": "first"}
            self.release.wait()
            yield RESULT
        finally:
            self.ended.set()


class PartingAsync(Parting):
    async def stream_tool(self, tool_name: str, arguments: Any) -> Any:
        self.ran.append(tool_name)
        try:
            yield {"part": "first"}
            await asyncio.Event().wait()
        finally:
            self.ended.set()


PARTING = [Parting, PartingAsync]


@pytest.mark.parametrize("form", PARTING)
def test_cancelling_on_what_was_shown_ends_the_call(release: threading.Event, form: type[Parting]) -> None:
    plugin, token = form(release), Cancellation()
    events = []

    for event in core_with(plugin).iter_tool_messages([call(), call("good")], {}, cancellation=token):
        events.append(event)
        token.cancel()

    assert events[0] == {"part": "first"}
    assert [kind(event) for event in events[1:]] == ["cancelled", "cancelled"]
    assert plugin.ran == ["bad"]


@pytest.mark.parametrize("form", PARTING)
def test_cancelling_on_what_was_shown_ends_the_call_on_an_event_loop(
    release: threading.Event, form: type[Parting]
) -> None:
    plugin, token = form(release), Cancellation()
    events = []

    async def watch() -> None:
        stream = core_with(plugin).iter_tool_messages_async([call(), call("good")], {}, cancellation=token)
        async for event in stream:
            events.append(event)
            token.cancel()

    asyncio.run(watch())

    assert events[0] == {"part": "first"}
    assert [kind(event) for event in events[1:]] == ["cancelled", "cancelled"]
    assert plugin.ran == ["bad"]


@pytest.mark.parametrize("form", PARTING)
def test_who_leaves_early_finds_every_call_answered_and_no_more_of_them_run(
    release: threading.Event, form: type[Parting]
) -> None:
    plugin = form(release)
    stream = core_with(plugin).iter_tool_messages([call(), call("good")], {})

    with closing(stream):
        assert next(stream) == {"part": "first"}

    assert stream.result is not None
    assert [message["content"] for message in stream.result] == [
        "Error: it was cancelled; it may have run in part",
        "Error: it was cancelled before it ran",
    ]
    assert plugin.ran == ["bad"]
    assert plugin.ended.wait(timeout=60)


@pytest.mark.parametrize("form", PARTING)
def test_who_leaves_early_on_an_event_loop_finds_the_same(
    release: threading.Event, form: type[Parting]
) -> None:
    plugin = form(release)

    async def leave() -> Dicts | None:
        async with aclosing(core_with(plugin).iter_tool_messages_async([call(), call("good")], {})) as stream:
            assert await anext(stream) == {"part": "first"}
        return stream.result

    result = asyncio.run(leave())

    assert result is not None
    assert [kind(message) for message in result] == ["cancelled", "cancelled"]
    assert plugin.ran == ["bad"]
    assert plugin.ended.wait(timeout=60)


def test_who_leaves_at_a_message_keeps_it_and_no_more_calls_are_run() -> None:
    plugin = Executing(unused)
    stream = core_with(plugin).iter_tool_messages([call("good"), call("better")], {})

    with closing(stream):
        assert next(stream)["content"] == "fine"

    assert stream.result is not None
    assert [kind(message) for message in stream.result] == [None, "cancelled"]
    assert plugin.ran == ["good"]


@pytest.mark.parametrize("form", FORMS)
def test_a_cancelled_task_tells_the_tool_and_runs_no_more_calls(
    release: threading.Event, form: type[Executing]
) -> None:
    plugin = hanging(form, release)

    async def cancel_when_started() -> None:
        task = asyncio.ensure_future(core_with(plugin).execute_tool_calls_async([call(), call("good")], {}))
        assert await asyncio.to_thread(plugin.started.wait, 10)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_when_started())

    assert plugin.ran == ["bad"]
    assert plugin.notified.is_set()


def test_a_tool_may_end_itself_when_it_is_cancelled(watch: Drive) -> None:
    def wait(cancellation: Any) -> None:
        cancellation.add_callback(plugin.notified.set)
        plugin.started.set()
        assert plugin.notified.wait(timeout=60)
        raise RequestCancelled

    plugin, token = Executing(wait), Cancellation()
    thread = cancel_when_started(plugin, token)

    [message] = watch(core_with(plugin), [call()], {}, cancellation=token)

    thread.join()
    assert (kind(message), message["metadata"]["interrupted"]) == ("cancelled", True)


@pytest.mark.parametrize("form", FORMS)
def test_a_tool_whose_own_callback_fails_is_given_up_like_any_other(
    run: Drive, release: threading.Event, form: type[Executing]
) -> None:
    def fail() -> None:
        raise ValueError("not now")

    plugin = hanging(form, release, {"bad": SOON})
    hang = plugin.body

    def hang_with_a_bad_callback(cancellation: Any) -> Any:
        cancellation.add_callback(fail)
        return hang(cancellation)

    plugin.body = hang_with_a_bad_callback

    message, fine = run(core_with(plugin), [call(), call("good")], {})

    assert kind(message) == "timeout"
    assert fine["content"] == "fine"


def test_a_tool_that_fails_while_it_is_closed_is_given_up_like_any_other(run: Drive) -> None:
    class Stubborn(Executing):
        async def stream_tool(self, tool_name: str, arguments: Any) -> Any:
            try:
                yield {"part": 1}
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                raise ValueError("not now")

    messages = run(core_with(Stubborn(unused, SOON)), [call(), call("good")], {})

    assert [kind(message) for message in messages] == ["timeout", "timeout"]


def test_a_tool_that_fails_while_it_is_closed_costs_nothing_of_what_was_kept() -> None:
    class Untidy(Executing):
        def stream_tool(self, tool_name: str, arguments: Any) -> Iterator[Any]:
            try:
                yield RESULT
                yield {"part": "more"}
            finally:
                raise ValueError("not now")

    stream = core_with(Untidy(unused)).iter_tool_messages([call(), call("good")], {})

    with closing(stream):
        assert next(stream) == {"part": "more"}

    assert stream.result is not None
    assert [message["content"] for message in stream.result] == [
        "said",
        "Error: it was cancelled before it ran",
    ]

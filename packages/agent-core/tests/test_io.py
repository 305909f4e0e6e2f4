"""How steps are answered: every form of work, for callers that wait and for callers on a loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import agent_core.io.background
from agent_core import Batch, Cancellation, RequestCancelled
from agent_core.drivers import call_async
from agent_core.io import SyncIO, run_awaitable
from agent_core.io.async_io import AsyncIO
from agent_core.io.workers import NarrowLane
from agent_core.steps import CloseStream, OpenStream, Run, Step, Work, run_blocking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from agent_core.steps import Flow


class Waiting:
    """A caller that waits."""

    def __init__(self) -> None:
        self.io = SyncIO()

    def perform(self, step: Step[Any]) -> Any:
        return self.io.perform(step)

    def read(self, reader: Any) -> Any:
        return reader.read()

    def close(self) -> None:
        self.io.close()


class OnALoop:
    """A caller on an event loop."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.io = AsyncIO()

    def perform(self, step: Step[Any]) -> Any:
        return self.runner.run(self.io.perform(step))

    def read(self, reader: Any) -> Any:
        return self.runner.run(reader.read())

    def close(self) -> None:
        self.runner.run(self.io.close())


Caller = Waiting | OnALoop


@pytest.fixture(params=["waiting", "on a loop"])
def caller(request: pytest.FixtureRequest) -> Iterator[Caller]:
    with asyncio.Runner() as runner:
        found: Caller = Waiting() if request.param == "waiting" else OnALoop(runner)
        yield found
        found.close()


class Source:
    """A stream in a blocking and in an awaitable form; an item that is an Event is waited for."""

    def __init__(self, *items: Any) -> None:
        self.items = items
        self.closed = threading.Event()
        self.hangs = threading.Event()

    def blocking(self) -> Iterator[Any]:
        try:
            for item in self.items:
                if isinstance(item, BaseException):
                    raise item
                if isinstance(item, threading.Event):
                    self.hangs.set()
                    item.wait()
                else:
                    yield item
        finally:
            self.closed.set()

    async def awaitable(self) -> AsyncIterator[Any]:
        try:
            for item in self.items:
                await asyncio.sleep(0)
                if isinstance(item, BaseException):
                    raise item
                if isinstance(item, threading.Event):
                    self.hangs.set()
                    await asyncio.Event().wait()
                else:
                    yield item
        finally:
            await asyncio.sleep(0)  # as closing a connection would take
            self.closed.set()

    def work(self, form: str) -> Work[Any]:
        return Work(**{form: getattr(self, form)})


forms = pytest.mark.parametrize("form", ["blocking", "awaitable"])
watched = pytest.mark.parametrize(
    "watching",
    [
        {},
        {"timeout": 60.0},
        {"cancellation": Cancellation()},
        {"timeout": 60.0, "cancellation": Cancellation()},
    ],
    ids=["unwatched", "timeout", "cancellation", "both"],
)


def read_all(caller: Caller, step: OpenStream) -> list[Any]:
    reader = caller.perform(step)
    found = []
    while (batch := caller.read(reader)) is not None:
        found.append(batch)
    return found


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event that nobody sets during the test; threads that wait for it are let go afterwards."""
    event = threading.Event()
    yield event
    event.set()


class TestRunning:
    @staticmethod
    def work(form: str, function: Callable[[], Any]) -> Work[Any]:
        async def awaitable() -> Any:
            await asyncio.sleep(0)
            return function()

        return Work(blocking=function) if form == "blocking" else Work(awaitable=awaitable)

    @forms
    @pytest.mark.parametrize("answer", [3, None, (1, 2), Batch([1, 2]), ValueError("as a value")])
    def test_the_answer_is_what_the_work_returned(self, caller: Caller, form: str, answer: Any) -> None:
        assert caller.perform(Run(self.work(form, lambda: answer))) is answer

    @forms
    def test_an_error_arrives_as_it_was_raised(self, caller: Caller, form: str) -> None:
        cause, error = KeyError("cause"), ConnectionError("gone")

        def fail() -> None:
            raise error from cause

        with pytest.raises(ConnectionError) as caught:
            caller.perform(Run(self.work(form, fail)))

        assert caught.value is error
        assert caught.value.__cause__ is cause

    def test_each_caller_prefers_its_own_form(self) -> None:
        async def awaitable() -> str:
            return "awaitable"

        step = Run(Work(blocking=lambda: "blocking", awaitable=awaitable))

        assert SyncIO().perform(step) == "blocking"
        assert asyncio.run(AsyncIO().perform(step)) == "awaitable"

    def test_work_that_cancels_itself_on_the_background_loop_is_over_and_not_wrong(self) -> None:
        async def give_up() -> None:
            raise asyncio.CancelledError

        with pytest.raises(RequestCancelled):
            SyncIO().perform(Run(Work(awaitable=give_up)))

    def test_awaitable_work_may_not_wait_for_the_loop_that_it_runs_on(self) -> None:
        async def inner() -> None:
            return None

        async def outer() -> None:
            run_awaitable(inner)

        with pytest.raises(RuntimeError, match="await the async method instead"):
            run_awaitable(outer)

    def test_what_is_no_step_is_refused(self, caller: Caller) -> None:
        with pytest.raises(TypeError, match="no way to do"):
            caller.perform(Step())


class TestReading:
    @forms
    @watched
    def test_items_come_one_by_one_and_batches_whole(
        self, caller: Caller, form: str, watching: dict[str, Any]
    ) -> None:
        source = Source("a", Batch(["b", "c"]), ["d"], Batch(), None)

        found = read_all(caller, OpenStream(source.work(form), **watching))

        assert found == [["a"], ["b", "c"], [["d"]], [], [None]]
        assert source.closed.is_set()

    @forms
    @watched
    def test_after_the_end_there_is_nothing_more(
        self, caller: Caller, form: str, watching: dict[str, Any]
    ) -> None:
        reader = caller.perform(OpenStream(Source("a").work(form), **watching))
        caller.read(reader)

        assert caller.read(reader) is None
        assert caller.read(reader) is None

    @forms
    @watched
    @pytest.mark.parametrize("error", [ConnectionError("gone"), TimeoutError("mine"), RequestCancelled()])
    def test_an_error_arrives_where_it_happened(
        self, caller: Caller, form: str, watching: dict[str, Any], error: BaseException
    ) -> None:
        reader = caller.perform(OpenStream(Source("a", error).work(form), **watching))

        assert caller.read(reader) == ["a"]
        with pytest.raises(type(error)) as caught:
            caller.read(reader)
        assert caught.value is error

    @forms
    @watched
    def test_closing_lets_go_of_the_stream(self, caller: Caller, form: str, watching: dict[str, Any]) -> None:
        source = Source("a", "b")
        reader = caller.perform(OpenStream(source.work(form), **watching))
        caller.read(reader)

        caller.perform(CloseStream(reader))

        assert source.closed.wait(60)

    @forms
    @watched
    def test_the_end_of_a_flow_lets_go_of_what_is_open(
        self, caller: Caller, form: str, watching: dict[str, Any]
    ) -> None:
        sources = [Source("a"), Source("b")]
        for source in sources:
            caller.read(caller.perform(OpenStream(source.work(form), **watching)))

        caller.close()

        assert all(source.closed.wait(60) for source in sources)

    @watched
    def test_a_blocking_form_that_gives_no_iterator_is_an_error(
        self, caller: Caller, watching: dict[str, Any]
    ) -> None:
        work: Work[Any] = Work(blocking=lambda: None)

        with pytest.raises(TypeError, match="not iterable"):
            read_all(caller, OpenStream(work, **watching))

    @watched
    def test_an_awaitable_form_that_gives_no_async_iterator_is_an_error(
        self, caller: Caller, watching: dict[str, Any]
    ) -> None:
        async def forgot_to_yield() -> list[int]:
            return [1]

        work: Work[Any] = Work(awaitable=forgot_to_yield)

        with pytest.raises(TypeError, match="'coroutine' object is not an async iterator"):
            read_all(caller, OpenStream(work, **watching))

    def test_an_iterator_that_counts_as_false_is_read_all_the_same(self, caller: Caller) -> None:
        class Empty:
            def __init__(self) -> None:
                self.left = [1, 2]

            def __len__(self) -> int:
                return 0

            def __iter__(self) -> Empty:
                return self

            def __next__(self) -> int:
                if not self.left:
                    raise StopIteration
                return self.left.pop(0)

        assert read_all(caller, OpenStream(Work(blocking=Empty), timeout=60)) == [[1], [2]]


class TestGivingUp:
    @forms
    def test_a_stream_that_hangs_is_given_up_when_its_time_is_over(
        self, caller: Caller, form: str, never: threading.Event
    ) -> None:
        source = Source(never)
        reader = caller.perform(OpenStream(source.work(form), timeout=0.02))

        with pytest.raises(TimeoutError):
            caller.read(reader)

        assert form == "awaitable" or source.hangs.wait(60)
        # A busy machine may not have come to that; then there is nothing to close.
        begun = source.hangs.is_set()
        caller.perform(CloseStream(reader))
        never.set()
        assert not begun or source.closed.wait(60)

    @forms
    def test_the_time_is_that_of_the_whole_stream(self, caller: Caller, form: str) -> None:
        step = OpenStream(Source(*"abc", threading.Event()).work(form), timeout=0.0)

        with pytest.raises(TimeoutError):
            read_all(caller, step)

    @forms
    def test_a_stream_that_hangs_is_given_up_when_somebody_cancels(
        self, caller: Caller, form: str, never: threading.Event
    ) -> None:
        token, source = Cancellation(), Source("a", never)
        reader = caller.perform(OpenStream(source.work(form), cancellation=token))
        caller.read(reader)

        def cancel() -> None:
            source.hangs.wait()
            token.cancel()

        threading.Thread(target=cancel).start()

        with pytest.raises(RequestCancelled):
            caller.read(reader)

        caller.perform(CloseStream(reader))
        never.set()
        assert source.closed.wait(60)

    @forms
    def test_one_that_was_cancelled_before_it_began_does_not_hang(
        self, caller: Caller, form: str, never: threading.Event
    ) -> None:
        token = Cancellation()
        token.cancel()
        reader = caller.perform(OpenStream(Source(never).work(form), cancellation=token))

        with pytest.raises(RequestCancelled):
            caller.read(reader)

    @forms
    def test_one_that_is_cancelled_between_two_reads_does_not_hang(
        self, caller: Caller, form: str, never: threading.Event
    ) -> None:
        token = Cancellation()
        reader = caller.perform(OpenStream(Source("a", never).work(form), cancellation=token))
        caller.read(reader)
        token.cancel()

        with pytest.raises(RequestCancelled):
            caller.read(reader)

    @forms
    @watched
    def test_a_stream_whose_closing_fails_is_only_reported(
        self, caller: Caller, form: str, watching: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        class Untidy:
            def __iter__(self) -> Untidy:
                return self

            def __aiter__(self) -> Untidy:
                return self

            def __next__(self) -> str:
                return "a"

            async def __anext__(self) -> str:
                return "a"

            def close(self) -> None:
                closed.set()
                raise OSError("cannot close")

            async def aclose(self) -> None:
                closed.set()
                raise OSError("cannot close")

        closed = threading.Event()
        reader = caller.perform(OpenStream(Work(**{form: Untidy}), **watching))
        caller.read(reader)

        caller.perform(CloseStream(reader))

        assert closed.wait(60)
        assert all(record.message.startswith("stream_not_closed") for record in caplog.records)

    @forms
    def test_a_token_is_asked_once_and_left_once(self, caller: Caller, form: str) -> None:
        class Strict:
            """As some other token may be: it knows no key that it did not give, nor one twice."""

            cancelled = False

            def __init__(self) -> None:
                self.log: list[str] = []
                self.keys: set[object] = set()

            def add_callback(self, callback: Callable[[], None]) -> object:
                self.log.append("add")
                key = object()
                self.keys.add(key)
                return key

            def remove_callback(self, token: object) -> None:
                self.keys.remove(token)
                self.log.append("remove")

        token = Strict()
        reader = caller.perform(OpenStream(Source("a").work(form), cancellation=token))
        caller.read(reader)

        caller.perform(CloseStream(reader))
        caller.perform(CloseStream(reader))
        caller.close()

        assert token.log == ["add", "remove"]

    def test_a_waiting_caller_that_is_interrupted_can_close_at_once(self, never: threading.Event) -> None:
        """Closing must not step on a read that is still under way on the background loop."""
        io, source = SyncIO(), Source("a", never)
        reader: Any = io.perform(OpenStream(source.work("awaitable")))
        reader.read()
        left: list[str] = []

        def read_on() -> None:
            with suppress(RequestCancelled):
                reader.read()
            left.append("did not wait for ever")

        reading = threading.Thread(target=read_on)
        reading.start()
        source.hangs.wait()

        io.close()

        assert source.closed.is_set()
        reading.join(60)
        assert left

    def test_a_stream_that_refuses_to_end_is_left_behind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(agent_core.io.background, "PATIENCE", 0.01)
        started, let_go, ended = threading.Event(), threading.Event(), threading.Event()

        async def stubborn() -> AsyncIterator[str]:
            started.set()
            while not let_go.is_set():
                try:
                    await asyncio.sleep(0.001)
                except asyncio.CancelledError:
                    continue
            ended.set()
            yield "at last"

        io = SyncIO()
        reader: Any = io.perform(OpenStream(Work(awaitable=stubborn), timeout=0.0))
        with pytest.raises(TimeoutError):
            reader.read()
        assert started.wait(60)

        io.close()

        assert not ended.is_set()
        let_go.set()
        assert ended.wait(60)

    def test_a_loop_can_end_while_a_thread_still_hangs(self, never: threading.Event) -> None:
        source = Source(never)

        async def leave() -> None:
            io = AsyncIO()
            reader: Any = await io.perform(OpenStream(source.work("blocking"), timeout=0.0))
            with pytest.raises(TimeoutError):
                await reader.read()
            await asyncio.to_thread(source.hangs.wait)
            await io.close()

        asyncio.run(leave())

        never.set()
        assert source.closed.wait(60)


def test_a_lane_does_work_in_its_order_and_so_much_at_a_time_as_it_is_wide() -> None:
    lane, lock, go_on = NarrowLane(2), threading.Lock(), threading.Event()
    begun: list[int] = []
    at_once, most = 0, 0

    def work(number: int) -> int:
        nonlocal at_once, most
        with lock:
            begun.append(number)
            at_once += 1
            most = max(most, at_once)
        go_on.wait(60)
        with lock:
            at_once -= 1
        return number

    def flow(number: int) -> Flow[int]:
        return (yield from run_blocking(partial(work, number), lane))

    async def ask() -> list[int]:
        waiting = asyncio.gather(*(call_async(flow(number)) for number in range(20)))
        while len(begun) < 2:  # noqa: ASYNC110 - threads do it
            await asyncio.sleep(0)
        go_on.set()
        return await waiting

    assert asyncio.run(ask()) == list(range(20))
    assert (most, sorted(begun[:2]), sorted(begun)) == (2, [0, 1], list(range(20)))


def test_a_lane_goes_on_after_work_that_fails() -> None:
    lane = NarrowLane(1)

    def fail() -> None:
        raise ValueError("wrong")

    async def ask() -> list[object]:
        works: list[Callable[[], object]] = [fail, lambda: "done"]
        asked = (call_async(run_blocking(work, lane)) for work in works)
        return await asyncio.gather(*asked, return_exceptions=True)

    failed, done = asyncio.run(ask())

    assert isinstance(failed, ValueError)
    assert done == "done"


FORKING = """
import asyncio, os, sys
from agent_core.io import run_awaitable

async def answer():
    await asyncio.sleep(0)
    return os.getpid()

parent = run_awaitable(answer)
child = os.fork()
if not child:
    sys.exit(0 if run_awaitable(answer) == os.getpid() != parent else 1)
print(os.waitpid(child, 0)[1], run_awaitable(answer) == parent)
"""


def test_a_child_process_has_a_background_loop_of_its_own() -> None:
    """As in servers that load a program first and fork then."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        start_new_session=True,
    )

    assert (done.stdout, done.stderr) == ("0 True\n", "")

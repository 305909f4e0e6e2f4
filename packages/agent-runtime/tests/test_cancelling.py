"""Leaving a run, at any moment and in any way: it ends in order, and nothing that it produced is lost."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ArgumentTypeError, Cancellation, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import AgentRuntime, Command, PhaseView, RunRequest, RunResult, Suspend

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Drive, Events, MakeRuntime, OpenCalls, Placing

    Plugin = type[Placing]
    Leave = Callable[[AgentRuntime, int, dict[str, Any]], tuple[Events, RunResult | None]]

PATIENCE = 60.0


# Ways to leave: each runs until the event of that index and takes nothing more.


def close(runtime: AgentRuntime, at: int, options: dict[str, Any]) -> tuple[Events, RunResult | None]:
    seen = []
    with runtime.run(RunRequest("a", "Go.", **options)) as stream:
        for event in stream:
            seen.append(event)
            if len(seen) > at:
                break
    return seen, stream.result


def close_async(runtime: AgentRuntime, at: int, options: dict[str, Any]) -> tuple[Events, RunResult | None]:
    async def main() -> tuple[Events, RunResult | None]:
        seen = []
        async with runtime.run_async(RunRequest("a", "Go.", **options)) as stream:
            async for event in stream:
                seen.append(event)
                if len(seen) > at:
                    break
        return seen, stream.result

    return asyncio.run(main())


def cancel_task(runtime: AgentRuntime, at: int, options: dict[str, Any]) -> tuple[Events, RunResult | None]:
    async def main() -> tuple[Events, RunResult | None]:
        seen: Events = []
        stream = runtime.run_async(RunRequest("a", "Go.", **options))

        async def consume() -> None:
            async for event in stream:
                seen.append(event)
                if len(seen) == at + 1:
                    task.cancel()
                    await asyncio.sleep(0)  # where the cancellation arrives

        task = asyncio.ensure_future(consume())
        with pytest.raises(asyncio.CancelledError):
            await task
        await stream.aclose()
        return seen, stream.result

    return asyncio.run(main())


def cancel_while_waiting(
    runtime: AgentRuntime, at: int, options: dict[str, Any]
) -> tuple[Events, RunResult | None]:
    """Cancel the task so that it notices in the middle of whatever the run does next."""

    async def main() -> tuple[Events, RunResult | None]:
        seen: Events = []
        stream = runtime.run_async(RunRequest("a", "Go.", **options))

        async def consume() -> None:
            async for event in stream:
                seen.append(event)
                if len(seen) == at + 1:
                    task.cancel()

        task = asyncio.ensure_future(consume())
        await asyncio.gather(task, return_exceptions=True)
        await stream.aclose()
        return seen, stream.result

    return asyncio.run(main())


def cancel_token(runtime: AgentRuntime, at: int, options: dict[str, Any]) -> tuple[Events, RunResult | None]:
    token, seen = Cancellation(), []
    stream = runtime.run(RunRequest("a", "Go.", cancellation=token, **options))
    for event in stream:
        seen.append(event)
        if len(seen) == at + 1:
            token.cancel()
    return seen, stream.result


def cancel_token_async(
    runtime: AgentRuntime, at: int, options: dict[str, Any]
) -> tuple[Events, RunResult | None]:
    async def main() -> tuple[Events, RunResult | None]:
        token, seen = Cancellation(), []
        stream = runtime.run_async(RunRequest("a", "Go.", cancellation=token, **options))
        async for event in stream:
            seen.append(event)
            if len(seen) == at + 1:
                token.cancel()
        return seen, stream.result

    return asyncio.run(main())


WAYS: list[Leave] = [close, close_async, cancel_task, cancel_while_waiting, cancel_token, cancel_token_async]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def leave(request: pytest.FixtureRequest) -> Leave:
    """Leave a run at the event of an index, in each of the ways in turn."""
    way: Leave = request.param
    return way


class Desk:
    """Tools of all kinds that note what they have finished, and the script that calls them."""

    def __init__(self, make_runtime: MakeRuntime, placing: Plugin, *, parallel: bool, hooks: bool) -> None:
        self.finished: list[int] = []
        self.ended: list[str] = []
        self.let_go: list[str] = []
        calls = [ToolCall("count", {"number": n}) for n in (1, 2)]
        calls += [ToolCall("climb", {"number": 3}), ToolCall("ask", {"number": 4}), ToolCall("nothing")]
        script = [
            Reply(chunks=["Let me ", "see."], tool_calls=calls, usage={"input_tokens": 5}),
            Reply(tool_calls=[ToolCall("count", {"number": 5})]),
            Reply(chunks=["It is ", "done."]),
        ]
        tools = [
            tool(function, name=name, parallel=parallel)
            for name, function in (("count", self.count), ("climb", self.climb), ("ask", self.ask))
        ]
        phases = ("run_start", "after_inference", "tool_gate", "after_tool_execute", "run_end")
        talking = placing(
            on_deactivate=lambda _view: self.let_go.append("off"),
            **(dict.fromkeys(phases, warn) if hooks else {}),
        )
        noting = placing(run_end=lambda view: self.ended.append(view.reason.code))
        self.runtime = make_runtime(script, tools=tools, plugins={"p": talking, "q": noting})

    def count(self, number: int) -> str:
        """Count."""
        self.finished.append(number)
        return f"counted {number}"

    def climb(self, number: int) -> Any:
        """Climb."""
        yield "up"
        yield "and up"
        self.finished.append(number)
        return f"climbed {number}"

    async def ask(self, number: int) -> str:
        """Ask around."""
        await asyncio.sleep(0)
        self.finished.append(number)
        return f"asked {number}"


def warn(view: PhaseView) -> Command:
    """Tell something from a hook, so that there is one event more at which a caller can leave."""
    return Command().schedule("warn", f"at {view.phase}")


@pytest.mark.parametrize("hooks", [False, True], ids=["plain", "hooks"])
@pytest.mark.parametrize("parallel", [False, True], ids=["one by one", "side by side"])
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_leaving_at_any_event_ends_the_run_in_order(
    every: int,
    parallel: bool,
    hooks: bool,
    leave: Leave,
    make_runtime: MakeRuntime,
    placing: Plugin,
    open_calls: OpenCalls,
) -> None:
    whole = list(
        Desk(make_runtime, placing, parallel=parallel, hooks=hooks).runtime.run(RunRequest("a", "Go."))
    )
    assert whole[-1]["reason"]["code"] == "natural_end"

    # Of three ways that begin at different events, one or the other leaves at each.
    for at in range(WAYS.index(leave) % every, len(whole) - 1, every):
        desk = Desk(make_runtime, placing, parallel=parallel, hooks=hooks)
        seen, result = leave(desk.runtime, at, {})

        assert result is not None, at
        # A task that never has to wait for anything is over before it learns that it was cancelled.
        too_late = leave is cancel_while_waiting and seen[-1]["type"] == "run_end"
        assert result.reason.code == "cancelled" or is_ending(whole, at) or too_late, (at, whole[at]["type"])
        assert desk.ended == [result.reason.code], at
        assert desk.let_go == ["off"], at
        assert open_calls(result.session) == [], at
        assert_truthful(desk, result.session, at)
        assert_goes_on(make_runtime, result.session, open_calls, at)


def is_ending(whole: Events, at: int) -> bool:
    """Say whether the run had come to its end at that event: only hooks of the end come after it."""
    last_step = max(index for index, event in enumerate(whole) if event["type"] == "step_end")
    return at > last_step


def assert_truthful(desk: Desk, session: Session, at: int) -> None:
    """No call that a tool has finished may be reported to the model as one that was not run."""
    answers = {
        message.metadata["tool_call_id"]: message for message in session.messages if message.role == "tool"
    }
    for number in desk.finished:
        message = answers["call_6" if number == 5 else f"call_{number}"]
        assert "not run" not in str(message.content), (at, number, message.content)
        assert "before it ran" not in str(message.content), (at, number, message.content)


def assert_goes_on(make_runtime: MakeRuntime, session: Session, open_calls: OpenCalls, at: int) -> None:
    provider = ScriptedProvider(["Here I am."])
    result = make_runtime(provider).run_to_completion(RunRequest("a", "Go on.", session))

    assert (result.reason.code, result.text) == ("natural_end", "Here I am."), at
    assert open_calls(result.session) == [], at
    (request,) = provider.requests
    assert len(request.native_messages) == len(session.messages) + 1, at


@pytest.mark.parametrize("parallel", [False, True], ids=["one by one", "side by side"])
def test_a_task_may_be_cancelled_at_any_turn_of_its_loop(
    parallel: bool, make_runtime: MakeRuntime, placing: Plugin, open_calls: OpenCalls
) -> None:
    async def run(desk: Desk, turns: int, kept: list[Any]) -> tuple[Any, bool]:
        stream = desk.runtime.run_async(RunRequest("a", "Go.", checkpoint=kept.append))

        async def consume() -> None:
            async for _event in stream:
                await asyncio.sleep(0)

        task = asyncio.ensure_future(consume())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await stream.aclose()
        return stream.result, task.cancelled()

    for turns in range(1, 120):
        desk, kept = Desk(make_runtime, placing, parallel=parallel, hooks=True), list[Any]()
        result, cancelled = asyncio.run(run(desk, turns, kept))

        assert result is not None, turns
        assert desk.ended == [result.reason.code], turns
        assert desk.let_go == ["off"], turns
        assert open_calls(result.session) == [], turns
        assert_truthful(desk, result.session, turns)
        assert kept[-1].kind == "end"
        assert len(kept[-1].session.messages) == len(result.session.messages)
        if not cancelled:
            break


def test_what_was_said_before_leaving_is_kept(make_runtime: MakeRuntime, leave: Leave) -> None:
    for at, said in ((2, "One "), (3, "One two ")):
        runtime = make_runtime([Reply(chunks=["One ", "two ", "three"])])

        seen, result = leave(runtime, at, {})

        assert seen[at]["type"] == "text"
        assert result is not None
        assert result.text.startswith(said)
        cut_off = result.session.messages[-1].metadata.get("interrupted") == "cancelled"
        assert cut_off != (result.text == "One two three")


def test_leaving_at_the_last_event_changes_nothing(make_runtime: MakeRuntime, leave: Leave) -> None:
    runtime = make_runtime(["Hi."])
    whole = list(make_runtime(["Hi."]).run(RunRequest("a", "Go.")))

    _seen, result = leave(runtime, len(whole) - 1, {})

    assert result is not None
    assert (result.reason.code, result.text) == ("natural_end", "Hi.")


def test_a_run_that_waits_keeps_what_it_waits_for_when_its_caller_leaves(
    make_runtime: MakeRuntime, placing: Plugin, leave: Leave, open_calls: OpenCalls
) -> None:
    def make() -> AgentRuntime:
        plugin = placing(gate=lambda _view: Suspend("May I?"))
        calls = [ToolCall("count", {"number": 1})]
        desk = Desk(make_runtime, placing, parallel=False, hooks=False)
        return make_runtime(
            [Reply(tool_calls=calls), "Done."], tools=[tool(desk.count, name="count")], plugins={"p": plugin}
        )

    whole = [event["type"] for event in make().run(RunRequest("a", "Go."))]

    for at in range(whole.index("step_end"), len(whole)):
        runtime = make()
        _seen, result = leave(runtime, at, {})

        assert result is not None
        assert result.reason.code in ("cancelled", "suspended")
        assert [one.call_id for one in result.suspended] == ["call_1"]
        request = RunRequest("a", session=result.session, decisions=[{"target": "call_1"}])
        ended = runtime.run_to_completion(request)
        assert (ended.text, open_calls(ended.session)) == ("Done.", [])


def test_a_stream_that_was_never_begun_does_nothing(make_runtime: MakeRuntime, placing: Plugin) -> None:
    desk = Desk(make_runtime, placing, parallel=False, hooks=False)

    stream = desk.runtime.run(RunRequest("a", "Go."))
    stream.close()

    assert (stream.result, desk.ended, desk.finished) == (None, [], [])


# From another thread


def after(event: threading.Event, action: Callable[[], Any]) -> None:
    def wait() -> None:
        assert event.wait(PATIENCE)
        action()

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.parametrize("token", ["stop", 5, object()], ids=["text", "number", "object"])
def test_a_token_that_can_cancel_nothing_is_refused(
    token: Any, make_runtime: MakeRuntime, drive: Drive
) -> None:
    runtime = make_runtime(["Done."])

    with pytest.raises(ArgumentTypeError, match="cancellation must have add_callback"):
        drive(runtime, RunRequest("a", "Go.", cancellation=token))


@pytest.mark.parametrize("stream", [True, False])
def test_a_token_ends_a_model_that_hangs(stream: bool, make_runtime: MakeRuntime, drive: Drive) -> None:
    token, asked = Cancellation(), threading.Event()

    def hang(_native: Any) -> Reply:
        asked.set()
        return Reply(text="never", delay=math.inf)

    provider = ScriptedProvider([hang])
    after(asked, token.cancel)

    _events, result = drive(make_runtime(provider), RunRequest("a", "Go.", cancellation=token, stream=stream))

    assert tuple(result.reason) == ("cancelled", "the caller cancelled the run")
    assert [message["content"] for message in result.messages] in (["Go."], ["Go.", ""])


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_token_ends_tools_that_hang(
    is_async: bool, calls: int, parallel: bool, make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    token, begun, let_go = Cancellation(), threading.Event(), threading.Event()
    told: list[Any] = []

    def hang(cancellation: Any) -> str:
        """Hang."""
        told.append(cancellation)
        begun.set()
        let_go.wait(PATIENCE)
        return "late"

    async def hang_async(cancellation: Any) -> str:
        """Hang."""
        told.append(cancellation)
        begun.set()
        await asyncio.Event().wait()
        return "late"

    hung = tool(hang_async if is_async else hang, name="hang", parallel=parallel)
    runtime = make_runtime([Reply(tool_calls=[ToolCall("hang")] * calls), "Done."], tools=[hung])
    after(begun, token.cancel)

    _events, result = drive(runtime, RunRequest("a", "Go.", cancellation=token))
    let_go.set()

    assert result.reason.code == "cancelled"
    assert open_calls(result.session) == []
    assert len(told) in ((1, 2, 3) if parallel else (1,))
    assert all(one.cancelled for one in told)
    answers = [str(message.content) for message in result.session.messages if message.role == "tool"]
    assert len(answers) == calls
    assert sum("may have run" in answer for answer in answers) >= 1


def test_a_task_that_is_cancelled_does_not_wait_for_a_blocking_tool(make_runtime: MakeRuntime) -> None:
    begun, let_go = threading.Event(), threading.Event()

    def hang() -> str:
        """Hang."""
        begun.set()
        let_go.wait(PATIENCE)
        return "late"

    runtime = make_runtime([Reply(tool_calls=[ToolCall("hang")]), "Done."], tools=[hang])

    async def main() -> RunResult | None:
        stream = runtime.run_async(RunRequest("a", "Go."))

        async def consume() -> None:
            async for _event in stream:
                pass

        task, loop = asyncio.ensure_future(consume()), asyncio.get_running_loop()
        after(begun, lambda: loop.call_soon_threadsafe(task.cancel))
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        return stream.result

    result = asyncio.run(main())
    let_go.set()

    assert result is not None
    assert result.reason.code == "cancelled"
    assert "may have run" in str(result.session.messages[-1].content)


def test_a_task_that_is_cancelled_while_the_answer_is_adjusted_runs_no_calls(
    make_runtime: MakeRuntime, open_calls: OpenCalls
) -> None:
    ran: list[int] = []
    begun, let_go = threading.Event(), threading.Event()

    class Adjusting:
        name, version = "adjusting", "1"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": "adjust", "trigger": "response_finalize"}]

        def execute_action(self, *_given: Any) -> None:
            begun.set()
            let_go.wait(PATIENCE)

    def look() -> str:
        """Look."""
        ran.append(1)
        return "empty"

    runtime = make_runtime(
        [Reply(tool_calls=[ToolCall("look")]), "Done."], tools=[look], plugins={"adjusting": Adjusting()}
    )

    async def main() -> RunResult | None:
        stream = runtime.run_async(RunRequest("a", "Go."))

        async def consume() -> None:
            async for _event in stream:
                pass

        task, loop = asyncio.ensure_future(consume()), asyncio.get_running_loop()
        after(begun, lambda: loop.call_soon_threadsafe(task.cancel))
        await asyncio.gather(task, return_exceptions=True)
        return stream.result

    result = asyncio.run(main())
    let_go.set()

    assert result is not None
    assert (result.reason.code, ran, open_calls(result.session)) == ("cancelled", [], [])


@pytest.mark.parametrize("kind", ["input", "answer", "intent", "result", "end"])
def test_a_checkpoint_under_way_is_kept_before_the_next_one_when_the_task_is_cancelled(
    kind: str, make_runtime: MakeRuntime, open_calls: OpenCalls
) -> None:
    begun, cancelled, kept = threading.Event(), threading.Event(), list[str]()

    def keep(checkpoint: Any) -> None:
        if checkpoint.kind == kind and not begun.is_set():
            begun.set()
            assert cancelled.wait(PATIENCE)
        kept.append(checkpoint.kind)

    def look() -> str:
        """Look."""
        return "empty"

    runtime = make_runtime([Reply(tool_calls=[ToolCall("look")]), "Done."], tools=[look])

    async def main() -> RunResult | None:
        stream = runtime.run_async(RunRequest("a", "Go.", checkpoint=keep))

        async def consume() -> None:
            async for _event in stream:
                pass

        task, loop, heard = asyncio.ensure_future(consume()), asyncio.get_running_loop(), asyncio.Event()
        after(begun, lambda: loop.call_soon_threadsafe(heard.set))
        await heard.wait()
        task.cancel()
        for _ in range(200):  # the run has its chance to overtake
            await asyncio.sleep(0)
        cancelled.set()
        await asyncio.gather(task, return_exceptions=True)
        return stream.result

    result = asyncio.run(main())

    order = ["input", "answer", "intent", "result", "answer", "end"]
    assert kept == [*order[: order.index(kind)], *{kind: None, "end": None}]
    assert result is not None
    assert open_calls(result.session) == []


def test_what_finished_next_to_a_call_that_was_cancelled_keeps_its_result(
    make_runtime: MakeRuntime,
) -> None:
    token, begun, let_go = Cancellation(), threading.Event(), threading.Event()

    def quick() -> str:
        """Be quick."""
        return "quick"

    def hang() -> str:
        """Hang."""
        begun.set()
        let_go.wait(PATIENCE)
        return "late"

    tools = [tool(quick, name="quick", parallel=True), tool(hang, name="hang", parallel=True)]
    runtime = make_runtime([Reply(tool_calls=[ToolCall("quick"), ToolCall("hang")]), "Done."], tools=tools)

    stream = runtime.run(RunRequest("a", "Go.", cancellation=token))
    for event in stream:
        if event["type"] == "tool_call_result":
            assert begun.wait(PATIENCE)  # one that has not begun would not have run for certain
            token.cancel()
    let_go.set()

    assert stream.result is not None
    assert stream.result.reason.code == "cancelled"
    contents = [str(message.content) for message in stream.result.session.messages[-2:]]
    assert contents[0] == "quick"
    assert "may have run" in contents[1]

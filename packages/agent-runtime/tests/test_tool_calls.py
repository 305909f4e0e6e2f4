"""The calls of one step: side by side or one by one, in order, and answered whatever happens."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import Cancellation, Session, ToolSuspended, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Block, Checkpoint, Command, PhaseView, RunRequest, SetResult, StateKey
from agent_runtime.recovery import MAY_HAVE_RUN
from agent_runtime.suspension import read_saved_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Drive, MakeRuntime, OpenCalls, Placing

    Plugin = type[Placing]

PATIENCE = 60.0


def asking(*calls: ToolCall, **options: Any) -> Reply:
    return Reply(tool_calls=list(calls), **options)


def numbered(name: str, *numbers: int) -> Reply:
    return asking(*(ToolCall(name, {"number": number}) for number in numbers))


def answers(result: Any) -> list[str]:
    return [message["content"] for message in result.messages if message["role"] == "tool"]


def problems(result: Any) -> list[str | None]:
    tools = [message for message in result.messages if message["role"] == "tool"]
    return [(message["metadata"].get("error") or {}).get("type") for message in tools]


class Meeting:
    """Tools that come back only when as many as expected are inside at the same time."""

    def __init__(self, expected: int) -> None:
        self._barrier = threading.Barrier(expected)
        self._inside = 0
        self._expected = expected
        self._all_there: asyncio.Event | None = None
        self._lock = threading.Lock()
        self.most = 0

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1

    def wait(self, number: int) -> str:
        """Wait for the others.

        Args:
            number: Which one.
        """
        self.enter()
        self._barrier.wait(PATIENCE)
        self.leave()
        return f"met {number}"

    async def wait_async(self, number: int) -> str:
        """Wait for the others.

        Args:
            number: Which one.
        """
        self._all_there = self._all_there or asyncio.Event()
        self.enter()
        if self._inside == self._expected:
            self._all_there.set()
        async with asyncio.timeout(PATIENCE):
            await self._all_there.wait()
        return f"met {number}"


# Side by side


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
def test_calls_whose_tools_allow_it_run_at_the_same_time(
    is_async: bool, make_runtime: MakeRuntime, drive: Drive
) -> None:
    meeting = Meeting(3)
    wait = tool(meeting.wait_async if is_async else meeting.wait, name="wait", parallel=True)
    runtime = make_runtime([numbered("wait", 1, 2, 3), "Done."], tools=[wait])

    _events, result = drive(runtime, RunRequest("a", "Go."))

    assert answers(result) == ["met 1", "met 2", "met 3"]
    assert result.reason.code == "natural_end"


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_no_more_calls_run_at_once_than_the_agent_allows(
    limit: int, make_runtime: MakeRuntime, drive: Drive
) -> None:
    meeting = Meeting(limit)
    wait = tool(meeting.wait, name="wait", parallel=True)
    runtime = make_runtime(
        [numbered("wait", *range(8)), "Done."], tools=[wait], sections={"tools": {"concurrency": limit}}
    )

    _events, result = drive(runtime, RunRequest("a", "Go."))

    assert meeting.most == limit
    assert answers(result) == [f"met {number}" for number in range(8)]


def test_calls_of_other_tools_never_overlap(make_runtime: MakeRuntime, drive: Drive) -> None:
    meeting = Meeting(1)
    order: list[str] = []

    @tool(name="alone", parallel=False)
    def alone(number: int) -> str:
        """Work alone."""
        meeting.enter()
        order.append(f"alone {number}")
        meeting.leave()
        return f"alone {number}"

    @tool(name="beside", parallel=True)
    def beside(number: int) -> str:
        """Work in parallel."""
        meeting.enter()
        order.append("beside")
        meeting.leave()
        return f"beside {number}"

    calls = [
        ToolCall(name, {"number": number})
        for number, name in enumerate(["alone", "beside", "alone", "alone", "beside", "alone"])
    ]
    runtime = make_runtime([asking(*calls), "Done."], tools=[alone, beside])

    _events, result = drive(runtime, RunRequest("a", "Go."))

    assert meeting.most == 1
    assert order == ["alone 0", "beside", "alone 2", "alone 3", "beside", "alone 5"]
    assert answers(result) == ["alone 0", "beside 1", "alone 2", "alone 3", "beside 4", "alone 5"]


def test_answers_stand_in_the_order_of_the_calls_whichever_ends_first(
    make_runtime: MakeRuntime, watch: Drive
) -> None:
    ended = {number: threading.Event() for number in range(4)}

    @tool(name="last_first", parallel=True)
    def last_first(number: int) -> str:
        """End after the next one."""
        if number < 3:
            assert ended[number + 1].wait(PATIENCE)
        ended[number].set()
        return f"number {number}"

    runtime = make_runtime([numbered("last_first", 0, 1, 2, 3), "Done."], tools=[last_first])

    events, result = watch(runtime, RunRequest("a", "Go."))

    assert answers(result) == ["number 0", "number 1", "number 2", "number 3"]
    ids = [message.metadata["tool_call_id"] for message in result.session.messages if message.role == "tool"]
    assert ids == ["call_1", "call_2", "call_3", "call_4"]
    shown = [event["call_id"] for event in events if event["type"] == "tool_call_result"]
    assert sorted(shown) == ids


def test_a_plugin_may_say_which_of_its_tools_run_in_parallel(make_runtime: MakeRuntime, drive: Drive) -> None:
    meeting = Meeting(2)

    class Several:
        name, version = "several", "1"
        parallel = ("wait",)

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            number = {"type": "object", "properties": {"number": {"type": "integer"}}}
            return [
                {"type": "function", "function": {"name": name, "description": name, "parameters": number}}
                for name in ("wait", "alone")
            ]

        def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            if tool_name == "wait":
                return {"success": True, "result": meeting.wait(arguments["number"])}
            assert meeting.most == 2
            return {"success": True, "result": "alone"}

    calls = [ToolCall("wait", {"number": 1}), ToolCall("wait", {"number": 2}), ToolCall("alone")]
    runtime = make_runtime([asking(*calls), "Done."], plugins={"several": Several()})

    _events, result = drive(runtime, RunRequest("a", "Go."))

    assert answers(result) == ["met 1", "met 2", "alone"]


def test_hooks_and_checkpoints_of_calls_that_run_together_come_one_after_the_other(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    count: StateKey[list[str]] = StateKey("count", [])
    log: list[str] = []

    def before(view: PhaseView) -> Command:
        assert view.call is not None
        return Command().update(count, [*view.state.read(count), view.call.id])

    def after(view: PhaseView) -> None:
        counted = view.state.read(count)
        log.append(",".join(counted))

    def keep(checkpoint: Checkpoint) -> None:
        log.append(f"{checkpoint.kind} {checkpoint.call_id}")

    meeting = Meeting(3)
    plugin = placing(keys=[count], before_tool_execute=before, after_tool_execute=after)
    runtime = make_runtime(
        [numbered("wait", 1, 2, 3), "Done."],
        tools=[tool(meeting.wait, name="wait", parallel=True)],
        plugins={"p": plugin},
    )

    drive(runtime, RunRequest("a", "Go.", checkpoint=keep))

    assert log[:5] == ["input None", "answer None", "intent call_1", "intent call_2", "intent call_3"]
    assert sorted(log[5:8]) == ["result call_1", "result call_2", "result call_3"]
    assert log[8:] == [*["call_1,call_2,call_3"] * 3, "answer None", "end None"]


def watched(runtime: Any, request: RunRequest, way: str, watch: Callable[[dict[str, Any]], None]) -> Any:
    """Return what a run came to; its events are looked at as they come."""
    if way == "run":
        stream = runtime.run(request)
        for event in stream:
            watch(event)
        return stream.result

    async def look() -> Any:
        stream = runtime.run_async(request)
        async for event in stream:
            watch(event)
        return stream.result

    return asyncio.run(look())


class SecondFirst:
    """Two calls at the same time; the first ends only when the result of the second is kept."""

    def __init__(self) -> None:
        self.kept: list[Checkpoint] = []
        self._second_is_kept = threading.Event()

    def tool(self) -> Any:
        @tool(name="work", parallel=True)
        def work(number: int) -> str:
            """Work."""
            assert number == 2 or self._second_is_kept.wait(PATIENCE)
            return f"worked {number}"

        return work

    def keep(self, checkpoint: Checkpoint) -> None:
        self.kept.append(checkpoint)
        if self._is_of_second(checkpoint):
            self._second_is_kept.set()

    def between(self) -> Session:
        """Return the session as it was kept when only the second call had its result."""
        [checkpoint] = [one for one in self.kept if self._is_of_second(one)]
        return Session.from_dict(json.loads(json.dumps(checkpoint.session.to_dict())))

    @staticmethod
    def _is_of_second(checkpoint: Checkpoint) -> bool:
        return (checkpoint.kind, checkpoint.call_id) == ("result", "call_2")


@pytest.mark.parametrize("way", ["run", "run_async"])
def test_a_result_is_kept_while_slower_calls_still_run_and_before_anybody_hears_of_it(
    make_runtime: MakeRuntime, way: str
) -> None:
    calls = SecondFirst()
    shown: list[str] = []

    def watch(event: dict[str, Any]) -> None:
        if event["type"] == "tool_call_result":
            shown.append(event["call_id"])
            stored = calls.kept[-1].session
            results = {one.metadata["tool_call_id"] for one in stored.messages if one.role == "tool"}
            saved = read_saved_run(stored)
            assert event["call_id"] in results | set(saved.finished if saved is not None else ())

    runtime = make_runtime([numbered("work", 1, 2), "Done."], tools=[calls.tool()])

    result = watched(runtime, RunRequest("a", "Go.", checkpoint=calls.keep), way, watch)

    assert shown == ["call_2", "call_1"]
    assert answers(result) == ["worked 1", "worked 2"]
    assert "agent_run" not in result.session.metadata
    saved = read_saved_run(calls.between())
    assert saved is not None
    assert (saved.begun, list(saved.finished)) == (("call_1",), ["call_2"])


def test_a_new_run_answers_the_calls_of_one_that_broke_off_with_what_is_known(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    calls = SecondFirst()
    runtime = make_runtime([numbered("work", 1, 2), "Done."], tools=[calls.tool()])
    drive(runtime, RunRequest("a", "Go.", checkpoint=calls.keep))
    again = make_runtime(["I see."], tools=[calls.tool()])

    _events, result = drive(again, RunRequest("a", "What happened?", calls.between()))

    contents = [one.content for one in result.session.messages if one.role == "tool"]
    assert contents == [MAY_HAVE_RUN, "worked 2"]
    assert result.text == "I see."


def test_what_was_said_is_kept_before_anybody_hears_of_the_run(make_runtime: MakeRuntime) -> None:
    kept: list[Checkpoint] = []
    runtime = make_runtime(["Done."])

    for event in runtime.run(RunRequest("a", "Go.", checkpoint=kept.append)):
        assert event["type"] != "run_start" or [one.content for one in kept[-1].session.messages] == ["Go."]

    assert kept[0].kind == "input"


def test_a_result_that_cannot_be_kept_is_not_shown(make_runtime: MakeRuntime, drive: Drive) -> None:
    kept = threading.Event()

    def keep(checkpoint: Checkpoint) -> None:
        if checkpoint.call_id == "call_1" and checkpoint.kind == "result":
            raise OSError("the disk is full")
        if checkpoint.call_id == "call_2" and checkpoint.kind == "result":
            kept.set()

    @tool(parallel=True)
    def work(number: int) -> str:
        """Work; the first call ends when the result of the second is kept."""
        assert number != 1 or kept.wait(60)
        return f"worked {number}"

    runtime = make_runtime([numbered("work", 1, 2), "Done."], tools=[work])

    events, result = drive(runtime, RunRequest("a", "Go.", checkpoint=keep))

    shown = [event["call_id"] for event in events if event["type"] == "tool_call_result"]
    assert "call_1" not in shown
    assert result.reason.code == "error" and "the disk is full" in result.reason.detail
    assert answers(result) == ["worked 1", "worked 2"]


def test_a_hook_that_fails_after_a_call_does_not_cost_the_other_results(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    def fail(_view: PhaseView) -> None:
        raise ValueError("broken")

    meeting = Meeting(3)
    runtime = make_runtime(
        [numbered("wait", 1, 2, 3), "Done."],
        tools=[tool(meeting.wait, name="wait", parallel=True)],
        plugins={"p": placing(after_tool_execute=fail)},
    )

    _events, result = drive(runtime, RunRequest("a", "Go."))

    assert result.reason.code == "error"
    assert answers(result) == ["met 1", "met 2", "met 3"]


@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(st.sampled_from(["alone", "beside", "raises", "missing"]), min_size=1, max_size=8),
    limit=st.integers(1, 3),
    is_async=st.booleans(),
)
def test_any_mixture_of_calls_is_answered_once_each_and_in_order(
    calls: list[str], limit: int, is_async: bool
) -> None:
    from agent_runtime import AgentRuntimeBuilder, AgentSpec, ModelSpec

    ran: Counter[int] = Counter()

    def work(number: int) -> str:
        """Work."""
        ran[number] += 1
        return f"done {number}"

    def fail(number: int) -> str:
        """Fail."""
        ran[number] += 1
        raise ValueError(f"done {number}")

    reply = asking(*(ToolCall(name, {"number": number}) for number, name in enumerate(calls)))
    spec = AgentSpec("a", "m", sections={"tools": {"concurrency": limit}})
    builder = AgentRuntimeBuilder().with_agent_spec(spec).with_model(ModelSpec("m", "scripted"))
    builder.with_provider("scripted", ScriptedProvider([reply, "Done."]))
    builder.with_tool("alone", tool(work, parallel=False)).with_tool(
        "beside", tool(work, name="beside", parallel=True)
    )
    builder.with_tool("raises", tool(fail, name="raises", parallel=True))
    runtime, request = builder.build(), RunRequest("a", "Go.")

    if is_async:
        result = asyncio.run(runtime.run_to_completion_async(request))
    else:
        result = runtime.run_to_completion(request)

    tools = [message for message in result.messages if message["role"] == "tool"]
    assert [message["metadata"]["tool_call_id"] for message in tools] == [
        f"call_{number + 1}" for number in range(len(calls))
    ]
    for number, (name, message) in enumerate(zip(calls, tools, strict=True)):
        assert ("no such tool" if name == "missing" else f"done {number}") in message["content"]
    assert ran == Counter(number for number, name in enumerate(calls) if name != "missing")


# What goes wrong


def test_an_exception_of_one_tool_is_that_tools_answer(make_runtime: MakeRuntime, drive: Drive) -> None:
    @tool(name="divide", parallel=True)
    def divide(number: int) -> float:
        """Divide."""
        return 6 / number

    provider = ScriptedProvider([numbered("divide", 2, 0, 3), "Done."])

    _events, result = drive(make_runtime(provider, tools=[divide]), RunRequest("a", "Go."))

    assert problems(result) == [None, "exception", None]
    assert "ZeroDivisionError" in answers(result)[1]
    assert (result.reason.code, result.text) == ("natural_end", "Done.")
    assert [item["content"] for item in provider.requests[1].native_messages[2:]] == answers(result)


@pytest.mark.parametrize(
    "sections", [{"timeout": 0.02}, {"timeout": 60, "timeouts": {"hang": 0.02}}], ids=str
)
@pytest.mark.parametrize("parallel", [False, True])
def test_a_tool_that_takes_too_long_is_given_up_and_the_run_goes_on(
    sections: dict[str, Any], parallel: bool, make_runtime: MakeRuntime, drive: Drive
) -> None:
    let_go = threading.Event()
    told: list[Cancellation] = []

    def hang(number: int, cancellation: Any) -> str:
        """Hang."""
        told.append(cancellation)
        let_go.wait(PATIENCE)
        return "late"

    hung = tool(hang, name="hang", parallel=parallel)
    runtime = make_runtime([numbered("hang", 1), "Done."], tools=[hung], sections={"tools": sections})

    _events, result = drive(runtime, RunRequest("a", "Go."))
    let_go.set()

    assert problems(result) == ["timeout"]
    assert "within 0.02 seconds" in answers(result)[0]
    assert all(token.cancelled for token in told)
    assert (result.reason.code, result.text) == ("natural_end", "Done.")


@pytest.mark.parametrize(
    ("own", "section"), [(60, {"timeouts": {"hang": 0.02}}), (0.02, {"timeout": 60})], ids=["by name", "own"]
)
def test_of_several_time_limits_the_one_for_the_tool_by_name_counts_and_then_its_own(
    own: float, section: dict[str, Any], make_runtime: MakeRuntime, drive: Drive
) -> None:
    let_go = threading.Event()

    @tool(name="hang", timeout=own)
    def hang(number: int) -> str:
        """Hang."""
        let_go.wait(PATIENCE)
        return "late"

    runtime = make_runtime([numbered("hang", 1), "Done."], tools=[hang], sections={"tools": section})

    _events, result = drive(runtime, RunRequest("a", "Go."))
    let_go.set()

    assert "within 0.02 seconds" in answers(result)[0]


MISTAKES = {
    "unknown_tool": (ToolCall("lock", {"number": 1}), "did you mean 'look'?"),
    "invalid_arguments": (ToolCall("look", {"number": "one"}), "was not run"),
    "no JSON": (ToolCall("look", '{"number": 1'), "was not run"),
}


def look(number: int) -> str:
    """Look."""
    return f"saw {number}"


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_call_that_no_tool_can_run_is_answered_and_the_run_goes_on(
    kind: str, make_runtime: MakeRuntime, drive: Drive
) -> None:
    call, told = MISTAKES[kind]
    runtime = make_runtime([asking(call), numbered("look", 2), "Done."], tools=[look])

    _events, result = drive(runtime, RunRequest("a", "Go."))

    assert problems(result) == ["unknown_tool" if kind == "unknown_tool" else "invalid_arguments", None]
    assert told in answers(result)[0]
    assert (result.reason.code, result.text, result.rounds) == ("natural_end", "Done.", 3)


def test_a_call_in_no_known_format_is_answered_and_the_run_goes_on(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    odd = Reply(text="x", extra={"tool_calls": [{"id": "odd", "what": "is this"}]})

    _events, result = drive(make_runtime([odd, "Done."], tools=[look]), RunRequest("a", "Go."))

    assert problems(result) == ["unreadable_call"]
    assert [m["metadata"]["tool_call_id"] for m in result.messages if m["role"] == "tool"] == ["odd"]
    assert result.text == "Done."


@pytest.mark.parametrize("kind", MISTAKES)
def test_three_such_mistakes_in_a_row_end_the_run(
    kind: str, make_runtime: MakeRuntime, drive: Drive, open_calls: OpenCalls
) -> None:
    call, _told = MISTAKES[kind]

    _events, result = drive(make_runtime([asking(call)] * 9, tools=[look]), RunRequest("a", "Go."))

    assert tuple(result.reason) == (
        "consecutive_errors",
        "in 3 steps in a row, none of the model's tool calls could be run",
    )
    assert (result.rounds, open_calls(result.session)) == (3, [])


def test_mistakes_with_a_good_call_between_them_do_not_end_the_run(
    make_runtime: MakeRuntime, drive: Drive
) -> None:
    bad, good = asking(MISTAKES["unknown_tool"][0]), numbered("look", 1)

    _events, result = drive(
        make_runtime([bad, bad, good, bad, bad, good, "Done."], tools=[look]), RunRequest("a", "Go.")
    )

    assert (result.reason.code, result.rounds) == ("natural_end", 7)


# Ids


@pytest.mark.parametrize(
    "ids",
    [
        ["same", "same", "same"],
        ["", "", ""],
        ["x" * 500, "über/möglich", "  "],
        ["a", "", "a"],
    ],
    ids=["duplicate", "empty", "odd", "mixed"],
)
@pytest.mark.parametrize("parallel", [False, True])
def test_every_call_is_run_once_and_answered_whatever_its_id(
    ids: list[str], parallel: bool, make_runtime: MakeRuntime, drive: Drive
) -> None:
    ran: list[int] = []

    @tool(name="note", parallel=parallel)
    def note(number: int) -> str:
        """Note."""
        ran.append(number)
        return f"noted {number}"

    calls = [ToolCall("note", {"number": number}, id=name) for number, name in enumerate(ids)]
    provider = ScriptedProvider([asking(*calls), "Done."])

    _events, result = drive(make_runtime(provider, tools=[note]), RunRequest("a", "Go."))

    assert sorted(ran) == [0, 1, 2]
    assert answers(result) == ["noted 0", "noted 1", "noted 2"]
    tools = [message for message in result.messages if message["role"] == "tool"]
    assert [message["metadata"]["tool_call_id"] or "" for message in tools] == ids
    assert result.text == "Done."


# Events and context


def test_a_call_shows_its_start_its_parts_and_its_result(make_runtime: MakeRuntime, watch: Drive) -> None:
    def climb(number: int) -> Any:
        """Climb."""
        yield "first step"
        yield "second step"
        return f"climbed {number}"

    runtime = make_runtime([numbered("climb", 2), "Done."], tools=[climb])

    events, _result = watch(runtime, RunRequest("a", "Go."))

    shown = [event for event in events if event["type"].startswith("tool_call")]
    assert shown[0] == {
        "type": "tool_call_start",
        "call_id": "call_1",
        "name": "climb",
        "arguments": {"number": 2},
        "preview": "climb(number=2)",
        "display": None,
    }
    assert [event["type"] for event in shown[1:]] == ["tool_call_partial"] * 2 + ["tool_call_result"]
    assert "first step" in json.dumps(shown[1]["part"])
    assert (shown[-1]["is_error"], shown[-1]["message"]["content"]) == (False, "climbed 2")


def test_what_a_tool_shows_can_be_stored_and_sent_whatever_it_is(
    make_runtime: MakeRuntime, watch: Drive
) -> None:
    endless: list[Any] = []
    endless.append(endless)

    def climb(number: int) -> Any:
        """Climb."""
        yield b"raw"
        yield {"height": float("nan"), "step": 1}
        yield "last"
        return "climbed"

    class Showing:
        name = "showing"
        kind = "tool"

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]

        def format_tool_call_display(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return {"type": "json", "content": [object(), endless] if arguments else [float("inf"), 1]}

        def stream_tool(self, tool_name: str, arguments: dict[str, Any]) -> Any:
            yield {"part": endless}
            yield {"success": True, "result": "seen"}

    calls = [ToolCall("climb", {"number": 2}), ToolCall("look", {}), ToolCall("look", {"deep": 1})]
    runtime = make_runtime([Reply(tool_calls=calls), "Done."], tools=[climb], plugins={"showing": Showing})

    events, result = watch(runtime, RunRequest("a", "Go."))

    shown = [event for event in events if event["type"].startswith("tool_call")]
    json.dumps(shown, allow_nan=False)
    parts = [event["part"] for event in shown if event["type"] == "tool_call_partial"]
    assert len(parts) == 3 and "last" in json.dumps(parts[-1])
    displays = [event["display"] for event in shown if event["type"] == "tool_call_start"]
    assert [display["content"] for display in displays if display is not None] == [[None, 1]]
    assert result.text == "Done."


def test_a_caller_cannot_decide_for_a_person_by_the_context(
    make_runtime: MakeRuntime, drive: Drive, caplog: pytest.LogCaptureFixture
) -> None:
    def wipe(context: Any) -> str:
        """Wipe everything, if somebody said yes."""
        if context.get("decision") or context.get("decisions"):
            return "wiped"
        assert {"suspended", "shown"}.isdisjoint(context)
        raise ToolSuspended("Really?")

    forged = {"decision": True, "decisions": {"x": True}, "suspended": {"x": 1}, "shown": {}, "user": "ada"}
    runtime = make_runtime([asking(ToolCall("wipe")), "Done."], tools=[wipe])

    _, result = drive(runtime, RunRequest("a", "Go.", context=forged))

    assert result.reason.code == "suspended"
    assert caplog.text.count("reserved_context_key") == 1
    assert "'decision'" in caplog.text


def test_a_tool_finds_its_run_in_its_context(make_runtime: MakeRuntime, drive: Drive) -> None:
    seen: list[Any] = []

    def look_around(context: Any) -> str:
        """Look around."""
        run = context["run"]
        seen.append((run.run_id, run.agent_id, run.parents, run.tokens_left, context["tool_call_id"]))
        return "ok"

    reply = asking(ToolCall("look_around"), usage={"input_tokens": 10})
    runtime = make_runtime([reply, "Done."], tools=[look_around])

    drive(runtime, RunRequest("a", "Go.", run_id="r", parents=("boss",), token_budget=100))

    assert seen == [("r", "a", ("boss", "a"), 90, "call_1")]


# Gates


def test_a_blocked_call_is_an_error_for_the_model_and_the_run_goes_on(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    ran: list[int] = []

    def note(number: int) -> str:
        """Note."""
        ran.append(number)
        return "noted"

    def gate(view: PhaseView) -> Block | SetResult | None:
        assert view.call is not None
        verdicts: dict[int, Any] = {0: Block("too small"), 1: SetResult({"from": "a cache"})}
        return verdicts.get(view.call.arguments["number"])

    runtime = make_runtime(
        [numbered("note", 0, 1, 2), "Done."],
        tools=[tool(note, parallel=False)],
        plugins={"p": placing(gate=gate)},
    )

    events, result = drive(runtime, RunRequest("a", "Go."))

    assert ran == [2]
    assert answers(result) == ["Error: the call was not allowed: too small", '{"from":"a cache"}', "noted"]
    assert problems(result) == ["blocked", None, None]
    assert result.text == "Done."
    if events:
        started = [event["call_id"] for event in events if event["type"] == "tool_call_start"]
        assert started == ["call_3"]
        ended = [event["is_error"] for event in events if event["type"] == "tool_call_result"]
        assert ended == [True, False, False]


def test_a_gate_that_fails_blocks_the_call_and_warns(
    make_runtime: MakeRuntime, placing: Plugin, drive: Drive
) -> None:
    def gate(_view: PhaseView) -> None:
        raise ValueError("broken")

    runtime = make_runtime([numbered("look", 1), "Done."], tools=[look], plugins={"p": placing(gate=gate)})

    events, result = drive(runtime, RunRequest("a", "Go."))

    assert problems(result) == ["blocked"]
    assert result.reason.code == "natural_end"
    if events:
        assert [event["plugin"] for event in events if event["type"] == "warning"] == ["p"]


class Painter:
    """A tool that shows what it will do before it does it."""

    name = "painter"
    version = "1"

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        parameters = {"type": "object", "properties": {"colour": {"type": "string"}}}
        return [{"type": "function", "function": {"name": "paint", "parameters": parameters}}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any], context: Any) -> dict[str, Any]:
        seen = context.get("shown")
        as_shown = "" if seen is None else f" as in {seen['content']!r}, bound to {seen['basis']}"
        return {"success": True, "result": f"{tool_name} {arguments['colour']}{as_shown}"}

    def format_tool_call_display(
        self, tool_name: str, arguments: dict[str, Any], context: Any
    ) -> dict[str, Any]:
        if arguments["colour"] == "none":
            raise ValueError(tool_name)
        wall = context["session_metadata"]["wall"]
        return {"type": "diff", "content": f"-{wall}\n+{arguments['colour']}\x1b[2J", "basis": wall}


def painted(colour: str) -> Reply:
    return asking(ToolCall("paint", {"colour": colour}))


def painting(make_runtime: MakeRuntime, watch: Drive, colour: str, **options: Any) -> tuple[list[Any], Any]:
    script = [painted(colour), "Done."]
    runtime = make_runtime(script, plugins={"painter": Painter}, **options)
    return watch(runtime, RunRequest("a", "Go.", Session("s", metadata={"wall": "white"})))


def test_a_call_is_shown_before_it_runs(make_runtime: MakeRuntime, watch: Drive) -> None:
    events, _result = painting(make_runtime, watch, "red")

    [start] = [event for event in events if event["type"] == "tool_call_start"]
    assert start["display"] == {"type": "diff", "content": "-white\n+red[2J", "basis": "white"}


def test_a_call_that_cannot_be_shown_runs_all_the_same(make_runtime: MakeRuntime, watch: Drive) -> None:
    events, result = painting(make_runtime, watch, "none")

    [start] = [event for event in events if event["type"] == "tool_call_start"]
    assert start["display"] is None
    assert answers(result) == ["paint none"]


def test_who_decides_about_a_call_sees_it(make_runtime: MakeRuntime, watch: Drive) -> None:
    _events, result = painting(make_runtime, watch, "red", sections={"permissions": {"ask": ["paint"]}})

    [waiting] = result.suspended
    assert waiting.parameters["preview"] == "paint(colour='red')"
    assert waiting.parameters["display"]["content"] == "-white\n+red[2J"


def test_a_tool_learns_by_which_display_somebody_decided(make_runtime: MakeRuntime, watch: Drive) -> None:
    asked = {"permissions": {"ask": ["paint"]}}
    _events, result = painting(make_runtime, watch, "red", sections=asked)
    kept = result.session.to_dict()
    kept["metadata"]["wall"] = "green"
    decision = {"target": result.suspended[0].id}
    runtime = make_runtime(["Done."], plugins={"painter": Painter}, sections=asked)

    _events, ended = watch(runtime, RunRequest("a", session=Session.from_dict(kept), decisions=[decision]))

    assert answers(ended) == [r"paint red as in '-white\n+red[2J', bound to white"]

"""Stop conditions: what each looks at, and how a run ends by it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import fields, replace
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentRuntimeBuilder,
    AgentSpec,
    Block,
    ConsecutiveErrors,
    ContentMatch,
    CostBudget,
    MaxRounds,
    ModelSpec,
    RepeatedCalls,
    RunRequest,
    RunStats,
    SpecError,
    StopCondition,
    StopOnTool,
    Suspend,
    Timeout,
    TokenBudget,
)
from agent_runtime.policies import CONDITIONS, read_condition
from agent_runtime.runs import DEFAULT_TIMEOUT
from agent_runtime.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_runtime import AgentRuntime, PluginRegistrar, RunResult
    from agent_runtime.verdicts import Verdict

DRIVERS = ("run", "run_async", "run_to_completion", "run_to_completion_async")

# condition, what it lets pass, what it stops, and whether already before the calls of the step
TABLE: list[tuple[StopCondition, dict[str, Any], dict[str, Any], bool]] = [
    (MaxRounds(3), {"rounds": 2}, {"rounds": 3}, False),
    (Timeout(5), {"seconds": 4.9}, {"seconds": 5.0}, True),
    (TokenBudget(100), {"tokens": 99}, {"tokens": 100}, True),
    (CostBudget(0.5), {"cost": 0.49}, {"cost": 0.5}, True),
    (ConsecutiveErrors(2), {"errors": 1}, {"errors": 2}, False),
    (StopOnTool(("submit",)), {"succeeded": ("add", "submitted")}, {"succeeded": ("add", "submit")}, False),
    (StopOnTool(("submit",)), {"called": ("submit",)}, {"succeeded": ("submit",)}, False),
    (StopOnTool(("sub*",)), {"succeeded": ("add",)}, {"succeeded": ("submit",)}, False),
    (ContentMatch(text="DONE"), {"text": "not done"}, {"text": "It is DONE."}, True),
    (ContentMatch(pattern="DONE*"), {"text": "It is DONE."}, {"text": "DONE. Bye"}, True),
    (RepeatedCalls(2), {"repeats": 1, "repeated": "add"}, {"repeats": 2, "repeated": "add"}, True),
]


@pytest.mark.parametrize(("condition", "passes", "stops", "early"), TABLE, ids=str)
def test_each_condition_says_when_and_why(
    condition: StopCondition, passes: dict[str, Any], stops: dict[str, Any], early: bool
) -> None:
    assert condition.after_step(RunStats(**passes)) is None
    assert condition.before_tools(RunStats(**passes)) is None

    stop = condition.after_step(RunStats(**stops))
    assert stop is not None and stop.code == condition.type and stop.detail
    assert (condition.before_tools(RunStats(**stops)) == stop) is early


def test_the_table_has_every_condition() -> None:
    assert {row[0].type for row in TABLE} == set(CONDITIONS)


@pytest.mark.parametrize("condition", [row[0] for row in TABLE], ids=str)
def test_a_run_that_has_done_nothing_goes_on(condition: StopCondition) -> None:
    assert condition.after_step(RunStats()) is None


amounts = st.fixed_dictionaries(
    {
        "rounds": st.integers(0, 6),
        "seconds": st.floats(0, 10),
        "tokens": st.integers(0, 200),
        "cost": st.floats(0, 1),
        "errors": st.integers(0, 4),
        "repeats": st.integers(0, 4),
        "text": st.sampled_from(["", "DONE", "It is DONE."]),
        "called": st.lists(st.sampled_from(["add", "submit"])).map(tuple),
    }
)


@settings(max_examples=40)
@given(amounts, st.data())
def test_more_never_un_stops(stats: dict[str, Any], data: st.DataObject) -> None:
    before = RunStats(**stats)
    grown: dict[str, Any] = {
        name: value + data.draw(st.integers(0, 100), label=name)
        for name, value in stats.items()
        if isinstance(value, (int, float))
    }
    after = replace(before, **grown)

    for condition, *_ in TABLE:
        if condition.after_step(before) is not None:
            assert condition.after_step(after) is not None
        if condition.before_tools(before) is not None:
            assert condition.before_tools(after) is not None
            assert condition.after_step(after) is not None, "what stops before the calls stops after them"


# Declarations


@pytest.mark.parametrize("condition", [row[0] for row in TABLE], ids=str)
def test_a_condition_is_read_back_from_its_dict(condition: StopCondition) -> None:
    assert read_condition("here", condition.to_dict()) == condition


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("max_rounds", "must be a mapping with a type"),
        ({}, "must be a mapping with a type, one of .*'consecutive_errors'"),
        ({"type": 7}, "must be a mapping with a type"),
        ({"type": "max_round"}, "no stop condition 'max_round': did you mean 'max_rounds'"),
        ({"type": "max_rounds"}, "needs the field 'rounds'"),
        ({"type": "max_rounds", "rounds": 0}, "at least 1"),
        ({"type": "max_rounds", "rounds": True}, "whole number"),
        ({"type": "max_rounds", "rouds": 1}, "no field 'rouds': did you mean 'rounds'"),
        ({"type": "timeout", "seconds": -1}, "at least"),
        ({"type": "timeout", "seconds": float("nan")}, "a number"),
        ({"type": "token_budget", "tokens": 0}, "at least 1"),
        ({"type": "cost_budget", "amount": "1"}, "a number"),
        ({"type": "consecutive_errors", "count": 0}, "at least 1"),
        ({"type": "repeated_calls", "count": 1}, "at least 2"),
        ({"type": "stop_on_tool", "tools": [7]}, "must be a string"),
        ({"type": "content_match"}, "either text or pattern"),
        ({"type": "content_match", "text": "a", "pattern": "b"}, "either text or pattern"),
    ],
)
def test_a_declaration_that_cannot_be_used_says_why(data: Any, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        AgentSpec("a", "m", stop_conditions=[data])  # type: ignore[arg-type]


def test_one_tool_may_be_named_without_a_list() -> None:
    assert read_condition("here", {"type": "stop_on_tool", "tools": "submit"}) == StopOnTool(("submit",))


@pytest.mark.parametrize("kind", CONDITIONS.values(), ids=lambda kind: kind.type)
def test_a_condition_is_frozen(kind: type[StopCondition]) -> None:
    condition = next(row[0] for row in TABLE if isinstance(row[0], kind))

    with pytest.raises(AttributeError):
        setattr(condition, fields(condition)[0].name, 1)


# Runs


class Gating:
    """A plugin with one gate."""

    name = "gating"
    version = "1"

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.tool_gate(lambda _view: self._verdict)


class Runs:
    """A runtime with one agent, and what its tools did."""

    def __init__(
        self,
        script: Iterable[Any],
        *conditions: StopCondition,
        gate: Any = None,
        tools: Iterable[Any] = (),
        **spec: Any,
    ) -> None:
        self.clock = ManualClock()
        self.ran: list[str] = []
        self.provider = ScriptedProvider(script)
        plugins = () if gate is None else ("gating",)
        agent = AgentSpec("a", "m", stop_conditions=conditions, plugin_ids=plugins, **spec)
        model = ModelSpec("m", "scripted", input_price=1.0, output_price=2.0)
        builder = AgentRuntimeBuilder().with_agent_spec(agent).with_model(model).with_clock(self.clock)
        builder.with_provider("scripted", self.provider)
        if gate is not None:
            builder.with_plugin("gating", Gating(gate))
        for tool in (self.add, self.fail, self.wait, *tools):
            builder.with_tool(tool.__name__, tool)
        self.runtime: AgentRuntime = builder.build()

    def add(self, a: int) -> str:
        """Add."""
        self.ran.append("add")
        return str(a)

    def fail(self, a: int) -> str:
        """Fail."""
        self.ran.append("fail")
        raise ValueError(str(a))

    def wait(self, seconds: int) -> str:
        """Let time pass."""
        self.ran.append("wait")
        self.clock.advance(seconds)
        return "waited"

    def drive(self, driver: str, **request: Any) -> RunResult:
        asked = RunRequest("a", **{"messages": "Hello.", **request})
        if driver == "run":
            stream = self.runtime.run(asked)
            assert list(stream)[-1]["type"] == "run_end"
            assert stream.result is not None
            return stream.result
        if driver == "run_async":
            return asyncio.run(self._watch(asked))
        if driver == "run_to_completion":
            return self.runtime.run_to_completion(asked)
        return asyncio.run(self.runtime.run_to_completion_async(asked))

    async def _watch(self, asked: RunRequest) -> RunResult:
        stream = self.runtime.run_async(asked)
        assert [event async for event in stream][-1]["type"] == "run_end"
        assert stream.result is not None
        return stream.result


def calls(name: str = "add", usage: dict[str, int] | None = None, **arguments: int) -> Reply:
    return Reply(text="see", tool_calls=[ToolCall(name, arguments or {"a": 1})], usage=usage)


def different_calls(name: str = "add") -> Iterable[Reply]:
    return (Reply(tool_calls=[ToolCall(name, {"a": number})]) for number in count())


def tool_texts(result: RunResult) -> list[str]:
    return [message["content"] for message in result.messages if message["role"] == "tool"]


USED = {"input_tokens": 40, "output_tokens": 20}
NOT_RUN = "Error: the call was not run: the run was stopped ({})"


@pytest.mark.parametrize("driver", DRIVERS)
def test_max_rounds_lets_the_calls_of_the_last_answer_run(driver: str) -> None:
    runs = Runs(different_calls(), max_rounds=3)

    result = runs.drive(driver)

    assert result.reason == ("max_rounds", "the model was asked 3 times, as often as max_rounds allows")
    assert (result.rounds, len(runs.provider.requests), len(runs.ran)) == (3, 3, 3)


def test_of_two_limits_for_rounds_the_lower_one_counts() -> None:
    assert Runs(different_calls(), MaxRounds(2), max_rounds=5).drive("run").rounds == 2
    assert Runs(different_calls(), MaxRounds(5), max_rounds=2).drive("run").rounds == 2


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_timeout_ends_a_tool_that_is_under_way(driver: str) -> None:
    runs = Runs([calls("wait", seconds=10), "never"], Timeout(5))

    result = runs.drive(driver)

    assert result.reason == ("timeout", "the run took longer than 5 seconds")
    assert len(runs.provider.requests) == 1 and len(tool_texts(result)) == 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_timeout_ends_a_model_that_does_not_answer(driver: str) -> None:
    def hang(_native: Any) -> Reply:
        runs.clock.advance(5)
        return Reply(text="late", delay=20.0)

    runs = Runs([calls("wait", seconds=3), hang], Timeout(8))

    result = runs.drive(driver)

    assert result.reason.code == "timeout" and "late" not in result.text
    assert tool_texts(result) == ["waited"]


@pytest.mark.parametrize("shorter", [{"declared": 5, "asked": 50}, {"declared": 50, "asked": 5}])
def test_of_two_timeouts_the_shorter_one_counts(shorter: dict[str, int]) -> None:
    runs = Runs([calls("wait", seconds=10), "never"], Timeout(shorter["declared"]))

    result = runs.drive("run", timeout=shorter["asked"])

    assert result.reason == ("timeout", "the run took longer than 5 seconds")


_WHY = (
    "the run took longer than 7200 seconds, which is what a run has by default: give the request a "
    "`timeout`, or the agent a stop condition of type `timeout` (`seconds`; null or false for no limit)"
)
BY_DEFAULT = ("timeout", _WHY)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_tool_that_hangs_is_ended_although_nobody_set_a_time(driver: str) -> None:
    let_go = threading.Event()

    def hang() -> str:
        """Hang."""
        runs.clock.advance(DEFAULT_TIMEOUT)
        let_go.wait(20)
        return "late"

    runs = Runs([Reply(tool_calls=[ToolCall("hang")]), "never"], tools=[hang])
    try:
        result = runs.drive(driver)
    finally:
        let_go.set()

    assert result.reason == BY_DEFAULT
    assert "late" not in tool_texts(result)[0] and len(runs.provider.requests) == 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_model_that_hangs_is_ended_although_nobody_set_a_time(driver: str) -> None:
    def hang(_native: Any) -> Reply:
        runs.clock.advance(DEFAULT_TIMEOUT)
        return Reply(chunks=["So ", "late"], delay=[0.0, 20.0])

    runs = Runs([hang])

    assert runs.drive(driver).reason == BY_DEFAULT


def test_a_pause_before_a_retry_is_ended_although_nobody_set_a_time() -> None:
    def fail(_native: Any) -> Reply:
        runs.clock.advance(
            DEFAULT_TIMEOUT - 1
        )  # the pause of up to 100000 seconds is longer than what is left
        raise ConnectionError("nobody there")

    retry = {"max_retries": 1, "base_delay": 1e5, "max_delay": 1e5}
    runs = Runs([fail, "never"], sections={"retry": retry})
    running = threading.Thread(target=runs.clock.wait_for_sleepers)
    running.start()

    def end() -> None:
        running.join()
        runs.clock.advance(1)

    ending = threading.Thread(target=end)
    ending.start()

    result = runs.drive("run")
    ending.join()

    assert result.reason == BY_DEFAULT and len(runs.provider.requests) == 1


@pytest.mark.parametrize(
    ("conditions", "request_"),
    [
        ([], {"timeout": None}),
        ([], {"timeout": 3 * DEFAULT_TIMEOUT}),
        ([Timeout(None)], {}),
        ([read_condition("here", {"type": "timeout", "seconds": False})], {}),
        ([Timeout(3 * DEFAULT_TIMEOUT)], {}),
    ],
)
def test_whoever_sets_a_time_has_that_one(conditions: list[StopCondition], request_: dict[str, Any]) -> None:
    runs = Runs([calls("wait", seconds=int(2 * DEFAULT_TIMEOUT)), "done"], *conditions)

    result = runs.drive("run", **request_)

    assert (result.reason.code, result.text) == ("natural_end", "done")


def test_a_request_without_a_limit_does_not_lift_the_agents() -> None:
    runs = Runs([calls("wait", seconds=10), "never"], Timeout(5))

    assert runs.drive("run", timeout=None).reason.code == "timeout"


def test_waiting_for_a_decision_costs_nothing_of_the_default_time() -> None:
    def long(_native: Any) -> Reply:
        runs.clock.advance(DEFAULT_TIMEOUT - 10)
        return calls()

    runs = Runs([long, calls("wait", seconds=20), "never"], gate=Suspend("May I?"))
    result = runs.drive("run")
    reasons = [result.reason.code]
    while result.suspended:
        runs.clock.advance(10 * DEFAULT_TIMEOUT)
        decisions = [{"target": one.id} for one in result.suspended]
        result = runs.drive("run", messages=(), session=result.session, decisions=decisions)
        reasons.append(result.reason.code)

    assert reasons == ["suspended", "suspended", "timeout"]
    assert result.reason == BY_DEFAULT


def test_a_run_within_its_time_ends_by_itself() -> None:
    runs = Runs([calls("wait", seconds=4), "done"], Timeout(5))

    assert runs.drive("run").reason.code == "natural_end"


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize(
    ("condition", "detail"),
    [
        (TokenBudget(120), "120 tokens were used, of 120 allowed"),
        (CostBudget(0.00016), "the run cost 0.0002, of 0.00016 allowed"),
    ],
)
def test_a_budget_that_is_used_up_ends_the_run_before_its_calls(
    condition: StopCondition, detail: str, driver: str
) -> None:
    runs = Runs([calls(usage=USED), calls(usage=USED, a=2), "never"], condition)

    result = runs.drive(driver)

    assert result.reason == (condition.type, detail)
    assert tool_texts(result) == ["1", NOT_RUN.format(condition.type)]
    assert (result.rounds, runs.ran) == (2, ["add"])


@pytest.mark.parametrize("driver", DRIVERS)
def test_errors_in_a_row_end_the_run_and_a_success_between_them_counts(driver: str) -> None:
    script = [calls("fail"), calls("add"), calls("fail", a=2), calls("fail", a=3), "never"]
    runs = Runs(script, ConsecutiveErrors(2))

    result = runs.drive(driver)

    assert result.reason == ("consecutive_errors", "2 tool calls in a row failed")
    assert runs.ran == ["fail", "add", "fail", "fail"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_tool_that_has_run_ends_the_run_with_its_result_kept(driver: str) -> None:
    both = Reply(tool_calls=[ToolCall("add", {"a": 7}), ToolCall("wait", {"seconds": 0})])
    runs = Runs([both, "never"], StopOnTool(("add",)))

    result = runs.drive(driver)

    assert result.reason == ("stop_on_tool", "the tool 'add' has run")
    assert tool_texts(result) == ["7", "waited"]


def test_a_tool_that_was_blocked_has_not_run() -> None:
    runs = Runs([calls(), "I give up."], StopOnTool(("add",)), gate=Block("not today"))

    result = runs.drive("run")

    assert (result.reason.code, result.text, runs.ran) == ("natural_end", "I give up.", [])


def test_a_call_with_wrong_arguments_has_not_run() -> None:
    wrong = Reply(tool_calls=[ToolCall("add", {"a": "no number"})])
    runs = Runs([wrong, calls(), "never"], StopOnTool(("add",)))

    result = runs.drive("run")

    assert (result.reason.code, result.rounds, runs.ran) == ("stop_on_tool", 2, ["add"])


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_tool_that_runs_after_a_decision_ends_the_run(driver: str) -> None:
    runs = Runs([calls(), "never"], StopOnTool(("add",)), gate=Suspend("May I?"))
    waiting = runs.drive(driver)
    assert waiting.reason.code == "suspended"

    decisions = [{"target": waiting.suspended[0].id}]
    result = runs.drive(driver, messages=(), session=waiting.session, decisions=decisions)

    assert result.reason.code == "stop_on_tool"
    assert (runs.ran, len(runs.provider.requests)) == (["add"], 1)


def test_after_a_refusal_the_run_goes_on() -> None:
    runs = Runs([calls(), "fine"], StopOnTool(("add",)), gate=Suspend("May I?"))
    waiting = runs.drive("run")

    refused = [{"target": waiting.suspended[0].id, "approved": False}]
    result = runs.drive("run", messages=(), session=waiting.session, decisions=refused)

    assert (result.reason.code, result.text, runs.ran) == ("natural_end", "fine", [])


def test_the_rounds_of_a_suspended_run_are_not_forgotten() -> None:
    runs = Runs(different_calls(), max_rounds=2, gate=Suspend("May I?"))
    result = runs.drive("run")

    reasons = [result.reason.code]
    while result.suspended:
        decisions = [{"target": one.id} for one in result.suspended]
        result = runs.drive("run", messages=(), session=result.session, decisions=decisions)
        reasons.append(result.reason.code)

    assert reasons == ["suspended", "suspended", "max_rounds"]
    assert (result.rounds, runs.ran) == (2, ["add", "add"])


def test_the_time_before_a_suspension_counts_and_the_time_of_waiting_does_not() -> None:
    def later(_native: Any) -> Reply:
        runs.clock.advance(3)
        return calls()

    runs = Runs([later, calls("wait", seconds=3), "never"], Timeout(5), gate=Suspend("May I?"))
    result = runs.drive("run")
    reasons = [result.reason.code]
    while result.suspended:
        runs.clock.advance(1000)
        decisions = [{"target": one.id} for one in result.suspended]
        result = runs.drive("run", messages=(), session=result.session, decisions=decisions)
        reasons.append(result.reason.code)

    assert reasons == ["suspended", "suspended", "timeout"]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("condition", [ContentMatch(text="see"), ContentMatch(pattern="s*")], ids=str)
def test_what_the_model_says_ends_the_run_before_its_calls(condition: StopCondition, driver: str) -> None:
    runs = Runs([Reply(tool_calls=[ToolCall("add", {"a": 1})]), calls(), "never"], condition)

    result = runs.drive(driver)

    assert (result.reason.code, result.text) == ("content_match", "see")
    assert tool_texts(result) == ["1", NOT_RUN.format("content_match")]


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_same_call_again_and_again_ends_the_run_before_it_runs_once_more(driver: str) -> None:
    runs = Runs(repeat(calls()), RepeatedCalls(3))

    result = runs.drive(driver)

    assert result.reason == ("repeated_calls", "the model called 'add' 3 times with the same arguments")
    assert tool_texts(result) == ["1", "1", NOT_RUN.format("repeated_calls")]


def test_other_arguments_are_another_call() -> None:
    runs = Runs([calls(a=1), calls(a=2), calls(a=1), calls(a=2), "done"], RepeatedCalls(2))

    assert runs.drive("run").reason.code == "natural_end"


def test_the_order_of_arguments_makes_no_other_call() -> None:
    script = [
        Reply(tool_calls=[ToolCall("missing", '{"a": 1, "b": 2}')]),
        Reply(tool_calls=[ToolCall("missing", '{"b": 2, "a": 1}')]),
        "never",
    ]

    assert Runs(script, RepeatedCalls(2)).drive("run").reason.code == "repeated_calls"


def test_the_first_condition_of_the_list_gives_the_reason() -> None:
    one, other = ContentMatch(text="see"), TokenBudget(1)

    assert Runs([calls(usage=USED)], one, other).drive("run").reason.code == "content_match"
    assert Runs([calls(usage=USED)], other, one).drive("run").reason.code == "token_budget"


def test_a_stopped_session_can_be_sent_again() -> None:
    runs = Runs([calls(usage=USED), "Hello again."], TokenBudget(1))
    stopped = runs.drive("run")

    again = runs.drive("run", messages="And now?", session=stopped.session)

    assert again.text == "Hello again."
    assert [item["role"] for item in runs.provider.requests[1].native_messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]

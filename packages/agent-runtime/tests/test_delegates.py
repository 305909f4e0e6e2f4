"""Agents that hand tasks to other agents: what goes down, what comes up."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import Cancellation, Session, ToolSuspended
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentNotFound,
    AgentRuntimeBuilder,
    AgentSpec,
    BuildError,
    Command,
    DecisionError,
    DelegateCycle,
    ModelSpec,
    RunRequest,
    StopOnTool,
    Suspend,
    TokenBudget,
)
from agent_runtime.delegates import MOST_DEPTH, schema_of, tool_name
from agent_runtime.runs import DEFAULT_TIMEOUT
from agent_runtime.testing import ManualClock

if TYPE_CHECKING:
    from agent_runtime import AgentRuntime, PluginRegistrar, RunResult
    from agent_runtime.phases import PhaseView

Events = list[dict[str, Any]]
DRIVERS = ("run", "run_async", "run_to_completion", "run_to_completion_async")
WATCHED = ("run", "run_async")
TOO_LONG = 20.0  # seconds that a test would take whose cancellation does not arrive


class Team:
    """Agents with a scripted model each, named by the first argument; `spec` fields by agent."""

    def __init__(self, scripts: dict[str, Any], **specs: dict[str, Any]) -> None:
        self.clock = ManualClock()
        self.models = {name: ScriptedProvider(script, name=name) for name, script in scripts.items()}
        self.builder = AgentRuntimeBuilder().with_clock(self.clock)
        for name, provider in self.models.items():
            self.builder.with_provider(name, provider)
            self.builder.with_model(ModelSpec(f"model of {name}", name, input_price=1.0, output_price=1.0))
            self.builder.with_agent_spec(AgentSpec(name, f"model of {name}", **specs.get(name, {})))
        self._runtime: AgentRuntime | None = None

    @property
    def runtime(self) -> AgentRuntime:
        self._runtime = self._runtime or self.builder.build()
        return self._runtime

    def ask(self, driver: str = "run", **request: Any) -> tuple[Events, RunResult]:
        asked = RunRequest(**{"agent_id": "boss", "messages": "Hello.", **request})
        if driver == "run":
            stream = self.runtime.run(asked)
            events = list(stream)
            assert stream.result is not None
            return events, stream.result
        if driver == "run_async":
            return asyncio.run(self._watch(asked))
        if driver == "run_to_completion":
            return [], self.runtime.run_to_completion(asked)
        return [], asyncio.run(self.runtime.run_to_completion_async(asked))

    async def _watch(self, asked: RunRequest) -> tuple[Events, RunResult]:
        stream = self.runtime.run_async(asked)
        events = [event async for event in stream]
        assert stream.result is not None
        return events, stream.result

    def sent(self, name: str, request: int = -1) -> list[str]:
        return [item["content"] for item in self.models[name].requests[request].native_messages]


def handing(*agents: str, **usage: int) -> Reply:
    made = [ToolCall(f"delegate_{agent}", {"prompt": f"Do it, {agent}."}) for agent in agents]
    return Reply(tool_calls=made, usage=usage or None)


def said(text: str, **usage: int) -> Reply:
    return Reply(text=text, usage=usage or None)


def parts(events: Events, kind: str | None = None) -> Events:
    shown = [event["part"] for event in events if event["type"] == "tool_call_partial"]
    return [part for part in shown if kind in (None, part["type"])]


def tool_messages(result: RunResult) -> list[str]:
    return [message["content"] for message in result.messages if message["role"] == "tool"]


def saved_and_loaded(session: Session) -> Session:
    return Session.from_dict(json.loads(json.dumps(session.to_dict())))


# The tool


@pytest.mark.parametrize(
    ("agent_id", "name"),
    [
        ("coder", "delegate_coder"),
        ("code reviewer/2", "delegate_code_reviewer_2"),
        ("Prüfer", "delegate_Pr_fer"),
        ("a" * 100, "delegate_" + "a" * 55),
    ],
)
def test_the_tool_of_an_agent_has_a_name_that_every_provider_takes(agent_id: str, name: str) -> None:
    assert tool_name(agent_id) == name


@pytest.mark.parametrize(
    ("spec", "about"),
    [
        ({"description": "Writes code.", "system_prompt": "You code."}, "Writes code."),
        ({"system_prompt": "\n  You code.\nMuch."}, "You code."),
        ({}, "The agent coder."),
    ],
)
def test_the_model_reads_what_the_agent_is_for(spec: dict[str, str], about: str) -> None:
    schema = schema_of("delegate_coder", AgentSpec("coder", "m", **spec))  # type: ignore[arg-type]

    described = schema["function"]["description"]
    assert described == f"Hand a task to another agent and get its answer. {about}"


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_task_goes_down_and_the_answer_comes_up(driver: str) -> None:
    team = Team(
        {"boss": [handing("coder"), "It is done."], "coder": ["Here is the code."]},
        boss={"delegates": ("coder",)},
        coder={"system_prompt": "You code."},
    )

    _, result = team.ask(driver)

    assert team.sent("coder") == ["You code.", "Do it, coder."]
    assert team.sent("boss") == ["Hello.", "", "Here is the code."]
    assert (result.text, result.reason.code) == ("It is done.", "natural_end")
    offered = [tool["function"]["name"] for tool in team.models["boss"].requests[0].config["tools"]]
    assert offered == ["delegate_coder"]


@pytest.mark.parametrize("arguments", [{}, {"prompt": 7}, {"prompt": "x", "more": 1}])
def test_a_call_that_does_not_fit_is_reported_to_the_model_and_nobody_is_asked(
    arguments: dict[str, Any],
) -> None:
    call = Reply(tool_calls=[ToolCall("delegate_coder", arguments)])
    team = Team({"boss": [call, "Sorry."], "coder": []}, boss={"delegates": ("coder",)})

    _, result = team.ask()

    assert "arguments" in tool_messages(result)[0] and team.models["coder"].requests == []


@pytest.mark.parametrize("driver", WATCHED)
def test_a_watcher_sees_the_delegate_at_work(driver: str) -> None:
    team = Team(
        {"boss": [handing("coder"), "Done."], "coder": [Reply(chunks=["Here ", "it is."])]},
        boss={"delegates": ("coder",)},
    )

    events, _ = team.ask(driver)

    assert [part["type"] for part in parts(events)] == [
        "run_start",
        "step_start",
        "text",
        "text",
        "usage",
        "step_end",
        "run_end",
    ]
    assert parts(events, "run_start")[0]["agent_id"] == "coder"
    assert [part["text"] for part in parts(events, "text")] == ["Here ", "it is."]
    about = {(event["call_id"], event["name"]) for event in events if event["type"] == "tool_call_partial"}
    assert about == {("call_1", "delegate_coder")}
    json.dumps(parts(events))


def test_a_caller_that_wants_no_pieces_gets_none_of_the_delegate_either() -> None:
    team = Team(
        {"boss": [handing("coder"), "Done."], "coder": [Reply(chunks=["Here ", "it is."])]},
        boss={"delegates": ("coder",)},
    )

    events, _ = team.ask(stream=False)

    assert parts(events, "text") == []


# How a delegate ends


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_agent_that_fails_is_an_error_result_and_the_run_above_goes_on(driver: str) -> None:
    team = Team(
        {"boss": [handing("coder"), "What a pity."], "coder": [ConnectionError("no network")]},
        boss={"delegates": ("coder",)},
    )

    _, result = team.ask(driver)

    (told,) = tool_messages(result)
    assert "the agent ended early (error)" in told and "no network" in told
    assert result.reason.code == "natural_end" and result.text == "What a pity."


def test_an_agent_that_uses_up_its_rounds_is_an_error_result_with_what_it_had_said() -> None:
    looping = Reply(text="I am thinking.", tool_calls=[ToolCall("missing")])
    team = Team(
        {"boss": [handing("coder"), "What a pity."], "coder": [looping]},
        boss={"delegates": ("coder",)},
        coder={"max_rounds": 1},
    )

    _, result = team.ask()

    (told,) = tool_messages(result)
    assert "the agent ended early (max_rounds)" in told and told.endswith("It had said: I am thinking.")


def test_an_agent_that_stops_at_a_tool_of_its_own_has_succeeded() -> None:
    def submit() -> str:
        """Submit."""
        return "ok"

    team = Team(
        {
            "boss": [handing("coder"), "Thanks."],
            "coder": [Reply(text="Submitted.", tool_calls=[ToolCall("submit")])],
        },
        boss={"delegates": ("coder",)},
        coder={"stop_conditions": (StopOnTool(("submit",)),)},
    )
    team.builder.with_tool("submit", submit)

    _, result = team.ask()

    assert tool_messages(result) == ["ok"]  # what was submitted, not what the model said about it


# Down: cancellation, time, budgets. Up: usage


def deep(innermost: Any) -> Team:
    """Return three agents in a line, of which the last is asked *innermost*."""
    return Team(
        {
            "boss": [handing("lead", input_tokens=1, output_tokens=1), said("boss", output_tokens=2)],
            "lead": [handing("coder", input_tokens=10, output_tokens=10), said("lead", output_tokens=20)],
            "coder": [innermost],
        },
        boss={"delegates": ("lead",)},
        lead={"delegates": ("coder",)},
    )


@pytest.mark.parametrize("driver", DRIVERS)
def test_cancelling_reaches_the_innermost_model(driver: str) -> None:
    token = Cancellation()

    def hang(_native: Any) -> Reply:
        token.cancel()
        return Reply(text="late", delay=TOO_LONG)

    team = deep(hang)
    events, result = team.ask(driver, cancellation=token)

    assert result.reason.code == "cancelled"
    assert len(team.models["coder"].cancelled) == 1
    assert len(team.models["boss"].requests) == len(team.models["lead"].requests) == 1
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool"]
    assert not events or events[-1]["type"] == "run_end"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_token_that_outlives_the_run_is_let_go(driver: str) -> None:
    token = Cancellation()

    deep("coder").ask(driver, cancellation=token)

    assert token._callbacks == {}


@pytest.mark.parametrize("driver", WATCHED)
def test_leaving_the_stream_reaches_the_innermost_model(driver: str) -> None:
    asked = threading.Event()

    def hang(_native: Any) -> Reply:
        asked.set()
        return Reply(chunks=["a", "b"], delay=[0.0, TOO_LONG])

    def is_inner_text(event: dict[str, Any]) -> bool:
        inner = event.get("part", {}).get("part", {})
        return bool(inner.get("type") == "text")

    async def leave() -> RunResult | None:
        stream = team.runtime.run_async(RunRequest("boss", "Hello."))
        async for event in stream:
            if is_inner_text(event):
                break
        await stream.aclose()
        return stream.result

    team = deep(hang)
    if driver == "run_async":
        result = asyncio.run(leave())
    else:
        with team.runtime.run(RunRequest("boss", "Hello.")) as stream:
            next(event for event in stream if is_inner_text(event))
        result = stream.result

    assert asked.is_set() and result is not None and result.reason.code == "cancelled"
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool"]
    assert len(team.models["lead"].requests) == 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_deadline_holds_for_the_innermost_agent(driver: str) -> None:
    def hang(_native: Any) -> Reply:
        team.clock.advance(30)
        return Reply(text="late", delay=TOO_LONG)

    team = deep(hang)
    _, result = team.ask(driver, timeout=30)

    assert result.reason == ("timeout", "the run took longer than 30 seconds")
    assert len(team.models["coder"].cancelled) == 1


def test_a_tool_deep_down_knows_the_deadline_and_what_is_left() -> None:
    seen: list[tuple[float | None, int | None, tuple[str, ...]]] = []

    def look(context: dict[str, Any]) -> str:
        """Look at the run."""
        run = context["run"]
        seen.append((run.deadline, run.tokens_left, run.parents))
        return "seen"

    def later(_native: Any) -> Reply:
        team.clock.advance(10)
        return handing("lead", output_tokens=5)

    team = Team(
        {
            "boss": [later, "Done."],
            "lead": [handing("coder", output_tokens=7), "lead"],
            "coder": [Reply(tool_calls=[ToolCall("look")]), "coder"],
        },
        boss={"delegates": ("lead",)},
        lead={"delegates": ("coder",)},
    )
    team.builder.with_tool("look", look)
    team.ask(timeout=30, token_budget=100)

    assert seen == [(30.0, 88, ("boss", "lead", "coder"))]


def test_a_delegate_has_what_is_left_of_the_time_that_a_run_has_by_default() -> None:
    def later(_native: Any) -> Reply:
        team.clock.advance(DEFAULT_TIMEOUT - 10)
        return handing("coder")

    def hang(_native: Any) -> Reply:
        team.clock.advance(10)
        return Reply(text="late", delay=TOO_LONG)

    team = Team({"boss": [later, "never"], "coder": [hang]}, boss={"delegates": ("coder",)})
    _, result = team.ask()

    assert result.reason.code == "timeout" and "by default" in result.reason.detail
    assert len(team.models["coder"].cancelled) == 1


def test_the_time_before_a_delegate_is_asked_counts_for_it() -> None:
    def later(_native: Any) -> Reply:
        team.clock.advance(10)
        return handing("coder")

    def hang(_native: Any) -> Reply:
        team.clock.advance(10)
        return Reply(text="late", delay=TOO_LONG)

    team = Team({"boss": [later, "never"], "coder": [hang]}, boss={"delegates": ("coder",)})
    _, result = team.ask(timeout=20)

    assert result.reason.code == "timeout" and len(team.models["coder"].cancelled) == 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_usage_of_all_levels_comes_up_exactly_once(driver: str) -> None:
    team = deep(said("coder", input_tokens=100, output_tokens=100))

    events, result = team.ask(driver)

    assert result.usage.requests == 5
    assert (result.usage.input_tokens, result.usage.output_tokens) == (111, 133)
    assert result.usage.cost == pytest.approx(244 / 1_000_000)
    totals = [event["total"]["total_tokens"] for event in events if event["type"] == "usage"]
    assert totals in ([], [2, 244])


@pytest.mark.parametrize("field", ["token_budget", "cost_budget"])
def test_a_budget_holds_for_delegates_and_is_counted_as_soon_as_they_are_done(field: str) -> None:
    spent = {"input_tokens": 500_000, "output_tokens": 500_000}
    team = Team(
        {"boss": [handing("coder"), "never"], "coder": [Reply(text="dear", usage=spent)]},
        boss={"delegates": ("coder",)},
    )

    budget: dict[str, Any] = {field: 1_000_000 if field == "token_budget" else 1.0}
    _, result = team.ask(**budget)

    assert result.reason.code == field
    assert len(team.models["boss"].requests) == 1


def test_a_stop_condition_counts_what_delegates_used_in_the_same_step() -> None:
    team = Team(
        {"boss": [handing("coder"), "never"], "coder": [said("dear", output_tokens=100)]},
        boss={"delegates": ("coder",), "stop_conditions": (TokenBudget(100),)},
    )

    _, result = team.ask()

    assert result.reason.code == "token_budget" and len(team.models["boss"].requests) == 1


def test_a_delegate_gets_no_more_than_what_is_left_of_the_budget() -> None:
    looping = Reply(tool_calls=[ToolCall("missing", {"n": 1})], usage={"output_tokens": 30})
    team = Team(
        {"boss": [handing("coder", output_tokens=40), "never"], "coder": [looping, looping, looping]},
        boss={"delegates": ("coder",)},
    )

    _, result = team.ask(token_budget=100)

    assert len(team.models["coder"].requests) == 2, "60 tokens were left for it"
    assert result.reason.code == "token_budget" and result.usage.total_tokens == 100
    assert "the agent ended early (token_budget)" in tool_messages(result)[0]


# Delegates that wait


def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


class Asking:
    """Asks before a file is deleted."""

    name = "asking"
    version = "1"

    def register(self, registrar: PluginRegistrar) -> None:
        registrar.tool_gate(self._gate)

    def _gate(self, view: PhaseView) -> Suspend | None:
        assert view.call is not None
        if view.call.name != "delete":
            return None
        schema = {"enum": ["yes", None]}
        return Suspend("Delete it?", parameters={"path": view.call.arguments["path"]}, response_schema=schema)


def deleting(*paths: str, **usage: int) -> Reply:
    return Reply(tool_calls=[ToolCall("delete", {"path": path}) for path in paths], usage=usage or None)


def waiting_team(*coder: Any, boss: tuple[Any, ...] = ()) -> Team:
    team = Team(
        {
            "boss": [*(boss or (handing("lead", output_tokens=1),)), said("Done.", output_tokens=2)],
            "lead": [handing("coder", output_tokens=4), said("lead", output_tokens=8)],
            "coder": list(coder),
        },
        boss={"delegates": ("lead",)},
        lead={"delegates": ("coder",)},
        coder={"plugin_ids": ("asking",)},
    )
    team.builder.with_plugin("asking", Asking()).with_tool("delete", delete)
    return team


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_delegate_that_waits_makes_all_above_wait_and_goes_on_after_the_decision(driver: str) -> None:
    team = waiting_team(deleting("/tmp/a", output_tokens=16), said("coder", output_tokens=32))

    events, waiting = team.ask(driver)

    assert waiting.reason.code == "suspended" and len(waiting.suspended) == 1
    (suspension,) = waiting.suspended
    assert (suspension.tool, suspension.message, suspension.action) == (
        "delegate_lead",
        "Delete it?",
        "approve",
    )
    assert suspension.parameters["path"] == "/tmp/a"
    assert suspension.response_schema == {"enum": ["yes", None]}
    assert waiting.usage.output_tokens == 21
    assert not events or [event["type"] for event in events[-2:]] == ["suspended", "run_end"]

    decisions = [{"target": suspension.id, "value": "yes"}]
    _, result = team.ask(driver, messages=(), session=saved_and_loaded(waiting.session), decisions=decisions)

    assert (result.reason.code, result.text, result.run_id) == ("natural_end", "Done.", waiting.run_id)
    assert team.sent("coder") == ["Do it, coder.", "", "/tmp/a is gone"]
    assert team.sent("boss")[-1] == "lead"
    assert (result.usage.output_tokens, result.usage.requests) == (63, 6)


def test_another_process_goes_on_with_agents_that_it_declared_itself() -> None:
    _, waiting = waiting_team(deleting("/tmp/a")).ask()
    session = saved_and_loaded(waiting.session)
    other = Team(
        {"boss": ["Done."], "lead": ["lead"], "coder": ["coder"]},
        boss={"delegates": ("lead",)},
        lead={"delegates": ("coder",)},
        coder={"plugin_ids": ("asking",)},
    )
    other.builder.with_plugin("asking", Asking()).with_tool("delete", delete)

    _, result = other.ask(messages=(), session=session, decisions=[{"target": waiting.suspended[0].id}])

    assert result.text == "Done." and other.sent("coder") == ["Do it, coder.", "", "/tmp/a is gone"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_refusing_refuses_the_call_of_the_delegate_which_goes_on(driver: str) -> None:
    team = waiting_team(deleting("/tmp/a"), "I could not.")
    _, waiting = team.ask(driver)

    refused = [{"target": waiting.suspended[0].id, "approved": False, "reason": "keep it"}]
    _, result = team.ask(driver, messages=(), session=waiting.session, decisions=refused)

    assert team.sent("coder")[-1] == "Error: the call was refused: keep it"
    assert team.sent("lead")[-1] == "I could not."
    assert result.text == "Done."


@pytest.mark.parametrize("driver", DRIVERS)
def test_all_questions_of_a_delegate_are_there_at_once(driver: str) -> None:
    team = waiting_team(deleting("/tmp/a", "/tmp/b"), "coder")
    _, result = team.ask(driver)

    assert [one.parameters["path"] for one in result.suspended] == ["/tmp/a", "/tmp/b"]
    assert {one.tool for one in result.suspended} == {"delegate_lead"}  # the call of this run that waits
    decisions = [{"target": one.id} for one in result.suspended]
    session = saved_and_loaded(result.session)
    _, result = team.ask(driver, messages=(), session=session, decisions=decisions)

    assert team.sent("coder")[-2:] == ["/tmp/a is gone", "/tmp/b is gone"]
    assert (result.text, result.suspended) == ("Done.", ())


def test_the_questions_of_a_delegate_may_be_decided_one_by_one_in_any_order() -> None:
    team = waiting_team(deleting("/tmp/a", "/tmp/b", "/tmp/c"), "coder")
    _, result = team.ask()
    ids = {one.parameters["path"]: one.id for one in result.suspended}
    assert len(ids) == 3

    for path in ("/tmp/b", "/tmp/c", "/tmp/a"):
        left = {one.parameters["path"]: one.id for one in result.suspended}
        assert left == {other: ids[other] for other in left}  # a question keeps its id until it is decided
        decisions = [{"target": ids.pop(path), "approved": path != "/tmp/c", "reason": "keep it"}]
        _, result = team.ask(messages=(), session=saved_and_loaded(result.session), decisions=decisions)
        assert len(result.suspended) == len(ids)

    *done, refused = sorted(team.sent("coder")[-3:])
    assert done == ["/tmp/a is gone", "/tmp/b is gone"]
    assert "keep it" in refused
    assert result.text == "Done."


def test_a_decision_about_a_call_with_several_questions_has_to_name_one() -> None:
    team = waiting_team(deleting("/tmp/a", "/tmp/b"), "coder")
    _, result = team.ask()
    call_id = result.suspended[0].call_id

    with pytest.raises(DecisionError, match="waits for several decisions: name one of"):
        team.ask(messages=(), session=result.session, decisions=[{"target": call_id}])


def test_a_conversation_that_goes_on_without_decisions_answers_the_call_once() -> None:
    team = waiting_team(deleting("/tmp/a", "/tmp/b"), "coder")
    _, result = team.ask()

    _, result = team.ask(messages="Never mind.", session=result.session)

    answers = [message for message in result.session.messages if message.role == "tool"]
    assert [message.content for message in answers] == [
        "Error: the call was not run: nobody decided about it"
    ]


@pytest.mark.parametrize("driver", DRIVERS)
def test_two_delegates_that_wait_at_once_are_decided_in_any_order(driver: str) -> None:
    team = Team(
        {
            "boss": [handing("one", "two"), "Done."],
            "one": [deleting("/tmp/1", "/tmp/11"), "one"],
            "two": [deleting("/tmp/2", "/tmp/22"), "two"],
        },
        boss={"delegates": ("one", "two")},
        one={"plugin_ids": ("asking",)},
        two={"plugin_ids": ("asking",)},
    )
    team.builder.with_plugin("asking", Asking()).with_tool("delete", delete)
    _, result = team.ask(driver)

    asked = []
    while result.suspended:
        last = result.suspended[-1]
        asked.append(last.parameters["path"])
        ids = [one.id for one in result.suspended]
        assert len(set(ids)) == len(ids)
        decisions = [{"target": last.id}]
        _, result = team.ask(driver, messages=(), session=result.session, decisions=decisions)

    assert sorted(asked) == ["/tmp/1", "/tmp/11", "/tmp/2", "/tmp/22"]
    assert sorted(tool_message.content for tool_message in result.session.messages
                  if tool_message.role == "tool") == ["one", "two"]  # fmt: skip
    assert result.text == "Done."


def test_a_value_that_does_not_fit_the_question_of_a_delegate_is_refused_and_the_run_still_waits() -> None:
    team = waiting_team(deleting("/tmp/a"), "coder")
    _, waiting = team.ask()
    target = waiting.suspended[0].id

    with pytest.raises(ValueError, match="does not fit"):
        team.ask(messages=(), session=waiting.session, decisions=[{"target": target, "value": "maybe"}])

    _, result = team.ask(messages=(), session=waiting.session, decisions=[{"target": target, "value": "yes"}])
    assert result.text == "Done."


def test_a_tool_of_a_delegate_may_ask_and_is_handed_the_answer() -> None:
    def choose(context: dict[str, Any]) -> str:
        """Choose a colour."""
        decision = context.get("decision")
        if decision is None:
            raise ToolSuspended("Which colour?")
        return f"chosen: {decision.value}"

    team = Team(
        {"boss": [handing("coder"), "Done."], "coder": [Reply(tool_calls=[ToolCall("choose")]), "coder"]},
        boss={"delegates": ("coder",)},
    )
    team.builder.with_tool("choose", choose)
    _, waiting = team.ask()

    decisions = [{"target": waiting.suspended[0].id, "value": "blue"}]
    _, result = team.ask(messages=(), session=saved_and_loaded(waiting.session), decisions=decisions)

    assert team.sent("coder")[-1] == "chosen: blue" and result.text == "Done."


# Several at once


@pytest.mark.parametrize("driver", DRIVERS)
def test_delegates_of_one_answer_work_at_the_same_time(driver: str) -> None:
    class Meeting:
        """A tool that returns when both are there; in threads or in tasks."""

        name = "meet"
        version = "1"

        def __init__(self) -> None:
            self.barrier = threading.Barrier(2, timeout=TOO_LONG)

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return [{"type": "function", "function": {"name": "meet", "parameters": {"type": "object"}}}]

        def execute_tool(self, _name: str, _arguments: Any) -> dict[str, Any]:
            self.barrier.wait()
            return {"success": True, "result": "met"}

    meeting = Reply(tool_calls=[ToolCall("meet")])
    team = Team(
        {
            "boss": [handing("one", "two"), "Done."],
            "one": [meeting, said("first", output_tokens=1)],
            "two": [meeting, said("second", output_tokens=2)],
        },
        boss={"delegates": ("one", "two")},
    )
    team.builder.with_tool("meet", Meeting())

    events, result = team.ask(driver)

    assert tool_messages(result) == ["first", "second"]
    assert result.usage.output_tokens == 3
    calls_of_parts = {event["call_id"] for event in events if event["type"] == "tool_call_partial"}
    assert calls_of_parts in (set(), {"call_1", "call_2"})


@pytest.mark.parametrize("driver", DRIVERS)
def test_one_agent_may_be_asked_twice_at_once(driver: str) -> None:
    team = Team(
        {"boss": [handing("coder", "coder"), "Done."], "coder": ["same", "same"]},
        boss={"delegates": ("coder",)},
    )

    _, result = team.ask(driver)

    assert tool_messages(result) == ["same", "same"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_cancelling_reaches_all_that_work_at_once(driver: str) -> None:
    token, asked = Cancellation(), list[int]()

    def hang(_native: Any) -> Reply:
        asked.append(1)
        if len(asked) == 2:
            token.cancel()
        return Reply(text="late", delay=TOO_LONG)

    team = Team(
        {"boss": [handing("one", "two"), "never"], "one": [hang], "two": [hang]},
        boss={"delegates": ("one", "two")},
    )

    _, result = team.ask(driver, cancellation=token)

    assert result.reason.code == "cancelled"
    # A run need not wait until its providers have heard of it, in whatever thread cancels.
    until = time.monotonic() + 60
    while not all(team.models[name].cancelled for name in ("one", "two")) and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert [len(team.models[name].cancelled) for name in ("one", "two")] == [1, 1]
    assert len(tool_messages(result)) == 2


# What cannot be


def build_errors(*specs: AgentSpec) -> list[Exception]:
    builder = AgentRuntimeBuilder().with_agent_specs(specs).with_provider("scripted", ScriptedProvider())
    with pytest.raises(BuildError) as caught:
        builder.with_model(ModelSpec("m", "scripted")).build()
    return [problem.error for problem in caught.value.errors]


def test_agents_that_delegate_in_a_circle_are_refused_with_the_way() -> None:
    errors = build_errors(
        AgentSpec("a", "m", delegates=("b",)),
        AgentSpec("b", "m", delegates=("c",)),
        AgentSpec("c", "m", delegates=("b",)),
    )

    cycles = [error for error in errors if isinstance(error, DelegateCycle)]
    assert [cycle.path for cycle in cycles] == [("a", "b", "c", "b"), ("b", "c", "b"), ("c", "b", "c")]
    assert str(cycles[0]) == (
        "Agent 'a': its delegates form a circle: a → b → c → b; remove one of these delegations"
    )


def test_an_agent_cannot_delegate_to_itself() -> None:
    (error,) = build_errors(AgentSpec("a", "m", delegates=("a",)))

    assert isinstance(error, DelegateCycle) and error.path == ("a", "a")


def line(length: int) -> list[AgentSpec]:
    return [
        AgentSpec(f"a{place}", "m", delegates=(f"a{place + 1}",) if place + 1 < length else ())
        for place in range(length)
    ]


def test_a_line_of_delegates_may_be_so_long_and_no_longer() -> None:
    builder = AgentRuntimeBuilder().with_agent_specs(line(MOST_DEPTH)).with_model(ModelSpec("m", "scripted"))
    builder.with_provider("scripted", ScriptedProvider()).build()

    (error,) = build_errors(*line(MOST_DEPTH + 1))

    assert isinstance(error, DelegateCycle) and f"deeper than {MOST_DEPTH}" in str(error)
    assert error.agent_id == "a0" and len(error.path) == MOST_DEPTH + 1


def test_a_delegate_that_is_not_declared_is_named() -> None:
    (error,) = build_errors(AgentSpec("boss", "m", delegates=("codr",)), AgentSpec("coder", "m"))

    assert isinstance(error, AgentNotFound)
    assert str(error) == "Agent 'boss': delegate 'codr' is not declared; did you mean 'coder'?"


def test_two_agents_may_share_a_delegate() -> None:
    specs = [
        AgentSpec("a", "m", delegates=("b", "c")),
        AgentSpec("b", "m", delegates=("d",)),
        AgentSpec("c", "m", delegates=("d",)),
        AgentSpec("d", "m"),
    ]
    builder = AgentRuntimeBuilder().with_agent_specs(specs).with_model(ModelSpec("m", "scripted"))

    assert builder.with_provider("scripted", ScriptedProvider()).build().resolve("a").spec.id == "a"


def test_a_circle_that_arises_while_the_runtime_is_in_use_is_refused_at_the_next_run() -> None:
    team = Team({"boss": ["never"], "coder": ["never"]}, boss={"delegates": ("coder",)})
    runtime = team.runtime
    runtime.registries.agents.replace("coder", AgentSpec("coder", "model of coder", delegates=("boss",)))

    with pytest.raises(DelegateCycle):
        runtime.run_to_completion(RunRequest("boss", "Hello."))


def test_a_delegate_knows_who_delegated_to_it() -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []

    class Knowing:
        name = "knowing"
        version = "1"

        def register(self, registrar: PluginRegistrar) -> None:
            registrar.phase_hook("run_start", self._look)

        def _look(self, view: PhaseView) -> Command | None:
            seen.append((view.run.agent_id, view.run.parents))
            return None

    team = Team(
        {"boss": [handing("lead"), "Done."], "lead": [handing("coder"), "lead"], "coder": ["coder"]},
        boss={"delegates": ("lead",), "plugin_ids": ("knowing",)},
        lead={"delegates": ("coder",), "plugin_ids": ("knowing",)},
        coder={"plugin_ids": ("knowing",)},
    )
    team.builder.with_plugin("knowing", Knowing())
    team.ask()

    assert seen == [("boss", ()), ("lead", ("boss",)), ("coder", ("boss", "lead"))]


# What goes down, and what comes up


def test_the_context_of_a_request_reaches_delegates_and_those_below_them() -> None:
    heard: list[Any] = []

    def note(context: Any) -> str:
        """Note who asked."""
        heard.append((context["run"].agent_id, context["user"], context.get("core") is not None))
        return "noted"

    team = Team(
        {
            "boss": [handing("lead"), "Thanks."],
            "lead": [handing("coder"), "Passed on."],
            "coder": [Reply(tool_calls=[ToolCall("note")]), "Done."],
        },
        boss={"delegates": ("lead",)},
        lead={"delegates": ("coder",)},
    )
    team.builder.with_tool("note", note)

    team.ask(context={"user": "ada"})

    assert heard == [("coder", "ada", True)]


def test_a_delegate_whose_tool_fails_goes_on_and_then_hands_over_its_result() -> None:
    tries: list[int] = []

    def submit() -> str:
        """Submit."""
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not yet")
        return "42"

    submitting = Reply(text="Submitting.", tool_calls=[ToolCall("submit")])
    team = Team(
        {"boss": [handing("coder"), "Thanks."], "coder": [submitting, submitting, "never"]},
        boss={"delegates": ("coder",)},
        coder={"stop_conditions": (StopOnTool(("submit",)),)},
    )
    team.builder.with_tool("submit", submit)

    _, result = team.ask()

    assert len(tries) == 2
    assert tool_messages(result) == ["42"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_delegate_whose_call_a_person_refuses_is_not_run(driver: str) -> None:
    class Guard:
        name = "guard"

        def register(self, registrar: PluginRegistrar) -> None:
            registrar.tool_gate(lambda view: Suspend("May I ask the coder?"))

    team = Team(
        {"boss": [handing("coder"), "A pity."], "coder": ["never"]},
        boss={"delegates": ("coder",), "plugin_ids": ("guard",)},
    )
    team.builder.with_plugin("guard", Guard)
    _, result = team.ask(driver)

    decisions = [{"target": result.suspended[0].id, "approved": False, "reason": "too dear"}]
    _, result = team.ask(driver, messages=(), session=result.session, decisions=decisions)

    assert team.models["coder"].requests == []
    assert tool_messages(result) == ["Error: the call was refused: too dear"]

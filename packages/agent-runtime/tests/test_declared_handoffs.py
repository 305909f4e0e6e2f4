"""Declared agents that hand a conversation over to each other."""

from __future__ import annotations

import json
from itertools import repeat
from typing import Any

import pytest

from agent_core import Session
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    AgentNotFound,
    AgentRuntime,
    AgentRuntimeBuilder,
    AgentSpec,
    BuildError,
    Checkpoint,
    DelegateCycle,
    HandoffSpec,
    ModelSpec,
    RemoteAgentNotDirectlyRunnable,
    RunRequest,
    SpecError,
    Suspend,
    ToolIdConflict,
    UsageLimits,
)
from agent_runtime.handoffs import HandoffPlugin
from agent_runtime.testing import ManualClock

USED = {"input_tokens": 1, "output_tokens": 1}


def to(agent: str) -> Reply:
    return Reply(tool_calls=[ToolCall(f"transfer_to_{agent}")], usage=USED)


DONE = Reply(chunks=["Your money ", "is back."], usage=USED)


class Desk:
    """Agents with a scripted model each; the fields of their declarations by agent."""

    def __init__(self, scripts: dict[str, Any], **specs: dict[str, Any]) -> None:
        self.models = {name: ScriptedProvider(script, name=name) for name, script in scripts.items()}
        self.clock = ManualClock()
        self.builder = AgentRuntimeBuilder().with_clock(self.clock)
        for name, provider in self.models.items():
            self.builder.with_provider(name, provider)
            self.builder.with_model({"id": f"model of {name}", "provider": name})
            self.builder.with_agent_spec({"id": name, "model": f"model of {name}", **specs.get(name, {})})

    def build(self) -> AgentRuntime:
        return self.builder.build()

    def sent(self, name: str, request: int = -1) -> list[str]:
        return [item["content"] for item in self.models[name].requests[request].native_messages]


def problem(builder: AgentRuntimeBuilder, kind: type[Exception]) -> Exception:
    with pytest.raises(BuildError) as caught:
        builder.build()
    return next(one.error for one in caught.value.errors if isinstance(one.error, kind))


def test_the_other_agent_goes_on_with_the_conversation_as_one_run(drive: Any) -> None:
    desk = Desk(
        {"desk": [to("refunds")], "refunds": [DONE]},
        desk={"handoffs": ["refunds"]},
        refunds={"system_prompt": "You pay back.", "description": "Pays back."},
    )

    events, result = drive(desk.build(), RunRequest("desk", "Money back.", run_id="r"))

    assert (result.text, result.agent, result.rounds, result.run_id) == (
        "Your money is back.",
        "refunds",
        2,
        "r",
    )
    assert result.usage.total_tokens == 4
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert desk.sent("refunds") == [
        "You pay back.",
        "Money back.",
        "",
        "The conversation is now with the agent refunds.",
    ]
    if events:
        kinds = [event["type"] for event in events]
        assert [kinds.count(kind) for kind in ("run_start", "run_end", "handoff")] == [1, 1, 1]
        assert events[-1]["usage"]["total_tokens"] == 4


def test_a_declaration_says_what_the_other_agent_sees_and_how_the_tool_is_called() -> None:
    handoff = {"agent": "refunds", "sees": "without_tools", "tool_name": "pay_back", "description": "Money."}
    first = [Reply(tool_calls=[ToolCall("look")]), Reply(tool_calls=[ToolCall("pay_back")])]
    desk = Desk({"desk": first, "refunds": [DONE]}, desk={"handoffs": [handoff]})
    desk.builder.with_tool("look", lambda: "seen")

    runtime = desk.build()
    result = runtime.run_to_completion(RunRequest("desk", "Money back."))

    described = {tool.name: tool.description for tool in runtime.resolve("desk").descriptors}
    assert described["pay_back"] == "Hand the conversation over to the agent refunds. Money."
    assert desk.sent("refunds") == ["Money back."]
    assert len(result.session.messages) == 6  # all of it is kept


def test_agents_may_hand_back_and_are_stopped_if_they_do_so_for_ever() -> None:
    specs = {"desk": {"handoffs": ["refunds"]}, "refunds": {"handoffs": ["desk"]}}
    fine = Desk({"desk": [to("refunds"), "All done."], "refunds": [to("desk")]}, **specs)
    endless = Desk({"desk": repeat(to("refunds")), "refunds": repeat(to("desk"))}, **specs)

    assert fine.build().run_to_completion(RunRequest("desk", "Hi.")).text == "All done."
    result = endless.build().run_to_completion(RunRequest("desk", "Hi."))
    assert result.reason.code == "max_handoffs"
    assert result.usage.requests == 17


def test_limits_and_time_are_those_of_the_whole_run() -> None:
    def wait() -> str:
        desk.clock.advance(40)
        return "waited"

    script = repeat(Reply(tool_calls=[ToolCall("wait")]))
    specs = {"desk": {"handoffs": ["refunds"]}}
    first = [Reply(tool_calls=[ToolCall("wait")]), to("refunds")]

    desk = Desk({"desk": first, "refunds": script}, **specs)
    desk.builder.with_tool("wait", wait)
    late = desk.build().run_to_completion(RunRequest("desk", "Hi.", timeout=100))
    assert (late.reason.code, late.agent) == ("timeout", "refunds")
    assert len(desk.models["refunds"].requests) == 2  # 40 seconds before, 60 are left

    desk = Desk({"desk": first, "refunds": script}, **specs)
    desk.builder.with_tool("wait", wait)
    result = desk.build().run_to_completion(RunRequest("desk", "Hi.", limits=UsageLimits(requests=4)))
    assert (result.reason.code, result.usage.requests) == ("usage_limit", 4)


def test_a_model_that_a_request_asks_for_is_that_of_the_first_agent() -> None:
    desk = Desk({"desk": [to("refunds")], "refunds": [DONE]}, desk={"handoffs": ["refunds"]})

    desk.build().run_to_completion(RunRequest("desk", "Hi.", config={"model": "other", "temperature": 0.5}))

    configs = [desk.models[name].requests[0].config for name in ("desk", "refunds")]
    assert [config.get("model") for config in configs] == ["other", None]
    assert [config.get("temperature") for config in configs] == [0.5, 0.5]


def test_a_delegate_may_hand_over_and_its_successor_answers() -> None:
    task = Reply(tool_calls=[ToolCall("delegate_desk", {"prompt": "Money back."})])
    desk = Desk(
        {"boss": [task, "Done."], "desk": [to("refunds")], "refunds": [DONE]},
        boss={"delegates": ["desk"]},
        desk={"handoffs": ["refunds"]},
    )

    result = desk.build().run_to_completion(RunRequest("boss", "Hi."))

    assert result.messages[2]["content"] == "Your money is back."


class Asks:
    name, version = "asks", "1"

    def register(self, registrar: Any) -> None:
        registrar.tool_gate(
            lambda view: Suspend("Pay?") if view.call.name == "pay" and not view.call.decision else None
        )


def test_a_run_that_waits_after_a_handoff_goes_on_there_in_another_process() -> None:
    def make() -> Desk:
        desk = Desk(
            {"desk": [to("refunds")], "refunds": [Reply(tool_calls=[ToolCall("pay")], usage=USED), DONE]},
            desk={"handoffs": [{"agent": "refunds", "sees": "without_tools"}]},
            refunds={"plugin_ids": ["asks"]},
        )
        desk.builder.with_tool("pay", lambda: "paid").with_plugin("asks", Asks())
        return desk

    waiting = make().build().run_to_completion(RunRequest("desk", "Money back."))
    session = Session.from_dict(json.loads(json.dumps(waiting.session.to_dict())))
    other = make()
    next(other.models["refunds"]._script)
    decisions = [{"target": waiting.suspended[0].id}]
    done = other.build().run_to_completion(RunRequest("desk", session=session, decisions=decisions))

    assert (waiting.agent, done.agent, done.text) == ("refunds", "refunds", "Your money is back.")
    assert other.models["desk"].requests == []
    assert other.sent("refunds") == ["Money back.", "", "paid"]  # the filter holds there, too
    assert (done.usage.requests, done.rounds, len(done.added)) == (3, 3, len(done.session.messages))


KEPT = ["input", "answer", "intent", "result", "result", "input", "answer", "end"]


@pytest.mark.parametrize("last", range(1, 6))
def test_a_run_that_broke_off_around_a_handoff_goes_on_with_the_right_agent(last: int) -> None:
    kept: list[Checkpoint] = []
    specs = {"desk": {"handoffs": ["refunds"]}}
    first = Desk({"desk": [to("refunds")], "refunds": [DONE]}, **specs)
    request = RunRequest("desk", "Money back.", run_id="r", resumable=True, checkpoint=kept.append)
    first.build().run_to_completion(request)
    assert [one.kind for one in kept] == KEPT
    left = kept[last].session

    second = Desk({"desk": [], "refunds": [DONE]}, **specs)
    session = Session.from_dict(json.loads(json.dumps(left.to_dict())))
    done = second.build().run_to_completion(
        RunRequest("desk", session=session, run_id="r", resumable=True, checkpoint=kept.append)
    )

    assert (done.agent, done.text) == ("refunds", "Your money is back.")
    assert done.usage.requests == 2
    assert [message["role"] for message in done.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("permissions", "end"),
    [
        ({"default": "ask"}, "natural_end"),
        ({"default": "ask", "ask": ["transfer_*"]}, "suspended"),
        ({"default": "deny", "on_ask": "deny"}, "error"),
        ({"default": "allow", "deny": ["transfer_to_refunds"]}, "error"),
    ],
)
def test_handing_over_needs_no_approval_unless_a_rule_says_so(permissions: dict[str, Any], end: str) -> None:
    desk = Desk(
        {"desk": [to("refunds")], "refunds": [DONE]},
        desk={"handoffs": ["refunds"], "sections": {"permissions": permissions}},
    )

    result = desk.build().run_to_completion(RunRequest("desk", "Money back."))

    assert result.reason.code == end  # a refused handoff is read by the desk, whose script is at its end
    assert len(desk.models["refunds"].requests) == (end == "natural_end")


# What cannot be


def test_a_handoff_to_an_agent_that_is_not_declared_is_refused_with_the_nearest() -> None:
    desk = Desk({"desk": [], "refunds": []}, desk={"handoffs": ["refund"]})

    error = problem(desk.builder, AgentNotFound)

    assert "handoff 'refund' is not declared" in str(error)
    assert "refunds" in str(error)


def test_a_remote_agent_cannot_take_over() -> None:
    desk = Desk({"desk": []}, desk={"handoffs": ["far"]})
    desk.builder.with_agent_spec({"id": "far", "endpoint": "https://agents.example"})

    error = problem(desk.builder, RemoteAgentNotDirectlyRunnable)

    assert str(error) == (
        "Agent 'desk': handoff 'far' lives at https://agents.example, and a remote agent cannot take over; "
        "list 'far' among the delegates instead"
    )


def test_two_tools_of_one_name_are_refused_with_both_owners() -> None:
    desk = Desk({"desk": [], "refunds": []}, desk={"handoffs": ["refunds"]})
    desk.builder.with_tool("transfer_to_refunds", lambda: "no")

    error = problem(desk.builder, ToolIdConflict)

    assert "handoff 'refunds'" in str(error)


def test_a_circle_of_delegates_through_a_handoff_is_refused() -> None:
    desk = Desk(
        {"boss": [], "desk": [], "refunds": []},
        boss={"delegates": ["desk"]},
        desk={"handoffs": ["refunds"]},
        refunds={"delegates": ["boss"]},
    )

    error = problem(desk.builder, DelegateCycle)

    assert "boss → desk → refunds → boss" in str(error)


@pytest.mark.parametrize(
    ("handoffs", "field", "words"),
    [
        (["desk"], "handoffs[0]", "an agent cannot hand over to itself"),
        (["a", {"agent": "a"}], "handoffs[1]", "it is in the list already"),
        ([{"agent": "a", "sees": "half"}], "handoffs[0].sees", 'must be "all" or "without_tools"'),
        ([{"agent": "a", "tool_name": "a b"}], "handoffs[0].tool_name", "letters, digits"),
        ([{"agent": "a", "see": "all"}], "handoffs[0].see", "sees"),
        ([3], "handoffs[0]", "must be a mapping"),
        ("a", "handoffs", "must be a list"),
    ],
)
def test_a_declaration_that_cannot_be_names_the_field(handoffs: Any, field: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        AgentSpec.from_dict({"id": "desk", "model": "m", "handoffs": handoffs})

    assert caught.value.field == field
    assert words in str(caught.value)


def test_the_dict_form_comes_back_as_it_was() -> None:
    spec = AgentSpec("desk", "m", handoffs=("a", HandoffSpec("b", sees="without_tools")))  # type: ignore[arg-type]

    assert spec.to_dict()["handoffs"] == [{"agent": "a"}, {"agent": "b", "sees": "without_tools"}]
    assert AgentSpec.from_dict(spec.to_dict()) == spec


def test_an_agent_without_handoffs_has_nothing_of_it() -> None:
    runtime = (
        AgentRuntimeBuilder()
        .with_provider("p", ScriptedProvider([]))
        .with_model(ModelSpec("m", "p"))
        .with_agent_spec(AgentSpec("a", "m"))
        .build()
    )

    plugins = runtime.resolve("a").env.plugins
    assert not any(isinstance(plugin, HandoffPlugin) for plugin in plugins)

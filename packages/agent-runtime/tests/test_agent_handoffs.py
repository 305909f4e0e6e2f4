"""Agents that hand a conversation over to each other."""

from __future__ import annotations

import asyncio
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest

from agent_core import ArgumentError
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, Handoff, LimitReached, RunContext, Suspend, UsageLimits, without_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core import Message

HAND_OVER = Reply(tool_calls=[ToolCall("transfer_to_refunds")], usage={"input_tokens": 1, "output_tokens": 1})
DONE = Reply(chunks=["Your money ", "is back."], usage={"input_tokens": 2, "output_tokens": 2})


def desk(refunds: Agent[Any, Any] | Handoff, *first: Any, **options: Any) -> Agent[Any, str]:
    return Agent(ScriptedProvider([*first, HAND_OVER]), name="desk", handoffs=[refunds], **options)


def test_the_other_agent_goes_on_with_the_conversation_as_one_run() -> None:
    provider = ScriptedProvider([DONE])
    refunds = Agent(provider, name="refunds", description="Pays back.", instructions="You pay back.")
    agent = desk(refunds)

    stream = agent.stream("I want my money back.", run_id="r")
    events = list(stream)

    kinds = [event["type"] for event in events]
    assert (kinds.count("run_start"), kinds.count("run_end"), kinds.count("handoff")) == (1, 1, 1)
    assert [event for event in events if event["type"] == "handoff"] == [
        {"type": "handoff", "from_agent": "desk", "to_agent": "refunds"}
    ]
    assert [event["text"] for event in events if event["type"] == "text"] == ["Your money ", "is back."]
    result = stream.result
    assert result is not None
    assert (result.output, result.agent, result.rounds, result.run_id) == (
        "Your money is back.",
        "refunds",
        2,
        "r",
    )
    assert (result.usage.total_tokens, events[-1]["usage"]["total_tokens"]) == (6, 6)  # type: ignore[typeddict-item]
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    seen = [item["content"] for item in provider.requests[0].native_messages]
    assert seen == [
        "You pay back.",
        "I want my money back.",
        "",
        "The conversation is now with the agent refunds.",
    ]


def test_the_tool_says_whom_it_hands_over_to() -> None:
    agent = desk(Agent(ScriptedProvider([DONE]), name="refunds", description="Pays back."))

    [tool] = agent.runtime.resolve("desk").descriptors
    assert tool.name == "transfer_to_refunds"
    assert tool.description == "Hand the conversation over to the agent refunds. Pays back."


def test_dependencies_and_limits_go_along() -> None:
    seen: list[str] = []
    script = repeat(Reply(tool_calls=[ToolCall("pay")]))
    refunds = Agent(ScriptedProvider(script), name="refunds", deps_type=str)

    @refunds.tool
    def pay(ctx: RunContext[str]) -> str:
        seen.append(ctx.deps)
        return "paid"

    with pytest.raises(LimitReached, match="requests is at 2, of 2 allowed") as caught:
        desk(refunds).run("Hi.", deps="Ada", limits=UsageLimits(requests=3))

    assert seen == ["Ada"]
    assert caught.value.result.usage.requests == 3


def test_a_filter_decides_what_the_other_agent_sees() -> None:
    provider = ScriptedProvider([DONE])
    refunds = Agent(provider, name="refunds")

    def look() -> str:
        return "seen"

    agent = desk(Handoff(refunds, sees=without_tools), Reply(tool_calls=[ToolCall("look")]), tools=[look])

    result = agent.run("Money back.")

    assert [item["content"] for item in provider.requests[0].native_messages] == ["Money back."]
    assert len(result.session.messages) == 6  # all of it is kept


def test_agents_may_hand_back_and_are_stopped_if_they_do_so_for_ever() -> None:
    there = Reply(tool_calls=[ToolCall("transfer_to_refunds")])
    back = Reply(tool_calls=[ToolCall("transfer_to_desk")])
    refunds = Agent(ScriptedProvider([back]), name="refunds")
    first = Agent(ScriptedProvider([there, "All done."]), name="desk", handoffs=[refunds])
    refunds.handoffs.append(first)

    assert first.run("Hi.").agent == "desk"

    one = Agent(ScriptedProvider(repeat(back)), name="refunds")
    two = Agent(ScriptedProvider(repeat(there)), name="desk", handoffs=[one])
    one.handoffs.append(two)
    with pytest.raises(LimitReached, match="handed over 16 times"):
        two.run("Hi.")


def test_a_run_that_waits_after_a_handoff_goes_on_with_the_agent_that_waits() -> None:
    class Asks:
        name, version = "asks", "1"

        def register(self, registrar: Any) -> None:
            registrar.tool_gate(lambda view: None if view.call.decision else Suspend("Pay?"))

    def pay() -> str:
        return "paid"

    refunds = Agent(
        ScriptedProvider([Reply(tool_calls=[ToolCall("pay")]), DONE]),
        name="refunds",
        tools=[pay],
        plugins={"asks": Asks()},
    )
    agent = desk(refunds)

    waiting = agent.run("Money back.")
    done = agent.run(session=waiting.session, decisions=[{"target": waiting.suspended[0].id}])

    assert (waiting.agent, done.agent, done.output) == ("refunds", "refunds", "Your money is back.")


def test_the_output_is_that_of_the_agent_that_ended_the_run() -> None:
    refunds = Agent(
        ScriptedProvider([Reply(tool_calls=[ToolCall("final_result", {"response": 3})])]),
        name="refunds",
        output_type=int,
    )

    assert desk(refunds).run("Hi.").output == 3  # type: ignore[comparison-overlap]


def test_it_works_on_an_event_loop() -> None:
    result = asyncio.run(desk(Agent(ScriptedProvider([DONE]), name="refunds")).run_async("Hi."))

    assert result.output == "Your money is back."


def test_two_agents_of_one_name_are_refused() -> None:
    agent = desk(Agent(ScriptedProvider([DONE]), name="desk"))

    with pytest.raises(ArgumentError, match="two agents that hand over are called 'desk'"):
        agent.run("Hi.")


def test_a_filter_may_be_any_function() -> None:
    provider = ScriptedProvider([DONE])

    def last(messages: Sequence[Message]) -> Sequence[Message]:
        return messages[:1]

    desk(Handoff(Agent(provider, name="refunds"), sees=last)).run("Hi.")

    assert len(provider.requests[0].native_messages) == 1


def test_only_the_first_of_two_handoffs_at_once_happens() -> None:
    refunds = Agent(ScriptedProvider([DONE]), name="refunds")
    sales = Agent(ScriptedProvider([]), name="sales")
    both = Reply(tool_calls=[ToolCall("transfer_to_refunds"), ToolCall("transfer_to_sales")])

    result = Agent(ScriptedProvider([both]), handoffs=[refunds, sales]).run("Money.")

    assert result.agent == "refunds"
    told = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert told[0] == "The conversation is now with the agent refunds."
    assert "the conversation goes to the agent refunds" in told[1]


def test_a_guardrail_of_the_agent_that_takes_over_reads_what_the_user_said() -> None:
    read: list[str] = []
    refunds = Agent(ScriptedProvider([DONE]), name="refunds")

    @refunds.input_guardrail
    def note(text: str) -> str | None:
        read.append(text)
        return None

    desk(refunds).run("I want my money back.")

    assert read == ["I want my money back."]

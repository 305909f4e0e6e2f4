"""How `Agent` looks to the type checker of its user: mypy and pyright read this file, and then it is run.

The wrong uses are marked with `type: ignore`. mypy reports an ignore that is not needed, so each of them is
known to be noticed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_type

from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, ModelRetry, RunContext, RunResult, RunStream, UsageLimits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_core.events import RunEvent


@dataclass
class Deps:
    limit: int


@dataclass
class Invoice:
    total: int


@dataclass
class Refusal:
    why: str


def model(*replies: Any) -> ScriptedProvider:
    return ScriptedProvider(replies)


def given(**arguments: Any) -> Reply:
    return Reply(tool_calls=[ToolCall("final_result", arguments)])


plain = Agent(model("Hi."))
typed = Agent(model(given(total=3)), output_type=Invoice)
both = Agent(model(given(total=3)), output_type=Invoice, deps_type=Deps, limits=UsageLimits(tool_calls=3))
either = Agent(
    model(Reply(tool_calls=[ToolCall("final_result_Refusal", {"why": "no"})])), output_type=[Invoice, Refusal]
)


@both.tool
def over(ctx: RunContext[Deps], amount: int) -> bool:
    return amount > ctx.deps.limit


@both.tool
def now() -> str:
    return "now"


@both.tool
def double(number: int, times: int = 2) -> int:
    return number * times


@both.tool(retries=2)
async def later(ctx: RunContext[Deps]) -> str:
    return "later"


@both.instructions
def who_you_are(ctx: RunContext[Deps]) -> str:
    return f"The limit is {ctx.deps.limit}."


@both.output_validator
def positive(ctx: RunContext[Deps], invoice: Invoice) -> Invoice:
    if invoice.total < 0:
        raise ModelRetry("the total must not be negative")
    return invoice


@both.instructions
async def what_day_it_is() -> str:
    return "It is Monday."


@both.input_guardrail
def polite(ctx: RunContext[Deps], text: str) -> str | None:
    return None


@both.input_guardrail(parallel=True)
async def short(text: str) -> str | None:
    return None


def wrong_uses() -> Iterator[object]:
    """Never run: what a type checker must refuse."""
    yield both.run("Hello.")  # type: ignore[call-arg]  # no dependencies
    yield both.run("Hello.", deps=3)  # type: ignore[arg-type]  # not Deps
    yield plain.run("Hello.", deps=Deps(3))  # type: ignore[call-overload]  # takes none
    yield plain.run("Hello.", sesion=None)  # type: ignore[call-overload]  # misspelt
    yield plain.run("Hello.", session="abc")  # type: ignore[call-overload]  # no Session
    yield Agent("local", system="You add.")  # type: ignore[call-overload]
    yield Agent("local", api_key="secret")  # type: ignore[call-overload]
    yield Agent("local", tools=double.__wrapped__)  # type: ignore[call-overload]
    yield Agent("local", limits=3)  # type: ignore[call-overload]
    yield typed.run("Hello.").output.amount  # type: ignore[attr-defined]
    yield Agent("local", output_type=Invoice, output_mode="json")  # type: ignore[call-overload]
    yield Agent("local", handoffs=["refunds"])  # type: ignore[list-item]
    yield UsageLimits(request_limit=3)  # type: ignore[call-arg]
    yield both.override(deps=3)  # type: ignore[call-overload]
    both.repl()  # type: ignore[call-arg]

    @both.tool  # type: ignore[arg-type]
    def reads_other_dependencies(ctx: RunContext[int], text: str) -> str:
        return text * ctx.deps

    @both.output_validator  # type: ignore[arg-type]
    def takes_another_output(ctx: RunContext[Deps], refusal: Refusal) -> Refusal:
        return refusal

    @both.output_guardrail  # type: ignore[arg-type]
    def looks_at_another_output(ctx: RunContext[Deps], refusal: Refusal) -> str | None:
        return refusal.why

    @both.tool(retries=2)  # type: ignore[arg-type]
    def reads_others_as_well(ctx: RunContext[int], text: str) -> str:
        return text * ctx.deps

    @both.instructions  # type: ignore[arg-type]
    def speaks_of_others(ctx: RunContext[int]) -> str:
        return str(ctx.deps)

    @both.instructions  # type: ignore[arg-type, type-var]
    def is_no_text() -> int:
        return 3

    @both.input_guardrail(parallel=True)  # type: ignore[arg-type]
    def guards_with_others(ctx: RunContext[int], text: str) -> str | None:
        return None

    @both.input_guardrail  # type: ignore[arg-type, type-var]
    def does_not_say_why(text: str) -> list[str]:
        return [text]

    yield reads_other_dependencies, takes_another_output, looks_at_another_output
    yield reads_others_as_well, speaks_of_others, is_no_text, guards_with_others, does_not_say_why


def test_the_output_has_the_type_that_was_asked_for() -> None:
    text = assert_type(plain.run("Hello."), RunResult[str])
    invoice = assert_type(typed.run("Hello."), RunResult[Invoice])
    checked = assert_type(both.run("Hello.", deps=Deps(3)), RunResult[Invoice])

    assert assert_type(text.output, str) == "Hi."
    assert assert_type(invoice.output, Invoice).total == 3
    assert checked.output.total == 3


def test_alternatives_are_told_apart() -> None:
    output = either.run("Hello.").output

    assert isinstance(output, Refusal)
    assert output.why == "no"


def test_an_output_may_be_what_is_no_class() -> None:
    union = Agent(
        model(Reply(tool_calls=[ToolCall("final_result_Invoice", {"total": 3})])),
        output_type=Invoice | Refusal,
    )
    named: Agent[Deps, Literal["yes", "no"]] = Agent(
        model(given(response="yes")), output_type=Literal["yes", "no"], deps_type=Deps
    )

    assert union.run("Hello.").output.total == 3
    assert assert_type(named.run("Hello.", deps=Deps(3)).output, Literal["yes", "no"]) == "yes"


def test_a_stream_and_steps_stay_what_they_are_in_a_block() -> None:
    with Agent(model(given(total=3)), output_type=Invoice).stream("Hello.") as stream:
        outputs = [assert_type(output, Invoice) for output in stream.outputs()]
    with Agent(model("Hi.")).iter("Hello.") as steps:
        texts = [assert_type(step.text, str) for step in steps]

    async def listen() -> list[str]:
        async with Agent(model("Hi.")).stream_async("Hello.") as words:
            return [assert_type(word, str) async for word in words.text()]

    assert outputs[-1].total == 3
    assert texts == asyncio.run(listen()) == ["Hi."]


def test_events_are_typed() -> None:
    stream = assert_type(Agent(model("Hi.")).stream("Hello."), RunStream[str])

    def said(event: RunEvent) -> str:
        return event["text"] if event["type"] == "text" else ""

    assert "".join(said(event) for event in stream) == "Hi."
    assert stream.result is not None
    assert assert_type(stream.result, RunResult[str]).output == "Hi."

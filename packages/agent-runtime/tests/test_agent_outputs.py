"""Outputs of a type: by a tool, by the provider's own way, by prompt; sent back, streamed, or missing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

import annotated_types
import msgspec
import pydantic
import pytest

from agent_core import ArgumentTypeError, ProviderError
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import (
    Agent,
    LimitReached,
    ModelRetry,
    OutputNotProduced,
    RunContext,
    Suspend,
    Usage,
    UsageLimits,
)
from agent_testing import ScriptedServer, chat_reply

if TYPE_CHECKING:
    from agent_testing import ServerReply


@dataclass
class Invoice:
    """An invoice."""

    number: str
    total: Annotated[float, annotated_types.Gt(0)]


class Model(pydantic.BaseModel):
    number: str
    total: float = pydantic.Field(gt=0)


class Struct(msgspec.Struct):
    number: str
    total: Annotated[float, msgspec.Meta(gt=0)]


class Dict(TypedDict):
    number: str
    total: Annotated[float, annotated_types.Gt(0)]


@dataclass
class Refusal:
    why: str


class Case(TypedDict):
    refusal: Refusal
    days: NotRequired[list[date]]
    before: NotRequired[Case]


GOOD, BAD = {"number": "A-1", "total": 3.5}, {"number": "A-1", "total": -1}


def final(arguments: Any = GOOD, name: str = "final_result") -> Reply:
    return Reply(tool_calls=[ToolCall(name, arguments)])


class Structured(ScriptedProvider):
    def get_tags(self, config: Any) -> list[str]:
        return ["tools", "structured_output"]


class Toolless(ScriptedProvider):
    def get_tags(self, config: Any) -> list[str]:
        return ["streaming"]


@pytest.mark.parametrize("kind", [Invoice, Model, Struct, Dict])
def test_an_output_of_any_record_is_made_and_checked(kind: Any) -> None:
    provider = ScriptedProvider([final(BAD), final()])
    result = Agent(provider, output_type=kind).run("Read this.")

    output = result.output
    number = output["number"] if isinstance(output, dict) else output.number
    assert (type(output), number) == (kind if kind is not Dict else dict, "A-1")
    assert (result.rounds, result.reason.code) == (2, "natural_end")
    told = provider.requests[1].native_messages[-1]["content"]
    assert "the answer was not accepted" in told
    offered = provider.requests[0].config["tools"][0]["function"]
    assert offered["name"] == "final_result" and "number" in offered["parameters"]["properties"]


@pytest.mark.parametrize(
    ("kind", "sent", "made"),
    [
        (int, 3, 3),
        (list[int], [1, 2], [1, 2]),
        (bool, False, False),
        (Literal["yes", "no"], "no", "no"),
        (dict[str, int], None, {"a": 1}),
    ],
)
def test_an_output_may_be_a_plain_value(kind: Any, sent: Any, made: Any) -> None:
    arguments = {"response": sent} if sent is not None else {"a": 1}

    assert Agent(ScriptedProvider([final(arguments)]), output_type=kind).run("Go.").output == made


@pytest.mark.parametrize("given", [[Invoice, Refusal], Invoice | Refusal])
def test_alternatives_have_a_tool_each(given: Any) -> None:
    provider = ScriptedProvider([final({"why": "blank"}, "final_result_Refusal")])

    result = Agent(provider, output_type=given).run("Read this.")

    assert result.output == Refusal("blank")
    names = [tool["function"]["name"] for tool in provider.requests[0].config["tools"]]
    assert names == ["final_result_Invoice", "final_result_Refusal"]


def test_text_may_be_one_of_the_alternatives() -> None:
    assert Agent(ScriptedProvider(["Which invoice?"]), output_type=[Invoice, str]).run("Read.").output == (
        "Which invoice?"
    )


def test_a_function_may_be_the_output() -> None:
    def book(ctx: RunContext[list[str]], number: str, total: float) -> str:
        """Book an invoice."""
        if total < 0:
            raise ModelRetry("a negative total cannot be booked")
        ctx.deps.append(number)
        return f"booked {number}"

    booked: list[str] = []
    provider = ScriptedProvider([final(BAD), final({"number": 3}), final()])
    agent = Agent(provider, output_type=book, deps_type=list)

    assert agent.run("Go.", deps=booked).output == "booked A-1"
    assert booked == ["A-1"]
    told = [request.native_messages[-1]["content"] for request in provider.requests[1:]]
    assert "a negative total cannot be booked" in told[0]
    assert "number" in told[1]


def test_an_async_function_may_be_the_output() -> None:
    async def book(number: str, total: float) -> str:
        return f"booked {number}"

    agent = Agent(ScriptedProvider([final(), final()]), output_type=book)

    assert agent.run("Go.").output == "booked A-1"
    assert asyncio.run(agent.run_async("Go.")).output == "booked A-1"


@pytest.mark.parametrize("provider", [Structured, Toolless])
def test_a_model_gives_its_output_the_best_way_it_can(provider: Any) -> None:
    model = provider(['{"number": "A-1", "total": -1}', 'Here: ```json\n{"number": "A-1", "total": 2}\n```'])

    assert Agent(model, output_type=Invoice).run("Read this.").output == Invoice("A-1", 2)
    first, second = model.requests
    assert first.config.get("tools") in (None, [])
    assert "That is not the answer yet: total" in second.native_messages[-1]["content"]
    if provider is Structured:
        assert first.config["output_schema"]["required"] == ["number", "total"]
    else:
        assert "It must fit this JSON Schema" in first.native_messages[0]["content"]


def test_alternatives_go_through_one_schema_where_there_is_no_tool() -> None:
    model = Structured(['{"response": {"why": "blank"}}'])

    assert Agent(model, output_type=[Invoice, Refusal]).run("Read this.").output == Refusal("blank")
    assert len(model.requests[0].config["output_schema"]["properties"]["response"]["anyOf"]) == 2


def test_the_way_can_be_chosen() -> None:
    agent = Agent(Structured([final()]), output_type=Invoice, output_mode="tool")

    assert agent.run("Read this.").output.number == "A-1"


def test_validators_look_at_the_output_in_turn_and_may_send_it_back() -> None:
    provider = ScriptedProvider([final(), final({"number": "B-2", "total": 1})])
    agent = Agent(provider, output_type=Invoice, deps_type=str)
    retries: list[int] = []

    @agent.output_validator
    def begins(ctx: RunContext[str], invoice: Invoice) -> Invoice:
        retries.append(ctx.retry)
        if not invoice.number.startswith(ctx.deps):
            raise ModelRetry(f"the number must begin with {ctx.deps}")
        return invoice

    @agent.output_validator
    async def doubles(invoice: Invoice) -> Invoice:
        return Invoice(invoice.number, invoice.total * 2)

    assert agent.run("Read this.", deps="B").output == Invoice("B-2", 2)
    assert "the number must begin with B" in provider.requests[1].native_messages[-1]["content"]
    assert retries == [0, 1]


def test_a_validator_looks_at_text_as_well() -> None:
    agent = Agent(ScriptedProvider(["no", "Yes, gladly."]))

    @agent.output_validator
    def polite(text: str) -> str:
        if text == "no":
            raise ModelRetry("be polite")
        return text.upper()

    result = agent.run("Help me.")

    assert (result.output, result.text) == ("YES, GLADLY.", "Yes, gladly.")
    assert [message.content for message in result.session.messages][2] == (
        "That is not the answer yet: be polite."
    )


def test_a_model_that_only_talks_is_told_to_call_the_tool() -> None:
    provider = ScriptedProvider(["It is A-1.", final()])

    assert Agent(provider, output_type=Invoice).run("Read this.").output.number == "A-1"
    assert "by calling final_result" in provider.requests[1].native_messages[-1]["content"]


@pytest.mark.parametrize("script", [[final(BAD)], ["just talk"]])
@pytest.mark.parametrize("retries", [0, 4])
def test_without_an_output_the_run_raises_with_everything_it_had(script: list[Any], retries: int) -> None:
    agent = Agent(ScriptedProvider(repeat(script[0])), output_type=Invoice, output_retries=retries)

    with pytest.raises(OutputNotProduced, match="no Invoice after") as caught:
        agent.run("Read this.")

    assert caught.value.result.reason.code == "output_retries"
    assert caught.value.result.rounds == retries + 1
    assert len(caught.value.result.session.messages) > 1
    kept = agent.run("Read this.", on_limit="return")
    with pytest.raises(OutputNotProduced):
        _ = kept.output


def test_an_empty_answer_is_no_output() -> None:
    result = Agent(ScriptedProvider([Reply(text="")])).run("Hello?")

    with pytest.raises(OutputNotProduced, match="the model ended without a word"):
        _ = result.output


def test_a_run_that_ends_at_a_limit_raises_unless_it_is_to_return() -> None:
    def look() -> str:
        return "nothing"

    calls = Reply(text="hm", tool_calls=[ToolCall("look")])
    agent = Agent(ScriptedProvider(repeat(calls)), tools=[look], max_rounds=2)

    with pytest.raises(LimitReached, match=r"max_rounds.*asked 2 times") as caught:
        agent.run("Go.")
    assert caught.value.result.rounds == 2
    result = agent.run("Go.", on_limit="return")
    with pytest.raises(OutputNotProduced):
        _ = result.output


def test_the_last_round_that_is_allowed_may_be_the_answer() -> None:
    result = Agent(ScriptedProvider(["Hi."]), max_rounds=1).run("Hello.")

    assert (result.output, result.reason.code) == ("Hi.", "natural_end")


def test_a_run_that_waits_has_no_output_yet_and_names_the_question() -> None:
    class Asks:
        name, version = "asks", "1"

        def register(self, registrar: Any) -> None:
            registrar.tool_gate(
                lambda view: None if view.call.decision else Suspend("May it look?", action="approve")
            )

    def look() -> str:
        return "seen"

    provider = ScriptedProvider([Reply(tool_calls=[ToolCall("look")]), final()])
    agent = Agent(provider, tools=[look], plugins={"asks": Asks()}, output_type=Invoice)

    waiting = agent.run("Read this.")
    with pytest.raises(OutputNotProduced, match=r"waits for a decision: May it look\?"):
        _ = waiting.output
    decision = {"target": waiting.suspended[0].id}
    going_on = agent.run(session=waiting.session, decisions=[decision])
    assert [one.tool for one in going_on.suspended] == ["final_result"]
    done = agent.run(session=going_on.session, decisions=[{"target": going_on.suspended[0].id}])
    assert done.output.number == "A-1"


def test_an_output_is_streamed_as_it_grows() -> None:
    class Writes(ScriptedProvider):
        def process_chunk(self, chunk: Any, native_messages: Any, state: Any) -> Any:
            partials, finals, native, state = super().process_chunk(chunk, native_messages, state)
            piece = {"index": 0, "id": "call_1", "name": "final_result", "arguments": chunk.get("text")}
            return ([{"tool_call": piece}] if partials else []), finals, native, {**state, "text": []}

    pieces = ['{"response": [{"number": "A", "tot', 'al": 1}, {"number": "B", "total": 2', "}]}"]
    whole = ToolCall("final_result", "".join(pieces))

    def grown(kind: Any) -> list[Any]:
        agent = Agent(Writes([Reply(chunks=pieces, tool_calls=[whole])]), output_type=kind)
        return list(agent.stream("Go.").outputs())

    assert grown(list[Invoice])[-1] == [Invoice("A", 1), Invoice("B", 2)]
    assert grown(list[Invoice])[0] == []
    assert [Invoice("A", 1)] in grown(list[Invoice])
    assert grown(list[Dict])[-1] == [{"number": "A", "total": 1}, {"number": "B", "total": 2}]


def test_text_is_streamed_as_it_grows() -> None:
    stream = Agent(ScriptedProvider([Reply(chunks=["Hel", "lo"])])).stream("Hi.")

    assert list(stream.outputs()) == ["Hel", "Hello", "Hello"]

    async def collect() -> list[str]:
        agent = Agent(ScriptedProvider([Reply(chunks=["Hel", "lo"])]))
        return [text async for text in agent.stream_async("Hi.").outputs()]

    assert asyncio.run(collect()) == ["Hel", "Hello", "Hello"]


def test_a_stream_of_outputs_ends_with_why_there_is_none() -> None:
    stream = Agent(ScriptedProvider(repeat("talk")), output_type=Invoice).stream("Go.")

    with pytest.raises(OutputNotProduced, match="no Invoice after 3 tries"):
        list(stream.outputs())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (object(), "has no JSON Schema"),
        ([], "empty list"),
        ("Invoice", "not the text 'Invoice'"),
        ([Invoice, Invoice], "two alternatives"),
    ],
)
def test_an_output_type_that_cannot_be_used_is_refused_at_once(given: Any, told: str) -> None:
    with pytest.raises(ArgumentTypeError, match=told):
        Agent(ScriptedProvider([]), output_type=given)


def test_results_print_what_a_person_wants_to_see() -> None:
    result = Agent(ScriptedProvider([Reply(text="Hi.", usage={"input_tokens": 3})])).run("Hello.")

    assert repr(result) == (
        "RunResult(output='Hi.', reason='natural_end', agent='agent', rounds=1, messages=2, tokens=3)"
    )
    assert dict(result.__rich_repr__())["output"] == "Hi."
    assert result.usage == Usage(requests=1, input_tokens=3)


@pytest.mark.parametrize("mode", ["native", "prompt"])
def test_an_output_that_is_written_as_text_grows_as_one_that_is_sent_to_a_tool(mode: Any) -> None:
    def outputs(kind: Any, pieces: list[str]) -> list[Any]:
        agent: Agent[None, Any] = Agent(
            ScriptedProvider([Reply(chunks=pieces)]), output_type=kind, output_mode=mode
        )
        return list(agent.stream("Go.").outputs())

    assert outputs(Dict, ['{"number": "A', '-1", ', '"total": 3.5}']) == [
        {"number": "A"},
        {"number": "A-1"},
        GOOD,
        GOOD,
    ]
    assert outputs(list[Refusal], ['{"response": [{"why": "no"}, {', '"why": "never"}]}']) == [
        [Refusal("no")],
        [Refusal("no"), Refusal("never")],
        [Refusal("no"), Refusal("never")],
    ]


def test_spaces_are_no_answer() -> None:
    result = Agent(ScriptedProvider([" \n"])).run("Go.")

    with pytest.raises(OutputNotProduced, match="without a word"):
        _ = result.output


def test_what_was_said_until_a_run_was_cancelled_is_no_output() -> None:
    with Agent(ScriptedProvider([Reply(chunks=["Hel", "lo."])])).stream("Go.") as stream:
        assert next(stream.text()) == "Hel"

    assert stream.result is not None
    assert stream.result.text == "Hel"
    with pytest.raises(OutputNotProduced, match="it was cancelled"):
        _ = stream.result.output


def test_text_ends_with_what_the_run_raises() -> None:
    async def listen(agent: Agent[None, str]) -> list[str]:
        return [piece async for piece in agent.stream_async("Go.").text()]

    for read in (lambda agent: list(agent.stream("Go.").text()), lambda agent: asyncio.run(listen(agent))):
        with pytest.raises(ProviderError, match="no luck"):
            read(Agent(ScriptedProvider([ValueError("no luck")])))
        with pytest.raises(LimitReached, match="requests is at 0"):
            read(Agent(ScriptedProvider([]), limits=UsageLimits(requests=0)))
        assert read(Agent(ScriptedProvider([]), limits=UsageLimits(requests=0), on_limit="return")) == []
        assert read(Agent(ScriptedProvider(["Hi."]))) == ["Hi."]


@pytest.mark.parametrize("mode", ["native", "tool"])
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (chat_reply(refusal="I will not."), "the model refused: I will not."),
        (chat_reply('{"number": "A', finish_reason="length"), "cut off at the model's limit for answers"),
    ],
)
def test_an_answer_that_was_refused_or_cut_off_is_said_to_be(mode: Any, reply: ServerReply, why: str) -> None:
    pytest.importorskip("openai_compatible_provider")
    with ScriptedServer(otherwise=reply) as server:
        config = {"base_url": f"{server.url}/v1", "api_key": "k"}
        agent = Agent("openai_compatible:m", config=config, output_type=Invoice, output_mode=mode)
        with pytest.raises(OutputNotProduced, match=why):
            agent.run("Go.")


def test_a_refusal_is_no_silence() -> None:
    pytest.importorskip("openai_compatible_provider")
    with ScriptedServer(chat_reply(refusal="I will not.")) as server:
        config = {"base_url": f"{server.url}/v1", "api_key": "k"}
        result = Agent("openai_compatible:m", config=config).run("Go.")

    with pytest.raises(OutputNotProduced, match="the model refused: I will not"):
        _ = result.output


def test_what_is_within_a_growing_dict_has_its_type() -> None:
    pieces = ['{"refusal": {"w', 'hy": "no"}', ', "days": ["2026-01-', '31", "2026-02-01"', "]}"]
    agent: Agent[None, Any] = Agent(
        ScriptedProvider([Reply(chunks=pieces)]), output_type=Case, output_mode="prompt"
    )

    first, second = date(2026, 1, 31), date(2026, 2, 1)
    assert list(agent.stream("Go.").outputs()) == [
        {},
        {"refusal": Refusal("no")},
        {"refusal": Refusal("no"), "days": []},
        {"refusal": Refusal("no"), "days": [first, second]},
        {"refusal": Refusal("no"), "days": [first, second]},
    ]


def test_nobody_is_asked_whether_a_run_may_have_its_output() -> None:
    agent = Agent(
        ScriptedProvider([final()]), output_type=Invoice, sections={"permissions": {"default": "ask"}}
    )

    assert agent.run("Go.").output == Invoice("A-1", 3.5)


def test_a_function_that_makes_the_output_is_asked_about() -> None:
    def pay(amount: int) -> str:
        return f"paid {amount}"

    agent = Agent(
        ScriptedProvider([final({"amount": 3})]),
        output_type=pay,
        sections={"permissions": {"default": "ask"}},
    )
    waiting = agent.run("Go.")
    result = agent.run(session=waiting.session, decisions=[{"target": waiting.suspended[0].id}])

    assert result.output == "paid 3"


def test_a_rule_may_ask_about_the_output_all_the_same() -> None:
    agent = Agent(
        ScriptedProvider([final()]), output_type=Invoice, sections={"permissions": {"ask": ["final_result"]}}
    )

    assert agent.run("Go.").suspended[0].tool == "final_result"


def test_a_list_of_allowed_tools_leaves_the_output_and_the_handoffs() -> None:
    provider = ScriptedProvider([final()])
    other = Agent(ScriptedProvider([]), name="other")
    agent = Agent(
        provider, output_type=Invoice, tools=[look, hidden], handoffs=[other], allowed_tools=["look"]
    )

    assert agent.run("Go.").output == Invoice("A-1", 3.5)
    offered = {tool["function"]["name"] for tool in provider.requests[0].config["tools"]}
    assert offered == {"look", "transfer_to_other", "final_result"}


def look() -> str:
    return "seen"


def hidden() -> str:
    return "never"

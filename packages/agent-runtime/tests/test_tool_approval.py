"""A tool that says of itself that a person must approve its calls."""

from typing import Any

import pytest

from agent_core import tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, Decision, LimitReached, ModelRetry, RunResult
from agent_runtime.permissions import CallPattern, Rule
from agent_runtime.tool_sets import ToolSet, dynamic


class Shop:
    """An agent with a tool that pays money back, and what it paid."""

    def __init__(self, **more: Any) -> None:
        self.paid: list[str] = []

        @tool(requires_approval=True)
        def refund(order: str) -> str:
            """Pay an order back."""
            self.paid.append(order)
            return "paid"

        self.refund = refund
        self.agent = Agent(self.model("refund"), **{"tools": [refund], **more})

    @staticmethod
    def model(name: str) -> ScriptedProvider:
        return ScriptedProvider([Reply(tool_calls=[ToolCall(name, {"order": "A-1"})]), "Done."])

    def ask(self, **options: Any) -> RunResult[str]:
        return self.agent.run("Money back!", **options)

    def answer(self, result: RunResult[str], *, approved: bool) -> RunResult[str]:
        [question] = result.suspended
        decision = Decision(question.id, approved=approved)
        return self.agent.run((), session=result.session, decisions=[decision])


def test_the_run_waits_for_an_answer_and_goes_on_with_it() -> None:
    shop = Shop()

    result = shop.ask()

    assert shop.paid == []
    assert result.suspended[0].message == (
        'Run refund with {"order":"A-1"}? Reason for the question: its tool requires approval.'
    )
    assert shop.answer(result, approved=True).text == "Done."
    assert shop.paid == ["A-1"]


def test_a_refusal_is_read_by_the_model() -> None:
    shop = Shop()

    result = shop.answer(shop.ask(), approved=False)

    assert (shop.paid, result.text) == ([], "Done.")
    assert result.messages[0]["content"] == "Error: the call was refused"


def test_the_decorator_of_an_agent_takes_the_option() -> None:
    agent = Agent(Shop.model("pay"))

    @agent.tool(requires_approval=True)
    def pay(order: str) -> str:
        raise AssertionError(order)

    assert agent.run("Pay.").suspended[0].tool == "pay"


@pytest.mark.parametrize(
    "make", [lambda one: ToolSet.of(one).prefixed("my_"), lambda one: one.renamed("my_refund")]
)
def test_another_name_changes_nothing(make: Any) -> None:
    shop = Shop()
    agent = Agent(Shop.model("my_refund"), tools=[make(shop.refund)])

    assert agent.run("Money back!").suspended[0].tool == "my_refund"
    assert shop.paid == []


def test_a_tool_that_is_made_during_the_run_is_asked_about_too() -> None:
    shop = Shop()
    agent = Agent(Shop.model("refund"), tools=[dynamic(lambda context: [shop.refund])])

    assert agent.run("Money back!").suspended[0].tool == "refund"
    assert shop.paid == []


@pytest.mark.parametrize(
    ("rules", "runs"),
    [
        ({"default": "allow"}, False),
        ({"allow": ["refund"]}, False),
        ({"allow": ["*"]}, False),
        ({"allow": ["refund(A-*)"]}, True),
        ({"default": "ask"}, False),
    ],
)
def test_only_a_rule_that_says_more_than_the_tool_lets_it_run(rules: dict[str, Any], runs: bool) -> None:
    shop = Shop(sections={"permissions": rules})

    result = shop.ask()

    assert (bool(shop.paid), bool(result.suspended)) == (runs, not runs)


@pytest.mark.parametrize("rules", [{"default": "deny"}, {"deny": ["refund"]}])
def test_what_is_denied_is_not_asked_about(rules: dict[str, Any]) -> None:
    shop = Shop(sections={"permissions": rules})

    result = shop.ask()

    assert (shop.paid, result.suspended) == ([], ())
    assert "not allowed" in result.messages[2]["content"]


def test_a_person_is_asked_once_where_rules_are_declared_as_well() -> None:
    shop = Shop(sections={"permissions": {"default": "ask"}})

    assert shop.answer(shop.ask(), approved=True).text == "Done."
    assert shop.paid == ["A-1"]


def test_what_a_person_granted_runs_without_a_question() -> None:
    shop = Shop()
    granted = [Rule("allow", CallPattern.parse("refund(A-1)"))]

    assert shop.ask(granted=lambda session: granted).text == "Done."
    assert shop.paid == ["A-1"]


def test_the_other_options_of_a_tool_count_as_well_when_it_is_made_during_the_run() -> None:
    @tool(retries=0)
    def look_up(order: str) -> str:
        """Look an order up."""
        raise ModelRetry(f"there is no order {order}")

    agent = Agent(Shop.model("look_up"), tools=[dynamic(lambda context: [look_up])])

    with pytest.raises(LimitReached, match="the tool 'look_up' failed"):
        agent.run("Look A-1 up.")

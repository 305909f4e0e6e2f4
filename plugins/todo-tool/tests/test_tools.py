"""The tools by themselves: what a person sees before and after a call."""

from __future__ import annotations

from typing import Any

import pytest

from todo_tool.feature import PlanTools

TEA: list[dict[str, Any]] = [{"text": "Boil water", "state": "done"}, {"text": "Steep"}]


def test_a_person_sees_the_plan_before_it_is_written() -> None:
    tools = PlanTools()

    assert tools.format_tool_call_preview("write_todos", {"items": TEA}) == "Write the plan"
    assert tools.format_tool_call_display("write_todos", {"items": TEA}) == {
        "type": "text",
        "title": "Plan",
        "content": "[x] Boil water\n[ ] Steep",
    }
    assert tools.format_tool_call_preview("write_todos", {"items": []}) == "Clear the plan"
    assert tools.format_tool_call_preview("read_todos", {}) == "Read the plan"
    assert tools.format_tool_call_display("read_todos", {}) is None


@pytest.mark.parametrize("arguments", [{}, {"items": 5}, {"items": [{"text": ""}]}])
def test_a_plan_that_is_none_is_told_and_never_raises(arguments: dict[str, Any]) -> None:
    tools = PlanTools()

    result = tools.execute_tool("write_todos", arguments)

    assert result["success"] is False
    assert result["error"].startswith("the plan was not changed: ")
    assert tools.format_tool_call_preview("write_todos", arguments).startswith(
        "Write a plan that cannot be kept"
    )
    assert tools.to_display_format(result["error"], result)["content"] == result["error"]


@pytest.mark.parametrize(
    "context", [None, {}, {"session_metadata": None}, {"session_metadata": {"agent_state": 1}}]
)
def test_without_a_session_there_is_no_plan(context: dict[str, Any] | None) -> None:
    assert PlanTools().execute_tool("read_todos", {}, context)["result"] == "There is no plan."


def test_the_model_reads_the_text_and_not_what_is_there_for_people() -> None:
    tools = PlanTools()
    result = tools.execute_tool("write_todos", {"items": TEA})

    assert tools.format_tool_result(result) == {
        "success": True,
        "result": "The plan is kept. 2 items: 1 pending, 1 done",
    }

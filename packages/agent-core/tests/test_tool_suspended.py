"""A tool that waits for somebody: the core has nobody to ask, and says what was asked."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import AgentCore, ToolSuspended, tool
from agent_core.drivers import call
from agent_core.pipeline.ready_call import preview_call
from agent_core.pipeline.tools import run_tool_call
from agent_core.plugin.tool import ToolWrapper


def call_of(name: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}


def order() -> str:
    """Order lunch."""
    raise ToolSuspended("Soup or salad?", response_schema={"enum": ["soup", "salad"]}, data={"table": 4})


def test_the_model_reads_that_the_call_waits_and_layers_above_read_for_what() -> None:
    core = AgentCore()
    core.register_tool(order)

    (message,) = core.execute_tool_calls([call_of("order")], {})

    assert message["content"] == "Error: the call waits for a decision: Soup or salad?"
    assert message["metadata"]["error"] == {"type": "suspended"}
    assert message["metadata"]["suspended"] == {
        "message": "Soup or salad?",
        "action": "answer",
        "parameters": {},
        "response_schema": {"enum": ["soup", "salad"]},
        "mode": "pass_decision",
        "data": {"table": 4},
    }


@pytest.mark.parametrize("part", ["parameters", "data", "response_schema"])
def test_a_question_that_cannot_be_kept_is_the_failure_of_its_tool(part: str) -> None:
    odd: Any = {part: {"what": {1, 2}}}

    def ask() -> str:
        raise ToolSuspended("May I?", **odd)

    core = AgentCore()
    core.register_tool(ask)

    [message] = core.execute_tool_calls([call_of("ask")], {})

    assert message["metadata"]["error"]["type"] == "exception"
    assert f"{part}.what: set is not JSON data" in message["content"]


def test_a_renamed_function_tool_keeps_everything_but_its_name() -> None:
    named = tool(order, timeout=3, parallel=True, idempotent=True, tags=["food"], description="Eat.")

    other = named.renamed("lunch")

    assert (other.name, named.name) == ("lunch", "order")
    assert (other.timeout, other.parallel, other.idempotent, other.tags) == (3, True, True, ("food",))
    assert other.get_tool_schemas()[0]["function"]["name"] == "lunch"
    assert other.get_tool_schemas()[0]["function"]["description"] == "Eat."


def test_calls_can_be_run_one_by_one_with_what_a_batch_shares() -> None:
    def twice(number: int) -> int:
        """Double it."""
        return 2 * number

    core = AgentCore()
    core.register_wrapped(ToolWrapper(tool(twice)))
    host = call(core.tool_host({}))
    made = {"id": "1", "type": "function", "function": {"name": "twice", "arguments": '{"number": 4}'}}

    assert preview_call(host, made) == {"id": "1", "preview": "twice(number=4)"}
    assert call(run_tool_call(host, made))["content"] == "8"

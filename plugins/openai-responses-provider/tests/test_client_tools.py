"""Tools that the API knows by type: their calls reach our tools, and the answers have the right form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from agent_core import tool
from agent_testing import responses_reply
from openai_responses_provider import OpenAIResponsesProvider
from openai_responses_provider.request import compose

if TYPE_CHECKING:
    from agent_testing import Talk

PNG = "iVBORw0KGgo="
SHELL = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "c1",
    "status": "completed",
    "action": {"commands": ["ls"], "timeout_ms": 1000, "max_output_length": 4096},
}
LOCAL_SHELL = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "c1",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
PATCH = {
    "type": "apply_patch_call",
    "id": "apc_1",
    "call_id": "c1",
    "status": "completed",
    "operation": {"type": "delete_file", "path": "tea.txt"},
}
COMPUTER = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c1",
    "status": "completed",
    "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
    "pending_safety_checks": [{"id": "s1", "code": "malicious_instructions", "message": "Sure?"}],
}
APPROVAL = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "tea",
    "name": "brew",
    "arguments": '{"kind":"green"}',
}


def called(talk: Talk, item: dict[str, Any]) -> dict[str, Any]:
    talk.add("user", "Go").call(responses_reply(items=[item]))
    [call] = talk.about["tool_calls"]
    assert talk.about["ending"] == "tool_calls" and "server_tools" not in talk.about
    return {"id": call["id"], "name": call["function"]["name"], **orjson.loads(call["function"]["arguments"])}


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        (SHELL, "shell", SHELL["action"]),
        (LOCAL_SHELL, "local_shell", LOCAL_SHELL["action"]),
        (PATCH, "apply_patch", {"type": "delete_file", "path": "tea.txt"}),
        (COMPUTER, "computer", {key: COMPUTER[key] for key in ("action", "pending_safety_checks")}),
        (APPROVAL, "mcp_approval", {"server_label": "tea", "arguments": {"kind": "green"}}),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_typed_call_is_a_call_of_our_tool(
    talk: Talk, item: dict[str, Any], name: str, arguments: Any, streamed: bool
) -> None:
    talk.add("user", "Go")
    reply = responses_reply(items=[item])
    talk.stream(reply) if streamed else talk.call(reply)

    [call] = talk.about["tool_calls"]
    assert call["id"] == (item.get("call_id") or item["id"])
    assert call["function"]["name"] == name
    assert orjson.loads(call["function"]["arguments"]).items() >= arguments.items()
    assert talk.about["ending"] == "tool_calls" and "server_tools" not in talk.about


@pytest.mark.parametrize(
    ("item", "answer", "sent"),
    [
        (
            SHELL,
            "tea.txt",
            {
                "type": "shell_call_output",
                "call_id": "c1",
                "max_output_length": 4096,
                "output": [{"stdout": "tea.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
        ),
        (
            SHELL,
            '{"stdout": "", "stderr": "no such file", "exit_code": 2}',
            {
                "type": "shell_call_output",
                "call_id": "c1",
                "max_output_length": 4096,
                "output": [
                    {"stdout": "", "stderr": "no such file", "outcome": {"type": "exit", "exit_code": 2}}
                ],
            },
        ),
        (LOCAL_SHELL, "tea.txt", {"type": "local_shell_call_output", "call_id": "c1", "output": "tea.txt"}),
        (
            PATCH,
            "Deleted.",
            {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed", "output": "Deleted."},
        ),
        (
            APPROVAL,
            "approved",
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ),
        (
            APPROVAL,
            '{"approve": false, "reason": "not today"}',
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_1",
                "approve": False,
                "reason": "not today",
            },
        ),
    ],
)
def test_an_answer_has_the_form_that_its_call_wants(
    talk: Talk, item: dict[str, Any], answer: str, sent: dict[str, Any]
) -> None:
    call = called(talk, item)
    talk.add("tool", answer, {"tool_call_id": call["id"], "tool_name": call["name"]})
    talk.call(responses_reply("Done."))

    assert talk.sent["input"][1]["type"] == item["type"]
    assert talk.sent["input"][2] == sent
    assert talk.provider.validate_native(talk.native) == []


def test_a_screenshot_answers_a_computer_call(talk: Talk) -> None:
    called(talk, COMPUTER)
    picture = [{"type": "image", "data": PNG, "mime_type": "image/png"}]
    talk.add("tool", "", {"tool_call_id": "c1", "tool_name": "computer"}, multipart_content=picture)
    talk.call(responses_reply("Done."))

    assert talk.sent["input"][2] == {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"},
        "acknowledged_safety_checks": COMPUTER["pending_safety_checks"],
    }


def test_a_computer_that_shows_nothing_is_reported_in_words(talk: Talk) -> None:
    called(talk, COMPUTER)
    failed = {"tool_call_id": "c1", "tool_name": "computer", "error": {"type": "unknown_tool"}}
    talk.add("tool", "There is no tool 'computer'.", failed)
    talk.call(responses_reply("I see."))

    kinds = [(item.get("type"), item.get("role")) for item in talk.sent["input"]]
    assert kinds == [("message", "user"), ("message", "developer")]
    assert "There is no tool 'computer'." in talk.sent["input"][1]["content"]


@pytest.mark.parametrize(
    ("item", "field", "value"),
    [(SHELL, "output", "exit_code"), (PATCH, "status", "failed"), (APPROVAL, "approve", "False")],
)
def test_a_tool_that_is_not_there_is_refused_by_name(
    talk: Talk, item: dict[str, Any], field: str, value: str
) -> None:
    call = called(talk, item)
    failed = {"tool_call_id": call["id"], "tool_name": call["name"], "error": {"type": "unknown_tool"}}
    talk.add("tool", f"There is no tool {call['name']!r}.", failed).call(responses_reply("I see."))

    answered = talk.sent["input"][2]
    assert value in str(answered[field]) and f"There is no tool {call['name']!r}." in str(answered)
    assert "'exit_code': 0" not in str(answered)


def test_a_shell_that_the_provider_ran_is_not_run_again(talk: Talk) -> None:
    output = [{"stdout": "tea.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    done = {"type": "shell_call_output", "id": "sho_1", "call_id": "c1", "output": output}
    talk.add("user", "Go").call(responses_reply("One file.", items=[SHELL, done]))

    assert "tool_calls" not in talk.about and talk.about["ending"] == "complete"
    assert [each["type"] for each in talk.about["server_tools"]] == ["shell_call", "shell_call_output"]


def test_a_call_that_nobody_answered_gets_a_truthful_answer(talk: Talk) -> None:
    called(talk, APPROVAL)
    talk.add("user", "Never mind").call(responses_reply("Ok."))

    response = talk.sent["input"][2]
    assert response["type"] == "mcp_approval_response" and response["approve"] is False


def test_a_tool_is_offered_once(talk: Talk) -> None:
    @tool
    def shell(commands: list[str]) -> str:
        """Run commands."""
        return " ".join(commands)

    talk.core.register_tool(shell)
    talk.add("user", "Go").call(responses_reply("Ok."), builtin_tools=[{"type": "shell"}])
    assert talk.sent["tools"] == [{"type": "shell"}]
    hosted = {"type": "shell", "environment": {"type": "container_auto"}}
    talk.add("user", "Go").call(responses_reply("Ok."), builtin_tools=[hosted])
    assert [each.get("name") for each in talk.sent["tools"]] == ["shell", None]


def test_reasoning_before_a_call_that_is_left_out_is_left_out_too() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    user = {"type": "message", "role": "user", "content": "Go"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "no picture"}

    sent = compose([user, thought, COMPUTER, output], {"model": "m"})["input"]

    assert [item["type"] for item in sent] == ["message", "message"]
    assert OpenAIResponsesProvider().validate_native([user, SHELL, output]) == []


@pytest.mark.parametrize("registered", [True, False])
def test_the_core_runs_a_typed_call_with_our_tool_or_says_that_there_is_none(
    talk: Talk, registered: bool
) -> None:
    @tool
    def shell(commands: list[str], timeout_ms: int, max_output_length: int) -> str:
        """Run commands."""
        return f"ran {commands} for {timeout_ms}, {max_output_length}"

    if registered:
        talk.core.register_tool(shell)
    talk.add("user", "Go").call(responses_reply(items=[SHELL]), builtin_tools=[{"type": "shell"}])
    calls = [dict(call) for call in talk.about["tool_calls"]]
    [result] = talk.core.execute_tool_calls(calls, talk.config)
    talk.add("tool", result["content"], result["metadata"], tool_result=result.get("tool_result"))
    talk.call(responses_reply("Done."), builtin_tools=[{"type": "shell"}])

    [output] = talk.sent["input"][2]["output"]
    assert talk.sent["input"][2]["type"] == "shell_call_output"
    if registered:
        assert output["stdout"] == "ran ['ls'] for 1000, 4096" and output["outcome"]["exit_code"] == 0
    else:
        assert "shell" in output["stderr"] and output["outcome"]["exit_code"] == 1

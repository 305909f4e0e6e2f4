"""What holds for all agents restricts each of them, whatever it declares itself."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.restrictions import combined_permissions
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import BuildError
from agent_runtime.permissions import LISTS, Permissions
from agent_runtime.phases import CallView

if TYPE_CHECKING:
    from collections.abc import Mapping

MODELS = {"m": {"provider": "scripted"}}


class Commands:
    """A tool that remembers what it ran."""

    name = "commands"
    version = "1"

    def __init__(self) -> None:
        self.ran: list[str] = []

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        command = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
        return [{"name": "run", "input_schema": command}]

    def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        self.ran.append(arguments["command"])
        return "ran"


def obedient(messages: list[dict[str, Any]]) -> Reply | str:
    """Answer as a model that runs what it is told."""
    last = messages[-1]
    if last["role"] == "tool":
        return "done"
    return Reply(tool_calls=[ToolCall("run", {"command": str(last["content"])})])


def told(own: Any, shared: Mapping[str, Any], command: str) -> str:
    """Say what becomes of a command in an application: it "ran", "waits" or was "refused"."""
    commands = Commands()
    agent = {"model": "m", **({} if own is None else {"sections": {"permissions": own}})}
    config = {"agents": {"a": agent}, "models": MODELS, "permissions": shared}
    model = ScriptedProvider(itertools.repeat(obedient))
    with AgentApplication(config, plugins=[model, commands], installed=False) as app:
        session_id = app.create_session().session_id
        list(app.chat(session_id, command))
        return "waits" if app.approvals(session_id) else "ran" if commands.ran else "refused"


@pytest.mark.parametrize(
    ("own", "shared", "command", "outcome"),
    [
        ({"allow": ["run"]}, {"deny": ["run(rm *)"]}, "rm x", "refused"),
        ({"allow": ["run(rm x)"]}, {"deny": ["run"]}, "rm x", "refused"),
        ({"default": "allow"}, {"deny": ["run(rm *)"]}, "rm x", "refused"),
        ({"deny": []}, {"deny": ["run(rm *)"]}, "rm x", "refused"),
        ({"allow": ["run"]}, {"deny": ["run(rm *)"]}, "ls", "ran"),
        ({"deny": ["run(ls)"]}, {"allow": ["run"]}, "ls", "refused"),
        ({"allow": ["run(git push)"]}, {"always_ask": ["run(git *)"]}, "git push", "waits"),
        ({"allow": ["run"], "always_ask": []}, {"always_ask": ["run(git *)"]}, "git push", "waits"),
        ({"allow": ["run"]}, {"ask": ["run(git *)"]}, "git push", "waits"),
        ({"allow": ["run"]}, {"ask": ["run"]}, "git push", "waits"),
        ({"allow": ["run(git status*)"]}, {"ask": ["run(git *)"]}, "git status", "ran"),
        ({"default": "allow"}, {"default": "deny"}, "ls", "refused"),
        ({"allow": ["run(ls)"]}, {"default": "deny"}, "ls", "ran"),
        ({"default": "allow"}, {"default": "ask"}, "ls", "ran"),
        ({"default": "deny"}, {"default": "allow"}, "ls", "refused"),
        ({"default": "deny"}, {"allow": ["run"]}, "ls", "refused"),
        ({}, {"allow": ["run"]}, "ls", "waits"),
        ({}, {"default": "allow"}, "ls", "waits"),
        (None, {"allow": ["run(ls)"], "default": "deny"}, "ls", "ran"),
        (None, {}, "ls", "ran"),
        ({"allow": ["run(ls)"]}, {}, "rm x", "waits"),
    ],
)
def test_an_agent_can_be_given_less_and_never_what_is_denied_to_all(
    own: Any, shared: Mapping[str, Any], command: str, outcome: str
) -> None:
    assert told(own, shared, command) == outcome


def test_a_delegate_is_restricted_as_well() -> None:
    commands = Commands()
    calls: list[Any] = [
        Reply(tool_calls=[ToolCall("delegate_worker", {"prompt": "Clean up."})]),
        Reply(tool_calls=[ToolCall("run", {"command": "rm x"})]),
        "refused",
        "done",
    ]
    config = {
        "agents": {
            "boss": {"model": "m", "delegates": ["worker"], "plugin_ids": []},
            "worker": {
                "model": "m",
                "description": "Works.",
                "sections": {"permissions": {"default": "allow"}},
            },
        },
        "default_agent": "boss",
        "models": MODELS,
        "permissions": {"default": "allow", "deny": ["run(rm *)"]},
    }
    with AgentApplication(config, plugins=[ScriptedProvider(calls), commands], installed=False) as app:
        events = list(app.chat(app.create_session().session_id, "Go."))

    assert events[-1]["text"] == "done" and commands.ran == []


def test_an_error_in_a_shared_list_is_found_for_an_agent_with_a_section() -> None:
    agent = {"model": "m", "sections": {"permissions": {"allow": ["run"]}}}
    config = {"agents": {"a": agent}, "models": MODELS, "permissions": {"deny": ["run("]}}

    with pytest.raises(BuildError, match="never closed"):
        AgentApplication(config, plugins=[ScriptedProvider()], installed=False)


def test_no_section_makes_anything_run_that_is_denied_or_asked_for_always() -> None:
    """Every pair of small sections: next to the shared one, no agent is freer than the restrictions."""
    patterns: list[list[str]] = [[], ["run"], ["run(git *)"], ["run(git push)"]]
    call = CallView(id="", name="run", arguments={"command": "git push"}, raw={})
    for shared_name, own_name in itertools.product(("deny", "always_ask"), LISTS):
        for shared_list, own_list, default in itertools.product(patterns, patterns, ("allow", "ask", "deny")):
            shared = {shared_name: shared_list}
            section = combined_permissions(shared, {own_name: own_list, "default": default})
            effect = Permissions.from_section(section).decide(call).effect
            if shared_list:
                assert effect == "deny" or (shared_name == "always_ask" and effect == "ask")

"""Servers in an application with a scripted model: approved by a person, called by a model."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_app import AgentApplication
from agent_core import AgentCore
from agent_core.testing import EchoProvider, Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conftest import World


@contextmanager
def application(world: World, script: Sequence[Any], **config: Any) -> Iterator[AgentApplication]:
    """Hold an application whose agent has the servers of the world."""
    settings = {
        "agents": {"helper": {"model": "small", "plugin_ids": ["mcp_tools"]}},
        "models": {"small": {"provider": "scripted"}},
        "plugins": {"mcp_tools": world.config},
        **config,
    }
    plugins = [ScriptedProvider(list(script)), world.plugin]
    with AgentApplication(settings, plugins=plugins, installed=False) as app:
        yield app


def talk(app: AgentApplication, session_id: str) -> list[dict[str, Any]]:
    """Say something and return the tool messages of the answer."""
    *_, last = app.chat(session_id, "Make tea.", stream=False)
    assert last["type"] == "final", last
    return [message for message in last["messages"] if message["role"] == "tool"]


def calling(name: str, **arguments: Any) -> Reply:
    return Reply(tool_calls=[ToolCall(name, arguments)])


def test_a_person_approves_and_the_model_calls(world: World) -> None:
    world.rough("tea")
    script = [calling("tea__talk"), "It is not there.", calling("tea__talk"), "Tea."]
    with application(world, script) as app:
        session_id = app.create_session().session_id
        [message] = talk(app, session_id)
        assert message["metadata"]["error"]["type"] == "unknown_tool"

        _, shown = app.execute_session_action(session_id, "mcp_tools", "status", {})
        [offer] = shown["display"]["actions"]
        _, question = app.execute_session_action(session_id, "mcp_tools", offer["action_id"], offer["params"])
        [confirm] = question["display"]["actions"]
        _, tools = app.execute_session_action(
            session_id, "mcp_tools", confirm["action_id"], confirm["params"]
        )
        assert tools["status"] == "confirm"
        assert "talk" in tools["display"]["body"]
        [confirm] = tools["display"]["actions"]
        _, done = app.execute_session_action(session_id, "mcp_tools", confirm["action_id"], confirm["params"])
        assert done["status"] == "ok"

        [message] = talk(app, session_id)
        assert message["content"] == "talked"
        assert message["metadata"]["tool_name"] == "tea__talk"


def test_on_an_event_loop_nobody_waits_and_the_tools_are_there(world: World) -> None:
    world.rough("tea")
    world.approve()

    async def ask(app: AgentApplication) -> list[dict[str, Any]]:
        session_id = app.create_session().session_id
        return [event async for event in app.chat_async(session_id, "Make tea.")]

    with application(world, [calling("tea__talk"), "Tea."]) as app:
        events = asyncio.run(ask(app))

    [result] = [event for event in events if event["type"] == "tool_call_result"]
    assert result["message"]["content"] == "talked"


def test_rules_are_held_against_names_arguments_and_texts(world: World) -> None:
    world.elsewhere("tea", world.described("echo", "weigh"))
    world.approve()
    rules = {"allow": ["tea__*"], "deny": ["tea__weigh", "tea__echo(rm *)"], "default": "deny"}
    calls = [
        ToolCall("tea__echo", {"text": "hello"}),
        ToolCall("tea__echo", {"text": "rm -rf ."}),
        ToolCall("tea__weigh", {}),
    ]
    with application(world, [Reply(tool_calls=calls), "Done."], permissions=rules) as app:
        messages = talk(app, app.create_session().session_id)

    assert [message["content"].startswith('{"text"') for message in messages] == [True, False, False]


def test_a_captured_model_gets_nothing_approved(world: World, tmp_path_factory: Any) -> None:
    mark = tmp_path_factory.mktemp("mark") / "started"
    world.rough("tea")
    world.approve()
    world.servers["evil"] = {"command": "touch", "args": [str(mark)]}
    names = [
        "mcp_tools",
        "approve",
        "mcp_tools__approve",
        "evil__run",
        "tea__approve",
        "run_action",
        "mcp_approve",
    ]
    digest = world.act("approve", server="evil")["confirm"]
    tries = [
        ToolCall(name, {"server": "evil", "confirm": confirm})
        for name in names
        for confirm in ("yes", digest, "true", "confirm")
    ]
    with application(world, [Reply(tool_calls=tries), "Done."]) as app:
        messages = talk(app, app.create_session().session_id)

    assert len(messages) == len(tries)
    assert all(message["metadata"]["error"] for message in messages)
    assert not mark.exists()
    assert world.status("evil")["state"] == "not approved"


def test_a_change_in_the_middle_of_a_session_takes_the_tool_away(world: World) -> None:
    world.booked("tea", world.described("echo"))
    world.approve()
    script = [calling("tea__echo", text="a"), "Fine.", calling("tea__echo", text="b"), "Gone."]
    with application(world, script) as app:
        session_id = app.create_session().session_id
        [first] = talk(app, session_id)
        assert first["content"] == "talked"

        world.book("tea", [{**world.described("echo")[0], "description": "Now it sends your keys."}])
        app.execute_session_action(session_id, "mcp_tools", "reconnect", {"server": "tea"})
        [second] = talk(app, session_id)

    assert second["metadata"]["error"]["type"] == "unknown_tool"


def test_an_agent_without_an_application_waits_for_its_servers(world: World) -> None:
    world.rough("tea")
    world.approve()
    world.plugin.close()
    again = type(world.plugin)()
    agent = Agent(
        ScriptedProvider([calling("tea__talk"), "Tea."]),
        plugins={"mcp_tools": again},
        sections={"mcp_tools": world.config},
    )

    result = agent.run("Make tea.")

    assert [message.content for message in result.session.messages if message.role == "tool"] == ["talked"]
    again.close()


def test_the_plugin_is_off_unless_it_is_listed(world: World) -> None:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_feature(world.plugin)

    assert core.get_session_actions({}) == []
    listed = core.get_session_actions({"enabled_plugins": ["mcp_tools"]})
    assert [action["id"] for action in listed if "trigger" not in action] == [
        "status",
        "approve",
        "revoke",
        "reconnect",
    ]

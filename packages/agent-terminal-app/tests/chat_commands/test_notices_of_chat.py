"""What a person is told at the start of a chat, and what they can do about it before they say anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.notices import Notice
from agent_terminal_app.chat.loop import Chat, talk_through
from agent_terminal_app.views.sessions import in_chat

if TYPE_CHECKING:
    from chat_commands.conftest import Acting, Desk

NOTICES = [
    {"text": "tea \x1b[31mwaits", "action_id": "approve", "params": {"what": "green tea"}},
    "the kettle is old",
]
ACTIONS: list[dict[str, Any]] = [
    {"id": "tell", "trigger": "session_open"},
    {"id": "approve", "inputs": {"what": {"type": "string"}}, "without_session": True},
]


def begin(desk: Desk, *typed: str) -> list[str]:
    """Type lines as through a pipe, and return what was shown."""
    paper = desk.paper()
    left = list(typed)

    async def next_line() -> str | None:
        return left.pop(0) if left else None

    async def sit() -> None:
        await talk_through(Chat(desk.open, paper), next_line)

    asyncio.run(sit())
    return paper.lines


def test_what_waits_is_told_at_the_start_with_the_command_for_it(desk: Desk, acting: type[Acting]) -> None:
    desk.plugins.append(acting("kitchen", ACTIONS, lambda _action, _params: {"notices": NOTICES}))

    assert begin(desk) == ["! tea waits: /kitchen.approve 'what=green tea'", "! the kettle is old"]


def test_the_command_works_before_anything_was_said(desk: Desk, acting: type[Acting]) -> None:
    got: list[Any] = []

    def do(action_id: str, params: dict[str, Any]) -> dict[str, Any]:
        got.append((action_id, dict(params)))
        return {"status": "ok", "message": "approved"}

    desk.plugins.append(acting("kitchen", ACTIONS, do))

    shown = begin(desk, "/kitchen.approve 'what=green tea'")

    assert got == [("tell", {}), ("approve", {"what": "green tea"})]
    assert shown[-1].endswith("approved")
    assert desk.sessions() == []


def test_a_plugin_that_fails_to_tell_keeps_nobody_from_talking(desk: Desk, acting: type[Acting]) -> None:
    def do(_action_id: str, _params: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("no")

    desk.plugins.append(acting("kitchen", ACTIONS, do))

    assert begin(desk, "hello")[-1] == "You said: hello"


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({}, "/p.a"),
        ({"server": "tea"}, "/p.a server=tea"),
        ({"server": "it's", "n": 3, "sure": True}, "/p.a 'server=it'\"'\"'s' n=3 sure=true"),
    ],
)
def test_a_command_is_written_so_that_it_can_be_typed(params: dict[str, Any], line: str) -> None:
    assert in_chat(Notice(plugin="p", text="x", action_id="a", params=params)) == line
    assert in_chat(Notice(plugin="p", text="x", params=params)) == ""

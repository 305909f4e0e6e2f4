"""Calls and their results at the border of a crash: what is stored when, and what is known afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_app.store.base import Changes
from agent_core import AgentCore, Message, ToolSuspended, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Phase, Suspend
from agent_runtime.recovery import MAY_HAVE_RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Make = Callable[..., AgentApplication]


class Tools:
    """Two calls at the same time, and whatever hooks a test wants around them."""

    name, version = "tools", "1"

    def __init__(self, **hooks: Callable[..., Any]) -> None:
        self._hooks = hooks

    def register(self, registrar: Any) -> None:
        registrar.tool("work", tool(_work, name="work", parallel=True))
        registrar.tool("ask", tool(_ask, name="ask"))
        for phase, hook in self._hooks.items():
            if phase == "gate":
                registrar.tool_gate(hook)
            else:
                registrar.phase_hook(Phase(phase), hook)


def _work(number: int) -> str:
    """Work."""
    return f"worked {number}"


def _ask() -> str:
    """Ask."""
    raise ToolSuspended("Really?")


def calls(*numbers: int) -> Reply:
    return Reply(tool_calls=[ToolCall("work", {"number": number}, f"c{number}") for number in numbers])


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_one(script: list[Any], **hooks: Callable[..., Any]) -> AgentApplication:
        apps.append(
            AgentApplication(
                CONFIG,
                store=f"sqlite:///{tmp_path}/app.db",
                plugins=[ScriptedProvider(script), Tools(**hooks)],
                installed=False,
            )
        )
        return apps[-1]

    yield make_one
    for app in apps:
        app.close()


def fail_at_second(view: Any) -> None:
    if view.call.id == "c2":
        raise RuntimeError("no")


@pytest.mark.parametrize("phase", ["before_tool_execute", "after_tool_execute"])
def test_a_hook_that_fails_leaves_no_open_call(make: Make, phase: str) -> None:
    app = make([calls(1, 2), "Done."], **{phase: fail_at_second})
    app.create_session(session_id="s")

    list(app.chat("s", "Go."))

    assert app.store.open_intents("s") == {}
    answered = [one for one in app.load_session("s").messages if one.role == "tool"]
    assert [one.metadata["tool_call_id"] for one in answered] == ["c1", "c2"]


def test_a_call_that_began_asked_and_is_passed_over_is_no_open_call(make: Make) -> None:
    app = make([Reply(tool_calls=[ToolCall("ask", {}, "c1")]), "Never mind."])
    app.create_session(session_id="s")
    assert list(app.chat("s", "Go."))[-1]["reason"]["code"] == "suspended"

    list(app.chat("s", "Forget it."))

    assert app.store.open_intents("s") == {}
    assert app.load_session("s").messages[-1].content == "Never mind."


def test_what_is_said_with_a_decision_is_stored_before_the_run_is_shown(make: Make) -> None:
    app = make([calls(1), "Done."], gate=lambda view: Suspend("Really?") if view.call.id == "c1" else None)
    app.create_session(session_id="s")
    asked = list(app.chat("s", "Go."))[-1]
    app.decide(asked["approvals"][0], {"approved": True})

    for event in app.chat("s", "And hurry."):
        if event["type"] == "run_start":
            assert [one.message["content"] for one in app.store.inputs("s")] == ["And hurry."]

    assert app.store.inputs("s") == []
    said = [one.content for one in app.load_session("s").messages if one.role != "assistant"]
    assert said == ["Go.", "worked 1", "And hurry."]


def test_what_is_said_with_a_decision_is_in_the_transcript_also_if_nobody_waits_for_the_answer(
    make: Make,
) -> None:
    app = make([calls(1), "Done."], gate=lambda _view: Suspend("Really?"))
    app.create_session(session_id="s")
    asked = list(app.chat("s", "Go."))[-1]
    app.decide(asked["approvals"][0], {"approved": False})

    with app.chat("s", "And hurry.") as events:
        assert next(events)["type"] == "run_start"

    assert app.store.inputs("s") == []
    assert app.load_session("s").messages[-1].content == "And hurry."
    assert app.load_session("s").messages[-2].role == "tool"


def test_a_result_that_somebody_was_shown_is_used_although_the_transcript_lacks_it(make: Make) -> None:
    app = make(["I see."])
    app.create_session(session_id="s")
    stored = app.store.load("s")
    made = [
        {"id": f"c{number}", "type": "function", "function": {"name": "work", "arguments": "{}"}}
        for number in (1, 2)
    ]
    said = [Message("user", "Go."), Message("assistant", "", {"tool_calls": made})]
    session = AgentCore().append_messages(stored.session, said)
    shown = {
        "role": "tool",
        "content": "worked 1",
        "metadata": {"tool_call_id": "c1", "tool_name": "work"},
        "tool_result": {"type": "tool_result", "text": "worked 1"},
    }
    stored = app.store.save(session, stored, changes=Changes(intents={"c1": {}}))
    app.store.save(session, stored, changes=Changes(intents={"c2": {}}))
    old = {**shown, "content": "of an earlier answer", "metadata": {"tool_call_id": "c2"}}
    app.store.append_events(
        "s",
        [
            {"type": "tool_call_result", "call_id": "c2", "message": old},
            {"type": "step_start", "round": 2},
            {"type": "tool_call_result", "call_id": "c1", "message": shown},
        ],
    )

    list(app.chat("s", "What happened?"))

    answers = [one.content for one in app.load_session("s").messages if one.role == "tool"]
    assert answers == ["worked 1", MAY_HAVE_RUN]
    assert app.store.open_intents("s") == {}

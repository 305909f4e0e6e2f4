"""Decisions that runs wait for: kept, answered one by one in any order, used once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, Approval, DecisionNotAccepted
from agent_core import ArgumentError, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Suspend

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"agents": {"a": {"model": "m"}}, "models": {"m": {"provider": "scripted"}}}
Make = Callable[..., AgentApplication]


class Guard:
    """A runtime plugin with a tool that posts, and a gate that asks before each post."""

    name = "guard"
    version = "1"

    def __init__(self, posted: list[str], keys: list[str] | None = None, **asked: Any) -> None:
        self._posted = posted
        self._keys = keys if keys is not None else []
        self._asked = asked

    def register(self, registrar: Any) -> None:
        def post(text: str, context: dict[str, Any]) -> str:
            """Publish a text."""
            self._posted.append(text)
            self._keys.append(context["idempotency_key"])
            return f"posted {text}"

        registrar.tool("post", tool(post))
        registrar.tool_gate(self.judge)

    def judge(self, view: Any) -> Any:
        if view.call.decision is not None:
            return None
        return Suspend(f"Publish {view.call.arguments['text']!r}?", **self._asked)


def posting(*texts: str) -> Reply:
    return Reply(tool_calls=[ToolCall("post", {"text": text}) for text in texts])


@pytest.fixture
def posted() -> list[str]:
    return []


@pytest.fixture
def make(tmp_path: Path, posted: list[str]) -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_app(script: Any = (), guard: Any = None) -> AgentApplication:
        provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
        plugins = [provider, guard if guard is not None else Guard(posted)]
        url = f"sqlite:///{tmp_path}/sessions.db"
        apps.append(AgentApplication(CONFIG, store=url, plugins=plugins, installed=False))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def by_text(app: AgentApplication) -> dict[str, Approval]:
    return {one.suspension["message"].split("'")[1]: one for one in app.approvals()}


def texts(session: Session) -> list[str]:
    return [str(message.content) for message in session.messages]


def test_a_run_that_waits_leaves_an_approval_and_goes_on_with_the_decision(
    make: Make, posted: list[str]
) -> None:
    app = make([posting("hello"), "It is out."])
    session_id = app.create_session().session_id
    waits = list(app.chat(session_id, "greet"))

    assert waits[-1]["type"] == "final"
    assert waits[-1]["reason"]["code"] == "suspended"
    [approval] = app.approvals(session_id)
    assert waits[-1]["approvals"] == [approval.id]
    assert approval.suspension["tool"] == "post"
    assert posted == []

    decided = app.decide(approval.id, True)
    assert decided.decision == {"approved": True}
    assert app.approvals() == []
    assert list(app.chat(session_id))[-1]["text"] == "It is out."
    assert posted == ["hello"]
    assert app.store.approvals(session_id)[0].used is True


def test_an_approval_survives_a_restart_and_so_does_its_decision(make: Make, posted: list[str]) -> None:
    keys: list[str] = []
    app = make([posting("hello")])
    session_id = app.create_session().session_id
    [waits] = [one for one in app.chat(session_id, "greet") if one["type"] == "run_start"]
    app.close()

    app = make()
    [approval] = app.approvals()
    app.decide(approval.id, True)
    app.close()

    app = make(["done"], Guard(posted, keys))
    assert list(app.chat(session_id))[-1]["text"] == "done"
    assert posted == ["hello"]
    assert keys == [f"{waits['run_id']}:call_1"]


@pytest.mark.parametrize("order", list(permutations(("one", "two", "three"))))
def test_decisions_come_one_by_one_in_any_order(
    make: Make, posted: list[str], order: tuple[str, ...]
) -> None:
    app = make([posting("one", "two", "three"), "all done"])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "go"))
    for count, text in enumerate(order, 1):
        app.decide(by_text(app)[text].id, text != "two")
        events = list(app.chat(session_id))
        expected = "suspended" if count < len(order) else "natural_end"
        assert events[-1]["reason"]["code"] == expected

    assert posted == [text for text in order if text != "two"]
    answers = {
        message.metadata["tool_call_id"]: str(message.content)
        for message in app.load_session(session_id).messages
        if message.role == "tool"
    }
    assert answers["call_1"] == "posted one"
    assert answers["call_3"] == "posted three"
    assert "posted" not in answers["call_2"]
    assert texts(app.load_session(session_id))[-1] == "all done"
    assert app.approvals() == []


def test_a_refusal_reaches_the_model_with_its_reason(make: Make, posted: list[str]) -> None:
    app = make([posting("hello"), "I see."])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "greet"))
    app.decide(app.approvals()[0].id, {"approved": False, "reason": "not on a Sunday"})
    list(app.chat(session_id))

    assert posted == []
    assert "not on a Sunday" in texts(app.load_session(session_id))[2]


def test_a_decision_is_accepted_once(make: Make, posted: list[str]) -> None:
    app = make([posting("hello"), "done", "again"])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "greet"))
    [approval] = app.approvals()
    app.decide(approval.id, True)

    with pytest.raises(DecisionNotAccepted, match="already"):
        app.decide(approval.id, False)
    list(app.chat(session_id))
    with pytest.raises(DecisionNotAccepted, match="already"):
        app.decide(approval.id, True)
    list(app.chat(session_id, "more"))
    assert posted == ["hello"]


@pytest.mark.parametrize(
    "decision", [None, "yes", 1, {"approvd": True}, {"approved": "yes"}, {"target": "x"}]
)
def test_a_decision_that_is_none_is_refused_and_the_session_still_waits(
    make: Make, posted: list[str], decision: Any
) -> None:
    app = make([posting("hello"), "done"])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "greet"))
    [approval] = app.approvals()

    with pytest.raises(DecisionNotAccepted):
        app.decide(approval.id, decision)
    app.decide(approval.id, True)
    list(app.chat(session_id))
    assert posted == ["hello"]


def test_an_answer_must_fit_what_was_asked(make: Make, posted: list[str]) -> None:
    guard = Guard(posted, response_schema={"type": "integer"}, action="answer", mode="use_decision")
    app = make([posting("hello"), "done"], guard)
    session_id = app.create_session().session_id
    list(app.chat(session_id, "greet"))
    [approval] = app.approvals()

    with pytest.raises(DecisionNotAccepted, match="fit"):
        app.decide(approval.id, {"value": "seven"})
    app.decide(approval.id, {"value": 7})
    assert list(app.chat(session_id))[-1]["text"] == "done"
    assert "7" in texts(app.load_session(session_id))[2]


def test_an_unknown_approval_is_refused(make: Make) -> None:
    with pytest.raises(DecisionNotAccepted, match="no approval"):
        make().decide("forged", True)


def test_a_session_that_waits_says_so_if_nothing_was_decided(make: Make) -> None:
    app = make([posting("hello")])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "greet"))

    with pytest.raises(ArgumentError, match=app.approvals()[0].id):
        list(app.chat(session_id))
    assert len(app.approvals()) == 1


def test_going_on_without_a_decision_closes_the_question(make: Make, posted: list[str]) -> None:
    app = make([posting("hello"), "never mind then"])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "greet"))
    [approval] = app.approvals()
    list(app.chat(session_id, "forget it"))

    assert app.approvals() == []
    with pytest.raises(DecisionNotAccepted):
        app.decide(approval.id, True)
    assert posted == []
    assert texts(app.load_session(session_id))[-2:] == ["forget it", "never mind then"]


def test_a_branch_does_not_inherit_the_question(make: Make, posted: list[str]) -> None:
    app = make([posting("hello"), "in the branch", "in the other", "in the source"])
    source = app.create_session().session_id
    list(app.chat(source, "greet"))
    branch = app.fork_session(source, upto_index=-1).session_id
    early = app.fork_session(source, upto_index=0).session_id
    app.decide(app.approvals()[0].id, True)
    list(app.chat(branch, "and?"))
    list(app.chat(early, "and?"))

    assert posted == []
    assert texts(app.load_session(early)) == ["greet", "and?", "in the other"]
    assert list(app.chat(source))[-1]["text"] == "in the source"
    assert posted == ["hello"]


def test_a_deleted_session_takes_its_questions_with_it(make: Make) -> None:
    app = make([posting("hello")])
    session_id = app.create_session().session_id
    list(app.chat(session_id, "greet"))
    [approval] = app.approvals()
    app.delete_session(session_id)

    assert app.approvals() == []
    with pytest.raises(DecisionNotAccepted):
        app.decide(approval.id, True)


def test_permissions_of_the_configuration_ask_for_every_agent(tmp_path: Path) -> None:
    ran: list[str] = []

    class Tools:
        name = "tools"
        version = "1"

        def register(self, registrar: Any) -> None:
            def post(text: str) -> str:
                """Publish a text."""
                ran.append(text)
                return "done"

            registrar.tool("post", tool(post))

    config = {**CONFIG, "permissions": {"default": "ask"}}
    provider = ScriptedProvider([posting("hello"), "done"])
    with AgentApplication(config, plugins=[provider, Tools], installed=False) as app:
        session_id = app.create_session().session_id
        assert list(app.chat(session_id, "greet"))[-1]["reason"]["code"] == "suspended"
        app.decide(app.approvals()[0].id, True)
        list(app.chat(session_id))

    assert ran == ["hello"]


def test_the_async_twins_decide_too(make: Make, posted: list[str]) -> None:
    app = make([posting("hello"), "done"])
    session_id = app.create_session().session_id

    async def work() -> list[Any]:
        async for _ in app.chat_async(session_id, "greet"):
            pass
        [approval] = await app.approvals_async(session_id)
        await app.decide_async(approval.id, True)
        return [event async for event in app.chat_async(session_id)]

    assert asyncio.run(work())[-1]["text"] == "done"
    assert posted == ["hello"]

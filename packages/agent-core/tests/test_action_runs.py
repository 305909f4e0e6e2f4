"""Actions that ask first, take too long or are cancelled, and those that people are offered."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agent_core import (
    ActionCancelledError,
    ActionNotConfirmedError,
    ActionTimeoutError,
    AgentCore,
    ArgumentTypeError,
    Cancellation,
    PluginError,
    Session,
)
from agent_core.actions import Action
from agent_core.drivers import call, call_async
from agent_core.testing import EchoProvider


class Worker:
    """A feature with one action that does what the test wants."""

    name = "worker"
    version = "1"

    def __init__(self, work: Any, **definition: Any) -> None:
        self._work = work
        self._definition = {"id": "work", "label": "Work", **definition}

    def get_actions(self) -> list[dict[str, Any]]:
        return [self._definition]

    def execute_action(
        self, action_id: str, session: Session, native: Any, params: Any, context: Any
    ) -> dict[str, Any]:
        result: dict[str, Any] = self._work(context)
        return result


class Waiting:
    """Work that goes on until its action is cancelled."""

    def __init__(self) -> None:
        self.begun, self.noticed = threading.Event(), threading.Event()

    def __call__(self, context: Any) -> dict[str, Any]:
        stopped = threading.Event()
        context["cancellation"].add_callback(stopped.set)
        self.begun.set()
        if stopped.wait(60):
            self.noticed.set()
        return {"session_metadata": {"late": True}}


def run(work: Any, driver: str, options: dict[str, Any], **definition: Any) -> tuple[Session, dict[str, Any]]:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_feature(Worker(work, **definition))
    flow = core.session_action_flow(Session("s"), {}, "worker", "work", {}, **options)
    return call(flow) if driver == "plain" else asyncio.run(call_async(flow))


@pytest.fixture(params=["plain", "async"])
def driver(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_a_token_that_can_cancel_nothing_is_refused(driver: str) -> None:
    with pytest.raises(ArgumentTypeError, match="cancellation must have add_callback"):
        run(lambda context: {}, driver, {"cancellation": "stop"})


@pytest.mark.parametrize(("confirm", "question"), [("Delete it?", "Delete it?"), (True, "Work?")])
def test_an_action_that_asks_first_does_not_run_before_the_answer(
    driver: str, confirm: Any, question: str
) -> None:
    ran: list[Any] = []
    with pytest.raises(ActionNotConfirmedError) as caught:
        run(ran.append, driver, {}, confirm=confirm)
    assert (caught.value.question, ran) == (question, [])

    for options in ({"confirmed": True}, {"context": {"confirmed": True}}):
        _, result = run(lambda _context: {"status": "ok"}, driver, options, confirm=confirm)
        assert result == {"status": "ok"}


def test_an_action_that_takes_too_long_counts_for_nothing(driver: str) -> None:
    work = Waiting()
    with pytest.raises(ActionTimeoutError, match=r"worker.work took longer than its 0.05 seconds"):
        run(work, driver, {}, timeout=0.05)
    assert work.noticed.wait(60)


def test_an_action_in_time_has_its_result(driver: str) -> None:
    session, _ = run(lambda _context: {"session_metadata": {"done": True}}, driver, {}, timeout=60)
    assert session.metadata == {"done": True}


def test_an_error_of_the_action_itself_stays_its_own(driver: str) -> None:
    def late(_context: Any) -> dict[str, Any]:
        raise TimeoutError("the server is slow")

    with pytest.raises(PluginError, match="the server is slow"):
        run(late, driver, {}, timeout=60)


def test_an_action_is_cancelled_by_its_caller(driver: str) -> None:
    work, token = Waiting(), Cancellation()

    def cancel() -> None:
        work.begun.wait(60)
        token.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(ActionCancelledError):
        run(work, driver, {"cancellation": token})
    assert work.noticed.wait(60)
    canceller.join()


def test_a_caller_who_leaves_lets_the_action_know() -> None:
    work = Waiting()

    async def leave() -> None:
        core = AgentCore()
        core.register_provider(EchoProvider)
        core.register_feature(Worker(work, timeout=60))
        task = asyncio.ensure_future(
            core.execute_session_action_async(Session("s"), {}, "worker", "work", {})
        )
        await asyncio.to_thread(work.begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert work.noticed.wait(60)


@pytest.mark.parametrize("key", ["mutations", "ui_effects"])
def test_what_only_application_plugins_may_return_is_refused_by_name(driver: str, key: str) -> None:
    with pytest.raises(PluginError, match=f"'worker'.*{key} can be returned by application plugins only"):
        run(lambda _context: {"session_metadata": {"x": 1}, key: []}, driver, {})


def test_a_lifecycle_refuses_it_too() -> None:
    core = AgentCore()
    core.register_provider(EchoProvider)
    core.register_feature(Worker(lambda _context: {"mutations": {}}, trigger="harvest"))
    with pytest.raises(PluginError, match="mutations"):
        core.execute_lifecycle_actions(Session("s"), {}, "harvest")


@pytest.mark.parametrize(
    ("definition", "manual"),
    [
        ({}, True),
        ({"trigger": "session_create"}, False),
        ({"trigger": "session_create", "inputs": {"session_id": {"type": "string"}}}, False),
        ({"trigger": ["session_save_prepare"], "inputs": {"start": {"type": "integer"}}}, True),
        ({"trigger": "session_create", "manual": True}, True),
        ({"trigger": "x", "inputs": {"start": {"type": "integer"}}, "manual": False}, False),
    ],
)
def test_which_actions_people_are_offered(definition: dict[str, Any], manual: bool) -> None:
    assert Action.from_dict({"id": "a", **definition}, plugin="p", owner="feature").is_manual == manual


@pytest.mark.parametrize(
    "definition",
    [
        {"confirm": 3}, {"confirm": ""}, {"confirm": " \n"}, {"confirm": "Sure?", "trigger": "x"},
        {"timeout": 0}, {"timeout": True}, {"timeout": "5"}, {"timeout": float("inf")}, {"manual": "yes"},
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_is_the_plugins_error(definition: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=next(iter(definition))):
        Action.from_dict({"id": "a", **definition}, plugin="p", owner="feature")

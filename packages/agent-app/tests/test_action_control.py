"""Actions in an application: confirmed before they run, ended by time or by somebody who cancels them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication
from agent_core import (
    ActionCancelledError,
    ActionError,
    ActionNotConfirmedError,
    ActionTimeoutError,
    AgentError,
    ArgumentTypeError,
)
from agent_core.testing import EchoProvider

if TYPE_CHECKING:
    from collections.abc import Iterator


class Work:
    """What the actions of both plugins do."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.begun, self.noticed = threading.Event(), threading.Event()

    def definitions(self) -> list[dict[str, Any]]:
        return [
            {"id": "wipe", "label": "Wipe", "confirm": "Wipe everything?"},
            {"id": "slow", "label": "Slow", "timeout": 0.05},
            {"id": "endless", "label": "Endless", "timeout": 600},
            {"id": "broken", "label": "Broken"},
            {"id": "junk", "label": "Junk"},
            {"id": "also_by_hand", "label": "Both", "trigger": "session_fork", "manual": True},
        ]

    def do(self, action_id: str, context: Any) -> None:
        self.ran.append(action_id)
        if action_id == "broken":
            raise RuntimeError("boom")
        if action_id in ("slow", "endless"):
            stopped = threading.Event()
            context["cancellation"].add_callback(stopped.set)
            self.begun.set()
            if stopped.wait(60):
                self.noticed.set()


class Feature:
    name = "feature"
    version = "1"

    def __init__(self, work: Work) -> None:
        self._work = work

    def get_actions(self) -> list[dict[str, Any]]:
        return self._work.definitions()

    def execute_action(
        self, action_id: str, session: Any, native: Any, params: Any, context: Any
    ) -> dict[str, Any]:
        self._work.do(action_id, context)
        if action_id == "junk":
            return []  # type: ignore[return-value]  # that is the mistake
        return {"session_metadata": {"done": action_id}}


class Application:
    name = "application"
    version = "1"

    def __init__(self, work: Work) -> None:
        self._work = work

    def get_actions(self, state: Any) -> list[dict[str, Any]]:
        return self._work.definitions()

    def execute_action(
        self, app: AgentApplication, action_id: str, params: Any, context: Any, state: Any
    ) -> dict[str, Any]:
        self._work.do(action_id, context)
        if action_id == "junk":
            return {"mutations": {"deleted": ["nobody"]}}
        return {"mutations": {"created": [app.create_session_ephemeral(session_id="made")]}}


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def app(work: Work) -> Iterator[AgentApplication]:
    plugins = [EchoProvider, Feature(work), Application(work)]
    with AgentApplication({"agents": {"a": {"provider": "echo"}}}, plugins=plugins, installed=False) as app:
        app.create_session(session_id="s")
        yield app


class Runner:
    """Runs an action of either owner in either style."""

    def __init__(self, owner: str, style: str) -> None:
        self.owner, self.style = owner, style

    def __call__(self, app: AgentApplication, action_id: str, **more: Any) -> Any:
        arguments = ("s", "feature") if self.owner == "session" else ("application",)
        name = f"execute_{self.owner}_action" + ("_async" if self.style == "async" else "")
        result = getattr(app, name)(*arguments, action_id, {}, **more)
        return asyncio.run(result) if self.style == "async" else result

    def cancel(self, app: AgentApplication, action_id: str) -> bool:
        if self.owner == "session":
            return app.cancel("s")
        return app.cancel_action("application", action_id)

    def changed(self, app: AgentApplication) -> bool:
        if self.owner == "session":
            return "done" in app.load_session("s").metadata
        return "made" in [info.id for info in app.list_sessions()]


@pytest.fixture(
    params=[("session", "plain"), ("session", "async"), ("application", "plain"), ("application", "async")]
)
def run(request: pytest.FixtureRequest) -> Runner:
    return Runner(*request.param)


def test_nothing_runs_before_it_is_confirmed(app: AgentApplication, work: Work, run: Runner) -> None:
    with pytest.raises(ActionNotConfirmedError) as caught:
        run(app, "wipe")
    assert (caught.value.question, work.ran, run.changed(app)) == ("Wipe everything?", [], False)

    run(app, "wipe", confirmed=True)
    assert (work.ran, run.changed(app)) == (["wipe"], True)


@pytest.mark.parametrize("confirmed", ["no", "False", "yes", "", 1, 0, None])
def test_only_true_confirms(app: AgentApplication, work: Work, run: Runner, confirmed: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="confirmed must be True or False"):
        run(app, "wipe", confirmed=confirmed)
    with pytest.raises(ActionNotConfirmedError):
        run(app, "wipe", context={"confirmed": confirmed})

    assert work.ran == []


@pytest.mark.parametrize(
    ("action_id", "kind"),
    [
        ("broken", "PluginError"),
        ("junk", ""),
        ("slow", "ActionTimeoutError"),
        ("endless", "ActionCancelledError"),
    ],
)
def test_an_action_that_fails_is_an_event_that_says_so(
    app: AgentApplication, work: Work, run: Runner, action_id: str, kind: str
) -> None:
    before = app.last_cursor()
    errors: list[AgentError] = []

    def execute() -> None:
        try:
            run(app, action_id)
        except AgentError as error:
            errors.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    if action_id == "endless":
        assert work.begun.wait(60)
        run.cancel(app, action_id)
    thread.join(60)

    [event] = app.all_events(after=before)
    [error] = errors
    assert (event["type"], event["action_id"]) == ("action_executed", action_id)
    assert (event["error"]["type"], event["error"]["message"]) == (type(error).__name__, str(error))
    assert kind in ("", type(error).__name__)
    assert event.get("session_id") == ("s" if run.owner == "session" else None)
    assert not run.changed(app)


def test_an_action_that_was_refused_was_not_run_and_is_no_event(app: AgentApplication, run: Runner) -> None:
    before = app.last_cursor()

    for action_id in ("wipe", "nowhere"):
        with pytest.raises(ActionError):
            run(app, action_id)

    assert app.all_events(after=before) == []


def test_the_context_of_a_front_end_can_say_that_it_was_confirmed(app: AgentApplication, run: Runner) -> None:
    run(app, "wipe", context={"confirmed": True})
    assert run.changed(app)


def test_what_takes_too_long_changes_nothing(app: AgentApplication, work: Work, run: Runner) -> None:
    with pytest.raises(ActionTimeoutError):
        run(app, "slow")
    assert work.noticed.wait(60)
    assert not run.changed(app)
    assert app.session_state("s")["holder"] is None


def test_an_action_is_cancelled_by_name(app: AgentApplication, work: Work, run: Runner) -> None:
    assert not run.cancel(app, "endless")
    canceller = threading.Thread(target=lambda: work.begun.wait(60) and run.cancel(app, "endless"))
    canceller.start()
    with pytest.raises(ActionCancelledError):
        run(app, "endless")
    canceller.join()
    assert work.noticed.wait(60)
    assert not run.changed(app)


def test_triggered_actions_that_say_so_are_offered_by_hand(app: AgentApplication, run: Runner) -> None:
    run(app, "also_by_hand")
    assert run.changed(app)

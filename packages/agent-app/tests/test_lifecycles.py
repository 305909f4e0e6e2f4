"""Lifecycles: where they come, in which order, what their actions are told and what they may change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from agent_app import AgentApplication, StoreUnavailable
from agent_app.lifecycle import REQUEST_ENDS
from agent_app.store import queues
from agent_core import STANDARD_LIFECYCLES, Session, tool
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

STANDARD = (*STANDARD_LIFECYCLES, *sorted(set(REQUEST_ENDS.values())))
Seen = list[tuple[str, str, dict[str, Any]]]
Make = Callable[..., AgentApplication]


class Watcher:
    """An application plugin that notes every lifecycle, and marks the session that it is shown."""

    version = "1"

    def __init__(self, seen: Seen, name: str = "watcher", triggers: Sequence[str] = STANDARD) -> None:
        self.name = name
        self._seen = seen
        self._triggers = triggers

    def init(self, app_config: dict[str, Any]) -> dict[str, Any]:
        return {"agents": len(app_config.get("agents", {}))}

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        inputs = {"session_id": {"type": "string", "required": True}}
        return [{"id": "watch", "label": "Watch", "inputs": inputs, "trigger": list(self._triggers)}]

    def execute_action(
        self,
        app: AgentApplication,
        action_id: str,
        params: dict[str, Any],
        context: Any,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        self._seen.append((self.name, context["lifecycle"], dict(context)))
        session = Session.from_dict(context["session"])
        marks = [*session.metadata.get("marks", ()), f"{self.name}:{context['lifecycle']}"]
        return {"mutations": {"updated": [session.with_metadata({"marks": marks})]}, "state": state}


class Follower:
    """A feature that notes the same, and what the application plugins had left."""

    version = "1"

    def __init__(self, seen: Seen, name: str = "follower", triggers: Sequence[str] = STANDARD) -> None:
        self.name = name
        self._seen = seen
        self._triggers = triggers

    def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": "follow", "label": "Follow", "inputs": {}, "trigger": list(self._triggers)}]

    def execute_action(
        self, action_id: str, session: Session, native_messages: Any, params: Any, context: Any, state: Any
    ) -> dict[str, Any]:
        self._seen.append((self.name, context["lifecycle"], dict(context)))
        marks = [*session.metadata.get("marks", ()), f"{self.name}:{context['lifecycle']}"]
        return {"native_messages": native_messages, "session_metadata": {"marks": marks}}


@pytest.fixture
def make() -> Iterator[Make]:
    apps: list[AgentApplication] = []

    def make_app(
        script: Sequence[Any] = (), *plugins: Any, agents: Mapping[str, Any] | None = None
    ) -> AgentApplication:
        config = {
            "agents": agents or {"a": {"model": "m", "system_prompt": "x"}},
            "models": {"m": {"provider": "scripted"}},
            "default_agent": "a",
        }
        provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
        apps.append(AgentApplication(config, plugins=[provider, *plugins], installed=False))
        return apps[-1]

    yield make_app
    for app in apps:
        app.close()


def names(seen: Seen, owner: str = "watcher") -> list[str]:
    return [lifecycle for name, lifecycle, _ in seen if name == owner]


def chat(app: AgentApplication, session_id: str, text: str = "hello", **more: Any) -> list[dict[str, Any]]:
    return list(app.chat(session_id, text, **more))


def test_creating_a_session_runs_session_create_before_it_is_saved(make: Make) -> None:
    seen: Seen = []
    app = make([], Watcher(seen), Follower(seen))
    app.create_session()

    assert [(name, lifecycle) for name, lifecycle, _ in seen] == [
        ("watcher", "session_create"),
        ("follower", "session_create"),
        ("watcher", "session_save_prepare"),
        ("follower", "session_save_prepare"),
    ]


def test_a_new_session_is_not_stored_before_its_plugins_have_set_it_up(make: Make) -> None:
    counts: list[int] = []

    class Counter(Watcher):
        def execute_action(self, app: Any, *arguments: Any) -> dict[str, Any]:
            counts.append(len(app.list_sessions().sessions))
            return super().execute_action(app, *arguments)

    app = make([], Counter([], triggers=["session_create"]))
    session = app.create_session()

    assert counts == [0]
    assert app.load_session(session.session_id).metadata["marks"] == ["watcher:session_create"]


def test_an_ephemeral_session_is_set_up_and_not_saved(make: Make) -> None:
    seen: Seen = []
    app = make([], Watcher(seen))
    session = app.create_session_ephemeral(metadata={"mine": 1})

    assert names(seen) == ["session_create"]
    assert session.metadata["mine"] == 1
    assert session.metadata["marks"] == ["watcher:session_create"]
    assert app.list_sessions().sessions == ()


def test_a_request_is_prepared_completed_and_saved_in_this_order(make: Make) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen), Follower(seen))
    session = app.create_session()
    seen.clear()
    chat(app, session.session_id)

    expected = ["request_prepare", "request_complete", "session_save_prepare"]
    assert names(seen) == expected
    assert names(seen, "follower") == expected
    assert [name for name, _, _ in seen] == ["watcher", "follower"] * 3


def test_what_a_lifecycle_changes_is_stored_with_the_request(make: Make) -> None:
    app = make(["hi"], Watcher([], triggers=["request_complete", "session_save_prepare"]))
    session = app.create_session()
    chat(app, session.session_id)

    assert list(app.load_session(session.session_id).metadata["marks"]) == [
        "watcher:session_save_prepare",
        "watcher:request_complete",
        "watcher:session_save_prepare",
    ]


def test_request_prepare_comes_before_the_model_is_asked_and_complete_after_it(make: Make) -> None:
    order: list[str] = []

    class Noting(Watcher):
        def execute_action(
            self, app: Any, action: str, params: Any, context: Any, state: Any
        ) -> dict[str, Any]:
            order.append(context["lifecycle"])
            return {}

    def answer(_messages: Any) -> str:
        order.append("model")
        return "hi"

    app = make([answer], Noting([], triggers=["request_prepare", "request_complete"]))
    chat(app, app.create_session().session_id)

    assert order == ["request_prepare", "model", "request_complete"]


def test_application_plugins_run_in_order_of_registration_and_before_core_side_ones(make: Make) -> None:
    app = make([], Follower([]), Watcher([], "second"), Watcher([], "first"))
    session, results = app.run_session_lifecycle("request_prepare", app.create_session_ephemeral())

    owners = ["second", "first", "follower"]
    assert [one["plugin"] for one in results] == owners
    assert [one["action_owner"] for one in results][:2] == ["application", "application"]
    assert list(session.metadata["marks"])[-3:] == [f"{owner}:request_prepare" for owner in owners]


def test_a_later_action_sees_what_an_earlier_one_changed(make: Make) -> None:
    seen: Seen = []
    app = make([], Watcher(seen, "one"), Watcher(seen, "two"), Follower(seen))
    seen.clear()
    app.run_session_lifecycle("session_fork", Session("s"))

    shown = {name: list(context["session"]["metadata"].get("marks", ())) for name, _, context in seen}
    assert shown == {
        "one": [],
        "two": ["one:session_fork"],
        "follower": ["one:session_fork", "two:session_fork"],
    }


def test_a_lifecycle_may_have_any_name_and_nothing_is_stored(make: Make) -> None:
    seen: Seen = []
    app = make([], Watcher(seen, triggers=["harvest"]), Follower(seen, triggers=["harvest", "other"]))
    stored = app.create_session()
    session, results = app.run_session_lifecycle("harvest", stored, context={"season": "autumn"})

    assert [one["action_id"] for one in results] == ["watch", "follow"]
    assert [context["season"] for _, _, context in seen] == ["autumn", "autumn"]
    assert "marks" in session.metadata
    assert "marks" not in app.load_session(stored.session_id).metadata


def test_a_fork_runs_session_fork_on_the_new_session_with_the_old_one_as_data(make: Make) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen), Follower(seen))
    source = app.create_session()
    chat(app, source.session_id)
    seen.clear()
    fork = app.fork_session(source.session_id, upto_index=0)

    assert names(seen) == ["session_fork", "session_save_prepare"]
    for _, _, context in seen[:2]:
        assert context["session"]["session_id"] == fork.session_id
        assert context["original_session"] == app.load_session(source.session_id).to_dict()
        json.dumps(context["original_session"])


@pytest.mark.parametrize("operation", ["edit", "regenerate"])
def test_a_branch_made_by_editing_is_a_fork_to_plugins(make: Make, operation: str) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen))
    source = app.create_session()
    chat(app, source.session_id)
    seen.clear()
    if operation == "edit":
        app.edit_message(source.session_id, 0, "goodbye")
    else:
        app.regenerate(source.session_id, 1)

    assert names(seen) == ["session_fork", "session_save_prepare"]


def test_switching_runs_prepare_with_the_old_agent_and_complete_with_the_new(make: Make) -> None:
    seen: Seen = []
    agents = {"a": {"model": "m", "system_prompt": "I am a"}, "b": {"model": "m", "system_prompt": "I am b"}}
    app = make([], Watcher(seen), Follower(seen), agents=agents)
    session = app.create_session("a")
    seen.clear()
    switched = app.switch_agent(session.session_id, "b")

    assert names(seen) == ["agent_switch_prepare", "agent_switch_complete", "session_save_prepare"]
    told = {
        lifecycle: (context["previous_agent_id"], context["next_agent_id"])
        for _, lifecycle, context in seen[:4]
    }
    assert told == {"agent_switch_prepare": ("a", "b"), "agent_switch_complete": ("a", "b")}
    owners = [context["session"]["metadata"]["agent_id"] for name, _, context in seen if name == "watcher"]
    assert owners == ["a", "b", "b"]
    assert switched.metadata["agent_id"] == "b"
    assert app.list_sessions().sessions[0].agent_id == "b"


def test_a_switch_that_cannot_be_stored_changes_neither_agent_nor_session(make: Make) -> None:
    agents = {"a": {"model": "m"}, "b": {"model": "m"}}
    app = make([], agents=agents)
    session_id = app.create_session("a").session_id
    write, store = queues.write, app.store

    def full(*arguments: Any) -> None:
        write(*arguments)
        raise StoreUnavailable("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "write", full)
        with pytest.raises(StoreUnavailable):
            app.switch_agent(session_id, "b")
    assert store.info(session_id).agent_id == store.load(session_id).session.metadata["agent_id"] == "a"

    before = store.info(session_id).revision
    app.switch_agent(session_id, "b")
    assert store.info(session_id).agent_id == store.load(session_id).session.metadata["agent_id"] == "b"
    assert store.info(session_id).revision == before + 1


def test_deleting_runs_its_lifecycle_while_the_session_is_still_there(make: Make) -> None:
    seen: Seen = []
    present: list[bool] = []

    class Looking(Watcher):
        def execute_action(self, app: Any, action: str, params: Any, *more: Any) -> dict[str, Any]:
            present.append(app.load_session(params["session_id"]) is not None)
            return super().execute_action(app, action, params, *more)

    app = make([], Looking(seen, triggers=["session_delete_prepare"]))
    session = app.create_session()
    app.delete_session(session.session_id, reason="retention")

    assert [context["delete_reason"] for _, _, context in seen] == ["retention"]
    assert present == [True]
    assert app.list_sessions().sessions == ()


def test_saving_runs_session_save_prepare_once(make: Make) -> None:
    seen: Seen = []
    app = make([], Watcher(seen, triggers=["session_save_prepare"]))
    session = app.create_session()
    seen.clear()
    saved = app.save_session(session.with_metadata({"colour": "red"}))

    assert names(seen) == ["session_save_prepare"]
    assert saved.metadata["colour"] == "red"
    assert app.load_session(session.session_id) == saved


def test_reading_runs_no_lifecycle(make: Make) -> None:
    seen: Seen = []
    app = make([], Watcher(seen), Follower(seen))
    session = app.create_session()
    seen.clear()
    app.load_session(session.session_id)
    app.read_messages(session.session_id)
    app.get_actions(session.session_id)
    app.list_sessions("anything")

    assert seen == []


def test_the_context_has_the_layers_of_core_and_application(make: Make) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen), Follower(seen))
    chat(app, app.create_session().session_id, context={"terminal": "mine"})
    contexts = {name: context for name, lifecycle, context in seen if lifecycle == "request_prepare"}

    for context in contexts.values():
        assert context["app"] is app
        assert context["application"] is app
        base_config = context["base_config"]
        assert {key: base_config[key] for key in app.config} == app.config
        assert (base_config["provider"], base_config["agent_id"]) == ("scripted", "a")
        assert context["session_asset_store"] is None
        assert context["trigger_source"] == "application"
        assert context["terminal"] == "mine"
        assert context["session"]["messages"] == []
    assert contexts["follower"]["config"]["provider"] == "scripted"
    assert hasattr(contexts["follower"]["core"], "send_request")


@pytest.mark.parametrize(
    "key",
    [
        "app",
        "application",
        "base_config",
        "session_asset_store",
        "trigger_source",
        "lifecycle",
        "session",
        "error",
    ],
)
def test_a_caller_cannot_take_a_key_of_the_platform_and_is_warned(
    make: Make, key: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    seen: Seen = []
    app = make([RuntimeError("boom")], Watcher(seen, triggers=["request_error"]))
    chat(app, app.create_session().session_id, context={key: "mine"})

    [(_, _, context)] = seen
    assert context[key] != "mine"
    printed = capsys.readouterr()
    assert key in caplog.text + printed.out + printed.err


FORGED = (
    "app",
    "base_config",
    "lifecycle",
    "original_session",
    "previous_agent_id",
    "error",
    "final_messages",
    "request_runtime",
    "cancellation",
    "reason",
    "title",
)


@pytest.mark.parametrize("way", ["chat", "start_run", "send_request"])
@pytest.mark.parametrize("keys", [("app",), ("lifecycle",), FORGED], ids=["app", "lifecycle", "all"])
def test_nothing_can_be_forged_in_a_request_and_one_warning_says_so(
    make: Make, keys: tuple[str, ...], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen), Follower(seen, triggers=(*STANDARD, "response_finalize")))
    session_id = app.create_session().session_id
    seen.clear()
    forged = dict.fromkeys(keys, "forged")

    if way == "chat":
        chat(app, session_id, context={**forged, "mine": 1})
    elif way == "start_run":
        started = app.start_run(session_id, "hello", context={**forged, "mine": 1})
        next(one for one in app.subscribe(session_id, started["after"]) if one["type"] == "final")
    else:
        core, config, session = app.update_agent("a", app.load_session(session_id))
        asked = core.add_message(session, "user", "hello")
        list(app.send_request(core, asked, config, context={**forged, "mine": 1}))

    told = [context for _, lifecycle, context in seen if lifecycle != "session_save_prepare"]
    assert {context["lifecycle"] for context in told} > {"request_prepare", "request_complete"}
    assert not [key for context in told for key in keys if context.get(key) == "forged"]
    assert {context["mine"] for context in told} == {1}
    assert caplog.text.count("reserved_context_key") == 1


def test_an_action_may_hand_its_context_to_a_request(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    seen: Seen = []

    class Asking(Follower):
        def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
            return [{"id": "ask", "trigger": "harvest"}]

        def execute_action(
            self,
            action_id: str,
            session: Session,
            native_messages: Any,
            params: Any,
            context: Any,
            state: Any,
        ) -> dict[str, Any]:
            core, config, asked = context["app"].update_agent("a", session)
            asked = core.add_message(asked, "user", "hello")
            list(context["app"].send_request(core, asked, config, context=context))
            return {}

    app = make(["hi"], Asking(seen, "asking"), Follower(seen))
    app.run_session_lifecycle("harvest", Session("s"), context={"original_session": {}, "mine": 1})

    [prepared, completed] = [context for _, _, context in seen]
    assert (prepared["lifecycle"], completed["lifecycle"]) == ("request_prepare", "request_complete")
    assert prepared["mine"] == 1
    assert "original_session" not in prepared
    assert "reserved_context_key" not in caplog.text


@pytest.mark.parametrize("key", ["original_session", "previous_agent_id", "anything"])
def test_a_key_that_nobody_owns_at_that_point_is_the_callers(make: Make, key: str) -> None:
    seen: Seen = []
    app = make([], Watcher(seen, triggers=["harvest"]))
    app.run_session_lifecycle("harvest", Session("s"), context={key: "mine"})

    assert seen[0][2][key] == "mine"


def failing_provider(make: Make, seen: Seen) -> AgentApplication:
    return make([RuntimeError("no model today")], Watcher(seen), Follower(seen))


def failing_hook(make: Make, seen: Seen) -> AgentApplication:
    class Broken:
        name = "broken"
        version = "1"

        def register(self, registrar: Any) -> None:
            from agent_runtime import Phase

            registrar.phase_hook(Phase.RUN_START, self.fail)

        def fail(self, _view: Any) -> None:
            raise RuntimeError("a hook fails")

    return make(["hi"], Watcher(seen), Follower(seen), Broken)


@pytest.mark.parametrize("fail", [failing_provider, failing_hook])
def test_request_error_comes_when_a_request_fails(make: Make, fail: Callable[[Make, Seen], Any]) -> None:
    seen: Seen = []
    app = fail(make, seen)
    session = app.create_session()
    seen.clear()
    events = chat(app, session.session_id)

    expected = ["request_prepare", "request_error", "session_save_prepare"]
    assert names(seen) == expected
    assert names(seen, "follower") == expected
    error = next(context["error"] for _, lifecycle, context in seen if lifecycle == "request_error")
    assert events[-1]["type"] == "error"
    assert events[-1]["error"] == error
    assert {"type", "message"} <= set(error)
    json.dumps(error)
    marks = app.load_session(session.session_id).metadata["marks"]
    assert "follower:request_error" in marks


def test_request_error_comes_when_the_agent_cannot_be_had(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Seen = []
    app = make([], Watcher(seen), agents={"a": {"model": "m"}, "b": {"model": "m"}})
    session = app.create_session()
    seen.clear()

    def refuse(_agent_id: str) -> Any:
        from agent_runtime import AgentNotFound

        raise AgentNotFound("a", known=())

    monkeypatch.setattr(app.runtime, "resolve", refuse)
    events = chat(app, session.session_id)

    assert names(seen) == ["request_error", "session_save_prepare"]
    assert events[-1]["error"]["type"] == "AgentNotFound"


def test_request_error_comes_when_the_session_cannot_be_saved(make: Make) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen, triggers=["request_complete", "request_error"]))
    session = app.create_session()
    save = app.store.save

    def full(*arguments: Any, **more: Any) -> Any:
        if "request_complete" in names(seen) and "request_error" not in names(seen):
            raise StoreUnavailable("the disk is full")
        return save(*arguments, **more)

    app.store.save = full  # type: ignore[method-assign]
    events = chat(app, session.session_id)

    assert names(seen) == ["request_complete", "request_error"]
    assert events[-1]["error"]["message"].startswith("the disk is full; a second try stored")
    assert [message.content for message in app.load_session(session.session_id).messages] == ["hello", "hi"]


def test_a_cancelled_request_is_no_failed_one(make: Make) -> None:
    seen: Seen = []
    app = make([Reply(text="abc", chunks=["a", "b", "c"])], Watcher(seen))
    session = app.create_session()
    seen.clear()
    events = []
    for event in app.chat(session.session_id, "hello"):
        events.append(event)
        if event["type"] == "text":
            app.cancel(session.session_id)

    assert events[-1]["type"] == "final"
    assert events[-1]["reason"]["code"] == "cancelled"
    assert names(seen) == ["request_prepare", "request_cancelled", "session_save_prepare"]


def test_an_action_that_fails_is_named_and_costs_nothing_else(make: Make) -> None:
    class Broken(Watcher):
        def execute_action(self, *_: Any) -> dict[str, Any]:
            raise ValueError("out of order")

    seen: Seen = []
    app = make(["hi"], Broken([], "broken"), Watcher(seen), Follower(seen))
    session = app.create_session()
    events = chat(app, session.session_id)
    _, results = app.run_session_lifecycle("session_fork", session)

    assert events[-1]["type"] == "final"
    broken = [event for event in events if event["type"] == "lifecycle_error"]
    assert {event["plugin"] for event in broken} == {"broken"}
    assert {"request_prepare", "request_complete"} <= {event["lifecycle"] for event in broken}
    assert "out of order" in broken[0]["error"]["message"]
    assert [one["plugin"] for one in results] == ["broken", "watcher", "follower"]
    assert "error" in results[0]
    assert names(seen, "follower")[:3] == ["session_create", "session_save_prepare", "request_prepare"]


def test_a_core_side_action_that_fails_is_named_too(make: Make) -> None:
    class Broken(Follower):
        def execute_action(self, *_: Any) -> dict[str, Any]:
            raise ValueError("out of order")

    app = make(["hi"], Watcher([]), Broken([], "broken"))
    events = chat(app, app.create_session().session_id)

    assert events[-1]["type"] == "final"
    assert {event["plugin"] for event in events if event["type"] == "lifecycle_error"} == {"broken"}


def test_a_core_side_action_that_fails_costs_the_others_nothing(make: Make) -> None:
    class Broken(Follower):
        def execute_action(self, *_: Any) -> dict[str, Any]:
            raise ValueError("out of order")

    seen: Seen = []
    first, last = Follower(seen, "first"), Follower(seen, "last")
    app = make(["hi"], Watcher(seen), first, Broken([], "broken"), last)
    session_id = app.create_session().session_id
    events = chat(app, session_id)

    failed = [event for event in events if event["type"] == "lifecycle_error"]
    assert {(event["plugin"], event["action_id"]) for event in failed} == {("broken", "follow")}
    assert {"request_prepare", "request_complete"} <= {event["lifecycle"] for event in failed}
    assert failed[0]["error"]["type"] == "PluginError"
    marks = app.load_session(session_id).metadata["marks"]
    for lifecycle in ("session_create", "request_prepare", "request_complete"):
        assert [mark for mark in marks if mark.endswith(f":{lifecycle}")] == [
            f"{name}:{lifecycle}" for name in ("watcher", "first", "last")
        ]


def test_an_action_may_give_the_session_settings_that_the_request_then_has(make: Make) -> None:
    class Settings(Follower):
        def execute_action(self, _id: str, session: Session, native: Any, *_: Any) -> dict[str, Any]:
            return {"native_messages": native, "session_metadata": {"overrides": {"temperature": 0.25}}}

    provider = ScriptedProvider(["hi"])
    app = make(provider, Settings([], triggers=["request_prepare"]))
    session = app.create_session()
    chat(app, session.session_id)

    assert provider.requests[0].config["temperature"] == 0.25
    assert app.load_session(session.session_id).metadata["overrides"] == {"temperature": 0.25}


def test_send_request_has_the_same_lifecycles_and_stores_nothing(make: Make) -> None:
    seen: Seen = []
    app = make(["hi", RuntimeError("boom")], Watcher(seen), Follower(seen))
    core, config, session = app.update_agent("a", app.create_session_ephemeral())
    seen.clear()
    session = core.add_message(session, "user", "hello")
    done = list(app.send_request(core, session, config))
    session = core.add_message(done[-1]["session"], "user", "again")
    failed = list(app.send_request(core, session, config))

    assert names(seen) == ["request_prepare", "request_complete", "request_prepare", "request_error"]
    assert done[-1]["type"] == "final"
    assert failed[-1]["type"] == "error"
    assert app.list_sessions().sessions == ()


def test_request_error_comes_when_there_is_nothing_to_send(make: Make) -> None:
    seen: Seen = []
    app = make([], Watcher(seen, triggers=["request_error"]))
    core, config, session = app.update_agent("a", app.create_session_ephemeral())
    events = list(app.send_request(core, session, config))

    assert [event["type"] for event in events] == ["error"]
    assert names(seen) == ["request_error"]


def test_every_standard_lifecycle_is_run_by_some_operation(make: Make) -> None:
    seen: Seen = []
    agents = {"a": {"model": "m"}, "b": {"model": "m"}}
    app = make(["hi", RuntimeError("boom")], Watcher(seen), agents=agents)
    session = app.create_session("a")
    chat(app, session.session_id)
    chat(app, session.session_id)
    app.fork_session(session.session_id, upto_index=0)
    app.switch_agent(session.session_id, "b")
    app.delete_session(session.session_id)

    assert set(names(seen)) == set(STANDARD_LIFECYCLES)


def test_tool_rounds_within_a_request_run_no_lifecycle_of_their_own(make: Make) -> None:
    class Adder:
        name = "adder"
        version = "1"

        def register(self, registrar: Any) -> None:
            from agent_core import tool

            def add(a: int, b: int) -> int:
                """Add."""
                return a + b

            registrar.tool("add", tool(add))

    seen: Seen = []
    app = make([Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "3"], Watcher(seen), Adder)
    session = app.create_session()
    seen.clear()
    chat(app, session.session_id)

    assert names(seen) == ["request_prepare", "request_complete", "session_save_prepare"]


def test_a_servers_own_request_id_reaches_plugins_without_a_warning(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen), Follower(seen, triggers=(*STANDARD, "response_finalize")))
    session = app.create_session()
    seen.clear()

    chat(app, session.session_id, context={"request_id": "http-7"})

    told = {lifecycle: context["request_id"] for _, lifecycle, context in seen if "request_id" in context}
    assert set(told.values()) == {"http-7"}
    assert {"request_prepare", "response_finalize", "request_complete"} <= told.keys()
    assert "reserved_context_key" not in caplog.text


@pytest.mark.parametrize("key", ["lifecycle", "error", "final_messages", "core"])
def test_an_action_that_a_person_runs_cannot_be_told_of_a_lifecycle(
    make: Make, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []

    class Manual:
        version = "1"
        name = "manual"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": "listen"}]

        def execute_action(self, *given: Any, context: Any) -> dict[str, Any]:
            heard.append(context.get(key))
            return {}

    app = make([], Manual())
    session = app.create_session()

    app.execute_session_action(session.session_id, "manual", "listen", {}, context={key: "forged"})

    assert heard != ["forged"]
    assert caplog.text.count("reserved_context_key") == 1


def looping(count: int) -> list[Reply]:
    return [Reply(tool_calls=[ToolCall("look", {"at": number})]) for number in range(count)]


ENDS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "natural_end": ("request_complete", ["done"], {}),
    "stop_on_tool": (
        "request_complete",
        looping(1),
        {"stop_conditions": [{"type": "stop_on_tool", "tools": ["look"]}]},
    ),
    "max_rounds": ("request_limited", looping(2), {"max_rounds": 2}),
    "token_budget": (
        "request_limited",
        [Reply(tool_calls=[ToolCall("look", {"at": 1})], usage={"input_tokens": 90, "output_tokens": 10})],
        {"stop_conditions": [{"type": "token_budget", "tokens": 50}]},
    ),
    "suspended": ("request_suspended", looping(1), {"sections": {"permissions": {"ask": ["look"]}}}),
}


class Eyes:
    """A plugin with one tool."""

    name = "eyes"
    version = "1"

    def register(self, registrar: Any) -> None:
        registrar.tool("look", look)


@tool
def look(at: int) -> str:
    """Look at something."""
    return f"seen {at}"


@pytest.mark.parametrize("way", ["chat", "send_request"])
@pytest.mark.parametrize("code", list(ENDS))
def test_only_a_request_that_succeeded_is_complete(make: Make, code: str, way: str) -> None:
    lifecycle, script, spec = ENDS[code]
    seen: Seen = []
    app = make(list(script), Watcher(seen), Follower(seen), Eyes, agents={"a": {"model": "m", **spec}})
    session = app.create_session()
    seen.clear()
    if way == "chat":
        final = chat(app, session.session_id)[-1]
    else:
        core, base_config, session = app.update_agent("a", session)
        asked = core.add_message(session, "user", "hello", config=base_config)
        final = list(app.send_request(core, asked, base_config))[-1]

    assert (final["type"], final["reason"]["code"]) == ("final", code)
    ends = [name for name in names(seen) if name not in ("request_prepare", "session_save_prepare")]
    assert ends == [lifecycle]
    assert ends == [name for name in names(seen, "follower") if name in ends]
    assert next(context for _, name, context in seen if name == lifecycle)["reason"]["code"] == code


def test_an_application_action_gets_the_defaults_of_its_inputs_at_lifecycles_too(make: Make) -> None:
    given: list[dict[str, Any]] = []

    class Defaulted:
        name = "defaulted"
        version = "1"

        def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
            inputs = {
                "session_id": {"type": "string", "required": True},
                "depth": {"type": "integer", "default": 3},
                "note": {"type": "string"},
            }
            lifecycles = ["session_create", "session_list"]
            return [{"id": "dig", "label": "Dig", "inputs": inputs, "trigger": lifecycles}]

        def execute_action(self, app: Any, action_id: str, params: Any, context: Any, state: Any) -> Any:
            given.append(dict(params))
            return {}

    app = make([], Defaulted)
    session = app.create_session()
    app.list_sessions()

    assert given == [{"session_id": session.session_id, "depth": 3}] * 2


def test_a_lifecycle_cannot_run_an_action_that_needs_what_nobody_gives(make: Make) -> None:
    class Needy(Watcher):
        def get_actions(self, state: dict[str, Any]) -> list[dict[str, Any]]:
            inputs = {"depth": {"type": "integer", "required": True}}
            return [{"id": "dig", "label": "Dig", "inputs": inputs, "trigger": "harvest"}]

    seen: Seen = []
    _, [record] = make([], Needy(seen)).run_session_lifecycle("harvest", Session("s"))

    assert seen == []
    assert (record["error"]["type"], "depth" in record["error"]["message"]) == ("ActionInputError", True)


def test_an_imported_session_is_set_up_like_a_new_one(make: Make, tmp_path: Path) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen), Follower(seen))
    session = app.create_session()
    app.export_session(session.session_id, tmp_path / "session.zip")
    seen.clear()

    made = app.import_session(tmp_path / "session.zip")

    assert names(seen) == names(seen, "follower") == ["session_create", "session_save_prepare"]
    assert list(app.load_session(made.id).metadata["marks"]) == [
        "watcher:session_create", "follower:session_create",
        "watcher:session_save_prepare", "follower:session_save_prepare",
    ]  # fmt: skip
    assert app.events(made.id)[0]["imported"]


def test_renaming_lets_plugins_look_before_it_is_saved(make: Make) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen, triggers=["session_save_prepare"]))
    session = app.create_session()
    seen.clear()

    app.rename_session(session.session_id, "Tea")

    assert names(seen) == ["session_save_prepare"]
    assert seen[0][2]["title"] == "Tea"
    assert app.session_info(session.session_id).title == "Tea"
    assert (
        list(app.load_session(session.session_id).metadata["marks"]) == ["watcher:session_save_prepare"] * 2
    )


def test_a_session_that_runs_can_be_renamed_and_is_looked_at_when_it_saves(make: Make) -> None:
    seen: Seen = []
    app = make(["hi"], Watcher(seen, triggers=["session_save_prepare"]))
    session = app.create_session()
    seen.clear()
    for event in app.chat(session.session_id, "hello"):
        if event["type"] == "step_start":
            app.rename_session(session.session_id, "Tea")
            assert names(seen) == []

    assert names(seen) == ["session_save_prepare"]
    assert app.session_info(session.session_id).title == "Tea"

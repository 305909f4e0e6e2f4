"""Lifecycles: actions that run because the session has come to a point."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import (
    RESPONSE_FINALIZE,
    STANDARD_LIFECYCLES,
    ActionInputError,
    AgentCore,
    PluginError,
    Session,
)
from agent_core.drivers import call
from agent_core.testing import EchoProvider, ScriptedIO

Outcome = tuple[Session, list[dict[str, Any]]]
Run = Callable[..., Outcome]


class Tracing:
    """Offers actions by id and trigger; each adds its name to the session's trace."""

    version = "1"

    def __init__(self, name: str, triggers: dict[str, Any], priority: int = 100) -> None:
        self.name = name
        self.priority = priority
        self._triggers = triggers

    def get_actions(self) -> list[dict[str, Any]]:
        return [{"id": name, "trigger": trigger} for name, trigger in self._triggers.items()]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: list[dict[str, Any]],
        params: dict[str, Any],
        context: dict[str, Any],
    ) -> dict[str, Any]:
        trace = [*session.metadata.get("trace", []), f"{self.name}.{action_id}"]
        return {"session_metadata": {"trace": trace}, "lifecycle": context["lifecycle"]}


def core_with(*features: Any, extensions: Any = ()) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider, list(extensions))
    for feature in features:
        core.register_feature(feature)
    return core


def acting(function: Callable[..., Any], trigger: Any = "point", **definition: Any) -> type:
    """Return a feature whose one action "do" is *function* of the session, native messages and context."""

    class Acting:
        name = "acting"
        version = "1"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": "do", "trigger": trigger, **definition}]

        def execute_action(
            self, action_id: str, session: Any, native_messages: Any, params: Any, context: Any
        ) -> Any:
            return function(session, native_messages, context)

    return Acting


def _run(core: AgentCore, *arguments: Any, **options: Any) -> Outcome:
    return core.execute_lifecycle_actions(*arguments, **options)


def _run_async(core: AgentCore, *arguments: Any, **options: Any) -> Outcome:
    return asyncio.run(core.execute_lifecycle_actions_async(*arguments, **options))


@pytest.fixture(params=[_run, _run_async], ids=["call", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a lifecycle as a call, and on an event loop."""
    driver: Run = request.param
    return driver


# Which actions run


@pytest.mark.parametrize("trigger", [*STANDARD_LIFECYCLES, RESPONSE_FINALIZE, "session_list", "my_own point"])
def test_any_name_is_a_lifecycle(run: Run, trigger: str) -> None:
    core = core_with(Tracing("notes", {"on": trigger, "other": "elsewhere", "manual": None}))

    session, results = run(core, Session("s"), {}, trigger)

    assert session.metadata["trace"] == ["notes.on"]
    assert results == [
        {
            "plugin": "notes",
            "action_id": "on",
            "action_owner": "feature",
            "result": {"lifecycle": trigger},
        }
    ]


@pytest.mark.parametrize(
    ("declared", "trigger", "lifecycle"),
    [
        ("create", "create", "create"),
        (["create", "prepare"], "prepare", "prepare"),
        ("prepare", ["create", "prepare"], "prepare"),
        ("prepare", ("create", "prepare"), "prepare"),
        (["prepare", "create"], ["create", "prepare"], "create"),
        ([], "create", None),
        (["create"], "creat", None),
    ],
)
def test_one_name_or_several_match_on_either_side_and_an_action_runs_once(
    run: Run, declared: Any, trigger: Any, lifecycle: str | None
) -> None:
    core = core_with(Tracing("notes", {"on": declared}))

    _, results = run(core, Session("s"), {}, trigger)

    assert [found["result"]["lifecycle"] for found in results] == ([] if lifecycle is None else [lifecycle])


def test_a_lifecycle_that_nobody_waits_for_leaves_the_session_alone(run: Run) -> None:
    session = Session("s")

    assert run(core_with(Tracing("notes", {"on": "create"})), session, {}, "delete") == (session, [])


def test_extensions_run_before_features_by_priority_and_each_in_the_order_of_its_actions(run: Run) -> None:
    core = core_with(
        Tracing("late", {"b": "x", "a": ["y", "x"], "no": "y"}, priority=200),
        Tracing("usual", {"c": "x"}),
        Tracing("early", {"d": "x"}, priority=1),
        extensions=[Tracing("first", {"z": "x"}), Tracing("second", {"e": "x"})],
    )

    session, results = run(core, Session("s"), {}, "x")

    trace = ["first.z", "second.e", "early.d", "usual.c", "late.b", "late.a"]
    assert session.metadata["trace"] == trace
    assert [f"{found['plugin']}.{found['action_id']}" for found in results] == trace
    owners = [found["action_owner"] for found in results]
    assert owners == ["provider_extension"] * 2 + ["feature"] * 4


def test_with_several_triggers_plugins_keep_their_order(run: Run) -> None:
    core = core_with(Tracing("one", {"second": "b"}), Tracing("two", {"first": "a"}))

    session, results = run(core, Session("s"), {}, ["a", "b"])

    assert session.metadata["trace"] == ["one.second", "two.first"]
    assert [found["result"]["lifecycle"] for found in results] == ["b", "a"]


def test_a_disabled_plugin_takes_no_part(run: Run) -> None:
    core = core_with(Tracing("one", {"a": "x"}), Tracing("two", {"b": "x"}))

    session, _ = run(core, Session("s"), {"disabled_plugins": ["one"]}, "x")

    assert session.metadata["trace"] == ["two.b"]


# What passes from one action to the next


def test_later_actions_see_what_earlier_ones_changed_wherever_they_look(run: Run) -> None:
    class First:
        name = "first"
        version = "1"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": "cut", "trigger": "x"}]

        def execute_action(self, action_id: str, session: Any, native_messages: Any, params: Any) -> Any:
            return {"native_messages": native_messages[1:], "session_metadata": {"cut": 1}}

    def look(session: Session, native: list[dict[str, Any]], context: dict[str, Any]) -> dict[str, Any]:
        return {
            "session": [m.content for m in session.messages],
            "native": [item["content"] for item in native],
            "context": [m["content"] for m in context["session"]["messages"]],
            "request_context": [m["content"] for m in context["request_context"]["session"]["messages"]],
            "cut": context["session"]["metadata"]["cut"],
        }

    core = core_with(First, acting(look, "x"))
    session = core.add_message(core.add_message(Session("s"), "user", "one"), "user", "two")

    _, results = run(core, session, {}, "x")

    assert results[1]["result"] == {
        "session": ["two"],
        "native": ["two"],
        "context": ["two"],
        "request_context": ["two"],
        "cut": 1,
    }


def test_actions_of_one_lifecycle_share_a_state_and_the_next_lifecycle_has_a_new_one(run: Run) -> None:
    class Counting:
        name = "counting"
        version = "1"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": name, "trigger": "x"} for name in ("a", "b")]

        def execute_action(
            self, action_id: str, session: Any, native_messages: Any, params: Any, *, state: dict[str, Any]
        ) -> Any:
            state["count"] = state.get("count", 0) + 1
            return {"count": state["count"]}

    core = core_with(Counting)

    for _ in range(2):
        _, results = run(core, Session("s"), {}, "x")
        assert [found["result"]["count"] for found in results] == [1, 2]


def test_results_are_public_like_those_of_manual_actions(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    answer = {
        "native_messages": [],
        "session_metadata": {"a": 1},
        "display": "not a display",
        "error": {"type": "disabled"},
    }
    core = core_with(acting(lambda *_: answer))

    session, results = run(core, Session("s"), {}, "point")

    assert results[0]["result"] == {"error": {"type": "disabled"}}
    assert session.metadata["a"] == 1
    assert [text.split()[0] for text in caplog.messages] == ["display_changed"]


def test_inputs_of_a_triggered_action_have_their_defaults(run: Run) -> None:
    class Defaulting:
        name = "defaulting"
        version = "1"

        def get_actions(self) -> list[dict[str, Any]]:
            return [{"id": "do", "trigger": "x", "inputs": {"size": {"type": "integer", "default": 3}}}]

        def execute_action(self, action_id: str, session: Any, native_messages: Any, params: Any) -> Any:
            return {"got": params}

    assert run(core_with(Defaulting), Session("s"), {}, "x")[1][0]["result"] == {"got": {"size": 3}}


# What the caller says about it


def test_the_callers_context_reaches_the_action(run: Run) -> None:
    source = Session("source", [], {"agent_id": "default"})
    core = core_with(
        acting(lambda session, native, context: {"from": context["original_session"]}, "session_fork")
    )

    _, results = run(core, Session("s"), {}, "session_fork", context={"original_session": source.to_dict()})

    assert results[0]["result"]["from"] == source.to_dict()


def test_naming_the_lifecycle_in_the_context_as_well_is_fine(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    core = core_with(Tracing("notes", {"on": "session_fork"}))
    same_word = "session_" + "fork".lower()

    run(core, Session("s"), {}, "session_fork", context={"lifecycle": same_word})

    assert caplog.messages == []


def test_a_lifecycle_named_otherwise_in_the_context_stays_what_it_is(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    core = core_with(Tracing("notes", {"on": "session_fork"}))

    _, results = run(core, Session("s"), {}, "session_fork", context={"lifecycle": "session_create"})

    assert results[0]["result"] == {"lifecycle": "session_fork"}
    assert any(text.startswith("reserved_context_key keys=['lifecycle']") for text in caplog.messages)


# Wrong arguments, and no provider


@pytest.mark.parametrize("core", [AgentCore(), core_with()], ids=["no provider", "a provider"])
@pytest.mark.parametrize("trigger", ["", None, [], [""], ["create", ""], ["create", None], [["create"]]])
def test_a_trigger_is_a_name_or_several(run: Run, core: AgentCore, trigger: Any) -> None:
    with pytest.raises(ValueError, match="trigger must be a non-empty string, or a list of such"):
        run(core, Session("s"), {}, trigger)


@pytest.mark.parametrize("trigger", [5, True, 1.5])
def test_a_trigger_is_no_number(run: Run, trigger: Any) -> None:
    with pytest.raises(ValueError, match="trigger must be a non-empty string"):
        run(core_with(), Session("s"), {}, trigger)


@pytest.mark.parametrize("core", [AgentCore(), core_with()], ids=["no provider", "a provider"])
def test_a_configuration_is_a_dict(run: Run, core: AgentCore) -> None:
    with pytest.raises(TypeError, match="config must be a dict"):
        run(core, Session("s"), "echo", "create")


def test_a_session_is_a_session(run: Run) -> None:
    with pytest.raises(TypeError, match="session must be a Session, not dict"):
        run(core_with(), {"session_id": "s"}, {}, "create")


def test_without_a_provider_nothing_runs(run: Run) -> None:
    core, session = AgentCore(), Session("s")
    core.register_feature(acting(lambda *_: pytest.fail("it ran"), "create"))

    unchanged, results = run(core, session, {}, "create")

    assert unchanged is session
    assert results == []


def test_an_action_that_needs_an_input_cannot_be_triggered(run: Run) -> None:
    core = core_with(acting(lambda *_: {}, inputs={"size": {"type": "integer", "required": True}}))

    with pytest.raises(ActionInputError) as raised:
        run(core, Session("s"), {}, "point")

    assert (raised.value.action, raised.value.field) == ("do", "size")


def _raise(*_: Any) -> Any:
    raise OSError("disk full")


@pytest.mark.parametrize(
    ("function", "problem"),
    [(_raise, "raised OSError: disk full"), (lambda *_: None, "must return a dict, returned None")],
)
def test_an_action_that_fails_ends_the_lifecycle_with_its_name(
    run: Run, function: Callable[..., Any], problem: str
) -> None:
    core = core_with(Tracing("before", {"on": "point"}), acting(function), Tracing("after", {"on": "point"}))
    session = Session("s", [], {"trace": []})

    with pytest.raises(PluginError, match=problem) as raised:
        run(core, session, {}, "point")

    assert (raised.value.plugin, raised.value.hook) == ("acting", "execute_action")
    assert session.metadata == {"trace": []}


@pytest.mark.parametrize("function", [_raise, lambda *_: None, lambda *_: {"native_messages": "none"}])
def test_if_errors_are_described_a_failing_action_does_not_undo_the_others(
    function: Callable[..., Any],
) -> None:
    core = core_with(Tracing("before", {"on": "point"}), acting(function), Tracing("after", {"on": "point"}))
    session = Session("s", [], {"trace": []})

    changed, records = call(core.lifecycle_flow(session, {}, "point", describe=str))

    assert [step["plugin"] for step in records] == ["before", "acting", "after"]
    assert ["error" in step for step in records] == [False, True, False]
    assert "acting" in records[1]["error"]
    assert [step.split(".")[0] for step in changed.metadata["trace"]] == ["before", "after"]


def test_an_action_that_needs_an_input_fails_alone_if_its_error_is_wanted() -> None:
    needy = acting(lambda *_: {}, inputs={"size": {"type": "integer", "required": True}})
    core = core_with(needy, Tracing("after", {"on": "point"}))

    changed, records = call(core.lifecycle_flow(Session("s", [], {"trace": []}), {}, "point", describe=str))

    assert "size" in records[0]["error"]
    assert len(changed.metadata["trace"]) == 1


# On an event loop


def test_a_slow_action_does_not_block_the_event_loop() -> None:
    async def main() -> list[dict[str, Any]]:
        loop, started, released = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def wait(*_: Any) -> dict[str, Any]:
            loop.call_soon_threadsafe(started.set)
            return {"released": released.wait(timeout=60)}

        async def release() -> None:
            await started.wait()
            released.set()

        core = core_with(acting(wait))
        outcome, _ = await asyncio.gather(
            core.execute_lifecycle_actions_async(Session("s"), {}, "point"), release()
        )
        return outcome[1]

    [record] = asyncio.run(main())

    assert record["result"] == {"released": True}


def test_a_lifecycles_flow_asks_for_one_piece_of_work_per_action() -> None:
    core = core_with(Tracing("one", {"a": "x"}), Tracing("two", {"b": "x"}))
    core.resolve({})
    io = ScriptedIO([{"session_metadata": {"a": 1}}, {"session_metadata": {"b": 2}}])

    session, results = io.run(core.lifecycle_flow(Session("s"), {}, "x"))

    assert len(io.steps) == 2
    assert session.metadata == {"a": 1, "b": 2}
    assert [found["result"] for found in results] == [{}, {}]


# Idempotent actions


class Ensuring:
    """Gives a session a setting unless it has one, and a system message unless it begins with one."""

    name = "ensuring"
    version = "1"

    def get_actions(self) -> list[dict[str, Any]]:
        return [
            {"id": "ensure_key", "trigger": ["session_create", "request_prepare"], "idempotent": True},
            {"id": "ensure_system", "trigger": "request_prepare", "idempotent": True},
        ]

    def execute_action(
        self, action_id: str, session: Session, native_messages: list[dict[str, Any]], params: Any
    ) -> dict[str, Any]:
        if action_id == "ensure_key":
            known = session.metadata.get("overrides", {}).get("key")
            return {"session_metadata": {"overrides": {"key": known or f"key-of-{session.session_id}"}}}
        if native_messages and native_messages[0]["role"] == "system":
            return {"native_messages": native_messages}
        return {"native_messages": [{"role": "system", "content": "Be kind."}, *native_messages]}


@settings(max_examples=20, deadline=None)
@given(
    messages=st.lists(
        st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(max_size=3)), max_size=4
    ),
    metadata=st.fixed_dictionaries(
        {},
        optional={
            "title": st.text(max_size=3),
            "overrides": st.dictionaries(st.sampled_from(["key", "x"]), st.text(max_size=2)),
        },
    ),
    answered=st.booleans(),
)
def test_running_a_lifecycle_of_idempotent_actions_again_changes_nothing(
    messages: list[tuple[Any, str]], metadata: dict[str, Any], answered: bool
) -> None:
    core = core_with(Ensuring)
    session = Session("s", [], metadata)
    for role, content in messages:
        session = core.add_message(session, role, content, {"mark": content})
    if answered:
        session, _ = core.send_request(session, {})

    once, first = core.execute_lifecycle_actions(session, {}, "request_prepare")
    twice, second = core.execute_lifecycle_actions(once, {}, "request_prepare")

    assert twice == once
    assert second == first
    assert once.messages[0].role == "system"
    assert once.metadata["overrides"]["key"]
    kept = once.messages[len(once.messages) - len(session.messages) :]
    assert [m.metadata.get("mark") for m in kept] == [m.metadata.get("mark") for m in session.messages]

"""Session actions: what is offered, how it is asked for, and what becomes of the answer."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import (
    ActionInputError,
    AgentCore,
    NoProviderError,
    PluginError,
    PluginMutationError,
    Session,
    UnknownActionError,
)
from agent_core.testing import EchoProvider, ScriptedIO

Outcome = tuple[Session, dict[str, Any]]
Run = Callable[..., Outcome]


class Call(NamedTuple):
    session: Session
    native: list[dict[str, Any]]
    params: dict[str, Any]
    context: dict[str, Any]
    state: dict[str, Any]


class Acting:
    """An extension or a feature that offers the actions it was given."""

    version = "1"

    def __init__(
        self, name: str, *actions: tuple[dict[str, Any], Callable[[Call], Any]], priority: int = 100
    ) -> None:
        self.name = name
        self.priority = priority
        self._definitions = [definition for definition, _ in actions]
        self._functions = {definition["id"]: function for definition, function in actions}

    def get_actions(self) -> list[dict[str, Any]]:
        return self._definitions

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: list[dict[str, Any]],
        params: dict[str, Any],
        context: dict[str, Any],
        state: dict[str, Any],
    ) -> Any:
        return self._functions[action_id](Call(session, native_messages, params, context, state))


def action(
    action_id: str, function: Callable[[Call], Any] = lambda call: {}, **definition: Any
) -> tuple[dict[str, Any], Callable[[Call], Any]]:
    return {"id": action_id, **definition}, function


def core_with(*features: Any, extensions: Any = ()) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider, list(extensions))
    for feature in features:
        core.register_feature(feature)
    return core


def offering(function: Callable[[Call], Any], **definition: Any) -> AgentCore:
    """Return a core whose feature "notes" offers the action "do"."""
    return core_with(Acting("notes", action("do", function, **definition)))


def conversation(*contents: str) -> Session:
    session = Session("s")
    for place, content in enumerate(contents):
        session = AgentCore().add_message(session, "user", content, {"mark": place})
    return session


def marks(session: Session) -> list[Any]:
    return [(message.content, message.metadata.get("mark")) for message in session.messages]


def _run(core: AgentCore, *arguments: Any, **options: Any) -> Outcome:
    return core.execute_session_action(*arguments, **options)


def _run_async(core: AgentCore, *arguments: Any, **options: Any) -> Outcome:
    return asyncio.run(core.execute_session_action_async(*arguments, **options))


@pytest.fixture(params=[_run, _run_async], ids=["call", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a session action as a call, and on an event loop."""
    driver: Run = request.param
    return driver


# What is offered


def test_an_action_is_listed_in_its_plugins_words_with_the_plugin_and_its_owner() -> None:
    inputs = {"start": {"type": "integer"}}
    core = core_with(
        Acting("compaction", action("compact", label="Compact", inputs=inputs, trigger=["save"], icon="z")),
        extensions=[Acting("cache", action("renew"))],
    )

    assert core.get_session_actions({}) == [
        {"id": "renew", "plugin": "cache", "action_owner": "provider_extension"},
        {
            "id": "compact",
            "label": "Compact",
            "inputs": inputs,
            "trigger": ["save"],
            "icon": "z",
            "manual": True,
            "plugin": "compaction",
            "action_owner": "feature",
        },
    ]


def test_front_ends_need_no_rule_to_know_what_a_person_can_run() -> None:
    numbers = {"start": {"type": "integer"}}
    core = core_with(
        Acting(
            "notes",
            action("compact", trigger=["session_save_prepare"], inputs=numbers),
            action("ensure", trigger="session_create"),
            action("hidden", trigger="session_create", inputs=numbers, manual=False),
            action("look"),
        )
    )

    listed = {one["id"]: one.get("manual", "trigger" not in one) for one in core.get_session_actions({})}

    assert listed == {"compact": True, "ensure": False, "hidden": False, "look": True}


def test_extensions_come_before_features_and_features_by_priority() -> None:
    core = core_with(
        Acting("late", action("1"), action("2"), priority=200),
        Acting("usual", action("3")),
        Acting("early", action("4"), priority=1),
        extensions=[Acting("first", action("5")), Acting("second", action("6"))],
    )

    listed = [(found["plugin"], found["id"]) for found in core.get_session_actions({})]

    assert listed == [
        ("first", "5"),
        ("second", "6"),
        ("early", "4"),
        ("usual", "3"),
        ("late", "1"),
        ("late", "2"),
    ]


def test_a_disabled_plugin_offers_nothing() -> None:
    core = core_with(
        Acting("a", action("1")), Acting("b", action("2")), extensions=[Acting("c", action("3"))]
    )

    assert [found["plugin"] for found in core.get_session_actions({"disabled_plugins": ["a", "c"]})] == ["b"]


def test_an_extension_offers_its_actions_with_its_own_provider_only() -> None:
    class Other(EchoProvider):
        name = "other"

    core = core_with(extensions=[Acting("cache", action("renew"))])
    core.register_provider(Other)

    assert core.get_session_actions({"provider": "other"}) == []
    assert len(core.get_session_actions({"provider": "echo"})) == 1


def test_what_is_offered_may_depend_on_the_requests_state_and_context() -> None:
    class Modest:
        name = "modest"
        version = "1"

        def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
            return {**state, "wanted": config.get("wanted", [])}

        def get_actions(self, state: dict[str, Any], context: dict[str, Any]) -> list[dict[str, Any]]:
            return [{"id": f"{name}-{context['provider']}"} for name in state["wanted"]]

    core = core_with(Modest)

    assert core.get_session_actions({}) == []
    assert [a["id"] for a in core.get_session_actions({"wanted": ["x", "y"]})] == ["x-echo", "y-echo"]


def test_without_a_provider_there_are_no_actions() -> None:
    core = AgentCore()
    core.register_feature(type("Lone", (), {"name": "lone", "get_actions": lambda self: [{"id": "x"}]}))

    assert core.get_session_actions({}) == []


@pytest.mark.parametrize("core", [AgentCore(), core_with()], ids=["no provider", "a provider"])
def test_listing_takes_a_dict(core: AgentCore) -> None:
    with pytest.raises(TypeError, match="config must be a dict, not list"):
        core.get_session_actions([])  # type: ignore[arg-type]  # that is the point


def test_changing_the_list_does_not_change_what_the_plugin_offers() -> None:
    core = core_with(Acting("notes", action("do", inputs={"x": {"type": "string", "enum": ["a"]}})))
    listed = core.get_session_actions({})

    listed[0]["inputs"]["x"]["enum"].append("b")

    assert core.get_session_actions({})[0]["inputs"] == {"x": {"type": "string", "enum": ["a"]}}


def _failing(self: object) -> Any:
    raise LookupError("no idea")


@pytest.mark.parametrize(
    ("get_actions", "problem"),
    [
        (_failing, "raised LookupError: no idea"),
        (lambda self: None, "must return a list of dicts, returned None"),
        (lambda self: ["x"], "must return a list of dicts, returned str"),
        (lambda self: [{"label": "nameless"}], "'id'"),
    ],
)
def test_a_plugin_whose_actions_cannot_be_read_is_named(get_actions: Any, problem: str) -> None:
    bad = type("Bad", (), {"name": "bad", "version": "1", "get_actions": get_actions})
    good = type("Good", (), {"name": "good", "version": "1", "get_actions": lambda self: [{"id": "act"}]})
    core = core_with(bad, good)

    assert [action["plugin"] for action in core.get_session_actions({})] == ["good"]
    with pytest.raises(PluginError, match=problem) as raised:
        core.execute_session_action(Session("s"), {}, "bad", "act", {})

    assert (raised.value.plugin, raised.value.hook) == ("bad", "get_actions")


# How it is asked for


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"config": None}, TypeError, "config must be a dict"),
        ({"config": ["echo"]}, TypeError, "config must be a dict"),
        ({"plugin_id": ""}, ValueError, "plugin_id must be a non-empty string"),
        ({"plugin_id": None}, ValueError, "plugin_id"),
        ({"action_id": ""}, ValueError, "action_id must be a non-empty string"),
        ({"action_id": 7}, ValueError, "action_id"),
        ({"params": None}, ValueError, "params must be a dict of action inputs"),
        ({"params": [("x", 1)]}, ValueError, "params"),
        ({"session": {"session_id": "s"}}, TypeError, "session must be a Session"),
        ({"context": "application"}, TypeError, "context must be a dict"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_runs(
    run: Run, wrong: dict[str, Any], error: type[Exception], message: str
) -> None:
    core = offering(lambda call: pytest.fail("it ran"))
    right = {"session": Session("s"), "config": {}, "plugin_id": "notes", "action_id": "do", "params": {}}

    with pytest.raises(error, match=message):
        run(core, **{**right, **wrong})


@pytest.mark.parametrize(
    ("plugin", "action_id", "config"),
    [("nobody", "do", {}), ("notes", "undo", {}), ("notes", "do", {"disabled_plugins": ["notes"]})],
    ids=["plugin", "action", "disabled plugin"],
)
def test_an_unknown_action_is_a_key_error(
    run: Run, plugin: str, action_id: str, config: dict[str, Any]
) -> None:
    core = offering(lambda call: {})

    with pytest.raises(KeyError) as raised:
        run(core, Session("s"), config, plugin, action_id, {})

    assert isinstance(raised.value, UnknownActionError)
    assert (raised.value.plugin, raised.value.action) == (plugin, action_id)


def test_an_unknown_action_suggests_the_nearest_known_one(run: Run) -> None:
    core = offering(lambda call: {})

    with pytest.raises(UnknownActionError, match=r"did you mean 'notes\.do'\?"):
        run(core, Session("s"), {}, "notes", "doo", {})


def test_an_action_needs_a_provider(run: Run) -> None:
    with pytest.raises(NoProviderError):
        run(AgentCore(), Session("s"), {}, "notes", "do", {})


INPUTS = {
    "start": {"type": "integer", "required": True},
    "style": {"type": "string", "enum": ["short", "long"], "default": "short"},
    "note": {"type": "string"},
}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "start"),
        ({"start": None}, "start"),
        ({"start": "1"}, "start"),
        ({"start": True}, "start"),
        ({"start": 1, "style": "medium"}, "style"),
        ({"start": 1, "note": ["x"]}, "note"),
        ({"start": 1, "stlye": "long"}, "stlye"),
        ({"start": 1, 2: "two"}, "2"),
    ],
)
def test_a_wrong_input_is_named_and_the_action_does_not_run(
    run: Run, params: dict[str, Any], field: str
) -> None:
    core = offering(lambda call: pytest.fail("it ran"), inputs=INPUTS)

    with pytest.raises(ValueError, match=f"'{field}'") as raised:
        run(core, Session("s"), {}, "notes", "do", params)

    assert isinstance(raised.value, ActionInputError)
    assert (raised.value.action, raised.value.field) == ("do", field)


def test_inputs_arrive_checked_with_defaults_and_without_what_was_not_given(run: Run) -> None:
    core = offering(lambda call: {"got": call.params}, inputs=INPUTS)

    _, result = run(core, Session("s"), {}, "notes", "do", {"start": 3, "note": None})

    assert result == {"got": {"start": 3, "style": "short"}}


def test_an_action_of_an_extension_runs_like_one_of_a_feature(run: Run) -> None:
    extension = Acting("cache", action("renew", lambda call: {"session_metadata": {"key": "k"}}))
    core = core_with(extensions=[extension])

    session, _ = run(core, Session("s"), {}, "cache", "renew", {})

    assert session.metadata == {"key": "k"}


def test_an_action_sees_the_session_and_its_native_history_complete_with_pending_messages(run: Run) -> None:
    core = offering(lambda call: {"id": call.session.session_id, "native": call.native})
    answered, _ = core.send_request(conversation("hello"), {})
    session = core.add_message(answered, "user", "and now?")

    _, result = run(core, session, {}, "notes", "do", {})

    assert result["id"] == "s"
    assert [(item["role"], item["content"]) for item in result["native"]] == [
        ("user", "hello"),
        ("assistant", "hello"),
        ("user", "and now?"),
    ]


def test_an_action_runs_in_the_state_that_a_request_would_have(run: Run) -> None:
    class Prepared(Acting):
        def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
            return {**state, "tools": config["tools"], "key": "k"}

    core = core_with(Prepared("notes", action("do", lambda c: {"got": [c.state["tools"], c.state["key"]]})))

    assert run(core, Session("s"), {}, "notes", "do", {})[1] == {"got": [[], "k"]}


def test_an_actions_flow_asks_for_the_plugins_work_and_applies_the_answer() -> None:
    core = offering(lambda call: pytest.fail("whoever drives the flow does the work"))
    core.resolve({})
    io = ScriptedIO([{"session_metadata": {"a": 1}, "status": "ok"}])

    session, result = io.run(core.session_action_flow(Session("s"), {}, "notes", "do", {}))

    assert len(io.steps) == 1
    assert (session.metadata, result) == ({"a": 1}, {"status": "ok"})


# What becomes of native messages


@pytest.mark.parametrize(
    "unchanged",
    [lambda native: native, list, copy.deepcopy],
    ids=["the same", "a copy", "a deep copy"],
)
def test_native_messages_that_did_not_change_leave_the_session_as_it_is(
    run: Run, unchanged: Callable[[Any], Any]
) -> None:
    core = offering(lambda call: {"native_messages": unchanged(call.native)})
    session = conversation("one", "two")

    assert run(core, session, {}, "notes", "do", {})[0] is session


def test_replaced_native_messages_become_the_transcript(run: Run) -> None:
    core = offering(
        lambda call: {"native_messages": [{"role": "system", "content": "summary"}, call.native[-1]]}
    )

    session, _ = run(core, conversation("one", "two", "three"), {}, "notes", "do", {})

    assert [(m.role, m.content) for m in session.messages] == [("system", "summary"), ("user", "three")]
    assert session.metadata["native_messages"] == [
        {"role": "system", "content": "summary"},
        {"role": "user", "content": "three"},
    ]


@pytest.mark.parametrize("handed", [list, copy.deepcopy], ids=["items", "copies"])
def test_messages_whose_items_stayed_keep_their_metadata(run: Run, handed: Callable[[Any], Any]) -> None:
    def compact(call: Call) -> dict[str, Any]:
        native = handed(call.native)
        return {"native_messages": [native[0], {"role": "assistant", "content": "…"}, *native[3:]]}

    session, _ = run(offering(compact), conversation("a", "b", "c", "d", "e"), {}, "notes", "do", {})

    assert marks(session) == [("a", 0), ("…", None), ("d", 3), ("e", 4)]


def test_of_equal_items_the_one_that_stayed_decides_the_metadata(run: Run) -> None:
    core = offering(lambda call: {"native_messages": [call.native[2]]})

    session, _ = run(core, conversation("again", "other", "again"), {}, "notes", "do", {})

    assert marks(session) == [("again", 2)]


def test_metadata_on_a_native_item_reaches_its_message(run: Run) -> None:
    def star(call: Call) -> dict[str, Any]:
        core: AgentCore = call.context["core"]
        return {"native_messages": core.patch_native_internal_metadata(call.native, [0], {"star": True})}

    session, _ = run(offering(star), conversation("one", "two"), {}, "notes", "do", {})

    assert session.messages[0].metadata["star"] is True
    assert "star" not in session.messages[1].metadata


def test_a_request_trusts_the_history_that_an_action_left(run: Run) -> None:
    core = offering(lambda call: {"native_messages": [*call.native[1:], {"role": "user", "content": "hey"}]})
    changed, _ = run(core, conversation("one", "two"), {}, "notes", "do", {})

    answered, _ = core.send_request(changed, {})

    assert [message.content for message in answered.messages] == ["two", "hey", "hey"]
    assert "native_rebuilt" not in {**changed.metadata, **answered.metadata}


def test_history_that_had_to_be_rebuilt_for_an_action_is_reported(run: Run) -> None:
    core = offering(lambda call: {"native_messages": call.native[1:]})
    answered, _ = core.send_request(conversation("one"), {})
    tampered = answered.to_dict()
    tampered["messages"][0]["content"] = "another"

    session, _ = run(core, Session.from_dict(tampered), {}, "notes", "do", {})

    assert session.metadata["native_rebuilt"]["reason"] == "integrity"
    assert session.metadata["native_rebuilt"]["operation"] == "execute_session_action"
    assert [message.content for message in session.messages] == ["one"]


def test_what_an_action_returned_cannot_be_changed_afterwards(run: Run) -> None:
    item = {"role": "user", "content": "said"}
    settings_ = {"overrides": {"key": ["k"]}}
    core = offering(lambda call: {"native_messages": [item], "session_metadata": settings_})
    session, _ = run(core, conversation("one"), {}, "notes", "do", {})

    item["content"] = "unsaid"
    settings_["overrides"]["key"].append("l")

    assert session.messages[0].content == "said"
    assert session.metadata["native_messages"] == [{"role": "user", "content": "said"}]
    assert session.metadata["overrides"] == {"key": ["k"]}


@st.composite
def rearrangements(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """A conversation, and which of its items an action leaves, in which order; -1 is a new one."""
    contents = draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=6))
    places = draw(st.lists(st.integers(-1, len(contents) - 1), max_size=8))
    return contents, places


@settings(max_examples=25, deadline=None)
@given(rearrangements())
def test_however_an_action_rearranges_history_transcript_and_native_stay_in_step(
    case: tuple[list[str], list[int]],
) -> None:
    contents, places = case
    new = {"role": "assistant", "content": "new"}
    core = offering(lambda call: {"native_messages": [new if p < 0 else call.native[p] for p in places]})
    before = conversation(*contents)

    session, _ = core.execute_session_action(before, {}, "notes", "do", {})

    if ["new" if p < 0 else contents[p] for p in places] == contents:
        assert session is before
    else:
        assert marks(session) == [("new", None) if p < 0 else (contents[p], p) for p in places]
        assert [message.native_indices for message in session.messages] == [(i,) for i in range(len(places))]
        native = session.metadata["native_messages"]
        assert [item["content"] for item in native] == [message.content for message in session.messages]


# What becomes of session metadata


def test_session_metadata_is_merged_and_its_overrides_are_laid_over_those_that_are_there(run: Run) -> None:
    patch = {"count": 2, "seen": {"b": 1}, "overrides": {"model": "large", "key": "k"}}
    core = offering(lambda call: {"session_metadata": patch})
    before = {"count": 1, "title": "t", "seen": {"a": 1}, "overrides": {"model": "small", "effort": "low"}}

    session, _ = run(core, Session("s", [], before), {}, "notes", "do", {})

    assert session.metadata == {
        "count": 2,
        "title": "t",
        "seen": {"b": 1},
        "overrides": {"model": "large", "effort": "low", "key": "k"},
    }


@pytest.mark.parametrize(
    "key",
    [
        "native_messages",
        "native_messages_integrity",
        "native_provenance",
        "native_archive",
        "native_rebuilt",
    ],
)
def test_the_keys_of_native_history_are_refused_with_a_warning(
    run: Run, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    core = offering(lambda call: {"session_metadata": {key: "mine", "title": "t"}})
    before, _ = core.send_request(conversation("hello"), {})

    session, _ = run(core, before, {}, "notes", "do", {})

    assert session.metadata == {**before.metadata, "title": "t"}
    assert caplog.messages == [f"reserved_metadata_key plugin='notes' action='do' key='{key}'"]


def test_a_metadata_patch_leaves_native_history_trusted(run: Run) -> None:
    core = offering(lambda call: {"session_metadata": {"title": "t"}})
    answered, _ = core.send_request(conversation("hello"), {})

    titled, _ = run(core, answered, {}, "notes", "do", {})
    again, _ = core.send_request(core.add_message(titled, "user", "more"), {})

    assert "native_rebuilt" not in again.metadata


def test_native_messages_and_metadata_can_change_at_once(run: Run) -> None:
    core = offering(lambda call: {"native_messages": call.native[1:], "session_metadata": {"cut": 1}})

    session, _ = run(core, conversation("one", "two"), {}, "notes", "do", {})

    assert marks(session) == [("two", 1)]
    assert session.metadata["cut"] == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
METADATA = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3).flatmap(
    lambda plain: st.fixed_dictionaries(
        {}, optional={"overrides": st.dictionaries(st.sampled_from("xyz"), JSON, max_size=3)}
    ).map(lambda overrides: {**plain, **overrides})
)


@settings(max_examples=25, deadline=None)
@given(before=METADATA, patch=METADATA)
def test_merging_metadata_twice_is_merging_it_once(before: dict[str, Any], patch: dict[str, Any]) -> None:
    core = offering(lambda call: {"session_metadata": patch})

    once, _ = core.execute_session_action(Session("s", [], before), {}, "notes", "do", {})
    twice, _ = core.execute_session_action(once, {}, "notes", "do", {})

    overrides = {**before.get("overrides", {}), **patch.get("overrides", {})}
    expected = {**before, **patch, **({"overrides": overrides} if overrides else {})}
    assert once.to_dict()["metadata"] == expected
    assert twice == once


# What the caller gets


def test_the_result_is_what_the_action_said_without_what_was_applied(run: Run) -> None:
    core = offering(
        lambda call: {
            "native_messages": call.native,
            "session_metadata": {"a": 1},
            "status": "ok",
            "message": "done",
            "debug_info": {"took": (1, 2)},
        }
    )

    _, result = run(core, Session("s"), {}, "notes", "do", {})

    assert result == {"status": "ok", "message": "done", "debug_info": {"took": [1, 2]}}


def test_an_error_payload_is_returned_and_what_came_with_it_still_applies(run: Run) -> None:
    error = {"type": "half_done", "message": "The second half failed."}
    core = offering(lambda call: {"native_messages": call.native[:1], "error": error, "status": "error"})

    session, result = run(core, conversation("one", "two"), {}, "notes", "do", {})

    assert result == {"error": error, "status": "error"}
    assert marks(session) == [("one", 0)]


def test_changing_a_result_does_not_reach_the_plugin(run: Run) -> None:
    kept = {"numbers": [1]}
    core = offering(lambda call: {"debug_info": kept, "native": call.native[0]})

    _, result = run(core, conversation("one"), {}, "notes", "do", {})
    result["debug_info"]["numbers"].append(2)
    result["native"]["content"] = "changed"

    assert kept == {"numbers": [1]}


def test_a_display_passes_the_validator(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    shown = {"format": "markdown", "title": "Login", "body": "Enter `ABCD`.", "variant": "info"}
    core = offering(lambda call: {"display": {**shown, "colour": "red"}})

    _, result = run(core, Session("s"), {}, "notes", "do", {})

    assert result == {"display": shown}
    [warning] = caplog.messages
    assert warning.startswith("display_changed plugin='notes' action='do'")
    assert "colour" in warning


@pytest.mark.parametrize("display", ["hello", None, {"format": "text"}, {"body": 7}])
def test_a_display_that_cannot_be_shown_is_dropped_with_a_warning(
    run: Run, display: Any, caplog: pytest.LogCaptureFixture
) -> None:
    core = offering(lambda call: {"display": display, "status": "ok"})

    assert run(core, Session("s"), {}, "notes", "do", {})[1] == {"status": "ok"}
    assert any(text.startswith("display_changed plugin='notes' action='do'") for text in caplog.messages)


def follow_up(plugin: str, action_id: str) -> dict[str, Any]:
    return {"kind": "run_action", "id": action_id, "label": "Go", "plugin": plugin, "action_id": action_id}


def test_a_display_offers_only_actions_that_a_person_can_run(run: Run) -> None:
    offered = [
        follow_up("notes", "check"),
        follow_up("notes", "tidy"),
        follow_up("notes", "missing"),
        follow_up("an_application_plugin", "open"),
    ]
    core = core_with(
        Acting(
            "notes",
            action("do", lambda call: {"display": {"format": "text", "body": "?", "actions": offered}}),
            action("check"),
            action("tidy", trigger="session_save_prepare"),
        )
    )

    _, result = run(core, Session("s"), {}, "notes", "do", {})

    assert [found["id"] for found in result["display"]["actions"]] == ["check", "open"]


# Actions that go wrong


def _raise(call: Call) -> Any:
    raise OSError("disk full")


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_raise, "raised OSError: disk full"),
        (lambda call: None, "must return a dict, returned None"),
        (lambda call: [], "must return a dict, returned list"),
        (lambda call: {"native_messages": None}, "'do': native_messages must be a list of dicts"),
        (lambda call: {"native_messages": "x"}, "native_messages must be a list of dicts"),
        (lambda call: {"native_messages": {"role": "user"}}, "native_messages must be a list of dicts"),
        (lambda call: {"native_messages": [*call.native, 1]}, "native_messages must be a list of dicts"),
        (lambda call: {"session_metadata": [("a", 1)]}, "'do': session_metadata must be a dict, not list"),
        (lambda call: {"session_metadata": {"overrides": "x"}}, r"session_metadata\['overrides'\] must be"),
        (lambda call: {"session_metadata": {"a": {1}}}, "session_metadata.a: set is not JSON data"),
        (lambda call: {"session_metadata": {1: 2}}, "session_metadata: it has the key 1"),
        (lambda call: {"native_messages": [endless()]}, "native_messages.* nested too deeply"),
        (lambda call: {"also": endless()}, "'also'.* nested too deeply"),
    ],
)
def test_an_action_that_fails_or_answers_nonsense_is_named(
    run: Run, function: Callable[[Call], Any], problem: str
) -> None:
    core = offering(function)

    with pytest.raises(PluginError, match=problem) as raised:
        run(core, conversation("one"), {}, "notes", "do", {})

    assert isinstance(raised.value, RuntimeError)
    assert (raised.value.plugin, raised.value.hook) == ("notes", "execute_action")


@pytest.mark.parametrize(
    "change",
    [
        lambda call: call.native.append({"role": "user", "content": "more"}),
        lambda call: call.native[0].update(content="other"),
        lambda call: call.params.update(numbers=[]),
        lambda call: call.params["numbers"].append(4),
        lambda call: call.context.update(core=None),
        lambda call: call.context["config"].update(model="other"),
        lambda call: call.context["session"]["messages"].clear(),
        lambda call: call.context["mine"]["list"].append(1),
        lambda call: call.session.metadata.update(title="t"),
        lambda call: call.session.messages[0].metadata.clear(),
    ],
)
def test_an_action_that_changes_what_it_was_lent_is_named_and_changes_nothing(
    run: Run, change: Callable[[Call], Any]
) -> None:
    core = offering(change, inputs={"numbers": {"type": "array"}})
    session, numbers = conversation("one"), [1, 2, 3]
    config: dict[str, Any] = {"model": "echo"}
    context: dict[str, Any] = {"mine": {"list": []}}
    before = copy.deepcopy((session.to_dict(), numbers, config, context))

    with pytest.raises(PluginMutationError, match="changed its input in place") as raised:
        run(core, session, config, "notes", "do", {"numbers": numbers}, context=context)

    assert (raised.value.plugin, raised.value.hook) == ("notes", "execute_action")
    assert (session.to_dict(), numbers, config, context) == before


def test_the_session_that_was_passed_in_stays_as_it_was(run: Run) -> None:
    core = offering(lambda call: {"native_messages": [], "session_metadata": {"a": 1}})
    session, _ = core.send_request(conversation("one", "two"), {})
    before = session.to_dict()

    changed, _ = run(core, session, {}, "notes", "do", {})

    assert changed.messages == []
    assert session.to_dict() == before

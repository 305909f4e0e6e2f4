"""`response_finalize`: what actions may still change of a turn before anybody sees it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import pytest

from agent_core import AgentCore, Session
from agent_core.testing import EchoProvider

Outcome = tuple[Session, list[dict[str, Any]], list[dict[str, Any]]]
Drive = Callable[..., Outcome]
Dicts = list[dict[str, Any]]


class Call(NamedTuple):
    session: Session
    native: Dicts
    context: dict[str, Any]

    @property
    def finals(self) -> Dicts:
        finals: Dicts = self.context["final_messages"]
        return finals


class Finalizing:
    """Offers one action for the end of a turn."""

    version = "1"

    def __init__(
        self, function: Callable[[Call], Any], name: str = "notes", trigger: Any = "response_finalize"
    ) -> None:
        self.name = name
        self._function = function
        self._trigger = trigger

    def get_actions(self) -> Dicts:
        return [{"id": "adjust", "trigger": self._trigger}]

    def execute_action(
        self, action_id: str, session: Session, native_messages: Dicts, params: Any, context: dict[str, Any]
    ) -> Any:
        return self._function(Call(session, native_messages, context))


def core_with(*features: Any, extensions: Any = ()) -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider, list(extensions))
    for feature in features:
        core.register_feature(feature)
    return core


def adjusting(function: Callable[[Call], Any]) -> AgentCore:
    return core_with(Finalizing(function))


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


def ask(text: str = "hello", metadata: dict[str, Any] | None = None) -> Session:
    return AgentCore().add_message(Session("s", [], metadata or {}), "user", text)


def transcript(session: Session) -> list[tuple[str, Any]]:
    return [(message.role, message.content) for message in session.messages]


# In a request


def test_replaced_final_messages_are_what_is_returned_and_stored(drive: Drive) -> None:
    core = adjusting(lambda call: {"final_messages": [{**call.finals[0], "content": "better"}]})

    session, messages, partials = drive(core, ask(), {})

    assert [message["content"] for message in messages] == ["better"]
    assert transcript(session) == [("user", "hello"), ("assistant", "better")]
    assert all(event["message"]["content"] == "hello" for event in partials)


def test_native_history_stays_as_the_model_said_it_unless_it_is_replaced_too(drive: Drive) -> None:
    core = adjusting(lambda call: {"final_messages": [{**call.finals[0], "content": "better"}]})

    session, _, _ = drive(core, ask(), {})

    assert [item["content"] for item in session.metadata["native_messages"]] == ["hello", "hello"]
    assert session.messages[1].native_indices == (1,)


def test_replaced_native_messages_become_the_sessions_history(drive: Drive) -> None:
    core = adjusting(
        lambda call: {"native_messages": [*call.native[:-1], {**call.native[-1], "signature": "x"}]}
    )

    session, _, _ = drive(core, ask(), {})

    assert session.metadata["native_messages"] == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hello", "signature": "x"},
    ]
    assert transcript(session) == [("user", "hello"), ("assistant", "hello")]


def test_an_action_that_changes_what_came_before_rewrites_the_transcript(drive: Drive) -> None:
    core = adjusting(lambda call: {"native_messages": call.native[call.context["turn_native_start_index"] :]})

    session, messages, _ = drive(core, ask(), {})

    assert transcript(session) == [("assistant", "hello")]
    assert [message["content"] for message in messages] == ["hello"]
    assert len(session.metadata["native_messages"]) == 1


def test_session_metadata_is_merged_with_overrides_laid_over_those_that_are_there(drive: Drive) -> None:
    core = adjusting(lambda call: {"session_metadata": {"turns": 1, "overrides": {"key": "k"}}})

    session, _, _ = drive(core, ask(metadata={"title": "t", "overrides": {"model": "m"}}), {})

    assert session.metadata["turns"] == 1
    assert session.metadata["title"] == "t"
    assert session.metadata["overrides"] == {"model": "m", "key": "k"}


def test_an_actions_metadata_counts_more_than_a_plugins_patch_in_the_state(drive: Drive) -> None:
    class Patching(Finalizing):
        def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
            return {**state, "session_metadata_patch": {"a": "state", "b": "state"}}

    core = core_with(Patching(lambda call: {"session_metadata": {"b": "action"}}))

    session, _, _ = drive(core, ask(), {})

    assert (session.metadata["a"], session.metadata["b"]) == ("state", "action")


def test_extensions_act_before_features_and_each_sees_what_the_ones_before_it_left(drive: Drive) -> None:
    def say(word: str) -> Callable[[Call], Any]:
        def act(call: Call) -> dict[str, Any]:
            content = f"{call.finals[0]['content']} {word}"
            return {
                "final_messages": [{**call.finals[0], "content": content}],
                "native_messages": [*call.native[:-1], {"role": "assistant", "content": content}],
                "session_metadata": {word: call.native[-1]["content"], "overrides": {word: 1}},
            }

        return act

    core = core_with(
        Finalizing(say("two"), "two"),
        Finalizing(say("three"), "three"),
        extensions=[Finalizing(say("one"), "one")],
    )

    session, messages, _ = drive(core, ask(), {})

    assert messages[0]["content"] == "hello one two three"
    assert session.metadata["native_messages"][-1]["content"] == "hello one two three"
    assert session.metadata["three"] == "hello one two"
    assert session.metadata["overrides"] == {"one": 1, "two": 1, "three": 1}


def test_only_actions_of_this_lifecycle_run(drive: Drive) -> None:
    core = core_with(
        Finalizing(lambda call: pytest.fail("it ran"), "manual", None),
        Finalizing(lambda call: pytest.fail("it ran"), "other", "request_complete"),
        Finalizing(lambda call: {"session_metadata": {"ran": True}}, "both", ["x", "response_finalize"]),
    )

    session, _, _ = drive(core, ask(), {})

    assert session.metadata["ran"] is True


def test_plugins_that_look_at_no_context_can_act_as_well(drive: Drive) -> None:
    class Brief:
        name = "brief"
        version = "1"

        def get_actions(self) -> Dicts:
            return [{"id": "cut", "trigger": "response_finalize"}]

        def execute_action(self, action_id: str, session: Any, native_messages: Dicts, params: Any) -> Any:
            return {"session_metadata": {"items": len(native_messages)}}

    core = core_with(Brief)

    session, _, _ = drive(core, ask(), {})

    assert session.metadata["items"] == 2


def test_an_action_finds_the_turn_in_its_context(drive: Drive) -> None:
    contexts: list[dict[str, Any]] = []

    def note(call: Call) -> dict[str, Any]:
        contexts.append(dict(call.context))
        return {}

    core = adjusting(note)
    before = ask("one")

    _, messages, partials = drive(core, before, {}, request_id="r1", context={"mine": 1})

    [context] = contexts
    assert context["lifecycle"] == "response_finalize"
    assert context["trigger_source"] == "core"
    assert context["core"] is core
    assert context["config"] == {}
    assert context["mine"] == 1
    assert context["session"] == before.to_dict()
    assert context["final_messages"] == messages
    assert context["native_messages"] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "one"},
    ]
    assert context["native_final_messages"] == [{"role": "assistant", "content": "one"}]
    assert context["turn_native_start_index"] == 1
    assert context["stream"] is bool(partials)
    assert context["request_context"]["request_id"] == "r1"
    assert context["request_context"]["stream"] is bool(partials)
    assert context["request_runtime"]["provider"].name == "echo"
    assert [feature.name for feature in context["request_runtime"]["features"]] == ["notes"]


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (None, "must return a dict, returned None"),
        ({"final_messages": None}, "final_messages must be a list of dicts"),
        ({"final_messages": "better"}, "final_messages must be a list of dicts"),
        ({"final_messages": ["better"]}, "final_messages must be a list of dicts"),
        (
            {"final_messages": [{"content": "by nobody"}]},
            "final_messages has an item that is not a message.*'role'",
        ),
        ({"native_messages": {}}, "native_messages must be a list of dicts"),
        ({"native_messages": [None]}, "native_messages must be a list of dicts"),
        ({"session_metadata": "title"}, "session_metadata must be a dict, not str"),
        ({"session_metadata": {"a": [object()]}}, r"session_metadata.a\[0\]: object is not JSON data"),
        ({"session_metadata": {"a": float("nan")}}, "session_metadata.a: nan is not JSON data"),
        ({"session_metadata": endless()}, "nested more than 300 levels"),
        ({"native_messages": [endless()]}, "native_messages.* nested too deeply"),
        ({"final_messages": [{"role": "assistant", "content": {1}}]}, "final_messages.*set is not JSON data"),
        (
            {"final_messages": [{"role": "assistant", "content": endless()}]},
            "final_messages.* nested too deep",
        ),
        ({"also": endless()}, "'also'.* nested too deeply"),
    ],
)
def test_nonsense_costs_only_the_action_that_returned_it(result: Any, problem: str) -> None:
    def better(call: Call) -> Any:
        return {"final_messages": [{**message, "content": "better"} for message in call.finals]}

    core = core_with(Finalizing(lambda call: result), Finalizing(better, "better"))

    *_, final = core.send_request_stream(ask(), {})

    assert [message["content"] for message in final["messages"]] == ["better"]
    assert final["session"].messages[-1].content == "better"
    [failed] = final["problems"]
    assert (failed["plugin"], failed["action_id"]) == ("notes", "adjust")
    assert failed["error"]["type"] == "PluginError"
    assert re.search(problem, failed["error"]["message"])


def test_an_action_that_raises_costs_nothing_but_itself(
    drive: Drive, caplog: pytest.LogCaptureFixture
) -> None:
    session, messages, _ = drive(adjusting(lambda call: 1 / 0), ask(), {})

    assert [message["content"] for message in messages] == [session.messages[-1].content]
    assert "action_failed plugin='notes' action='adjust'" in caplog.text


def test_native_messages_that_nobody_can_read_cost_only_the_action_that_returned_them() -> None:
    class Reading(EchoProvider):
        def from_native_messages(self, native_messages: Dicts) -> Dicts:
            return [{"role": item["role"], "content": item["content"]} for item in native_messages]

    core = AgentCore()
    core.register_provider(Reading)
    core.register_feature(Finalizing(lambda call: {"native_messages": [{"role": "user"}]}))
    core.register_feature(
        Finalizing(lambda call: {"session_metadata": {"counted": len(call.native)}}, "other")
    )

    *_, final = core.send_request_stream(ask(), {})

    assert final["session"].metadata["counted"] == 2
    assert final["session"].messages[-1].content == final["messages"][-1]["content"]
    assert len(final["session"].metadata["native_messages"]) == len(final["session"].messages)
    [failed] = final["problems"]
    assert (failed["plugin"], failed["error"]["type"]) == ("notes", "PluginError")


@pytest.mark.parametrize("indices", ["0", [{}], [[0]], [None, -1, 99]])
def test_positions_that_are_none_are_left_out(drive: Drive, indices: Any) -> None:
    message = {"role": "assistant", "content": "better", "metadata": {"native_indices": indices}}

    session, _, _ = drive(adjusting(lambda call: {"final_messages": [message]}), ask(), {})

    assert session.messages[-1].content == "better"
    assert session.messages[-1].native_indices == (1,)


def test_a_turn_without_problems_does_not_mention_any() -> None:
    *_, final = adjusting(lambda call: {}).send_request_stream(ask(), {})

    assert "problems" not in final


def test_an_action_cannot_change_the_turn_in_place() -> None:
    core = adjusting(lambda call: call.finals[0].update(content="worse"))

    *_, final = core.send_request_stream(ask(), {})

    assert final["problems"][0]["error"]["type"] == "PluginMutationError"
    assert final["messages"][0]["content"] != "worse"


def test_fields_that_a_message_lacks_move_into_its_metadata(drive: Drive) -> None:
    core = adjusting(lambda call: {"final_messages": [{"role": "assistant", "content": "x", "rating": 5}]})

    session, _, _ = drive(core, ask(), {})

    assert session.messages[-1].metadata["rating"] == 5


def test_a_turn_may_end_with_no_message_or_several(drive: Drive) -> None:
    core = adjusting(lambda call: {"final_messages": call.finals * call.context["config"]["times"]})

    assert [len(drive(core, ask(), {"times": times})[1]) for times in (0, 1, 2)] == [0, 1, 2]


# Called directly


class Turn(TypedDict):
    """The keyword arguments of `execute_response_lifecycle_actions`."""

    provider: Any
    features: list[Any]
    state: dict[str, Any]
    final_messages: Dicts
    native_messages: Dicts
    native_final_messages: Dicts
    stream: bool
    turn_native_start_index: int
    request_context: dict[str, Any]


def turn_of(core: AgentCore) -> Turn:
    """Return a finished turn, as a flow that makes its own would describe it."""
    resolution = core.resolve({})
    answer = {"role": "assistant", "content": "yes"}
    return Turn(
        provider=resolution.provider,
        features=list(resolution.features),
        state={"config": {}},
        final_messages=[{**answer, "metadata": {}}],
        native_messages=[{"role": "user", "content": "well?"}, answer],
        native_final_messages=[answer],
        stream=False,
        turn_native_start_index=1,
        request_context={"request_id": "r1"},
    )


def test_any_lifecycle_of_a_response_can_be_run_by_hand() -> None:
    core = core_with(
        Finalizing(
            lambda call: {
                "final_messages": [{**call.finals[0], "content": "no"}],
                "native_messages": call.native[1:],
                "session_metadata": {"a": 1, "overrides": {"x": 1}},
                "status": call.context["lifecycle"],
            },
            trigger="my_point",
        )
    )

    finals, native, metadata, results = core.execute_response_lifecycle_actions(
        ask("well?"), {}, "my_point", **turn_of(core)
    )

    assert finals == [{"role": "assistant", "content": "no", "metadata": {}}]
    assert native == [{"role": "assistant", "content": "yes"}]
    assert metadata == {"a": 1, "overrides": {"x": 1}}
    assert results == [
        {
            "plugin": "notes",
            "action_id": "adjust",
            "action_owner": "feature",
            "result": {"status": "my_point"},
        }
    ]


def test_by_hand_a_lifecycle_that_nobody_waits_for_returns_the_turn_as_it_is() -> None:
    core = adjusting(lambda call: {})
    turn = turn_of(core)

    assert core.execute_response_lifecycle_actions(ask(), {}, "other", **turn) == (
        turn["final_messages"],
        turn["native_messages"],
        {},
        [],
    )


def test_by_hand_the_outcome_can_be_changed_without_changing_what_went_in() -> None:
    core = adjusting(lambda call: {})
    turn = turn_of(core)

    finals, native, _, _ = core.execute_response_lifecycle_actions(ask(), {}, "response_finalize", **turn)
    finals[0]["content"] = native[0]["content"] = "changed"

    assert turn["final_messages"][0]["content"] == "yes"
    assert turn["native_messages"][0]["content"] == "well?"


def test_by_hand_the_action_finds_both_contexts() -> None:
    core = adjusting(
        lambda call: {
            "mine": call.context["mine"],
            "request_id": call.context["request_context"]["request_id"],
            "stream": call.context["stream"],
            "start": call.context["turn_native_start_index"],
            "same_core": call.context["core"] is call.context["request_context"]["core"],
        }
    )

    *_, results = core.execute_response_lifecycle_actions(
        ask(), {}, "response_finalize", extra_context={"mine": {"a": [1]}}, **turn_of(core)
    )

    assert results[0]["result"] == {
        "mine": {"a": [1]},
        "request_id": "r1",
        "stream": False,
        "start": 1,
        "same_core": True,
    }


def test_by_hand_what_is_no_dict_among_the_messages_is_left_out() -> None:
    core = adjusting(lambda call: {})
    turn = turn_of(core)
    junk: Any = [None, *turn["final_messages"], "junk"]

    finals, _, _, _ = core.execute_response_lifecycle_actions(
        ask(), {}, "response_finalize", **{**turn, "final_messages": junk}
    )

    assert finals == turn["final_messages"]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"config": []}, TypeError, "config must be a dict"),
        ({"trigger": ""}, ValueError, "trigger must be a non-empty string"),
        ({"trigger": ["response_finalize"]}, ValueError, "trigger must be a non-empty string"),
        ({"session": None}, TypeError, "session must be a Session"),
        ({"request_context": []}, TypeError, "context must be a dict"),
        ({"extra_context": "mine"}, TypeError, "context must be a dict"),
    ],
)
def test_by_hand_a_wrong_argument_is_named(
    wrong: dict[str, Any], error: type[Exception], message: str
) -> None:
    core = adjusting(lambda call: pytest.fail("it ran"))
    right = {"session": ask(), "config": {}, "trigger": "response_finalize", **turn_of(core)}

    with pytest.raises(error, match=message):
        core.execute_response_lifecycle_actions(**{**right, **wrong})


@pytest.mark.parametrize("key", ["final_messages", "native_messages"])
def test_by_hand_junk_from_an_action_is_a_runtime_error(key: str) -> None:
    core = adjusting(lambda call: {key: [1]})

    with pytest.raises(RuntimeError, match=f"{key} must be a list of dicts"):
        core.execute_response_lifecycle_actions(ask(), {}, "response_finalize", **turn_of(core))

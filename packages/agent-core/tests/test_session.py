"""A session is a frozen value that can be written down, sent elsewhere and read back."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError
from datetime import date
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, ArgumentError, ArgumentTypeError, Message, Session, SessionFormatError
from agent_core.dict_form import replace
from agent_core.frozen import FrozenDict, FrozenValueError
from agent_core.testing import EchoProvider

CONFIG = {"provider": "echo"}


def is_whole(text: str) -> bool:
    """Two halves of a surrogate pair side by side are one character in JSON, so they cannot come back."""
    return not any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


any_text = st.text(st.characters(codec=None) | st.characters(categories=["Cs"])).filter(is_whole)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)
json_dicts = st.dictionaries(any_text, json_values, max_size=3)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    json_values,
    json_dicts,
    st.none() | st.lists(json_dicts, max_size=2),
    st.none() | json_dicts,
)
sessions = st.builds(Session, any_text, st.lists(messages, max_size=3), json_dicts)


@pytest.fixture
def core() -> AgentCore:
    core = AgentCore()
    core.register_provider(EchoProvider)
    return core


@pytest.fixture
def answered(core: AgentCore) -> Session:
    """Return a session with native history."""
    session = core.add_message(core.create_session("s"), "user", "hello")
    return core.send_request(session, CONFIG)[0]


def test_a_new_session_is_empty_and_has_an_id_of_its_own(core: AgentCore) -> None:
    one, other = core.create_session(), core.create_session()

    assert one.session_id
    assert one.session_id != other.session_id
    assert one.messages == []
    assert one.metadata == {}


def test_a_session_takes_the_id_that_it_is_given(core: AgentCore) -> None:
    assert core.create_session("mine") == Session("mine")


def test_the_fields_of_a_session_cannot_be_set(answered: Session) -> None:
    with pytest.raises(FrozenInstanceError):
        answered.session_id = "other"  # type: ignore[misc]


def test_nothing_inside_a_session_can_be_changed(answered: Session) -> None:
    for write in (
        lambda: answered.metadata.update(seen=True),
        lambda: answered.metadata["native_messages"][0].update(role="system"),
        answered.metadata["native_messages_integrity"].clear,
        lambda: answered.metadata["native_provenance"]["models"].append(["m", 1]),
        lambda: answered.messages[0].metadata["native_indices"].append(1),
    ):
        with pytest.raises(FrozenValueError):
            write()
    with pytest.raises(TypeError):
        answered.messages[0] = Message("user", "a")  # type: ignore[index]
    with pytest.raises(TypeError):
        answered.metadata["native_messages"][0] = {}


def test_changing_the_values_a_session_was_made_from_does_not_change_it() -> None:
    given_messages, metadata = [Message("user", "a")], {"tags": ["x"]}
    session = Session("s", given_messages, metadata)

    given_messages.append(Message("user", "b"))
    metadata["tags"].append("y")

    assert session == Session("s", [Message("user", "a")], {"tags": ["x"]})


def test_messages_read_like_a_list(answered: Session) -> None:
    first, second = answered.messages

    assert len(answered.messages) == 2
    assert answered.messages == [first, second]
    assert answered.messages[-1] is second
    assert answered.messages[:1] == [first]
    assert first in answered.messages
    assert [message.role for message in reversed(answered.messages)] == ["assistant", "user"]


def test_the_dict_form_has_the_documented_keys(answered: Session) -> None:
    data = answered.to_dict()

    assert list(data) == ["session_id", "messages", "metadata"]
    assert data["session_id"] == "s"
    assert data["messages"] == [
        {"role": "user", "content": "hello", "metadata": {"native_indices": [0]}},
        {"role": "assistant", "content": "hello", "metadata": {"native_indices": [1]}},
    ]
    assert data["metadata"]["native_messages"] == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hello"},
    ]
    integrity = data["metadata"]["native_messages_integrity"]
    assert (integrity["messages"], integrity["native"]) == (2, 2)


def test_the_dict_form_is_plain_data_and_the_callers_to_change(answered: Session) -> None:
    data = answered.to_dict()
    before = json.dumps(data)

    data["messages"].clear()
    data["metadata"]["native_messages"][0]["content"] = "bye"

    assert type(data["metadata"]["native_messages"]) is list
    assert json.dumps(answered.to_dict()) == before


def test_what_is_lent_to_plugins_has_real_lists_and_cannot_be_changed(answered: Session) -> None:
    lent = answered.frozen_dict()

    assert lent == answered.to_dict()
    assert isinstance(lent["messages"], list)
    assert isinstance(lent["metadata"]["native_messages"], list)
    assert json.loads(json.dumps(lent)) == answered.to_dict()
    assert orjson.loads(orjson.dumps(lent)) == answered.to_dict()
    with pytest.raises(FrozenValueError):
        lent["metadata"]["native_messages"].append({})


@settings(max_examples=25)
@given(sessions)
def test_a_session_comes_back_from_its_dict_form_and_from_its_exported_form(session: Session) -> None:
    core = AgentCore()

    as_dict, as_text = session.to_dict(), core.export_session(session)

    for back in (Session.from_dict(as_dict), core.import_session(as_text.encode().decode())):
        assert back == session
        assert repr(back.to_dict()) == repr(as_dict)  # by which 1, 1.0 and True differ


def test_native_history_survives_export_and_import_without_being_rebuilt(
    core: AgentCore, answered: Session
) -> None:
    back = core.import_session(core.export_session(answered))
    longer, _ = core.send_request(core.add_message(back, "user", "again"), CONFIG)

    assert back == answered
    assert "native_rebuilt" not in longer.metadata
    assert len(longer.messages) == 4


def test_exported_text_is_indented_json(core: AgentCore) -> None:
    text = core.export_session(Session("s"), "json")

    assert text == '{\n  "session_id": "s",\n  "messages": [],\n  "metadata": {}\n}'


def test_only_json_is_known(core: AgentCore) -> None:
    with pytest.raises(ValueError, match="Unsupported format 'yaml'") as exported:
        core.export_session(Session("s"), "yaml")
    with pytest.raises(ValueError, match="Unsupported format 'yaml'") as imported:
        core.import_session("{}", format="yaml")
    assert isinstance(exported.value, ArgumentError)
    assert isinstance(imported.value, ArgumentError)


def test_only_a_session_can_be_exported(core: AgentCore) -> None:
    with pytest.raises(ArgumentTypeError, match="session must be a Session, not dict"):
        core.export_session({"session_id": "s"})  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"session_id": "s"', 5, None])
def test_text_that_is_not_json_is_refused(core: AgentCore, text: Any) -> None:
    with pytest.raises(SessionFormatError, match="not JSON"):
        core.import_session(text)


def test_json_that_is_nested_without_end_is_refused(core: AgentCore) -> None:
    with pytest.raises(SessionFormatError, match="nested too deeply"):
        core.import_session("[" * 100_000)


@pytest.mark.parametrize("depth", [200, 300])
def test_json_that_is_nested_deeply_comes_back(core: AgentCore, depth: int) -> None:
    value: Any = "leaf"
    for _ in range(depth):
        value = [value]
    session = Session("s", [Message("user", value)])

    assert core.import_session(core.export_session(session)) == session


def valid(**changes: Any) -> dict[str, Any]:
    return {"session_id": "s", "messages": [], "metadata": {}, **changes}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in valid().items() if key != name}


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        (without("session_id"), "session_id", "missing"),
        (without("messages"), "messages", "missing"),
        (valid(session_id=5), "session_id", "must be a str, not int"),
        (valid(session_id=None), "session_id", "must be a str, not NoneType"),
        (valid(messages={}), "messages", "must be a sequence, not dict"),
        (valid(messages="user: a"), "messages", "must be a sequence, not str"),
        (valid(messages=None), "messages", "must be a sequence, not NoneType"),
        (valid(metadata=[]), "metadata", "must be a mapping, not list"),
        (valid(metadata=None), "metadata", "must be a mapping, not NoneType"),
        (valid(messages=["a"]), "messages[0]", "a message must be a dict, not str"),
        (valid(messages=[{"role": "user", "content": "a"}, {"content": "b"}]), "messages[1]", "'role'"),
        (
            valid(messages=[{"role": "user", "content": "a", "tool_result": 1}]),
            "messages[0]",
            "'tool_result'",
        ),
    ],
)
def test_what_is_no_session_is_refused_by_the_name_of_its_field(
    core: AgentCore, data: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(SessionFormatError, match=says) as caught:
        Session.from_dict(data)
    with pytest.raises(SessionFormatError, match=says):
        core.import_session(json.dumps(data))

    assert caught.value.field == field
    assert field in str(caught.value)


@pytest.mark.parametrize("data", [[], "s", 5, None])
def test_what_is_not_even_a_dict_is_refused(data: Any) -> None:
    with pytest.raises(SessionFormatError, match="a session must be a dict"):
        Session.from_dict(data)


def test_metadata_may_be_missing() -> None:
    assert Session.from_dict({"session_id": "s", "messages": []}) == Session("s")


def test_metadata_is_patched_into_a_new_session(answered: Session) -> None:
    patched = answered.with_metadata({"title": "Greetings"})

    assert patched.metadata == {**answered.metadata, "title": "Greetings"}
    assert "title" not in answered.metadata
    assert patched.messages is answered.messages
    assert type(patched.metadata) is FrozenDict


def test_a_session_under_another_id_is_otherwise_the_same(answered: Session) -> None:
    assert answered.with_id("t") == replace(answered, session_id="t")


def test_a_copy_of_a_session_is_the_session(answered: Session) -> None:
    assert copy.copy(answered) is answered
    assert copy.deepcopy(answered) is answered


def test_a_pickled_session_comes_back_equal_and_frozen(core: AgentCore, answered: Session) -> None:
    back = pickle.loads(pickle.dumps(answered))

    assert back == answered
    assert "native_rebuilt" not in core.send_request(back, CONFIG)[0].metadata
    with pytest.raises(FrozenValueError):
        back.metadata["native_messages"][0]["role"] = "system"


# What a session is made of


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((5,), "session_id must be a string, not int"),
        ((None,), "session_id must be a string, not NoneType"),
        (("s", "hello"), "messages must be a list of messages, not str"),
        (("s", {}), "messages must be a list of messages, not dict"),
        (("s", None), "messages must be a list of messages, not NoneType"),
        (("s", [{"role": "user", "content": "a"}]), "messages must be Message objects, not dict"),
        (("s", [], []), "metadata must be a dict, not list"),
        (("s", [], None), "metadata must be a dict, not NoneType"),
    ],
)
def test_a_session_checks_its_arguments_when_it_is_made(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(ArgumentTypeError, match=says):
        Session(*arguments)


def test_an_export_of_a_newer_version_keeps_what_it_brought(core: AgentCore, answered: Session) -> None:
    newer = answered.to_dict()
    newer["version"] = "1.7"
    newer["participants"] = [{"name": "ada"}]
    newer["messages"][0]["reactions"] = ["thumbs up"]

    session = core.import_session(json.dumps(newer))
    longer, _ = core.send_request(core.add_message(session, "user", "and?"), {})

    assert session.to_dict() == newer
    assert session.frozen_dict() == newer
    kept = json.loads(core.export_session(longer))
    assert (kept["version"], kept["participants"]) == ("1.7", [{"name": "ada"}])
    assert kept["messages"][0]["reactions"] == ["thumbs up"]
    assert core.rebuild_native_history(longer, {}).messages[0].extra == {"reactions": ["thumbs up"]}
    assert longer.with_id("t").with_metadata({"title": "T"}).extra == session.extra
    assert "native_rebuilt" not in longer.metadata or longer.metadata["native_rebuilt"]["messages"] <= 4


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


def test_a_session_can_be_written_whatever_a_plugin_left_in_native_history(core: AgentCore) -> None:
    class Leaving:
        name = "leaving"

        def finalize(self, final_messages: Any, native_messages: Any, state: Any) -> Any:
            odd = {"when": date(2026, 1, 2), "object": Odd(), "set": {1}, 5: "five", "bytes": b"x"}
            odd |= {"score": float("nan"), "limits": [-float("inf"), float("inf")]}
            finals = [{**final_messages[0], "kept": odd}]
            return finals, [*native_messages[:-1], *finals], state

    core.register_feature(Leaving)
    session, _ = core.send_request(core.add_message(Session("s"), "user", "hello"), {})

    written = json.dumps(session.to_dict(), allow_nan=False)

    assert json.loads(core.export_session(session)) == json.loads(written)
    again = core.import_session(written)
    assert contents(again) == ["hello", "hello"]
    more, _ = core.send_request(core.add_message(again, "user", "more"), {})
    assert "native_rebuilt" not in more.metadata  # integrity knows what was written as what was meant


def test_metadata_that_a_hook_leaves_costs_no_answer_even_if_it_is_no_data(
    core: AgentCore, caplog: pytest.LogCaptureFixture
) -> None:
    class Leaving:
        name = "leaving"

        def finalize(self, final_messages: Any, native_messages: Any, state: Any) -> Any:
            patch = {"score": float("nan"), "odd": Odd(), "fine": 1}
            return final_messages, native_messages, {**state, "session_metadata_patch": patch}

    core.register_feature(Leaving)
    session, _ = core.send_request(core.add_message(Session("s"), "user", "hello"), {})

    assert contents(session) == ["hello", "hello"]
    assert (session.metadata["fine"], session.metadata["score"]) == (1, None)
    json.dumps(session.to_dict(), allow_nan=False)
    assert "metadata_patch_changed" in caplog.text


def contents(session: Session) -> list[Any]:
    return [message.content for message in session.messages]


def test_native_history_is_a_real_list_where_a_plugin_looks_for_one(answered: Session) -> None:
    assert isinstance(answered.frozen_dict()["metadata"]["native_messages"], list)
    assert isinstance(answered.to_dict()["metadata"]["native_messages"], list)

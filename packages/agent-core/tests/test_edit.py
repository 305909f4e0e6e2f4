"""Adding, changing, cutting, forking and joining: what each does, refuses and reports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ArgumentError,
    ArgumentTypeError,
    Message,
    MessageEditError,
    MessageIndexError,
    PluginError,
    ProviderNotFoundError,
    Session,
)
from agent_core.testing import EchoProvider, Reply, ScriptedProvider

Case = Callable[..., AbstractContextManager[None]]

Dicts = list[dict[str, Any]]
CONFIG = {"provider": "scripted", "model": "m"}


class MergingProvider(ScriptedProvider):
    """Makes one item of all messages that are converted together; nobody can tell whose part is whose."""

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": "user", "content": " ".join(str(message["content"]) for message in messages)}]


class PairingProvider(ScriptedProvider):
    """Its answers are one item that reads as two messages."""

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [
            {"role": item["role"], "content": half, "metadata": {"native_indices": [index]}}
            for index, item in enumerate(native_messages)
            for half in item["content"].split("|")
        ]


def scripted_core(provider: Any = None, *others: Any) -> AgentCore:
    core = AgentCore()
    for registered in (provider or ScriptedProvider(["one", "two", "three"]), *others):
        core.register_provider(registered)
    return core


def talk(core: AgentCore, *words: str, config: dict[str, Any] = CONFIG) -> Session:
    """Return a session in which each of *words* was answered."""
    session = core.create_session("s")
    for said in words:
        session = core.send_request(core.add_message(session, "user", said), config)[0]
    return session


def spelled(core: AgentCore, letters: str) -> Session:
    """Return a session with native history in which a model said the first letter."""
    session = core.send_request(core.create_session("s"), CONFIG)[0]
    for letter in letters[1:]:
        session = core.add_message(session, "user", letter, config=CONFIG)
    return session


def contents(session: Session) -> list[Any]:
    return [message.content for message in session.messages]


def native(session: Session) -> list[Any]:
    return [item["content"] for item in session.metadata["native_messages"]]


def indices(session: Session) -> list[Any]:
    return [message.native_indices for message in session.messages]


def plain(*words: str) -> Session:
    """Return a session without native history."""
    return Session("s", [Message("user", said) for said in words], {"title": "T"})


# --- add_message ---------------------------------------------------------------------------------


def test_a_message_is_added_to_a_new_session_and_the_old_one_stays() -> None:
    core, before = AgentCore(), plain("a")

    after = core.add_message(before, "assistant", "b", {"tags": ["x"]})

    assert after.messages == [Message("user", "a"), Message("assistant", "b", {"tags": ["x"]})]
    assert after.session_id == "s"
    assert after.metadata == {"title": "T"}
    assert before == plain("a")


def test_adding_needs_no_provider_and_no_configuration() -> None:
    assert contents(AgentCore().add_message(plain(), "user", "a")) == ["a"]


def test_parts_and_a_tool_result_are_stored_with_the_message() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image", "url": "u"}]

    session = AgentCore().add_message(
        plain(), "tool", "a", multipart_content=parts, tool_result={"success": True}
    )

    assert session.messages[0].multipart_content == parts
    assert session.messages[0].tool_result == {"success": True}


def test_empty_parts_are_no_parts_but_an_empty_result_is_a_result() -> None:
    session = AgentCore().add_message(plain(), "tool", "a", multipart_content=[], tool_result={})

    assert session.messages[0].multipart_content is None
    assert session.messages[0].tool_result == {}


def test_a_callers_native_indices_are_ignored() -> None:
    core = scripted_core()
    session = talk(core, "a")

    longer = core.add_message(session, "user", "b", {"native_indices": [0], "kept": 1}, CONFIG)

    assert longer.messages[-1].metadata == {"native_indices": [2], "kept": 1}
    assert (
        "native_indices"
        not in AgentCore().add_message(plain(), "user", "a", {"native_indices": [7]}).messages[0].metadata
    )


@pytest.mark.parametrize(
    ("after_index", "expected"),
    [
        (None, ["a", "b", "c", "new"]),
        (-1, ["new", "a", "b", "c"]),
        (0, ["a", "new", "b", "c"]),
        (1, ["a", "b", "new", "c"]),
        (2, ["a", "b", "c", "new"]),
        (-2, ["a", "b", "new", "c"]),
        (-3, ["a", "new", "b", "c"]),
    ],
)
def test_after_index_says_behind_which_message_the_new_one_goes(
    after_index: int | None, expected: list[str]
) -> None:
    core = scripted_core(ScriptedProvider(["a"]))
    with_native = spelled(core, "abc")

    longer = core.add_message(with_native, "user", "new", after_index=after_index)

    assert contents(longer) == native(longer) == expected
    assert contents(core.add_message(plain(*"abc"), "user", "new", after_index=after_index)) == expected


def test_after_index_minus_one_works_in_an_empty_session() -> None:
    assert contents(AgentCore().add_message(plain(), "user", "a", after_index=-1)) == ["a"]


@pytest.mark.parametrize(("words", "after_index"), [("abc", 3), ("abc", -4), ("abc", 99), ("", 0), ("", -2)])
def test_an_after_index_outside_the_session_is_refused(words: str, after_index: int) -> None:
    session = plain(*words)

    with pytest.raises(IndexError, match=f"after_index {after_index} out of range") as caught:
        AgentCore().add_message(session, "user", "new", after_index=after_index)

    assert isinstance(caught.value, MessageIndexError)
    assert (caught.value.index, caught.value.count) == (after_index, len(words))


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"role must be one of .* not 'robot'"):
        AgentCore().add_message(plain(), "robot", "a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"metadata": ["a"]}, "metadata must be a dict, not list"),
        ({"multipart_content": {"type": "text"}}, "multipart_content must be a list, not dict"),
        ({"multipart_content": ["text"]}, "multipart_content must be a list of dicts"),
        ({"tool_result": "ok"}, "tool_result must be a dict, not str"),
    ],
)
def test_arguments_of_the_wrong_type_are_refused_by_name(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentTypeError, match=says):
        AgentCore().add_message(plain(), "user", "a", **arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda core: core.add_message({}, "user", "a"),
        lambda core: core.modify_message({}, 0, "a"),
        lambda core: core.slice_session({}),
        lambda core: core.fork_session({}, upto_index=0),
        lambda core: core.join_sessions({}, plain()),
        lambda core: core.join_sessions(plain(), {}),
        lambda core: core.rebuild_native_history({}, CONFIG),
    ],
)
def test_only_a_session_can_be_edited(call: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="session must be a Session, not dict"):
        call(scripted_core())


def test_adding_with_a_configuration_makes_the_native_form_at_once() -> None:
    core = scripted_core()

    session = core.add_message(talk(core, "a"), "user", "b", None, CONFIG)

    assert native(session) == ["a", "one", "b"]
    assert indices(session) == [(0,), (1,), (2,)]
    assert "native_rebuilt" not in session.metadata


def test_without_a_configuration_the_only_provider_makes_the_native_form() -> None:
    core = scripted_core()

    assert native(core.add_message(talk(core, "a"), "user", "b")) == ["a", "one", "b"]


def test_without_a_configuration_and_with_two_providers_the_message_waits_for_the_next_request() -> None:
    core = scripted_core(ScriptedProvider(["one", "two"]), EchoProvider)

    waiting = core.add_message(talk(core, "a"), "user", "b")
    answered, _ = core.send_request(waiting, CONFIG)

    assert native(waiting) == ["a", "one"]
    assert indices(waiting) == [(0,), (1,), None]
    assert native(answered) == ["a", "one", "b", "two"]
    assert indices(answered) == [(0,), (1,), (2,), (3,)]
    assert "native_rebuilt" not in answered.metadata


def test_a_session_that_never_met_a_provider_gets_no_native_history_by_adding() -> None:
    session = scripted_core().add_message(plain("a"), "user", "b", None, CONFIG)

    assert session.metadata == {"title": "T"}


def test_an_unknown_provider_is_an_error_and_not_a_silent_append() -> None:
    core = scripted_core()
    session = talk(core, "a")

    with pytest.raises(ProviderNotFoundError):
        core.add_message(session, "user", "b", None, {"provider": "scribted"})


def test_a_provider_that_cannot_convert_is_named_and_the_session_is_as_before() -> None:
    class Picky(ScriptedProvider):
        def to_native_messages(self, messages: Dicts) -> Dicts:
            if any(message["content"] == "b" for message in messages):
                raise RuntimeError("I do not like b")
            return super().to_native_messages(messages)

    core = scripted_core(Picky(["one"]))
    session = talk(core, "a")
    before = session.to_dict()

    with pytest.raises(PluginError, match=r"'scripted', hook 'to_native_messages'.*do not like b"):
        core.add_message(session, "user", "b", None, CONFIG)
    assert session.to_dict() == before


def test_inserting_keeps_every_other_native_item() -> None:
    core = scripted_core(ScriptedProvider([Reply(text="one", extra={"signature": "s1"}), "two"]))
    before = talk(core, "a", "b")

    after = core.add_message(before, "user", "new", config=CONFIG, after_index=0)

    assert native(after) == ["a", "new", "one", "b", "two"]
    assert indices(after) == [(0,), (1,), (2,), (3,), (4,)]
    old, new = before.metadata["native_messages"], after.metadata["native_messages"]
    assert all(was is now for was, now in zip(old, [new[0], *new[2:]], strict=True))
    assert new[2]["signature"] == "s1"
    assert "native_rebuilt" not in after.metadata


def test_inserting_among_messages_that_wait_for_their_native_form_touches_no_item() -> None:
    core = scripted_core(ScriptedProvider(["one", "two"]), EchoProvider)
    waiting = core.add_message(core.add_message(talk(core, "a"), "user", "b"), "user", "c")

    after = core.add_message(waiting, "user", "new", config=CONFIG, after_index=2)

    assert contents(after) == ["a", "one", "b", "new", "c"]
    assert after.metadata["native_messages"] == waiting.metadata["native_messages"]
    assert native(core.send_request(after, CONFIG)[0]) == ["a", "one", "b", "new", "c", "two"]


def test_inserting_between_messages_that_share_an_item_drops_native_history_and_says_so() -> None:
    core = scripted_core(PairingProvider(["first|second", "ok"]))
    session = talk(core, "a")

    after = core.add_message(session, "user", "new", config=CONFIG, after_index=1)

    assert contents(after) == ["a", "first", "new", "second"]
    assert "native_messages" not in after.metadata
    assert after.metadata["native_rebuilt"]["operation"] == "add_message"
    answered, _ = core.send_request(after, CONFIG)
    assert native(answered) == ["a", "first", "new", "second", "ok"]


def test_inserting_where_nobody_knows_whose_items_are_whose_drops_native_history_and_says_so() -> None:
    core = scripted_core(MergingProvider(["one", "two"]))
    unmapped = core.add_message(core.add_message(core.create_session(), "user", "a"), "user", "b")
    session, _ = core.send_request(unmapped, CONFIG)
    session = core.add_message(session, "user", "c", config=CONFIG)

    after = core.add_message(session, "user", "new", config=CONFIG, after_index=2)

    assert indices(session) == [None, None, (1,), (2,)]
    assert contents(after) == ["a", "b", "one", "new", "c"]
    assert indices(after) == [None] * 5
    assert after.metadata["native_rebuilt"]["reason"] == "dropped"


# --- modify_message ------------------------------------------------------------------------------


@pytest.mark.parametrize(("index", "position"), [(0, 0), (1, 1), (-1, 2), (-3, 0)])
def test_a_message_is_changed_by_its_index_from_either_end(index: int, position: int) -> None:
    before = plain("a", "b", "c")

    after = AgentCore().modify_message(before, index, "new")

    expected = ["a", "b", "c"]
    expected[position] = "new"
    assert contents(after) == expected
    assert contents(before) == ["a", "b", "c"]
    assert "native_rebuilt" not in after.metadata


@pytest.mark.parametrize("index", [3, -4, 99])
def test_an_index_outside_the_session_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match=f"index {index} out of range: the session has 3 messages"):
        AgentCore().modify_message(plain("a", "b", "c"), index, "new")


def test_a_message_of_an_empty_session_cannot_be_changed() -> None:
    with pytest.raises(MessageIndexError):
        AgentCore().modify_message(plain(), 0, "new")


def test_a_tool_message_is_refused() -> None:
    session = Session("s", [Message("tool", "result")])

    with pytest.raises(ValueError, match="a tool message cannot be modified") as caught:
        AgentCore().modify_message(session, 0, "new")
    assert isinstance(caught.value, MessageEditError)


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_role_and_metadata_stay(role: str) -> None:
    session = Session("s", [Message(role, "old", {"tags": ["x"]})])

    assert AgentCore().modify_message(session, 0, "new").messages == [Message(role, "new", {"tags": ["x"]})]


def test_attachments_stay_attached_to_a_changed_message() -> None:
    image = {"type": "image", "url": "u"}
    parts = [{"type": "text", "text": "old"}, image, {"type": "text", "text": "more"}]
    session = Session("s", [Message("user", "old", {}, parts)])

    message = AgentCore().modify_message(session, 0, "new").messages[0]

    assert message.content == "new"
    assert message.multipart_content == [{"type": "text", "text": "new"}, image]


def test_parts_that_were_only_text_are_replaced_by_the_new_text() -> None:
    session = Session("s", [Message("user", "old", {}, [{"type": "text", "text": "old"}])])

    assert AgentCore().modify_message(session, 0, "new").messages == [Message("user", "new")]


def test_changing_a_message_renews_its_native_items_and_no_others() -> None:
    core = scripted_core(ScriptedProvider([Reply(text="one", extra={"signature": "s1"}), "two"]))
    before = talk(core, "a", "b")

    after = core.modify_message(before, 2, "new", CONFIG)

    assert native(after) == ["a", "one", "new", "two"]
    old, new = before.metadata["native_messages"], after.metadata["native_messages"]
    assert [was is now for was, now in zip(old, new, strict=True)] == [True, True, False, True]
    assert "native_rebuilt" not in after.metadata
    assert "signature" not in core.modify_message(before, 1, "other", CONFIG).metadata["native_messages"][1]


def test_changing_without_a_configuration_asks_the_only_provider() -> None:
    core = scripted_core()

    assert native(core.modify_message(talk(core, "a"), 0, "new")) == ["new", "one"]


def test_changing_without_a_configuration_and_with_two_providers_drops_native_history_and_says_so() -> None:
    core = scripted_core(ScriptedProvider(["one", "two"]), EchoProvider)

    after = core.modify_message(talk(core, "a"), 0, "new")

    assert after.metadata == {
        "native_rebuilt": {
            "operation": "modify_message",
            "reason": "dropped",
            "detail": "no configuration was given",
            "messages": 2,
        }
    }
    assert indices(after) == [None, None]
    assert native(core.send_request(after, CONFIG)[0]) == ["new", "one", "two"]


def test_changing_a_message_that_shares_its_item_drops_native_history_and_says_so() -> None:
    core = scripted_core(PairingProvider(["first|second", "ok"]))

    after = core.modify_message(talk(core, "a"), 1, "new", CONFIG)

    assert after.metadata["native_rebuilt"]["detail"] == "the message has no native items of its own"
    assert contents(after) == ["a", "new", "second"]
    assert native(core.send_request(after, CONFIG)[0]) == ["a", "new", "second", "ok"]


def test_changing_a_message_without_native_items_touches_no_item() -> None:
    class SystemElsewhere(ScriptedProvider):
        """Sends system messages in another field than the others."""

        def to_native_messages(self, messages: Dicts) -> Dicts:
            return super().to_native_messages([m for m in messages if m["role"] != "system"])

    core = scripted_core(SystemElsewhere(["one", "two"]))
    before = core.add_message(talk(core, "a"), "system", "Be brief.", config=CONFIG, after_index=0)

    after = core.modify_message(before, 1, "Be long.", CONFIG)

    assert indices(before) == indices(after) == [(0,), (), (1,)]
    assert contents(after) == ["a", "Be long.", "one"]
    assert after.metadata["native_messages"] == before.metadata["native_messages"]
    assert "native_rebuilt" not in after.metadata


def test_changing_a_message_that_waits_for_its_native_form_touches_no_item() -> None:
    core = scripted_core(ScriptedProvider(["one", "two"]), EchoProvider)
    waiting = core.add_message(talk(core, "a"), "user", "b")

    after = core.modify_message(waiting, 2, "new", CONFIG)

    assert after.metadata["native_messages"] == waiting.metadata["native_messages"]
    assert native(core.send_request(after, CONFIG)[0]) == ["a", "one", "new", "two"]


# --- slice_session -------------------------------------------------------------------------------


def test_messages_are_cut_by_the_rules_of_pythons_slices(case: Case) -> None:
    configs_: list[dict[str, Any] | None] = [None, CONFIG]
    for config in configs_:
        argumentss_: list[tuple[dict[str, Any], str]] = [
            ({"start": 1}, "bcd"),
            ({"end": 2}, "ab"),
            ({"start": 1, "end": 3}, "bc"),
            ({"start": -2}, "cd"),
            ({"end": -1}, "abc"),
            ({"start": -99, "end": 1}, "a"),
            ({"start": 1, "end": 99}, "bcd"),
            ({"start": 3, "end": 1}, ""),
            ({"start": 9}, ""),
            ({"end": 0}, ""),
            ({"remove_indices": [1]}, "acd"),
            ({"remove_indices": [-1, 0]}, "bc"),
            ({"remove_indices": [7, -9, "1", None, 2]}, "abd"),
            ({"remove_indices": [2, 2]}, "abd"),
            ({"start": 1, "remove_indices": [0, 2]}, "bd"),
            ({"remove_indices": [0, 1, 2, 3]}, ""),
        ]
        for arguments, kept in argumentss_:
            with case(config, arguments, kept):
                core = scripted_core(ScriptedProvider(["a"]))

                for session in (plain(*"abcd"), spelled(core, "abcd")):
                    staying, leaving = core.slice_session(session, config, **arguments, return_removed=True)

                    assert contents(staying) == list(kept)
                    assert contents(leaving) == [words for words in "abcd" if words not in kept]
                    assert core.slice_session(session, config, **arguments) == staying
                    assert contents(session) == list("abcd")


@pytest.mark.parametrize(
    "arguments",
    [{}, {"start": 0}, {"end": 99}, {"start": -4}, {"remove_indices": []}, {"remove_indices": [9]}],
)
def test_a_cut_that_removes_nothing_returns_the_session_itself(arguments: dict[str, Any]) -> None:
    core = scripted_core()
    session = talk(core, "a", "b")

    assert core.slice_session(session, **arguments) is session
    assert core.slice_session(session, CONFIG, **arguments) is session


def test_a_cut_that_removes_nothing_leaves_an_empty_session_without_native_history() -> None:
    core = scripted_core()
    session = talk(core, "a").with_metadata({"title": "T"})

    same, empty = core.slice_session(session, CONFIG, return_removed=True)

    assert same is session
    assert empty == Session("s", [], {"title": "T"})


def test_cutting_an_empty_session_gives_empty_sessions() -> None:
    assert AgentCore().slice_session(plain(), start=1) == plain()
    assert AgentCore().slice_session(plain(), return_removed=True) == (plain(), plain())


def test_cutting_without_a_configuration_is_core_only_and_says_so() -> None:
    core = scripted_core()

    staying, leaving = core.slice_session(talk(core, "a", "b"), start=3, return_removed=True)

    for half, count in ((staying, 1), (leaving, 3)):
        assert half.metadata == {
            "native_rebuilt": {
                "operation": "slice_session",
                "reason": "dropped",
                "detail": "no configuration was given",
                "messages": count,
            }
        }
        assert indices(half) == [None] * count


def test_cutting_a_session_without_native_history_has_nothing_to_report() -> None:
    assert scripted_core().slice_session(plain("a", "b"), start=1).metadata == {"title": "T"}
    assert scripted_core().slice_session(plain("a", "b"), CONFIG, start=1).metadata == {"title": "T"}


def test_cutting_with_a_configuration_keeps_the_items_of_what_stays() -> None:
    core = scripted_core(ScriptedProvider([Reply(text="one", extra={"signature": "s1"}), "two"]))
    session = talk(core, "a", "b")
    items = session.metadata["native_messages"]

    staying, leaving = core.slice_session(session, CONFIG, remove_indices=[0, 3], return_removed=True)

    assert native(staying) == ["one", "b"]
    assert native(leaving) == ["a", "two"]
    assert indices(staying) == indices(leaving) == [(0,), (1,)]
    assert staying.metadata["native_messages"][0] is items[1]
    assert leaving.metadata["native_messages"][1] is items[3]
    assert "native_rebuilt" not in staying.metadata
    assert "native_rebuilt" not in leaving.metadata


def test_a_message_that_loses_its_neighbour_in_a_shared_item_gets_an_item_of_its_own() -> None:
    core = scripted_core(PairingProvider(["first|second", "ok"]))

    staying, leaving = core.slice_session(talk(core, "a"), CONFIG, end=2, return_removed=True)

    assert native(staying) == ["a", "first"]
    assert native(leaving) == ["second"]
    assert indices(staying) == [(0,), (1,)]
    assert native(core.send_request(staying, CONFIG)[0]) == ["a", "first", "ok"]


def test_a_message_that_loses_one_of_its_items_gets_all_of_them_anew() -> None:
    class Overlapping(ScriptedProvider):
        """Answers in three items: two messages, and the middle item belongs to both."""

        def from_native_messages(self, native_messages: Dicts) -> Dicts:
            if len(native_messages) != 3:
                return super().from_native_messages(native_messages)
            return [
                {"role": "assistant", "content": "first", "metadata": {"native_indices": [0, 1]}},
                {"role": "assistant", "content": "second", "metadata": {"native_indices": [1, 2]}},
            ]

        def finalize(self, native_messages: Dicts, state: Any) -> tuple[Dicts, Dicts, Any]:
            answer: Dicts = [{"role": "assistant", "content": half} for half in ("fir", "st sec", "ond")]
            return answer, [*native_messages, *answer], state

    core = scripted_core(Overlapping(["-"]))
    session = talk(core, "a")

    cut = core.slice_session(session, CONFIG, remove_indices=[1])

    assert indices(session) == [(0,), (1, 2), (2, 3)]
    assert native(cut) == ["a", "second"]
    assert indices(cut) == [(0,), (1,)]


def test_removing_a_message_whose_items_nobody_knows_does_not_leave_them_behind() -> None:
    core = scripted_core(MergingProvider(["one", "two"]))
    unmapped = core.add_message(core.add_message(core.create_session(), "user", "a"), "user", "b")
    session, _ = core.send_request(unmapped, CONFIG)

    after = core.slice_session(session, CONFIG, start=2)

    assert contents(after) == ["one"]
    assert "native_messages" not in after.metadata
    assert after.metadata["native_rebuilt"]["detail"] == "some messages are not mapped to native items"
    assert native(core.send_request(after, CONFIG)[0]) == ["one", "two"]


class AddsItemToBatches:
    """Puts an item in front that belongs to no message."""

    name = "batch-note"
    version = "1"

    def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
        if len(messages) < 2:
            return native_messages
        return [{"role": "system", "content": "note"}, *native_messages]


def batched_session() -> tuple[AgentCore, Session]:
    core = scripted_core()
    core.register_feature(AddsItemToBatches)
    session = core.create_session()
    for words in "abc":
        session = core.add_message(session, "user", words)
    session = core.send_request(session, CONFIG)[0]
    assert native(session) == ["note", "a", "b", "c", "one"]
    assert indices(session) == [(1,), (2,), (3,), (4,)]
    return core, session


def test_an_item_that_belongs_to_no_message_stays_in_front() -> None:
    core, session = batched_session()

    assert native(core.slice_session(session, CONFIG, start=2)) == ["note", "c", "one"]
    assert native(core.add_message(session, "user", "new", config=CONFIG, after_index=-1)) == [
        "note",
        "new",
        "a",
        "b",
        "c",
        "one",
    ]


def test_an_item_that_belongs_to_no_message_is_not_doubled_by_cutting_and_joining() -> None:
    core, session = batched_session()

    staying, leaving = core.slice_session(session, CONFIG, end=2, return_removed=True)
    joined = core.join_sessions(staying, leaving, CONFIG)

    assert native(leaving) == ["c", "one"]
    assert joined.messages == session.messages
    assert joined.metadata["native_messages"] == session.metadata["native_messages"]


# --- fork_session --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("upto_index", "expected"),
    [(0, "a"), (2, "abc"), (3, "abcd"), (99, "abcd"), (-1, ""), (-2, "abc"), (-3, "ab"), (-99, "")],
)
def test_a_fork_ends_where_a_slice_up_to_the_next_index_would(upto_index: int, expected: str) -> None:
    assert contents(AgentCore().fork_session(plain(*"abcd"), upto_index=upto_index)) == list(expected)


def test_a_fork_keeps_id_and_metadata_unless_a_new_id_is_given() -> None:
    core = AgentCore()

    assert core.fork_session(plain("a", "b"), upto_index=0) == plain("a")
    assert core.fork_session(plain("a", "b"), upto_index=0, new_session_id="t").session_id == "t"
    assert core.fork_session(plain("a"), upto_index=0, new_session_id="s") == plain("a")


def test_a_fork_shares_messages_and_native_items() -> None:
    core = scripted_core()
    session = talk(core, "a", "b", "c")

    forked = core.fork_session(session, CONFIG, upto_index=3, new_session_id="t")

    assert all(was is now for was, now in zip(session.messages[:4], forked.messages, strict=True))
    items = forked.metadata["native_messages"]
    assert all(was is now for was, now in zip(session.metadata["native_messages"][:4], items, strict=True))
    assert "native_rebuilt" not in forked.metadata


def test_a_fork_without_native_history_shares_its_messages_and_their_structure() -> None:
    session = plain(*(str(number) for number in range(100)))

    forked = AgentCore().fork_session(session, upto_index=69)

    assert all(was is now for was, now in zip(session.messages[:70], forked.messages, strict=True))
    assert forked.history._spine[0][0] is session.history._spine[0][0]


def test_both_branches_go_on_by_themselves() -> None:
    core = scripted_core(ScriptedProvider(["one", "two", "left", "right"]))
    session = talk(core, "a", "b")

    left, _ = core.send_request(
        core.add_message(core.fork_session(session, CONFIG, upto_index=1), "user", "l"), CONFIG
    )
    right, _ = core.send_request(core.add_message(session, "user", "r"), CONFIG)

    assert native(left) == ["a", "one", "l", "left"]
    assert native(right) == ["a", "one", "b", "two", "r", "right"]
    assert "native_rebuilt" not in left.metadata
    assert "native_rebuilt" not in right.metadata


def test_upto_index_must_be_given() -> None:
    with pytest.raises(TypeError, match="upto_index"):
        AgentCore().fork_session(plain("a"))  # type: ignore[call-arg]


# --- join_sessions -------------------------------------------------------------------------------


def test_joined_sessions_have_the_first_ones_id_and_metadata() -> None:
    other = Session("t", [Message("user", "b")], {"title": "U", "more": 1})

    joined = AgentCore().join_sessions(plain("a"), other)

    assert joined == plain("a", "b")


def test_joining_without_a_configuration_is_core_only_and_says_so() -> None:
    core = scripted_core()

    for pair in ((talk(core, "a"), plain("b")), (plain("b"), talk(core, "a"))):
        joined = core.join_sessions(*pair)

        assert "native_messages" not in joined.metadata
        assert indices(joined) == [None] * 3
        assert joined.metadata["native_rebuilt"] == {
            "operation": "join_sessions",
            "reason": "dropped",
            "detail": "no configuration was given",
            "messages": 3,
        }


def test_joining_with_a_configuration_puts_native_histories_one_after_the_other() -> None:
    core = scripted_core(ScriptedProvider([Reply(text="one", extra={"signature": "s1"}), "two", "three"]))
    first, second = talk(core, "a"), talk(core, "b")

    joined = core.join_sessions(first, second, CONFIG)

    assert native(joined) == ["a", "one", "b", "two"]
    assert indices(joined) == [(0,), (1,), (2,), (3,)]
    expected = [*first.metadata["native_messages"], *second.metadata["native_messages"]]
    assert all(was is now for was, now in zip(expected, joined.metadata["native_messages"], strict=True))
    assert "native_rebuilt" not in joined.metadata
    answered, _ = core.send_request(core.add_message(joined, "user", "c"), CONFIG)
    assert native(answered) == ["a", "one", "b", "two", "c", "three"]
    assert "native_rebuilt" not in answered.metadata


def test_a_second_session_without_native_history_waits_for_the_next_request() -> None:
    core = scripted_core()
    first = talk(core, "a")

    joined = core.join_sessions(first, plain("b"), CONFIG)

    assert joined.metadata["native_messages"] == first.metadata["native_messages"]
    assert indices(joined) == [(0,), (1,), None]
    assert "native_rebuilt" not in joined.metadata
    assert native(core.send_request(joined, CONFIG)[0]) == ["a", "one", "b", "two"]


def test_a_first_session_without_native_history_is_converted() -> None:
    core = scripted_core()
    second = talk(core, "a")

    joined = core.join_sessions(plain("b"), second, CONFIG)

    assert native(joined) == ["b", "a", "one"]
    assert indices(joined) == [(0,), (1,), (2,)]
    assert joined.metadata["native_messages"][2] is second.metadata["native_messages"][1]
    assert "native_rebuilt" not in joined.metadata


def test_joining_two_sessions_without_native_history_has_nothing_to_report() -> None:
    assert scripted_core().join_sessions(plain("a"), plain("b"), CONFIG) == plain("a", "b")


def test_joining_sessions_of_different_providers_drops_native_history_and_says_so() -> None:
    core = scripted_core(ScriptedProvider(["one", "two"]), EchoProvider)
    first, second = talk(core, "a"), talk(core, "b", config={"provider": "echo"})

    joined = core.join_sessions(first, second, CONFIG)

    assert "native_messages" not in joined.metadata
    assert joined.metadata["native_rebuilt"]["detail"] == "the sessions were made by different providers"
    assert native(core.send_request(joined, CONFIG)[0]) == ["a", "one", "b", "b", "two"]


@pytest.mark.parametrize("config", [None, CONFIG], ids=["without config", "with config"])
@pytest.mark.parametrize("tampered_first", [True, False])
def test_joining_a_session_that_was_tampered_with_says_so(
    config: dict[str, Any] | None, tampered_first: bool
) -> None:
    core = scripted_core()
    data = talk(core, "a").to_dict()
    data["messages"][0]["content"] = "forged"
    tampered = Session.from_dict(data)
    pair = (tampered, plain("b")) if tampered_first else (plain("b"), tampered)

    joined = core.join_sessions(*pair, config)

    assert "native_messages" not in joined.metadata
    assert "changed outside the core" in joined.metadata["native_rebuilt"]["detail"]


def test_joining_with_an_empty_session_changes_nothing() -> None:
    core = scripted_core()
    session = talk(core, "a")

    assert core.join_sessions(session, core.create_session(), CONFIG) == session
    assert core.join_sessions(core.create_session("s"), session, CONFIG) == session


# --- reports -------------------------------------------------------------------------------------


def test_a_report_speaks_of_the_last_change_only() -> None:
    core = scripted_core(ScriptedProvider(["one", "two"]), EchoProvider)

    dropped = core.slice_session(talk(core, "a"), start=1)
    longer = core.add_message(dropped, "user", "b")
    answered, _ = core.send_request(longer, CONFIG)

    assert "native_rebuilt" in dropped.metadata
    assert "native_rebuilt" not in longer.metadata
    assert "native_rebuilt" not in answered.metadata


@pytest.mark.parametrize(
    ("operation", "edit"),
    [
        ("add_message", lambda core, s: core.add_message(s, "user", "x", config=CONFIG, after_index=0)),
        ("modify_message", lambda core, s: core.modify_message(s, 0, "x", CONFIG)),
        ("slice_session", lambda core, s: core.slice_session(s, CONFIG, end=1)),
        ("fork_session", lambda core, s: core.fork_session(s, CONFIG, upto_index=0)),
    ],
)
def test_every_edit_of_a_session_that_was_tampered_with_says_so(operation: str, edit: Any) -> None:
    core = scripted_core()
    data = talk(core, "a").to_dict()
    data["metadata"]["native_messages"][0]["content"] = "forged"

    edited = edit(core, Session.from_dict(data))

    report = edited.metadata["native_rebuilt"]
    assert (report["operation"], report["reason"]) == (operation, "dropped")
    assert "changed outside the core" in report["detail"]
    assert report["messages"] == len(edited.messages)
    assert "forged" not in native(core.send_request(edited, CONFIG)[0])


def test_plugins_that_convert_for_an_edit_get_the_callers_context() -> None:
    class Curious:
        name = "curious"
        version = "1"

        def to_native_messages(
            self, messages: Dicts, native_messages: Dicts, state: Any, context: Any
        ) -> Dicts:
            seen.append(context.get("mood"))
            return native_messages

    seen: list[Any] = []
    core = scripted_core()
    core.register_feature(Curious)
    session = talk(core, "a")
    seen.clear()

    session = core.add_message(session, "user", "b", config=CONFIG, context={"mood": "calm"})
    core.modify_message(session, 0, "c", CONFIG, context={"mood": "glad"})

    assert seen == ["calm", "glad"]


def test_a_context_that_is_no_dict_is_refused() -> None:
    core = scripted_core()

    with pytest.raises(TypeError, match="context must be a dict"):
        core.add_message(talk(core, "a"), "user", "b", config=CONFIG, context=5)  # type: ignore[arg-type]


# --- what plugins get to know -----------------------------------------------------------------------


class Wants:
    """Remembers the tools in each configuration that `init` gets."""

    name = "wants"

    def __init__(self) -> None:
        self.tools: list[list[str]] = []

    def init(self, config: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        self.tools.append([schema["function"]["name"] for schema in config["tools"]])
        return state


def weather(place: str) -> str:
    """Tell the weather."""
    return f"rain in {place}"


@pytest.mark.parametrize(
    "edit",
    [
        lambda core, session: core.add_message(session, "user", "more", config=CONFIG),
        lambda core, session: core.add_message(session, "user", "before", config=CONFIG, after_index=-1),
        lambda core, session: core.modify_message(session, 0, "else", CONFIG),
        lambda core, session: core.core_messages_to_native([{"role": "user", "content": "x"}], CONFIG),
        lambda core, session: core.rebuild_native_history(session, CONFIG),
        lambda core, session: core.rebuild_native_history(session, CONFIG, start=0, end=1),
        lambda core, session: core.join_sessions(session, session, CONFIG),
    ],
    ids=["append", "insert", "modify", "to_native", "rebuild", "rebuild_range", "join"],
)
def test_an_edit_initialises_plugins_with_the_tools_as_a_request_does(
    edit: Callable[[AgentCore, Session], object],
) -> None:
    wants = Wants()
    core = scripted_core()
    core.register_feature(wants)
    core.register_tool(weather)
    session = talk(core, "a")
    wants.tools.clear()

    edit(core, session)

    assert wants.tools
    assert all(tools == ["weather"] for tools in wants.tools)

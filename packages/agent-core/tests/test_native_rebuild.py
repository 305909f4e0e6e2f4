"""Making native history anew by request, and making native items for other purposes."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ArgumentError,
    ConfigTypeError,
    Message,
    NativeHistoryError,
    NoProviderError,
    PluginError,
    Session,
    SessionFormatError,
)
from agent_core.frozen import freeze
from agent_core.testing import EchoProvider, Reply, ScriptedProvider

Dicts = list[dict[str, Any]]
State = dict[str, Any]
CONFIG = {"provider": "scripted", "model": "m"}


class PairingProvider(ScriptedProvider):
    """Its answers are one item that reads as two messages."""

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [
            {"role": item["role"], "content": half, "metadata": {"native_indices": [index]}}
            for index, item in enumerate(native_messages)
            for half in item["content"].split("|")
        ]


class TwoItemsEach(ScriptedProvider):
    """Has a head and a body for every message."""

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [i for m in messages for i in ({"role": m["role"]}, {"content": m["content"], "new": True})]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        heads = [index for index, item in enumerate(native_messages) if "role" in item]
        return [
            {
                "role": native_messages[index]["role"],
                "content": native_messages[index + 1]["content"],
                "metadata": {"native_indices": [index, index + 1]},
            }
            for index in heads
        ]

    def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
        answer: Dicts = [{"role": "assistant"}, {"content": "".join(state["text"]), "signature": "signed"}]
        return answer, [*native_messages, *answer], state


class SystemPrompt:
    """Puts a system item in front unless there is one."""

    name = "system-prompt"
    version = "1"

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        if any(item.get("role") == "system" for item in native_messages):
            return native_messages, state
        return [{"role": "system", "content": "Be brief."}, *native_messages], state


def scripted_core(provider: Any, *others: Any) -> AgentCore:
    core = AgentCore()
    for registered in (provider, *others):
        core.register_provider(registered)
    return core


def talk(core: AgentCore, *words: str) -> Session:
    session = core.create_session("s")
    for said in words:
        session = core.add_message(session, "user", said, config=CONFIG)
        session = core.send_request(session, CONFIG)[0]
    return session


def two_turns() -> tuple[AgentCore, Session]:
    """Return a session whose answers carry a signature and an internal note."""
    replies = [
        Reply(text=text, extra={"signature": f"signed {text}", "_metadata": {"cost": cost}})
        for text, cost in (("one", 1), ("two", 2))
    ]
    core = scripted_core(ScriptedProvider([*replies, "three"]))
    return core, talk(core, "a", "b")


def items(session: Session) -> Any:
    return session.metadata["native_messages"]


def native(session: Session) -> list[Any]:
    return [item["content"] for item in items(session)]


def contents(session: Session) -> list[Any]:
    return [message.content for message in session.messages]


# --- the whole history ---------------------------------------------------------------------------


def test_a_session_that_has_none_gets_native_history() -> None:
    core = scripted_core(ScriptedProvider())
    session = Session("s", [Message("user", "a"), Message("assistant", "b")], {"title": "T"})

    rebuilt = core.rebuild_native_history(session, CONFIG)

    assert native(rebuilt) == contents(rebuilt) == ["a", "b"]
    assert [m.native_indices for m in rebuilt.messages] == [(0,), (1,)]
    assert rebuilt.metadata["title"] == "T"
    assert rebuilt.metadata["native_provenance"] == {
        "provider": "scripted",
        "models": [["m", 2]],
        "in_order": True,
    }
    assert "native_messages" not in session.metadata


def test_everything_is_made_from_the_messages_and_internal_notes_stay() -> None:
    core, session = two_turns()

    rebuilt = core.rebuild_native_history(session, CONFIG)

    assert native(rebuilt) == ["a", "one", "b", "two"]
    assert not any("signature" in item for item in items(rebuilt))
    assert [item.get("_metadata") for item in items(rebuilt)] == [None, {"cost": 1}, None, {"cost": 2}]
    assert rebuilt.metadata["native_rebuilt"] == {
        "operation": "rebuild_native_history",
        "reason": "requested",
        "detail": "rebuild_native_history was called",
        "messages": 4,
    }


def test_what_was_rebuilt_is_used_by_the_next_request() -> None:
    core, session = two_turns()

    after, _ = core.send_request(core.rebuild_native_history(session, CONFIG), CONFIG)

    assert native(after) == ["a", "one", "b", "two", "three"]
    assert "native_rebuilt" not in after.metadata


def test_messages_keep_what_was_known_about_them() -> None:
    core = scripted_core(ScriptedProvider())
    message = Message("tool", "a", {"tool_call_id": "c1", "mine": 1}, None, {"success": True})

    rebuilt = core.rebuild_native_history(Session("s", [message]), CONFIG)

    assert rebuilt.messages == [message.with_native_indices((0,))]


def test_rebuilding_again_changes_nothing() -> None:
    core, session = two_turns()

    once = core.rebuild_native_history(session, CONFIG)

    assert core.rebuild_native_history(once, CONFIG) == once


def test_plugins_prepare_the_new_history_as_for_a_request() -> None:
    core = scripted_core(ScriptedProvider())
    core.register_feature(SystemPrompt)

    rebuilt = core.rebuild_native_history(Session("s", [Message("user", "a")]), CONFIG)

    assert native(rebuilt) == contents(rebuilt) == ["Be brief.", "a"]
    assert [m.native_indices for m in rebuilt.messages] == [(0,), (1,)]


def test_rebuilding_mends_a_session_that_was_tampered_with() -> None:
    core, session = two_turns()
    data = session.to_dict()
    data["metadata"]["native_messages"][0]["content"] = "forged"

    rebuilt = core.rebuild_native_history(Session.from_dict(data), CONFIG)

    assert native(rebuilt) == ["a", "one", "b", "two"]
    assert "native_rebuilt" not in core.send_request(rebuilt, CONFIG)[0].metadata


@pytest.mark.parametrize("junk", [5, "items", {"0": {}}, [5, None]])
def test_native_history_that_makes_no_sense_does_not_matter(junk: Any) -> None:
    core, session = two_turns()

    rebuilt = core.rebuild_native_history(session.with_metadata({"native_messages": junk}), CONFIG)

    assert native(rebuilt) == ["a", "one", "b", "two"]


@pytest.mark.parametrize("junk", [5, ["x"], [-100], [99], None])
def test_indices_that_make_no_sense_do_not_matter(junk: Any) -> None:
    core, session = two_turns()
    data = session.to_dict()
    data["messages"][0]["metadata"]["native_indices"] = junk

    rebuilt = core.rebuild_native_history(Session.from_dict(data), CONFIG)

    assert [m.native_indices for m in rebuilt.messages] == [(0,), (1,), (2,), (3,)]


def test_rebuilding_for_another_provider_makes_its_native_history() -> None:
    core = scripted_core(ScriptedProvider(["one"]), EchoProvider)

    rebuilt = core.rebuild_native_history(talk(core, "a"), {"provider": "echo"})

    assert rebuilt.metadata["native_provenance"]["provider"] == "echo"
    assert native(rebuilt) == ["a", "one"]


def test_an_empty_session_has_an_empty_native_history() -> None:
    rebuilt = scripted_core(ScriptedProvider()).rebuild_native_history(Session("s"), CONFIG)

    assert rebuilt.messages == []
    assert items(rebuilt) == []


def test_the_configuration_must_be_given() -> None:
    core, session = two_turns()

    with pytest.raises(ValueError, match="config must be given") as caught:
        core.rebuild_native_history(session)
    assert isinstance(caught.value, ArgumentError)


@pytest.mark.parametrize("config", ["scripted", 5, ["provider"]])
def test_the_configuration_must_be_a_dict(config: Any) -> None:
    core, session = two_turns()

    with pytest.raises(TypeError, match="config must be a dict") as caught:
        core.rebuild_native_history(session, config)
    assert isinstance(caught.value, ConfigTypeError)


def test_there_must_be_a_provider() -> None:
    with pytest.raises(RuntimeError, match="No provider registered") as caught:
        AgentCore().rebuild_native_history(Session("s"), {})
    assert isinstance(caught.value, NoProviderError)


def test_a_provider_that_reads_back_nonsense_is_named() -> None:
    class Mumbling(ScriptedProvider):
        def from_native_messages(self, native_messages: Dicts) -> Dicts:
            return [{"role": "robot", "content": "?"} for _ in native_messages]

    core = scripted_core(Mumbling())

    with pytest.raises(PluginError, match=r"'scripted', hook 'from_native_messages'.*'role'"):
        core.rebuild_native_history(Session("s", [Message("user", "a")]), CONFIG)


# --- a part of it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "renewed"),
    [(0, 1, {0}), (1, 3, {1, 2}), (None, 2, {0, 1}), (2, None, {2, 3}), (0, 4, {0, 1, 2, 3})],
)
def test_only_the_selected_messages_get_new_items(
    start: int | None, end: int | None, renewed: set[int]
) -> None:
    core, session = two_turns()

    rebuilt = core.rebuild_native_history(session, CONFIG, start=start, end=end)

    assert native(rebuilt) == contents(rebuilt) == ["a", "one", "b", "two"]
    for index, (was, now) in enumerate(zip(items(session), items(rebuilt), strict=True)):
        assert (was is now) is (index not in renewed)
        assert was.get("_metadata") == now.get("_metadata")
    assert [m.native_indices for m in rebuilt.messages] == [(0,), (1,), (2,), (3,)]
    report = rebuilt.metadata["native_rebuilt"]
    assert (report["reason"], report["messages"]) == ("requested", len(renewed))


def test_only_the_selected_items_are_the_new_models() -> None:
    core, session = two_turns()

    rebuilt = core.rebuild_native_history(session, {**CONFIG, "model": "n"}, start=1, end=2)

    assert rebuilt.metadata["native_provenance"] == {
        "provider": "scripted",
        "models": [["m", 1], ["n", 1], ["m", 2]],
        "in_order": True,
    }


def test_a_part_may_become_more_items_than_it_was() -> None:
    core = scripted_core(TwoItemsEach(["one"]))
    session = talk(core, "a")

    rebuilt = core.rebuild_native_history(session, CONFIG, start=1)

    assert [m.native_indices for m in session.messages] == [(0, 1), (2, 3)]
    assert [m.native_indices for m in rebuilt.messages] == [(0, 1), (2, 3)]
    assert items(rebuilt)[3] == {"content": "one", "new": True}
    assert items(rebuilt)[1] is items(session)[1]


def test_messages_that_wait_for_their_native_form_are_not_lost() -> None:
    core = scripted_core(ScriptedProvider(["one", "two"]), EchoProvider)
    waiting = core.add_message(talk(core, "a"), "user", "b")

    rebuilt = core.rebuild_native_history(waiting, CONFIG, start=0, end=1)

    assert waiting.messages[2].native_indices is None
    assert native(rebuilt) == contents(rebuilt) == ["a", "one", "b"]
    assert items(rebuilt)[1] is items(waiting)[1]


@pytest.mark.parametrize(
    ("start", "end"), [(-1, 2), (0, -1), (2, 2), (3, 1), (0, 5), (4, None), (None, 0), (9, 12)]
)
def test_start_and_end_must_select_messages(start: int | None, end: int | None) -> None:
    core, session = two_turns()

    with pytest.raises(ValueError, match="start/end must select at least one of the session's 4 messages"):
        core.rebuild_native_history(session, CONFIG, start=start, end=end)


def test_a_part_needs_native_history_to_stay_in() -> None:
    core = scripted_core(ScriptedProvider())

    with pytest.raises(RuntimeError, match="needs native history to keep: the session has none") as caught:
        core.rebuild_native_history(Session("s", [Message("user", "a")]), CONFIG, start=0)
    assert isinstance(caught.value, NativeHistoryError)


def test_a_part_of_a_session_that_was_tampered_with_is_refused() -> None:
    core, session = two_turns()
    data = session.to_dict()
    data["messages"][0]["content"] = "forged"

    with pytest.raises(NativeHistoryError, match="changed outside the core"):
        core.rebuild_native_history(Session.from_dict(data), CONFIG, start=2)


def test_a_part_cannot_be_another_providers() -> None:
    core = scripted_core(ScriptedProvider(["one"]), EchoProvider)

    with pytest.raises(NativeHistoryError, match="provider 'scripted''s"):
        core.rebuild_native_history(talk(core, "a"), {"provider": "echo"}, start=0, end=1)


def test_a_part_whose_items_nobody_knows_is_refused() -> None:
    class Merging(ScriptedProvider):
        def to_native_messages(self, messages: Dicts) -> Dicts:
            return [{"role": "user", "content": " ".join(str(m["content"]) for m in messages)}]

    core = scripted_core(Merging(["one"]))
    session = Session("s", [Message("user", "a"), Message("user", "b")])
    session, _ = core.send_request(session, CONFIG)

    with pytest.raises(NativeHistoryError, match="native_indices on every selected message"):
        core.rebuild_native_history(session, CONFIG, start=0, end=1)


def test_a_part_whose_items_lie_apart_is_refused() -> None:
    class Interleaving(ScriptedProvider):
        """Puts the heads of all messages before the bodies."""

        def from_native_messages(self, native_messages: Dicts) -> Dicts:
            return [
                {"role": "user", "content": "a", "metadata": {"native_indices": [0, 2]}},
                {"role": "assistant", "content": "b", "metadata": {"native_indices": [1]}},
            ]

        def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
            answer: Dicts = [{"role": "x", "content": text} for text in "abc"]
            return answer, [*native_messages, *answer], state

    core = scripted_core(Interleaving(["-"]))
    session, _ = core.send_request(core.create_session(), CONFIG)

    with pytest.raises(NativeHistoryError, match="do not map to a contiguous part"):
        core.rebuild_native_history(session, CONFIG, start=0, end=1)


def test_a_part_that_shares_an_item_with_the_rest_is_refused() -> None:
    core = scripted_core(PairingProvider(["first|second"]))
    session = talk(core, "a")

    with pytest.raises(NativeHistoryError, match="share native items with others"):
        core.rebuild_native_history(session, CONFIG, start=1, end=2)
    together = core.rebuild_native_history(session, CONFIG, start=1, end=3)
    assert native(together) == contents(together) == ["a", "first", "second"]


# --- core_messages_to_native ---------------------------------------------------------------------


def test_messages_outside_of_any_session_are_converted_by_the_whole_chain() -> None:
    class Signs:
        name = "signs"
        version = "1"

        def to_native_messages(
            self, messages: Dicts, native_messages: Dicts, state: Any, context: Any
        ) -> Dicts:
            return [{**item, "signed": context["by"]} for item in native_messages]

    core = scripted_core(ScriptedProvider())
    core.register_feature(Signs)

    made = core.core_messages_to_native([{"role": "user", "content": "a"}], CONFIG, context={"by": "Ada"})

    assert made == [{"role": "user", "content": "a", "signed": "Ada"}]


def test_what_is_returned_is_the_callers_to_change() -> None:
    core = scripted_core(ScriptedProvider())
    message = {"role": "user", "content": "a", "multipartContent": [{"type": "text"}]}

    [made] = core.core_messages_to_native([message], CONFIG)
    made["parts"].append("new")

    assert message["multipartContent"] == [{"type": "text"}]


def test_no_messages_become_no_items() -> None:
    assert scripted_core(ScriptedProvider()).core_messages_to_native([], CONFIG) == []


@pytest.mark.parametrize("messages", [{"role": "user"}, "a", None, ({"role": "user", "content": "a"},)])
def test_messages_must_be_a_list(messages: Any) -> None:
    with pytest.raises(TypeError, match="core_messages must be a list"):
        scripted_core(ScriptedProvider()).core_messages_to_native(messages, CONFIG)


def test_a_configuration_that_is_no_dict_is_refused_here_too() -> None:
    with pytest.raises(TypeError, match="config must be a dict"):
        scripted_core(ScriptedProvider()).core_messages_to_native([], "scripted")  # type: ignore[arg-type]


def test_each_must_be_a_message() -> None:
    with pytest.raises(SessionFormatError, match="'role'"):
        scripted_core(ScriptedProvider()).core_messages_to_native([{"content": "a"}], CONFIG)


# --- patch_native_internal_metadata --------------------------------------------------------------


def test_a_patch_is_merged_into_the_internal_notes_of_selected_items() -> None:
    before: Dicts = [
        {"content": "a"},
        {"content": "b", "_metadata": {"kept": 1, "cost": 1}},
        {"content": "c"},
    ]

    after = AgentCore().patch_native_internal_metadata(before, [0, 1], {"cost": 2})

    assert after == [
        {"content": "a", "_metadata": {"cost": 2}},
        {"content": "b", "_metadata": {"kept": 1, "cost": 2}},
        {"content": "c"},
    ]
    assert before == [
        {"content": "a"},
        {"content": "b", "_metadata": {"kept": 1, "cost": 1}},
        {"content": "c"},
    ]
    assert after[2] is before[2]


@pytest.mark.parametrize(
    ("indices", "patch"),
    [([], {"a": 1}), ([0], {}), ([0], None), ([0], {"same": 1}), ([5, -1], {"a": 1}), (["0"], {"a": 1})],
)
def test_a_patch_that_changes_nothing_returns_what_it_was_given(indices: Any, patch: Any) -> None:
    before: Dicts = [{"content": "a", "_metadata": {"same": 1}}]

    assert AgentCore().patch_native_internal_metadata(before, indices, patch) is before


def test_items_and_notes_that_are_no_dicts_are_skipped_and_replaced() -> None:
    before: Any = ["junk", {"_metadata": "junk"}]

    assert AgentCore().patch_native_internal_metadata(before, [0, 1], {"a": 1}) == [
        "junk",
        {"_metadata": {"a": 1}},
    ]


def test_frozen_items_can_be_patched_too() -> None:
    before = freeze([{"content": "a"}])

    assert AgentCore().patch_native_internal_metadata(before, [0], {"a": 1}) == [
        {"content": "a", "_metadata": {"a": 1}}
    ]
    assert before == [{"content": "a"}]

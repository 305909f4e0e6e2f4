"""Native history is kept along with the transcript, and a change made outside the core is noticed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, Message, Session
from agent_core.frozen import FrozenDict
from agent_core.native import (
    NewItems,
    Seal,
    add_run,
    carry_internal_metadata,
    compose,
    item_models,
    message_digest,
    model_runs,
    owners,
    record,
)
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

Case = Callable[..., AbstractContextManager[None]]

Dicts = list[dict[str, Any]]
CONFIG = {"provider": "scripted", "model": "m"}


def talk(*words: str, script: Sequence[Any] | None = None) -> tuple[AgentCore, ScriptedProvider, Session]:
    """Return a session in which each of *words* was answered; the script has one answer more."""
    provider = ScriptedProvider(script or [f"answer {number}" for number in range(len(words) + 1)])
    core = AgentCore()
    core.register_provider(provider)
    session = core.create_session("s")
    for said in words:
        session = core.send_request(core.add_message(session, "user", said), CONFIG)[0]
    return core, provider, session


def native(session: Session) -> list[Any]:
    return [item["content"] for item in session.metadata["native_messages"]]


def test_the_first_request_makes_native_history_of_all_messages() -> None:
    _, provider, session = talk("a", "b")

    assert native(session) == ["a", "answer 0", "b", "answer 1"]
    assert [message.native_indices for message in session.messages] == [(0,), (1,), (2,), (3,)]
    assert provider.requests[1].native_messages == session.metadata["native_messages"][:3]
    assert "native_rebuilt" not in session.metadata


def test_items_of_earlier_turns_are_sent_back_as_the_provider_made_them() -> None:
    _, provider, session = talk("a", "b", script=[Reply(text="x", extra={"signature": "s1"}), "y"])

    assert provider.requests[1].native_messages[1]["signature"] == "s1"
    assert provider.requests[1].native_messages[1] is session.metadata["native_messages"][1]


def test_integrity_counts_messages_and_items_and_names_its_version() -> None:
    *_, session = talk("a")

    integrity = session.metadata["native_messages_integrity"]
    assert set(integrity) == {"version", "messages", "head", "native", "native_head"}
    assert (integrity["version"], integrity["messages"], integrity["native"]) == (1, 2, 2)


def test_equal_conversations_have_equal_integrity_however_they_were_made() -> None:
    core, _, session = talk("a", "b")

    detour = core.add_message(session, "user", "x", config=CONFIG, after_index=0)
    back = core.slice_session(detour, CONFIG, remove_indices=[1])

    assert back.metadata["native_messages_integrity"] == session.metadata["native_messages_integrity"]


# --- tampering -----------------------------------------------------------------------------------

Tampering = Callable[[dict[str, Any]], Any]


def items(data: dict[str, Any]) -> Any:
    return data["metadata"]["native_messages"]


def integrity(data: dict[str, Any]) -> Any:
    return data["metadata"]["native_messages_integrity"]


def set_indices(value: Any) -> Tampering:
    return lambda data: data["messages"][0]["metadata"].update(native_indices=value)


TAMPERINGS: dict[str, Tampering] = {
    "a message's content": lambda data: data["messages"][1].update(content="forged"),
    "a message's role": lambda data: data["messages"][0].update(role="system"),
    "a message's metadata": lambda data: data["messages"][0]["metadata"].update(forged=True),
    "a message's parts": lambda data: data["messages"][0].update(multipartContent=[{"type": "text"}]),
    "a message's result": lambda data: data["messages"][0].update(tool_result={"success": True}),
    "the order of messages": lambda data: data["messages"].reverse(),
    "a message too few": lambda data: data["messages"].pop(),
    "a message less in the middle": lambda data: data["messages"].pop(1),
    "an item's content": lambda data: items(data)[1].update(content="forged"),
    "an item's extra field": lambda data: items(data)[1].update(signature="forged"),
    "an item too many": lambda data: items(data).append({"role": "user", "content": "forged"}),
    "an item too few": lambda data: items(data).pop(),
    "no items": lambda data: items(data).clear(),
    "the order of items": lambda data: items(data).reverse(),
    "items that are not dicts": lambda data: items(data).__setitem__(0, "forged"),
    "native history that is a dict": lambda data: data["metadata"].update(native_messages={"0": {}}),
    "native history that is a number": lambda data: data["metadata"].update(native_messages=5),
    "an internal note that is not a dict": lambda data: items(data)[0].update(_metadata=5),
    "other indices": set_indices([1]),
    "no indices": lambda data: data["messages"][0]["metadata"].pop("native_indices"),
    "indices past the end": set_indices([99]),
    "negative indices": set_indices([-100]),
    "indices that are not numbers": set_indices(["0"]),
    "indices that are not a list": set_indices(5),
    "indices that are a dict": set_indices({"0": 0}),
    "indices that are lists": set_indices([[0]]),
    "a smaller message count": lambda data: integrity(data).update(messages=1),
    "a larger message count": lambda data: integrity(data).update(messages=99),
    "a count that is not a number": lambda data: integrity(data).update(messages="4"),
    "a negative count": lambda data: integrity(data).update(messages=-1),
    "another item count": lambda data: integrity(data).update(native=3),
    "another head": lambda data: integrity(data).update(head="0" * 64),
    "another native head": lambda data: integrity(data).update(native_head="0" * 64),
    "another version": lambda data: integrity(data).update(version=2),
    "an unknown field": lambda data: integrity(data).update(forged=True),
    "no integrity": lambda data: data["metadata"].pop("native_messages_integrity"),
    "empty integrity": lambda data: integrity(data).clear(),
    "integrity that is not a dict": lambda data: data["metadata"].update(native_messages_integrity="ok"),
}


def rebuilt_by_hand(data: dict[str, Any]) -> Session:
    """Return the session of a dict form without reading it by `from_dict`."""
    made = [
        Message(m["role"], m["content"], m["metadata"], m.get("multipartContent"), m.get("tool_result"))
        for m in data["messages"]
    ]
    return Session(data["session_id"], made, data["metadata"])


def test_the_next_request_notices_tampering_and_goes_by_the_transcript(case: Case) -> None:
    tamperings: list[Tampering] = list(TAMPERINGS.values())
    makers: list[Callable[[dict[str, Any]], Session]] = [Session.from_dict, rebuilt_by_hand]
    for tamper, make in product(tamperings, makers):
        with case(tamper, make):
            core, provider, session = talk(
                "a", "b", script=[Reply(text="x", extra={"signature": "s1"}), "y", "z"]
            )
            data = session.to_dict()
            tamper(data)
            transcript = [(m["role"], m["content"]) for m in data["messages"]]

            after, _ = core.send_request(make(data), CONFIG)

            asked = [(item["role"], item["content"]) for item in provider.requests[-1].native_messages]
            assert asked == transcript
            assert [m.content for m in after.messages] == [*(content for _, content in transcript), "z"]
            report = after.metadata["native_rebuilt"]
            assert (report["operation"], report["reason"]) == ("send_request", "integrity")
            assert report["messages"] == len(transcript)
            assert report["detail"]
            assert [m.native_indices for m in after.messages] == [(i,) for i in range(len(after.messages))]


def test_what_was_rebuilt_is_trusted_again(case: Case) -> None:
    cases: list[Tampering] = list(TAMPERINGS.values())
    for tamper in cases:
        with case(tamper):
            core, provider, session = talk("a", script=["x", "y", "z"])
            data = session.to_dict()
            tamper(data)

            mended, _ = core.send_request(Session.from_dict(data), CONFIG)
            after, _ = core.send_request(Session.from_dict(mended.to_dict()), CONFIG)

            assert "native_rebuilt" in mended.metadata
            assert "native_rebuilt" not in after.metadata
            assert len(provider.requests) == 3


def test_an_untouched_session_is_trusted_wherever_it_has_been() -> None:
    core, _, session = talk("a", script=[Reply(text="x", extra={"signature": "s1"}), "y", "z"])

    for copied in (Session.from_dict(session.to_dict()), rebuilt_by_hand(session.to_dict())):
        after, _ = core.send_request(copied, CONFIG)

        assert "native_rebuilt" not in after.metadata
        assert after.metadata["native_messages"][1]["signature"] == "s1"


def test_a_message_that_was_appended_outside_of_the_core_is_converted_like_any_other() -> None:
    core, provider, session = talk("a")
    data = session.to_dict()
    data["messages"].append({"role": "user", "content": "b", "metadata": {"native_indices": [0]}})

    after, _ = core.send_request(Session.from_dict(data), CONFIG)

    assert [item["content"] for item in provider.requests[-1].native_messages] == ["a", "answer 0", "b"]
    assert "native_rebuilt" not in after.metadata
    assert after.messages[2].native_indices == (2,)


def test_a_session_without_native_history_has_nothing_to_distrust() -> None:
    core, _, session = talk("a")
    data = session.to_dict()
    data["metadata"] = {}

    after, _ = core.send_request(Session.from_dict(data), CONFIG)

    assert "native_rebuilt" not in after.metadata
    assert [m.native_indices for m in after.messages] == [(0,), (1,), (2,)]


def test_patching_other_metadata_does_not_cost_trust() -> None:
    core, _, session = talk("a")

    after, _ = core.send_request(session.with_metadata({"title": "T"}), CONFIG)

    assert "native_rebuilt" not in after.metadata
    assert after.metadata["title"] == "T"


def test_patching_native_history_itself_does() -> None:
    core, _, session = talk("a")
    forged = [{**session.metadata["native_messages"][0], "content": "forged"}]

    after, _ = core.send_request(session.with_metadata({"native_messages": forged}), CONFIG)

    assert after.metadata["native_rebuilt"]["reason"] == "integrity"
    assert native(after) == ["a", "answer 0", "answer 1"]


def test_internal_notes_survive_a_rebuild_after_tampering() -> None:
    core, _, session = talk("a")
    noted = core.patch_native_internal_metadata(
        session.to_dict()["metadata"]["native_messages"], [0, 1], {"n": 1}
    )
    forged = session.with_metadata({"native_messages": noted})

    after, _ = core.send_request(forged, CONFIG)

    assert after.metadata["native_rebuilt"]["reason"] == "integrity"
    assert [item.get("_metadata") for item in after.metadata["native_messages"]] == [{"n": 1}, {"n": 1}, None]


def test_internal_notes_survive_a_changed_message() -> None:
    core, _, session = talk("a", script=[Reply(text="x", extra={"_metadata": {"cost": 3}}), "y"])

    changed = core.modify_message(session, 1, "other", CONFIG)

    assert changed.metadata["native_messages"][1] == {
        "role": "assistant",
        "content": "other",
        "_metadata": {"cost": 3},
    }


@pytest.mark.parametrize(
    "junk",
    [5, [], {}, {"provider": "scripted"}, {"provider": "scripted", "models": 5}, {"models": [5]}]
    + [
        {"provider": "scripted", "models": models}
        for models in ([["m"]], [["m", "2"]], [["m", 1]], [[1, 2, 3]])
    ],
)
def test_provenance_that_makes_no_sense_counts_as_unknown(junk: Any) -> None:
    core, _, session = talk("a")

    after, _ = core.send_request(session.with_metadata({"native_provenance": junk}), CONFIG)

    assert after.metadata["native_provenance"] == {
        "provider": "scripted",
        "models": [[None, 2], ["m", 1]],
        "in_order": True,
    }
    assert native(after) == ["a", "answer 0", "answer 1"]


@pytest.mark.parametrize("junk", [5, [], {"scripted": 5}, {"scripted": {}}, {"scripted": {"digests": [5]}}])
def test_an_archive_that_makes_no_sense_is_never_fatal(junk: Any) -> None:
    core, _, session = talk("a")
    data = session.to_dict()
    data["metadata"] = {"native_archive": junk}

    after, _ = core.send_request(Session.from_dict(data), CONFIG)

    assert native(after) == ["a", "answer 0", "answer 1"]


# --- the chain -----------------------------------------------------------------------------------


class CountedHashes:
    """Stands where the chain takes its hash function from, and counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(record, "sha256", self)

    def __call__(self, data: bytes) -> Any:
        self.count += 1
        return hashlib.sha256(data)

    def during(self, work: Callable[[], Any]) -> int:
        self.count = 0
        work()
        return self.count


def session_of(core: AgentCore, length: int) -> Session:
    session, _ = core.send_request(core.create_session("s"), CONFIG)
    for number in range(length - 1):
        session = core.add_message(session, "user", f"message {number}", config=CONFIG)
    return session


def test_an_append_costs_the_same_few_hashes_at_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _, _ = talk(script=["x"] * 9)
    hashes = CountedHashes(monkeypatch)

    costs = []
    for length in (1, 10, 33, 200):
        add = partial(core.add_message, session_of(core, length), "user", "new", config=CONFIG)
        costs.append(hashes.during(add))

    # What the message says, its link, and the link of its item.
    assert costs == [3, 3, 3, 3]


def test_a_turn_costs_the_same_few_hashes_at_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _, _ = talk(script=["x"] * 9)
    hashes = CountedHashes(monkeypatch)

    lengths = (1, 33, 200)
    costs = [hashes.during(partial(core.send_request, session_of(core, n), CONFIG)) for n in lengths]

    assert costs == [3, 3, 3]


def test_a_fork_costs_no_hash_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _, _ = talk(script=["x"])
    session = session_of(core, 50)
    hashes = CountedHashes(monkeypatch)

    assert hashes.during(lambda: core.fork_session(session, CONFIG, upto_index=39)) == 0


def test_a_session_with_another_title_or_id_need_not_be_checked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, _, _ = talk(script=["x"])
    session = session_of(core, 50).with_metadata({"title": "T"}).with_id("t")
    hashes = CountedHashes(monkeypatch)

    assert hashes.during(partial(core.add_message, session, "user", "new", config=CONFIG)) == 3


def test_a_session_from_elsewhere_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _, _ = talk(script=["x"])
    session = Session.from_dict(session_of(core, 50).to_dict())
    hashes = CountedHashes(monkeypatch)

    first = hashes.during(lambda: core.add_message(session, "user", "new", config=CONFIG))
    second = hashes.during(lambda: core.add_message(session, "user", "new", config=CONFIG))

    assert first > 50
    assert second == 3


contents = st.text(max_size=3)
short_messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant"]),
        contents,
        st.fixed_dictionaries({}, optional={"native_indices": st.lists(st.integers(0, 3), max_size=2)}),
    ),
    max_size=6,
)
short_items = st.lists(st.fixed_dictionaries({"text": contents}), max_size=6)


@settings(max_examples=25)
@given(short_messages, short_items, st.data())
def test_a_chain_does_not_depend_on_how_it_was_grown(
    messages: list[Message], native_items: Dicts, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(messages)))
    native_cut = data.draw(st.integers(0, len(native_items)))

    at_once = Seal().extend(messages, native_items)
    in_parts = Seal().extend(messages[:cut], native_items[:native_cut])
    in_parts = in_parts.extend(messages[cut:], native_items[native_cut:])

    assert in_parts == at_once
    assert at_once.prefix(cut, native_cut) == Seal().extend(messages[:cut], native_items[:native_cut])


@settings(max_examples=25)
@given(short_messages, short_messages, short_items, short_items)
def test_different_conversations_have_different_heads(
    messages: list[Message], others: list[Message], native_items: Dicts, other_items: Dicts
) -> None:
    one, other = Seal().extend(messages, native_items), Seal().extend(others, other_items)

    same = messages == others and native_items == other_items
    assert (one.to_dict() == other.to_dict()) is same


@settings(max_examples=25)
@given(short_messages, short_items)
def test_a_seal_can_be_checked_with_digests_in_place_of_messages(
    messages: list[Message], native_items: Dicts
) -> None:
    digests = [(message_digest(m), m.metadata.get("native_indices")) for m in messages]

    assert Seal.of_digests(digests, native_items) == Seal().extend(messages, native_items)


def test_a_digest_says_what_a_message_says_wherever_it_stands() -> None:
    message = Message("user", "a", {"tags": ["x"]})

    assert message_digest(message) == message_digest(message.with_native_indices((4,)))
    assert message_digest(message) != message_digest(Message("user", "a"))


# --- indices and runs ----------------------------------------------------------------------------


def at(*indices: int) -> Message:
    return Message("user", "a", {"native_indices": list(indices)})


def item(name: str, **internal: Any) -> FrozenDict:
    return FrozenDict(name=name, **({"_metadata": FrozenDict(internal)} if internal else {}))


def test_composing_puts_new_items_behind_the_one_they_follow() -> None:
    old = [item("a"), item("b"), item("c")]
    messages = [at(0), Message("user", "new"), at(2)]

    composed = compose(messages, old, [0, 2], {1: NewItems(0, [item("x"), item("y")])})

    assert [found["name"] for found in composed.items] == ["a", "x", "y", "c"]
    assert [m.native_indices for m in composed.messages] == [(0,), (1, 2), (3,)]
    assert composed.origins == [0, None, None, 2]


def test_owners_of_items_are_found_unless_an_index_is_out_of_range() -> None:
    assert owners([at(0), at(0, 2), Message("user", "a")], 3) == {0: [0, 1], 2: [1]}
    assert owners([at(3)], 3) is None


def test_internal_notes_pass_item_by_item_or_all_to_the_first() -> None:
    old = [item("a", x=1), item("b", y=2)]

    assert carry_internal_metadata(old, [item("c"), item("d", y=3)]) == [item("c", x=1), item("d", y=3)]
    assert carry_internal_metadata(old, [item("c")]) == [item("c", x=1, y=2)]
    assert carry_internal_metadata(old, []) == []
    assert carry_internal_metadata([item("a")], [item("c")]) == [item("c")]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["m", "n", None]), max_size=8))
def test_model_runs_are_a_shorter_way_to_write_the_model_of_each_item(models: list[str | None]) -> None:
    runs = model_runs(models)

    assert item_models(runs) == models
    assert all(one[0] != other[0] for one, other in pairwise(runs))


def test_a_run_of_nothing_is_not_written() -> None:
    assert add_run((), "m", 0) == ()
    assert add_run((("m", 1),), "m", 2) == (("m", 3),)


def test_provenance_records_the_provider_and_a_run_for_each_model() -> None:
    core, _, session = talk("a")

    session = core.add_message(session, "user", "b", config={**CONFIG, "model": "n"})
    session, _ = core.send_request(session, {**CONFIG, "model": "n"})

    assert session.metadata["native_provenance"] == {
        "provider": "scripted",
        "models": [["m", 2], ["n", 2]],
        "in_order": True,
    }
    cut = core.slice_session(session, CONFIG, remove_indices=[0, 2])
    assert cut.metadata["native_provenance"]["models"] == [["m", 1], ["n", 1]]
    changed = core.modify_message(session, 1, "x", {**CONFIG, "model": "o"})
    assert changed.metadata["native_provenance"]["models"] == [["m", 1], ["o", 1], ["n", 2]]


def test_a_feature_may_write_internal_notes_that_become_metadata_of_the_message() -> None:
    _, _, session = talk("a", script=[Reply(text="x", extra={"_metadata": {"cost": 3}}), "y"])

    assert session.messages[1].metadata["cost"] == 3


# --- whose items are whose -----------------------------------------------------------------------


class SystemElsewhere(ScriptedProvider):
    """System messages are not items of theirs, and what an assistant says is two."""

    def to_native_messages(self, messages: Dicts) -> Dicts:
        made: Dicts = []
        for message in messages:
            if message["role"] == "system":
                continue
            made.append({"role": message["role"], "content": message["content"]})
            if message["role"] == "assistant":
                made.append({"role": "end", "content": ""})
        return made


def test_as_many_items_as_messages_need_not_mean_one_item_each() -> None:
    provider = SystemElsewhere(["x"])
    core = AgentCore()
    core.register_provider(provider)
    session = Session("s", [Message("system", "be brief"), Message("assistant", "a"), Message("user", "b")])

    session, _ = core.send_request(session, CONFIG)

    assert native(session) == ["a", "", "b", "x"]
    assert [m.native_indices for m in session.messages] == [(), (0, 1), (2,), (3,)]


class ReasoningFirst(ScriptedProvider):
    """Its answers begin with an item for the model's reasoning, which reads as nothing."""

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return super().from_native_messages([i for i in native_messages if i["role"] != "reasoning"])

    def finalize(self, native_messages: Dicts, state: dict[str, Any]) -> tuple[Dicts, Dicts, dict[str, Any]]:
        finals, native_messages, state = super().finalize(native_messages, state)
        finals = [{"role": "reasoning", "content": "hm"}, *finals]
        return finals, [*native_messages[:-1], *finals], state


class SystemPrompt:
    """Puts a system item in front unless there is one."""

    name = "system-prompt"
    version = "1"

    def initialize_request(
        self, native_messages: Dicts, state: dict[str, Any]
    ) -> tuple[Dicts, dict[str, Any]]:
        if native_messages and native_messages[0]["role"] == "system":
            return native_messages, state
        return [{"role": "system", "content": "Be brief."}, *native_messages], state


def test_reasoning_belongs_to_the_answer_that_it_led_to() -> None:
    core = AgentCore()
    core.register_provider(ReasoningFirst(["x"]))

    session, _ = core.send_request(Session("s", [Message("user", "a")]), CONFIG)

    assert [m.native_indices for m in session.messages] == [(0,), (1, 2)]


def test_reasoning_belongs_to_its_answer_also_where_a_plugin_changed_earlier_history() -> None:
    core = AgentCore()
    core.register_provider(ReasoningFirst(["x"]))
    core.register_feature(SystemPrompt)

    session, _ = core.send_request(Session("s", [Message("user", "a")]), CONFIG)

    assert native(session) == ["Be brief.", "a", "hm", "x"]
    assert [m.native_indices for m in session.messages] == [(0,), (1,), (2, 3)]


class RewritesAndAdds:
    """Puts an item in front and copies all others."""

    name = "rewrites"
    version = "1"

    def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
        note = [{"role": "system", "content": "note"}] if len(messages) > 1 else []
        return [*note, *({**made, "seen": True} for made in native_messages)]


def test_a_message_whose_items_cannot_be_followed_does_not_leave_them_behind() -> None:
    core, _, _ = talk(script=["x"])
    core.register_feature(RewritesAndAdds)
    session = Session("s", [Message("user", "a"), Message("user", "b")])
    session, _ = core.send_request(session, CONFIG)

    cut = core.slice_session(session, CONFIG, start=1)

    assert "a" not in native(cut) if "native_messages" in cut.metadata else "native_rebuilt" in cut.metadata

"""Changing the provider keeps what the first one made, and coming back restores it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from agent_core import AgentCore, Message, Session
from agent_core.testing import Reply, ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

Dicts = list[dict[str, Any]]
A, B = {"provider": "a", "model": "a-1"}, {"provider": "b", "model": "b-1"}


class LinesProvider(ScriptedProvider):
    """Has a format of its own: one line of text for each message."""

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"line": f"{message['role']}: {message['content']}"} for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        parts = [item["line"].split(": ", 1) for item in native_messages]
        return [{"role": role, "content": content} for role, content in parts]

    def finalize(self, native_messages: Dicts, state: dict[str, Any]) -> tuple[Dicts, Dicts, dict[str, Any]]:
        answer: Dicts = [{"line": f"assistant: {''.join(state['text'])}", **state["end"]}]
        return answer, [*native_messages, *answer], state


def answers(name: str) -> list[Reply]:
    return [Reply(text=f"{name}{n}", extra={"signature": f"{name} signed {n}"}) for n in range(1, 9)]


class Stage:
    """Two providers with different formats, and a way to say something to either."""

    def __init__(self) -> None:
        self.a = ScriptedProvider(answers("a"), name="a")
        self.b = LinesProvider(answers("b"), name="b")
        self.core = AgentCore()
        self.core.register_provider(self.a)
        self.core.register_provider(self.b)

    def say(self, session: Session, words: str, config: dict[str, Any]) -> Session:
        return self.core.send_request(self.core.add_message(session, "user", words), config)[0]

    def story(self, *turns: tuple[str, dict[str, Any]]) -> Session:
        session = self.core.create_session("s")
        for words, config in turns:
            session = self.say(session, words, config)
        return session


@pytest.fixture
def stage() -> Stage:
    return Stage()


def items(session: Session) -> Sequence[Any]:
    found: Sequence[Any] = session.metadata["native_messages"]
    return found


def signatures(session: Session) -> list[Any]:
    return [item.get("signature") for item in items(session)]


def contents(session: Session) -> list[Any]:
    return [message.content for message in session.messages]


def test_the_other_provider_is_asked_in_its_own_format(stage: Stage) -> None:
    session = stage.story(("hello", A), ("and you?", B))

    assert stage.b.requests[0].native_messages == [
        {"line": "user: hello"},
        {"line": "assistant: a1"},
        {"line": "user: and you?"},
    ]
    assert contents(session) == ["hello", "a1", "and you?", "b1"]
    assert session.metadata["native_provenance"] == {
        "provider": "b",
        "models": [["b-1", 4]],
        "in_order": True,
    }


def test_a_change_of_provider_is_reported(stage: Stage) -> None:
    session = stage.story(("hello", A), ("and you?", B))

    assert session.metadata["native_rebuilt"] == {
        "operation": "send_request",
        "reason": "provider_changed",
        "detail": "provider 'a' made it, 'b' was asked",
        "messages": 3,
    }
    assert "native_rebuilt" not in stage.say(session, "more", B).metadata


def test_coming_back_restores_the_very_items(stage: Stage) -> None:
    first = stage.story(("hello", A))

    back = stage.say(stage.say(first, "and you?", B), "again", A)

    assert items(back)[:2] == items(first)
    assert all(was is now for was, now in zip(items(first), items(back), strict=False))
    assert signatures(back) == [None, "a signed 1", None, None, None, "a signed 2"]
    assert [item["content"] for item in items(back)] == ["hello", "a1", "and you?", "b1", "again", "a2"]
    assert [message.native_indices for message in back.messages] == [(i,) for i in range(6)]
    assert stage.a.requests[1].native_messages == items(back)[:5]


def test_coming_back_counts_only_what_had_to_be_made_anew(stage: Stage) -> None:
    back = stage.story(("hello", A), ("and you?", B), ("again", A))

    assert back.metadata["native_rebuilt"]["reason"] == "provider_changed"
    assert back.metadata["native_rebuilt"]["messages"] == 3


def test_going_back_and_forth_keeps_both(stage: Stage) -> None:
    session = stage.story(("1", A), ("2", B), ("3", A), ("4", B))

    assert signatures(session) == [None, None, None, "b signed 1", None, None, None, "b signed 2"]
    again = stage.say(session, "5", A)
    assert [found for found in signatures(again) if found] == ["a signed 1", "a signed 2", "a signed 3"]


def test_provenance_names_the_model_of_each_item_that_was_restored(stage: Stage) -> None:
    session = stage.story(("1", A), ("2", {**A, "model": "a-2"}), ("3", B), ("4", {**A, "model": "a-3"}))

    assert session.metadata["native_provenance"] == {
        "provider": "a",
        "models": [["a-1", 2], ["a-2", 2], ["a-3", 4]],
        "in_order": True,
    }


def test_a_fork_restores_as_much_as_it_has(stage: Stage) -> None:
    session = stage.story(("1", A), ("2", A), ("3", B))

    for config in (None, B):
        forked = stage.core.fork_session(session, config, upto_index=1, new_session_id="t")
        back = stage.say(forked, "again", A)

        assert contents(back)[:3] == ["1", "a1", "again"]
        assert signatures(back)[:3] == [None, "a signed 1", None]
        assert items(back)[1] is not items(session)[1]


def test_edits_of_later_messages_do_not_matter(stage: Stage) -> None:
    session = stage.story(("1", A), ("2", A), ("3", B))

    edited = stage.core.modify_message(session, 2, "changed", B)
    back = stage.say(edited, "again", A)

    assert [item["content"] for item in items(back)] == ["1", "a1", "changed", "a2", "3", "b1", "again", "a3"]
    assert signatures(back) == [None, "a signed 1", None, None, None, None, None, "a signed 3"]


def test_an_edit_of_the_first_message_leaves_nothing_to_restore(stage: Stage) -> None:
    session = stage.story(("1", A), ("2", B))

    back = stage.say(stage.core.modify_message(session, 0, "changed", B), "again", A)

    assert [item["content"] for item in items(back)] == ["changed", "a1", "2", "b1", "again", "a2"]
    assert signatures(back) == [None] * 5 + ["a signed 2"]


def test_a_cut_at_the_beginning_leaves_nothing_to_restore(stage: Stage) -> None:
    session = stage.story(("1", A), ("2", B))

    back = stage.say(stage.core.slice_session(session, B, start=1), "again", A)

    assert [item["content"] for item in items(back)] == ["a1", "2", "b1", "again", "a2"]


def test_items_are_restored_after_export_and_import(stage: Stage) -> None:
    first = stage.story(("1", A))
    session = stage.say(first, "2", B)

    read = stage.core.import_session(stage.core.export_session(session))
    back = stage.say(read, "3", A)

    assert read == session
    assert items(back)[:2] == items(first)
    assert "outside the core" not in back.metadata["native_rebuilt"]["detail"]


def test_what_was_set_aside_is_plain_json_to_those_who_read_it(stage: Stage) -> None:
    session = stage.story(("1", A), ("2", B))

    assert json.loads(json.dumps(session.frozen_dict())) == session.to_dict()


Tampering = Callable[[dict[str, Any]], Any]
TAMPERINGS: dict[str, Tampering] = {
    "an item": lambda entry: entry["native_messages"][1].update(content="forged"),
    "a signature": lambda entry: entry["native_messages"][1].pop("signature"),
    "an item too many": lambda entry: entry["native_messages"].append({"role": "user", "content": "forged"}),
    "the indices": lambda entry: entry["indices"].__setitem__(0, [1]),
    "indices that make no sense": lambda entry: entry["indices"].__setitem__(0, "x"),
    "a digest": lambda entry: entry["digests"].__setitem__(1, "00" * 32),
    "a digest that makes no sense": lambda entry: entry["digests"].__setitem__(1, 5),
    "no integrity": lambda entry: entry.pop("integrity"),
    "no items": lambda entry: entry.pop("native_messages"),
    "no digests": lambda entry: entry.pop("digests"),
}


@pytest.mark.parametrize("tamper", TAMPERINGS.values(), ids=TAMPERINGS.keys())
def test_tampering_with_what_was_set_aside_is_noticed_and_reported(stage: Stage, tamper: Tampering) -> None:
    data = stage.story(("1", A), ("2", B)).to_dict()
    tamper(data["metadata"]["native_archive"]["a"])

    back = stage.say(Session.from_dict(data), "3", A)

    assert [item["content"] for item in items(back)] == ["1", "a1", "2", "b1", "3", "a2"]
    assert signatures(back) == [None] * 5 + ["a signed 2"]
    report = back.metadata["native_rebuilt"]
    assert report["messages"] == 5
    assert "what provider 'a' had made was changed outside the core" in report["detail"]
    assert "a" not in back.metadata["native_archive"]


def test_tampering_with_what_was_set_aside_is_reported_even_if_nothing_else_changed(stage: Stage) -> None:
    data = stage.story(("1", A), ("2", B)).to_dict()
    data["metadata"] = {"native_archive": data["metadata"]["native_archive"]}
    data["metadata"]["native_archive"]["a"]["native_messages"][1]["content"] = "forged"

    back = stage.say(Session.from_dict(data), "3", A)

    assert back.metadata["native_rebuilt"]["reason"] == "integrity"


@pytest.mark.parametrize("junk", [None, 5, [["a-1"]], [["a-1", 7]]])
def test_models_that_make_no_sense_do_not_keep_items_from_being_restored(stage: Stage, junk: Any) -> None:
    data = stage.story(("1", A), ("2", B)).to_dict()
    data["metadata"]["native_archive"]["a"]["models"] = junk

    back = stage.say(Session.from_dict(data), "3", A)

    assert signatures(back)[1] == "a signed 1"
    assert back.metadata["native_provenance"]["models"] == [[None, 2], ["a-1", 4]]


@pytest.mark.parametrize(
    ("edit", "restored"),
    [
        (lambda core, s: core.modify_message(s, 2, "changed", B), 2),
        (lambda core, s: core.add_message(s, "user", "new", config=B, after_index=1), 2),
        (lambda core, s: core.slice_session(s, B, end=3), 3),
        (lambda core, s: core.fork_session(s, B, upto_index=1), 2),
        (lambda core, s: core.join_sessions(s, Session("t", [Message("user", "x")]), B), 4),
    ],
    ids=["modify", "insert", "slice", "fork", "join"],
)
def test_an_edit_for_another_provider_sets_the_first_ones_items_aside(
    stage: Stage, edit: Any, restored: int
) -> None:
    session = stage.story(("1", A), ("2", A))

    edited = edit(stage.core, session)
    back = stage.say(edited, "again", A)

    assert "native_messages" not in edited.metadata
    assert edited.metadata["native_rebuilt"]["reason"] == "dropped"
    assert all(was is now for was, now in zip(items(session)[:restored], items(back), strict=False))
    assert signatures(back)[:-1].count("a signed 2") == (restored == 4)
    assert contents(back)[:-1] == [*contents(edited), "again"]


def test_a_message_added_for_another_provider_waits(stage: Stage) -> None:
    session = stage.core.add_message(stage.story(("1", A)), "user", "2", config=B)

    assert session.metadata["native_provenance"]["provider"] == "a"
    assert session.messages[2].native_indices is None
    answered, _ = stage.core.send_request(session, B)
    assert contents(answered) == ["1", "a1", "2", "b1"]


class MergingProvider(ScriptedProvider):
    """Makes one item of all messages that are converted together."""

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": "user", "content": "+".join(str(message["content"]) for message in messages)}]


def test_items_that_nobody_can_tell_apart_are_restored_together_or_not_at_all() -> None:
    stage = Stage()
    merging = MergingProvider(answers("m"), name="merging")
    stage.core.register_provider(merging)
    config = {"provider": "merging"}
    session = Session("s", [Message("user", "1"), Message("user", "2")])
    session, _ = stage.core.send_request(session, config)
    session = stage.say(session, "3", B)

    same = stage.say(session, "4", config)
    changed = stage.say(stage.core.modify_message(session, 1, "new", B), "4", config)

    assert [item["content"] for item in items(same)][:2] == ["1+2", "m1"]
    assert signatures(same)[1] == "m signed 1"
    assert items(changed)[0]["content"] == "1+new+m1+3+b1+4"


class PairingProvider(ScriptedProvider):
    """Its answers are one item that reads as two messages."""

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [
            {"role": item["role"], "content": half, "metadata": {"native_indices": [index]}}
            for index, item in enumerate(native_messages)
            for half in item["content"].split("|")
        ]


def test_an_item_shared_with_a_message_that_changed_is_made_anew_and_the_rest_restored() -> None:
    stage = Stage()
    replies = [Reply(text="x|y", extra={"signature": f"p{n}"}) for n in range(3)]
    stage.core.register_provider(PairingProvider(replies, name="p"))
    config = {"provider": "p"}
    session = stage.story(("1", config), ("2", config), ("3", B))

    back = stage.say(stage.core.modify_message(session, 5, "z", B), "4", config)

    assert contents(back)[:6] == ["1", "x", "y", "2", "x", "z"]
    assert signatures(back)[:5] == [None, "p0", None, None, None]
    assert [item["content"] for item in items(back)][:5] == ["1", "x|y", "2", "x", "z"]


class Wandering(RuleBasedStateMachine):
    """Goes between two providers, editing on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.providers = {
            "a": ScriptedProvider([self.answer("a")] * 99, name="a"),
            "b": LinesProvider([self.answer("b")] * 99, name="b"),
        }
        self.core = AgentCore()
        for provider in self.providers.values():
            self.core.register_provider(provider)
        self.numbers = count()
        self.session = self.core.create_session("s")
        self.transcript: list[tuple[str, str]] = []
        # How many messages at the beginning are as they were when each provider last answered.
        self.untouched = {"a": 0, "b": 0}
        self.signed: dict[str, list[bool]] = {"a": [], "b": []}

    def answer(self, name: str) -> Callable[[Dicts], Reply]:
        return lambda _: Reply(text=f"{name} says {next(self.numbers)}", extra={"signature": name})

    @rule(words=st.sampled_from("xyz"))
    def append(self, words: str) -> None:
        self.session = self.core.add_message(self.session, "user", words)
        self.transcript = [*self.transcript, ("user", words)]

    @rule(name=st.sampled_from("ab"), index=st.integers(0, 9))
    def modify(self, name: str, index: int) -> None:
        if index >= len(self.transcript):
            return
        words = f"changed {next(self.numbers)}"
        self.session = self.core.modify_message(self.session, index, words, {"provider": name})
        self.transcript[index] = (self.transcript[index][0], words)
        self.touch(index)

    @rule(name=st.sampled_from("ab"), length=st.integers(3, 9))
    def cut(self, name: str, length: int) -> None:
        self.session = self.core.slice_session(self.session, {"provider": name}, end=length)
        self.transcript = self.transcript[:length]
        self.touch(length)

    @rule()
    def export_and_import(self) -> None:
        self.session = self.core.import_session(self.core.export_session(self.session))

    @rule(name=st.sampled_from("ab"))
    def ask(self, name: str) -> None:
        self.session, said = self.core.send_request(self.session, {"provider": name})

        provider = self.providers[name]
        asked = provider.requests[-1].native_messages
        read = provider.from_native_messages(asked)
        assert [(message["role"], message["content"]) for message in read] == self.transcript
        for known, item in list(zip(self.signed[name], asked, strict=False))[: self.untouched[name]]:
            assert ("signature" in item) is known
        self.transcript = [*self.transcript, *((message["role"], message["content"]) for message in said)]
        self.untouched[name] = len(self.transcript)
        self.signed[name] = ["signature" in item for item in self.session.metadata["native_messages"]]

    def touch(self, index: int) -> None:
        self.untouched = {name: min(length, index) for name, length in self.untouched.items()}


def test_whoever_is_asked_sees_the_transcript_and_the_items_that_it_made() -> None:
    run_state_machine_as_test(Wandering, settings=settings(max_examples=15, stateful_step_count=20))

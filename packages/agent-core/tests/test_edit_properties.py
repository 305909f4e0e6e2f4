"""Whatever is done to a session, its transcript and its native history stay in step.

The same random stories are run with providers with different native formats. A list of (role, words)
is the model of what the transcript must be after each step.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    rule,
    run_state_machine_as_test,
)

from agent_core import AgentCore, Session
from agent_core.dict_form import replace
from agent_core.native import Seal, read_native

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Transcript = list[tuple[str, str]]

ROLES = st.sampled_from(["user", "user", "assistant", "system"])
POSITIONS = st.integers(-9, 9)
BOUNDS = st.none() | POSITIONS


def as_message(role: str, words: str, *indices: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": words}
    return {**message, "metadata": {"native_indices": list(indices)}} if indices else message


def searched(session: Session) -> Session:
    """The same session, in which all messages must be asked which native items are theirs."""
    if not isinstance(session.seal, Seal):
        return session
    return replace(session).sealed(replace(session.seal, in_order=False))


class OneItemEach:
    """The plainest format: an item for a message."""

    name = "stand-in"
    version = "1"
    always_mapped = True
    hears_system = True

    def __init__(self) -> None:
        self.asked: list[Dicts] = []
        self._numbers = count()

    def init(self, config: dict[str, Any]) -> State:
        return {"config": config}

    def call_api(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, Dicts, State]:
        self.asked.append(native_messages)
        answer = self.answer(next(self._numbers))
        return [], answer, [*native_messages, *answer], state

    def answer(self, number: int) -> Dicts:
        return [{"role": "assistant", "text": f"answer {number}", "signature": f"signed {number}"}]

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": message["role"], "text": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [as_message(item["role"], item["text"]) for item in native_messages]


class TwoItemsEach(OneItemEach):
    """A head and a body for each message."""

    def answer(self, number: int) -> Dicts:
        return self.to_native_messages([as_message("assistant", f"answer {number}")])

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [
            item for message in messages for item in ({"role": message["role"]}, {"body": message["content"]})
        ]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        places = [index for index, item in enumerate(native_messages) if "role" in item]
        return [
            as_message(native_messages[place]["role"], native_messages[place + 1]["body"], place, place + 1)
            for place in places
        ]


class ReasoningFirst(OneItemEach):
    """A model's answer has an item for its reasoning, which nothing but the provider can make."""

    def answer(self, number: int) -> Dicts:
        return [{"reasoning": f"encrypted {number}"}, {"role": "assistant", "text": f"answer {number}"}]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return super().from_native_messages([item for item in native_messages if "reasoning" not in item])


class SharedItem(OneItemEach):
    """A model's answer is one item that reads as two messages."""

    always_mapped = False

    def answer(self, number: int) -> Dicts:
        return [{"role": "assistant", "texts": [f"first of {number}", f"second of {number}"]}]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return [
            as_message(item["role"], text, index)
            for index, item in enumerate(native_messages)
            for text in item.get("texts") or [item["text"]]
        ]


class MergesNeighbours(SharedItem):
    """Messages of one role that are converted together become one item."""

    def answer(self, number: int) -> Dicts:
        return OneItemEach.answer(self, number)

    def to_native_messages(self, messages: Dicts) -> Dicts:
        merged: Dicts = []
        for message in messages:
            if merged and merged[-1]["role"] == message["role"]:
                merged[-1]["texts"].append(message["content"])
            else:
                merged.append({"role": message["role"], "texts": [message["content"]]})
        return merged


class SystemElsewhere(OneItemEach):
    """System messages go into a field of the request, and what an assistant says is two items."""

    hears_system = False

    def answer(self, number: int) -> Dicts:
        return self.to_native_messages([as_message("assistant", f"answer {number}")])

    def to_native_messages(self, messages: Dicts) -> Dicts:
        spoken = [message for message in messages if message["role"] != "system"]
        return [
            item
            for message in spoken
            for item in [{"role": message["role"], "text": message["content"]}, {"role": "end"}][
                : 2 if message["role"] == "assistant" else 1
            ]
        ]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        return super().from_native_messages([item for item in native_messages if item["role"] != "end"])


class SystemPrompt:
    """Puts a system item in front of everything unless there is one already."""

    name = "system-prompt"
    version = "1"
    words = "Be brief."

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        item = {"role": "system", "text": self.words}
        if item in native_messages:
            return native_messages, state
        return [item, *native_messages], state


class Story(RuleBasedStateMachine):
    """Edits sessions at random; every session ever made is kept, for none of them may change."""

    sessions: Bundle[tuple[Session, Transcript]] = Bundle("sessions")
    provider_class: type[OneItemEach] = OneItemEach
    features: tuple[type, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.provider = self.provider_class()
        self.core = AgentCore()
        self.core.register_provider(self.provider)
        for feature in self.features:
            self.core.register_feature(feature)
        self.config = {"provider": "stand-in"}
        self.words = (f"words {number}" for number in count())
        self.made: list[tuple[Session, Transcript]] = []

    @initialize(target=sessions)
    def begin(self) -> tuple[Session, Transcript]:
        return self.keep(self.core.create_session(), [])

    @rule(target=sessions, kept=consumes(sessions), role=ROLES, with_config=st.booleans())
    def append(
        self, kept: tuple[Session, Transcript], role: Any, with_config: bool
    ) -> tuple[Session, Transcript]:
        session, transcript = kept
        words = next(self.words)
        config = self.config if with_config else None

        longer = self.core.add_message(session, role, words, None, config)

        self.items_are_the_same(session, longer, {index: index for index in range(len(transcript))})
        return self.keep(longer, [*transcript, (role, words)])

    @rule(target=sessions, kept=sessions, role=ROLES, after=POSITIONS)
    def insert(self, kept: tuple[Session, Transcript], role: Any, after: int) -> tuple[Session, Transcript]:
        session, transcript = kept
        at = (
            0
            if after == -1
            else range(len(transcript))[after] + 1
            if -len(transcript) <= after < len(transcript)
            else None
        )
        if at is None:
            return kept
        words = next(self.words)

        longer = self.core.add_message(session, role, words, config=self.config, after_index=after)

        moved = {index: index + (index >= at) for index in range(len(transcript))}
        self.items_are_the_same(session, longer, moved)
        return self.keep(longer, [*transcript[:at], (role, words), *transcript[at:]])

    @rule(target=sessions, kept=sessions, index=POSITIONS)
    def modify(self, kept: tuple[Session, Transcript], index: int) -> tuple[Session, Transcript]:
        session, transcript = kept
        if not -len(transcript) <= index < len(transcript):
            return kept
        position, words = range(len(transcript))[index], next(self.words)

        changed = self.core.modify_message(session, index, words, self.config)

        self.items_are_the_same(session, changed, {i: i for i in range(len(transcript)) if i != position})
        return self.keep(
            changed, [*transcript[:position], (transcript[position][0], words), *transcript[position + 1 :]]
        )

    @rule(
        target=sessions,
        kept=sessions,
        start=BOUNDS,
        end=BOUNDS,
        remove=st.lists(POSITIONS, max_size=3),
        take_removed=st.booleans(),
    )
    def cut(
        self,
        kept: tuple[Session, Transcript],
        start: int | None,
        end: int | None,
        remove: list[int],
        take_removed: bool,
    ) -> tuple[Session, Transcript]:
        session, transcript = kept
        everything = range(len(transcript))
        unwanted = {everything[i] for i in remove if -len(transcript) <= i < len(transcript)}
        staying = [index for index in everything[slice(start, end)] if index not in unwanted]
        leaving = [index for index in everything if index not in staying]

        halves = self.core.slice_session(
            session, self.config, start=start, end=end, remove_indices=remove, return_removed=True
        )

        for half, positions in zip(halves, (staying, leaving), strict=True):
            self.items_are_the_same(session, half, {old: new for new, old in enumerate(positions)})
            self.keep(half, [transcript[index] for index in positions])
        return self.made[-1] if take_removed else self.made[-2]

    @rule(target=sessions, kept=sessions, upto=POSITIONS)
    def fork(self, kept: tuple[Session, Transcript], upto: int) -> tuple[Session, Transcript]:
        session, transcript = kept

        forked = self.core.fork_session(session, self.config, upto_index=upto, new_session_id="fork")

        begins = transcript[: upto + 1]
        assert forked == self.core.fork_session(
            searched(session), self.config, upto_index=upto, new_session_id="fork"
        )
        self.items_are_the_same(session, forked, {index: index for index in range(len(begins))})
        return self.keep(forked, begins)

    @rule(target=sessions, first=sessions, second=sessions)
    def join(
        self, first: tuple[Session, Transcript], second: tuple[Session, Transcript]
    ) -> tuple[Session, Transcript]:
        joined = self.core.join_sessions(first[0], second[0], self.config)

        self.items_are_the_same(first[0], joined, {index: index for index in range(len(first[1]))})
        moved = {index: len(first[1]) + index for index in range(len(second[1]))}
        self.items_are_the_same(second[0], joined, moved)
        return self.keep(joined, [*first[1], *second[1]])

    @rule(target=sessions, kept=sessions)
    def export_and_import(self, kept: tuple[Session, Transcript]) -> tuple[Session, Transcript]:
        session = self.core.import_session(self.core.export_session(kept[0]))

        assert session == kept[0]
        return self.keep(session, kept[1])

    @rule(target=sessions, kept=sessions)
    def ask(self, kept: tuple[Session, Transcript]) -> tuple[Session, Transcript]:
        session, transcript = kept

        longer, answers = self.core.send_request(session, self.config)

        assert "native_rebuilt" not in longer.metadata or self.features
        said = [(message["role"], message["content"]) for message in answers]
        read = self.provider.from_native_messages(self.provider.asked[-1])
        asked = [(message["role"], message["content"]) for message in read]
        if self.features and ("system", SystemPrompt.words) not in transcript:
            transcript = [("system", SystemPrompt.words), *transcript]
        assert asked == [line for line in transcript if line[0] != "system" or self.provider.hears_system]
        return self.keep(longer, [*transcript, *said])

    def keep(self, session: Session, transcript: Transcript) -> tuple[Session, Transcript]:
        self.check(session, transcript)
        self.made.append((session, transcript))
        return session, transcript

    def check(self, session: Session, transcript: Transcript) -> None:
        assert [(message.role, message.content) for message in session.messages] == transcript
        native = session.metadata.get("native_messages")
        if native is None:
            assert all(message.native_indices is None for message in session.messages)
            return
        for message in session.messages:
            indices = message.native_indices
            if indices is None or (message.role == "system" and not self.provider.hears_system):
                continue
            assert all(index < len(native) for index in indices)
            read = self.provider.from_native_messages([native[index] for index in indices])
            assert (message.role, message.content) in [(made["role"], made["content"]) for made in read]

        native_history, _problem = read_native(Session.from_dict(session.to_dict()))
        assert native_history is not None
        if isinstance(session.seal, Seal) and session.seal.in_order:
            assert native_history.seal.in_order

    def items_are_the_same(self, before: Session, after: Session, moved: dict[int, int]) -> None:
        """Messages that an edit does not concern keep the very items that they had, or the result says so."""
        old, new = before.metadata.get("native_messages"), after.metadata.get("native_messages")
        if old is None:
            return
        if new is None:
            assert "native_rebuilt" in after.metadata or not moved
            assert not self.provider.always_mapped or not moved
            return
        assert "native_rebuilt" not in after.metadata or after.messages == before.messages
        owners = [index for message in before.messages for index in message.native_indices or ()]
        for position, place in moved.items():
            was, now = before.messages[position].native_indices, after.messages[place].native_indices
            if was is None or now is None or any(owners.count(index) > 1 for index in was):
                continue
            assert len(was) == len(now)
            assert all(old[i] is new[j] for i, j in zip(was, now, strict=True))

    def teardown(self) -> None:
        for session, transcript in self.made:
            self.check(session, transcript)


@pytest.mark.parametrize(
    ("provider", "features"),
    [
        (OneItemEach, ()),
        (TwoItemsEach, ()),
        (ReasoningFirst, ()),
        (SharedItem, ()),
        (MergesNeighbours, ()),
        (SystemElsewhere, ()),
        (OneItemEach, (SystemPrompt,)),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "-".join(f.__name__ for f in value),
)
def test_transcript_and_native_history_stay_in_step(
    provider: type[OneItemEach], features: tuple[type, ...]
) -> None:
    story = type("StoryOf" + provider.__name__, (Story,), {"provider_class": provider, "features": features})

    run_state_machine_as_test(story, settings=settings(max_examples=20, stateful_step_count=15))

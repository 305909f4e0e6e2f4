"""Whatever a hook returns as native history or as finals, nothing that was said is lost or there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agent_core import AgentCore, Message, Session

Case = Callable[..., AbstractContextManager[None]]

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Drive = Callable[..., tuple[Session, Dicts, Dicts]]

THOUGHT = {"role": "reasoning", "encrypted": "x1f"}
FOREIGN = [{"role": "user", "content": "of somebody else"}, {"role": "assistant", "content": "to them"}]


def answer_to(native: Dicts) -> dict[str, Any]:
    """Return what the model says: its number, so that each answer is another one."""
    return {"role": "assistant", "content": f"answer {sum(item['role'] == 'user' for item in native)}"}


# --- what a hook can do to native history, and to finals ------------------------------------------

NATIVE: dict[str, Callable[[Dicts, Dicts, int], Dicts]] = {
    "whole": lambda sent, turn, _cut: [*sent, *turn],
    "only the answer": lambda _sent, turn, _cut: turn,
    "nothing": lambda _sent, _turn, _cut: [],
    "without the answer": lambda sent, _turn, _cut: sent,
    "without the first ones": lambda sent, turn, cut: [*sent[cut:], *turn],
    "without the last ones": lambda sent, turn, cut: [*sent[: len(sent) - cut], *turn],
    "only the first ones": lambda sent, _turn, cut: sent[:cut],
    "twice": lambda sent, turn, _cut: [*sent, *sent, *turn],
    "each twice": lambda sent, turn, _cut: [item for item in sent for _ in range(2)] + turn,
    "the answer twice": lambda sent, turn, _cut: [*sent, *turn, *turn],
    "turned round": lambda sent, turn, _cut: [*sent[::-1], *turn],
    "the answer first": lambda sent, turn, _cut: [*turn, *sent],
    "foreign": lambda _sent, turn, _cut: [*FOREIGN, *turn],
    "foreign without the answer": lambda _sent, _turn, _cut: FOREIGN,
    "foreign in front": lambda sent, turn, _cut: [FOREIGN[0], *sent, *turn],
}
FINALS: dict[str, Callable[[Dicts, Dicts, int], Dicts]] = {
    "the answer": lambda _sent, turn, _cut: turn,
    "nothing": lambda _sent, _turn, _cut: [],
    "twice": lambda _sent, turn, _cut: [*turn, *turn],
    "everything": lambda sent, turn, _cut: [*sent, *turn],
    "the last question too": lambda sent, turn, _cut: [*sent[-1:], *turn],
    "the first question too": lambda sent, turn, _cut: [*turn, *sent[:1]],
}
HOOKS = (
    ("provider", "api"),
    ("provider", "late"),
    ("provider", "finalize"),
    ("extension", "process_chunk"),
    ("extension", "finalize"),
    ("feature", "finalize"),
)
BRINGS_THE_ANSWER = ("api", "late")
WITHOUT_THE_ANSWER = ("nothing", "without the answer", "only the first ones", "foreign without the answer")


@dataclass(frozen=True)
class Spoil:
    """How one hook misbehaves."""

    plugin: str
    hook: str
    native: str
    finals: str
    cut: int
    copied: bool

    def items(self, sent: Dicts, turn: Dicts) -> Dicts:
        return self._own(NATIVE[self.native](list(sent), list(turn), self.cut))

    def messages(self, sent: Dicts, turn: Dicts) -> Dicts:
        return self._own(FINALS[self.finals](list(sent), list(turn), self.cut))

    def _own(self, items: Dicts) -> Dicts:
        return deepcopy(items) if self.copied else items

    @property
    def is_possible(self) -> bool:
        """Say whether anybody could still know what the answer is, and how often it was given."""
        if self.plugin == "provider" and self.native == "the answer twice" and self.hook == "finalize":
            return self.finals in ("the answer", "nothing")  # else it gave the answer twice in both
        if self.hook not in BRINGS_THE_ANSWER:
            return True
        left_out = self.native in WITHOUT_THE_ANSWER
        if self.finals == "nothing":
            return not left_out and self.native not in ("foreign", "the answer first", "the answer twice")
        # A model may say the same twice; where native history does not tell, it has.
        return not (self.finals == "twice" and (left_out or self.native == "the answer twice"))


@st.composite
def spoils(draw: st.DrawFn) -> Spoil:
    plugin, hook = draw(st.sampled_from(HOOKS))
    native, finals = draw(st.sampled_from(sorted(NATIVE))), draw(st.sampled_from(sorted(FINALS)))
    spoil = Spoil(plugin, hook, native, finals, draw(st.integers(1, 3)), draw(st.booleans()))
    return spoil if spoil.is_possible else draw(spoils())


class Talker:
    """A provider of plain items; what it returns may be spoilt."""

    name = "provider"
    version = "1"

    def __init__(self, spoil: Spoil | None = None, *, thinks: bool = False) -> None:
        self.asked: list[Dicts] = []
        self.spoil = spoil if spoil is not None and spoil.plugin == "provider" else None
        self.thinks = thinks

    def init(self, config: dict[str, Any]) -> State:
        return {"config": config, "sent": [], "turn": []}

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": message["role"], "content": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        spoken = [item for item in native_messages if "content" in item]
        return [{"role": item["role"], "content": item["content"]} for item in spoken]

    def call_api(self, native_messages: Dicts, state: State) -> Any:
        state = self._ask(native_messages, state)
        return [], *self._bring(native_messages, state, "api"), state

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[int]:
        state.update(self._ask(native_messages, state))
        yield from range(3)

    def process_chunk(self, chunk: int, native_messages: Dicts, state: State) -> Any:
        if chunk < 2:
            items = native_messages
            if self.spoil is not None and self.spoil.hook == "api":
                items = self.spoil.items(state["sent"], [])
            return [{"role": "assistant", "content": str(chunk)}], [], items, state
        return [], *self._bring(native_messages, state, "api"), state

    def finalize(self, native_messages: Dicts, state: State) -> Any:
        if self.spoil is None or self.spoil.hook == "api":
            return [], native_messages, state
        if self.spoil.hook == "late":
            return *self._bring(native_messages, state, "late"), state
        sent, turn = state["sent"], state["turn"]
        finals = [] if self.spoil.finals == "the answer" else self.spoil.messages(sent, turn)
        return finals, self.spoil.items(sent, turn), state

    def _ask(self, native_messages: Dicts, state: State) -> State:
        self.asked.append(list(native_messages))
        thoughts = [THOUGHT] if self.thinks else []
        return {**state, "sent": list(native_messages), "turn": [*thoughts, answer_to(native_messages)]}

    def _bring(self, native_messages: Dicts, state: State, hook: str) -> tuple[Dicts, Dicts]:
        turn = state["turn"]
        if self.spoil is not None and self.spoil.hook == "late" and hook == "api":
            return [], native_messages
        if self.spoil is None or self.spoil.hook != hook:
            return turn, [*native_messages, *turn]
        return self.spoil.messages(state["sent"], turn), self.spoil.items(state["sent"], turn)


class Follower:
    """An extension or a feature; what it returns may be spoilt."""

    version = "1"

    def __init__(self, name: str, spoil: Spoil | None) -> None:
        self.name = name
        self.spoil = spoil if spoil is not None and spoil.plugin == name else None

    def finalize(self, final_messages: Dicts, native_messages: Dicts, state: State) -> Any:
        if self.spoil is None or self.spoil.hook != "finalize":
            return final_messages, native_messages, state
        sent, turn = state["sent"], state["turn"]
        return self.spoil.messages(sent, final_messages), self.spoil.items(sent, turn), state


class Extension(Follower):
    def process_chunk(
        self, chunk: int, partials: Dicts, finals: Dicts, native_messages: Dicts, state: State
    ) -> Any:
        if self.spoil is None or self.spoil.hook != "process_chunk":
            return partials, finals, native_messages, state
        sent = state["sent"]
        turn = list(native_messages)[len(sent) :]
        return partials, self.spoil.messages(sent, finals), self.spoil.items(sent, turn), state


def core_of(spoil: Spoil | None = None, **options: Any) -> tuple[AgentCore, Talker]:
    provider = Talker(spoil, **options)
    core = AgentCore()
    core.register_provider(provider, [Extension("extension", spoil)])
    core.register_feature(Follower("feature", spoil))
    return core, provider


def said(session: Session) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in session.messages]


def conversation(turns: int) -> list[tuple[str, str]]:
    pairs = ((("user", f"question {n}"), ("assistant", f"answer {n}")) for n in range(1, turns + 1))
    return [message for pair in pairs for message in pair]


def ask(drive: Drive, core: AgentCore, session: Session, number: int) -> Session:
    asked = core.add_message(session, "user", f"question {number}", {"source": "keyboard"})
    return drive(core, asked, {})[0]


def talk(drive: Drive, core: AgentCore, turns: int) -> Session:
    session = Session("s")
    for number in range(1, turns + 1):
        session = ask(drive, core, session, number)
    return session


def readable(items: Dicts) -> list[tuple[str, str]]:
    return [(item["role"], item["content"]) for item in items if "content" in item]


def problems(session: Session) -> list[tuple[str, str]]:
    report = session.metadata.get("native_rebuilt", {})
    return [(entry["plugin"], entry["hook"]) for entry in report.get("problems", ())]


@given(spoil=spoils(), turns=st.integers(0, 2), thinks=st.booleans())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_message_is_there_once_whatever_a_hook_returns(
    drive: Drive, spoil: Spoil, turns: int, thinks: bool
) -> None:
    healthy, _ = core_of(thinks=thinks)
    core, provider = core_of(spoil, thinks=thinks)
    before = talk(drive, healthy, turns)

    spoilt = ask(drive, core, before, turns + 1)
    again = ask(drive, core, spoilt, turns + 2)
    healed = ask(drive, healthy, again, turns + 3)

    assert said(spoilt) == conversation(turns + 1)
    assert said(again) == conversation(turns + 2)
    assert said(healed) == conversation(turns + 3)
    assert all(message.metadata["source"] == "keyboard" for message in healed.messages[::2])
    for number, asked in enumerate(provider.asked, turns + 1):
        assert readable(asked) == conversation(number)[:-1]
    assert readable(healed.metadata["native_messages"]) == conversation(turns + 3)
    assert "native_rebuilt" not in healed.metadata
    assert {plugin for plugin, _hook in problems(spoilt) + problems(again)} <= {spoil.plugin}


LOSES = ("nothing", "without the first ones", "turned round", "foreign", "only the answer")


def test_who_lost_something_is_named(drive: Drive, case: Case) -> None:
    for (plugin, hook), native in product(HOOKS, LOSES):
        with case(plugin, hook, native):
            core, _ = core_of(Spoil(plugin, hook, native, "the answer", 1, copied=False))

            first, second = talk(drive, core, 1), talk(drive, core, 2)

            called = [{"late": "finalize"}.get(hook, hook)]
            if hook == "api":
                called = ["call_api", "process_chunk"]
            streams = bool(drive(core, core.add_message(Session("t"), "user", "hi"), {})[2])
            expected = hook != "process_chunk" or streams  # nobody calls that of an extension otherwise
            assert {name for name, _ in problems(second)} == ({plugin} if expected else set())
            assert {found for _, found in problems(second)} <= set(called)
            report = second.metadata.get("native_rebuilt")
            if expected:
                assert report is not None
                assert report["reason"] == "mended"
                assert report["messages"] == 4
                assert f"plugin {plugin!r}, hook" in report["detail"]
            assert said(first) == conversation(1)


# --- what stays legal -----------------------------------------------------------------------------


class Repeating(Talker):
    """Says the same each time, and gives native history as its kind says."""

    def __init__(self, kind: str, finals: int) -> None:
        super().__init__()
        self.kind = kind
        self.finals = [{"role": "assistant", "content": f"ok {number}"} for number in range(finals)]

    def call_api(self, native_messages: Dicts, state: State) -> Any:
        self.asked.append(list(native_messages))
        return [], list(self.finals), NATIVE[self.kind](list(native_messages), list(self.finals), 0), state

    stream_api = None  # type: ignore[assignment]  # a hook that is not written


@given(
    kind=st.sampled_from(["whole", "only the answer", "without the answer"]),
    finals=st.integers(1, 3),
    turns=st.integers(1, 4),
    question=st.sampled_from(["go on", "ok 0"]),
)
@settings(max_examples=30, deadline=None)
def test_a_model_may_say_the_same_again(kind: str, finals: int, turns: int, question: str) -> None:
    provider = Repeating(kind, finals)
    core = AgentCore()
    core.register_provider(provider)
    session = Session("s")

    for _ in range(turns):
        session, _ = core.send_request(core.add_message(session, "user", question), {})

    turn = [("user", question), *(("assistant", f"ok {number}") for number in range(finals))]
    assert said(session) == turn * turns
    assert readable(session.metadata["native_messages"]) == turn * turns
    assert ("native_rebuilt" in session.metadata) is (kind == "only the answer")


def test_a_provider_may_revise_earlier_items_where_they_stand(drive: Drive) -> None:
    class Forgets(Talker):
        def finalize(self, native_messages: Dicts, state: State) -> Any:
            return [], [{**item, "seen": True} for item in native_messages], state

    core = AgentCore()
    core.register_provider(Forgets())

    session = talk(drive, core, 2)

    assert said(session) == conversation(2)
    assert all(item["seen"] for item in session.metadata["native_messages"])
    assert session.metadata["native_rebuilt"]["reason"] == "plugin"
    assert "hook 'finalize', revised earlier items" in session.metadata["native_rebuilt"]["detail"]
    assert session.messages[0].metadata["source"] == "keyboard"


def test_a_feature_may_add_finals_change_them_and_leave_out_reasoning(drive: Drive) -> None:
    class Adjusts:
        name = "adjusts"
        version = "1"

        def finalize(self, final_messages: Dicts, native_messages: Dicts, state: State) -> Any:
            *thoughts, answer = final_messages
            finals = [{**answer, "content": "better"}, {"role": "assistant", "content": "and more"}]
            return finals, [item for item in native_messages if item not in thoughts], state

    core, _ = core_of(thinks=True)
    core.register_feature(Adjusts)

    session = talk(drive, core, 1)

    assert [content for _, content in said(session)] == ["question 1", "better", "and more"]
    assert readable(session.metadata["native_messages"])[1:] == [
        ("assistant", "answer 1"),
        ("assistant", "and more"),
    ]
    assert THOUGHT not in session.metadata["native_messages"]
    assert "native_rebuilt" not in session.metadata


@pytest.mark.parametrize(
    ("made", "hook_is_named"),
    [
        (lambda messages: [], True),
        (lambda messages: [*messages, *messages], True),
        (lambda messages: [{**message, "content": "better"} for message in messages], False),
    ],
    ids=["nothing", "twice", "changed"],
)
def test_the_readable_answer_is_there_once(
    drive: Drive, made: Callable[[Dicts], Dicts], hook_is_named: bool
) -> None:
    class Reads:
        name = "reads"
        version = "1"

        def from_native_messages(self, native_messages: Dicts, messages: Dicts) -> Dicts:
            return made(messages)

    core, _ = core_of()
    core.register_feature(Reads)

    session = talk(drive, core, 1)

    assert len(said(session)) == 2
    assert problems(session) == ([("reads", "from_native_messages")] if hook_is_named else [])


def test_a_message_without_native_items_survives_a_plugin_that_changes_what_is_sent(drive: Drive) -> None:
    class SystemElsewhere(Talker):
        def to_native_messages(self, messages: Dicts) -> Dicts:
            return super().to_native_messages([one for one in messages if one["role"] != "system"])

    class Reminds:
        name = "reminds"
        version = "1"

        def initialize_request(self, native_messages: Dicts, state: State) -> Any:
            return [{"role": "user", "content": "(be kind)"}, *native_messages], state

    core = AgentCore()
    core.register_provider(SystemElsewhere())
    core.register_feature(Reminds)
    session = Session("s", [Message("system", "be brief"), Message("user", "question")])

    session, _, _ = drive(core, session, {})

    assert [content for _, content in said(session)] == ["be brief", "(be kind)", "question", "answer 2"]

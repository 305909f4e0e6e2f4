"""What a request brings: the session that comes back, and what plugins may do to it on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ArgumentTypeError,
    Cancellation,
    ConfigTypeError,
    Message,
    NoProviderError,
    Session,
)
from agent_core.testing import EchoProvider, Reply, ScriptedProvider

Dicts = list[dict[str, Any]]
State = dict[str, Any]
Answer = tuple[Dicts, Dicts, Dicts, State]
Drive = Callable[..., tuple[Session, Dicts, Dicts]]


def asking(provider: object, *features: object, text: str = "hello") -> tuple[AgentCore, Session]:
    core = AgentCore()
    core.register_provider(provider)
    for feature in features:
        core.register_feature(feature)
    return core, core.add_message(core.create_session(), "user", text)


def said(session: Session) -> list[tuple[str, Any]]:
    return [(message.role, message.content) for message in session.messages]


def indices(session: Session) -> list[tuple[int, ...] | None]:
    return [message.native_indices for message in session.messages]


class ItemProvider:
    """Speaks in items; what it answers with, and whether it keeps that, is up to the test."""

    name = "items"
    version = "1"

    def __init__(self, *answer: dict[str, Any], keeps: bool = True) -> None:
        self.answer = list(answer)
        self.keeps = keeps
        self.asked: list[Dicts] = []

    def to_native_messages(self, messages: Dicts) -> Dicts:
        return [{"role": message["role"], "text": message["content"]} for message in messages]

    def from_native_messages(self, native_messages: Dicts) -> Dicts:
        """Reasoning has no readable form."""
        return [{"role": item["role"], "content": item["text"]} for item in native_messages if "text" in item]

    def call_api(self, native_messages: Dicts, state: State) -> Answer:
        self.asked.append(native_messages)
        native = [*native_messages, *self.answer] if self.keeps else native_messages
        return [], self.answer, native, state

    def stream_api(self, native_messages: Dicts, state: State) -> Iterator[int]:
        self.asked.append(native_messages)
        yield from range(len(self.answer))

    def process_chunk(self, chunk: int, native_messages: Dicts, state: State) -> Answer:
        item = self.answer[chunk]
        native = [*native_messages, item] if self.keeps else native_messages
        return [{"role": "assistant", "content": item.get("text", "")}], [item], native, state


ANSWER = {"role": "assistant", "text": "hello yourself"}
THOUGHT = {"role": "reasoning", "encrypted": "x1f"}


class Adjusting:
    """Runs one action before a turn is returned; its result is the test's."""

    name = "adjusting"
    version = "1"

    def __init__(self, result: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.result = result

    def get_actions(self) -> Dicts:
        return [{"id": "adjust", "trigger": "response_finalize"}]

    def execute_action(
        self,
        action_id: str,
        session: Session,
        native_messages: Dicts,
        params: dict[str, Any],
        context: dict[str, Any],
    ) -> dict[str, Any]:
        return self.result(context)


def test_the_answer_is_appended_to_the_session_and_returned(drive: Drive) -> None:
    core, before = asking(EchoProvider, text="how are you")

    session, messages, partials = drive(core, before, {})

    assert said(session) == [("user", "how are you"), ("assistant", "how are you")]
    assert [Message.from_dict(message) for message in messages] == session.messages[1:]
    assert [event["message"]["content"] for event in partials] in ([], ["how ", "are ", "you"])


def test_the_session_that_was_passed_in_does_not_change(drive: Drive) -> None:
    core, before = asking(EchoProvider)
    copied = before.to_dict()

    session, _, _ = drive(core, before, {})

    assert before.to_dict() == copied
    assert session.session_id == before.session_id


def test_the_returned_messages_belong_to_the_caller(drive: Drive) -> None:
    core, before = asking(EchoProvider)
    session, messages, _ = drive(core, before, {})

    messages[0]["metadata"]["mine"] = True

    assert "mine" not in session.messages[-1].metadata


def test_all_four_ways_give_the_same_session(drive: Drive) -> None:
    provider = ScriptedProvider([Reply(chunks=["one ", "two"], usage={"total": 3})] * 2)
    core, before = asking(provider)
    expected, _ = core.send_request(before, {})

    session, _, _ = drive(core, before, {})

    assert session == expected


def test_a_later_turn_sends_the_native_items_of_earlier_ones_as_they_were(drive: Drive) -> None:
    provider = ScriptedProvider([Reply(text="first", extra={"signature": "s1"}), "second"])
    core, session = asking(provider)
    session, _, _ = drive(core, session, {})
    session = core.add_message(session, "user", "go on")

    session, _, _ = drive(core, session, {})

    assert [item.get("signature") for item in provider.requests[1].native_messages] == [None, "s1", None]
    assert indices(session) == [(0,), (1,), (2,), (3,)]
    assert "native_rebuilt" not in session.metadata


def test_a_session_survives_export_and_import_between_turns(drive: Drive) -> None:
    provider = ScriptedProvider([Reply(text="first", extra={"signature": "s1"}), "second"])
    core, session = asking(provider)
    session, _, _ = drive(core, session, {})
    session = core.import_session(core.export_session(session))
    session = core.add_message(session, "user", "go on")

    session, _, _ = drive(core, session, {})

    assert provider.requests[1].native_messages[1]["signature"] == "s1"
    assert "native_rebuilt" not in session.metadata


def test_tool_schemas_reach_the_provider_in_its_config(drive: Drive) -> None:
    def look_up(word: str) -> str:
        """Look a word up."""
        return word

    provider = ScriptedProvider(["ok"])
    core, session = asking(provider)
    core.register_tool(look_up)

    drive(core, session, {"model": "m"})

    [schema] = provider.requests[0].config["tools"]
    assert schema["function"]["name"] == "look_up"
    assert provider.requests[0].config["model"] == "m"


def test_without_tools_the_config_says_so(drive: Drive) -> None:
    provider = ScriptedProvider(["ok"])
    core, session = asking(provider)

    drive(core, session, {})

    assert provider.requests[0].config == {"tools": []}


def test_the_request_id_reaches_the_provider(drive: Drive) -> None:
    provider = ScriptedProvider(["ok", "ok"])
    core, session = asking(provider)

    drive(core, session, {}, request_id="r-7")
    drive(core, session, {})

    assert [request.request_id for request in provider.requests] == ["r-7", None]


def test_a_request_that_can_be_cancelled_gets_an_id_of_its_own(drive: Drive) -> None:
    provider = ScriptedProvider(["ok", "ok"])
    core, session = asking(provider)

    drive(core, session, {}, cancellation=Cancellation())
    drive(core, session, {}, cancellation=Cancellation())

    first, second = (request.request_id for request in provider.requests)
    assert first
    assert second
    assert first != second


def test_plugins_find_the_request_in_their_context(drive: Drive) -> None:
    seen: list[dict[str, Any]] = []

    class Curious:
        name = "curious"
        version = "1"

        def finalize(
            self, final_messages: Dicts, native_messages: Dicts, state: State, context: dict[str, Any]
        ) -> tuple[Dicts, Dicts, State]:
            seen.append(context)
            return final_messages, native_messages, state

    core, session = asking(EchoProvider, Curious)

    _, _, partials = drive(core, session, {"model": "echo"}, request_id="r-1", context={"mine": {"x": [1]}})

    [context] = seen
    assert context["core"] is core
    assert context["config"] == {"model": "echo"}
    assert context["provider"] == "echo"
    assert context["enabled_plugin_ids"]["features"] == ["curious"]
    assert context["request_id"] == "r-1"
    assert context["stream"] is bool(partials)
    assert context["session"]["messages"][-1]["content"] == "hello"
    assert context["mine"] == {"x": [1]}


def test_a_tool_gets_its_context_even_if_no_other_plugin_takes_one(drive: Drive) -> None:
    seen: list[Any] = []

    class CuriousTool:
        name = "curious-tool"
        version = "1"

        def init(self, config: dict[str, Any], context: dict[str, Any]) -> State:
            seen.append(context["request_id"])
            return {}

        def get_tool_schemas(self) -> Dicts:
            return []

        def execute_tool(self, tool_name: str, arguments: dict[str, Any]) -> None:
            raise AssertionError("a request runs no tools")

    core, session = asking(EchoProvider)
    core.register_tool(CuriousTool)

    drive(core, session, {}, request_id="r-2")

    assert seen == ["r-2"]


class TestMetadata:
    class Patching:
        name = "patching"
        version = "1"

        def __init__(self, patch: Any) -> None:
            self.patch = patch

        def init(self, config: dict[str, Any], state: State) -> State:
            return {**state, "session_metadata_patch": self.patch}

    def test_a_patch_in_the_state_ends_up_in_the_session(self, drive: Drive) -> None:
        core, session = asking(EchoProvider, self.Patching({"tokens": 12}))
        session = session.with_metadata({"owner": "ada", "tokens": 1})

        session, _, _ = drive(core, session, {})

        assert session.metadata["tokens"] == 12
        assert session.metadata["owner"] == "ada"

    def test_a_patch_cannot_touch_what_belongs_to_native_history(self, drive: Drive) -> None:
        patch: dict[str, Any] = {
            "native_messages": [],
            "native_messages_integrity": {},
            "native_provenance": {},
        }
        core, before = asking(EchoProvider, self.Patching(patch))

        session, _, _ = drive(core, before, {})

        assert [item["role"] for item in session.metadata["native_messages"]] == ["user", "assistant"]
        assert "native_rebuilt" not in core.add_message(session, "user", "x", config={}).metadata

    @pytest.mark.parametrize("patch", [None, "text", ["a"], 3])
    def test_a_patch_that_is_no_dict_is_not_applied(self, drive: Drive, patch: Any) -> None:
        core, before = asking(EchoProvider, self.Patching(patch))
        plain, _, _ = drive(*asking(EchoProvider), {})

        session, _, _ = drive(core, before, {})

        assert dict(session.metadata) == dict(plain.metadata)

    def test_an_action_of_the_turn_has_the_last_word(self, drive: Drive) -> None:
        action = Adjusting(lambda context: {"session_metadata": {"tokens": 3, "from": "action"}})
        core, before = asking(EchoProvider, self.Patching({"tokens": 12, "kept": True}), action)

        session, _, _ = drive(core, before, {})

        assert {key: session.metadata[key] for key in ("tokens", "from", "kept")} == {
            "tokens": 3,
            "from": "action",
            "kept": True,
        }


class TestResponseFinalize:
    def test_an_action_sees_the_turn_that_is_about_to_be_returned(self, drive: Drive) -> None:
        seen: list[dict[str, Any]] = []

        def look(context: dict[str, Any]) -> dict[str, Any]:
            seen.append(context)
            return {}

        turn = [THOUGHT, ANSWER, THOUGHT, {"role": "assistant", "text": "and more"}]
        core, session = asking(ItemProvider(*turn), Adjusting(look))

        _, messages, partials = drive(core, session, {})

        [context] = seen
        assert context["lifecycle"] == "response_finalize"
        assert context["final_messages"] == messages
        assert [m["metadata"]["native_indices"] for m in messages] == [[1, 2], [3, 4]]
        assert context["native_final_messages"] == turn
        assert context["native_messages"] == [{"role": "user", "text": "hello"}, *turn]
        assert context["turn_native_start_index"] == 1
        assert context["stream"] is bool(partials)

    def test_it_can_replace_the_messages(self, drive: Drive) -> None:
        def shout(context: dict[str, Any]) -> dict[str, Any]:
            return {
                "final_messages": [{**m, "content": m["content"].upper()} for m in context["final_messages"]]
            }

        core, session = asking(EchoProvider, Adjusting(shout))

        session, messages, _ = drive(core, session, {})

        assert said(session)[-1] == ("assistant", "HELLO")
        assert [Message.from_dict(message) for message in messages] == session.messages[1:]
        assert session.metadata["native_messages"][-1]["content"] == "hello"
        assert indices(session) == [(0,), (1,)]

    def test_a_message_that_it_makes_up_stands_for_the_whole_turn(self, drive: Drive) -> None:
        new = {"role": "assistant", "content": "in short: hello"}
        core, session = asking(
            ItemProvider(THOUGHT, ANSWER), Adjusting(lambda context: {"final_messages": [new]})
        )

        session, _, _ = drive(core, session, {})

        assert said(session)[1:] == [("assistant", "in short: hello")]
        assert indices(session) == [(0,), (1, 2)]

    def test_it_can_take_the_messages_away(self, drive: Drive) -> None:
        core, session = asking(EchoProvider, Adjusting(lambda context: {"final_messages": []}))

        session, messages, _ = drive(core, session, {})

        assert said(session) == [("user", "hello")]
        assert messages == []

    def test_it_can_change_the_native_form_of_the_answer(self, drive: Drive) -> None:
        def redact(context: dict[str, Any]) -> dict[str, Any]:
            *before, last = context["native_messages"]
            return {"native_messages": [*before, {**last, "text": "[redacted]"}]}

        core, session = asking(ItemProvider(THOUGHT, ANSWER), Adjusting(redact))

        session, _, _ = drive(core, session, {})

        assert session.metadata["native_messages"][-1]["text"] == "[redacted]"
        assert said(session)[-1] == ("assistant", "hello yourself")
        assert indices(session) == [(0,), (1, 2)]
        assert "native_rebuilt" not in session.metadata

    @pytest.mark.parametrize(
        ("kept", "expected"), [([0, 2], [(0,), (1,)]), ([0, 1], [(0,), (1,)]), ([0], [(0,), ()])]
    )
    def test_messages_follow_their_items_when_it_removes_some(
        self, drive: Drive, kept: list[int], expected: list[tuple[int, ...]]
    ) -> None:
        def keep(context: dict[str, Any]) -> dict[str, Any]:
            return {"native_messages": [context["native_messages"][index] for index in kept]}

        core, session = asking(ItemProvider(THOUGHT, ANSWER), Adjusting(keep))

        session, _, _ = drive(core, session, {})

        assert len(session.metadata["native_messages"]) == len(kept)
        assert indices(session) == expected

    def test_indices_that_it_invents_are_not_believed(self, drive: Drive) -> None:
        def invent(context: dict[str, Any]) -> dict[str, Any]:
            [message] = context["final_messages"]
            return {"final_messages": [{**message, "metadata": {"native_indices": [0, 99]}}]}

        core, session = asking(EchoProvider, Adjusting(invent))

        session, _, _ = drive(core, session, {})

        assert indices(session) == [(0,), (1,)]

    def test_when_it_changes_what_came_before_the_transcript_follows(self, drive: Drive) -> None:
        def forget(context: dict[str, Any]) -> dict[str, Any]:
            summary = {"role": "system", "text": "They greeted."}
            return {"native_messages": [summary, context["native_messages"][-1]]}

        core, session = asking(ItemProvider(ANSWER), Adjusting(forget))

        session, messages, _ = drive(core, session, {})

        assert said(session) == [("system", "They greeted."), ("assistant", "hello yourself")]
        assert indices(session) == [(0,), (1,)]
        assert session.metadata["native_rebuilt"]["reason"] == "plugin"
        assert [message["content"] for message in messages] == ["hello yourself"]


class SystemPrompt:
    """Puts a system item in front of everything, unless there is one."""

    name = "system-prompt"
    version = "1"

    def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
        if native_messages and native_messages[0]["role"] == "system":
            return native_messages, state
        return [{"role": "system", "text": "Be brief."}, *native_messages], state


class TestInitializeRequest:
    def test_what_a_feature_adds_becomes_part_of_the_transcript(self, drive: Drive) -> None:
        provider = ItemProvider(ANSWER)
        core, session = asking(provider, SystemPrompt)

        session, messages, _ = drive(core, session, {})

        expected = [("system", "Be brief."), ("user", "hello"), ("assistant", "hello yourself")]
        assert [(item["role"], item["text"]) for item in provider.asked[0]] == expected[:2]
        assert said(session) == expected
        assert indices(session) == [(0,), (1,), (2,)]
        assert [message["content"] for message in messages] == ["hello yourself"]
        assert session.metadata["native_rebuilt"]["reason"] == "plugin"

    def test_messages_that_were_there_keep_their_metadata(self, drive: Drive) -> None:
        core, _ = asking(ItemProvider(ANSWER), SystemPrompt)
        session = core.add_message(core.create_session(), "user", "hello", {"source": "keyboard"})

        session, _, _ = drive(core, session, {})

        assert session.messages[1].metadata["source"] == "keyboard"

    def test_the_next_turn_changes_nothing_before_its_own_messages(self, drive: Drive) -> None:
        provider = ItemProvider(ANSWER)
        core, session = asking(provider, SystemPrompt)
        first, _, _ = drive(core, session, {})

        second, _, _ = drive(core, core.add_message(first, "user", "go on"), {})

        assert said(second) == [*said(first), ("user", "go on"), ("assistant", "hello yourself")]
        assert second.messages[:3] == first.messages[:]
        assert provider.asked[1][:3] == first.metadata["native_messages"]
        assert "native_rebuilt" not in second.metadata

    def test_what_it_appends_stands_before_the_answer(self, drive: Drive) -> None:
        class Reminder:
            name = "reminder"
            version = "1"

            def initialize_request(self, native_messages: Dicts, state: State) -> tuple[Dicts, State]:
                return [*native_messages, {"role": "user", "text": "(be kind)"}], state

        core, session = asking(ItemProvider(ANSWER), Reminder)

        session, _, _ = drive(core, session, {})

        assert said(session) == [("user", "hello"), ("user", "(be kind)"), ("assistant", "hello yourself")]
        assert indices(session) == [(0,), (1,), (2,)]


class TestFinals:
    @pytest.mark.parametrize("keeps", [True, False])
    def test_finals_are_part_of_native_history_whether_the_provider_put_them_there_or_not(
        self, drive: Drive, keeps: bool
    ) -> None:
        core, session = asking(ItemProvider(ANSWER, keeps=keeps))

        session, _, _ = drive(core, session, {})

        assert session.metadata["native_messages"] == [{"role": "user", "text": "hello"}, ANSWER]
        assert indices(session) == [(0,), (1,)]

    def test_several_finals_become_several_messages(self, drive: Drive) -> None:
        more = {"role": "assistant", "text": "and more"}
        core, session = asking(ItemProvider(ANSWER, more))

        session, messages, _ = drive(core, session, {})

        assert [message["content"] for message in messages] == ["hello yourself", "and more"]
        assert indices(session) == [(0,), (1,), (2,)]

    def test_two_finals_that_look_alike_are_still_two(self, drive: Drive) -> None:
        core, session = asking(ItemProvider(ANSWER, ANSWER))

        session, _, _ = drive(core, session, {})

        assert indices(session) == [(0,), (1,), (2,)]

    def test_an_item_without_readable_form_belongs_to_the_message_after_it(self, drive: Drive) -> None:
        more = {"role": "assistant", "text": "and more"}
        core, session = asking(ItemProvider(THOUGHT, ANSWER, THOUGHT, more))

        session, _, _ = drive(core, session, {})

        assert indices(session) == [(0,), (1, 2), (3, 4)]

    def test_one_at_the_end_belongs_to_the_message_before_it(self, drive: Drive) -> None:
        core, session = asking(ItemProvider(ANSWER, THOUGHT))

        session, _, _ = drive(core, session, {})

        assert indices(session) == [(0,), (1, 2)]

    def test_an_item_that_is_no_final_belongs_to_a_message_as_well(self, drive: Drive) -> None:
        class Silent(ItemProvider):
            """Keeps its reasoning in native history and reports only the answer."""

            def finalize(self, native_messages: Dicts, state: State) -> tuple[Dicts, Dicts, State]:
                return [ANSWER], [*native_messages, THOUGHT, ANSWER], state

        core, session = asking(Silent())

        session, _, _ = drive(core, session, {})

        assert indices(session) == [(0,), (1, 2)]

    def test_a_provider_may_say_itself_which_items_a_message_is_made_of(self, drive: Drive) -> None:
        class Declaring(ItemProvider):
            def from_native_messages(self, native_messages: Dicts) -> Dicts:
                if len(native_messages) != 4:
                    return super().from_native_messages(native_messages)
                first = {"role": "assistant", "content": "a", "metadata": {"native_indices": [0, 3]}}
                second = {"role": "assistant", "content": "b", "metadata": {"native_indices": [1, 2]}}
                return [first, second]

        items = [{"role": "assistant", "text": letter} for letter in "abcd"]
        core, session = asking(Declaring(*items))

        session, _, _ = drive(core, session, {})

        assert said(session)[1:] == [("assistant", "a"), ("assistant", "b")]
        assert indices(session) == [(0,), (1, 4), (2, 3)]

    def test_declared_indices_that_make_no_sense_are_not_believed(self, drive: Drive) -> None:
        class Confused(ItemProvider):
            def from_native_messages(self, native_messages: Dicts) -> Dicts:
                metadata = {"native_indices": [7]}
                return [{**m, "metadata": metadata} for m in super().from_native_messages(native_messages)]

        core, session = asking(Confused(ANSWER))

        session, _, _ = drive(core, session, {})

        assert indices(session)[-1] == (1,)

    def test_as_many_messages_as_items_do_not_mean_one_for_one(self, drive: Drive) -> None:
        class Uneven(ItemProvider):
            def from_native_messages(self, native_messages: Dicts) -> Dicts:
                return [
                    {"role": item["role"], "content": line}
                    for item in native_messages
                    for line in item.get("text", "").split("|")
                    if line
                ]

        core, session = asking(Uneven(THOUGHT, {"role": "assistant", "text": "one|two"}))

        session, _, _ = drive(core, session, {})

        assert said(session)[1:] == [("assistant", "one"), ("assistant", "two")]
        assert indices(session) == [(0,), (1, 2), (2,)]

    def test_an_empty_answer_adds_nothing_and_the_conversation_can_go_on(self, drive: Drive) -> None:
        core, before = asking(ItemProvider())

        session, messages, partials = drive(core, before, {})

        assert messages == partials == []
        assert said(session) == [("user", "hello")]
        assert session.metadata["native_messages"] == [{"role": "user", "text": "hello"}]
        assert said(drive(core, core.add_message(session, "user", "still there?"), {})[0])[-1][0] == "user"

    def test_fields_that_a_message_has_no_place_for_go_into_its_metadata(self, drive: Drive) -> None:
        class Chatty(ItemProvider):
            def from_native_messages(self, native_messages: Dicts) -> Dicts:
                return [{**m, "id": "msg_1"} for m in super().from_native_messages(native_messages)]

        core, session = asking(Chatty(ANSWER))

        session, messages, _ = drive(core, session, {})

        assert session.messages[-1].metadata["id"] == "msg_1"
        assert messages[0]["id"] == "msg_1"


class TestSeveralMessagesAtOnce:
    """A session may come with many messages that no provider has seen yet."""

    transcript = (("system", "be brief"), ("assistant", "welcome"), ("user", "hello"))

    def ask(self, drive: Drive, provider: object, *features: object) -> Session:
        core, _ = asking(provider, *features)
        session, _, _ = drive(core, Session("s", [Message(*line) for line in self.transcript]), {})
        return session

    def test_each_knows_its_item(self, drive: Drive) -> None:
        session = self.ask(drive, ItemProvider(ANSWER))

        assert indices(session) == [(0,), (1,), (2,), (3,)]

    def test_each_knows_its_items_where_some_have_none_or_two(self, drive: Drive) -> None:
        class Uneven(ItemProvider):
            def to_native_messages(self, messages: Dicts) -> Dicts:
                sizes = {"system": 0, "assistant": 2, "user": 1}
                items = zip(messages, super().to_native_messages(messages), strict=True)
                return [{**item} for message, item in items for _ in range(sizes[message["role"]])]

        session = self.ask(drive, Uneven(ANSWER))

        assert indices(session) == [(), (0, 1), (2,), (3,)]

    def test_an_item_that_depends_on_its_place_still_belongs_to_its_message(self, drive: Drive) -> None:
        class Caching(ItemProvider):
            def to_native_messages(self, messages: Dicts) -> Dicts:
                *items, last = super().to_native_messages(messages)
                return [*items, {**last, "cache": True}]

        session = self.ask(drive, Caching(ANSWER))

        assert indices(session) == [(0,), (1,), (2,), (3,)]

    def test_a_message_that_makes_no_sense_alone_still_has_its_item(self, drive: Drive) -> None:
        class Strict(ItemProvider):
            def to_native_messages(self, messages: Dicts) -> Dicts:
                if len(messages) == 1:
                    raise ValueError("an answer to what?")
                return super().to_native_messages(messages)

        session = self.ask(drive, Strict(ANSWER))

        assert indices(session) == [(0,), (1,), (2,), (3,)]

    def test_messages_that_became_one_item_do_not_pretend_to_know_theirs(self, drive: Drive) -> None:
        class Merging(ItemProvider):
            def to_native_messages(self, messages: Dicts) -> Dicts:
                items = super().to_native_messages(messages)
                return [{"role": "user", "text": "; ".join(item["text"] for item in items)}]

        session = self.ask(drive, Merging(ANSWER))

        assert indices(session) == [None, None, None, (1,)]
        assert [m.content for m in session.messages] == ["be brief", "welcome", "hello", "hello yourself"]

    def test_they_follow_their_items_when_a_feature_adds_some(self, drive: Drive) -> None:
        class Adding:
            name = "adding"
            version = "1"

            def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
                first, *rest = native_messages
                return [first, {"role": "user", "text": "(by the way)"}, *rest]

        session = self.ask(drive, ItemProvider(ANSWER), Adding)

        assert indices(session) == [(0,), (2,), (3,), (4,)]

    def test_one_whose_item_a_feature_removed_does_not_pretend_to_know_it(self, drive: Drive) -> None:
        class Removing:
            name = "removing"
            version = "1"

            def to_native_messages(self, messages: Dicts, native_messages: Dicts) -> Dicts:
                return native_messages[1:]

        session = self.ask(drive, ItemProvider(ANSWER), Removing)

        assert indices(session) == [None, (0,), (1,), (2,)]


class TestArguments:
    def test_without_a_provider_nothing_can_be_asked(self, drive: Drive) -> None:
        core = AgentCore()

        with pytest.raises(NoProviderError, match="register_provider"):
            drive(core, core.create_session(), {})

    @pytest.mark.parametrize("session", [None, {}, {"session_id": "x", "messages": []}])
    def test_a_session_must_be_one(self, drive: Drive, session: Any) -> None:
        core, _ = asking(EchoProvider)

        with pytest.raises(ArgumentTypeError, match="session must be a Session"):
            drive(core, session, {})

    @pytest.mark.parametrize("config", [None, "echo", [("model", "echo")]])
    def test_a_configuration_must_be_a_dict(self, drive: Drive, config: Any) -> None:
        core, session = asking(EchoProvider)

        with pytest.raises(ConfigTypeError, match="config must be a dict"):
            drive(core, session, config)

    def test_a_context_must_be_a_dict(self, drive: Drive) -> None:
        core, session = asking(EchoProvider)

        with pytest.raises(ArgumentTypeError, match="context must be a dict"):
            drive(core, session, {}, context=["app"])

    def test_a_cancellation_must_take_callbacks(self, drive: Drive) -> None:
        core, session = asking(EchoProvider)

        with pytest.raises(ArgumentTypeError, match="add_callback"):
            drive(core, session, {}, cancellation=True)

    def test_the_callers_context_and_config_are_not_changed(self, drive: Drive) -> None:
        core, session = asking(EchoProvider)
        config: dict[str, Any] = {"model": "echo", "nested": {"list": [1]}}
        context = {"mine": {"list": [1]}}

        drive(core, session, config, context=context)

        assert config == {"model": "echo", "nested": {"list": [1]}}
        assert context == {"mine": {"list": [1]}}
        config["nested"]["list"].append(2)  # still the caller's own list, and no frozen one


def test_an_answer_survives_an_action_that_fails_after_it(drive: Drive) -> None:
    def fail(context: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("no such thing")

    core, before = asking(EchoProvider, Adjusting(fail))

    after, messages, _ = drive(core, before, {})

    assert said(after)[-1] == ("assistant", "hello")
    assert [message["content"] for message in messages] == ["hello"]
    assert said(before) == [("user", "hello")]

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.frozen import freeze
from agent_provider_kit import RequestRefused
from agent_testing import anthropic_reply, error_reply, json_reply
from anthropic_provider.request import compose, places, takes_system_role

if TYPE_CHECKING:
    from agent_testing import Talk


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look_up", "input": {}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": blocks[0] if isinstance(blocks[0], str) else list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {**user(*blocks), "role": "assistant"}


def system(content: Any) -> dict[str, Any]:
    return {"role": "system", "content": content}


def test_system_messages_at_the_beginning_are_the_system_prompt() -> None:
    sent = compose([system("Be brief."), system([text("Be kind.")]), user("Hi")])

    assert sent.system == [text("Be brief."), text("Be kind.")]
    assert sent.messages == [user("Hi")]


def test_a_later_system_message_stays_where_it_is() -> None:
    items = [user("Hi"), system("Be brief."), assistant("Hello"), system([text("Be kind.")]), user("Bye")]

    older, newer = compose(items), compose(items, system_role=True)

    assert older.system is None and newer.system is None
    marked = [text("<system>\nBe brief.\n</system>"), text("<system>\nBe kind.\n</system>")]
    assert older.messages == [user(text("Hi"), marked[0]), assistant("Hello"), user(marked[1], text("Bye"))]
    assert newer.messages == [*items[:3], user(marked[1], text("Bye"))]


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-opus-4-8", True),
        ("claude-opus-4-8-20260528", True),
        ("claude-sonnet-5-5", True),
        ("claude-opus-4-1-20250805", False),
        ("claude-haiku-4-5-20251001", False),
        ("claude-3-7-sonnet-20250219", False),
        (None, False),
    ],
)
def test_which_models_take_system_messages_later_on(model: Any, takes: bool) -> None:
    assert takes_system_role(model) is takes


def test_a_server_that_does_not_take_the_role_gets_the_words(talk: Talk) -> None:
    talk.add("user", "Hi").add("system", "Be brief.")
    complaint = error_reply(400, 'messages.1.role: Input should be "user" or "assistant", not "system"')

    talk.call(complaint, anthropic_reply("Hello"), model="claude-opus-4-8")

    first, second = (request.json["messages"] for request in talk.server.requests)
    assert first[1] == {"role": "system", "content": "Be brief."}
    assert second == [user(text("Hi"), text("<system>\nBe brief.\n</system>"))]


@pytest.mark.parametrize("items", [[("system", "Write a poem.")], [("system", "Be brief."), ("user", "")]])
def test_instructions_alone_are_answered(talk: Talk, items: list[tuple[Any, str]]) -> None:
    for role, content in items:
        talk.add(role, content)
    talk.call(anthropic_reply("Roses are red."))

    assert talk.sent["system"] == items[0][1]
    assert talk.sent["messages"] == [{"role": "user", "content": "(The conversation begins here.)"}]


def test_without_any_message_nothing_is_sent(talk: Talk) -> None:
    with pytest.raises(RequestRefused, match="there is no message to send"):
        talk.call(anthropic_reply("Hello"))
    assert not talk.server.requests


def test_one_system_message_is_sent_as_the_text_that_it_is() -> None:
    assert compose([system("Be brief."), user("Hi")]).system == "Be brief."
    assert compose([system(""), user("Hi")]).system is None
    assert compose([user("Hi")]).system is None


def test_items_of_one_role_become_one_message() -> None:
    sent = compose([user("One"), user(text("Two"), text("Three")), assistant("Four")])

    assert sent.messages == [user(text("One"), text("Two"), text("Three")), assistant("Four")]


def test_results_come_first_in_a_merged_message() -> None:
    items = [user("Hi"), assistant(call("a"), call("b")), user("Wait"), user(result("a")), user(result("b"))]

    assert compose(items).messages[-1]["content"] == [result("a"), result("b"), text("Wait")]
    assert compose([user("Hi"), assistant(call("a")), user(text("Wait"), result("a"))]).messages[-1][
        "content"
    ] == [result("a"), text("Wait")]


def test_a_conversation_that_begins_with_the_assistant_gets_an_opening() -> None:
    sent = compose([assistant("Where were we?"), user("Here.")])

    assert [message["role"] for message in sent.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    "nothing", ["", " \n", [], [{"type": "text", "text": ""}], [{"type": "text", "text": "\n"}]]
)
def test_a_message_of_nothing_is_not_sent(nothing: Any) -> None:
    items = [user("Hi"), {"role": "assistant", "content": nothing}, user("Hello?")]

    assert compose(items).messages == [user(text("Hi"), text("Hello?"))]


def test_blank_text_stays_between_words_and_goes_where_there_are_none() -> None:
    assert compose([user("Hi"), assistant(text("\n\n"), text(""), text("4"))]).messages[1]["content"] == [
        text("\n\n"),
        text("4"),
    ]
    assert compose([user("Hi"), assistant(text("\n\n"), call("a"))]).messages[1]["content"] == [call("a")]


def test_what_is_only_ours_is_never_sent_and_what_is_unknown_is() -> None:
    item = {**user("Hi"), "_metadata": {"usage": {}}, "priority": 7}

    assert compose([item]).messages == [{"role": "user", "content": "Hi", "priority": 7}]


def test_items_are_only_read() -> None:
    items = freeze([user("One"), user(text("Two"), result("a")), assistant(text(""), text("Four"))])

    assert compose(items) == compose(items)


def test_every_block_that_is_sent_can_be_found_again() -> None:
    items = [
        assistant(text(""), text("Well?")),
        user("One"),
        system("Be brief."),
        user(text("Two"), result("a")),
        assistant(text("\n"), call("b")),
    ]

    sent = compose(items).messages
    located = places(items)

    assert located == [[], [(0, 1)], [(3, 1), (1, 0), (2, 0), (3, 0)], [(4, 1)]]
    assert [len(message["content"]) for message in sent[1:]] == [len(places) for places in located[1:]]


def test_native_history_keeps_one_item_per_message(talk: Talk) -> None:
    talk.add("system", "Be brief.").add("user", "One").add("user", "Two").call(anthropic_reply("Three"))

    assert talk.sent["system"] == "Be brief."
    assert talk.sent["messages"] == [user(text("One"), text("Two"))]
    assert [item["role"] for item in talk.native] == ["system", "user", "user", "assistant"]
    assert [list(message.native_indices or ()) for message in talk.session.messages] == [[0], [1], [2], [3]]


def test_an_edited_message_keeps_the_others_items(talk: Talk) -> None:
    talk.add("user", "One").call(anthropic_reply("Two", reasoning="Hm."))
    talk.add("user", "Three").call(anthropic_reply("Four"))
    before = talk.native

    talk.session = talk.core.modify_message(talk.session, 2, "Drei", talk.config)

    assert talk.native == [*before[:2], user("Drei"), before[3]]


def test_fields_that_nobody_knows_survive_a_round_trip(talk: Talk) -> None:
    odd = {"type": "text", "text": "Hello.", "mood": "fine", "nested": {"deep": [1, None]}}
    thinking = {"type": "thinking", "thinking": "", "signature": "c2ln", "display": "omitted"}
    answer = {
        "id": "msg_1",
        "role": "assistant",
        "content": [thinking, odd, {**call("a"), "caller": {"type": "direct"}}],
        "stop_reason": "tool_use",
        "aura": "blue",
    }
    talk.add("user", "Hi").call(json_reply(answer))
    talk.add("tool", "ok", metadata={"tool_call_id": "a"}).call(anthropic_reply("Fine."))

    assert talk.sent["messages"][1] == {"role": "assistant", "content": answer["content"]}
    assert talk.native[1]["_metadata"]["response"] == {"aura": "blue"}

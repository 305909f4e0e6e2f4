from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core.frozen import freeze, thaw
from anthropic_provider import AnthropicProvider
from anthropic_provider.messages import (
    blocks_of,
    is_call,
    is_result,
    is_server_call,
    is_server_result,
    is_text,
)
from anthropic_provider.repair import is_sound, repair_items, validate_items
from anthropic_provider.request import compose

Dicts = list[dict[str, Any]]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look_up", "input": {}}


def result(call_id: str, content: str = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def search(call_id: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def found(call_id: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": blocks[0] if blocks and isinstance(blocks[0], str) else list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {**user(*blocks), "role": "assistant"}


def test_a_good_history_is_returned_as_it_is() -> None:
    items = [
        {"role": "system", "content": "Be brief."},
        user("Hi"),
        assistant(text("Hm"), call("a"), call("b")),
        user(result("b")),
        user(result("a")),
        assistant(search("s"), found("s"), text("There.")),
        user("Thanks"),
    ]

    repaired, report = repair_items(items)

    assert repaired is items and report == [] and validate_items(items) == []
    assert is_sound(items)


def test_a_call_without_a_result_gets_a_truthful_one() -> None:
    repaired, [told] = repair_items([user("Hi"), assistant(call("a")), user("Hello?")])

    assert [item["role"] for item in repaired] == ["user", "assistant", "user", "user"]
    [answer] = repaired[2]["content"]
    assert answer["tool_use_id"] == "a" and answer["is_error"] and "may have run" in answer["content"]
    assert repaired[2]["_metadata"]["synthesized"] is True
    assert "'a'" in told


def test_a_call_at_the_very_end_gets_one_too() -> None:
    repaired, _report = repair_items([user("Hi"), assistant(call("a"), call("b")), user(result("b"))])

    assert [block["tool_use_id"] for item in repaired[2:] for block in item["content"]] == ["a", "b"]


def test_a_result_without_a_call_is_put_aside_and_still_read() -> None:
    items = [user("Hi"), assistant("Hello"), {**user(result("a", "tea")), "_metadata": {"x": 1}}, user("So?")]

    repaired, [told] = repair_items(items)

    assert "'a'" in told
    assert repaired[2]["content"] == []
    assert repaired[2]["_metadata"]["x"] == 1
    assert compose(repaired).messages[-1] == {"role": "user", "content": "So?"}
    message = AnthropicProvider().from_native_messages(repaired)[2]
    assert (message["role"], message["content"]) == ("tool", "tea")


def test_words_next_to_a_result_without_a_call_are_sent() -> None:
    repaired, _report = repair_items([user("Hi"), assistant("Hello"), user(result("a"), text("Well?"))])

    assert repaired[2]["content"] == [text("Well?")]


def test_of_two_results_the_first_counts() -> None:
    items = [user("Hi"), assistant(call("a")), user(result("a", "one")), user(result("a", "two"))]

    repaired, _report = repair_items(items)

    assert compose(repaired).messages[-1]["content"] == [result("a", "one")]


def test_a_result_that_comes_late_is_moved_to_its_call() -> None:
    late = {**user(result("a")), "_metadata": {"took": 3}}
    items = [user("Hi"), assistant(call("a")), user("Wait"), assistant("Yes?"), late, user("Go on")]

    repaired, report = repair_items(items)

    assert repaired == [items[0], items[1], late, items[2], items[3], items[5]]
    assert "moved" in report[0]


def test_a_late_result_among_words_leaves_the_words_where_they_are() -> None:
    items = [user("Hi"), assistant(call("a")), user("Wait"), assistant("Yes?"), user(result("a"), text("So"))]

    repaired, _report = repair_items(items)

    assert repaired[2] == user(result("a")) and repaired[-1] == user(text("So"))


def test_ids_that_two_joined_histories_share_are_made_different() -> None:
    half = [user("Hi"), assistant(call("a")), user(result("a")), assistant("There.")]

    repaired, report = repair_items([*half, *half])

    assert repaired[:4] == half
    assert repaired[5] == assistant(call("a_2")) and repaired[6] == user(result("a_2"))
    assert "renamed" in report[0]


def test_a_servers_call_without_its_result_is_put_aside_once_somebody_spoke() -> None:
    paused = [user("Hi"), assistant(text("Hm"), search("s"))]

    assert repair_items(paused) == (paused, [])
    repaired, [told] = repair_items([*paused, user("Never mind")])
    assert repaired[1]["content"] == [text("Hm")]
    assert repaired[1]["_metadata"]["dropped_blocks"][0]["block"] == search("s")
    assert "aside" in told


def test_a_servers_call_may_wait_for_its_result_while_our_tools_run() -> None:
    items = [
        user("Hi"),
        assistant(search("s"), call("a")),
        user(result("a")),
        assistant(found("s"), text("Ok")),
    ]

    assert repair_items(items[:3]) == (items[:3], [])
    assert repair_items(items) == (items, [])


def test_a_servers_result_without_its_call_is_put_aside() -> None:
    repaired, _report = repair_items([user("Hi"), assistant(found("s"), text("There.")), user("Thanks")])

    assert repaired[1]["content"] == [text("There.")]


def test_text_without_a_character_is_left_out() -> None:
    repaired, report = repair_items([user(text(""), text("Hi")), assistant(text(""))])

    assert repaired == [user(text("Hi")), {"role": "assistant", "content": []}]
    assert len(report) == 2


def test_a_system_message_between_a_call_and_its_result_does_no_harm() -> None:
    items = [user("Hi"), assistant(call("a")), {"role": "system", "content": "Be brief."}, user(result("a"))]

    assert repair_items(items) == (items, [])


def test_signatures_are_left_to_the_api_to_judge() -> None:
    foreign = {"type": "thinking", "thinking": "Hm", "signature": "of another model"}
    items = [user("Hi"), {**assistant(foreign, text("Ok")), "_metadata": {"model": "another"}}, user("So")]

    assert repair_items(items) == (items, [])


# Properties

IDS = st.sampled_from(["a", "b", "c"])
WORDS = st.sampled_from(["", " ", "tea", "milk"])
SPOKEN = st.builds(text, WORDS)
USER_BLOCKS = st.lists(
    st.one_of(SPOKEN, st.builds(result, IDS), st.just({"type": "image", "source": {}})), max_size=4
)
ASSISTANT_BLOCKS = st.lists(
    st.one_of(
        SPOKEN,
        st.builds(call, IDS),
        st.builds(search, st.sampled_from(["s", "t"])),
        st.builds(found, st.sampled_from(["s", "t"])),
        st.just({"type": "thinking", "thinking": "Hm", "signature": "x"}),
        st.just({"type": "hologram"}),
    ),
    max_size=4,
)
ITEMS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.just("user"), "content": st.one_of(WORDS, USER_BLOCKS)}),
        st.fixed_dictionaries({"role": st.just("assistant"), "content": st.one_of(WORDS, ASSISTANT_BLOCKS)}),
        st.fixed_dictionaries({"role": st.just("system"), "content": WORDS}),
    ),
    max_size=9,
)


def complaints(items: Dicts) -> list[str]:
    """What the API would say to this history, by its documented rules."""
    sent = [{**message, "content": blocks_of(message)} for message in compose(items).messages]
    wrong = [f"{n}: empty" for n, message in enumerate(sent) if not message["content"]]
    roles = [message["role"] for message in sent]
    if roles and roles != (["user", "assistant"] * len(roles))[: len(roles)]:
        wrong.append(f"roles: {roles}")
    every = [block for message in sent for block in message["content"]]
    ids = [block["id"] for block in every if is_call(block)]
    if len(ids) != len(set(ids)):
        wrong.append(f"calls twice: {ids}")
    wrong += [f"empty text in {n}" for n, block in enumerate(every) if is_text(block) and not block["text"]]
    return [*wrong, *_unpaired(sent), *_unpaired_servers(sent)]


def _unpaired(sent: Dicts) -> list[str]:
    wrong = []
    for number, message in enumerate([*sent, user()]):
        before = sent[number - 1]["content"] if number else []
        asked = [block["id"] for block in before if is_call(block)]
        kinds = [is_result(block) for block in message["content"]]
        given_ids = [block["tool_use_id"] for block in message["content"] if is_result(block)]
        if message["role"] == "user" and (sorted(asked) != sorted(given_ids) or kinds != sorted(kinds)[::-1]):
            wrong.append(f"{number}: asked {asked}, answered {given_ids}, order {kinds}")
    return wrong


def _unpaired_servers(sent: Dicts) -> list[str]:
    every = [(number, block) for number, message in enumerate(sent) for block in message["content"]]
    spoken = max((n for n, block in every if sent[n]["role"] == "user" and not is_result(block)), default=-1)
    wrong = []
    for place, (number, block) in enumerate(every):
        before = [earlier.get("id") for _n, earlier in every[:place] if is_server_call(earlier)]
        after = [later["tool_use_id"] for _n, later in every[place:] if is_server_result(later)]
        if is_server_call(block) and block["id"] not in after and spoken > number:
            wrong.append(f"{number}: no result for {block['id']}")
        if is_server_result(block) and block["tool_use_id"] not in before:
            wrong.append(f"{number}: no call for {block['tool_use_id']}")
    return wrong


def said(items: Dicts) -> list[str]:
    return sorted(
        block["text"]
        for item in items
        for block in blocks_of(item)
        if item["role"] != "assistant" and is_text(block) and block["text"]
    )


@given(ITEMS)
def test_a_repair_is_accepted_final_deterministic_and_loses_no_word(items: Dicts) -> None:
    """All laws on the same histories: making one up takes longer than checking it."""
    frozen: Any = freeze(items)
    provider = AnthropicProvider()
    repaired, report = repair_items(items)

    assert complaints(repaired) == []
    assert not is_sound(items) or complaints(items) == []
    assert repair_items(repaired) == (repaired, [])
    assert thaw(repair_items(frozen)) == [repaired, report] and thaw(frozen) == items
    assert validate_items(frozen) == report
    assert said(repaired) == said(items)
    messages = provider.from_native_messages(repaired)
    assert len(messages) >= len(repaired)
    assert len(provider.to_native_messages(messages)) == len(messages)


@pytest.mark.parametrize("content", [None, 7, [None], ["text"]])
def test_content_that_makes_no_sense_does_not_stop_the_repair(content: Any) -> None:
    repaired, _report = repair_items([{"role": "user", "content": content}, user("Hi")])

    assert compose(repaired).messages == [user("Hi")]

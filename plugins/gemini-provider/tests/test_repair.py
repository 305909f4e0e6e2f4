from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core.frozen import freeze, thaw
from gemini_provider import GeminiProvider
from gemini_provider.messages import calls_in, find_call, is_response, is_text, parts_of
from gemini_provider.repair import repair_items, validate_items
from gemini_provider.request import compose

Dicts = list[dict[str, Any]]


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return {**user(*parts), "role": "model"}


def call(call_id: str | None, name: str = "f") -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **({"id": call_id} if call_id else {})}}


def result(call_id: str | None, name: str = "f") -> dict[str, Any]:
    body = {"name": name, "response": {"output": "ok"}, **({"id": call_id} if call_id else {})}
    return {"functionResponse": body}


def test_a_good_history_is_returned_as_it_is() -> None:
    items = [
        {"role": "system", "parts": [{"text": "Be brief."}]},
        user("Hi"),
        model("Hm", call("a"), call("b")),
        user(result("b")),
        user(result("a")),
        model({"text": "", "thoughtSignature": "c2ln"}),
        user("Thanks"),
        model(call(None), call(None, "g")),
        user(result(None, "g"), result(None)),
        model(),
    ]

    repaired, report = repair_items(items)

    assert repaired is items and report == [] and GeminiProvider().validate_native(items) == []


def test_a_call_without_a_result_gets_a_truthful_one() -> None:
    repaired, [told] = repair_items([user("Hi"), model(call("a")), user("Hello?")])

    assert [item["role"] for item in repaired] == ["user", "model", "user", "user"]
    answer = repaired[2]["parts"][0]["functionResponse"]
    assert answer["id"] == "a" and answer["name"] == "f" and "may have run" in answer["response"]["error"]
    assert repaired[2]["_metadata"]["synthesized"] is True
    assert "'a'" in told


def test_a_call_without_an_id_is_answered_too_and_the_answer_is_sent_without() -> None:
    repaired, _report = repair_items([user("Hi"), model(call(None), call(None, "g"))])

    contents = compose(repaired, sentinels=False).contents
    assert [part["functionResponse"]["name"] for part in contents[2]["parts"]] == ["f", "g"]
    assert "id" not in contents[2]["parts"][0]["functionResponse"]


def test_a_result_that_answers_no_call_is_put_aside_and_stays_readable() -> None:
    repaired, [told] = GeminiProvider().repair_native([user("Hi"), user(result("x")), user("Hello?")])

    assert repaired[1]["parts"] == []
    assert repaired[1]["_metadata"]["dropped_parts"][0]["part"] == result("x")
    assert "answer no call" in told
    readable = GeminiProvider().from_native_messages(repaired)
    assert [message["role"] for message in readable] == ["user", "tool", "user"]


def test_a_late_result_is_moved_to_its_call() -> None:
    late = {**user(result("a")), "_metadata": {"display": "x"}}
    repaired, [told] = repair_items([user("Hi"), model(call("a")), user("Hm?"), late])

    assert repaired == [user("Hi"), model(call("a")), late, user("Hm?")]
    assert "moved" in told


def test_a_result_next_to_words_stays_with_them() -> None:
    items = [user("Hi"), model(call("a"), call("b")), user("so", result("b"))]
    repaired, _report = repair_items(items)

    assert repaired[3] == items[2]
    assert [part["functionResponse"]["id"] for part in repaired[2]["parts"]] == ["a"]
    contents = compose(repaired, sentinels=False).contents
    assert [part["functionResponse"]["id"] for part in contents[2]["parts"]] == ["a", "b"]
    assert contents[3] == user("so")


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"role": "assistant", "parts": [{"text": "a"}]}, "model"),
        ({"role": "function", "parts": [{"text": "a"}]}, "user"),
        ({"parts": [{"text": "a"}]}, "user"),
        ({"role": "user", "parts": "a"}, "user"),
        ({"role": "user", "content": "a"}, "user"),
        ({"role": "user", "parts": ["a", None, 3]}, "user"),
        ({"role": "user", "parts": [{}, {"text": ""}, {"text": "a"}]}, "user"),
    ],
)
def test_items_of_another_form_keep_their_words(item: dict[str, Any], role: str) -> None:
    repaired, report = repair_items([item])

    assert repaired == [{"role": role, "parts": [{"text": "a"}]}] and report


def test_calls_and_results_on_the_wrong_side_are_put_aside() -> None:
    repaired, report = repair_items([user("Hi", call("a")), model("so", result("a"))])

    assert [item["parts"] for item in repaired] == [[{"text": "Hi"}], [{"text": "so"}]]
    assert len(report) == 2


def test_the_same_id_in_two_turns_is_no_problem() -> None:
    items = [user("a"), model(call("x")), user(result("x")), user("b"), model(call("x")), user(result("x"))]

    assert validate_items(items) == []


IDS = st.sampled_from([None, "a", "b"])
TEXTS = st.sampled_from(["", "hello", "so"]).map(lambda words: {"text": words})
PARTS = st.one_of(
    TEXTS,
    st.builds(call, IDS, st.sampled_from("fg")),
    st.builds(result, IDS, st.sampled_from("fg")),
    st.just({"text": "", "thoughtSignature": "s"}),
    st.just({}),
    st.just("words"),
)
ITEMS = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "model", "user", "model", "tool", None]),
        "parts": st.one_of(st.lists(PARTS, max_size=4), st.just("plain"), st.none()),
    },
    optional={"_metadata": st.just({"call_ids": ["m1", None, "m2"]})},
)


def words_of(items: Dicts) -> list[str]:
    found: list[str] = []
    for item in items:
        parts = item.get("parts")
        for part in parts if isinstance(parts, list) else [parts]:
            text = part.get("text") if isinstance(part, dict) else part
            found += [text] if text else []
    return sorted(found)


@given(st.lists(ITEMS, max_size=8))
def test_a_repair_is_final_keeps_every_word_and_can_be_sent_and_read(items: Dicts) -> None:
    """All laws on the same histories: making one up takes longer than checking it."""
    lent = freeze(items)
    repaired, report = repair_items(lent)

    assert repair_items(lent) == (repaired, report)
    assert repair_items(freeze(repaired)) == (thaw(repaired), [])
    assert thaw(lent) == items
    repaired = thaw(repaired)
    assert words_of(repaired) == words_of(items)
    every_call_is_answered_at_once(compose(repaired, sentinels=True).contents)
    messages = GeminiProvider().from_native_messages(repaired)
    read = "".join(message["content"] for message in messages if message["role"] != "tool")
    spoken = "".join(part["text"] for item in repaired for part in parts_of(item) if is_text(part))
    assert sorted(read) == sorted(spoken)


def every_call_is_answered_at_once(contents: Dicts) -> None:
    for place, content in enumerate(contents):
        assert content["parts"] and "_metadata" not in content
        calls = calls_in(content)
        responses = [part for part in parts_of(content) if is_response(part)]
        if calls:
            assert place > 0 and contents[place - 1]["role"] == "user"
            answers = list(contents[place + 1]["parts"])
            assert len(answers) == len(calls)
            for one in calls:
                match = next(each for each in answers if find_call(each, [one]))
                answers.remove(match)
        if responses:
            assert all(map(is_response, content["parts"]))
            assert calls_in(contents[place - 1])

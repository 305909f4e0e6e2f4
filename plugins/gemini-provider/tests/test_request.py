from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core.frozen import freeze
from agent_provider_kit import RequestRefused
from agent_testing import ToolCall, error_reply, gemini_reply
from gemini_provider.request import SENTINEL, compose, demands_signatures

if TYPE_CHECKING:
    from agent_testing import Talk

Dicts = list[dict[str, Any]]


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any, **about: Any) -> dict[str, Any]:
    return {**user(*parts), "role": "model", **({"_metadata": about} if about else {})}


def call(name: str, call_id: str | None = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **({"id": call_id} if call_id else {})}, **more}


def result(name: str, call_id: str | None = None, output: str = "ok") -> dict[str, Any]:
    body = {"name": name, "response": {"output": output}, **({"id": call_id} if call_id else {})}
    return {"functionResponse": body}


def sent(*items: Any, sentinels: bool = False) -> Dicts:
    return compose(freeze(list(items)), sentinels=sentinels).contents


def test_system_messages_become_the_system_instruction(talk: Talk) -> None:
    talk.add("system", "Be brief.").add("user", "Hi").add("system", "Be kind.").call(gemini_reply("Yo"))

    assert talk.sent["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    assert talk.sent["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert [item["role"] for item in talk.native] == ["system", "user", "system", "model"]


@pytest.mark.parametrize("items", [[("system", "Write a poem.")], [("system", "Be brief."), ("user", "")]])
def test_instructions_alone_are_answered(talk: Talk, items: list[tuple[Any, str]]) -> None:
    for role, content in items:
        talk.add(role, content)
    talk.call(gemini_reply("Roses are red."))

    assert talk.sent["systemInstruction"] == {"parts": [{"text": items[0][1]}]}
    assert talk.sent["contents"] == [user("(The conversation begins here.)")]


def test_without_any_message_nothing_is_sent(talk: Talk) -> None:
    with pytest.raises(RequestRefused, match="there is no message to send"):
        talk.call(gemini_reply("Hello"))
    assert not talk.server.requests


def test_consecutive_items_of_one_role_become_one_content() -> None:
    assert sent(user("a"), user("b"), model("c"), model("d"), user("e")) == [
        user("a", "b"),
        model("c", "d"),
        user("e"),
    ]


def test_empty_items_and_parts_are_not_sent() -> None:
    assert sent(user("a"), model(), model(""), user("", "b")) == [user("a", "b")]


def test_results_come_together_in_the_order_of_their_calls() -> None:
    contents = sent(
        user("q"),
        model(call("f", "1"), call("g", "2")),
        user(result("g", "2")),
        user(result("f", "1")),
        user("and?"),
    )

    assert contents[2:] == [user(result("f", "1"), result("g", "2")), user("and?")]


def test_ids_of_ours_are_not_sent_and_the_order_tells_the_calls_apart() -> None:
    contents = sent(
        user("q"),
        model(call("f"), call("f"), call_ids=["ours_1", "ours_2"]),
        user(result("f", "ours_2", "second")),
        user(result("f", "ours_1", "first")),
    )

    assert contents[1] == model(call("f"), call("f"))
    assert contents[2] == user(result("f", output="first"), result("f", output="second"))


def test_an_item_that_says_nothing_does_not_come_between_calls_and_results() -> None:
    asked = model(call("f"), call("f"), call_ids=["ours_1", "ours_2"])
    contents = sent(
        user("q"), asked, user(result("f", "ours_2", "b")), model(), user(result("f", "ours_1", "a"))
    )

    assert contents[2] == user(result("f", output="a"), result("f", output="b"))


def test_a_result_without_its_tools_name_gets_it_from_the_call() -> None:
    assert sent(user("q"), model(call("f", "1")), user(result("tool", "1")))[2] == user(result("f", "1"))


def test_a_call_is_never_the_first_thing_that_is_said() -> None:
    contents = sent(model(call("f", "1")), user(result("f", "1")))

    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert sent(model("hello"), user("hi")) == [model("hello"), user("hi")]


def test_a_whole_round_of_calls_without_ids_is_sent_as_it_came(talk: Talk) -> None:
    talk.add("user", "Hi").stream(
        gemini_reply(tool_calls=[ToolCall("f", {"n": 1}), ToolCall("f", {"n": 2})], signature="c2ln")
    )
    talk.answer("two", 1).answer("one", 0).call(gemini_reply("Done."))

    assert talk.sent["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": "c2ln"},
                {"functionCall": {"name": "f", "args": {"n": 2}}},
            ],
        },
        user(result("f", output="one"), result("f", output="two")),
    ]


def test_only_the_first_call_of_each_step_of_the_current_turn_gets_the_sentinel() -> None:
    contents = sent(
        user("before"),
        model(call("f", "0")),
        user(result("f", "0")),
        user("now"),
        model("hm", call("f", "1"), call("g", "2")),
        user(result("f", "1"), result("g", "2")),
        model(call("f", "3", thoughtSignature="own")),
        user(result("f", "3")),
        model(call("f", "4")),
        user(result("f", "4")),
        sentinels=True,
    )

    signatures = [
        [part.get("thoughtSignature") for part in content["parts"] if "functionCall" in part]
        for content in contents
        if content["role"] == "model"
    ]
    assert signatures == [[None], [SENTINEL, None], ["own"], [SENTINEL]]


@pytest.mark.parametrize(
    ("name", "demanded"),
    [
        ("gemini-3-pro-preview", True),
        ("gemini-flash-latest", True),
        ("gemini-2.5-flash", False),
        ("models/gemini-1.5-pro", False),
        ("publishers/google/models/gemini-2.0-flash", False),
        ("gemma-3-27b-it", False),
    ],
)
def test_models_before_gemini_3_get_no_sentinel(name: str, demanded: bool) -> None:
    assert demands_signatures(name) is demanded


def test_signatures_that_the_api_refuses_are_left_out_once_and_for_all(talk: Talk) -> None:
    talk.add("user", "Hi").call(gemini_reply(tool_calls=[ToolCall("f", id="1")], signature="Zm9yZWlnbg=="))
    refusal = error_reply(400, "Corrupted thought signature.", code="INVALID_ARGUMENT", wire="gemini")
    talk.answer("ok").call(refusal, gemini_reply("Done."))

    assert talk.last["content"] == "Done."
    assert talk.sent["contents"][1]["parts"][0]["thoughtSignature"] == SENTINEL
    assert talk.session.metadata["refused_signatures"]["reason"] == "Corrupted thought signature."
    assert talk.native[1]["parts"][0]["thoughtSignature"] == "Zm9yZWlnbg=="
    talk.add("user", "More").stream(gemini_reply("Yes."))
    assert "Zm9yZWlnbg==" not in str(talk.sent) and len(talk.server.requests) == 4


def test_a_model_that_demands_a_signature_unexpectedly_gets_the_sentinel(talk: Talk) -> None:
    call_ = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    talk.add("user", "Hi").add("assistant", "", metadata={"tool_calls": [call_]})
    talk.add("tool", "ok", metadata={"tool_call_id": "1", "tool_name": "f"})
    refusal = error_reply(400, "missing a thought_signature", code="INVALID_ARGUMENT", wire="gemini")
    talk.stream(refusal, gemini_reply("Done."), model="gemini-2.5-pro")

    assert talk.server.requests[0].json["contents"][1]["parts"] == [call("f", "1")]
    assert talk.sent["contents"][1]["parts"] == [call("f", "1", thoughtSignature=SENTINEL)]


def test_other_refusals_are_not_tried_again(talk: Talk) -> None:
    with pytest.raises(RequestRefused):
        talk.add("user", "Hi").call(
            error_reply(400, "no such field", code="INVALID_ARGUMENT", wire="gemini"), gemini_reply("no")
        )
    assert len(talk.server.requests) == 1

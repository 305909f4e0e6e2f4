"""Whole runs that outgrow the window."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core import AgentError, Message, Session
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import AgentRuntimeBuilder, AgentSpec, ContextPolicy, ModelSpec, RunRequest
from agent_runtime.context.records import COMPACTIONS, read_records, summary_message
from agent_runtime.suspension import STATE

SECTIONS = {"retry": {"max_retries": 0, "stream_retries": 0}}


class TooLongError(AgentError):
    """What a provider raises that refuses the length of a request."""

    category = "window"


def conversation(length: int) -> Session:
    roles = ("user", "assistant")
    return Session("s", [Message(roles[turn % 2], f"turn {turn} ".ljust(400, "a")) for turn in range(length)])


def run(
    script: list[Any], session: Session, *, window: int | None = 1000, sections: Any = None, **policy: Any
) -> tuple[list[dict[str, Any]], ScriptedProvider]:
    provider = ScriptedProvider(script)
    context = ContextPolicy(**{"keep_recent": 2, "reserve_tokens": 100, **policy})
    spec = AgentSpec("a", "m", context_policy=context, sections={**SECTIONS, **(sections or {})})
    builder = AgentRuntimeBuilder().with_agent_spec(spec).with_provider("scripted", provider)
    runtime = (
        builder.with_model(ModelSpec("m", "scripted", context_window=window)).with_tool("look", look).build()
    )
    return list(runtime.run(RunRequest("a", "Go on.", session))), provider


def look(place: str) -> str:
    """Look at a place.

    Args:
        place: Where.
    """
    return f"{place} ".ljust(800, "b")


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def sent(provider: ScriptedProvider, request: int) -> list[str]:
    return [item["content"] for item in provider.requests[request].native_messages]


def test_a_conversation_that_outgrows_the_window_goes_on_with_a_summary() -> None:
    session = conversation(8)

    events, provider = run(["They talked.", "Here I am."], session)

    end = events[-1]
    assert (end["reason"]["code"], end["text"]) == ("natural_end", "Here I am.")
    assert [event["messages"] for event in of_type(events, "compaction")] == [7]
    assert sent(provider, 1) == [
        summary_message("They talked.").content,
        session.messages[7].content,
        "Go on.",
    ]


def test_the_session_keeps_every_message_and_nothing_else() -> None:
    session = conversation(8)

    events, _provider = run(["They talked.", "Here I am."], session)

    kept = [message.content for message in events[-1]["session"].messages]
    assert kept == [*(message.content for message in session.messages), "Go on.", "Here I am."]


def test_the_summary_is_still_sent_in_the_next_run() -> None:
    events, _provider = run(["They talked.", "Here I am."], conversation(8))

    events, provider = run(["Again."], Session.from_dict(events[-1]["session"].to_dict()))

    assert sent(provider, 0)[0] == summary_message("They talked.").content
    assert of_type(events, "compaction") == of_type(events, "warning") == []


def test_a_request_that_is_refused_for_its_length_is_made_again_with_a_summary() -> None:
    script = [TooLongError("8192 tokens at most"), "They talked.", "Here I am."]

    events, provider = run(script, conversation(8), window=None)

    assert events[-1]["reason"]["code"] == "natural_end"
    assert len(of_type(events, "compaction")) == 1
    assert [len(request.native_messages) for request in provider.requests] == [9, 2, 3]


def test_a_model_that_only_makes_things_longer_is_asked_at_most_twice() -> None:
    calls = [Reply(tool_calls=[ToolCall("look", {"place": str(number)})]) for number in range(4)]
    script = ["a" * 1800, calls[0], "a" * 9000, *calls[1:], "Done."]

    events, provider = run(script, conversation(8))

    assert events[-1]["text"] == "Done."
    refused = [event for event in of_type(events, "warning") if "summar" in event["message"]]
    assert len(refused) == 2
    assert len(provider.requests) == len(script)
    assert any("left out here" in (content or "") for content in sent(provider, -1))


def test_the_tools_of_the_agent_are_not_offered_for_a_summary() -> None:
    _events, provider = run(["They talked.", "Here I am."], conversation(8))

    assert not provider.requests[0].config["tools"]
    assert provider.requests[1].config["tools"]


def test_what_the_provider_counts_is_remembered_in_the_session() -> None:
    events, _provider = run([Reply(text="Yes.", usage={"input_tokens": 1000})], conversation(5))

    [ratio] = events[-1]["session"].metadata[STATE]["context.calibration"].values()
    assert ratio > 1


@pytest.mark.parametrize("cache", [True, False])
def test_the_provider_is_asked_to_cache_as_the_policy_says(cache: bool) -> None:
    _events, provider = run(["Yes."], conversation(1), prompt_cache=cache)

    assert provider.requests[0].config["cache"] is cache


def test_a_summary_of_an_edited_session_is_given_up() -> None:
    events, _provider = run(["They talked.", "Here I am."], conversation(8))
    data = events[-1]["session"].to_dict()
    data["messages"][0]["content"] = "edited"

    events, provider = run(["Again."], Session.from_dict(data), compact_at=1, max_tokens=900, truncate=True)

    assert any("edited" in event["message"] for event in of_type(events, "warning"))
    assert summary_message("They talked.").content not in sent(provider, 0)


def test_records_are_found_in_the_session() -> None:
    events, _provider = run(["They talked.", "Here I am."], conversation(8))

    [record] = read_records(events[-1]["session"].metadata[STATE][COMPACTIONS.name])
    assert (record.upto, record.summary, record.at_round) == (7, "They talked.", 1)


def within(most: int) -> Any:
    """Return a model that refuses more than some characters, and answers with how many it was sent."""

    def reply(messages: list[dict[str, Any]]) -> str:
        length = sum(len(str(message["content"] or "")) for message in messages)
        if length > most:
            raise TooLongError(f"{length} characters, and {most} at most")
        return "summary" if "<conversation>" in str(messages[-1]["content"]) else f"{length} characters"

    return reply


def test_one_message_that_nothing_can_shorten_is_sent_in_part_and_the_next_one_works() -> None:
    whole = f"FIRST {'a' * 100_000} LAST"
    session = Session("s", [Message("user", whole), Message("assistant", "I see.")])

    events, provider = run([within(5000)] * 30, session, window=None, compact_at=None, keep_recent=4)

    assert events[-1]["reason"]["code"] == "natural_end"
    kinds = [one["type"] for one in events if one["type"] == "text" or "middle is left out" in str(one)]
    assert kinds[:2] == ["warning", "text"] and kinds.count("warning") == 1
    [long] = [text for text in sent(provider, -1) if "FIRST" in (text or "")]
    assert long.endswith("LAST") and len(long) < 5000
    assert events[-1]["session"].messages[0].content == whole

    again, _provider = run([within(5000)] * 30, events[-1]["session"], window=None)

    assert again[-1]["reason"]["code"] == "natural_end"


def test_a_summary_is_asked_for_with_less_where_even_that_request_is_too_long() -> None:
    session = Session("s", [Message("user", "b" * 100_000), *conversation(8).messages])

    events, provider = run([within(6000)] * 30, session, window=None)

    assert events[-1]["reason"]["code"] == "natural_end"
    assert len(of_type(events, "compaction")) == 1
    assert events[-1]["session"].messages[0].content == "b" * 100_000
    assert "summary" in str(sent(provider, -1)[0])


def test_a_request_that_is_refused_whatever_is_sent_ends_the_run_with_the_reason() -> None:
    events, _provider = run([within(0)] * 40, conversation(8), window=None)

    assert events[-1]["reason"]["code"] == "error"
    assert "0 at most" in events[-1]["reason"]["detail"]

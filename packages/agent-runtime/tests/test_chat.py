"""A chat keeps what was said, in every way of reading its answers."""

from __future__ import annotations

import asyncio
import copy

import pytest

from agent_core import AgentError
from agent_core.testing import Reply, ScriptedProvider, ToolCall
from agent_runtime import Agent, Chat


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def asked(model: ScriptedProvider) -> list[list[object]]:
    """Return what the model read, request by request."""
    return [[message["content"] for message in request.native_messages] for request in model.requests]


def test_every_way_of_saying_something_continues_the_chat() -> None:
    model = ScriptedProvider(["One.", "Two.", Reply(chunks=["Th", "ree."]), Reply(chunks=["Fo", "ur."])])
    chat = Agent(model).chat()

    assert chat.run("1").output == "One."
    assert asyncio.run(chat.run_async("2")).output == "Two."
    assert list(chat.say("3")) == ["Th", "ree."]
    assert [event["text"] for event in chat.stream("4") if event["type"] == "text"] == ["Fo", "ur."]

    assert asked(model)[-1] == ["1", "One.", "2", "Two.", "3", "Three.", "4"]
    assert chat.result is not None and chat.result.output == "Four."
    assert repr(chat) == "<Chat: 8 messages>"


def test_words_are_handed_over_as_they_come() -> None:
    chat = Agent(ScriptedProvider([Reply(chunks=["a", "b"]), Reply(chunks=["c", "d"])])).chat()
    shown: list[str] = []

    chat.run("Go.", on_text=shown.append)
    asyncio.run(chat.run_async("On.", on_text=shown.append))

    assert shown == ["a", "b", "c", "d"]


def test_its_messages_are_what_a_person_reads() -> None:
    model = ScriptedProvider([Reply(tool_calls=[ToolCall("add", {"a": 1, "b": 2})]), "It is 3."])
    chat: Chat[str] = Agent(model, tools=[add]).chat()
    assert not chat.messages

    chat.run("How much is 1 and 2?")

    assert [(one.role, one.content) for one in chat.messages] == [
        ("user", "How much is 1 and 2?"),
        ("assistant", "It is 3."),
    ]


def test_a_chat_goes_on_after_a_failure() -> None:
    model = ScriptedProvider([RuntimeError("overloaded"), "Here I am."])
    chat = Agent(model).chat()

    with pytest.raises(AgentError, match="overloaded"):
        list(chat.say("Hello?"))

    assert chat.run("Still there?").output == "Here I am."
    assert asked(model)[-1][-1] == "Still there?"


def test_an_answer_that_is_left_early_is_kept_as_far_as_it_came() -> None:
    model = ScriptedProvider([Reply(chunks=["Once ", "upon ", "a time"]), "Yes."])
    chat = Agent(model).chat()

    words = chat.say("Tell me a story.")
    assert next(words) == "Once "
    words.close()
    chat.run("Go on.")

    assert asked(model)[-1] == ["Tell me a story.", "Once ", "Go on."]


def test_a_message_during_an_answer_waits_for_its_end() -> None:
    model = ScriptedProvider([Reply(chunks=["One", "."]), Reply(chunks=["Two", "."])])
    chat = Agent(model).chat()

    async def both() -> None:
        await asyncio.gather(chat.run_async("1"), chat.run_async("2"))

    asyncio.run(both())

    assert asked(model) == [["1"], ["1", "One.", "2"]]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copy_is_a_branch(way: object) -> None:
    model = ScriptedProvider(["Hello.", "Left.", "Right."])
    chat = Agent(model).chat()
    chat.run("Hi.")

    branch = way(chat)  # type: ignore[operator]
    chat.run("Go left.")
    branch.run("Go right.")

    assert asked(model)[-1] == ["Hi.", "Hello.", "Go right."]
    assert [one.content for one in chat.messages] == ["Hi.", "Hello.", "Go left.", "Left."]


def test_a_session_is_continued_with_the_options_of_the_chat() -> None:
    model = ScriptedProvider(["Hello.", "Again."])
    agent = Agent(model)
    session = agent.run("Hi.").session

    result = agent.chat(session=session, on_limit="return").run("And?")

    assert result.output == "Again."
    assert asked(model)[-1] == ["Hi.", "Hello.", "And?"]

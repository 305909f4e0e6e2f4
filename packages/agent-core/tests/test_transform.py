"""What is sent where a layer above chooses: the session keeps all of its own and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import AgentCore, ArgumentTypeError, Message, Session
from agent_core.drivers import call
from agent_core.testing import Reply, ScriptedProvider, ToolCall

if TYPE_CHECKING:
    from agent_core.pipeline.finish import TurnResult

Transform = Callable[[Sequence[Message]], Sequence[Message]]


def make(*script: Any) -> tuple[AgentCore, ScriptedProvider]:
    core, provider = AgentCore(), ScriptedProvider(script)
    core.register_provider(provider)
    return core, provider


def ask(core: AgentCore, session: Session, transform: Transform | None, *, stream: bool = True) -> TurnResult:
    return call(core.request_flow(session, {}, stream=stream, transform=transform))


def said(provider: ScriptedProvider) -> list[str]:
    return [item["content"] for item in provider.requests[-1].native_messages]


def talk(core: AgentCore, session: Session, *texts: str) -> Session:
    """Return a conversation whose every message has its native form."""
    for text in texts:
        session = ask(core, core.append_messages(session, [Message("user", text)]), None).session
    return session


@pytest.mark.parametrize("stream", [True, False])
def test_only_the_chosen_messages_are_sent_and_all_are_kept(stream: bool) -> None:
    core, provider = make("a", "b", "c")
    session = core.append_messages(talk(core, core.create_session(), "1", "2"), [Message("user", "3")])

    result = ask(core, session, lambda messages: messages[-1:], stream=stream)

    assert said(provider) == ["3"]
    assert [message.content for message in result.session.messages] == ["1", "a", "2", "b", "3", "c"]
    assert [message.native_indices for message in result.session.messages] == [(n,) for n in range(6)]
    assert "native_rebuilt" not in result.session.metadata


def test_messages_of_ones_own_are_sent_among_them_and_not_kept() -> None:
    core, provider = make("a", "b", "c")
    session = core.append_messages(talk(core, core.create_session(), "1"), [Message("user", "2")])

    def framed(messages: Sequence[Message]) -> list[Message]:
        first, *rest = messages
        return [Message("system", "be brief"), first, Message("user", "note"), *rest, Message("user", "end")]

    result = ask(core, session, framed)

    assert said(provider) == ["be brief", "1", "note", "a", "2", "end"]
    assert [message.content for message in result.session.messages] == ["1", "a", "2", "b"]
    after = ask(core, core.append_messages(result.session, [Message("user", "3")]), None)
    assert said(provider) == ["1", "a", "2", "b", "3"]
    assert "native_rebuilt" not in after.session.metadata


def test_a_message_of_the_session_is_sent_in_the_form_that_the_provider_gave_it() -> None:
    core, provider = make(Reply(text="a", extra={"signature": "secret"}), "b")
    session = core.append_messages(talk(core, core.create_session(), "1"), [Message("user", "2")])

    ask(core, session, lambda messages: [Message("system", "s"), *messages])

    assert provider.requests[-1].native_messages[2]["signature"] == "secret"


def test_a_message_made_anew_is_converted() -> None:
    core, provider = make(Reply(text="a", extra={"signature": "secret"}), "b")
    session = core.append_messages(talk(core, core.create_session(), "1"), [Message("user", "2")])

    ask(core, session, lambda messages: [Message("assistant", "a"), messages[-1]])

    assert "signature" not in provider.requests[-1].native_messages[0]


def test_what_is_no_message_is_refused() -> None:
    core, _provider = make("a")
    session = core.append_messages(core.create_session(), [Message("user", "1")])

    with pytest.raises(ArgumentTypeError, match="transform must return messages, not str"):
        ask(core, session, lambda _messages: ["1"])  # type: ignore[list-item]


def test_an_interrupted_answer_to_a_part_is_kept_behind_the_whole() -> None:
    core, _provider = make("a", Reply(chunks=["b", "c"]))
    session = core.append_messages(talk(core, core.create_session(), "1"), [Message("user", "2")])
    stream = core.send_request_stream(session, {})
    flow = core.request_flow(session, {}, stream=True, transform=lambda messages: messages[-1:])
    stream = type(stream)(flow)

    next(stream)
    stream.close()

    assert stream.result is not None
    messages = stream.result.session.messages
    assert [message.content for message in messages] == ["1", "a", "2", "b"]
    assert messages[-1].native_indices == (3,)


@settings(max_examples=30)
@given(st.lists(st.booleans(), min_size=7, max_size=7), st.lists(st.integers(0, 6), max_size=3))
def test_the_session_is_the_same_whatever_was_sent(keep: list[bool], strangers: list[int]) -> None:
    core, provider = make("a", "b", "c", "d")
    session = core.append_messages(talk(core, core.create_session(), "1", "2", "3"), [Message("user", "4")])

    def some(messages: Sequence[Message]) -> list[Message]:
        chosen = [message for message, wanted in zip(messages, keep, strict=True) if wanted]
        for place in strangers:
            chosen.insert(place, Message("user", "stranger"))
        return chosen

    result = ask(core, session, some)

    texts = ["1", "a", "2", "b", "3", "c", "4"]
    assert [text for text in said(provider) if text != "stranger"] == [
        text for text, wanted in zip(texts, keep, strict=True) if wanted
    ]
    assert [message.content for message in result.session.messages] == [*texts, "d"]
    assert core.import_session(core.export_session(result.session)) == result.session


def test_appending_messages_asks_nobody_and_the_next_request_converts_them() -> None:
    core, provider = make("a", "b")
    session = talk(core, core.create_session(), "1")

    longer = core.append_messages(session, [Message("user", "2"), Message("user", "3")])

    assert [message.native_indices for message in longer.messages[-2:]] == [None, None]
    ask(core, longer, None)
    assert said(provider) == ["1", "a", "2", "3"]
    assert core.append_messages(longer, []) is longer


def test_appending_what_is_no_message_is_refused() -> None:
    core, _provider = make()

    with pytest.raises(ArgumentTypeError, match="messages must be Message objects, not dict"):
        core.append_messages(core.create_session(), [{"role": "user", "content": "1"}])  # type: ignore[list-item]


def test_a_part_of_a_conversation_with_tools_can_be_sent() -> None:
    core, provider = make(Reply(tool_calls=[ToolCall("look", {})]), "b", "c")
    session = core.append_messages(core.create_session(), [Message("user", "1")])
    session = ask(core, session, None).session
    session = core.append_messages(session, [Message("tool", "seen", {"tool_call_id": "call_1"})])
    session = ask(core, session, None).session
    session = core.append_messages(session, [Message("user", "2")])

    ask(core, session, lambda messages: messages[-2:])

    assert said(provider) == ["b", "2"]

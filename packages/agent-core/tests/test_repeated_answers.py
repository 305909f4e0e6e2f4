"""A model may well say the same twice: the answer is kept each time, at no cost for a long history."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from agent_core import AgentCore, Message, Session
from agent_core.testing import ScriptedProvider, scripted

if TYPE_CHECKING:
    from types import FrameType

CONFIG = {"provider": "scripted", "model": "m"}
PROVIDER = scripted.__file__


def conversation(core: AgentCore, messages: int) -> Session:
    """Return a conversation whose native form is known, with an answer that will be given once more."""
    session = core.create_session()
    for number in range(messages // 2):
        session = core.add_message(session, "user", f"question {number}")
        session = core.add_message(session, "assistant", f"answer {number}")
    return core.rebuild_native_history(session, CONFIG)


@pytest.mark.parametrize("system", [False, True])
@pytest.mark.parametrize("repeated", [0, 7, 19])
def test_an_answer_that_was_given_before_is_kept_once_more(repeated: int, *, system: bool) -> None:
    core = AgentCore()
    core.register_provider(ScriptedProvider([f"answer {repeated}"]))
    session = conversation(core, 40)
    if system:
        session = Session("s", [Message("system", "Be short."), *session.messages])
        session = core.rebuild_native_history(session, CONFIG)
    session = core.add_message(session, "user", f"question {repeated}")

    after, added = core.send_request(session, CONFIG)

    assert [message["content"] for message in added] == [f"answer {repeated}"]
    assert len(after.messages) == len(session.messages) + 1
    assert [item["content"] for item in after.metadata["native_messages"]] == [
        message.content for message in after.messages
    ]
    assert "native_rebuilt" not in after.metadata


def test_the_length_of_the_history_costs_nothing_then() -> None:
    calls = {}
    for messages in (20, 2_000):
        core = AgentCore()
        core.register_provider(ScriptedProvider(["answer 3"] * 2))
        session = core.add_message(conversation(core, messages), "user", "question 3")
        core.send_request(session, CONFIG)
        calls[messages] = 0

        def count(frame: FrameType, event: str, _argument: object, at: int = messages) -> None:
            # The provider itself looks through what it is asked.
            calls[at] += event == "call" and frame.f_code.co_filename != PROVIDER

        sys.setprofile(count)
        try:
            core.send_request(session, CONFIG)
        finally:
            sys.setprofile(None)

    assert calls[2_000] < calls[20] * 1.2

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_core import tool
from agent_testing import anthropic_reply
from anthropic_provider.request import with_marks

if TYPE_CHECKING:
    from agent_testing import Talk

MARK = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return word


@pytest.mark.parametrize(("cache", "mark"), [(True, MARK), ("1h", LONG)])
def test_system_tools_and_the_last_user_turn_are_marked(talk: Talk, cache: Any, mark: dict[str, Any]) -> None:
    talk.core.register_tool(look_up)
    talk.add("system", "Be brief.").add("user", "One").call(anthropic_reply("Two"), cache=cache)
    talk.add("user", "Three").call(anthropic_reply("Four"), cache=cache)

    assert talk.sent["system"] == [text("Be brief.", cache_control=mark)]
    assert talk.sent["tools"][-1]["cache_control"] == mark
    assert talk.sent["messages"][0]["content"] == "One"
    assert talk.sent["messages"][-1]["content"] == [text("Three", cache_control=mark)]
    assert "cache_control" not in str(talk.native)


def test_nothing_is_marked_unless_it_is_asked_for(talk: Talk) -> None:
    talk.add("system", "Be brief.").add("user", "One").call(anthropic_reply("Two"))

    assert "cache_control" not in str(talk.sent)


def test_a_parts_own_mark_is_sent(talk: Talk) -> None:
    part = text("A long story", cache_control=LONG)
    talk.add("user", "A long story", multipart_content=[part]).call(anthropic_reply("Hm"))

    assert talk.sent["messages"] == [{"role": "user", "content": [part]}]


def test_marks_of_parts_come_first_and_there_are_never_more_than_four() -> None:
    turns = [{"role": "user", "content": [text(str(n), cache_control=MARK)]} for n in range(3)]
    body = {
        "system": "Be brief.",
        "tools": [{"name": "a"}],
        "messages": [*turns, {"role": "user", "content": "?"}],
    }

    marked = with_marks(body, cache=True)

    assert marked["messages"][-1]["content"] == [text("?", cache_control=MARK)]
    assert marked["system"] == "Be brief." and marked["tools"] == [{"name": "a"}]
    assert marked["messages"][:3] == turns


def test_a_mark_inside_a_result_counts_too() -> None:
    result = {"type": "tool_result", "content": [text("x", cache_control=MARK)] * 4}
    body = {"messages": [{"role": "user", "content": [result]}]}

    assert with_marks(body, cache=True) == body


def test_what_is_marked_already_stays_as_it_is() -> None:
    body = {"messages": [{"role": "user", "content": [text("x", cache_control=LONG)]}]}

    assert with_marks(body, cache=True) == body


def test_a_conversation_without_a_user_turn_is_left_alone() -> None:
    assert with_marks({"messages": []}, cache=True) == {"messages": []}

"""What the provider remembers of a conversation never changes what is sent, whatever request comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings, strategies as st

from agent_testing.provider_memory import Item, check_memory, composed_for_the_next_turn
from openai_responses_provider import OpenAIResponsesProvider, provider as provider_module, request

if TYPE_CHECKING:
    import pytest

_SAID: Item = {"type": "message", "role": "user", "content": "hello"}
_ANSWERED: Item = {
    "type": "message",
    "role": "assistant",
    "id": "msg_1",
    "content": [{"type": "output_text", "text": "yes"}],
    "_metadata": {"usage": 1},
}
_ITEMS = st.sampled_from(
    [
        _SAID,
        _SAID,
        _ANSWERED,
        _ANSWERED,
        {"type": "message", "role": "assistant", "content": []},
        {"type": "message", "role": "system", "content": "be brief"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "reasoning", "id": "rs_2", "summary": [], "_metadata": {"refused_by": ["gpt-5"]}},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "done"},
        {"type": "function_call_output", "call_id": "b", "output": "of nobody's call"},
    ]
)
_CONFIGS: list[dict[str, Any]] = [
    {"model": "gpt-5"},
    {"model": "gpt-5", "system_role": "instructions", "instructions": "Answer in verse."},
    {"model": "gpt-5", "item_ids": "omit", "system_role": "developer"},
]


@settings(max_examples=200)
@given(st.lists(st.lists(_ITEMS, max_size=9), max_size=5), st.sampled_from(_CONFIGS))
def test_any_histories_with_one_memory_are_repaired_and_sent_as_without(
    histories: list[list[Item]], config: dict[str, Any]
) -> None:
    check_memory(OpenAIResponsesProvider, histories, config)


def test_turns_that_are_over_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turn, modules = [_SAID, _ANSWERED], (request, provider_module)

    composed = composed_for_the_next_turn(monkeypatch, modules, OpenAIResponsesProvider, turn, _CONFIGS[0])

    assert composed == [1, 2]  # the turn that has ended since, and the new one

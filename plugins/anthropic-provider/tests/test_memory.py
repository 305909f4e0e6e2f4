"""What the provider remembers of a conversation never changes what is sent, whatever request comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings, strategies as st

from agent_testing.provider_memory import Item, check_memory, composed_for_the_next_turn
from anthropic_provider import AnthropicProvider, provider as provider_module, request

if TYPE_CHECKING:
    import pytest

_SAID: Item = {"role": "user", "content": "hello"}
_ANSWERED: Item = {"role": "assistant", "content": "yes", "_metadata": {"usage": 1}}
_SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
_FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
_MARKED = {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}}
_ITEMS = st.sampled_from(
    [
        _SAID,
        _SAID,
        _ANSWERED,
        _ANSWERED,
        {"role": "user", "content": " "},
        {"role": "user", "content": [_MARKED]},
        {"role": "assistant", "content": []},
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "done"}]},
        {"role": "assistant", "content": [_SEARCH]},
        {"role": "assistant", "content": [_SEARCH, _FOUND]},
        {"role": "assistant", "content": [_FOUND]},
    ]
)
_CONFIGS: list[dict[str, Any]] = [
    {"model": "claude-sonnet-4-5"},
    {"model": "claude-opus-4-8", "cache": True},
    {"model": "claude-sonnet-4-5", "cache": "1h"},
]


@settings(max_examples=200)
@given(st.lists(st.lists(_ITEMS, max_size=9), max_size=5), st.sampled_from(_CONFIGS))
def test_any_histories_with_one_memory_are_repaired_and_sent_as_without(
    histories: list[list[Item]], config: dict[str, Any]
) -> None:
    check_memory(AnthropicProvider, histories, config)


def test_turns_that_are_over_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turn, modules = [_SAID, _ANSWERED], (request, provider_module)

    composed = composed_for_the_next_turn(monkeypatch, modules, AnthropicProvider, turn, _CONFIGS[0])

    assert composed == [1, 2]  # the turn that has ended since, and the new one

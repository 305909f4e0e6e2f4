"""What the provider remembers of a conversation never changes what is sent, whatever request comes next."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings, strategies as st

from anthropic_provider import AnthropicProvider, provider as provider_module, request

Item = dict[str, Any]

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


def _sent(items: list[Item], memory: dict[str, Any] | None, config: dict[str, Any]) -> Any:
    provider = AnthropicProvider()
    state = provider.init(config)
    state["memory"] = memory
    return orjson.loads(orjson.dumps(provider.request_body(items, state, stream=False)))


@settings(max_examples=200)
@given(st.lists(st.lists(_ITEMS, max_size=9), max_size=5), st.sampled_from(_CONFIGS))
def test_any_histories_with_one_memory_are_repaired_and_sent_as_without(
    histories: list[list[Item]], config: dict[str, Any]
) -> None:
    provider, memory = AnthropicProvider(), dict[str, Any]()
    for history in histories:
        for items in (history, [*histories[0], *history]):  # another branch, and a longer version
            repaired = provider.repair_native(items, memory)

            assert repaired == provider.repair_native(items)
            assert _sent(repaired[0], memory, config) == _sent(repaired[0], None, config)


def test_turns_that_are_over_are_composed_once(monkeypatch: Any) -> None:
    composed: list[int] = []
    compose = request.compose

    def counted(items: list[Item], *given: Any, **more: Any) -> Any:
        composed.append(len(items))
        return compose(items, *given, **more)

    for module in (request, provider_module):
        if hasattr(module, "compose"):
            monkeypatch.setattr(module, "compose", counted)
    memory: dict[str, Any] = {}
    talk = [_SAID, _ANSWERED] * 50

    _sent([*talk, _SAID], memory, _CONFIGS[0])
    composed.clear()
    _sent([*talk, _SAID, _ANSWERED, _SAID], memory, _CONFIGS[0])

    assert sorted(composed) == [1, 2]  # the turn that has ended since, and the new one

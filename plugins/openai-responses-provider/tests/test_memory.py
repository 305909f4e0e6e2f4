"""What the provider remembers of a conversation never changes what is sent, whatever request comes next."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings, strategies as st

from openai_responses_provider import OpenAIResponsesProvider, provider as provider_module, request

Item = dict[str, Any]

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


def _sent(items: list[Item], memory: dict[str, Any] | None, config: dict[str, Any]) -> Any:
    provider = OpenAIResponsesProvider()
    state = provider.init(config)
    state["memory"] = memory
    return orjson.loads(orjson.dumps(provider.request_body(items, state, stream=False)))


@settings(max_examples=200)
@given(st.lists(st.lists(_ITEMS, max_size=9), max_size=5), st.sampled_from(_CONFIGS))
def test_any_histories_with_one_memory_are_repaired_and_sent_as_without(
    histories: list[list[Item]], config: dict[str, Any]
) -> None:
    provider, memory = OpenAIResponsesProvider(), dict[str, Any]()
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

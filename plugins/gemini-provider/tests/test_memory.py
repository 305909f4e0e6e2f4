"""What the provider remembers of a conversation never changes what is sent, whatever request comes next."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings, strategies as st

from gemini_provider import GeminiProvider, provider as provider_module, request

Item = dict[str, Any]

_SAID: Item = {"role": "user", "parts": [{"text": "hello"}]}
_ANSWERED: Item = {"role": "model", "parts": [{"text": "yes"}], "_metadata": {"usage": 1}}
_ITEMS = st.sampled_from(
    [
        _SAID,
        _SAID,
        _ANSWERED,
        _ANSWERED,
        {"role": "user", "parts": []},
        {"role": "model", "parts": []},
        {"role": "system", "parts": [{"text": "be brief"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": {}}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "f", "response": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}, {"text": "and"}]},
    ]
)
_CONFIGS: list[dict[str, Any]] = [{"model": "gemini-2.5-pro"}, {"model": "gemini-3-pro"}]


def _sent(items: list[Item], memory: dict[str, Any] | None, config: dict[str, Any]) -> Any:
    provider = GeminiProvider()
    state = provider.init(config)
    state["memory"] = memory
    return orjson.loads(orjson.dumps(provider.request_body(items, state, stream=False)))


@settings(max_examples=200)
@given(st.lists(st.lists(_ITEMS, max_size=9), max_size=5), st.sampled_from(_CONFIGS))
def test_any_histories_with_one_memory_are_repaired_and_sent_as_without(
    histories: list[list[Item]], config: dict[str, Any]
) -> None:
    provider, memory = GeminiProvider(), dict[str, Any]()
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

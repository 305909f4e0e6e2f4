"""What the provider remembers of a conversation never changes what is sent, whatever request comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings, strategies as st

from agent_testing.provider_memory import Item, check_memory, composed_for_the_next_turn
from gemini_provider import GeminiProvider, provider as provider_module, request

if TYPE_CHECKING:
    import pytest

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


@settings(max_examples=200)
@given(st.lists(st.lists(_ITEMS, max_size=9), max_size=5), st.sampled_from(_CONFIGS))
def test_any_histories_with_one_memory_are_repaired_and_sent_as_without(
    histories: list[list[Item]], config: dict[str, Any]
) -> None:
    check_memory(GeminiProvider, histories, config)


def test_turns_that_are_over_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turn, modules = [_SAID, _ANSWERED], (request, provider_module)

    composed = composed_for_the_next_turn(monkeypatch, modules, GeminiProvider, turn, _CONFIGS[0])

    assert composed == [1, 2]  # the turn that has ended since, and the new one

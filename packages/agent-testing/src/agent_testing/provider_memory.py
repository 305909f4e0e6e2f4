"""Checks that what a provider remembers of a conversation never changes what it sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from agent_provider_kit import encode_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_provider_kit import HttpProvider

Item = dict[str, Any]


def sent(
    provider: type[HttpProvider], items: list[Item], memory: dict[str, Any] | None, config: dict[str, Any]
) -> Any:
    """Return the body of a request with these native items, as the server gets it."""
    asked = provider()
    state = asked.init(config)
    state["memory"] = memory
    return orjson.loads(encode_body(asked.request_body(items, state, stream=False)))


def check_memory(
    provider: type[HttpProvider], histories: Sequence[list[Item]], config: dict[str, Any]
) -> None:
    """Let one memory serve many histories, and compare with what is repaired and sent without it.

    Each history is tried alone, as another branch, and behind the first one, as its longer version.
    """
    asked: Any = provider()
    memory: dict[str, Any] = {}
    for history in histories:
        for items in (history, [*histories[0], *history]):
            repaired, report = asked.repair_native(items, memory)

            assert (repaired, report) == asked.repair_native(items)
            assert sent(provider, repaired, memory, config) == sent(provider, repaired, None, config)


def composed_for_the_next_turn(
    monkeypatch: Any, modules: Sequence[Any], provider: type[HttpProvider], turn: list[Item], config: Item
) -> list[int]:
    """Return of how many items each call of `compose` makes a part when a conversation has one turn more.

    Args:
        monkeypatch: The fixture of pytest.
        modules: The provider's modules that know `compose`.
        turn: What a person says, and what the model answers.
    """
    composed: list[int] = []
    compose = next(module.compose for module in modules if hasattr(module, "compose"))

    def counted(items: list[Item], *given: Any, **more: Any) -> Any:
        composed.append(len(items))
        return compose(items, *given, **more)

    for module in modules:
        if hasattr(module, "compose"):
            monkeypatch.setattr(module, "compose", counted)
    memory: dict[str, Any] = {}
    talk = turn * 50
    sent(provider, [*talk, turn[0]], memory, config)
    composed.clear()
    sent(provider, [*talk, *turn, turn[0]], memory, config)
    return sorted(composed)

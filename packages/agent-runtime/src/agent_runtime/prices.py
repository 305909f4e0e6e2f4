"""What an answer cost by the public list of prices, for models that are declared without prices.

The list is `genai-prices`, an extra (`pip install "keelwork-runtime[prices]"`). It knows cached tokens and
tiers. What comes from it is an estimate, and is marked as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_runtime.specs import ModelSpec

_PROVIDERS = {
    "anthropic": "anthropic",
    "gemini": "google",
    "openai": "openai",
    "openai_responses": "openai",
}
"""What the list calls the providers that it knows; models of others are looked up by their name alone."""

_UNPRICED = frozenset({"local_llama"})
_log = get_logger("runtime")


def list_price(model: ModelSpec, counts: Mapping[str, int]) -> float | None:
    """Return what an answer cost in dollars by the public list; None if the list does not know the model."""
    name = model.model
    if not name or model.provider in _UNPRICED or not _is_installed() or not _is_listed(model.provider, name):
        return None
    try:
        return _price(model.provider, name, counts)
    except Exception as error:  # counts that the list cannot make sense of must not end a run
        _log.warning("price_unknown", model=model.id, error=str(error))
        return None


def has_price(model: ModelSpec) -> bool:
    """Say whether it is known what a model costs; one without a name is the program's own, and free."""
    if not model.model or model.provider in _UNPRICED:
        return True
    declared = (model.input_price, model.output_price, model.cached_input_price)
    return any(price is not None for price in declared) or list_price(model, {"input_tokens": 1}) is not None


@dataclass(frozen=True, slots=True)
class Terms:
    """What the public list says of a model: dollars for a million tokens, and how many tokens fit."""

    input_price: float
    output_price: float
    context_window: int | None


def list_terms(provider: str, name: str) -> Terms | None:
    """Return what the public list says of a model; None if it does not know it."""
    if not name or provider in _UNPRICED or not _is_installed() or not _is_listed(provider, name):
        return None
    calc_price, usage = _list()
    try:  # a thousand tokens: larger requests may have another price
        sent = calc_price(usage(input_tokens=1000), name, provider_id=_PROVIDERS.get(provider))
        received = calc_price(usage(output_tokens=1000), name, provider_id=_PROVIDERS.get(provider))
    except Exception as error:  # a list of prices must not keep anybody from choosing a model
        _log.warning("price_unknown", model=name, error=str(error))
        return None
    window = getattr(sent.model, "context_window", None)
    prices = [round(float(one.total_price) * 1000, 6) for one in (sent, received)]
    return Terms(prices[0], prices[1], window if isinstance(window, int) else None)


@lru_cache(maxsize=1)
def _is_installed() -> bool:
    return find_spec("genai_prices") is not None


@lru_cache(maxsize=256)
def _is_listed(provider: str, name: str) -> bool:
    """Say whether the list has the model; remembered, since looking for one that it lacks is slow."""
    calc_price, usage = _list()
    try:
        calc_price(usage(input_tokens=1), name, provider_id=_PROVIDERS.get(provider))
    except LookupError:
        return False
    return True


def _price(provider: str, name: str, counts: Mapping[str, int]) -> float:
    calc_price, usage = _list()
    used = usage(
        input_tokens=counts.get("input_tokens", 0),
        output_tokens=counts.get("output_tokens", 0),
        cache_read_tokens=counts.get("cached_input_tokens", 0),
        cache_write_tokens=counts.get("cache_write_tokens", 0),
    )
    return float(calc_price(used, name, provider_id=_PROVIDERS.get(provider)).total_price)


@lru_cache(maxsize=1)
def _list() -> tuple[Any, Any]:
    """Load the list, which takes a while: at the first answer that it may know the price of."""
    found = import_module("genai_prices")
    return found.calc_price, found.Usage

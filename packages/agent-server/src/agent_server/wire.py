"""JSON as it goes over the network: fast where data is ordinary, and never an exception for what is not."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from agent_core.frozen import thaw


def to_json(value: Any) -> bytes:
    """Encode plain data, frozen or not.

    What the fast encoder refuses, half a surrogate pair or an integer past 64 bits, the standard library
    writes; numbers that JSON does not have become null.
    """
    try:
        return orjson.dumps(value, _plain, orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        return json.dumps(_without_odd_numbers(thaw(value)), separators=(",", ":"), default=str).encode()


def _plain(value: Any) -> Any:
    to_dict = getattr(value, "to_dict", None)
    if to_dict is not None:
        return to_dict()
    plain = thaw(value)
    return str(value) if plain is value else plain


def _without_odd_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_odd_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_odd_numbers(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

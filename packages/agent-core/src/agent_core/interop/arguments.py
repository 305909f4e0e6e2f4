"""The arguments of a call: decoded where they are a JSON object, described where they are not.

Nothing is ever repaired. Arguments with a problem keep their text, so that the model can be shown
what it wrote, and so that history carries them faithfully from one provider to the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent_core.encoding import parse
from agent_core.frozen import thaw
from agent_core.interop.fields import kind_of

INVALID_JSON = "INVALID_JSON"
"""Where formats that only take objects carry broken text; the key that Anthropic's pages propose."""

MAX_DEPTH = 200
"""How deep arguments may nest; deeper ones would exhaust the stack of whoever walks them."""

# From here on a number may exceed 64 bits, and the fast decoder would round it without a word.
_LONG_NUMBER = re.compile(r"\d{19}")

# A constant counts only outside of strings, so strings are matched first and skipped.
_STRINGS_AND_CONSTANTS = re.compile(r'"(?:\\.|[^"\\])*"|-?Infinity|NaN')


def decode(arguments: Any) -> tuple[Any, str | None]:
    """Return the arguments as a dict of the caller's own, and None; or their text, and the problem."""
    if arguments is None:
        return {}, None
    if isinstance(arguments, str):
        return _decode_text(arguments)
    if isinstance(arguments, Mapping):
        return thaw(dict(arguments)), None
    return encode(arguments), _not_an_object(arguments)


def decode_object(arguments: Any) -> tuple[Any, str | None]:
    """Decode for a format whose arguments are an object, where broken text travels in an envelope."""
    if isinstance(arguments, Mapping) and set(arguments) == {INVALID_JSON}:
        text = arguments[INVALID_JSON]
        payload, problem = decode(text)
        if isinstance(text, str) and problem is not None:
            return payload, problem
    return decode(arguments)


def encode(payload: Any) -> str:
    """Return arguments as JSON text; text, which is broken arguments, as it is."""
    if isinstance(payload, str):
        return payload
    text = json.dumps(thaw(payload), ensure_ascii=False, separators=(",", ":"), default=str)
    # A lone surrogate is JSON only while it is escaped: no UTF-8 can carry it.
    return text if _is_unicode(text) else json.dumps(thaw(payload), separators=(",", ":"), default=str)


def encode_object(payload: Any) -> dict[str, Any]:
    """Return arguments as an object; broken ones in their envelope."""
    return {INVALID_JSON: payload} if isinstance(payload, str) else payload


def _decode_text(text: str) -> tuple[Any, str | None]:
    if not text.strip():
        return {}, None
    try:
        value = json.loads(text) if _LONG_NUMBER.search(text) else parse(text)
        _refuse_constants(text)
    except RecursionError:
        return text, _TOO_DEEP
    except ValueError as error:
        return text, f"The arguments are not valid JSON: {error}."
    if not isinstance(value, dict):
        return text, _not_an_object(value)
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_deep(value):
        return text, _TOO_DEEP
    return value, None


def _refuse_constants(text: str) -> None:
    """Raise for the constants that Python, unlike JSON, takes for numbers."""
    if "NaN" in text or "Infinity" in text:
        for found in _STRINGS_AND_CONSTANTS.finditer(text):
            if not found[0].startswith('"'):
                raise json.JSONDecodeError(f"{found[0]} is not a JSON value", text, found.start())


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value
    return [item for item in items if isinstance(item, (dict, list))]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_an_object(value: Any) -> str:
    return f"The arguments must be a JSON object, got {kind_of(value)}."


_TOO_DEEP = f"The arguments are nested too deeply: at most {MAX_DEPTH} levels are read."

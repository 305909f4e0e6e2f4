"""Calls and their results, brought together by id or, where the API gives none, by name and order.

A call that comes without an id keeps its part as it came. The id by which everyone else knows it is
ours, and stands in the item's `_metadata`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple
from uuid import uuid4

import orjson

from gemini_provider.kinds import Part, about, is_call, parts_of

CALL_IDS = "call_ids"
"""Where `_metadata` keeps an id for each call: None for those that have one of their own."""


class Call(NamedTuple):
    """A call that waits for its result.

    Attributes:
        id: The id by which it is known.
        name: The tool's name.
        numbered: Whether the id is the provider's, and goes over the wire.
    """

    id: str
    name: str
    numbered: bool


def calls_in(item: dict[str, Any]) -> list[Call]:
    """Return an item's calls in their order."""
    made = about(item).get(CALL_IDS) or ()
    bodies = [part["functionCall"] for part in parts_of(item) if is_call(part)]
    return [
        _call(body, number, made[number] if number < len(made) else None)
        for number, body in enumerate(bodies)
    ]


def own_id(part: Part) -> str | None:
    """Return the id that the provider gave a call or a result, if it gave one."""
    body = part.get("functionCall") or part.get("functionResponse")
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str) and found else None


def find_call(response: Part, waiting: list[Call]) -> Call | None:
    """Return the call that a result answers: the one of its id or, without an id, the first of its name."""
    wanted = own_id(response)
    name = response["functionResponse"].get("name")
    if wanted is not None:
        return next((call for call in waiting if call.id == wanted), None)
    return next((call for call in waiting if call.name == name), None)


def make_id(response_id: str | None, number: int) -> str:
    """Return an id for a call that came without one; the same for the same call of the same response."""
    if response_id is None:
        return f"call_{uuid4().hex}"
    return f"call_{sha256(f'{response_id}/{number}'.encode('utf-8', 'replace')).hexdigest()[:24]}"


def _call(body: dict[str, Any], number: int, made: str | None) -> Call:
    own = body.get("id")
    name = str(body.get("name") or "")
    if isinstance(own, str) and own:
        return Call(own, name, numbered=True)
    return Call(made or _derived(body, number), name, numbered=False)


def _derived(body: dict[str, Any], number: int) -> str:
    """Return an id for a call that nobody gave one: from elsewhere, so it can only be told by its content."""
    return f"call_{sha256(orjson.dumps([number, body], option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]}"

"""When the API refuses a request for what earlier answers left in it: what to leave out, and try again.

Encrypted reasoning can be read only by the model, and the account, for which it was made; nobody but the
API knows whether it can be. So all of it is sent, and only what was refused stays out from then on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from openai_responses_provider.items import METADATA, REFUSED_BY, Items, about, is_reasoning

if TYPE_CHECKING:
    from agent_provider_kit import JsonObject

_NAMED = re.compile(r"\brs_\w+")
_ABOUT_REASONING = re.compile(
    r"encrypted.content|reasoning[\w ]* items?|of type 'reasoning'|required 'reasoning'|\brs_\w+",
    re.IGNORECASE,
)
_ABOUT_IDS = re.compile(r"required 'reasoning'|not found|not persisted|duplicate item", re.IGNORECASE)


class Concessions(NamedTuple):
    """What is left out of a request.

    Attributes:
        encrypted: False to ask for no encrypted reasoning.
        omit_ids: True to send items without the ids that the provider gave them.
        reasoning: The places of reasoning that is not sent.
        complaint: What the API said about it.
    """

    encrypted: bool = True
    omit_ids: bool = False
    reasoning: frozenset[int] = frozenset()
    complaint: str = ""


def concede(made: Concessions, items: Items, model: Any, complaint: str) -> Concessions | None:
    """Return what to leave out after a complaint; None if it is about something else, or nothing is left."""
    if made.encrypted and re.search(r"encrypted content is not supported", complaint, re.IGNORECASE):
        return made._replace(encrypted=False)
    if not made.omit_ids and _ABOUT_IDS.search(complaint) and not _names_unreadable(items, complaint):
        return made._replace(omit_ids=True)
    if not _ABOUT_REASONING.search(complaint):
        return None
    refused = made.reasoning | _suspects(items, model, complaint, made.reasoning)
    return None if refused == made.reasoning else made._replace(reasoning=refused, complaint=complaint)


def remember(items: Items, made: Concessions, model: Any) -> Items:
    """Return the items, those refused knowing by which model."""
    if not made.reasoning:
        return items
    return [_refused_by(item, model) if place in made.reasoning else item for place, item in enumerate(items)]


def report(made: Concessions) -> JsonObject:
    """Return what was left out, for the session's metadata."""
    return {"reason": made.complaint, "items": len(made.reasoning), "native_indices": sorted(made.reasoning)}


def _names_unreadable(items: Items, complaint: str) -> bool:
    """Whether a complaint names reasoning that only the server's memory could have completed."""
    named = _NAMED.findall(complaint)
    return any(item.get("id") in named and not item.get("encrypted_content") for item in items)


def _suspects(items: Items, model: Any, complaint: str, before: frozenset[int]) -> frozenset[int]:
    """Return what the complaint names; else what other models thought; else all reasoning."""
    thoughts = {place: item for place, item in enumerate(items) if is_reasoning(item) and place not in before}
    named = _NAMED.findall(complaint)
    for among in (
        [place for place, item in thoughts.items() if item.get("id") in named],
        [place for place, item in thoughts.items() if not _is_of(item, model)],
    ):
        if among:
            return frozenset(among)
    return frozenset(thoughts)


def _is_of(item: JsonObject, model: Any) -> bool:
    """Whether a model made an item; answers name it with a date behind its name."""
    return str(about(item).get("model") or "").startswith(str(model))


def _refused_by(item: JsonObject, model: Any) -> JsonObject:
    known = about(item).get(REFUSED_BY) or []
    return item if model in known else {**item, METADATA: {**about(item), REFUSED_BY: [*known, model]}}

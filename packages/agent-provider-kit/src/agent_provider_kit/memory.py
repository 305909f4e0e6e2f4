"""What a provider remembers of a conversation, so that a long history costs no more than a short one.

The core hands a provider the same dict at every request of a conversation (`memory` of `repair_native` and of
the hooks that ask the model). Histories grow at their end: what was found out about the items at the
beginning is still true, as long as they are the same ones. Forks of a conversation share the dict, and a
request may come with an older version, so nothing is believed before the items were compared. That takes
a few nanoseconds an item, since most of them are the very same object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from agent_core.history import same_beginning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_provider_kit.wire import Dicts, JsonObject, State

_GOOD, _SENT = "good", "sent"


def known_good(items: Dicts, memory: State | None) -> int:
    """Return how many of the first items need no repair, because an earlier request found out.

    They were good as a whole: a call among them has its result among them too.
    """
    good = memory.get(_GOOD) if memory else None
    return len(good) if good is not None and items[: len(good)] == good else 0


def remember_good(items: Dicts, memory: State | None) -> None:
    """Note that all of the items can be sent as they are."""
    if memory is not None:
        memory[_GOOD] = items


def encoded(
    items: Dicts, memory: State | None, form: str, as_sent: Callable[[JsonObject], JsonObject]
) -> orjson.Fragment:
    """Return the items as a JSON list for a request's body; what was sent before is not encoded again.

    Args:
        form: A name for what *as_sent* does, which may depend on settings.
        as_sent: Returns an item as the server should get it.
    """
    known: tuple[str, Sequence[JsonObject], list[bytes]] | None = memory.get(_SENT) if memory else None
    same = 0 if known is None or known[0] != form else same_beginning(known[1], items)
    parts = [] if known is None else known[2][:same]
    parts += [orjson.dumps(as_sent(item)) for item in items[same:]]
    if memory is not None:
        memory[_SENT] = form, items, parts  # at once: a request of a fork must not see half of it
    return orjson.Fragment(b"[" + b",".join(parts) + b"]")

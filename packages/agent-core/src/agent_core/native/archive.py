"""Native history of the providers that a session is not talking to right now.

When a request goes to another provider, the form that the first one made is set aside, together
with a digest of each message that it covers. Coming back, as much of it is used as the conversation
still begins with the same messages; what came later is converted like any new message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.frozen import FrozenDict, FrozenList, freeze
from agent_core.native.links import message_digest
from agent_core.native.record import ARCHIVE, ModelRuns, NativeHistory, item_models, model_runs

if TYPE_CHECKING:
    from agent_core.history import History
    from agent_core.messages import Message
    from agent_core.session import Session


@dataclass(frozen=True, slots=True)
class Restored:
    """What could be used again: the first messages, pointing at these items."""

    messages: list[Message]
    items: Sequence[FrozenDict]
    models: ModelRuns


def set_aside(session: Session, native: NativeHistory) -> Session:
    """Return the session with *native* kept under its provider's name."""
    archive = dict(session.metadata.get(ARCHIVE) or {})
    archive[str(native.provider)] = _entry(session.history.prefix(native.covered), native)
    return session.with_metadata({ARCHIVE: freeze(archive)})


def restore(session: Session, provider: str) -> Restored | None:
    """Return what *provider* had made of the messages with which the session still begins."""
    entry = (session.metadata.get(ARCHIVE) or {}).get(provider)
    if not isinstance(entry, Mapping):
        return None
    same = _same_beginning(session.messages, entry["digests"])
    cut = _cut(entry["indices"], same, len(entry[_ITEMS]))
    if same == 0 or cut is None:
        return None
    messages = [
        message.with_native_indices(None if indices is None else tuple(indices))
        for message, indices in zip(session.history.prefix(same), entry["indices"], strict=False)
    ]
    models = model_runs(item_models(tuple((run[0], run[1]) for run in entry["models"]))[:cut])
    return Restored(messages, list(entry[_ITEMS])[:cut], models)


def without(session: Session, provider: str) -> Session:
    """Return the session without what was set aside for *provider*."""
    archive = session.metadata.get(ARCHIVE) or {}
    return session.with_metadata({ARCHIVE: freeze({k: v for k, v in archive.items() if k != provider})})


_ITEMS = "native_messages"


def _entry(messages: History[Message], native: NativeHistory) -> FrozenDict:
    return FrozenDict(
        native_messages=native.items,
        models=FrozenList([FrozenList(run) for run in native.models]),
        indices=FrozenList([_indices(message) for message in messages]),
        digests=FrozenList([message_digest(message).hex() for message in messages]),
    )


def _indices(message: Message) -> FrozenList | None:
    return None if message.native_indices is None else FrozenList(message.native_indices)


def _same_beginning(messages: Sequence[Message], digests: Sequence[str]) -> int:
    same = 0
    for message, digest in zip(messages, digests, strict=False):
        if message_digest(message).hex() != digest:
            break
        same += 1
    return same


def _cut(indices: Sequence[Any], same: int, count: int) -> int | None:
    """Return where the items of the first messages end, or None if later messages share them."""
    before = max((index for owned in indices[:same] for index in owned or ()), default=-1)
    after: int = min((index for owned in indices[same:] for index in owned or ()), default=count)
    return after if before < after else None

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
from agent_core.messages import NATIVE_INDICES
from agent_core.native.links import Seal, message_digest
from agent_core.native.record import ARCHIVE, ModelRuns, NativeHistory, item_models, model_runs, read_runs

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
    found = session.metadata.get(ARCHIVE)
    archive = dict(found) if isinstance(found, Mapping) else {}
    archive[str(native.provider)] = _entry(session.history.prefix(native.covered), native)
    return session.with_metadata({ARCHIVE: freeze(archive)})


def restore(session: Session, provider: str) -> tuple[Restored | None, str | None]:
    """Return what *provider* had made of the messages with which the session still begins.

    The second value says why what was set aside cannot be used, if something was and it cannot.
    """
    archive = session.metadata.get(ARCHIVE)
    entry = archive.get(provider) if isinstance(archive, Mapping) else None
    if entry is None:
        return None, None
    if not _is_intact(entry):
        return None, f"what provider {provider!r} had made was changed outside of the core"
    same = _same_beginning(session.messages, entry["digests"])
    same, cut = _reusable(entry["indices"], same, len(entry[_ITEMS]))
    if same == 0:
        return None, None
    messages = [
        message.with_native_indices(None if indices is None else tuple(indices))
        for message, indices in zip(session.history.prefix(same), entry["indices"], strict=False)
    ]
    models = model_runs(item_models(read_runs(entry.get("models"), len(entry[_ITEMS])))[:cut])
    return Restored(messages, entry[_ITEMS][:cut], models), None


def without(session: Session, provider: str) -> Session:
    """Return the session without what was set aside for *provider*."""
    archive = session.metadata.get(ARCHIVE) or {}
    return session.with_metadata({ARCHIVE: freeze({k: v for k, v in archive.items() if k != provider})})


_ITEMS = "native_messages"


def _entry(messages: History[Message], native: NativeHistory) -> FrozenDict:
    return FrozenDict(
        native_messages=FrozenList(native.items),
        models=FrozenList([FrozenList(run) for run in native.models]),
        indices=FrozenList([message.metadata.get(NATIVE_INDICES) for message in messages]),
        digests=FrozenList([message_digest(message).hex() for message in messages]),
        integrity=FrozenDict(native.seal.to_dict()),
    )


def _is_intact(entry: Any) -> bool:
    """Say whether an entry is still as it was written; anything may stand there."""
    try:
        digests = map(bytes.fromhex, entry["digests"])
        seal = Seal.of_digests(zip(digests, entry["indices"], strict=True), entry[_ITEMS])
        return bool(seal.to_dict() == entry["integrity"])
    except (KeyError, TypeError, ValueError):
        return False


def _same_beginning(messages: Sequence[Message], digests: Sequence[str]) -> int:
    same = 0
    for message, digest in zip(messages, digests, strict=False):
        if message_digest(message).hex() != digest:
            break
        same += 1
    return same


def _reusable(indices: Sequence[Any], same: int, count: int) -> tuple[int, int]:
    """Return how many of the *same* first messages can be used again, and how many items are theirs."""
    if same == len(indices):
        return same, count
    if any(owned is None for owned in indices):
        return 0, 0  # nobody knows where the items of the messages that changed are
    while same:
        before = max((index for owned in indices[:same] for index in owned), default=-1)
        after: int = min((index for owned in indices[same:] for index in owned), default=count)
        if before < after:
            return same, after
        same -= 1  # it shares an item with a message that changed
    return 0, 0

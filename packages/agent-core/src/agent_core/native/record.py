"""Native history as a session stores it: sealed against changes, set aside when the provider changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent_core.encoding import canonical
from agent_core.frozen import FrozenDict, FrozenList, JsonObject, State, freeze
from agent_core.history import History
from agent_core.messages import NATIVE_INDICES, Message

if TYPE_CHECKING:
    from agent_core.session import Session

# Integrity of a session as a hash chain.
#
# Each message and each native item has a link: a hash of the link before it and of itself. The last
# links are stored with the session, so a change anywhere before them shows. Appending costs one link,
# and since links are kept in memory for sessions that we made ourselves, so does checking.

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Seal:
    """The links of a session: one per message that native history covers, one per native item.

    Attributes:
        memory: What the provider would otherwise find out again at every request, see `repair_native` in
            `agent_core.types`. All versions of a conversation share it; it is never stored.
        in_order: Whether the items of each message stand right behind those of the message before it. Then a
            conversation can be cut between two messages by looking at these alone. False if nobody knows.
    """

    messages: History[bytes] = field(default_factory=History)
    native: History[bytes] = field(default_factory=History)
    memory: State = field(default_factory=dict, repr=False, compare=False)
    in_order: bool = field(default=True, compare=False)

    def extend(self, messages: Sequence[Message], items: Sequence[Mapping[str, object]]) -> Seal:
        """Return the seal after *messages* and native *items* were appended."""
        parts = [_part(message_digest(m), m.metadata.get(NATIVE_INDICES)) for m in messages]
        links = _extend(self.messages, parts), _extend(self.native, map(canonical, items))
        start = len(self.native)
        in_order = self.in_order and _stand_in_order(
            messages, start, start + len(items), are_first=not self.messages
        )
        return Seal(*links, self.memory, in_order)

    @classmethod
    def of_digests(
        cls, digests: Iterable[tuple[bytes, object]], items: Iterable[Mapping[str, object]]
    ) -> Seal:
        """Return the seal of messages of which only digests and native indices are at hand."""
        parts = (_part(digest, indices) for digest, indices in digests)
        return cls(_extend(History(), parts), _extend(History(), map(canonical, items)))

    def prefix(self, messages: int, native: int) -> Seal:
        """Return the seal of the first messages and items; whether these are in order is not known."""
        whole = messages == len(self.messages) and native == len(self.native)
        links = self.messages.prefix(messages), self.native.prefix(native)
        return Seal(*links, self.memory, self.in_order and whole)

    def cut(self, messages: int, native: int) -> Seal:
        """Return the seal of the first messages, whose items are the first ones and in order."""
        return replace(self.prefix(messages, native), in_order=True)

    def to_dict(self) -> JsonObject:
        """Return what is stored as ``native_messages_integrity``."""
        return {
            "version": _VERSION,
            "messages": len(self.messages),
            "head": _head(self.messages),
            "native": len(self.native),
            "native_head": _head(self.native),
        }


def message_digest(message: Message) -> bytes:
    """Hash what a message says, wherever it stands in native history."""
    fields = message.fields()
    if NATIVE_INDICES in message.metadata:
        metadata = {key: value for key, value in message.metadata.items() if key != NATIVE_INDICES}
        fields["metadata"] = metadata
    return sha256(canonical(fields)).digest()


def _stand_in_order(messages: Sequence[Message], start: int, end: int, *, are_first: bool) -> bool:
    """Say whether native items from *start* to *end* are those of messages, one after the other.

    Args:
        are_first: Whether no message comes before them. Then there may be items of nobody in front of all
            others, a system prompt say.
    """
    place = start
    for message in messages:
        own = message.native_indices
        if own is None:
            return False
        if own:
            if are_first:
                place, are_first = own[0], False
            if own != ((place,) if len(own) == 1 else tuple(range(place, place + len(own)))):
                return False
            place += len(own)
    return place == end or (are_first and not messages)


def covered_messages(integrity: object, limit: int) -> int | None:
    """Return how many messages a stored integrity value speaks of, or None if it makes no sense."""
    if not isinstance(integrity, Mapping) or integrity.get("version") != _VERSION:
        return None
    count = integrity.get("messages")
    return count if isinstance(count, int) and 0 <= count <= limit else None


def _part(digest: bytes, indices: object) -> bytes:
    return digest + canonical(indices)


def _extend(links: History[bytes], parts: Iterable[bytes]) -> History[bytes]:
    last = links.last or b""
    added = []
    for part in parts:
        last = sha256(last + part).digest()
        added.append(last)
    return links.extend(added)


def _head(links: History[bytes]) -> str:
    return (links.last or b"").hex()


# A session's native history: read from its metadata, checked, extended, written back.

NATIVE_MESSAGES = "native_messages"
INTEGRITY = "native_messages_integrity"
PROVENANCE = "native_provenance"
ARCHIVE = "native_archive"
REBUILT = "native_rebuilt"
OWNED_METADATA = frozenset({NATIVE_MESSAGES, INTEGRITY, PROVENANCE, ARCHIVE, REBUILT})

T = TypeVar("T")
ModelRuns = tuple[tuple[str | None, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeHistory:
    """One provider's own form of a conversation.

    Attributes:
        items: The provider's messages or items, as it wants them back.
        provider: Whose form it is; None in sessions that do not say.
        models: Which model made how many of the items, in order.
        seal: The links of the messages that `items` covers and of the items.
    """

    items: History[FrozenDict]
    provider: str | None
    models: ModelRuns
    seal: Seal

    @property
    def covered(self) -> int:
        """How many of the session's messages have their native form here; later ones are pending."""
        return len(self.seal.messages)

    def extend(
        self, messages: Sequence[Message], items: Sequence[FrozenDict], model: str | None
    ) -> NativeHistory:
        """Return the history after *messages*, whose native form is *items*."""
        return NativeHistory(
            items=self.items.extend(items),
            provider=self.provider,
            models=add_run(self.models, model, len(items)),
            seal=self.seal.extend(messages, items),
        )


def new_native(
    messages: Sequence[Message], items: Iterable[FrozenDict], provider: str | None, models: ModelRuns
) -> NativeHistory:
    """Return a native history with all of its links computed."""
    kept = History.of(items)
    return NativeHistory(items=kept, provider=provider, models=models, seal=Seal().extend(messages, kept))


def renew_native(
    before: NativeHistory,
    old_messages: History[Message],
    messages: Sequence[Message],
    items: Sequence[FrozenDict],
    models: ModelRuns,
) -> tuple[History[Message], NativeHistory]:
    """Return changed messages and items as histories that share their unchanged beginning."""
    new_messages, same = share_beginning(old_messages.prefix(before.covered), messages)
    new_items, same_items = share_beginning(before.items, items)
    seal = before.seal.prefix(same, same_items).extend(messages[same:], items[same_items:])
    seal = replace(seal, in_order=_stand_in_order(messages, 0, len(items), are_first=True))
    return new_messages, replace(before, items=new_items, models=models, seal=seal)


def share_beginning(old: History[T], new: Sequence[T]) -> tuple[History[T], int]:
    """Return *new* as a history that shares its beginning with *old*, and how long that is."""
    same = 0
    for was, now in zip(old, new, strict=False):
        if was is not now:
            break
        same += 1
    return old.prefix(same).extend(new[same:]), same


def read_native(session: Session) -> tuple[NativeHistory | None, str | None]:
    """Return the session's native history if it can be trusted, and otherwise why not.

    A session without native history gives ``(None, None)``.
    """
    items = session.metadata.get(NATIVE_MESSAGES)
    if items is None:
        return None, None
    provenance = session.metadata.get(PROVENANCE)
    known = session.native
    if isinstance(known, _Known) and known.is_of(session, items, provenance):
        return known.native, None
    if not isinstance(items, History):
        return None, "native_messages is not a list"
    seal = session.seal if isinstance(session.seal, Seal) else _check(session, items)
    if seal is None:
        return None, "the messages or their native form were changed outside the core"
    provider, models = _read_provenance(provenance, len(items))
    native = NativeHistory(items=items, provider=provider, models=models, seal=seal)
    session.with_native(_Known(native, provenance))
    return native, None


class _Known(NamedTuple):
    """A native history that was read or written, and the provenance that stands for it in the metadata."""

    native: NativeHistory
    provenance: object

    def is_of(self, session: Session, items: object, provenance: object) -> bool:
        """Say whether it is made of just these objects; they are frozen, so it is still true then."""
        native = self.native
        return native.items is items and native.seal is session.seal and self.provenance is provenance


def write_native(
    session: Session,
    messages: Iterable[Message],
    native: NativeHistory | None,
    *,
    report: Mapping[str, object] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Session:
    """Return *session* with other messages and the native history that goes with them.

    Args:
        report: What had to be rebuilt and why; stored as ``native_rebuilt`` until the next change.
        metadata: Replaces the session's metadata, except for the keys of native history.
    """
    given = metadata or session.metadata
    kept = {key: value for key, value in given.items() if key not in OWNED_METADATA}
    if ARCHIVE in session.metadata:
        kept[ARCHIVE] = session.metadata[ARCHIVE]
    if report is not None:
        kept[REBUILT] = freeze(report)
    provenance = None if native is None else _write_provenance(native)
    if native is not None:
        kept |= {
            NATIVE_MESSAGES: native.items,
            INTEGRITY: FrozenDict(native.seal.to_dict()),
            PROVENANCE: provenance,
        }
    # Of a session's own metadata, all values are frozen; what somebody else gave is looked at.
    frozen = FrozenDict(kept) if given.__class__ is FrozenDict else kept
    written = session.with_messages(History.of(messages), frozen, None if native is None else native.seal)
    return written if native is None else written.with_native(_Known(native, provenance))


def cut_native(native: NativeHistory, messages: int, items: int) -> NativeHistory:
    """Return the native history of the first messages, whose items are the first ones and in order."""
    runs: ModelRuns = ()
    left = items
    for model, count in native.models:
        runs, left = add_run(runs, model, min(count, left)), max(0, left - count)
    seal = native.seal.cut(messages, items)
    return replace(native, items=native.items.prefix(items), models=runs, seal=seal)


def add_run(models: ModelRuns, model: str | None, count: int) -> ModelRuns:
    """Return the runs after *count* more items made by *model*."""
    if count == 0:
        return models
    if models and models[-1][0] == model:
        return (*models[:-1], (model, models[-1][1] + count))
    return (*models, (model, count))


def item_models(models: ModelRuns) -> list[str | None]:
    return [model for model, count in models for _ in range(count)]


def model_runs(per_item: Iterable[str | None]) -> ModelRuns:
    """Return the runs of a list that has the model of each item."""
    runs: ModelRuns = ()
    for model in per_item:
        runs = add_run(runs, model, 1)
    return runs


def _check(session: Session, items: History[FrozenDict]) -> Seal | None:
    stored = session.metadata.get(INTEGRITY)
    covered = covered_messages(stored, len(session.messages))
    if covered is None or not all(isinstance(item, dict) for item in items):
        return None
    seal = Seal().extend(session.history.prefix(covered), items)
    if seal.to_dict() != stored:
        return None
    session.sealed(seal)  # it is frozen, so this need not be done again
    return seal


def read_runs(stored: Any, count: int) -> ModelRuns:
    """Return stored model runs if they make sense for *count* items, otherwise one of an unknown model."""
    unknown: ModelRuns = ((None, count),) if count else ()
    try:
        runs: ModelRuns = tuple([(model, size) for model, size in stored])
        known = sum([size for _, size in runs if size > 0])
    except (TypeError, ValueError):  # it may come from a file that somebody edited
        return unknown
    return runs if known == count else unknown


def _read_provenance(stored: object, count: int) -> tuple[str | None, ModelRuns]:
    if not isinstance(stored, (dict, Mapping)):
        return None, read_runs(None, count)
    return stored.get("provider"), read_runs(stored.get("models"), count)


def _write_provenance(native: NativeHistory) -> FrozenDict:
    runs = FrozenList([FrozenList(run) for run in native.models])
    provenance = {"provider": native.provider, "models": runs}
    return FrozenDict(provenance, in_order=True) if native.seal.in_order else FrozenDict(provenance)


# Native history of the providers that a session is not talking to right now.
#
# When a request goes to another provider, the form that the first one made is set aside, together
# with a digest of each message that it covers. Coming back, as much of it is used as the conversation
# still begins with the same messages; what came later is converted like any new message.


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
    if archive is None:
        return None, None
    entry = archive.get(provider) if isinstance(archive, Mapping) else None
    if entry is None:
        return None, None
    if not _is_intact(entry):
        return None, f"what provider {provider!r} had made was changed outside the core"
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

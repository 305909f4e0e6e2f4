"""A session's native history: read from its metadata, checked, extended, written back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from agent_core.frozen import FrozenDict, FrozenList
from agent_core.history import History
from agent_core.native.links import Seal, covered_messages
from agent_core.session import Session

if TYPE_CHECKING:
    from agent_core.messages import Message

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
        return replace(
            self,
            items=self.items.extend(items),
            models=add_run(self.models, model, len(items)),
            seal=self.seal.extend(messages, items),
        )


def new_native(
    messages: Iterable[Message], items: Iterable[FrozenDict], provider: str | None, models: ModelRuns
) -> NativeHistory:
    """Return a native history whose links are all made anew."""
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
    if not isinstance(items, History):
        return None, "native_messages is not a list"
    seal = session.seal if isinstance(session.seal, Seal) else _check(session, items)
    if seal is None:
        return None, "the messages or their native form were changed outside of the core"
    provider, models = _read_provenance(session.metadata.get(PROVENANCE), len(items))
    return NativeHistory(items=items, provider=provider, models=models, seal=seal), None


def write_native(
    session: Session,
    messages: Iterable[Message],
    native: NativeHistory | None,
    *,
    report: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Session:
    """Return *session* with other messages and the native history that goes with them.

    Args:
        report: What had to be rebuilt and why; stored as ``native_rebuilt`` until the next change.
        metadata: Replaces the session's metadata, except for the keys of native history.
    """
    kept = {key: value for key, value in (metadata or session.metadata).items() if key not in OWNED_METADATA}
    if ARCHIVE in session.metadata:
        kept[ARCHIVE] = session.metadata[ARCHIVE]
    if native is not None:
        kept[NATIVE_MESSAGES] = native.items
        kept[INTEGRITY] = FrozenDict(native.seal.to_dict())
        kept[PROVENANCE] = _write_provenance(native)
    if report is not None:
        kept[REBUILT] = report
    written = Session(session.session_id, History.of(messages), kept)
    return written if native is None else written.sealed(native.seal)


def add_run(models: ModelRuns, model: str | None, count: int) -> ModelRuns:
    """Return the runs after *count* more items made by *model*."""
    if count == 0:
        return models
    if models and models[-1][0] == model:
        return (*models[:-1], (model, models[-1][1] + count))
    return (*models, (model, count))


def item_models(models: ModelRuns) -> list[str | None]:
    """Return the model of each item."""
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
        runs: ModelRuns = tuple((model, size) for model, size in stored)
        known = sum(size for _, size in runs if size > 0)
    except (TypeError, ValueError):  # it may come from a file that somebody edited
        return unknown
    return runs if known == count else unknown


def _read_provenance(stored: Any, count: int) -> tuple[str | None, ModelRuns]:
    if not isinstance(stored, Mapping):
        return None, read_runs(None, count)
    return stored.get("provider"), read_runs(stored.get("models"), count)


def _write_provenance(native: NativeHistory) -> FrozenDict:
    runs = FrozenList([FrozenList(run) for run in native.models])
    return FrozenDict(provider=native.provider, models=runs)

"""A range of messages becomes a summary, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.messages import NATIVE_INDICES
from compaction_feature import answers
from compaction_feature.errors import NotFound
from compaction_feature.places import items_of, native_places
from compaction_feature.quoting import count_characters
from compaction_feature.ranges import Range, choose_range, count_groups, find_cuts
from compaction_feature.records import (
    MARK,
    Record,
    find_record,
    next_id,
    plain_messages,
    read_records,
    write_records,
)
from compaction_feature.summaries import as_message, summarise

if TYPE_CHECKING:
    from agent_core import Session
    from compaction_feature.places import Place
    from compaction_feature.settings import Settings

Dicts = list[dict[str, Any]]
Known = dict[str, Any] | None
TRANSCRIPT = "compaction_transcript"
"""In the state of an action: the native history that it makes, and which messages shall be read from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an action works on, as it was told."""

    session: Session
    native: Sequence[dict[str, Any]]
    context: Mapping[str, Any]
    state: dict[str, Any]
    settings: Settings

    def convert(self, messages: Dicts) -> Dicts:
        """Return the native form of message dicts."""
        native: Dicts = self.context["core"].core_messages_to_native(messages, dict(self.context["config"]))
        return native

    def places(self) -> list[Place]:
        """Return where each message stands in native history."""
        return native_places(self.session, self.native, self.convert)

    def put(self, items: Sequence[dict[str, Any]], cut: range, place: Range, known: Sequence[Known]) -> Dicts:
        """Return native history with *items* in the place of others.

        Args:
            cut: The native items that go.
            place: The messages that go.
            known: The messages that come; None for one that is to be read from its items.
        """
        native = [*self.native[: cut.start], *items, *self.native[cut.stop :]]
        count = len(self.session.messages)
        before, after = (
            plain_messages(self.session, *ends) for ends in ((0, place.start), (place.end, count))
        )
        self.state[TRANSCRIPT] = (native, [*before, *known, *after])
        return native

    @property
    def provider(self) -> str:
        """Whose form the native history is in."""
        return str((self.context.get("request_context") or self.context).get("provider"))


def compact_range(
    work: Work, *, start: int | None, end: int | None, instructions: str = ""
) -> answers.Answer:
    """Replace a range by its summary.

    Raises:
        RangeError: If there is no such range.
        SummaryFailed: If no summary can be had.
    """
    places = work.places()
    cuts = find_cuts(work.session.messages, places)
    chosen = choose_range(work.session.messages, cuts, start, end, work.settings.keep)
    return _replace(work, places, chosen, instructions)


def compact_when_long(work: Work) -> answers.Answer:
    """Replace all but the last messages if the session is longer than it shall be.

    Raises:
        RangeError: If nothing is old enough.
        SummaryFailed: If no summary can be had.
    """
    messages = work.session.messages
    if not work.settings.exceeded_by(len(messages), count_characters(messages)):
        return answers.nothing_done(work.native, "the session is not long enough to be compacted")
    places = work.places()
    cuts = find_cuts(messages, places)
    chosen = choose_range(messages, cuts, None, None, work.settings.keep)
    if count_groups(cuts, chosen) == 1:
        # It may be the summary of last time; a summary of that would lose much and save nothing.
        return answers.nothing_done(work.native, "only one group of messages is old enough to be compacted")
    return _replace(work, places, chosen, "")


def undo_compaction(work: Work, record_id: str | None) -> answers.Answer:
    """Put back what a summary stands for.

    Raises:
        NotFound: If there is no such summary.
    """
    records = read_records(work.session)
    record = find_record(records, record_id)
    position, cut = _find_summary(work, records, record)
    made_anew = record.provider != work.provider
    items = work.convert(list(record.messages)) if made_anew else record.native_messages
    native = work.put(items, cut, Range(position, position + 1), record.messages)
    patch = write_records([one for one in records if one is not record])
    return answers.undone(native, patch, record, made_anew=made_anew)


def _replace(work: Work, places: Sequence[Place], chosen: Range, instructions: str) -> answers.Answer:
    messages = work.session.messages[chosen.start : chosen.end]
    summary = summarise(work.context, work.settings.agent, messages, instructions)
    records = read_records(work.session)
    cut = items_of(places, chosen.start, chosen.end)
    record = Record(
        id=next_id(records),
        start=chosen.start,
        end=chosen.end,
        summary=summary,
        provider=work.provider,
        messages=plain_messages(work.session, chosen.start, chosen.end),
        native_messages=list(work.native[cut.start : cut.stop]),
    )
    native = work.put(_summary_items(work, record), cut, chosen, [None])
    patch = write_records([*records, record])
    return answers.compacted(native, patch, record, chosen, count_characters(messages))


def _summary_items(work: Work, record: Record) -> Dicts:
    """Return the summary in native form, marked so that it is found again."""
    items = work.convert([{"role": "user", "content": as_message(record.summary), "metadata": {}}])
    marked: Dicts = work.context["core"].patch_native_internal_metadata(
        items, list(range(len(items))), {MARK: record.id}
    )
    return marked


def _find_summary(work: Work, records: Sequence[Record], record: Record) -> tuple[int, range]:
    """Return the position of a record's summary, and its native items."""
    places = work.places()
    cuts = find_cuts(work.session.messages, places)
    marked = {index for index, item in enumerate(work.native) if _mark(item, "_metadata") == record.id}
    for position, message in enumerate(work.session.messages):
        spots = marked.intersection(places[position])
        if (spots or message.metadata.get(MARK) == record.id) and cuts[position] and cuts[position + 1]:
            own = range(min(spots), max(spots) + 1) if spots else items_of(places, position, position + 1)
            return position, own
    for other in records:
        if any(_mark(one, "metadata") == record.id for one in other.messages):
            raise NotFound(
                f"the summary of {record.id!r} is itself part of {other.id!r}: undo that one first"
            )
    raise NotFound(f"the summary of {record.id!r} is not in the session any more, so its place is not known")


def _mark(fields: Mapping[str, Any], key: str) -> Any:
    about = fields.get(key)
    return about.get(MARK) if isinstance(about, Mapping) else None


def as_known(state: Mapping[str, Any], native: Dicts, messages: Dicts) -> Dicts:
    """Return messages that were read from native history, those that are known as they are known.

    Reading gives what a provider keeps; what the platform and plugins knew about a message stands only in
    the message itself.
    """
    made, known = state.get(TRANSCRIPT) or (None, [])
    if made != native or len(known) != len(messages):
        return messages
    pairs = list(zip(known, messages, strict=True))
    if any(one is not None and one["role"] != read["role"] for one, read in pairs):
        return messages
    return [read if one is None else _in_place_of(read, one) for one, read in pairs]


def _in_place_of(read: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return a known message, standing where its provider says that it does."""
    about = read.get("metadata") or {}
    if NATIVE_INDICES not in about:
        return known
    return {**known, "metadata": {**known["metadata"], NATIVE_INDICES: about[NATIVE_INDICES]}}

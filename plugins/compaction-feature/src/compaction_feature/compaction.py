"""A range of messages becomes a summary, and the summary becomes the messages again.

What is replaced stays in the session's metadata as a `Record`: the messages and their native form, so that
undoing restores both exactly, and so that they can still be converted if the session talks to another
provider by then. Where a conversation may be cut and how a model is asked for a summary is
`agent_runtime.summary`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_core import AgentError
from agent_core.frozen import thaw
from agent_core.messages import NATIVE_INDICES
from agent_core.side_request import NotAnswered, ask
from agent_runtime.summary import as_message, count_characters, quote, summary_question, summary_rules
from compaction_feature.ranges import (
    Dicts,
    Item,
    NotFound,
    Place,
    Range,
    SummaryFailed,
    choose_range,
    count_groups,
    find_cuts,
    items_of,
    native_places,
)

if TYPE_CHECKING:
    from agent_core import Message, Session
    from agent_core.frozen import State
    from compaction_feature.settings import Settings

PLUGIN = "compaction"
COMPACT = "compact_range"
COMPACT_LONG = "compact_when_long"
UNDO = "undo_compaction"
MOST_ATTEMPTS: Final = 2
LONGEST = 20_000
"""Of a single message, about so many characters are quoted at most: its beginning and its end."""

Native = Sequence[Item]
Answer = dict[str, Any]
Patch = dict[str, object]
"""A change of the session's metadata."""
Known = Item | None
TRANSCRIPT = "compaction_transcript"
"""In the state of an action: the native history that it makes, and which messages are to be read from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an action works on."""

    session: Session
    native: Native
    context: Mapping[str, Any]
    state: State
    settings: Settings

    def convert(self, messages: Dicts) -> Dicts:
        """Return the native form of message dicts."""
        native: Dicts = self.context["core"].core_messages_to_native(messages, dict(self.context["config"]))
        return native

    def places(self) -> list[Place]:
        """Return where each message stands in native history."""
        return native_places(self.session, self.native, self.convert)

    def put(self, items: Native, cut: range, place: Range, known: Sequence[Known]) -> Dicts:
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


def compact_range(work: Work, *, start: int | None, end: int | None, instructions: str = "") -> Answer:
    """Replace a range by its summary.

    Raises:
        RangeError: If there is no such range.
        SummaryFailed: If no summary can be had.
    """
    places = work.places()
    cuts = find_cuts(work.session.messages, places)
    chosen = choose_range(work.session.messages, cuts, start, end, work.settings.keep)
    return _replace(work, places, chosen, instructions)


def compact_when_long(work: Work) -> Answer:
    """Replace all but the last messages if the session is too long.

    Raises:
        RangeError: If nothing is old enough.
        SummaryFailed: If no summary can be had.
    """
    messages = work.session.messages
    if not work.settings.exceeded_by(len(messages), count_characters(messages)):
        return nothing_done(work.native, "the session is not long enough to be compacted")
    places = work.places()
    cuts = find_cuts(messages, places)
    chosen = choose_range(messages, cuts, None, None, work.settings.keep)
    if count_groups(cuts, chosen) == 1:
        # It may be the summary of last time; a summary of that would lose much and save nothing.
        return nothing_done(work.native, "only one group of messages is old enough to be compacted")
    return _replace(work, places, chosen, "")


def undo_compaction(work: Work, record_id: str | None) -> Answer:
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
    return undone(native, patch, record, made_anew=made_anew)


def _replace(work: Work, places: Sequence[Place], chosen: Range, instructions: str) -> Answer:
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
    return compacted(native, patch, record, chosen, count_characters(messages))


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


def _mark(fields: Mapping[str, object], key: str) -> object:
    about = fields.get(key)
    return about.get(MARK) if isinstance(about, Mapping) else None


def as_known(state: State, native: Dicts, messages: Dicts) -> Dicts:
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


def _in_place_of(read: Item, known: Item) -> Item:
    """Return a known message, standing where its provider says that it does."""
    about = read.get("metadata") or {}
    if NATIVE_INDICES not in about:
        return known
    return {**known, "metadata": {**known["metadata"], NATIVE_INDICES: about[NATIVE_INDICES]}}


COMPACTIONS = "compactions"
MARK = "compaction"
"""In the metadata of a summary: the id of its record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One compaction.

    Attributes:
        start: The first message that was replaced, as the session was then.
        end: The first behind it that was not.
        messages: What was replaced, as dicts.
        native_messages: Its native form.
        provider: Whose form that is.
    """

    id: str
    start: int
    end: int
    summary: str
    provider: str
    messages: Sequence[Item]
    native_messages: Sequence[Item]

    def to_dict(self) -> dict[str, object]:
        return {name: thaw(getattr(self, name)) for name in self.__slots__}


def read_records(session: Session) -> list[Record]:
    """Return the records of a session, the oldest first; what is not a record is left out."""
    found = session.metadata.get(COMPACTIONS)
    items = found if isinstance(found, (list, tuple)) else ()
    return [record for record in map(_read, items) if record is not None]


def write_records(records: Sequence[Record]) -> Patch:
    """Return the patch of the session's metadata."""
    return {COMPACTIONS: [record.to_dict() for record in records]}


def find_record(records: Sequence[Record], record_id: str | None) -> Record:
    """Return the record of that id, or the newest.

    Raises:
        NotFound: If there is none.
    """
    if not records:
        raise NotFound("nothing in this session is compacted")
    if record_id is None:
        return records[-1]
    for record in records:
        if record.id == record_id:
            return record
    known = ", ".join(record.id for record in records)
    raise NotFound(f"this session has no compaction {record_id!r}; there are {known}")


def next_id(records: Sequence[Record]) -> str:
    """Return an id that no record has; ids of records that are gone may come again."""
    taken = {record.id for record in records}
    number = len(records) + 1
    while f"compaction-{number}" in taken:
        number += 1
    return f"compaction-{number}"


def plain_messages(session: Session, start: int, end: int) -> Dicts:
    """Return messages as dicts that say nothing of where they stood."""
    return [message.with_native_indices(None).to_dict() for message in session.messages[start:end]]


def _read(item: object) -> Record | None:
    """Read a record; the metadata may come from a file that somebody edited."""
    if not isinstance(item, Mapping) or set(item) != set(Record.__slots__):
        return None
    lists = [item["messages"], item["native_messages"]]
    if not all(isinstance(item[name], str) for name in ("id", "summary", "provider")):
        return None
    if not all(isinstance(one, list) and all(isinstance(each, dict) for each in one) for one in lists):
        return None
    return Record(**{str(name): value for name, value in item.items()})


def failed(native: Native, kind: str, message: str) -> Answer:
    """Return the answer of an action that changes nothing since something is wrong."""
    return {
        "native_messages": native,
        "status": "error",
        "error": {"type": kind, "message": message},
        "message": message,
    }


def nothing_done(native: Native, message: str) -> Answer:
    """Return the answer of an action that has nothing to do."""
    return {"native_messages": native, "status": "noop", "message": message}


def compacted(native: Native, patch: Patch, record: Record, chosen: Range, before: int) -> Answer:
    """Return the answer after a range was replaced.

    Args:
        before: How many characters the range had.
    """
    message = (
        f"Messages {chosen.start} to {chosen.end - 1} are now one summary of {len(record.summary)} characters"
        f" in place of {before}."
    )
    if chosen.wanted is not None:
        message += (
            f" You asked for {chosen.wanted[0]} to {chosen.wanted[1] - 1}; a tool call and its results stay"
            " together."
        )
    return {
        "native_messages": native,
        "session_metadata": patch,
        "status": "ok",
        "message": message,
        "compaction": record.id,
        "start": chosen.start,
        "end": chosen.end,
        "adjusted": chosen.wanted is not None,
        "summary": record.summary,
        "display": _display("Compacted", message, _undo_button(record)),
    }


def undone(native: Native, patch: Patch, record: Record, *, made_anew: bool) -> Answer:
    """Return the answer after messages were put back.

    Args:
        made_anew: Whether their native form was, since the session has another provider now.
    """
    message = f"{len(record.messages)} messages are back in the place of their summary."
    return {
        "native_messages": native,
        "session_metadata": patch,
        "status": "ok",
        "message": message,
        "compaction": record.id,
        "native_form": "made_anew" if made_anew else "restored",
        "display": _display("Put back", message, []),
    }


def _display(title: str, body: str, actions: Sequence[dict[str, object]]) -> dict[str, object]:
    display: dict[str, object] = {
        "format": "text",
        "title": title,
        "body": body,
        "variant": "success",
        "presentation": "inline",
        "dismissible": True,
        "display_id": PLUGIN,
    }
    return {**display, "actions": list(actions)} if actions else display


def _undo_button(record: Record) -> list[dict[str, object]]:
    button = {"kind": "run_action", "id": "undo", "label": "Undo", "plugin": PLUGIN, "action_id": UNDO}
    return [{**button, "params": {"compaction": record.id}}]


def summarise(
    context: Mapping[str, Any], agent: str | None, messages: Sequence[Message], instructions: str
) -> str:
    """Return a summary of the messages that is shorter than they are.

    Args:
        context: The action's context.
        agent: Who writes it; None for the session's own agent.
        instructions: What the person who asked for it wants of it; may be empty.

    Raises:
        SummaryFailed: After two attempts.
    """
    rules = summary_rules()
    question = summary_question([quote(message, len, LONGEST) for message in messages], wish=instructions)
    most = count_characters(messages)
    problem = ""
    for _ in range(MOST_ATTEMPTS):
        hint = f"\n\nAn earlier attempt could not be used: {problem}." if problem else ""
        try:
            summary = ask(context, agent, rules, question + hint)
        except (AgentError, NotAnswered) as error:
            problem = f"the model could not be asked ({error})"
            continue
        problem = find_problem(summary, most)
        if not problem:
            return summary
    raise SummaryFailed(f"{MOST_ATTEMPTS} attempts gave no summary: {problem}")


def find_problem(summary: str, most: int) -> str:
    """Return why a summary cannot stand for *most* characters, or an empty string if it can."""
    if not summary:
        return "the answer is empty"
    length = len(as_message(summary))
    if length >= most:
        return f"with {length} characters it is no shorter than the messages, which have {most}"
    return ""

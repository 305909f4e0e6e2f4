"""What was replaced, kept in the session's metadata until it is put back.

A record holds the messages and their native form, so that undoing restores both to the letter, and so
that they can still be made anew if the session talks to another provider by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_core.frozen import thaw
from compaction_feature.errors import NotFound

if TYPE_CHECKING:
    from agent_core import Session

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
    messages: Sequence[dict[str, Any]]
    native_messages: Sequence[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return {name: thaw(getattr(self, name)) for name in self.__slots__}


def read_records(session: Session) -> list[Record]:
    """Return the records of a session, the oldest first; what is no record is left out."""
    found = session.metadata.get(COMPACTIONS)
    items = found if isinstance(found, (list, tuple)) else ()
    return [record for record in map(_read, items) if record is not None]


def write_records(records: Sequence[Record]) -> dict[str, Any]:
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


def plain_messages(session: Session, start: int, end: int) -> list[dict[str, Any]]:
    """Return messages as dicts that say nothing of where they stood."""
    return [message.with_native_indices(None).to_dict() for message in session.messages[start:end]]


def _read(item: Any) -> Record | None:
    """Read a record; the metadata may come from a file that somebody edited."""
    if not isinstance(item, Mapping) or set(item) != set(Record.__slots__):
        return None
    lists = [item["messages"], item["native_messages"]]
    if not all(isinstance(item[name], str) for name in ("id", "summary", "provider")):
        return None
    if not all(isinstance(one, list) and all(isinstance(each, dict) for each in one) for one in lists):
        return None
    return Record(**{str(name): value for name, value in item.items()})

"""Summaries that stand for the beginning of a conversation, in what is sent.

The session keeps every message. A record says: the messages before a certain place are sent as this
summary. Dropping the record undoes it. Each new record covers more than the one before and its summary
includes the earlier one's, so the newest that is valid counts alone. A record carries a digest of
what it covers: if the history was edited since, its summary may be untrue and is not used any more.

System messages at the front are never covered. Neither is the last thing that the user said, for as
long as nothing newer of the user follows: it is the task, and a task must not be summarised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from agent_core import Message
from agent_core.encoding import canonical
from agent_runtime.state import StateKey
from agent_runtime.summary import as_message, last_user_turn, prefix_length

if TYPE_CHECKING:
    from agent_core.frozen import State

_VERIFIED = "runtime.summarised"
COMPACTIONS: StateKey[list[dict[str, Any]]] = StateKey("context.compactions", [], scope="session")
"""The records, oldest first, as plain data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One summary.

    Attributes:
        upto: How many messages of the session it stands for, from the first on.
        digest: A hash of these messages.
        summary: The text.
        tokens_before: The estimate for the conversation as it was sent before.
        tokens_after: The estimate with this summary.
        model: The model that wrote it.
        at_round: The round of the run in which it was made.
    """

    upto: int
    digest: str
    summary: str
    tokens_before: int = 0
    tokens_after: int = 0
    model: str = ""
    at_round: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def is_valid(self, messages: Sequence[Message], memory: State | None = None) -> bool:
        """Say whether the history still begins with what was summarised.

        Args:
            memory: Of the session, to remember that it does: the next request asks again.
        """
        if self.upto > len(messages):
            return False
        beginning = list(messages[: self.upto])
        verified, digests = (memory or {}).get(_VERIFIED, ([], {}))
        if digests.get(self.digest) == self.upto and beginning == verified[: self.upto]:
            return True
        if digest(beginning) != self.digest:
            return False
        if memory is not None:
            # Older summaries cover less of the same messages, so the longest beginning serves for all.
            shared = min(self.upto, len(verified))
            same = digests if beginning[:shared] == verified[:shared] else {}
            longest = verified if same and len(verified) > self.upto else beginning
            memory[_VERIFIED] = longest, {**same, self.digest: self.upto}
        return True


def read_records(saved: object) -> list[Record]:
    """Return the records of a session, oldest first; what cannot be read is left out."""
    items = saved if isinstance(saved, (list, tuple)) else ()
    read = (_read_record(item) for item in items)
    return [record for record in read if record is not None]


def write_records(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the records as the state keeps them."""
    return [record.to_dict() for record in records]


def undo(records: Sequence[Record]) -> list[Record]:
    """Return the records without the newest: what it stood for is sent as it stood before."""
    return list(records[:-1])


def current(
    records: Iterable[Record], messages: Sequence[Message], memory: State | None = None
) -> Record | None:
    """Return the record that counts: the newest that is valid, if messages follow what it covers."""
    for record in reversed(list(records)):
        if record.upto < len(messages) and record.is_valid(messages, memory):
            return record
    return None


def digest(messages: Iterable[Message]) -> str:
    """Return a hash of what these messages say and call; how a provider keeps them does not matter."""
    hashed = sha256()
    for message in messages:
        hashed.update(canonical([message.role, message.content, message.metadata.get("tool_calls")]))
    return hashed.hexdigest()


def summary_message(summary: str) -> Message:
    """Return the message that is sent in place of what was summarised."""
    return Message("user", as_message(summary))


def compacted(messages: Sequence[Message], cut: int, summary: str) -> list[Message]:
    """Return what is sent: a summary in place of the messages before *cut*, all others as they are."""
    front = messages[: min(cut, prefix_length(messages))]
    asked = last_user_turn(messages)
    turn = [messages[place] for place in asked if place < cut]
    return [*front, summary_message(summary), *turn, *messages[cut:]]


def find_cut(messages: Sequence[Message], session: Sequence[Message], upto: int) -> int | None:
    """Return where in a prompt the session's message at *upto* stands; None if it is not there.

    A prompt has messages that the session lacks, at its front or at its end; and its messages may be
    newer objects than the session's, since those are given their native form on the way.
    """
    first = session[upto]
    for place in range(len(messages) - (len(session) - upto), -1, -1):
        if _say_the_same(messages[place], first):
            return place
    return None


def _say_the_same(one: Message, other: Message) -> bool:
    return one is other or (
        one.role == other.role
        and one.content == other.content
        and one.metadata.get("tool_calls") == other.metadata.get("tool_calls")
    )


def _read_record(item: object) -> Record | None:
    if not isinstance(item, Mapping):
        return None
    known = {name: item[name] for name in Record.__slots__ if name in item}
    upto, texts = known.get("upto"), [known.get("digest"), known.get("summary")]
    if not isinstance(upto, int) or upto < 1 or not all(isinstance(text, str) for text in texts):
        return None
    return Record(**known)

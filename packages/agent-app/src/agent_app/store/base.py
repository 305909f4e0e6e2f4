"""The contract of session stores: what they keep, what they promise, and what they refuse.

A store keeps each message and each native item once, under the hash of what it says; a session is a list
of references, and a fork shares its source's references up to where they part. Saving costs as much as is
new. Everything that a save brings is written in one transaction, together with the check that the writer
may write: either all of it is there afterwards, or none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from agent_core.frozen import EMPTY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from agent_core import Message, Session

Durability = Literal["turn", "soon"]
"""How safe a write must be when the call returns: "turn" survives a loss of power, "soon" survives the
death of the process and is made safe with the next write that must be."""

InputMode = Literal["steer", "queue", "interrupt"]
"""When a message that came during a run is delivered: after the current step, after the run, or now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """What a list shows of a session.

    Attributes:
        id: The session's id.
        title: What people call it; may be empty.
        agent_id: The agent that it belongs to, if it does.
        created: When it was made, in seconds since 1970.
        updated: When it was last changed.
        messages: How many messages it has.
        revision: Rises with every change.
        parent_id: The session that it was forked from, if any.
        match: For a search: the piece of text that was found.
        extra: What application plugins say of it, by plugin; the store has none.
    """

    id: str
    title: str = ""
    agent_id: str | None = None
    created: float = 0.0
    updated: float = 0.0
    messages: int = 0
    revision: int = 0
    parent_id: str | None = None
    match: str | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: EMPTY, hash=False)


class Page(NamedTuple):
    """Some of the sessions, and the cursor by which to ask for the next ones; None at the end."""

    sessions: tuple[SessionInfo, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as it is stored: hand it back with the next save, so that only what is new is written."""

    session: Session
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write a session, for a while.

    Attributes:
        owner: Who has it, readable: program, process and machine.
        token: Rises with every taking; a write with an older one is refused.
        expires: Until when, by the store's clock; whoever has it renews it before.
    """

    session_id: str
    owner: str
    token: int
    expires: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A message that waits to be delivered.

    Attributes:
        seq: Its place in the queue of its session.
        message: The message as a dict.
        mode: When it is delivered.
    """

    seq: int
    session_id: str
    message: Mapping[str, Any]
    mode: InputMode
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A decision that a run waits for.

    Attributes:
        id: By what it is decided: the id of the suspension.
        suspension: What is asked, as a dict.
        decision: What was decided, as a dict; None while it is open.
        used: True once a run has gone on with it.
    """

    id: str
    session_id: str
    suspension: Mapping[str, Any]
    created: float
    decision: Mapping[str, Any] | None = None
    used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What else is written in the transaction of a save.

    Attributes:
        events: Events for the session's log, in order.
        take_inputs: Waiting messages that the session now has; they leave the queue.
        approvals: Decisions that the session now waits for.
        use_approvals: Decisions that the session has gone on with.
        intent: A tool call that is about to run: ``(call_id, details)``.
        results: Calls whose results the session now has.
        title: A new title and the one that it replaces; if somebody gave another meanwhile, that stays.
    """

    events: Sequence[Mapping[str, Any]] = ()
    take_inputs: Sequence[int] = ()
    approvals: Sequence[Approval] = ()
    use_approvals: Sequence[str] = ()
    intent: tuple[str, Mapping[str, Any]] | None = None
    results: Sequence[str] = ()
    title: tuple[str, str] | None = None

    @property
    def any(self) -> bool:
        """True if there is anything to write."""
        return bool(
            self.events
            or self.take_inputs
            or self.approvals
            or self.use_approvals
            or self.intent
            or self.results
            or self.title
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What an integrity check found, or what was collected as garbage.

    Attributes:
        checked: How many things were looked at, by kind.
        problems: What is wrong, one sentence each.
    """

    checked: Mapping[str, int] = field(default_factory=lambda: EMPTY)
    problems: tuple[str, ...] = ()


class SessionStore(Protocol):
    """Where sessions live. All methods block; the application calls them where that does no harm.

    Methods raise `StoreUnavailable` if the database cannot be used now, and `SessionNotFound` for an id
    that is not there.
    """

    url: str

    def close(self) -> None:
        """Let go of the database."""

    def create(self, session: Session, *, agent_id: str | None = None, title: str = "") -> Stored:
        """Store a new session.

        Raises:
            SessionExists: If its id is taken.
        """

    def load(self, session_id: str) -> Stored:
        """Return a whole session."""

    def info(self, session_id: str) -> SessionInfo:
        """Return what a list shows of one session."""

    def messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> Sequence[Message]:
        """Return up to *limit* messages, the last ones or those before an index, without loading the rest."""

    def save(
        self,
        session: Session,
        base: Stored,
        *,
        lease: Lease | None = None,
        changes: Changes | None = None,
        durability: Durability = "turn",
    ) -> Stored:
        """Store what is new in *session* since *base*, and the changes, in one transaction.

        Args:
            lease: The right to write; without one, nobody else may have it.

        Raises:
            RevisionConflict: If the session was changed since *base*.
            LeaseLost: If the lease is not ours any more.
            SessionHeld: If there is no lease and somebody else has one.
        """

    def fork(self, session_id: str, session: Session, upto: int, *, agent_id: str | None = None) -> Stored:
        """Store *session* as a fork that shares the first *upto* messages of another."""

    def rename(self, session_id: str, title: str) -> SessionInfo:
        """Give a session another title."""

    def assign(self, session_id: str, agent_id: str | None) -> SessionInfo:
        """Give a session to another agent."""

    def delete(self, session_id: str, *, lease: Lease | None = None) -> None:
        """Remove a session; what only it had is collected by `collect`."""

    def list(self, *, query: str | None = None, cursor: str | None = None, limit: int = 50) -> Page:
        """Return sessions, the last changed first; with a query those whose title or text has its words."""

    def acquire(self, session_id: str, owner: str, *, seconds: float, take_over: bool = False) -> Lease:
        """Take the right to write a session.

        Raises:
            SessionHeld: If somebody else has it and *take_over* is not set.
        """

    def renew(self, lease: Lease, *, seconds: float) -> Lease:
        """Keep the right for longer.

        Raises:
            LeaseLost: If it is not ours any more.
        """

    def release(self, lease: Lease) -> None:
        """Give the right back; one that is lost already is ignored."""

    def holder(self, session_id: str) -> Lease | None:
        """Return who may write a session now, if anybody may."""

    def append_events(
        self, session_id: str, events: Sequence[Mapping[str, Any]], *, durability: Durability = "soon"
    ) -> Sequence[int]:
        """Write events to a session's log and return their numbers, which rise by one."""

    def events(self, session_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Return logged events behind a number, each with its `seq`."""

    def put_input(self, session_id: str, message: Mapping[str, Any], mode: InputMode) -> Waiting:
        """Keep a message until it is delivered; it is safe when this returns."""

    def inputs(self, session_id: str) -> Sequence[Waiting]:
        """Return the messages that wait, in order."""

    def drop_input(self, session_id: str, seq: int) -> bool:
        """Take a waiting message back; False if it was delivered already."""

    def approvals(self, session_id: str | None = None, *, undecided: bool = False) -> Sequence[Approval]:
        """Return the approvals of a session, or of all."""

    def decide(self, approval_id: str, decision: Mapping[str, Any]) -> Approval:
        """Keep a decision.

        Raises:
            DecisionNotAccepted: If there is no such approval, or it is decided already.
        """

    def open_intents(self, session_id: str) -> dict[str, Mapping[str, Any]]:
        """Return the tool calls that were about to run and have no result, by call id."""

    def check(self, *, deep: bool = False) -> Report:
        """Look for damage; *deep* also reads and hashes everything that is kept."""

    def collect(self) -> Report:
        """Remove what no session refers to any more."""

    def writing(self) -> AbstractContextManager[Any]:
        """Hold other writers of the whole store off, for exports."""

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all sessions."""

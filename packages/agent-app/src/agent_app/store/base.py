"""The contract of session stores: what they keep, what they promise, and what they refuse.

A store keeps each message and each native item once, under the hash of what it says; a session is a list
of references, and a fork shares its source's references up to where they part. Saving costs as much as is
new. Everything that a save brings is written in one transaction, together with the check that the writer
may write: either all of it is there afterwards, or none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent_core.frozen import EMPTY, thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from agent_core import Message, Session

Durability = Literal["turn", "soon"]
"""How safe a write must be when the call returns: "turn" survives a loss of power, "soon" survives the
death of the process and is made safe with the next write that must be."""

InputMode = Literal["steer", "queue", "interrupt"]
"""When a message that came during a run is delivered: after the current step, after the run, or now."""

GrantEffect = Literal["allow", "deny"]
"""What a grant says of the calls that it is for."""

GrantScope = Literal["session", "project", "always"]
"""Where a grant counts: in one session, in one project, or everywhere."""


@dataclass(frozen=True, slots=True)
class Record:
    """Something that the store keeps, made of plain data."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {one.name: thaw(getattr(self, one.name)) for one in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo(Record):
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
        forked_at: In a list of branches: how many messages it has from the session that it was forked from.
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
    forked_at: int | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: EMPTY, hash=False)


@dataclass(frozen=True, slots=True)
class Page:
    """Some sessions, which iterating over it yields, and the cursor of the next ones; None at the end."""

    sessions: tuple[SessionInfo, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions)

    def __len__(self) -> int:
        return len(self.sessions)

    def __getitem__(self, place: int) -> SessionInfo:
        return self.sessions[place]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {"sessions": [info.to_dict() for info in self.sessions], "cursor": self.cursor}


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as it is stored: hand it back with the next save, so that only what is new is written.

    Attributes:
        place: Where the store has put it; for the store alone, which looks whether it is there still.
        events: The numbers of the events that were written with it.
    """

    session: Session
    revision: int
    place: tuple[int, ...] | None = field(default=None, repr=False, compare=False)
    events: tuple[int, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to write a session, for a while.

    Attributes:
        owner: Who has it, readable: program, process and machine.
        token: Rises with every taking; a write with an older one is refused.
        expires: Until when, by the owner's clock, for people; whoever has it renews it before.
        proof: By what other processes see that the owner lives, whatever their clocks say.
    """

    session_id: str
    owner: str
    token: int
    expires: float
    proof: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what people may know of it, as plain data for JSON."""
        return {"session_id": self.session_id, "owner": self.owner, "expires": self.expires}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Record):
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
class Approval(Record):
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
class Opened:
    """What whoever takes the right to write a session finds there.

    Attributes:
        lease: The right.
        revision: The session's revision.
        approvals: The decisions that it waits for, and those that nobody has gone on with yet.
        inputs: The messages that wait to be delivered.
    """

    lease: Lease
    revision: int
    approvals: Sequence[Approval]
    inputs: Sequence[Waiting]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant(Record):
    """A permission that was given, or refused, for longer than one call.

    Attributes:
        id: By what it is taken back.
        pattern: Which calls it is for, as permission rules are written.
        effect: Whether they may run.
        scope: Where it counts.
        key: The id of the session or the path of the project; empty for one that counts always.
        created: When it was given, in seconds since 1970.
        note: Who gave it and why, for people.
    """

    id: str
    pattern: str
    effect: GrantEffect
    scope: GrantScope
    key: str
    created: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What else is written in the transaction of a save.

    Attributes:
        events: Events for the session's log, in order.
        take_inputs: Waiting messages that the session now has; they leave the queue. If one has been
            taken back, nothing is saved.
        approvals: Decisions that the session now waits for.
        use_approvals: Decisions that the session has continued with, each once.
        settle_approvals: Decisions that nobody need make any more, by approval: what counts if nobody has
            made another.
        intents: Tool calls that are about to run: the details of each by call id.
        results: Calls whose results the session now has.
        title: A new title and the one that it replaces; if somebody has given another, that stays. If
            it changes, that is logged.
        agent_id: The agent that the session belongs to from now on, if that is another one.
        release: Whether the lease is given back with it.
    """

    events: Sequence[Mapping[str, Any]] = ()
    take_inputs: Sequence[int] = ()
    approvals: Sequence[Approval] = ()
    use_approvals: Sequence[str] = ()
    settle_approvals: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: EMPTY, hash=False)
    intents: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: EMPTY, hash=False)
    results: Sequence[str] = ()
    title: tuple[str, str] | None = None
    agent_id: str | None = None
    release: bool = False

    @property
    def any(self) -> bool:
        """True if there is anything to write."""
        return bool(self.events or self.release or self.of_session)

    @property
    def of_session(self) -> bool:
        """True if the session itself is another one with this, so that it gets its next revision."""
        return bool(
            self.take_inputs
            or self.approvals
            or self.use_approvals
            or self.settle_approvals
            or self.intents
            or self.results
            or self.title
            or self.agent_id
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
        """Return a session.

        Of a long one, only the end is read now; the rest is read, page by page, when somebody looks at it, as
        it was when this returned. Looking can therefore raise what reading a store raises, and:

        Raises:
            RevisionConflict: If what is looked at was changed or taken away since.
            SessionNotFound: If it was collected after the session was deleted.
        """

    def info(self, session_id: str) -> SessionInfo:
        """Return what a list shows of one session."""

    def is_current(self, stored: Stored) -> bool:
        """Say whether a session is known to be unchanged; False also where finding out would take waiting.

        It may be asked where nothing may block, as on an event loop.
        """

    def messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> Sequence[Message]:
        """Return up to *limit* messages, the last ones or those before an index, without loading the rest."""

    def first_messages(self, session_ids: Sequence[str]) -> dict[str, Message]:
        """Return the first message of each session that is there and has one, by id."""

    def find(self, given: str, *, limit: int = 50) -> Sequence[SessionInfo]:
        """Return the sessions whose id begins with a text, then those whose title it is, some of each."""

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

        Events alone, and giving the lease back, leave the session at its revision.

        Args:
            lease: The right to write; without one, nobody else may have it.

        Raises:
            RevisionConflict: If the session was changed since *base*.
            LeaseLost: If the lease is not ours any more.
            SessionHeld: If there is no lease and somebody else has one.
            InputWithdrawn: If a message that it delivers was taken back.
            DecisionNotAccepted: If it uses an approval that is not this session's, not decided, or used.
        """

    def fork(
        self,
        session_id: str,
        session: Session,
        upto: int,
        *,
        agent_id: str | None = None,
        base: Stored | None = None,
    ) -> Stored:
        """Store *session* as a fork that shares the first *upto* messages of another.

        Args:
            base: The other session as it was read, if *session* was made from that: what both share is then
                not compared with what is stored.
        """

    def rename(self, session_id: str, title: str) -> SessionInfo:
        """Give a session another title."""

    def assign(self, session_id: str, agent_id: str | None) -> SessionInfo:
        """Give a session to another agent."""

    def delete(self, session_id: str, *, lease: Lease | None = None, reason: str = "") -> None:
        """Remove a session, and all that only it had; the feed says so."""

    def family(self, session_id: str) -> Sequence[SessionInfo]:
        """Return a session with everything that it was forked from, and the forks of all of these.

        The oldest comes first.
        """

    def flags(self, session_ids: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the keys of metadata whose value is true, by session; those with none are left out."""

    def flag_counts(self) -> dict[str, int]:
        """Return the keys of metadata whose value is true, and how many sessions have each."""

    def list(
        self,
        *,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        has: Sequence[str] = (),
        lacks: Sequence[str] = (),
    ) -> Page:
        """Return sessions, the last changed first; with a query those whose title or text has its words."""

    def acquire(self, session_id: str, owner: str, *, seconds: float, take_over: bool = False) -> Lease:
        """Take the right to write a session.

        Raises:
            SessionHeld: If somebody else has it and *take_over* is not set.
        """

    def open(self, session_id: str, owner: str, *, seconds: float, take_over: bool = False) -> Opened:
        """Do what `acquire` does, and return with the right what waits for the session."""

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
        self,
        session_id: str,
        events: Sequence[Mapping[str, Any]],
        *,
        lease: Lease | None = None,
        durability: Durability = "soon",
    ) -> Sequence[int]:
        """Write events to a session's log and return their numbers, which rise by one.

        Args:
            lease: The right by which a run writes; without one, anybody may.

        Raises:
            LeaseLost: If the lease is not ours any more.
        """

    def events(self, session_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Return logged events behind a number, each with its `seq`."""

    def last_events(
        self, session_id: str, *, before: int | None = None, limit: int = 1000
    ) -> Sequence[dict[str, Any]]:
        """Return the last logged events, or those before a number, each with its `seq`, the latest first."""

    def usage_events(self, session_id: str) -> Sequence[dict[str, Any]]:
        """Return the logged events that tell what models used, without reading the rest of the log."""

    def append_own_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Write events that belong to no session's log to the feed."""

    def feed(self, *, after: int = 0, limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Return the events of all sessions behind a position, in one order for all readers.

        Each has its position as `cursor`, and, if it is of a session's log, `session_id` and `seq`. Events of
        a session that was deleted are gone; `session_deleted` is in their place.
        """

    def feed_end(self) -> int:
        """Return the position of the last event of all sessions; 0 if there is none."""

    def listen(self, tell: Callable[[str | None], None]) -> Callable[[], None]:
        """Have *tell* called with each session that any process writes events, inputs or decisions to.

        It is called with an empty id for events that belong to no session.

        It is a hint: a database that cannot tell calls nobody, and after a disturbance the call is made with
        None, for all sessions. What this returns ends it.
        """

    def put_input(self, session_id: str, message: Mapping[str, Any], mode: InputMode) -> Waiting:
        """Keep a message until it is delivered; it is safe when this returns."""

    def edit_input(
        self, session_id: str, seq: int, message: Mapping[str, Any], mode: InputMode
    ) -> Waiting | None:
        """Change a waiting message; None if it was delivered already, or is being delivered."""

    def inputs(self, session_id: str) -> Sequence[Waiting]:
        """Return the messages that wait, in order."""

    def has_inputs(self, session_id: str) -> bool | None:
        """Say whether messages wait; None where finding out would take waiting.

        It may be asked where nothing may block, as on an event loop.
        """

    def look_for_inputs(self, session_id: str) -> bool:
        """Say whether messages wait; a short question, since it is asked between all steps."""

    def forgotten_inputs(self, *, seconds: float) -> Sequence[tuple[str, int]]:
        """Return the sessions that nobody holds and in which messages wait for longer than some seconds.

        Each comes with the number of its last such message.
        """

    def forgotten_decisions(self) -> Sequence[Approval]:
        """Return the approvals that are decided and not gone on with, in sessions that nobody holds."""

    def claim_inputs(self, lease: Lease, seqs: Sequence[int]) -> Sequence[int]:
        """Say that waiting messages are about to be delivered, and return those that still wait.

        Nobody can take them back from now on, for as long as the lease lasts.

        Raises:
            LeaseLost: If the lease is not ours any more.
        """

    def drop_input(self, session_id: str, seq: int) -> bool:
        """Take a waiting message back; False if it was delivered already, or is being delivered."""

    def approvals(self, session_id: str | None = None, *, undecided: bool = False) -> Sequence[Approval]:
        """Return the approvals of a session, or of all."""

    def decide(
        self, approval_id: str, decision: Mapping[str, Any], *, grant: Grant | None = None
    ) -> Approval:
        """Keep a decision.

        Args:
            grant: What was given with it for longer than this call; it is kept in the same transaction.

        Raises:
            DecisionNotAccepted: If there is no such approval, or it is decided already.
        """

    def add_grant(self, grant: Grant) -> Grant:
        """Keep a permission and return it; if one says the same of the same place, return that one.

        Raises:
            SessionNotFound: If it is for a session that is not there.
            ArgumentError: If it is none, or its id is that of another.
        """

    def grants(self, *, session_id: str | None = None, project: str | None = None) -> Sequence[Grant]:
        """Return the grants of a session, of a project, and those that count always; without both, all."""

    def remove_grant(self, grant_id: str) -> bool:
        """Take a permission back; False if there is none of that id."""

    def open_intents(self, session_id: str) -> dict[str, Mapping[str, Any]]:
        """Return the tool calls that were about to run and have no result, by call id."""

    def check(self, *, deep: bool = False) -> Report:
        """Look for damage; *deep* also reads and hashes everything that is kept."""

    def collect(self) -> Report:
        """Remove what no session refers to any more."""

    def writing(self) -> AbstractContextManager[Any]:
        """Hold other writers of the whole store off, for exports."""

    def of_tenant(self, tenant: str) -> SessionStore:
        """Return a view of this store that has the sessions of one tenant; the empty name is the default."""

    def tenant_of(self, session_id: str) -> str:
        """Return the tenant that a session belongs to.

        Raises:
            SessionNotFound: If there is no such session.
        """

    def transaction(self, session_id: str, durability: Durability = "turn") -> AbstractContextManager[Any]:
        """Make one transaction of everything that this thread does with the store inside the block.

        Nobody else writes the session until the end, so what is read of it stays true. It is
        all written or nothing, so an error that something in it raises has to leave the block.
        """

    def group(self) -> AbstractContextManager[Any] | None:
        """Return one transaction for what this thread writes to several sessions, which is safe soon.

        A save that fails in it is undone alone. None where sessions are better written at the same time.
        """

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of all sessions."""

"""A session store on any database that speaks our SQL."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agent_app.errors import SessionHeld
from agent_app.store import feed, grants, leases, queues, save as saving, search, sessions, upkeep
from agent_app.store.base import Opened
from agent_app.store.database import HIGHEST
from agent_app.store.leases import Taken
from agent_app.store.tenants import TenantDatabase
from agent_core import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from agent_app.store.base import (
        Approval,
        Changes,
        Durability,
        Grant,
        InputMode,
        Lease,
        Page,
        Report,
        SessionInfo,
        Stored,
        Waiting,
    )
    from agent_app.store.database import Database, Transaction
    from agent_app.store.replica import Replica
    from agent_core import Message, Session

_HAS_INPUTS = "SELECT EXISTS (SELECT 1 FROM inputs WHERE session = ?)"
_MODES = ("steer", "queue", "interrupt")


class SqlStore:
    """Keeps sessions in a database; see `SessionStore` for what each method promises."""

    def __init__(self, database: Database, replica: Replica | None = None) -> None:
        self._database = database
        self._replica = replica
        self.url = database.url

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()
        if self._replica is not None:
            self._replica.database.close()

    def of_tenant(self, tenant: str) -> SqlStore:
        """Return a view of this store that has the sessions of one tenant; the empty name is the default."""
        if tenant:
            check_name("tenant", tenant)
        replica = self._replica
        if replica is not None:
            replica = replica.view(cast("Database", TenantDatabase(replica.database, tenant)))
        return SqlStore(cast("Database", TenantDatabase(self._database, tenant)), replica)

    def tenant_of(self, session_id: str) -> str:
        """Return the tenant that a session belongs to.

        Raises:
            SessionNotFound: If there is no such session.
        """
        with self._database.reading() as transaction:
            sessions.find(transaction, session_id)
            return sessions.tenant_of(transaction, session_id)

    def create(self, session: Session, *, agent_id: str | None = None, title: str = "") -> Stored:
        """Store a new session."""
        check_name("session id", session.session_id)
        _check_agent(agent_id)
        _check_title(title)
        with self._database.writing() as transaction:
            return sessions.create(self._database, transaction, session, agent_id=agent_id, title=title)

    def load(self, session_id: str) -> Stored:
        """Return a session; of a long one, what is not looked at yet is read later."""
        with self._database.reading() as transaction:
            return sessions.load(self._database, transaction, session_id)

    def info(self, session_id: str) -> SessionInfo:
        """Return what a list shows of one session."""
        with self._database.reading() as transaction:
            return sessions.info(transaction, session_id)

    def is_current(self, stored: Stored) -> bool:
        """Say whether a session is known to be unchanged; False also where finding out would take waiting."""
        sql = "SELECT revision FROM sessions WHERE id = ?"
        found = self._database.glance(sql, stored.session.session_id)
        return found is not None and found[0] == stored.revision

    def messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Return up to *limit* messages, the last ones or those before an index."""
        _check_limit(limit)
        with self._database.reading() as transaction:
            return sessions.page(transaction, session_id, before, limit)

    def first_messages(self, session_ids: Sequence[str]) -> dict[str, Message]:
        """Return the first message of each session that is there and has one, by id."""
        with self._database.reading() as transaction:
            return sessions.first_messages(transaction, list(filter(sessions.is_name, session_ids)))

    def find(self, given: str, *, limit: int = 50) -> Sequence[SessionInfo]:
        """Return the sessions whose id begins with a text, then those whose title it is, some of each."""
        _check_limit(limit)
        with self._database.reading() as transaction:
            return sessions.find_like(transaction, given, limit) if sessions.is_name(given) else ()

    def save(
        self,
        session: Session,
        base: Stored,
        *,
        lease: Lease | None = None,
        changes: Changes | None = None,
        durability: Durability = "turn",
    ) -> Stored:
        """Store what is new in *session* since *base*, and the changes, in one transaction."""
        if session.session_id != base.session.session_id:
            raise ArgumentError(
                f"session {session.session_id!r} cannot be saved over {base.session.session_id!r}: "
                "give the stored session that it came from"
            )
        if session is base.session and (changes is None or not changes.any):
            return base
        _check_agent(None if changes is None else changes.agent_id)
        with self._database.writing(durability) as transaction:
            if session is base.session and changes is not None and not changes.of_session:
                held = sessions.hold(self._database, transaction, session.session_id).holder
                leases.check(held, session.session_id, lease, self._database.moment())
                stored = base
            else:
                stored, left = saving.save(self._database, transaction, session, base, lease)
                if self._database.one_writer and any(left):
                    upkeep.forget(self._database, transaction, left)
            if changes is None:
                return stored
            numbers = queues.write(self._database, transaction, session.session_id, changes)
            if changes.release and lease is not None:
                leases.release(transaction, lease)
        return replace(stored, events=tuple(numbers))

    def fork(
        self,
        session_id: str,
        session: Session,
        upto: int,
        *,
        agent_id: str | None = None,
        base: Stored | None = None,
    ) -> Stored:
        """Store *session* as a fork that shares the first *upto* messages of another."""
        check_name("session id", session.session_id)
        _check_agent(agent_id)
        _check_number("upto", upto)
        with self._database.writing() as transaction:
            return sessions.fork(self._database, transaction, session_id, session, upto, agent_id, base)

    def rename(self, session_id: str, title: str) -> SessionInfo:
        """Give a session another title."""
        _check_title(title)
        with self._database.writing() as transaction:
            sessions.hold(self._database, transaction, session_id)
            return sessions.rename(transaction, session_id, title, self._database.now())

    def assign(self, session_id: str, agent_id: str | None) -> SessionInfo:
        """Give a session to another agent."""
        _check_agent(agent_id)
        with self._database.writing() as transaction:
            sessions.hold(self._database, transaction, session_id)
            return sessions.assign(transaction, session_id, agent_id, self._database.now())

    def delete(self, session_id: str, *, lease: Lease | None = None, reason: str = "") -> None:
        """Remove a session, and all that only it had."""
        with self._database.writing(alone=True) as transaction:
            place = sessions.hold(self._database, transaction, session_id)
            leases.check(place.holder, session_id, lease, self._database.moment())
            event = {"type": "session_deleted", "session_id": session_id, "reason": reason}
            tenant = sessions.tenant_of(transaction, session_id)
            feed.add_own(self._database, transaction, [event], tenant)  # first: positions never fall
            upkeep.delete(self._database, transaction, session_id)
            self._database.announce(transaction, session_id)

    def family(self, session_id: str) -> Sequence[SessionInfo]:
        """Return a session with everything that it was forked from, and the forks of all of these."""
        with self._database.reading() as transaction:
            return sessions.family(transaction, session_id)

    def flags(self, session_ids: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the keys of metadata whose value is true, by session; those with none are left out."""
        with self._database.reading() as transaction:
            return search.flags(transaction, [one for one in session_ids if sessions.is_name(one)])

    def flag_counts(self) -> dict[str, int]:
        """Return the keys of metadata whose value is true, and how many sessions have each."""
        with self._database.reading() as transaction:
            return search.flag_counts(transaction)

    def list(
        self,
        *,
        query: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        has: Sequence[str] = (),
        lacks: Sequence[str] = (),
    ) -> Page:
        """Return sessions, the last changed first; with a query those whose title or text has its words.

        Args:
            has: Keys of metadata that each of them has.
            lacks: Keys that none of them has.
        """
        _check_limit(limit)
        with self._database.reading() as transaction:
            return search.listed(self._database, transaction, query, cursor, limit, has, lacks)

    def acquire(self, session_id: str, owner: str, *, seconds: float, take_over: bool = False) -> Lease:
        """Take the right to write a session."""
        with self._acquired(session_id, owner, seconds, take_over=take_over) as (_, taken):
            return taken.lease

    def open(self, session_id: str, owner: str, *, seconds: float, take_over: bool = False) -> Opened:
        """Take the right to write a session, and return what waits for it."""
        with self._acquired(session_id, owner, seconds, take_over=take_over) as (transaction, taken):
            return Opened(
                lease=taken.lease,
                revision=taken.revision,
                approvals=queues.open_approvals(transaction, session_id) if taken.asks else (),
                inputs=queues.inputs(transaction, session_id) if taken.waits else (),
            )

    @contextmanager
    def _acquired(
        self, session_id: str, owner: str, seconds: float, *, take_over: bool
    ) -> Iterator[tuple[Transaction, Taken]]:
        """Take the right to write a session, and go on in the same transaction."""
        check_name("owner", owner)
        _check_seconds(seconds)
        with self._database.writing("soon") as transaction:
            sessions.lock(self._database, transaction, session_id)
            moment = self._database.moment()
            taken = leases.take_free(transaction, session_id, owner, moment, seconds=seconds)
            if taken is not None:  # as mostly: its last owner gave it back
                yield transaction, taken
                return
            found = sessions.find(transaction, session_id)
            held = found.holder
            if take_over or held is None or leases.is_free_for(held, owner, moment):
                lease = leases.acquire(transaction, session_id, owner, held, moment, seconds=seconds)
                yield transaction, Taken(lease, found.revision)
                return
            leases.note_sight(transaction, held, moment)  # stays, although the right is refused
        raise SessionHeld(session_id, held)

    def renew(self, lease: Lease, *, seconds: float) -> Lease:
        """Keep the right for longer."""
        _check_seconds(seconds)
        with self._database.writing("soon") as transaction:
            self._database.hold(transaction, lease.session_id)
            return leases.renew(transaction, lease, self._database.moment(), seconds=seconds)

    def release(self, lease: Lease) -> None:
        """Give the right back; one that is lost already is ignored."""
        with self._database.writing("soon") as transaction:
            self._database.hold(transaction, lease.session_id)
            leases.release(transaction, lease)

    def holder(self, session_id: str) -> Lease | None:
        """Return who may write a session now, if anybody may."""
        with self._database.reading() as transaction:
            held = sessions.find(transaction, session_id).holder
            return held if held is not None and leases.is_good(held, self._database.moment()) else None

    def append_events(
        self,
        session_id: str,
        events: Sequence[Mapping[str, Any]],
        *,
        lease: Lease | None = None,
        durability: Durability = "soon",
    ) -> Sequence[int]:
        """Write events to a session's log and return their numbers, which rise by one."""
        with self._database.writing(durability) as transaction:
            held = sessions.hold(self._database, transaction, session_id).holder
            if lease is not None:
                leases.check_own(held, lease)
            return queues.add_events(self._database, transaction, session_id, events)

    def append_own_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Write events that belong to no session."""
        with self._database.writing() as transaction:
            feed.add_own(self._database, transaction, events)
            self._database.announce(transaction, "")

    def feed(self, *, after: int = 0, limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Return the events of all sessions behind a position, in the order in which they were written."""
        _check_number("after", after)
        _check_limit(limit)

        def read(database: Database, transaction: Transaction) -> list[dict[str, Any]]:
            return feed.read(database, transaction, after, limit)

        if self._replica is not None and (found := self._replica.ask_patiently(read)):
            return found  # perhaps not all: whoever follows asks again
        with self._database.reading() as transaction:
            return read(self._database, transaction)

    def feed_end(self) -> int:
        """Return the position of the last event of all sessions."""
        with self._database.reading() as transaction:
            return feed.end(self._database, transaction)

    def events(self, session_id: str, *, after: int = 0, limit: int = 1000) -> Sequence[dict[str, Any]]:
        """Return logged events behind a number, each with its `seq`."""
        _check_number("after", after)
        _check_limit(limit)
        found: list[dict[str, Any]] = []

        def read(_database: Database, transaction: Transaction) -> list[dict[str, Any]]:
            sessions.find(transaction, session_id)
            last = found[-1]["seq"] if found else after
            return queues.read_events(transaction, session_id, last, limit - len(found))

        if self._replica is not None:
            found = self._replica.ask(read)
        if len(found) < limit:  # the end of a log is the primary's to say
            with self._database.reading() as transaction:
                found += read(self._database, transaction)
        return found

    def last_events(
        self, session_id: str, *, before: int | None = None, limit: int = 1000
    ) -> Sequence[dict[str, Any]]:
        """Return the last logged events, or those before a number, the latest first."""
        _check_limit(limit)
        with self._database.reading() as transaction:
            sessions.find(transaction, session_id)
            return queues.last_events(transaction, session_id, before, limit)

    def usage_events(self, session_id: str) -> Sequence[dict[str, Any]]:
        """Return the logged events that tell what models used, without reading the rest of the log."""
        with self._database.reading() as transaction:
            sessions.find(transaction, session_id)
            return queues.usage_events(self._database, transaction, session_id)

    def listen(self, tell: Callable[[str | None], None]) -> Callable[[], None]:
        """Have *tell* called with each session that any process writes events, inputs or decisions to."""
        return self._database.listen(tell)

    def put_input(self, session_id: str, message: Mapping[str, Any], mode: InputMode) -> Waiting:
        """Keep a message until it is delivered; it is safe when this returns."""
        _check_mode(mode)
        with self._database.writing() as transaction:
            sessions.hold(self._database, transaction, session_id)
            self._database.announce(transaction, session_id)
            return queues.put_input(transaction, session_id, message, mode, self._database.now())

    def edit_input(
        self, session_id: str, seq: int, message: Mapping[str, Any], mode: InputMode
    ) -> Waiting | None:
        """Change a waiting message; None if it was delivered already, or is being delivered."""
        _check_mode(mode)
        _check_number("seq", seq)
        with self._database.writing() as transaction:
            if self._is_being_delivered(transaction, session_id, seq):
                return None
            self._database.announce(transaction, session_id)
            return queues.edit_input(transaction, session_id, seq, message, mode)

    def inputs(self, session_id: str) -> Sequence[Waiting]:
        """Return the messages that wait, in order."""
        with self._database.reading() as transaction:
            return queues.inputs(transaction, session_id)

    def has_inputs(self, session_id: str) -> bool | None:
        """Say whether messages wait, if that can be said without waiting; otherwise None."""
        found = self._database.glance(_HAS_INPUTS, session_id)
        return None if found is None else bool(found[0])

    def look_for_inputs(self, session_id: str) -> bool:
        """Say whether messages wait; a short question, since it is asked between all steps."""
        return bool(self._database.look(_HAS_INPUTS, session_id)[0][0])

    def forgotten_inputs(self, *, seconds: float) -> Sequence[tuple[str, int]]:
        """Return the sessions that nobody holds and in which messages wait for longer than some seconds."""
        with self._database.reading() as transaction:
            found = queues.waiting_since(transaction, self._database.now() - seconds)
            return [one for one in found if self._is_free(transaction, one[0])]

    def forgotten_decisions(self) -> Sequence[Approval]:
        """Return the approvals that are decided and not gone on with, in sessions that nobody holds."""
        with self._database.reading() as transaction:
            found = queues.unused_decisions(transaction)
            return [one for one in found if self._is_free(transaction, one.session_id)]

    def _is_free(self, transaction: Transaction, session_id: str) -> bool:
        held = sessions.find(transaction, session_id).holder
        return held is None or not leases.is_good(held, self._database.moment())

    def claim_inputs(self, lease: Lease, seqs: Sequence[int]) -> Sequence[int]:
        """Say that waiting messages are about to be delivered, and return those that still wait."""
        with self._database.writing("soon") as transaction:
            held = sessions.hold(self._database, transaction, lease.session_id).holder
            leases.check_own(held, lease)
            return queues.claim_inputs(transaction, lease, seqs)

    def drop_input(self, session_id: str, seq: int) -> bool:
        """Take a waiting message back; False if it was delivered already, or is being delivered."""
        _check_number("seq", seq)
        with self._database.writing() as transaction:
            if self._is_being_delivered(transaction, session_id, seq):
                return False
            return queues.drop_input(transaction, session_id, seq)

    def _is_being_delivered(self, transaction: Transaction, session_id: str, seq: int) -> bool:
        """Hold a session, and say whether whoever has the lease is delivering a message."""
        held = sessions.hold(self._database, transaction, session_id).holder
        lasts = held is not None and leases.is_good(held, self._database.moment())
        return held is not None and lasts and queues.is_claimed(transaction, held, seq)

    def approvals(self, session_id: str | None = None, *, undecided: bool = False) -> Sequence[Approval]:
        """Return the approvals of a session, or of all."""
        with self._database.reading() as transaction:
            if session_id is not None:
                sessions.find(transaction, session_id)
            return queues.approvals(transaction, session_id, undecided=undecided)

    def decide(
        self, approval_id: str, decision: Mapping[str, Any], *, grant: Grant | None = None
    ) -> Approval:
        """Keep a decision, and what was given with it for longer than this call."""
        with self._database.writing() as transaction:
            if grant is not None:  # first, since it holds a session, which writers do before all else
                grants.check(grant)
                grants.add(self._database, transaction, grant)
            decided = queues.decide(transaction, approval_id, decision)
            self._database.announce(transaction, decided.session_id)
            return decided

    def add_grant(self, grant: Grant) -> Grant:
        """Keep a permission and return it; if one says the same of the same place, return that one."""
        grants.check(grant)
        with self._database.writing() as transaction:
            return grants.add(self._database, transaction, grant)

    def grants(self, *, session_id: str | None = None, project: str | None = None) -> Sequence[Grant]:
        """Return the grants of a session, of a project, and those that count always; without both, all."""
        with self._database.reading() as transaction:
            return grants.find_all(transaction, session_id, project)

    def remove_grant(self, grant_id: str) -> bool:
        """Take a permission back; False if there is none of that id."""
        with self._database.writing() as transaction:
            return grants.remove(transaction, grant_id)

    def open_intents(self, session_id: str) -> dict[str, Mapping[str, Any]]:
        """Return the tool calls that were about to run and have no result, by call id."""
        with self._database.reading() as transaction:
            sessions.find(transaction, session_id)
            return queues.open_intents(transaction, session_id)

    def check(self, *, deep: bool = False) -> Report:
        """Look for damage; *deep* also reads and hashes everything that is kept."""
        return upkeep.check(self._database, deep=deep)

    def collect(self) -> Report:
        """Remove what no session refers to any more."""
        return upkeep.collect(self._database)

    def writing(self) -> AbstractContextManager[Any]:
        """Hold other writers of the whole store off, for exports; of a read-only one, read one moment."""
        if self._database.read_only is not None:
            return self._database.reading()
        return self._database.writing(alone=True)

    @contextmanager
    def transaction(self, session_id: str, durability: Durability = "turn") -> Iterator[None]:
        """Make one transaction of everything that this thread does inside the block, alone with a session."""
        with self._database.writing(durability, joined=True) as transaction:
            sessions.lock(self._database, transaction, session_id)
            yield

    def group(self) -> AbstractContextManager[Any] | None:
        """Return one transaction for several sessions, if only one can be written at a time anyway."""
        return self._database.writing("soon") if self._database.one_writer else None

    def __iter__(self) -> Iterator[str]:
        with self._database.reading() as transaction:
            return iter(upkeep.session_ids(transaction))


def check_name(what: str, text: str) -> None:
    """Refuse a text that cannot name anything in a store.

    Raises:
        ArgumentError: If it is too long, empty, or has characters that a database does not take.
    """
    if not sessions.is_name(text):
        raise ArgumentError(f"{text!r:.80} is no {what}: 1 to 500 characters are, without NUL and half pairs")


def _check_agent(agent_id: str | None) -> None:
    if agent_id is not None:
        check_name("agent id", agent_id)


def _check_title(title: str) -> None:
    if not isinstance(title, str) or not sessions.is_text(title):
        raise ArgumentError(f"{title!r:.80} is not a title: it must be text, without NUL and half pairs")


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ArgumentError(f"{mode!r} is not a mode of delivery: {', '.join(_MODES)} are")


def _check_limit(limit: int) -> None:
    if not isinstance(limit, int) or not 0 < limit < HIGHEST:
        raise ArgumentError(f"limit must be 1 or more, not {limit!r}")


def _check_number(what: str, number: int) -> None:
    if not isinstance(number, int) or not 0 <= number < HIGHEST:
        raise ArgumentError(f"{what} must be 0 or more, and below 2**62, not {number!r}")


def _check_seconds(seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds > 0):
        raise ArgumentError(f"a lease lasts for some seconds, not {seconds!r}")

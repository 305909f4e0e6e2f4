"""Writing a session for as long as a request, or something else, has it.

In one process a session is used for one thing at a time; between processes the lease decides. What a request
brings (messages, calls that are about to run, their results, questions, events) is collected, and written in
one transaction at the moments at which it must be safe: before the model is asked, before a tool runs, before
anybody sees a result. Events are shown only when they are stored with everything before them. The pieces of
an answer that is being written are the exception: they are shown as they come, and logged soon after.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agent_app.errors import SessionBusy, WriteRefused
from agent_app.events import add_piece, plain, size_of
from agent_app.store.base import Approval, Changes
from agent_core import Message
from agent_core.log import get_logger
from agent_core.steps import Flow, run_blocking
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.suspension import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_app.services import ActiveRun, Services
    from agent_app.store.base import Durability, Opened, Stored, Waiting
    from agent_core import Session
    from agent_core.events import Event
    from agent_runtime import Checkpoint

R = TypeVar("R")
LEASE_SECONDS = 30.0
LOG_CHARACTERS = 4096
"""How much of an answer that was shown may be missing in the log."""
TITLE = "title"
TITLE_BY = "title_by"
"""Where plugins put a title; a person's own, by `rename_session`, is stronger."""

_WENT_ON = {"approved": False, "reason": "the conversation went on without a decision"}
_log = get_logger("app")


def with_writer(
    services: Services,
    session_id: str,
    work: Callable[[SessionWriter, ActiveRun], Flow[R]],
    *,
    take: bool = False,
    take_over: bool = False,
) -> Flow[R]:
    """Do something with a session that nobody else may write during that time.

    Args:
        take: Whether what this process does with the session already is stopped in favour of this.
        take_over: Whether the session is taken from another process that has it.

    Raises:
        SessionBusy: If this process uses the session already.
        SessionHeld: If another one does.
    """
    active = services.active.begin(session_id)
    begun = active is not None
    if active is None:
        active = services.active.get(session_id)
        if not take or active is None:
            raise SessionBusy(session_id)
        active.cancellation.cancel()
    try:
        opened = partial(_opened, services, [session_id], take_over=take_over)
        return (yield from _with_open(services, opened, lambda writers: work(writers[0], active)))
    finally:
        if begun:
            services.active.end(session_id)


def with_writers(
    services: Services, session_ids: Sequence[str], work: Callable[[Sequence[SessionWriter]], Flow[R]]
) -> Flow[R]:
    """Do something with several sessions that nobody else may write during that time.

    What this process does with them already is stopped in favour of this.

    Raises:
        SessionHeld: If another process has one of them.
    """
    begun = [one for one in session_ids if services.active.begin(one) is not None]
    for one in session_ids:
        active = None if one in begun else services.active.get(one)
        if active is not None:
            active.cancellation.cancel()
    try:
        return (yield from _with_open(services, partial(_opened, services, session_ids), work))
    finally:
        for one in begun:
            services.active.end(one)


def _opened(
    services: Services, session_ids: Sequence[str], opened: list[SessionWriter], *, take_over: bool = False
) -> None:
    # One by one, so that those that were opened are known if another one cannot be.
    opened.extend(SessionWriter.open(services, one, take_over=take_over) for one in session_ids)


def _with_open(
    services: Services,
    open_writers: Callable[[list[SessionWriter]], None],
    work: Callable[[Sequence[SessionWriter]], Flow[R]],
) -> Flow[R]:
    """Open writers, work with them, and close them, also if the caller leaves while they are opened."""
    opened: list[SessionWriter] = []
    left = threading.Event()

    def open_all() -> None:
        try:
            open_writers(opened)
        finally:
            if left.is_set():  # the caller is gone: they were opened in a thread of their own
                close_all()

    def close_all() -> None:
        for writer in opened:
            writer.close()

    try:
        yield from run_blocking(open_all, services.lane)
        result = yield from work(opened)
        if not all(writer.is_closed for writer in opened):
            yield from run_blocking(close_all, services.lane)
        return result
    finally:
        left.set()
        close_all()


@dataclass(slots=True)
class _Unsaved:
    """What waits to be written, besides events."""

    session: Session | None = None
    intents: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    approvals: list[Approval] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    agent_id: str | None = None
    ends: bool = False


class SessionWriter:
    """Has the lease of a session, and writes what a request brings.

    Attributes:
        lease: The right by which the session is written.
        waits: Whether there is something that must be written before the request goes on.
    """

    def __init__(self, services: Services, stored: Stored, opened: Opened) -> None:
        self.lease = opened.lease
        self.lane = services.lane
        self.waits = False
        self._services = services
        self._stored = stored
        # The first is held while something is written, the second only while what is collected changes or is
        # committed: a store that is slow to log pieces must not hold up whoever brings the next.
        self._writing, self._lock = threading.Lock(), threading.RLock()
        self._closing = threading.Lock()
        self._unsaved = _Unsaved()
        self._events: list[tuple[Event, bool]] = []  # each with whether it was shown already
        self._inputs = opened.inputs
        self._taken: list[int] = []  # messages in our hands that are not in the session yet
        self._delivered: list[int] = []  # messages in the session that is not stored yet
        self._approvals = list(opened.approvals)
        self._used: set[str] = set()  # decisions that are stored as used
        self._owed = 0  # characters that were shown since the log was said to be behind
        self._is_behind = False  # whether that was logged
        self._taken_pieces: list[tuple[Event, bool]] = []  # that are being logged
        self._log_failure: Exception | None = None
        self._stop_renewing = self._renew_later()

    @classmethod
    def open(cls, services: Services, session_id: str, *, take_over: bool = False) -> SessionWriter:
        """Take the right to write a session, then read it, with what waits for it.

        Raises:
            SessionHeld: If another process has it, and it is not taken over.
        """
        store = services.store
        opened = store.open(session_id, services.owner, seconds=LEASE_SECONDS, take_over=take_over)
        try:
            return cls(services, services.read(session_id, opened.revision), opened)
        except BaseException:
            store.release(opened.lease)
            raise

    @property
    def session(self) -> Session:
        """The session as it is stored now, or will be with the next commit."""
        unsaved = self._unsaved.session
        return self._stored.session if unsaved is None else unsaved

    @property
    def is_closed(self) -> bool:
        """Whether the lease was given back."""
        return self._closing.locked()

    def close(self) -> None:
        """Give the lease back; once is enough."""
        if not self._end():
            return
        try:
            with self._writing, self._lock:
                if self._events or self._unsaved.session is not None:  # it ended in the middle of something
                    self._write(release=True)
                else:
                    self._services.store.release(self.lease)
        except Exception as error:  # it ends by itself, and what was saved is saved
            _log.warning("lease_not_released", session=self.session.session_id, error=str(error))

    def _end(self) -> bool:
        """Renew the lease no more; False if that was said before."""
        if not self._closing.acquire(blocking=False):
            return False
        self._stop_renewing()
        return True

    def delete(self, reason: str) -> None:
        """Delete the session."""
        self._services.store.delete(self.session.session_id, lease=self.lease, reason=reason)
        self._services.forget(self.session.session_id)

    # What is to be written

    def keep(
        self,
        session: Session,
        *,
        intent: str | None = None,
        results: Sequence[str] = (),
        approvals: Sequence[Approval] = (),
        used: Sequence[str] = (),
        settled: Sequence[str] = (),
        agent_id: str | None = None,
    ) -> None:
        """Have a session written with the next commit.

        Args:
            intent: A call that is about to run.
            results: Calls whose results the session has elsewhere than among its messages.
            used: Decisions that the session has gone on with.
            settled: Approvals that the session does not wait for any more.
            agent_id: The agent that the session belongs to from now on, if that is another one.
        """
        with self._lock:
            news = intent or results or approvals or used or settled or agent_id
            if session is self._stored.session and self._unsaved.session is None and not news:
                return  # that is stored already
            self.waits = True
            unsaved = self._unsaved
            unsaved.session = session
            unsaved.results += results
            unsaved.approvals += approvals
            unsaved.used += [one for one in used if one not in self._used and one not in unsaved.used]
            unsaved.settled += settled
            unsaved.agent_id = agent_id or unsaved.agent_id
            if intent is not None:
                unsaved.intents[intent] = {"call_id": intent}

    def keep_checkpoint(self, checkpoint: Checkpoint, *, decided: Sequence[str]) -> None:
        """Have what a run has come to written with the next commit.

        Args:
            decided: The approvals whose decisions the run was given.
        """
        kind, session, call_id = checkpoint
        used = _used_by(session, decided)
        with self._lock:
            if kind == "input" and self._taken:
                self.log([{"type": "input_delivered", "inputs": list(self._taken)}])
                self._delivered, self._taken = [*self._delivered, *self._taken], []
            if kind != "end":
                intent = call_id if kind == "intent" else None
                results = [call_id] if kind == "result" and call_id is not None else []
                self.keep(session, intent=intent, results=results, used=used)
                return
            self._taken = []  # what did not get into the session goes on waiting
            waits = waiting(session)
            known = {*used, *(one.id for one in waits)}
            settled = [one.id for one in self._approvals if one.id not in known]
            approvals = [self._approval(one.id, one.to_dict()) for one in waits]
            self.keep(session, approvals=approvals, used=used, settled=settled)
            self._unsaved.ends = True
            self._approvals = []

    def log(self, events: Sequence[Event]) -> None:
        """Have events logged with the next commit, which returns them for showing."""
        with self._lock:
            self.waits = self.waits or bool(events)
            self._events += [(event, False) for event in events]

    def log_shown(self, events: Sequence[Event]) -> None:
        """Have events logged soon that are shown at once: pieces of an answer."""
        with self._lock:
            for event in events:
                self._events.append((event, True))
                self._owed += size_of(event)
            if not self._is_behind:
                self._is_behind = True
                self._services.pieces.soon(self)
            if self._owed > LOG_CHARACTERS:
                self._owed = 0
                self._services.pieces.now(self)

    def begin_log(self, *, wait: bool) -> bool:
        """Take what was shown, unless it goes with a commit that is due anyway; see `PieceLog`."""
        if not self._writing.acquire(blocking=wait):
            return False
        with self._lock:
            self._is_behind, self._owed = False, 0
            if not (self.is_closed or self.waits):
                self._taken_pieces, self._events = self._events, []
        return True

    def log_taken(self) -> None:
        """Write the pieces that were taken."""
        if not self._taken_pieces:
            return
        stored, changes = self._stored, Changes(events=[row for row, _ in _rows(self._taken_pieces)])
        try:
            self._services.store.save(
                stored.session, stored, lease=self.lease, changes=changes, durability="soon"
            )
        except Exception as error:  # the next commit tries again, and says why
            self._log_failure = error

    def end_log(self, error: Exception | None) -> None:
        """Let others write again; what was not logged goes with the next commit."""
        pieces, self._taken_pieces = self._taken_pieces, []
        failure, self._log_failure = self._log_failure or error, None
        session_id = self.lease.session_id
        if pieces and failure is not None:
            with self._lock:
                self._events = [*pieces, *self._events]
            _log.warning("pieces_not_logged", session=session_id, error=str(failure))
        self._writing.release()
        if pieces and failure is None:
            self._services.hub.wake(session_id)

    # Writing

    def commit(self) -> list[Event]:
        """Write all that waits in one transaction, and return the events that can be shown now.

        Raises:
            LeaseLost: If somebody has taken the session over.
            StoreError: If it cannot be written. What was to be written is given up: the session is as it was
                stored last, and pieces that were shown are logged another time.
        """
        with self._writing, self._lock:
            return self._write()[0]

    def has_inputs_now(self) -> Flow[bool]:
        """Say whether messages wait to be delivered; mostly it takes no time to find out."""
        store, session_id = self._services.store, self.lease.session_id
        found = store.has_inputs(session_id)
        return (
            found
            if found is not None
            else (yield from run_blocking(partial(store.look_for_inputs, session_id), self.lane))
        )

    def receive(self) -> tuple[list[Event], list[Message]]:
        """Do what `commit` does, and return the messages that are to be delivered between two steps.

        Also those that were to interrupt a run of ours from another process, which cannot stop it.
        """
        with self._writing, self._lock:
            return self._write(take=self._take_steering)

    def finish(self, end: Event, *, begun: bool | None) -> tuple[list[Event], list[Message] | None]:
        """Write what is left and end the request with its last event, unless there is more to answer.

        Args:
            begun: Whether a turn has begun that has to be finished first; what is queued waits for one of its
                own then. None if the request ends whatever waits.

        Returns:
            The events to show, and the messages of the next turn; None if this was the end.
        """
        take = _take_nothing if begun is None else partial(self._take_turn, begun=begun)
        with self._writing, self._lock:
            shown, messages = self._write(take=take, end=end, begun=bool(begun))
            if messages or begun:
                return shown, messages
            self._end()
            return shown, None

    def _write(
        self,
        *,
        take: Callable[[Sequence[Waiting]], list[Message]] | None = None,
        end: Event | None = None,
        begun: bool = False,
        release: bool = False,
    ) -> tuple[list[Event], list[Message]]:
        """Write all that waits in one transaction.

        Args:
            take: What is taken of the messages that wait.
            end: The last event, which is written, and the lease given back, if nothing was taken. If it
                cannot be written, the rest waits on.
            begun: Whether there is more to answer in any case, so that the last event is not due yet.
            release: Whether the lease is given back in any case.
        """
        store, unsaved, events, taken = self._services.store, self._unsaved, self._events, list(self._taken)
        level: Durability = "soon" if unsaved.session is None else "turn"
        messages: list[Message] = []
        stored, before = None, events
        self._unsaved, self._events, self.waits = _Unsaved(), [], False
        try:
            with nullcontext() if take is None else store.transaction(self.lease.session_id, level):
                if take is not None:
                    messages = take([] if take is _take_nothing else self._waiting())
                if end is not None and not messages and not begun:
                    events, release = [*events, (end, False)], True
                rows = _rows(events)
                if unsaved.session is not None or rows:
                    changes = self._changes(unsaved, [row for row, _ in rows], release=release)
                    session = unsaved.session or self._stored.session
                    stored = store.save(
                        session, self._stored, lease=self.lease, changes=changes, durability=level
                    )
        except BaseException:
            self._taken = taken
            if end is not None:  # the rest may still be written without it
                self._unsaved, self._events, self.waits = unsaved, before, True
                raise
            self._events = [(event, shown) for event, shown in events if shown]
            if unsaved.ends:
                self._delivered = []  # the session goes on without them, and they wait
            raise
        if stored is None:
            return [], messages
        if unsaved.session is not None:
            self._stored = self._services.recent.keep(replace(stored, events=()))
            self._delivered = []
            self._used.update(unsaved.used)
        if stored.events:
            self._services.hub.wake(stored.session.session_id)
        numbered = zip(rows, stored.events, strict=True)
        return [cast("Event", {**event, "seq": seq}) for (_, event), seq in numbered if event], messages

    def _changes(self, unsaved: _Unsaved, rows: Sequence[dict[str, Any]], *, release: bool) -> Changes:
        session, before = unsaved.session, self._stored.session
        if session is None:
            return Changes(events=rows, release=release)
        answered = _answered_calls(session, len(before.history))
        done = dict.fromkeys((*unsaved.results, *answered))
        return Changes(
            events=rows,
            take_inputs=tuple(self._delivered),
            intents={one: about for one, about in unsaved.intents.items() if one not in done},
            results=tuple(done),
            approvals=unsaved.approvals,
            use_approvals=unsaved.used,
            settle_approvals=dict.fromkeys(unsaved.settled, _WENT_ON),
            title=new_title(before, session),
            agent_id=unsaved.agent_id,
            release=release,
        )

    # What waits for the session

    def decided(self) -> list[Approval]:
        """Return the decisions that were there when it was opened, and that no run has gone on with."""
        if not self._approvals:
            return []
        known = {one.id for one in waiting(self.session)}
        return [one for one in self._approvals if one.decision is not None and one.id in known]

    def queue(self, messages: Sequence[Message]) -> None:
        """Store messages until the save that brings them; nobody can take them back."""
        store, session_id = self._services.store, self.session.session_id
        waits = [store.put_input(session_id, message.to_dict(), "steer") for message in messages]
        with self._lock:
            self._taken += store.claim_inputs(self.lease, [one.seq for one in waits])

    @property
    def has_inputs(self) -> bool:
        """Whether messages waited when it was opened."""
        return bool(self._inputs)

    def first_turn(self, *, begun: bool) -> list[Message]:
        """Return what the request is about besides what it says itself: what waited when it was opened.

        Args:
            begun: Whether it is about something already. What is queued waits for a turn of its own then.
        """
        with self._lock:
            return self._take_turn([one for one in self._inputs if one.seq not in self._taken], begun=begun)

    def _take_turn(self, inputs: Sequence[Waiting], *, begun: bool) -> list[Message]:
        """Take what the next turn is about: what was to steer or interrupt a run, or the first queued one."""
        messages = self._take_steering(inputs)
        if messages or begun:
            return messages
        queued = ([one] for one in inputs if one.mode == "queue")
        return next(filter(None, map(self._take, queued)), [])

    def _take_steering(self, inputs: Sequence[Waiting]) -> list[Message]:
        return self._take([one for one in inputs if one.mode != "queue"])

    def _waiting(self) -> list[Waiting]:
        known = (*self._taken, *self._delivered)
        found = self._services.store.inputs(self.session.session_id)
        return [one for one in found if one.seq not in known]

    def _take(self, due: Sequence[Waiting]) -> list[Message]:
        """Take waiting messages into our hands, so that their senders cannot take them back any more."""
        ours = self._services.store.claim_inputs(self.lease, [one.seq for one in due]) if due else ()
        self._taken += ours
        return [Message.from_dict(dict(one.message)) for one in due if one.seq in ours]

    def _approval(self, approval_id: str, suspension: dict[str, Any]) -> Approval:
        return Approval(
            id=approval_id,
            session_id=self.session.session_id,
            suspension=suspension,
            created=self._services.clock(),
        )

    def _renew_later(self) -> Callable[[], None]:
        """Renew the lease again and again, until what this returns is called."""
        stopped = threading.Event()

        def renew() -> None:
            if stopped.is_set():
                return
            try:
                self.lease = self._services.store.renew(self.lease, seconds=LEASE_SECONDS)
            except WriteRefused:
                return  # the next save says so
            except Exception as error:  # the store may be away for a while
                _log.warning("lease_not_renewed", session=self.session.session_id, error=str(error))
            SYSTEM_CLOCK.call_later(LEASE_SECONDS / 3, renew)

        forget = SYSTEM_CLOCK.call_later(LEASE_SECONDS / 3, renew)

        def stop() -> None:
            stopped.set()
            forget()

        return stop


def _take_nothing(_inputs: Sequence[Waiting]) -> list[Message]:
    return []


def _rows(events: Sequence[tuple[Event, bool]]) -> list[tuple[dict[str, Any], Event | None]]:
    """Return what is logged of events: each row, and the event that is shown when it is stored.

    Pieces of one text that were shown and follow each other are one row.
    """
    rows: list[tuple[dict[str, Any], Event | None]] = []
    for event, shown in events:
        if not (shown and rows and rows[-1][1] is None and add_piece(rows[-1][0], event)):
            rows.append((plain(event), None if shown else event))
    return rows


def _answered_calls(session: Session, since: int) -> list[str]:
    """Return the calls that are answered by the messages behind the first *since*."""
    return [message.tool_call_id for message in session.history[since:] if message.tool_call_id is not None]


def new_title(before: Session, now: Session) -> tuple[str, str] | None:
    """Return the title that plugins have given a session and the one they gave before, if it changed.

    A title that a person has chosen stays.
    """
    title, old = now.metadata.get(TITLE), before.metadata.get(TITLE)
    if before.metadata.get(TITLE_BY) == "person" and old:
        return None
    if not isinstance(title, str) or not title.strip() or title == old:
        return None
    return title, old if isinstance(old, str) else ""


def _used_by(session: Session, decided: Sequence[str]) -> list[str]:
    """Return the decisions that a run has taken up: their calls do not wait any more."""
    if not decided:
        return []
    known = {one.id for one in waiting(session)}
    return [one for one in decided if one not in known]

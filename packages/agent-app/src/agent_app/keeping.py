"""Keeping a session while it is in use: the lease, what is stored of it, and everything new.

In one process a session is used for one thing at a time (`hold`); between processes the lease decides.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent_app.errors import SessionBusy, WriteRefused
from agent_app.store.base import Approval, Changes, Lease, Stored
from agent_core import Message
from agent_core.log import get_logger
from agent_core.steps import Flow, run_blocking
from agent_runtime.clock import SYSTEM_CLOCK
from agent_runtime.suspension import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_app.services import ActiveRun, Services
    from agent_core import Session
    from agent_runtime import Checkpoint

R = TypeVar("R")
LEASE_SECONDS = 30.0
TITLE = "title"
"""Where plugins put a title; a person's own, by `rename_session`, is stronger."""

_WENT_ON = {"approved": False, "reason": "the conversation went on without a decision"}
_log = get_logger("app")


def hold(
    services: Services,
    session_id: str,
    work: Callable[[Keeper, ActiveRun], Flow[R]],
    *,
    take: bool = False,
    take_over: bool = False,
) -> Flow[R]:
    """Do something with a session that nobody else may write meanwhile.

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
        opening = partial(Keeper.open, services, session_id, take_over=take_over)
        return (yield from _with_keeper(opening, partial(_given, work, active)))
    finally:
        if begun:
            services.active.end(session_id)


def _given(work: Callable[[Keeper, ActiveRun], Flow[R]], active: ActiveRun, keeper: Keeper) -> Flow[R]:
    return work(keeper, active)


def _with_keeper(opening: Callable[[], Keeper], work: Callable[[Keeper], Flow[R]]) -> Flow[R]:
    opened: list[Keeper] = []
    left = threading.Event()

    def open_keeper() -> None:
        opened.append(opening())
        if left.is_set():  # whoever wanted it is gone: it was opened in a thread of its own
            opened[0].close()

    try:
        yield from run_blocking(open_keeper)
        result = yield from work(opened[0])
        yield from run_blocking(opened[0].close)
        return result
    finally:
        left.set()
        for keeper in opened:
            keeper.close()


class Keeper:
    """Holds a session for one request and stores what it brings, each time only what is new.

    Attributes:
        session: The session as it is stored now.
    """

    def __init__(self, services: Services, stored: Stored, lease: Lease) -> None:
        self._services = services
        self._stored = stored
        self._lease = lease
        self._lock = threading.Lock()
        self._closed = threading.Lock()
        self._taken: list[int] = []  # in our hands, and not in the session yet
        self._delivered: list[int] = []  # in the session, and not stored with it yet
        self._open_approvals: list[Approval] = []
        self._used: set[str] = set()  # decisions that are stored as gone on with
        self._stop_renewing = self._renew_later()

    @classmethod
    def open(cls, services: Services, session_id: str, *, take_over: bool = False) -> Keeper:
        """Take the right to write a session, then read it.

        Raises:
            SessionHeld: If another process has it, and it is not taken over.
        """
        store = services.store
        lease = store.acquire(session_id, services.owner, seconds=LEASE_SECONDS, take_over=take_over)
        try:
            return cls(services, services.read(session_id), lease)
        except BaseException:
            services.store.release(lease)
            raise

    @property
    def session(self) -> Session:
        """The session as it is stored now."""
        return self._stored.session

    @property
    def lease(self) -> Lease:
        """The right by which the session is written."""
        return self._lease

    def close(self) -> None:
        """Give the right to write back; once is enough."""
        if not self._closed.acquire(blocking=False):
            return
        self._stop_renewing()
        try:
            self._services.store.release(self._lease)
        except Exception as error:  # noqa: BLE001 - it ends by itself, and what was saved is saved
            _log.warning("lease_not_released", session=self.session.session_id, error=str(error))

    def save(
        self,
        session: Session,
        *,
        intent: tuple[str, dict[str, Any]] | None = None,
        results: Sequence[str] = (),
        approvals: Sequence[Approval] = (),
        used: Sequence[str] = (),
        settled: Sequence[str] = (),
        agent_id: str | None = None,
    ) -> None:
        """Store what is new.

        Args:
            used: Decisions that the session has gone on with; those that are stored so are no news.
            settled: Approvals that the session does not wait for any more.
            agent_id: The agent that the session belongs to from now on, if that is another one.

        Raises:
            LeaseLost: If somebody has taken the session over.
        """
        with self._lock:
            changes = Changes(
                take_inputs=tuple(self._delivered),
                intent=intent,
                results=results,
                approvals=approvals,
                use_approvals=[one for one in used if one not in self._used],
                settle_approvals=dict.fromkeys(settled, _WENT_ON),
                title=new_title(self.session, session),
                agent_id=agent_id,
            )
            stored = self._services.store.save(session, self._stored, lease=self._lease, changes=changes)
            self._stored = self._services.recent.keep(stored)
            self._delivered = []
            self._used.update(used)

    def delete(self) -> None:
        """Delete the session."""
        self._services.store.delete(self.session.session_id, lease=self._lease)
        self._services.forget(self.session.session_id)

    def checkpoint(self, checkpoint: Checkpoint, *, decided: Sequence[str]) -> None:
        """Store what a run has come to."""
        kind, session, call_id = checkpoint
        if kind == "input":
            self._have_delivered()
        if kind == "end":
            self._end(session, decided)
            return
        intent = (call_id, {"call_id": call_id}) if kind == "intent" and call_id is not None else None
        done = [call_id] if kind == "result" and call_id is not None else []
        self.save(session, intent=intent, results=done, used=_gone_on_with(session, decided))

    def _end(self, session: Session, decided: Sequence[str]) -> None:
        """Store how a run ended: what it waits for, and what nobody need decide any more."""
        self._taken = []  # what did not get into the session waits on
        waits = waiting(session)
        used = _gone_on_with(session, decided)
        known = {*used, *(one.id for one in waits)}
        settled = [one.id for one in self._open_approvals if one.id not in known]
        approvals = [self._approval(one.id, one.to_dict()) for one in waits]
        try:
            self.save(session, approvals=approvals, used=used, settled=settled)
        finally:
            self._delivered = []  # what the run brought is stored, or the session goes on without it
        self._open_approvals = []

    def decided(self) -> list[Approval]:
        """Return the decisions that are there and that no run has gone on with."""
        known = {one.id for one in waiting(self.session)}
        found = self._services.store.approvals(self.session.session_id)
        self._open_approvals = [one for one in found if not one.used]
        return [one for one in self._open_approvals if one.decision is not None and one.id in known]

    def take_waiting(self) -> list[Message]:
        """Return all messages that wait; they leave the queue with the save that brings them."""
        return self._take(lambda mode: True)  # noqa: ARG005 - all of them

    def steering(self) -> list[Message]:
        """Return the messages that are to be delivered between two steps.

        Also those that were to interrupt a run of ours from another process, which cannot stop it.
        """
        return self._take(lambda mode: mode != "queue")

    def _take(self, wanted: Callable[[str], bool]) -> list[Message]:
        """Take waiting messages into our hands, so that their senders cannot take them back any more."""
        store = self._services.store
        with self._lock:
            known = (*self._taken, *self._delivered)
            found = store.inputs(self.session.session_id)
            due = [one for one in found if wanted(one.mode) and one.seq not in known]
            ours = store.claim_inputs(self._lease, [one.seq for one in due]) if due else ()
            self._taken += ours
        return [Message.from_dict(dict(one.message)) for one in due if one.seq in ours]

    def _have_delivered(self) -> None:
        with self._lock:
            self._delivered += self._taken
            self._taken = []

    def _approval(self, approval_id: str, suspension: dict[str, Any]) -> Approval:
        return Approval(
            id=approval_id,
            session_id=self.session.session_id,
            suspension=suspension,
            created=self._services.clock(),
        )

    def _renew_later(self) -> Callable[[], None]:
        """Renew the lease again and again, until told to stop."""
        stopped = threading.Event()

        def renew() -> None:
            if stopped.is_set():
                return
            try:
                self._lease = self._services.store.renew(self._lease, seconds=LEASE_SECONDS)
            except WriteRefused:
                return  # the next save says so
            except Exception as error:  # noqa: BLE001 - the store may be away for a while
                _log.warning("lease_not_renewed", session=self.session.session_id, error=str(error))
            SYSTEM_CLOCK.call_later(LEASE_SECONDS / 3, renew)

        forget = SYSTEM_CLOCK.call_later(LEASE_SECONDS / 3, renew)

        def stop() -> None:
            stopped.set()
            forget()

        return stop


def new_title(before: Session, now: Session) -> tuple[str, str] | None:
    """Return the title that plugins have given a session and the one they gave before, if it changed."""
    title, old = now.metadata.get(TITLE), before.metadata.get(TITLE)
    if not isinstance(title, str) or not title.strip() or title == old:
        return None
    return title, old if isinstance(old, str) else ""


def _gone_on_with(session: Session, decided: Sequence[str]) -> list[str]:
    """Return the decisions that a run has taken up: their calls do not wait any more."""
    if not decided:
        return []
    known = {one.id for one in waiting(session)}
    return [one for one in decided if one not in known]

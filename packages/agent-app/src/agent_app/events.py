"""The event log: written before it is shown, read from any place, followed live.

A reader never holds a writer up: what it has not read yet is in the store and not in a buffer. It is woken
when something new was written, by this process or, where the store can tell, by another one; and it looks by
itself every now and then, since a notification may get lost.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_app.errors import SessionNotFound, StoreUnavailable
from agent_core import ArgumentError, lazy
from agent_core.steps import Batch, Work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from agent_app.store.base import SessionStore
    from agent_core.events import Event

_PAGE, _PAGE_BACK = 500, 50
_POLL_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0
_NOT_LOGGED = frozenset({"session"})
LIVE = frozenset({"text", "reasoning", "tool_call_args", "tool_call_partial"})
"""Events that are shown as they come, and logged soon after: pieces of what a later event has whole."""
_JOINED = {"text": "text", "reasoning": "text", "tool_call_args": "arguments"}
"""Of which events the log joins the pieces, and where those are."""
_NO_TEXT = 50  # characters, for the size of an event without a text
_BARE = 2  # how many keys an event has that is a type and a text


class EventHub:
    """Reads the log, and wakes those who follow it when there is something new."""

    def __init__(
        self,
        store: SessionStore,
        *,
        poll_seconds: float = _POLL_SECONDS,
        parent: EventHub | None = None,
    ) -> None:
        self._store = store
        self._poll_seconds = poll_seconds
        self._lock = threading.Lock()
        self._listening: dict[str | None, list[Callable[[], None]]] = {}  # None: all sessions
        self._stop_hearing: Callable[[], None] | None = None
        self._away_since: float | None = None
        self._closed = False
        self._parent = parent

    def of_store(self, store: SessionStore) -> EventHub:
        """Return a hub that reads a view of the store, and is woken with this one."""
        return EventHub(store, poll_seconds=self._poll_seconds, parent=self)

    @property
    def is_closed(self) -> bool:
        """Whether nobody can follow anything any more."""
        return self._closed or (self._parent is not None and self._parent.is_closed)

    def close(self) -> None:
        """Listen no more; those who still follow a session hear that the store is gone."""
        with self._lock:
            self._closed = True
            stop, self._stop_hearing = self._stop_hearing, None
        if stop is not None:
            stop()
        self.wake(None)

    def read_back(self, session_id: str) -> Iterator[dict[str, Any]]:
        """Yield the events of a session's log from the last one to the first, as far as they are wanted."""
        before: int | None = None
        while events := self._store.last_events(session_id, before=before, limit=_PAGE_BACK):
            yield from events
            before = events[-1]["seq"]

    def wake(self, session_id: str | None) -> None:
        """Tell those who follow a session, or all, that there is something new; with None, everybody."""
        if self._parent is not None:
            self._parent.wake(session_id)
            return
        with self._lock:
            if session_id is None:
                listening = [tell for those in self._listening.values() for tell in those]
            else:
                listening = [*self._listening.get(session_id, ()), *self._listening.get(None, ())]
        for tell in listening:
            tell()

    def follow(self, session_id: str | None, after: int) -> Work[Any]:
        """Return the events of a session behind a number, those there and those to come, as a stream.

        It ends when the session is deleted. Without a session it is the feed of all, behind a position.
        """
        return Work(
            blocking=lambda: self._follow(session_id, after),
            awaitable=lambda: self._follow_async(session_id, after),
        )

    def _follow(self, session_id: str | None, after: int) -> Iterator[Any]:
        woken = threading.Event()
        self._check_cursor(session_id, after)
        with self.listening(session_id, woken.set):
            while True:
                woken.clear()  # before looking, so that nothing falls between
                events = self._news(session_id, after)
                if events is None:
                    return
                if not events:
                    woken.wait(self._poll_seconds)
                    continue
                after = _place(session_id, events[-1])
                yield Batch(events)

    async def _follow_async(self, session_id: str | None, after: int) -> AsyncIterator[Any]:
        woken = lazy.asyncio.Event()
        await lazy.asyncio.to_thread(self._check_cursor, session_id, after)
        with self.listening(session_id, partial(_tell, lazy.asyncio.get_running_loop(), woken)):
            while True:
                woken.clear()
                events = await lazy.asyncio.to_thread(self._news, session_id, after)
                if events is None:
                    return
                if not events:
                    with suppress(TimeoutError):
                        await lazy.asyncio.wait_for(woken.wait(), self._poll_seconds)
                    continue
                after = _place(session_id, events[-1])
                yield Batch(events)
                if session_id is None:  # of all sessions there may be news all the time
                    await lazy.asyncio.sleep(_PAUSE_SECONDS)

    def _news(self, session_id: str | None, after: int) -> list[dict[str, Any]] | None:
        """Return the events behind a number; None if there will be no more.

        Raises:
            StoreUnavailable: If the store was closed, or is away for longer than a restart takes.
        """
        if self.is_closed:
            raise StoreUnavailable("the application was closed: open it again to follow sessions")
        try:
            if session_id is None:
                events = self._store.feed(after=after, limit=_PAGE)
            else:
                events = self._store.events(session_id, after=after, limit=_PAGE)
                if not events:
                    self._store.info(session_id)
        except SessionNotFound:
            return None
        except StoreUnavailable:
            if self._is_gone():
                raise
            return []
        self._away_since = None
        return list(events)

    def _is_gone(self) -> bool:
        """Say whether a store that cannot be read is away for too long to wait for it."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
        return now - self._away_since > _PATIENCE_SECONDS

    def _check_cursor(self, session_id: str | None, after: object) -> None:
        """Refuse a number that the log does not have: a reader would miss what comes next, unawares.

        Raises:
            SessionNotFound: If there is no such session.
            ArgumentError: If there is no such event.
        """
        if session_id is None:
            if not isinstance(after, int) or not 0 <= after <= self._store.feed_end():
                raise ArgumentError(f"there is no event with cursor {after!r} here: read all of them again")
            return
        self._store.info(session_id)
        if not isinstance(after, int) or isinstance(after, bool) or after < 0:
            raise ArgumentError(f"after must be the seq of an event, or 0 for all, not {after!r}")
        if after and [one["seq"] for one in self._store.events(session_id, after=after - 1, limit=1)] != [
            after
        ]:
            raise ArgumentError(f"session {session_id!r} has no event {after}: read its log again, after 0")

    @contextmanager
    def listening(self, session_id: str | None, tell: Callable[[], None]) -> Iterator[None]:
        """Hear of everything new while the block lasts."""
        if self._parent is not None:
            with self._parent.listening(session_id, tell):
                yield
            return
        with self._lock:
            self._listening.setdefault(session_id, []).append(tell)
            if self._stop_hearing is None and not self._closed:
                self._stop_hearing = self._store.listen(self.wake)
        try:
            yield
        finally:
            with self._lock:
                self._listening[session_id].remove(tell)
                if not self._listening[session_id]:
                    del self._listening[session_id]
                if not self._listening and self._stop_hearing is not None:
                    self._stop_hearing()
                    self._stop_hearing = None


def _place(session_id: str | None, event: Mapping[str, Any]) -> int:
    """Return by what a reader goes on behind an event."""
    return int(event["cursor"]) if session_id is None else int(event["seq"])


def read_cursor(cursor: object) -> int:
    """Return the position that a cursor of the feed stands for; an empty one is the beginning.

    Raises:
        ArgumentError: If it is none.
    """
    if cursor == "":
        return 0
    if not isinstance(cursor, str) or not (cursor.isascii() and cursor.isdigit()):
        raise ArgumentError(
            f"{cursor!r} is not a cursor: give the `cursor` of an event, or an empty text for all"
        )
    return int(cursor)


def _tell(loop: Any, woken: Any) -> None:
    """Wake a reader on its own loop, if that is still there."""
    # One that is awake already looks after this: it sleeps again before it looks, not afterwards.
    if not woken.is_set() and not loop.is_closed():
        loop.call_soon_threadsafe(woken.set)


def plain(event: Event) -> dict[str, Any]:
    """Return an event without whole sessions, which are stored themselves."""
    return {key: value for key, value in event.items() if key not in _NOT_LOGGED}


def add_piece(row: dict[str, Any], event: Mapping[str, Any]) -> bool:
    """Add a piece of text to a logged event if it continues that one; say whether it did."""
    key = _JOINED.get(event["type"])
    if key is None or row["type"] != event["type"] or not isinstance(event[key], str):
        return False
    # Mostly there is nothing but a text. A call's id and name may come with its first piece alone.
    if len(event) > _BARE and any(
        row.get(name) != value for name, value in event.items() if name != key and value is not None
    ):
        return False
    row[key] += event[key]
    return True


def size_of(event: Mapping[str, Any]) -> int:
    """Return how many characters a piece of an answer adds to the log, roughly."""
    text = event.get(_JOINED.get(event["type"], ""))
    return len(text) if isinstance(text, str) else _NO_TEXT

"""The events of a session for all its readers in this process: first from the log, then live.

Most events are logged before anybody sees them, with a number. The pieces of an answer are shown at once and
logged a moment later, joined. A reader that comes back must get neither twice, so its place is a `Cursor`:
the number of the last logged event, and how much of the pieces behind it was seen. It means the same whether
the pieces come from memory or, joined, from the log, in this process or another one.

A `Feed` has the frames since a certain event. A run of this process puts its events in; what others write
comes from the log, which one task follows for all sessions. Readers wait at the end of the feed; one that is
behind its beginning reads the log until it has caught up. A slow reader costs no memory and misses nothing.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from agent_app.events import LIVE, plain
from agent_core import AgentError, ArgumentError
from agent_core.log import get_logger
from agent_server.wire import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from agent_app import AgentApplication

MOST_FRAMES = 1024
"""How many frames a feed remembers besides the pieces that may be missing in the log."""
_PAGE = 500
_AGAIN_SECONDS = 1.0
_CURSOR = re.compile(r"([0-9]{1,19})(?:\.([0-9]{1,15}))?")
_TEXTS = {"text": "text", "reasoning": "text", "tool_call_args": "arguments"}
"""The events whose pieces are joined in the log, and where their text is."""
_BORDERS = frozenset(
    {
        "run_start", "step_start", "tool_call_start", "tool_call_result", "suspended", "retry", "fallback",
        "usage", "step_end", "turn_end", "final", "error",
    }
)  # fmt: skip
"""Events of a run before which the log has all pieces: a reader that has seen more saw what a crash took."""
_ENDS = ("final", "error")
_log = get_logger("server")


class Cursor(NamedTuple):
    """A place among the events of a session.

    Attributes:
        seq: The number of the last logged event that was seen; every one before it was seen, too.
        units: How much of the pieces behind that event was seen: characters, or one for a piece that the log
            does not join.
    """

    seq: int = 0
    units: int = 0

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a cursor as `str` writes it.

        Raises:
            ArgumentError: If it is none.
        """
        found = _CURSOR.fullmatch(text)
        if found is None:
            raise ArgumentError(f"{text!r} is not a place among events: send the id of the last event")
        return cls(int(found[1]), int(found[2] or 0))

    def __str__(self) -> str:
        return f"{self.seq}.{self.units}" if self.units else str(self.seq)


class Gone(Exception):
    """A cursor is behind the end of the log: it belongs to another session, or to one that was replaced."""

    def __init__(self, cursor: Cursor, last: int) -> None:
        self.cursor = cursor
        self.last = last
        super().__init__(f"there is no event {cursor.seq} in this session, the last one is {last}")


@dataclass(slots=True)
class Frame:
    """An event on its way to readers.

    Attributes:
        seq, units: The cursor of a reader that has seen it.
        own: How much it adds to the units; 0 if it is not a piece.
        data: The event as JSON.
        ends: Whether a request ends with it.
    """

    seq: int
    units: int
    own: int
    data: bytes
    ends: bool
    _sent: bytes = field(default=b"", init=False)

    @property
    def cursor(self) -> Cursor:
        """Where a reader is that has seen this."""
        return Cursor(self.seq, self.units)

    def encoded(self) -> bytes:
        """Return what is sent, which is the same for all readers."""
        if not self._sent:
            place = b"%d.%d" % (self.seq, self.units) if self.units else b"%d" % self.seq
            self._sent = b"id: %b\ndata: %b\n\n" % (place, self.data)
        return self._sent


def units_of(event: Mapping[str, Any]) -> int:
    """Return how much a piece of an answer adds to a cursor."""
    key = _TEXTS.get(event["type"])
    return 1 if key is None or not isinstance(event[key], str) else len(event[key])


def _frame(event: Mapping[str, Any], seq: int, units: int, own: int = 0) -> Frame:
    shown = event if "session" not in event else plain(event)  # type: ignore[arg-type]  # any event
    return Frame(seq, units, own, to_json(shown), event["type"] in _ENDS)


class Timeline(ABC):
    """Frames in their order, of which the latest are in memory, and those who wait for more.

    Attributes:
        readers: How many there are.
        end: The number that the next frame will have.
    """

    def __init__(self, seq: int) -> None:
        self.readers = 0
        self.end = 0
        self._seq = seq  # every logged event up to this one is here, or was before there was a timeline
        self._units = 0  # of the pieces that are here and that no logged event up to _seq has
        self._start = Cursor(seq)
        self._frames: deque[Frame] = deque()
        self._first = 0  # the number of the first frame that is still here
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def cursor(self) -> Cursor:
        """Where a reader is that has seen everything."""
        return Cursor(self._seq, self._units)

    @abstractmethod
    async def fill(self) -> None:
        """Take what the log has and this has not."""

    @abstractmethod
    async def logged_after(self, cursor: Cursor) -> tuple[list[Frame], Cursor]:
        """Return frames of logged events behind a cursor, as far as these are here, and the new cursor."""

    def after(self, cursor: Cursor) -> tuple[list[Frame], int, int] | None:
        """Return frames behind a cursor, the number of the next, and how much of that was seen already.

        None if the log must be read first.
        """
        if cursor == self._start:
            return [], self._first, 0
        for number, frame in enumerate(self._frames, self._first + 1):
            if frame.cursor == cursor:
                return [], number, 0
        return None

    def frames_from(self, number: int) -> list[Frame] | None:
        """Return the frames from a number on; None if the first of them is not here any more."""
        if number < self._first:
            return None
        missing = self.end - number
        if missing == 1:  # the usual case: one more since last time
            return [self._frames[-1]]
        return list(islice(self._frames, number - self._first, None)) if missing else []

    async def news(self) -> None:
        """Wait until there may be something new."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def wake(self) -> None:
        """Have every reader look."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    @property
    def _needed(self) -> int:
        """The number of the first frame that must not be forgotten."""
        return self.end

    def _add(self, frame: Frame) -> None:
        self._frames.append(frame)
        self.end += 1
        if self.end - self._first > MOST_FRAMES:
            self._trim()
        if self._waiting:
            self.wake()

    def _trim(self) -> None:
        """Forget the oldest frames; those that the log may not have yet are needed."""
        while len(self._frames) > MOST_FRAMES and self._first < self._needed:
            self._start = self._frames.popleft().cursor
            self._first += 1


class Feed(Timeline):
    """The latest events of one session.

    Attributes:
        users: How many readers and runs have it.
        local: Whether a run of this process puts its events in now.
    """

    def __init__(self, app: AgentApplication, session_id: str, seq: int) -> None:
        super().__init__(seq)
        self.users = 0
        self.local = False
        self._app = app
        self._session_id = session_id
        self._unlogged = 0  # the number of the first piece since the log had all of them
        self._join = seq  # the last logged event before that piece
        self._accounted: list[Cursor] = []  # what was logged since then of these pieces
        self._filling = asyncio.Lock()

    async def put(self, event: Mapping[str, Any]) -> None:
        """Take an event of a run of this process, as it is shown to whoever made the request."""
        seq = event["seq"]
        if seq > self._seq + 1:
            await self._fill(seq)
        if seq > self._seq:
            self._add_logged(event)

    def put_piece(self, event: Mapping[str, Any]) -> None:
        """Take an event that is shown before it is logged, or is not logged at all."""
        own = units_of(event) if event["type"] in LIVE else 0
        if own and not self._units:
            self._unlogged, self._join, self._accounted = self.end, self._seq, []
        self._units += own
        self._add(_frame(event, self._seq, self._units, own))

    async def hear(self, row: Mapping[str, Any]) -> None:
        """Take an event that somebody has logged; it may be here already."""
        if row["seq"] == self._seq + 1:
            self._take([row])
        elif row["seq"] > self._seq:
            await self.fill()

    async def fill(self) -> None:
        await self._fill(None)

    async def _fill(self, before: int | None) -> None:
        """Take what the log has and the feed has not, up to an event if one is named."""
        async with self._filling:
            while True:
                rows = await self._app.events_async(self._session_id, self._seq, _PAGE)
                due = [row for row in rows if before is None or row["seq"] < before]
                if not self._take(due) or len(due) < _PAGE:
                    return

    def _add_logged(self, event: Mapping[str, Any]) -> None:
        self._seq, self._units = event["seq"], 0
        own = units_of(event) if event["type"] in LIVE else 0
        self._add(_frame(event, self._seq, 0, own))

    def _take(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Put logged events in; False if one must wait, since its pieces are still on their way to us."""
        for row in rows:
            if row["seq"] <= self._seq:
                continue
            if row["type"] not in LIVE:
                self._seq = row["seq"]
                self._add(_frame(row, self._seq, self._units))
                continue
            units = units_of(row)
            if self._units >= units and (units or self.local):  # its pieces are here already
                self._seq, self._units = row["seq"], self._units - units
                self._accounted.append(Cursor(row["seq"], units))
            elif self.local:
                return False
            else:
                self._add_logged(row)
        return True

    @property
    def _needed(self) -> int:
        return self._unlogged if self._units else self.end

    def after(self, cursor: Cursor) -> tuple[list[Frame], int, int] | None:
        join = self._join if self._units else self._seq
        if cursor.seq < join:
            return super().after(cursor) if not cursor.units else None
        if not self._units:  # what it has seen besides, in another process, is on its way into the log
            return [], self.end, cursor.units
        return self._missing(cursor), self.end, 0

    def _missing(self, cursor: Cursor) -> list[Frame]:
        """Return what a reader has not seen since the log had all pieces.

        Somebody may have logged something between these pieces: here it comes where it was heard of, and the
        reader may have it from the log.
        """
        seen = cursor.units + sum(one.units for one in self._accounted if one.seq <= cursor.seq)
        missing, units, total, in_step = [], cursor.units, 0, False
        for frame in islice(self._frames, self._unlogged - self._first, None):
            total += frame.own
            if total <= seen if frame.own else frame.seq <= cursor.seq:
                continue
            in_step = in_step or not frame.own  # from here on the reader is where the others are
            units += frame.own
            missing.append(frame if in_step else replace(frame, seq=cursor.seq, units=units))
        return missing

    async def logged_after(self, cursor: Cursor) -> tuple[list[Frame], Cursor]:
        rows = await self._app.events_async(self._session_id, cursor.seq, _PAGE)
        join = self._join if self._units else self._seq
        return unseen([row for row in rows if row["seq"] <= join], cursor)


class Everything(Timeline):
    """The latest events of all sessions; their place is that in the feed of the store."""

    def __init__(self, app: AgentApplication, seq: int) -> None:
        super().__init__(seq)
        self._app = app

    def hear(self, row: Mapping[str, Any]) -> None:
        """Take an event that somebody has logged; without readers nobody needs it in memory."""
        seq = int(row["cursor"])
        if seq <= self._seq:
            return
        self._seq = seq
        if self.readers:
            self._add(_frame(row, seq, 0))
        elif self._frames:
            self._first += len(self._frames)
            self._frames.clear()
        if not self._frames:
            self._start = Cursor(seq)

    async def fill(self) -> None:
        while rows := await self._app.all_events_async(str(self._seq), _PAGE):
            for row in rows:
                self.hear(row)

    async def logged_after(self, cursor: Cursor) -> tuple[list[Frame], Cursor]:
        rows = await self._app.all_events_async(str(cursor.seq), _PAGE)
        frames = [_frame(row, int(row["cursor"]), 0) for row in rows if int(row["cursor"]) <= self._seq]
        return frames, frames[-1].cursor if frames else Cursor(self._seq)


def unseen(rows: Sequence[Mapping[str, Any]], cursor: Cursor) -> tuple[list[Frame], Cursor]:
    """Return frames of the logged events behind a cursor, and the cursor of a reader that has seen them all.

    Of pieces that the reader has seen in part, it gets the rest.
    """
    frames = []
    for row in rows:
        own = units_of(row) if row["type"] in LIVE else 0
        frame = _frame(row, row["seq"], 0, own)
        rest, left = unseen_part(frame, cursor.units)
        cursor = Cursor(row["seq"], left)
        if rest is not None:
            frames.append(replace(rest, units=left))
    return frames, cursor


def unseen_part(frame: Frame, seen: int) -> tuple[Frame | None, int]:
    """Return what a reader has not seen of a frame, and how much it has seen beyond that.

    Args:
        seen: How much of the pieces that come it has seen.
    """
    if not seen:
        return frame, 0
    if not frame.own:
        event = orjson.loads(frame.data)
        left = 0 if event["type"] in _BORDERS else seen
        return replace(frame, units=frame.units + left), left
    if frame.own <= seen:
        return None, seen - frame.own
    event = orjson.loads(frame.data)
    key = _TEXTS[event["type"]]
    return replace(frame, data=to_json({**event, key: event[key][seen:]}), own=frame.own - seen), 0


class Feeds:
    """The timelines that somebody reads or a run of this process fills."""

    def __init__(self, app: AgentApplication) -> None:
        self._app = app
        self._feeds: dict[str, Feed] = {}
        self._all: Everything | None = None
        self._tenants: dict[str, Everything] = {}
        self._following: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._feeds)

    async def close(self) -> None:
        """Follow the log no more."""
        while self._following is not None and not self._following.done():
            self._following.cancel()  # again, since an event that comes at that moment can make it go unheard
            await asyncio.wait([self._following], timeout=1)

    def begin(self, session_id: str, seq: int) -> Feed:
        """Return the feed of a session for a run, which puts its events in from now on.

        Args:
            seq: The last logged event before those of the run.
        """
        feed = self._feeds.setdefault(session_id, Feed(self._app, session_id, seq))
        feed.users += 1
        feed.local = True
        return feed

    def end(self, session_id: str, feed: Feed) -> None:
        """Say that a run puts nothing more in."""
        feed.local = False
        self._give_back(session_id, feed)

    @asynccontextmanager
    async def reading(self, session_id: str | None, tenant: str | None = None) -> AsyncIterator[Timeline]:
        """Have the feed of a session, of all of a tenant, or of all, with everything that anybody logs.

        Raises:
            SessionNotFound: If there is no such session.
        """
        everything = await self._follow()
        if session_id is None:
            timeline = everything if tenant is None else await self._of_tenant(tenant)
            timeline.readers += 1
            try:
                yield timeline
            finally:
                timeline.readers -= 1
                if tenant is not None and not timeline.readers:
                    self._tenants.pop(tenant, None)
            return
        feed, is_new = await self._take(session_id)
        feed.readers += 1
        try:
            if is_new:  # what was logged while it was opened may have been passed by
                await feed.fill()
            yield feed
        finally:
            feed.readers -= 1
            self._give_back(session_id, feed)

    async def _take(self, session_id: str) -> tuple[Feed, bool]:
        feed = self._feeds.get(session_id)
        is_new = feed is None
        if feed is None:
            last = await self._app.last_event_async(session_id)
            if not last:
                await self._app.session_info_async(session_id)
            feed = self._feeds.setdefault(session_id, Feed(self._app, session_id, last))
        feed.users += 1
        return feed, is_new

    def _give_back(self, session_id: str, feed: Feed) -> None:
        feed.users -= 1
        if not feed.users:
            self._feeds.pop(session_id, None)

    async def _follow(self) -> Everything:
        """Return the feed of all sessions; from the first time on, somebody puts into it what is logged."""
        if self._all is None:
            last = int(await self._app.last_cursor_async() or 0)
            self._all = self._all or Everything(self._app, last)
        if self._following is None:
            self._following = asyncio.create_task(self._hear(self._all))
        return self._all

    async def _of_tenant(self, tenant: str) -> Everything:
        """Return the feed of a tenant's sessions, which is filled while somebody reads it."""
        known = self._tenants.get(tenant)
        if known is None:
            app = self._app.of_tenant(tenant)
            last = int(await app.last_cursor_async() or 0)
            known = self._tenants.setdefault(tenant, Everything(app, last))
            known.readers += 1  # so that what it is filled with stays
            try:
                await known.fill()
            finally:
                known.readers -= 1
        return known

    async def _hear(self, everything: Everything) -> None:
        while True:
            try:
                async with self._app.subscribe_all_async(str(everything.cursor.seq)) as events:
                    async for event in events:
                        everything.hear(event)
                        if (of_tenant := self._tenants.get(event.get("tenant", ""))) is not None:
                            of_tenant.hear(event)
                        feed = self._feeds.get(event.get("session_id", ""))
                        if feed is None:
                            continue
                        if event["type"] == "session_deleted":
                            feed.wake()
                        elif "seq" in event:
                            await feed.hear(event)
            except AgentError as error:  # the database is away; readers wait, and what comes later is found
                _log.warning("events_not_followed", error=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)

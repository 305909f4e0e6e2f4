"""The events of a session for all its readers in this process: first from the log, then live.

Most events are logged before anybody sees them, with a number. The pieces of an answer are shown at once and
logged a moment later, joined. A reader that comes back must get neither twice, so its place is a `Cursor`:
the number of the last logged event, and how much of the pieces behind it was seen. It means the same whether
the pieces come from memory or, joined, from the log, in this process or another one.

A `Feed` has the frames since a certain event. A run of this process puts its events in; what others write
comes from the log. Readers wait at the end of the feed; one that is behind its beginning reads the log until
it has caught up. So a slow reader costs no memory and misses nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
_CURSOR = re.compile(r"(\d{1,15})(?:\.(\d{1,15}))?")
_TEXTS = {"text": "text", "reasoning": "text", "tool_call_args": "arguments"}
"""The events whose pieces are joined in the log, and where their text is."""
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
            raise ArgumentError(f"{text!r} is no place among events: send the id of the last event")
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
        data: The event as JSON.
        ends: Whether a request ends with it.
    """

    seq: int
    units: int
    data: bytes
    ends: bool = False

    @property
    def cursor(self) -> Cursor:
        """Where a reader is that has seen this."""
        return Cursor(self.seq, self.units)

    def encoded(self) -> bytes:
        """Return what is sent."""
        place = b"%d.%d" % (self.seq, self.units) if self.units else b"%d" % self.seq
        return b"id: %b\ndata: %b\n\n" % (place, self.data)


def units_of(event: Mapping[str, Any]) -> int:
    """Return how much a piece of an answer adds to a cursor."""
    key = _TEXTS.get(event["type"])
    return 1 if key is None or not isinstance(event[key], str) else len(event[key])


def _frame(event: Mapping[str, Any], seq: int, units: int) -> Frame:
    shown = event if "session" not in event else plain(event)  # type: ignore[arg-type]  # any event
    return Frame(seq, units, to_json(shown), event["type"] in ("final", "error"))


class Feed:
    """The latest events of one session.

    Attributes:
        users: How many readers and runs have it.
        local: Whether a run of this process puts its events in now.
    """

    def __init__(self, app: AgentApplication, session_id: str, seq: int) -> None:
        self.users = 0
        self.local = False
        self._app = app
        self._session_id = session_id
        self._seq = seq  # every logged event up to this one is here, or was before there was a feed
        self._units = 0  # of the pieces that are here and that no logged event up to _seq has
        self._start = Cursor(seq)
        self._frames: deque[Frame] = deque()
        self._first = 0  # the number of the first frame that is still here
        self._waiting: list[asyncio.Future[None]] = []
        self._accounted: list[Cursor] = []  # pieces that were here before they were logged
        self._filling = asyncio.Lock()

    @property
    def end(self) -> int:
        """The number that the next frame will have."""
        return self._first + len(self._frames)

    @property
    def seq(self) -> int:
        """The last logged event that is here."""
        return self._seq

    @property
    def cursor(self) -> Cursor:
        """Where a reader is that has seen everything."""
        return Cursor(self._seq, self._units)

    # What comes in

    async def put(self, event: Mapping[str, Any]) -> None:
        """Take an event of a run of this process, as it is shown to whoever made the request."""
        seq = event.get("seq")
        if seq is None:
            self.put_piece(event)
            return
        if seq > self._seq + 1:
            await self.fill(before=seq)
        if seq > self._seq:
            self._add_logged(event)

    def put_piece(self, event: Mapping[str, Any]) -> None:
        """Take an event that is shown before it is logged, or is not logged at all."""
        if event["type"] in LIVE:
            self._units += units_of(event)
        self._add(_frame(event, self._seq, self._units))

    def _add_logged(self, event: Mapping[str, Any]) -> None:
        self._seq, self._units = event["seq"], 0
        self._add(_frame(event, self._seq, 0))

    def _add(self, frame: Frame) -> None:
        self._frames.append(frame)
        if len(self._frames) > MOST_FRAMES:
            self._trim()
        self.wake()

    def wake(self) -> None:
        """Have every reader look."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def fill(self, *, before: int | None = None) -> None:
        """Take what the log has and the feed has not, up to an event if one is named."""
        async with self._filling:
            while True:
                rows = await self._app.events_async(self._session_id, self._seq, _PAGE)
                due = [row for row in rows if before is None or row["seq"] < before]
                if not self._take(due) or len(due) < _PAGE:
                    return

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
            if self._units >= units > 0:
                self._account(row["seq"], units)
            elif self.local:
                return False
            else:
                self._add_logged(row)
        return True

    def _account(self, seq: int, units: int) -> None:
        """Note that pieces which are here already are in the log, under a number."""
        before, self._seq, self._units = self._seq, seq, self._units - units
        self._accounted.append(Cursor(seq, units))
        for frame in reversed(self._frames):
            if frame.seq != before or frame.units <= units:
                break
            frame.seq, frame.units = seq, frame.units - units

    def _trim(self) -> None:
        """Forget the oldest frames; those that the log may not have yet stay."""
        while len(self._frames) > MOST_FRAMES and self._frames[0].seq < self._seq:
            self._start = self._frames.popleft().cursor
            self._first += 1
        self._accounted = [one for one in self._accounted if one.seq > self._start.seq]

    # What goes out

    def place_of(self, cursor: Cursor) -> int | None:
        """Return the number of the frame behind a cursor; None if only the log knows it."""
        for logged in self._accounted:  # what was seen as pieces has a number by now
            if logged.seq > cursor.seq and cursor.units >= logged.units:
                cursor = Cursor(logged.seq, cursor.units - logged.units)
        if cursor < self._start:
            return None
        is_known = cursor.seq in (self._start.seq, self._seq)
        if not is_known and not any(frame.seq == cursor.seq for frame in self._frames):
            return None
        for number, frame in enumerate(self._frames, self._first):
            if frame.cursor > cursor:
                return number
        return self.end

    def frames_from(self, number: int) -> list[Frame] | None:
        """Return the frames from a number on; None if the first of them is not here any more."""
        if number < self._first:
            return None
        if number == self._first:
            return list(self._frames)
        skip = number - self._first
        if len(self._frames) - skip == 1:  # the usual case: one more since last time
            return [self._frames[-1]]
        return [frame for place, frame in enumerate(self._frames) if place >= skip]

    async def news(self) -> None:
        """Wait until there may be something new."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    async def logged_after(self, cursor: Cursor) -> tuple[list[Frame], Cursor]:
        """Return frames of logged events behind a cursor, as far as the feed is, and the new cursor."""
        rows = await self._app.events_async(self._session_id, cursor.seq, _PAGE)
        return unseen([row for row in rows if row["seq"] <= self._seq], cursor)


def unseen(rows: Sequence[Mapping[str, Any]], cursor: Cursor) -> tuple[list[Frame], Cursor]:
    """Return frames of the logged events behind a cursor, and the cursor of a reader that has seen them all.

    Of pieces that the reader has seen in part, it gets the rest.
    """
    frames = []
    for row in rows:
        if row["type"] not in LIVE:
            cursor = Cursor(row["seq"], cursor.units)
            frames.append(_frame(row, *cursor))
            continue
        own = units_of(row)
        seen = min(own, cursor.units)
        cursor = Cursor(row["seq"], cursor.units - seen)
        if seen < own:
            frames.append(_frame(_rest(row, seen), *cursor))
    return frames, cursor


def _rest(row: Mapping[str, Any], seen: int) -> Mapping[str, Any]:
    key = _TEXTS.get(row["type"])
    return row if not seen or key is None else {**row, key: row[key][seen:]}


class Feeds:
    """The feeds of the sessions that somebody reads or runs in this process."""

    def __init__(self, app: AgentApplication) -> None:
        self._app = app
        self._feeds: dict[str, Feed] = {}
        self._following: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    @asynccontextmanager
    async def writing(self, session_id: str) -> AsyncIterator[Feed]:
        """Have the feed of a session for a run, which puts its events in.

        Raises:
            SessionNotFound: If there is no such session.
        """
        feed = await self._take(session_id)
        try:
            yield feed
        finally:
            self._give_back(session_id, feed)

    @asynccontextmanager
    async def reading(self, session_id: str) -> AsyncIterator[Feed]:
        """Have the feed of a session, which also has what others write.

        Raises:
            SessionNotFound: If there is no such session.
        """
        feed = await self._take(session_id)
        try:
            if session_id not in self._following:
                self._following[session_id] = asyncio.create_task(self._follow(session_id, feed))
            yield feed
        finally:
            self._give_back(session_id, feed)

    async def _take(self, session_id: str) -> Feed:
        feed = self._feeds.get(session_id)
        if feed is None:
            last = await self._app.last_event_async(session_id)
            if not last:
                await self._app.session_info_async(session_id)
            feed = self._feeds.setdefault(session_id, Feed(self._app, session_id, last))
        feed.users += 1
        return feed

    def _give_back(self, session_id: str, feed: Feed) -> None:
        feed.users -= 1
        if feed.users:
            return
        self._feeds.pop(session_id, None)
        following = self._following.pop(session_id, None)
        if following is not None:
            following.cancel()

    async def _follow(self, session_id: str, feed: Feed) -> None:
        """Put what others log into a feed."""
        try:
            async with self._app.subscribe_async(session_id, feed.seq) as events:
                async for event in events:
                    if event["seq"] > feed.seq:
                        await feed.fill()
        except AgentError as error:
            _log.info("feed_ended", session=session_id, error=str(error))
        feed.wake()

"""Events as a response: `text/event-stream` with ids, heartbeats, and an end for readers that are too slow.

It is an ASGI application of its own, since frameworks put a task, a queue or a validation behind each event.
Everything that is there goes out in one write, so a burst of pieces costs as much as one.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agent_app.errors import SessionNotFound
from agent_core import AgentError
from agent_server.feed import Cursor, Gone, unseen_part
from agent_server.problem import problem_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from starlette.types import Message, Receive, Scope, Send

    from agent_server.feed import Feeds, Frame, Timeline

RETRY_MILLISECONDS = 1000
"""After which time a browser connects again."""
RAW_SEND = "keelwork.send"
"""Where a request has the `send` of the server itself: the layers around it look at the start alone."""
HEARTBEAT = b"event: heartbeat\ndata: {}\n\n"
"""A named event with data: a script in a page sees neither comments nor events without data."""
DELETED = b"event: deleted\ndata: {}\n\n"
"""The session is gone, and nothing will come any more."""
RECONNECT = b"event: reconnect\ndata: {}\n\n"
"""The last word of a server that stops: go on elsewhere, or here in a moment."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class Reader:
    """Reads a session's events from a cursor on, first from the log and then as they come.

    Args:
        one_run: Whether it ends with the run that comes next.

    Attributes:
        is_over: Whether it has ended.
    """

    def __init__(self, feed: Timeline, cursor: Cursor, *, one_run: bool = False) -> None:
        self._feed = feed
        self._cursor = cursor
        self._number: int | None = None
        self._seen = 0  # of the pieces that come next
        self._last: Frame | None = None  # that was read; its cursor is ours
        self._one_run = one_run
        self.is_over = False

    async def start(self) -> None:
        """Check the cursor.

        Raises:
            Gone: If the log has no such event.
        """
        if self._cursor.seq > self._feed.cursor.seq:
            await self._feed.fill()
        if self._cursor.seq > self._feed.cursor.seq:
            raise Gone(self._cursor, self._feed.cursor.seq)

    @property
    def is_waiting(self) -> bool:
        """Whether there is nothing to read now, and something may come."""
        return self._number == self._feed.end and not self.is_over

    async def read(self) -> list[Frame] | None:
        """Return what is there and was not read yet; an empty list if one has to wait, None at the end."""
        while not self.is_over:
            frames = self.take()
            if frames is not None:
                return frames
            if frames := await self._catch_up():
                return frames
        return None

    def take(self) -> list[Frame] | None:
        """Return what is in memory and was not read yet; None if that is not all there is to it: `read`."""
        if self._number is None or self.is_over:
            return None
        frames = self._feed.frames_from(self._number)
        if frames is None:  # this reader was too slow for the feed; the log has it all
            self._number = None
            if self._last is not None:
                self._cursor = self._last.cursor
            return None
        self._number += len(frames)
        return self._taken(self._unseen(frames) if self._seen else frames)

    async def _catch_up(self) -> list[Frame]:
        """Read the log, up to where the feed begins."""
        found = self._feed.after(self._cursor)
        if found is None:
            frames, self._cursor = await self._feed.logged_after(self._cursor)
        else:
            frames, self._number, self._seen = found
        self._last = None
        return self._taken(frames)

    def _taken(self, frames: list[Frame]) -> list[Frame]:
        """Note how far the reader is; what comes behind the end of its run is not for it."""
        if self._one_run:
            for frame in frames:
                if frame.ends:
                    self.is_over = True
                    frames = frames[: frames.index(frame) + 1]
                    break
        if frames:
            self._last = frames[-1]
        return frames

    def _unseen(self, frames: list[Frame]) -> list[Frame]:
        """Leave out what the reader has seen in another process before it was logged."""
        left = []
        for frame in frames:
            rest, self._seen = unseen_part(frame, self._seen)
            self._cursor = Cursor(frame.seq, self._seen)
            if rest is not None:
                left.append(rest)
        return left


class Streams:
    """The event streams that are open, which are looked after together.

    A reader whose key, link or invitation is taken back, or ends, must not hear more. What was done in this
    process counts at once (`check`); what was done by another server, or by a clock, within a heartbeat.

    Args:
        heartbeat: After how many seconds of silence a reader hears that the server is there.
        patience: How many seconds a reader may take to make room for more before it is cut off.
    """

    def __init__(self, *, heartbeat: float = 10.0, patience: float = 30.0) -> None:
        self.is_closing = False
        self._heartbeat = heartbeat
        self._patience = patience
        self._open: set[_Sending] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._checking = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, stream: _Sending) -> None:
        """Look after a stream from now on."""
        self._open.add(stream)
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())

    def remove(self, stream: _Sending) -> None:
        """Forget a stream; once is enough."""
        self._open.discard(stream)

    async def check(self) -> None:
        """Send those readers away who may not read any more."""
        async with self._checking:
            for stream in list(self._open):
                if stream.allowed is not None and not stream.is_refused and not await stream.allowed():
                    stream.is_refused = True
                    stream.wake()

    async def close(self) -> None:
        """Tell all readers to connect again, and wait until they are gone."""
        self.is_closing = True
        for stream in list(self._open):
            stream.wake()
        while self._open:
            await asyncio.sleep(0.01)
            for stream in list(self._open):
                stream.cut_if_stuck(time.monotonic() - 1.0)
        if self._ticking is not None:
            self._ticking.cancel()

    async def _tick(self) -> None:
        checked, checking = time.monotonic(), None
        while True:
            await asyncio.sleep(self._heartbeat / 4)
            now = time.monotonic()
            if checked <= now - self._heartbeat and (checking is None or checking.done()):
                checked, checking = now, asyncio.create_task(self.check())
            for stream in list(self._open):
                stream.cut_if_stuck(now - self._patience)
                if stream.last_sent <= now - self._heartbeat:
                    stream.heartbeat_due = True
                    stream.wake()


class SlowReader(asyncio.CancelledError):
    """Ends the answer to a reader who has taken nothing for too long; the connection is closed."""


class _Sending:
    """One open stream.

    Attributes:
        allowed: Says whether its reader may still read; None if that cannot change.
        is_refused: Whether the reader may not read any more.
    """

    def __init__(
        self,
        feed: Timeline,
        reader: Reader,
        streams: Streams,
        send: Send,
        allowed: Callable[[], Awaitable[bool]] | None,
    ) -> None:
        self.allowed = allowed
        self.is_refused = False
        self.last_sent = time.monotonic()
        self.heartbeat_due = False
        self._feed = feed
        self._reader = reader
        self._streams = streams
        self._send = send
        self._stuck_since: float | None = None
        self._is_cut = False
        self._task: asyncio.Task[Any] | None = asyncio.current_task()

    async def run(self, gone: asyncio.Future[None]) -> bool:
        """Send until the reader leaves, the end, or the server stops; say whether it was not the reader."""
        # In a task of its own: what waits in the caller's would pass all layers around the routes, each time.
        self._task = sending = asyncio.create_task(self._send_all(gone))
        try:
            return await sending
        except asyncio.CancelledError:
            if self._is_cut:
                raise SlowReader from None
            raise

    def wake(self) -> None:
        self._feed.wake()

    def cut_if_stuck(self, before: float) -> None:
        """End a stream whose reader has taken nothing since some moment."""
        if self._stuck_since is not None and self._stuck_since <= before and self._task is not None:
            self._is_cut = True
            self._task.cancel()

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        self._stuck_since = self.last_sent = time.monotonic()
        self.heartbeat_due = False
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._stuck_since = None

    async def _send_all(self, gone: asyncio.Future[None]) -> bool:
        reader, owed = self._reader, b"retry: %d\n\n" % RETRY_MILLISECONDS
        while not gone.done():
            if self._streams.is_closing or self.is_refused:
                await self._body(owed + RECONNECT, more=False)
                return True
            try:
                frames = reader.take()  # mostly it is in memory: nothing is awaited then
                if frames is None:
                    frames = await reader.read()
            except AgentError as error:  # in the middle of an answer there is no other way to say it
                last = DELETED if isinstance(error, SessionNotFound) else RECONNECT
                await self._body(owed + last, more=False)
                return True
            data = owed + (frames[0].encoded() if frames and len(frames) == 1 else _encoded(frames or ()))
            if data or self.heartbeat_due:
                owed = b""
                await self._body(data or HEARTBEAT, more=not reader.is_over)
            if reader.is_over:
                return True
            is_ending = self._streams.is_closing or self.is_refused or gone.done()
            if reader.is_waiting and not is_ending:
                await self._feed.news()
        return False


def _encoded(frames: Iterable[Frame]) -> bytes:
    return b"".join([frame.encoded() for frame in frames])


class EventStreamResponse(Response):
    """The response that sends a session's events.

    Whatever it needs it takes when it begins to answer, so nothing is left behind if that never happens.

    Args:
        session_id: The session; None for all.
        after: What the reader has seen already; None for everything up to now.
        one_run: As of `Reader`.
        tenant: Without a session: whose; None for those of all tenants.
        left: Awaited when the reader goes before the end.
        allowed: Says whether the reader may still read; None if that cannot change.
        headers: More headers of the response.
    """

    def __init__(
        self,
        feeds: Feeds,
        streams: Streams,
        session_id: str | None,
        after: Cursor | None,
        *,
        one_run: bool = False,
        tenant: str | None = None,
        left: Callable[[], Awaitable[None]] | None = None,
        allowed: Callable[[], Awaitable[bool]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        own = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        # Not `super().__init__`: there is no body whose length could be said.
        self.status_code = 200
        self.background = None
        self.raw_headers = [*_HEADERS, *own]
        self._feeds = feeds
        self._streams = streams
        self._session_id = session_id
        self._after = after
        self._one_run = one_run
        self._tenant = tenant
        self._left = left
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._feeds.reading(self._session_id, self._tenant) as feed:
                reader = Reader(feed, self._after or feed.cursor, one_run=self._one_run)
                await reader.start()
                await self._answer(feed, reader, receive, send, scope.get(RAW_SEND, send))
        except (AgentError, Gone) as error:
            await problem_of(error).response(scope)(scope, receive, send)

    async def _answer(
        self, feed: Timeline, reader: Reader, receive: Receive, send: Send, send_body: Send
    ) -> None:
        gone = asyncio.ensure_future(_until_gone(receive))
        gone.add_done_callback(lambda _gone: feed.wake())
        sending = _Sending(feed, reader, self._streams, send_body, self._allowed)
        self._streams.add(sending)
        finished = False
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            finished = await sending.run(gone)
        finally:
            self._streams.remove(sending)
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone
            if not finished and self._left is not None:
                await self._left()


async def _until_gone(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    message: Message = await receive()
    while message["type"] != "http.disconnect":
        message = await receive()

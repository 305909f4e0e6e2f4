"""Whatever a run and others write, and whenever readers come and go: each sees everything once, in order."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from agent_core import ArgumentError
from agent_server import feed as feeds
from agent_server.event_stream import Reader
from agent_server.feed import Cursor, Feed, Frame, unseen

if TYPE_CHECKING:
    from agent_app import AgentApplication


class Log:
    """A session's log, and the run that writes it, as an application has them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.unlogged: list[str] = []
        self.said = ""

    async def events_async(self, _session_id: str, after: int, limit: int) -> list[dict[str, Any]]:
        await asyncio.sleep(0)
        return self.rows[after : after + limit]

    def append(self, **event: Any) -> dict[str, Any]:
        self.rows.append({**event, "seq": len(self.rows) + 1})
        return self.rows[-1]

    def flush(self) -> None:
        if self.unlogged:
            self.append(type="text", text="".join(self.unlogged))
            self.unlogged = []


class Watcher:
    """A reader that loses its connection now and then, and comes back with the last id it has."""

    def __init__(self, feed: Feed, elsewhere: Feed) -> None:
        self.frames: list[Frame] = []
        self.ids: list[str] = []
        self._feed = feed
        self._elsewhere = elsewhere
        self._reader: Reader | None = None

    async def read(self) -> None:
        if self._reader is None:
            self._reader = Reader(self._feed, Cursor.parse(self.ids[-1] if self.ids else "0"))
            await self._reader.start()
        while frames := await self._reader.read():
            self.frames += frames
            self.ids += [str(frame.cursor) for frame in frames]

    def disconnect(self, forgets: int, *, moves: bool) -> None:
        """Leave, perhaps for another server; of what was sent last, some never arrived."""
        if moves:
            self._feed, self._elsewhere = self._elsewhere, self._feed
        for _ in range(min(forgets, len(self.ids))):
            self.frames.pop()
            self.ids.pop()
        self._reader = None

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(frame.data) for frame in self.frames]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("piece"), st.text("ab", min_size=1, max_size=3)),
        st.tuples(st.just("late piece"), st.text("ab", min_size=1, max_size=3)),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("other"), st.none()),
        st.tuples(st.just("boundary"), st.none()),
        st.tuples(st.just("hear"), st.none()),
        st.tuples(st.just("read"), st.integers(0, 2)),
        st.tuples(st.just("leave"), st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans())),
    ),
    max_size=40,
)


class Stage:
    """A run, others who write, and readers; without `local` the run is in another process."""

    def __init__(self, *, local: bool) -> None:
        self.log = Log()
        self.feed = Feed(cast("AgentApplication", self.log), "s", 0)
        self.feed.local = self.local = local
        self.elsewhere = Feed(cast("AgentApplication", self.log), "s", 0)
        self.watchers = [Watcher(self.feed, self.elsewhere) for _ in range(3)]

    async def do(self, step: str, given_: Any) -> None:
        match step:
            case "piece":
                self._say(given_)
                self._show(given_)
            case "late piece":  # the log has it before it gets to the feed
                self._say(given_)
                self.log.flush()
                await self.feed.hear(self.log.rows[-1])
                await self.watchers[0].read()
                self._show(given_)
            case "flush":
                self.log.flush()
            case "other":
                self.log.append(type="session_renamed", title="x")
            case "boundary":
                await self.boundary()
            case "hear" if self.log.rows:
                await self.feed.hear(self.log.rows[-1])
            case "read":
                await self.elsewhere.fill()
                await self.watchers[given_].read()
            case "leave":
                self.watchers[given_[0]].disconnect(given_[1], moves=given_[2])

    def _say(self, text: str) -> None:
        self.log.said += text
        self.log.unlogged.append(text)

    def _show(self, text: str) -> None:
        if self.local:
            self.feed.put_piece({"type": "text", "text": text})

    async def boundary(self) -> None:
        self.log.flush()
        event = self.log.append(type="step_end")
        if self.local:
            await self.feed.put(event)


async def play(script: list[tuple[str, Any]], *, local: bool) -> tuple[Log, list[Watcher]]:
    """Write and read as a script says, and then to the end."""
    stage = Stage(local=local)
    for step, given_ in script:
        await stage.do(step, given_)
    await stage.boundary()
    stage.feed.local = False
    await stage.feed.fill()
    await stage.elsewhere.fill()
    for watcher in stage.watchers:
        await watcher.read()
    return stage.log, stage.watchers


@pytest.mark.slow
@settings(max_examples=600)
@given(steps, st.booleans(), st.sampled_from([2, 1024]))
def test_every_reader_sees_everything_once(script: list[tuple[str, Any]], local: bool, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeds, "MOST_FRAMES", most)
        log, watchers = asyncio.run(play(script, local=local))

    whole = [row["seq"] for row in log.rows if row["type"] != "text"]
    for watcher in watchers:
        assert "".join(event["text"] for event in watcher.events if event["type"] == "text") == log.said
        assert [event["seq"] for event in watcher.events if event["type"] != "text"] == whole


@pytest.mark.slow
@settings(max_examples=300)
@given(steps)
def test_a_cursor_of_one_process_means_the_same_in_another(script: list[tuple[str, Any]]) -> None:
    log, watchers = asyncio.run(play(script, local=True))
    whole = watchers[0]

    for place, cursor in enumerate(whole.ids):  # go on elsewhere, where there is nothing but the log
        rest, end = unseen(log.rows[Cursor.parse(cursor).seq :], Cursor.parse(cursor))
        texts = [*whole.events[: place + 1], *(json.loads(frame.data) for frame in rest)]
        assert "".join(event["text"] for event in texts if event["type"] == "text") == log.said
        assert end == Cursor(len(log.rows))


@pytest.mark.parametrize("text", ["", "x", "-1", "1.", ".5", "1.2.3", "1e3", "\u0661", "9" * 30, " 1", "0x1"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a place"):
        Cursor.parse(text)


@pytest.mark.parametrize("cursor", [Cursor(0), Cursor(12), Cursor(12, 40)])
def test_a_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor


def test_a_follower_that_misses_the_first_word_to_stop_gets_another() -> None:
    async def stop() -> None:
        heard = asyncio.Event()

        async def hard_of_hearing() -> None:
            with suppress(asyncio.CancelledError):
                heard.set()
                await asyncio.sleep(3600)
            await asyncio.sleep(3600)

        all_feeds = feeds.Feeds(cast("AgentApplication", Log()))
        all_feeds._following = following = asyncio.create_task(hard_of_hearing())
        await heard.wait()

        await all_feeds.close()

        assert following.cancelled()

    asyncio.run(stop())

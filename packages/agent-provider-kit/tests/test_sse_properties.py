"""Decoding server-sent events: what holds for every stream, against a decoder that is merely simple.

FUZZ_EXAMPLES=100000 looks at as many streams as it says.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise

from hypothesis import example, given, settings, strategies as st

from agent_provider_kit import SseDecoder, SseEvent

FUZZ = settings(max_examples=int(os.environ.get("FUZZ_EXAMPLES", "300")), deadline=None)

FRAGMENTS = [
    b"data: ",
    b"data:",
    b"data",
    b"event: ",
    b"event:",
    b"event",
    b"id: 7",
    b"retry: 10",
    b": ping",
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\n\r\n",
    b'{"choices": []}',
    b"[DONE]",
    b"message_start",
    "é€🙂".encode(),
    b"\xef\xbb\xbf",
    b"\x00",
    b"<html>",
]
streams = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=4)), max_size=30).map(b"".join)
cuts = st.lists(st.integers(min_value=0, max_value=400), max_size=12)


def simply(stream: bytes) -> list[SseEvent]:
    """Decode a whole stream in the plainest way there is."""
    events = []
    data: list[bytes] = []
    name = b""
    for line in [*re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf")), b""]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
        elif not line:
            events += [SseEvent(b"\n".join(data), name)] if data else []
            data, name = [], b""
    return events


def pieces_of(stream: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(borders)]


def decode(pieces: list[bytes]) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()


@FUZZ
@given(streams, cuts)
@example(b"event: x\ndata: y\n\n", [9])
@example(b"data: a\r\rdata: b\r\r", [9, 10])
@example(b"data: a\r\n\r\n", [8, 9, 10])
def test_any_split_of_a_stream_gives_the_events_of_the_whole(stream: bytes, places: list[int]) -> None:
    assert decode(pieces_of(stream, places)) == simply(stream)


@settings(deadline=None)
@given(streams)
def test_byte_by_byte_gives_the_events_of_the_whole(stream: bytes) -> None:
    assert decode([stream[at : at + 1] for at in range(len(stream))]) == simply(stream)


@settings(deadline=None)
@given(streams, cuts)
def test_no_event_waits_for_the_end_of_the_stream_after_its_blank_line(
    stream: bytes, places: list[int]
) -> None:
    decoder = SseDecoder()
    stream += b"\n\n"

    events = [event for piece in pieces_of(stream, places) for event in decoder.feed(piece)]

    assert events == simply(stream)
    assert decoder.finish() == []


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([b"", b"start"]), st.text(alphabet='aé🙂 {}:"', max_size=8)), max_size=8
    )
)
def test_events_that_are_written_plainly_come_back(events: list[tuple[bytes, str]]) -> None:
    written = [SseEvent(text.encode(), name) for name, text in events]
    stream = b"".join(
        (b"event: " + event.event + b"\n" if event.event else b"") + b"data: " + event.data + b"\n\n"
        for event in written
    )

    assert SseDecoder().feed(stream) == written

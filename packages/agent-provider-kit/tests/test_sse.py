"""Decoding server-sent events: what servers really send, case by case."""

from __future__ import annotations

import pytest

from agent_provider_kit import SseDecoder, SseError, SseEvent


def decode(*pieces: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()


def data(*pieces: bytes) -> list[bytes]:
    return [event.data for event in decode(*pieces)]


def test_whole_events_come_out_of_one_read() -> None:
    assert data(b"data: one\n\ndata: two\n\n") == [b"one", b"two"]


def test_an_event_that_arrives_in_two_reads_is_one_event() -> None:
    decoder = SseDecoder()

    assert decoder.feed(b"data: on") == []
    assert decoder.feed(b"e\n\n") == [SseEvent(b"one")]
    assert decoder.finish() == []


def test_a_read_gives_its_whole_events_and_keeps_the_rest() -> None:
    decoder = SseDecoder()

    assert decoder.feed(b"data: one\n\ndata: two\n\ndata: thr") == [SseEvent(b"one"), SseEvent(b"two")]
    assert decoder.feed(b"ee\n\n") == [SseEvent(b"three")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_lines_may_end_in_any_of_three_ways(end: bytes) -> None:
    assert data(b"data: one" + end * 2 + b"data: two" + end * 2) == [b"one", b"two"]


def test_line_ends_may_be_mixed() -> None:
    stream = b"data: a\r\n\ndata: b\r\r\ndata: c\n\r\ndata: d\r\rdata: e\n\n"

    assert data(stream) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_crlf_that_is_cut_between_two_reads_is_one_line_end() -> None:
    assert data(b"data: one\r", b"\ndata: two\r", b"\n\r", b"\n") == [b"one\ntwo"]


def test_a_lone_carriage_return_at_the_end_of_a_read_ends_its_line() -> None:
    decoder = SseDecoder()

    assert decoder.feed(b"data: one\r\r") == []  # a line feed may follow and belong to it
    assert decoder.feed(b"data: two") == [SseEvent(b"one")]
    assert decoder.finish() == [SseEvent(b"two")]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_byte_order_mark_at_the_beginning_is_skipped(size: int) -> None:
    stream = b"\xef\xbb\xbfdata: one\n\n"

    assert data(*(stream[at : at + size] for at in range(0, len(stream), size))) == [b"one"]


def test_a_byte_order_mark_elsewhere_is_content() -> None:
    assert data(b"data: \xef\xbb\xbf\n\n") == [b"\xef\xbb\xbf"]


def test_half_a_byte_order_mark_is_no_event() -> None:
    assert decode(b"\xef\xbb") == []


def test_comments_are_skipped() -> None:
    assert data(b": ping\n\ndata: one\n: in between\n\n:\n\ndata: two\n\n") == [b"one", b"two"]


def test_several_data_lines_are_joined_by_newlines() -> None:
    assert data(b"data: {\ndata:  1\ndata: }\n\n") == [b"{\n 1\n}"]


def test_only_one_space_after_the_colon_is_no_content() -> None:
    assert data(b"data:one\n\ndata:  two\n\ndata:\n\n") == [b"one", b" two", b""]


def test_a_field_without_a_colon_is_empty() -> None:
    assert data(b"data\n\n") == [b""]


def test_the_last_event_needs_no_blank_line() -> None:
    assert data(b"data: one\n\ndata: two") == [b"one", b"two"]
    assert data(b"data: one\n\ndata: two\n") == [b"one", b"two"]
    assert data(b"data: one\n\ndata: two\r") == [b"one", b"two"]


def test_an_event_has_the_name_that_stands_with_it() -> None:
    assert decode(b"event: start\ndata: 1\n\ndata: 2\n\ndata: 3\nevent: end\n\n") == [
        SseEvent(b"1", b"start"),
        SseEvent(b"2"),
        SseEvent(b"3", b"end"),
    ]


def test_a_name_that_arrives_in_an_earlier_read_counts() -> None:
    assert decode(b"event: start\n", b"data: 1\n\n") == [SseEvent(b"1", b"start")]


def test_a_name_without_data_is_no_event_and_is_forgotten() -> None:
    assert decode(b"event: start\n\ndata: 1\n\n") == [SseEvent(b"1")]


def test_ids_and_retry_times_are_skipped() -> None:
    assert decode(b"id: 7\nretry: 100\ndata: 1\n\n") == [SseEvent(b"1")]


@pytest.mark.parametrize("at", range(1, 20))
def test_a_character_may_be_cut_anywhere(at: int) -> None:
    stream = "data: né €uro 🙂 ok\n\n".encode()

    assert data(stream[:at], stream[at:]) == ["né €uro 🙂 ok".encode()]


def test_a_stream_of_nothing_has_no_events() -> None:
    assert decode() == decode(b"") == decode(b"", b"\n\n\n", b"") == []


def test_lines_of_no_event_are_kept_aside() -> None:
    decoder = SseDecoder()

    assert decoder.feed(b'{\n  "error": "busy"\n') == []
    assert decoder.feed(b"}") == decoder.finish() == []
    assert decoder.stray == b'{\n  "error": "busy"\n}'


def test_events_leave_nothing_aside() -> None:
    decoder = SseDecoder()
    decoder.feed(b": ping\nid: 1\nretry: 2\nevent: x\ndata: 1\n\n")

    assert decoder.stray == b""


def test_a_line_without_end_is_bounded() -> None:
    decoder = SseDecoder(largest=100)
    decoder.feed(b"data: " + b"x" * 90)

    with pytest.raises(SseError, match="larger than 100 bytes"):
        decoder.feed(b"x" * 90)


def test_an_event_of_endless_lines_is_bounded() -> None:
    decoder = SseDecoder(largest=100)

    with pytest.raises(SseError, match="larger than 100 bytes"):
        [decoder.feed(b"data: four\n") for _ in range(50)]


def test_a_page_in_place_of_events_is_bounded() -> None:
    decoder = SseDecoder(largest=100)

    with pytest.raises(SseError, match="larger than 100 bytes"):
        [decoder.feed(b"<p>text</p>\n\n") for _ in range(50)]


def test_a_long_stream_of_small_events_is_not_bounded() -> None:
    decoder = SseDecoder(largest=100)
    pieces = [b"data: on", b"e\n\ndata: two\n", b"\n", b"event: x\ndata: three\n\n: ping\n\n"]

    assert sum(len(decoder.feed(piece)) for piece in pieces * 100) == 300


def test_a_large_event_in_small_reads_arrives_whole() -> None:
    decoder = SseDecoder()
    pieces = [b"data: ", *([b"x" * 1000] * 4000), b"\n\n"]

    assert [event for piece in pieces for event in decoder.feed(piece)] == [SseEvent(b"x" * 4_000_000)]

"""Lines come out as they went in, however they were cut, and long ones do not stay."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, strategies as st

from mcp_tools.transports import Lines, TooLong

LONGEST = 40


@given(st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b" "))), st.data())
def test_lines_do_not_depend_on_how_they_arrive(written: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in written)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    lines = Lines(LONGEST)
    read: list[bytes | TooLong] = []

    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        read += lines.feed(whole[begin:end])

    assert [len(line) if isinstance(line, bytes) else line.size for line in read] == list(map(len, written))
    assert [line for line in read if isinstance(line, bytes)] == [
        line for line in written if len(line) <= LONGEST
    ]


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "result": "%s"}', 7),
        (b'{"id":7,"result":"%s"}', 7),
        (b'{"result":"%s","jsonrpc":"2.0","id":12}', 12),
        (b'{"result":"%s","id":12,"jsonrpc":"2.0"}', 12),
        (b'{"result":"%s"}', None),
        (b'{"jsonrpc":"2.0","result":{"id": 3, "text":"%s"}}', None),
        (b'{"jsonrpc":"2.0","id":"text","result":"%s"}', None),
        (b"%s", None),
    ],
)
@pytest.mark.parametrize("step", [1_000, 3, 1_000_000])
def test_a_long_line_says_whom_it_answers(line: bytes, request_id: int | None, step: int) -> None:
    whole = line.replace(b"%s", b"x" * 5_000)
    lines = Lines(LONGEST)
    read: list[bytes | TooLong] = []

    for begin in range(0, len(whole), step):
        read += lines.feed(whole[begin : begin + step])

    assert lines.feed(b"\nshort\n") == [TooLong(len(whole), request_id), b"short"]
    assert read == []


def test_a_line_without_end_takes_no_memory() -> None:
    lines = Lines(1_000_000)
    piece = b"x" * 65_536
    tracemalloc.start()

    for _ in range(1_600):  # 100 MB
        lines.feed(piece)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3_000_000

"""Server-sent events, tolerantly: whatever servers really send, in whole reads at a time.

The quick way takes the whole events of a read, one data line each with or without a name, and splits
them in C. Anything else (lone carriage returns, comments, several data lines) goes line by line.
"""

from __future__ import annotations

import msgspec

_MARK = b"\xef\xbb\xbf"  # the byte order mark that some servers begin with
_IGNORED = (b"", b"id", b"retry")  # comments, and fields that mean nothing for an answer
_LARGEST_EVENT = 64 * 1024 * 1024


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its data, and its name where it has one."""

    data: bytes
    event: bytes = b""


class SseError(ValueError):
    """One event is absurdly large."""


class SseDecoder:
    """Turns the pieces of a stream into events, wherever the borders of the pieces are.

    Lines may end in LF, CRLF or CR; a byte order mark, comments, unknown fields and a missing blank
    line at the end are tolerated.

    Args:
        largest: How many bytes an event may have.
    """

    __slots__ = ("_data", "_event", "_gathered", "_largest", "_started", "_stray", "_waiting")

    def __init__(self, largest: int = _LARGEST_EVENT) -> None:
        self._largest = largest
        self._waiting: list[bytes] = []  # arrived, but not taken apart yet
        self._data: list[bytes] = []
        self._event = b""
        self._stray: list[bytes] = []
        self._gathered = 0
        self._started = False

    @property
    def stray(self) -> bytes:
        """The lines that belong to no event: the whole body, if the server sent no events at all."""
        return b"\n".join(self._stray)

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Return the events that are complete with *piece*.

        Raises:
            SseError: If an event has become too large.
        """
        fresh = self._started and not (self._waiting or self._data or self._event)
        if fresh and piece.endswith(b"\n\n") and b"\r" not in piece:
            quick = _split_simple(piece[:-2])
            if quick is not None:
                return quick
        return self._feed_any(piece)

    def finish(self) -> list[SseEvent]:
        """Return what is left when the stream has ended without its last blank line."""
        lines = self._all_waiting(b"").splitlines()
        events = [event for line in lines if (event := self._line(line)) is not None]
        last = self._dispatch()
        return events if last is None else [*events, last]

    def _feed_any(self, piece: bytes) -> list[SseEvent]:
        if not self._started:
            piece = self._start(piece)
        if b"\n" not in piece and b"\r" not in piece:
            return self._wait(piece)
        if self._waiting:
            piece = self._all_waiting(piece)
        if not self._data and not self._event:
            quick = self._feed_events(piece)
            if quick is not None:
                return quick
        return self._feed_lines(piece)

    def _start(self, piece: bytes) -> bytes:
        piece = self._all_waiting(piece)
        if len(piece) >= len(_MARK) or not _MARK.startswith(piece):
            self._started = True
            return piece.removeprefix(_MARK)
        return piece

    def _all_waiting(self, piece: bytes) -> bytes:
        waiting = b"".join(self._waiting)
        self._waiting = []
        self._gathered -= len(waiting)
        return waiting + piece

    def _wait(self, piece: bytes) -> list[SseEvent]:
        """Keep a piece without the end of a line; a CR before it has turned out to be one by itself."""
        if piece and self._waiting and self._waiting[-1].endswith(b"\r"):
            return self._feed_lines(self._all_waiting(piece))
        if piece:
            self._waiting.append(piece)
            self._grow(len(piece))
        return []

    def _feed_events(self, piece: bytes) -> list[SseEvent] | None:
        """Take whole events in one go and keep the rest; None if they are not of the simple kind."""
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n")
            if b"\r" in piece:
                return None
        end = piece.rfind(b"\n\n")
        events = None if end < 0 else _split_simple(piece[:end])
        if events is not None and end + 2 < len(piece):
            self._wait(piece[end + 2 :])
        return events

    def _feed_lines(self, text: bytes) -> list[SseEvent]:
        # A CR at the very end may be the first half of a CRLF: it waits for the next piece.
        kept = b"\r" if text.endswith(b"\r") else b""
        lines = text[: len(text) - len(kept)].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        rest = lines.pop() + kept
        events = [event for line in lines if (event := self._line(line)) is not None]
        self._wait(rest)
        return events

    def _line(self, line: bytes) -> SseEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._grow(len(value))
        elif name == b"event":
            self._event = value.removeprefix(b" ")
        elif name not in _IGNORED:
            self._stray.append(line)
            self._grow(len(line))
        return None

    def _dispatch(self) -> SseEvent | None:
        if not self._data:
            self._event = b""
            return None
        event = SseEvent(b"\n".join(self._data), self._event)
        self._data, self._event, self._gathered = [], b"", 0
        return event

    def _grow(self, size: int) -> None:
        self._gathered += size
        if self._gathered > self._largest:
            raise SseError(f"one event of the stream is larger than {self._largest} bytes")


def _split_simple(piece: bytes) -> list[SseEvent] | None:
    """Split whole events of one data line each; None if there are others."""
    if piece.startswith(b"data: "):
        found = piece[6:].split(b"\n\ndata: ")
        if piece.count(b"\n") == 2 * (len(found) - 1):  # no newline but those between the events
            return list(map(SseEvent, found))
    return _split_named(piece)


def _split_named(piece: bytes) -> list[SseEvent] | None:
    """Split whole events of one data line each, some of them with a name before it."""
    events = []
    for block in piece.split(b"\n\n"):
        name, _, data = block.rpartition(b"\n")
        if not data.startswith(b"data: "):
            return None
        if not name:
            events.append(SseEvent(data[6:]))
        elif name.startswith(b"event: ") and b"\n" not in name:
            events.append(SseEvent(data[6:], name[7:]))
        else:
            return None
    return events

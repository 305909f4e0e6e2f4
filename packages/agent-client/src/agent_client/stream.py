"""A stream of events that survives lost connections, without any input or output of its own.

A client opens the call that `Resumable` names, and feeds it the bytes that come. If the connection breaks,
the next call begins behind the last event. A run that may not even have begun is asked for again under the
same key, which starts it once.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_client.calls import Call, at
from agent_client.values import Event

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDS = ("final", "error")
_ACCEPT = {"accept": "text/event-stream"}
LONGEST = 100_000_000
"""How many bytes one event may have."""


class Decoder:
    """Reads `text/event-stream` from pieces that may break anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[dict[str, str]]:
        """Yield the fields of each event that is complete.

        Raises:
            ValueError: If an event does not end.
        """
        self._rest += piece.replace(b"\r\n", b"\n")
        if len(self._rest) > LONGEST:
            raise ValueError("an event of the server is longer than any should be")
        *blocks, self._rest = self._rest.split(b"\n\n")
        for block in blocks:
            fields: dict[str, str] = {}
            for line in block.decode("utf-8", "replace").split("\n"):
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
            yield fields


class Resumable:
    """The events of a session, of a run, or of all sessions.

    Args:
        first: The call that begins it.
        session_id: The session; None for all.
        one_run: Whether it ends with the run.

    Attributes:
        is_over: Whether the end has come.
        retry: After how many seconds to connect again.
        last_id: The id of the last event.
    """

    def __init__(self, first: Call, session_id: str | None, *, one_run: bool) -> None:
        self.is_over = False
        self.retry = 1.0
        self.last_id = ""
        self._first = replace(first, headers={**first.headers, **_ACCEPT})
        self._session_id = session_id
        self._one_run = one_run
        self._decoder = Decoder()

    def next_call(self) -> Call:
        """Return the call that begins or continues the stream."""
        self._decoder = Decoder()
        if not self.last_id:
            return self._first
        path = "/v1/events" if self._session_id is None else at(self._session_id, "events")
        return Call(method="GET", path=path, headers={**_ACCEPT, "last-event-id": self.last_id})

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events in what has come."""
        events = []
        for fields in self._decoder.feed(piece):
            if fields.get("retry", "").isdecimal():
                self.retry = int(fields["retry"]) / 1000
            if fields.get("event") == "deleted":
                self.is_over = True
            if "data" not in fields or "event" in fields:  # named events are the transport's own
                continue
            data = json.loads(fields["data"])
            self.last_id = fields.get("id", self.last_id)
            events.append(Event(self.last_id, str(data.get("type", "")), data))
            if self._one_run and events[-1].type in _ENDS:
                self.is_over = True
                break
        return events

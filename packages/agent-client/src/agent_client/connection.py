"""What both clients know of connections: making one, trying again, reading answers and streams of events."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx2

from agent_client import calls
from agent_client.calls import Call, at
from agent_client.errors import ConnectionLost, RunFailed, refusal
from agent_client.values import Event, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_client.calls import Answer

VERSION = "0.1.0"
SILENCE = 35.0
"""Seconds without a byte after which a stream is taken for broken; a server says something every ten."""
TRIES = 4
"""How often a call is made before the client gives up."""
OK = 200
PATIENT = httpx2.Timeout(SILENCE, connect=10.0).as_dict()
_TEMPORARY = frozenset({408, 425, 429, 502, 503, 504})
_LONGEST_PAUSE = 30.0


def settings(url: str, token: str | None, seconds: float) -> dict[str, Any]:
    """Return with what an HTTP client is made."""
    headers = {"user-agent": f"keelwork-client/{VERSION}"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    timeout = httpx2.Timeout(seconds, connect=10.0)
    return {"base_url": url, "headers": headers, "timeout": timeout, "follow_redirects": False}


def request_of(http: Any, sent: Call) -> Any:
    """Return a call as a request of an HTTP client."""
    return http.build_request(
        sent.method, sent.path, params=dict(sent.params), headers=dict(sent.headers), content=sent.content
    )


def lost(url: str, error: Exception) -> ConnectionLost:
    """Return the error of a server that cannot be reached."""
    return ConnectionLost(f"{url} cannot be reached: {str(error) or type(error).__name__}")


class Tries:
    """How often a call was made, and whether to make it again.

    Attributes:
        pause: How many seconds to wait before that.
    """

    def __init__(self, url: str, sent: Call) -> None:
        self.pause = 0.2
        self._url = url
        self._sent = sent
        self._left = TRIES

    def suffices(self, answer: Answer) -> bool:
        """Say whether an answer is the one to continue with."""
        self._left -= 1
        if answer.status not in _TEMPORARY or not self._sent.repeatable or not self._left:
            return True
        asked = answer.headers.get("retry-after", "")
        self.pause = min(float(asked), _LONGEST_PAUSE) if asked.isdecimal() else self.pause * 2
        return False

    def failed(self, error: httpx2.TransportError) -> None:
        """Note that there was no answer.

        Raises:
            ConnectionLost: If the call must not be made again: nobody knows what became of it.
        """
        self._left -= 1
        may_repeat = self._sent.repeatable or isinstance(error, httpx2.ConnectError)
        if not may_repeat or not self._left:
            raise lost(self._url, error) from error
        self.pause *= 2


class Unavailable(Exception):
    """A stream cannot be had now, and perhaps in a moment."""


def no_stream(answer: Answer) -> Exception:
    """Return what it means that a stream was not begun."""
    refused = refusal(answer.status, answer.json())
    return Unavailable(str(refused)) if answer.status in _TEMPORARY else refused


def run_stream(
    session_id: str, text: str, attachments: Sequence[Mapping[str, Any]], **more: Any
) -> Resumable:
    """Return the stream of a run that is to begin."""
    body = calls.run_body(text, attachments, **more)
    return Resumable(calls.call("POST", calls.at(session_id, "runs"), body), session_id, one_run=True)


def event_stream(session_id: str | None, after: str | None) -> Resumable:
    """Return the stream of a session's events, or of all."""
    path = "/v1/events" if session_id is None else calls.at(session_id, "events")
    return Resumable(calls.call("GET", path, params={"after": after}), session_id, one_run=False)


def decision_of(decision: dict[str, Any], *, approved: bool | None) -> dict[str, Any]:
    """Return what is sent for a decision."""
    return decision if approved is None else {"approved": approved, **decision}


def result_of(session_id: str, last: Event | None) -> Result:
    """Return what the last event of a run says.

    Raises:
        RunFailed: If it is an error.
    """
    if last is None or last.type != "final":
        raise RunFailed({} if last is None else last.data.get("error", {}))
    return Result.from_dict({"session_id": session_id, **last.data})


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

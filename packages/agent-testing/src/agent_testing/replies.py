"""What the scripted server answers: good replies, and replies with something wrong in them.

A reply holds an answer in both forms, in one piece and as a stream of events, and the server sends the
form that the request asks for. So one script serves tests of calls and of streams. Each method that
names a fault returns a changed copy: ``chat_reply("Hello").cut(20)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.testing import ToolCall
    from agent_provider_kit import JsonObject

EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"
_WORD = re.compile(r"\S+\s*|\s+")


class Break(NamedTuple):
    """What happens to the connection in the middle of a body.

    Attributes:
        kind: `cut` closes the connection; `end` ends the body in order, as if that were all of it;
            `reset` sends a TCP reset; `stall` sends nothing more until the server is released; `drip`
            sends `filler` again and again until the client goes.
        at: After how many bytes of the body; negative counts from its end, None is its middle.
        filler: What drips; a function is asked each time, with a number that rises from 0.
    """

    kind: Literal["cut", "end", "reset", "stall", "drip"]
    at: int | None = None
    filler: bytes | Callable[[int], bytes] = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReply:
    """One reply of the scripted server.

    Attributes:
        body: The answer in one piece.
        stream: The answer as events; None where a request for a stream gets `body` as well.
        status: The HTTP status.
        headers: More headers.
        content_type: Said of whichever form is sent; by default what it is.
        end_at: Where in `stream` the events begin that say how the answer ended.
        broken: What happens to the connection on the way.
        beginning: `never` sends nothing at all, not even a status, until the server is released;
            `reset` resets the connection at once; `drip` sends header after header until the client goes.
        piece: How many bytes are written at a time; all at once by default.
    """

    body: bytes = b""
    stream: bytes | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str | None = None
    end_at: int | None = None
    broken: Break | None = None
    beginning: Literal["prompt", "never", "reset", "drip"] = "prompt"
    piece: int | None = None

    def cut(self, at: int | None = None) -> ServerReply:
        """Close the connection after *at* bytes of the body, in its middle by default."""
        return replace(self, broken=Break("cut", at))

    def end(self, at: int | None = None) -> ServerReply:
        """End the body after *at* bytes, in good order: only its content shows that something is missing."""
        return replace(self, broken=Break("end", at))

    def reset(self, at: int | None = None) -> ServerReply:
        """Reset the connection after *at* bytes of the body."""
        return replace(self, broken=Break("reset", at))

    def stall(self, at: int | None = None) -> ServerReply:
        """Send nothing after *at* bytes of the body, until the server is released or the client goes."""
        return replace(self, broken=Break("stall", at))

    def drip(self, filler: bytes | Callable[[int], bytes], at: int | None = None) -> ServerReply:
        """Send *filler* without end after *at* bytes of the body, between two events by default."""
        return replace(
            self, broken=Break("drip", self._border_between_events() if at is None else at, filler)
        )

    def drip_headers(self) -> ServerReply:
        """Send headers without end, and never their end."""
        return replace(self, beginning="drip")

    def never_begin(self) -> ServerReply:
        """Send nothing at all, until the server is released or the client goes."""
        return replace(self, beginning="never")

    def refuse(self) -> ServerReply:
        """Reset the connection before anything is sent."""
        return replace(self, beginning="reset")

    def in_pieces(self, size: int) -> ServerReply:
        """Write *size* bytes at a time."""
        return replace(self, piece=size)

    def without_end(self) -> ServerReply:
        """Leave out the events that say how the answer ended; the body itself ends in good order."""
        return self.end(self.end_at)

    def garbled(self) -> ServerReply:
        """Put half a JSON object where a whole one belongs: into the stream, and into the body."""
        middle = self._border_between_events()
        stream = self.stream
        if stream is not None:
            stream = stream[:middle] + b'data: {"half": \n\n' + stream[middle:]
        return replace(self, body=self.body[: len(self.body) // 2], stream=stream)

    def labelled(self, content_type: str) -> ServerReply:
        """Say that the content is of another type than it is."""
        return replace(self, content_type=content_type)

    def payload(self, *, streamed: bool) -> tuple[bytes, str]:
        """Return what is sent and its content type, to a request that asked for a stream or not."""
        if streamed and self.stream is not None:
            return self.stream, self.content_type or EVENT_STREAM
        return self.body, self.content_type or JSON

    def _border_between_events(self) -> int:
        stream = self.stream or b""
        blank = b"\r\n\r\n" if b"\r\n\r\n" in stream else b"\n\n"
        found = stream.find(blank, len(stream) // 3)
        return found + len(blank) if found >= 0 else len(stream)


def json_reply(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> ServerReply:
    """Return a reply with a JSON body, whether a stream was asked for or not."""
    return ServerReply(body=orjson.dumps(body), status=status, headers=headers or {})


def sse_reply(*events: bytes | str | Mapping[str, Any], newline: bytes = b"\n") -> ServerReply:
    """Return a stream of these events: mappings are sent as JSON data, the rest as data that is written."""
    return ServerReply(stream=b"".join(sse_event(event, newline=newline) for event in events))


def sse_event(data: bytes | str | Mapping[str, Any], name: str = "", newline: bytes = b"\n") -> bytes:
    """Return one event as bytes."""
    if isinstance(data, Mapping):
        data = orjson.dumps(data)
    elif isinstance(data, str):
        data = data.encode()
    named = b"event: " + name.encode() + newline if name else b""
    return named + b"data: " + data + newline * 2


def error_reply(
    status: int,
    message: str = "something went wrong",
    *,
    code: str | None = None,
    wire: Literal["openai", "anthropic", "gemini"] = "openai",
    retry_after: float | str | None = None,
    request_id: str | None = "req_scripted",
) -> ServerReply:
    """Return an error in the form of a provider's API."""
    headers: dict[str, str] = {}
    if request_id is not None and wire != "gemini":
        headers["request-id" if wire == "anthropic" else "x-request-id"] = request_id
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}" if isinstance(retry_after, float) else str(retry_after)
    return json_reply(_error_body(status, message, code, wire, request_id), status, headers)


def _error_body(status: int, message: str, code: str | None, wire: str, request_id: str | None) -> JsonObject:
    if wire == "anthropic":
        error: JsonObject = {"type": code or "api_error", "message": message}
        return {"type": "error", "error": error, "request_id": request_id}
    if wire == "gemini":
        return {"error": {"code": status, "message": message, "status": code or "UNKNOWN"}}
    return {"error": {"message": message, "type": code or "server_error", "param": None, "code": code}}


def captive_portal(status: int = 200) -> ServerReply:
    """Return the login page that a hotel's network sends in place of any reply."""
    page = b"<!DOCTYPE html>\n<html><head><title>Welcome, guest</title></head><body>Log in</body></html>\n"
    return ServerReply(body=page, status=status, content_type="text/html; charset=utf-8")


def redirect(location: str = "http://login.invalid/", status: int = 302) -> ServerReply:
    """Return a reply that sends the client elsewhere."""
    return ServerReply(status=status, headers={"location": location}, content_type="text/html")


def words(text: str, chunks: Sequence[str] | None = None) -> list[str]:
    """Return the given pieces, or the text word by word."""
    if chunks is not None:
        if text and "".join(chunks) != text:
            raise ValueError("the chunks must add up to the text: give one of the two")
        return list(chunks)
    return _WORD.findall(text)


def halves(text: str) -> list[str]:
    """Return a text in two pieces, or in none if it is empty."""
    middle = (len(text) + 1) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON text; a text stays as it is, valid or not."""
    if isinstance(call.arguments, str):
        return call.arguments
    return orjson.dumps(call.arguments).decode()


def arguments_object(call: ToolCall) -> Any:
    """Return a call's arguments as an object; an empty one if they are a text that is not JSON."""
    try:
        return orjson.loads(arguments_text(call))
    except orjson.JSONDecodeError:
        return {}


def call_id(call: ToolCall, number: int, prefix: str) -> str:
    """Return the call's id, or one that is made of its number; an empty id stays empty."""
    return f"{prefix}{number}" if call.id is None else call.id

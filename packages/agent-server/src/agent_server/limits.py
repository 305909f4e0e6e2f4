"""How large, how deep and how slow a request may be; and how answers are made smaller."""

from __future__ import annotations

import asyncio
import gzip
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from agent_server.problem import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEGABYTE = 1_000_000
# A string that nobody closed goes to the end, so that its escaped quotes are not tried one after the other.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_UPLOADS = re.compile(r"/v1/sessions/[^/]+/assets|/v1/sessions/import")
_SMALLER = ("application/json", "text/html", "text/css", "text/javascript", "image/svg+xml")
_WORTH_IT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is accepted.

    Attributes:
        body: Bytes of a request.
        upload: Bytes of a file.
        depth: How deep JSON may be nested.
        seconds: How long a client may take to send a request.
    """

    body: int = 20 * MEGABYTE
    upload: int = 100 * MEGABYTE
    depth: int = 64
    seconds: float = 60.0


class Bounded:
    """Reads the body of a request before anybody works on it, and refuses one that is too much."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(scope, receive)
        except Problem as problem:
            problem.headers["connection"] = "close"  # what is left of the body would be read as a request
            await problem.response(scope)(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replay(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body; None if the client has left.

        Raises:
            Problem: If it is too large, too slow, or nested too deeply.
        """
        headers = Headers(scope=scope)
        limit = self._limits.upload if _UPLOADS.fullmatch(scope["path"]) else self._limits.body
        given = headers.get("content-length", "0")
        if given.isdecimal() and int(given) > limit:
            raise _too_large(limit)
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self._limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    pieces.append(message.get("body", b""))
                    size += len(pieces[-1])
                    if size > limit:
                        raise _too_large(limit)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise Problem(408, "too-slow", "The request took too long to arrive") from None
        body = b"".join(pieces)
        if (
            "json" in headers.get("content-type", "json")
            and depth_of(body, self._limits.depth) > self._limits.depth
        ):
            raise Problem(
                400, "too-deep", "The JSON is nested too deeply", f"{self._limits.depth} levels are accepted."
            )
        return body


def _too_large(limit: int) -> Problem:
    return Problem(413, "too-large", "The request is too large", f"{limit} bytes are accepted.")


def depth_of(body: bytes, enough: int) -> int:
    """Return how deep JSON is nested; it is not looked through if it cannot be deeper than *enough*."""
    if body.count(b"[") + body.count(b"{") <= enough:
        return 0
    depth = deepest = 0
    for byte in _STRING.sub(b"", body).translate(None, _NOT_BRACKETS):
        if byte in b"[{":
            depth += 1
            deepest = max(depth, deepest)
        else:
            depth -= 1
    return deepest


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body once more, and then whatever the client does."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class Compressed:
    """Makes answers smaller that are large and whole, for clients that can read that; never a stream."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            await self._app(scope, receive, send)
            return
        start: Message | None = None

        async def send_smaller(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _can_be_smaller(message):
                start = message
                return
            if start is not None:
                first, start = start, None
                body = message.get("body", b"")
                if not message.get("more_body", False) and len(body) >= _WORTH_IT:
                    first, message = await asyncio.to_thread(_smaller, first, message)
                await send(first)
            await send(message)

        await self._app(scope, receive, send_smaller)


def _can_be_smaller(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    kind = headers.get("content-type", "").partition(";")[0]
    return start["status"] == 200 and kind in _SMALLER and "content-encoding" not in headers  # noqa: PLR2004


def _smaller(start: Message, message: Message) -> tuple[Message, Message]:
    body = gzip.compress(message["body"], 5)
    headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
    headers += [
        (b"content-length", b"%d" % len(body)),
        (b"content-encoding", b"gzip"),
        (b"vary", b"accept-encoding"),
    ]
    return {**start, "headers": headers}, {**message, "body": body}

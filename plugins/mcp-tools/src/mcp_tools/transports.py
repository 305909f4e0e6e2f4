"""How we talk to servers: lines of a process here, or the SDK's streamable HTTP elsewhere.

A local server is a process that we talk to in lines. The SDK's own transport keeps a line of any length, so
one answer could fill the memory. This one is the same but for that: long lines are dropped as they come, and
the call that waits for one fails with the reason. What the server writes outside the protocol is counted and
remembered in brief, for the person who asks what is wrong.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from agent_core.interop.wire import MAX_DEPTH
from agent_core.product import USER_AGENT
from agent_plugin_kit.credentials import is_reference, look_up
from agent_plugin_kit.sandbox import explain
from mcp_tools.settings import Lost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from anyio.abc import ByteReceiveStream, Process

    from agent_plugin_kit.sandbox import Confined

_KEPT: Final = 512
_ID_FIRST: Final = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST: Final = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@dataclass(frozen=True)
class TooLong:
    """A line that was longer than allowed, and was not kept.

    Attributes:
        size: How long it was.
        request_id: The request that it answers, if its beginning or its end says so.
    """

    size: int
    request_id: int | None


class Lines:
    """Takes bytes as they come, and gives lines."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = self._tail = b""

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Return the lines that *data* completes."""
        *complete, rest = data.split(b"\n")
        lines = []
        for piece in complete:
            self._take(piece)
            lines.append(self._line())
        self._take(rest)
        return lines

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._head = (self._head + piece[:_KEPT])[:_KEPT]
        self._tail = (self._tail + piece[-_KEPT:])[-_KEPT:]
        if self._size <= self._longest:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _line(self) -> bytes | TooLong:
        if self._size <= self._longest:
            line: bytes | TooLong = b"".join(self._pieces)
        else:
            found = _ID_FIRST.search(self._head) or _ID_LAST.search(self._tail)
            line = TooLong(self._size, int(found[1]) if found else None)
        self._pieces, self._size, self._head, self._tail = [], 0, b"", b""
        return line


LARGEST_MESSAGE: Final = 8 * 1024 * 1024
_READ: Final = 65_536
_LAST_WORDS: Final = 2_000
_GRACE: Final = 1.0
_POLL: Final = 0.01
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


@dataclass
class Diary:
    """What is known of a server besides its answers."""

    stderr: str = ""
    junk: int = 0
    last_junk: str = ""
    confined: Confined | None = None

    def hear(self, text: str) -> None:
        """Remember the end of what the server writes to stderr."""
        self.stderr = (self.stderr + text)[-_LAST_WORDS:]

    def wonder(self, line: bytes) -> None:
        """Remember a line that is not of the protocol."""
        self.junk += 1
        self.last_junk = line[:200].decode("utf-8", "replace")

    def notes(self) -> list[str]:
        """Return what a person should know, in lines."""
        notes = []
        if self.junk:
            notes.append(f"{self.junk} lines on stdout were not messages, the last: {self.last_junk!r}")
        if self.stderr.strip():
            notes.append(f"stderr: {self.stderr.strip()[-500:]}")
        if self.confined is not None:
            notes += explain(self.confined, self.stderr)
        return notes


@asynccontextmanager
async def stdio_transport(
    launch: Mapping[str, Any],
    env: Mapping[str, str],
    diary: Diary,
    lost: Callable[[str], None],
    *,
    confine: Callable[[Sequence[str], Mapping[str, str]], Confined | None] = lambda _line, _env: None,
) -> AsyncIterator[Any]:
    """Start a server and yield the streams on which the SDK talks to it; end it afterwards.

    Args:
        launch: Its command, arguments and folder.
        env: All of its environment.
        diary: Where to note what happens outside the protocol.
        lost: Called with the reason when it ends by itself.
        confine: Puts a command line with its environment into the sandbox; returns None where there is none.

    Raises:
        Lost: If it cannot be started.
    """
    confined = confine([launch["command"], *launch["args"]], env)
    diary.confined = confined
    try:
        process = await _start(launch, env, confined)
    except BaseException:
        if confined is not None:
            confined.ended()
        raise
    from_server, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, to_server = anyio.create_memory_object_stream[Any](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, from_server, diary, lost)
        tasks.start_soon(_write, process, to_server)
        tasks.start_soon(_listen, process, diary)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            if confined is not None:
                confined.ended()
            tasks.cancel_scope.cancel()
            for stream in (from_server, incoming, outgoing, to_server):
                stream.close()


async def _start(launch: Mapping[str, Any], env: Mapping[str, str], confined: Confined | None) -> Process:
    line = [launch["command"], *launch["args"]] if confined is None else confined.command
    # In a session of its own, so that Ctrl-C in our terminal is ours, and so that all of it can be ended.
    opening = anyio.open_process(
        line,
        env=dict(env if confined is None else confined.env),
        cwd=launch["cwd"],
        start_new_session=True,
        pass_fds=() if confined is None else confined.descriptors,
    )
    starting = asyncio.ensure_future(opening)
    if confined is not None:
        starting.add_done_callback(lambda _done: confined.started())
    try:
        return await asyncio.shield(starting)
    except (OSError, ValueError) as error:
        raise Lost(f"{launch['command']!r} cannot be started: {error}") from error
    except asyncio.CancelledError:
        # A process that begins in the moment in which nobody wants it any more is still ours to end.
        with anyio.CancelScope(shield=True), suppress(OSError, ValueError):
            await _end(await starting)
        raise


async def _read(process: Process, messages: Any, diary: Diary, lost: Callable[[str], None]) -> None:
    async with messages:
        reason = await _pass_on(process, messages, diary)
        # Before the stream closes, so that whoever waits for an answer learns why none comes.
        lost(reason or await _ending(process))


async def _pass_on(process: Process, messages: Any, diary: Diary) -> str:
    """Hand on what a server says until it ends, or until it cannot be listened to; that is returned."""
    assert process.stdout is not None
    lines = Lines(LARGEST_MESSAGE)
    with suppress(*_GONE):
        while True:
            for line in lines.feed(await process.stdout.receive(_READ)):
                message = _message(line, diary)
                if isinstance(message, str):
                    return message
                if message is not None:
                    await messages.send(message)
    return ""


def _message(line: bytes | TooLong, diary: Diary) -> Any:
    """Return the message in a line, None if there is none, or the reason to stop listening."""
    if isinstance(line, TooLong):
        text = f"it sent a message of {line.size} bytes, more than {LARGEST_MESSAGE}"
        if line.request_id is None:
            return text
        error = ErrorData(code=-32603, message=f"{text}: ask for less at a time")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.request_id, error=error))
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        # An answer to a call of ours that is nested too deeply to be read ends that call, rather than waits.
        answers = _ID_FIRST.search(line[:_KEPT]) or _ID_LAST.search(line[-_KEPT:])
        if answers is not None and line.count(b"[") + line.count(b"{") > MAX_DEPTH:
            error = ErrorData(code=-32603, message=f"its answer is nested more than {MAX_DEPTH} levels deep")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(answers[1]), error=error))
        diary.wonder(line)
        return None


async def _ending(process: Process) -> str:
    """Say how a server ended that closed its output; give it a moment to be gone."""
    await _wait(process)
    code = process.returncode
    if code is None:
        return "it closed its output"
    return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"


async def _wait(process: Process) -> None:
    """Give a process a moment to end; `Process.wait` would also wait for whoever inherited its pipes."""
    with anyio.move_on_after(_GRACE):
        while process.returncode is None:  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(_POLL)


async def _write(process: Process, messages: Any) -> None:
    assert process.stdin is not None
    with suppress(*_GONE):
        async with messages:
            async for one in messages:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode("utf-8", "replace") + b"\n")


async def _listen(process: Process, diary: Diary) -> None:
    stderr: ByteReceiveStream | None = process.stderr
    assert stderr is not None
    with suppress(*_GONE):
        while True:
            diary.hear((await stderr.receive(_READ)).decode("utf-8", "replace"))


async def _end(process: Process) -> None:
    """Ask a server to end by closing its input, then by a signal, then not at all politely."""
    assert process.stdin is not None
    with suppress(*_GONE):
        await process.stdin.aclose()
    for sent in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if sent is not None:
            _signal(process, sent)
        await _wait(process)
        if process.returncode is not None:
            # Its pipes too, which whoever it started may still hold: the loop may end right after this.
            await process.aclose()
            return


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


# A server elsewhere

_CONNECT: Final = 30.0
_SILENCE: Final = 300.0


@asynccontextmanager
async def http_transport(url: str, headers: Mapping[str, str], patience: float) -> AsyncIterator[Any]:
    """Yield the streams on which the SDK talks to a server."""
    limits = httpx2.Timeout(_CONNECT, read=max(_SILENCE, patience))
    asked = httpx2.Headers({"User-Agent": USER_AGENT})
    asked.update(headers)
    asked["Accept-Encoding"] = "identity"  # unpacked, a small answer can be a large one
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [_with_tokens], "response": [_bound]}
    async with (
        httpx2.AsyncClient(headers=asked, timeout=limits, event_hooks=hooks) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as streams,
    ):
        yield streams


async def _with_tokens(request: httpx2.Request) -> None:
    """Put the token of a login where a header refers to one; it changes, so it is asked for each time."""
    for name, value in list(request.headers.items()):
        if is_reference(value):
            request.headers[name] = f"Bearer {await asyncio.to_thread(look_up, value)}"


async def _bound(response: httpx2.Response) -> None:
    """Have a response that is too long end with an error; events have a limit of their own."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.RemoteProtocolError("the server packs its answers, although it was asked not to")
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        response.stream = _bounded(response.stream)


def _bounded(stream: Any) -> Any:
    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in stream:
                size += len(piece)
                if size > LARGEST_MESSAGE:
                    text = f"it sent more than {LARGEST_MESSAGE} bytes: ask for less at a time"
                    raise httpx2.StreamError(text)
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()

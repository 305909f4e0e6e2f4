"""One question to a server, seen from two threads: the one that waits, and the loop that asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import anyio

from mcp_tools.settings import Lost

if TYPE_CHECKING:
    from collections.abc import Mapping


_WAITING_PARTS: Final = 256
_LONGEST_ERROR: Final = 4_000
MAYBE: Final = "it may have run in part"

Ask = Callable[[Any, Callable[..., Awaitable[None]]], Awaitable[Any]]
"""Asks a session of the SDK, with a function to tell progress to, and returns the answer."""


@dataclass(frozen=True)
class Progress:
    """How far a call has come, as its server says."""

    progress: float
    total: float | None
    message: str | None


@dataclass(frozen=True)
class Answered:
    """A call's answer, as the SDK read it."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """Why a call has no answer."""

    problem: str


Outcome = Answered | Failed


class Call:
    """A question that waits for its answer; it always gets an outcome, and only one."""

    def __init__(self, ask: Ask, timeout: float) -> None:
        self._ask = ask
        self._timeout = timeout
        self._items: SimpleQueue[Progress | Outcome] = SimpleQueue()
        self._scope: anyio.CancelScope | None = None
        self.finished = False

    def items(self) -> Iterator[Progress | Outcome]:
        """Yield what the server reports and, last, the call's outcome; waits in the calling thread."""
        while True:
            item = self._items.get()
            yield item
            if not isinstance(item, Progress):
                return

    def finish(self, outcome: Outcome) -> None:
        """Give the outcome; a second one is ignored. On the loop."""
        if not self.finished:
            self.finished = True
            self._items.put(outcome)

    def cancel(self) -> None:
        """Take the question back; the server is notified. On the loop."""
        if self._scope is not None:
            self._scope.cancel()
        self.finish(Failed(f"it was cancelled; {MAYBE}"))

    async def run(self, session: Any) -> None:
        """Ask, and give the outcome.

        Raises:
            Lost: If the connection is what failed; whoever holds it knows why, and gives the outcome.
        """
        if self.finished:  # taken back before it was asked
            return
        with anyio.CancelScope() as self._scope:
            with anyio.move_on_after(self._timeout) as limit:
                self.finish(await self._outcome(session))
            if limit.cancelled_caught:
                self.finish(Failed(f"there was no answer within {self._timeout:g} seconds; {MAYBE}"))

    async def _outcome(self, session: Any) -> Outcome:
        from mcp import MCPError

        try:
            return Answered(await self._ask(session, self._tell))
        except MCPError as error:
            if _is_lost(error):
                raise Lost(error.message) from error
            return Failed(f"the server answered with an error: {_brief(error.message)} (code {error.code})")
        except Exception as error:  # an answer may break whatever reads it
            return Failed(f"the server's answer cannot be read: {_brief(str(error))}")

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on; where nobody listens, it is dropped before it piles up."""
        if self._items.qsize() < _WAITING_PARTS and not self.finished:
            text = None if message is None else message[:_LONGEST_ERROR]
            self._items.put(Progress(progress, total, text))


def _is_lost(error: Any) -> bool:
    from mcp_types import CONNECTION_CLOSED

    # The second is how the SDK words that a server elsewhere has forgotten us.
    return bool(error.code == CONNECTION_CLOSED or error.message == "Session terminated")


def _brief(text: str) -> str:
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"


def tool_call(name: str, arguments: Mapping[str, Any], trace: Mapping[str, str] | None = None) -> Ask:
    """Call a tool, as a part of a trace if there is one.

    Not by the SDK's `call_tool`: that checks the answer against a schema of the server's own, and a hostile
    one keeps the loop busy for ever.
    """
    return partial(_call_tool, name, dict(arguments), dict(trace or {}))


async def _call_tool(
    name: str, arguments: dict[str, Any], trace: dict[str, str], session: Any, progress: Any
) -> Any:
    from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

    about: dict[str, Any] = {"_meta": trace} if trace else {}
    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments, **about))
    return await session.send_request(request, CallToolResult, progress_callback=progress)


def resource(uri: str) -> Ask:
    """Read a resource."""

    async def ask(session: Any, _progress: Any) -> Any:
        return await session.read_resource(uri)

    return ask


def prompt(name: str, arguments: Mapping[str, str]) -> Ask:
    """Get a prompt."""

    async def ask(session: Any, _progress: Any) -> Any:
        return await session.get_prompt(name, dict(arguments))

    return ask

"""One question to a server, seen from two threads: the one that waits, and the loop that asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio

if TYPE_CHECKING:
    from collections.abc import Mapping

_WAITING_PARTS: Final = 256
_LONGEST_MESSAGE: Final = 4_000
MAYBE: Final = "it may have run in part"


class Tell(Protocol):
    """Is given the progress of a call, as the SDK reports it."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report."""


Ask = Callable[["Session", Tell], Awaitable[Any]]
"""Asks a session, with a function to tell progress to, and returns the answer."""


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


class Session(Protocol):
    """A connected server, which calls are put to; `mcp_tools.session` has the one on the SDK."""

    async def outcome(self, ask: Ask, tell: Tell) -> Outcome:
        """Ask, and return what came of it."""

    async def call_tool(self, name: str, arguments: dict[str, Any], trace: dict[str, str], tell: Tell) -> Any:
        """Call a tool."""

    async def read_resource(self, uri: str) -> Any:
        """Read a resource."""

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """Get a prompt."""


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

    async def run(self, session: Session) -> None:
        """Ask, and give the outcome.

        Raises:
            Lost: If the connection is what failed; whoever holds it knows why, and gives the outcome.
        """
        if self.finished:  # taken back before it was asked
            return
        with anyio.CancelScope() as self._scope:
            with anyio.move_on_after(self._timeout) as limit:
                self.finish(await session.outcome(self._ask, self._tell))
            if limit.cancelled_caught:
                self.finish(Failed(f"there was no answer within {self._timeout:g} seconds; {MAYBE}"))

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass progress on; where nobody listens, it is dropped before it piles up."""
        if self._items.qsize() < _WAITING_PARTS and not self.finished:
            text = None if message is None else message[:_LONGEST_MESSAGE]
            self._items.put(Progress(progress, total, text))


def tool_call(name: str, arguments: Mapping[str, Any], trace: Mapping[str, str] | None = None) -> Ask:
    """Call a tool, as a part of a trace if there is one."""

    async def ask(session: Session, tell: Tell) -> Any:
        return await session.call_tool(name, dict(arguments), dict(trace or {}), tell)

    return ask


def resource(uri: str) -> Ask:
    """Read a resource."""

    async def ask(session: Session, _tell: Tell) -> Any:
        return await session.read_resource(uri)

    return ask


def prompt(name: str, arguments: Mapping[str, str]) -> Ask:
    """Get a prompt."""

    async def ask(session: Session, _tell: Tell) -> Any:
        return await session.get_prompt(name, dict(arguments))

    return ask

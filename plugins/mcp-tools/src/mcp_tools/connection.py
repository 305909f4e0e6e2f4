"""One server and the task that owns it: connects, serves calls, connects again.

The SDK's scopes must be entered and left in one task, so everything that touches a session goes through an
inbox to that task. Other threads see a `Snapshot`, which is replaced as a whole.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from agent_plugin_kit.sandbox import NoSandbox, Sandbox
from mcp_tools.calls import MAYBE, Call, Failed
from mcp_tools.settings import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from agent_plugin_kit.sandbox import Confined
    from mcp_tools.session import ServerSession
    from mcp_tools.settings import Server
    from mcp_tools.tool_list import Listing
    from mcp_tools.transports import Diary


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Doubling waits with full jitter, up to a bound, and for so many tries.

    Attributes:
        first: The longest wait after the first failure, in seconds.
        longest: The longest wait at all.
        tries: After how many failures in a row nothing more is tried.
        steady: How long a connection must have lasted for the count to begin anew.
        chance: Returns a number from 0 to 1.
    """

    first: float = 0.5
    longest: float = 60.0
    tries: int = 10
    steady: float = 30.0
    chance: Callable[[], float] = random.random

    def wait(self, failures: int) -> float | None:
        """Return how long to wait after so many failures in a row, or None to give up."""
        if failures >= self.tries:
            return None
        return self.chance() * min(self.longest, self.first * 2.0 ** (failures - 1))


_PATIENCE: Final = 5.0


class Background:
    """A loop that begins with the first use and ends with `close`.

    Attributes:
        sandbox: Confines the servers that are started on it.
    """

    def __init__(self) -> None:
        self.sandbox = Sandbox()
        self._lock = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Have a function called on the loop, soon; False if the loop is ending and takes nothing more."""
        with self._lock:
            if self._closed:
                return False
            self._running().call_soon_threadsafe(function, *arguments)
            return True

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Have a coroutine run on the loop, in a task of its own; False as for `call`."""
        return self.call(self._start, work)

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Wait for the tasks, which were asked to end, then end the loop; what does not end is cancelled."""
        with self._lock:
            loop, thread, self._closed = self._loop, self._thread, True
        if loop is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(self._finish)
            thread.join(2 * _PATIENCE)
        self.sandbox.close()

    def _finish(self) -> None:
        self._last = asyncio.get_running_loop().create_task(self._ended())
        self._last.add_done_callback(lambda _: self._stop())

    async def _ended(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_PATIENCE)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _stop(self) -> None:
        asyncio.get_running_loop().stop()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="mcp-servers", daemon=True)
            self._thread.start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


State = Literal["connecting", "ready", "waiting", "failed", "stopped"]
_END: Final = "end"
_RELIST: Final = "relist"
_BETWEEN_LISTINGS: Final = 1.0
_LONGEST_REASON: Final = 500
_CLOSING: Final = "the agent is closing"
_ENDING: Final = 5.0


@dataclass(frozen=True)
class Snapshot:
    """How a server is doing.

    Attributes:
        state: `waiting` is between two tries, `failed` after the last one.
        problem: Why it is not ready, or was not ready last time.
        listing: What it offers, if it is ready.
        notes: What else a person may want to know.
    """

    state: State = "connecting"
    problem: str = ""
    listing: Listing | None = None
    notes: tuple[str, ...] = ()


class Connection:
    """Holds one server, on the plugin's loop.

    Attributes:
        snapshot: How it is doing now; may be read from any thread.
    """

    def __init__(self, server: Server, background: Background, pace: Pace) -> None:
        self.server = server
        self.snapshot = Snapshot()
        self._background = background
        self._pace = pace
        self._settled = threading.Event()
        self._diary: Diary | None = None
        self._calls: set[Call] = set()
        self._reason = ""
        self._relisting = False
        self._stopping = False
        self._wake = asyncio.Event()
        self._inbox: asyncio.Queue[Call | str] = asyncio.Queue()
        self._attempt: anyio.CancelScope | None = None
        if not background.start(self._live):
            self._settled.set()

    def wait_until_settled(self) -> None:
        """Wait until the first try has succeeded or failed; a failed one is given the time to be ended."""
        self._settled.wait(self.server.start_timeout + _ENDING)

    def ask(self, call: Call) -> None:
        """Have a call answered, from any thread."""
        if not self._background.call(self._take, call):
            call.finish(Failed(_CLOSING))

    def cancel(self, call: Call) -> None:
        """Take a call back, from any thread."""
        self._background.call(call.cancel)

    def reconnect(self) -> None:
        """Connect anew, from any thread; as if nothing had failed so far."""
        self._settled.clear()
        self._background.call(self._lose, "it was asked to connect again")

    def stop(self) -> None:
        """End it for good, from any thread."""
        self._stopping = True
        self._background.call(self._lose, "it was stopped")

    def _take(self, call: Call) -> None:
        if self.snapshot.state != "ready":
            problem = self.snapshot.problem or "it has not answered yet"
            call.finish(Failed(f"the server {self.server.name!r} is not connected: {problem}"))
        else:
            self._calls.add(call)
            self._inbox.put_nowait(call)

    def _lose(self, reason: str) -> None:
        self._wake.set()
        self._lost(reason)
        if self._attempt is not None and self.snapshot.state == "connecting":
            self._attempt.cancel()

    async def _live(self) -> None:
        failures = 0
        try:
            while not self._stopping:
                began = anyio.current_time()
                problem = await self._connect()
                self._drop_calls(problem)
                steady = anyio.current_time() - began >= self._pace.steady
                failures = 1 if steady else failures + 1
                if await self._rest(self._pace.wait(failures), problem):
                    failures = 0
        finally:
            self._drop_calls(_CLOSING)
            self.snapshot = replace(self.snapshot, state="stopped", listing=None)
            self._settled.set()

    async def _rest(self, seconds: float | None, problem: str) -> bool:
        """Wait for the next try; say whether somebody asked for it."""
        if self._stopping or self._wake.is_set():
            self._wake.clear()
            return True
        self._show("failed" if seconds is None else "waiting", problem)
        self._settled.set()
        with anyio.move_on_after(math.inf if seconds is None else seconds) as pause:
            await self._wake.wait()
        self._wake.clear()
        return not pause.cancelled_caught

    async def _connect(self) -> str:
        """Hold a connection as long as it lasts, and return why it does not any more."""
        # It takes a second, which is neither the caller's nor the server's.
        from mcp_tools import session as sdk, transports

        self._inbox = asyncio.Queue()
        self._reason, self._diary, self._relisting = "", transports.Diary(), False
        self.snapshot = replace(self.snapshot, state="connecting", listing=None)
        problem = ""
        self._attempt = anyio.CancelScope(deadline=anyio.current_time() + self.server.start_timeout)
        with self._attempt as limit:
            try:
                async with sdk.open_session(
                    self.server,
                    self._diary,
                    confine=self._confine,
                    lost=self._lost,
                    changed=self._look_again,
                ) as session:
                    listing = await session.listing()
                    limit.deadline = math.inf
                    self._show("ready", "", listing)
                    self._settled.set()
                    await self._serve(session)
            except Exception as error:  # the SDK, its transports and the server's answers
                problem = _said(error)
        if limit.cancelled_caught and not self._wake.is_set():
            return f"it did not get ready within {self.server.start_timeout:g} seconds"
        return self._reason or problem or "the connection ended"

    def _confine(self, line: Sequence[str], env: Mapping[str, str]) -> Confined | None:
        """Put a server into the sandbox, if the machine has one.

        Raises:
            Lost: If it must be in one and cannot be.
        """
        server, box = self.server, self._background.sandbox
        folder = Path(server.declared["cwd"])
        try:
            if not box.confines(server.sandbox):
                return None
            if not folder.is_dir():
                raise Lost(f"it cannot be started: its cwd {folder} is not a folder")
            # What its command line names was approved with it, wherever it is.
            named = [Path(one) for one in line if one.startswith("/")]
            return box.confine(
                line, server.sandbox, roots=(), folder=folder, env=env, owner=server.name, visible=named
            )
        except (NoSandbox, ValueError) as problem:
            raise Lost(str(problem)) from problem

    def _lost(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._inbox.put_nowait(_END)

    def _look_again(self) -> None:
        """Have the listing read anew; not more than once at a time."""
        if not self._relisting:
            self._relisting = True
            self._inbox.put_nowait(_RELIST)

    async def _serve(self, session: ServerSession) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.follow)
            while (item := await self._inbox.get()) != _END:
                if isinstance(item, Call):
                    tasks.start_soon(self._answer, session, item)
                else:
                    tasks.start_soon(self._relist, session)
            tasks.cancel_scope.cancel()

    async def _answer(self, session: ServerSession, call: Call) -> None:
        try:
            await call.run(session)
        except Lost as error:
            self._lost(str(error))
            return
        self._calls.discard(call)

    async def _relist(self, session: ServerSession) -> None:
        await anyio.sleep(_BETWEEN_LISTINGS)
        self._relisting = False
        with anyio.move_on_after(self.server.start_timeout):
            self._show("ready", "", await session.listing())

    def _drop_calls(self, reason: str) -> None:
        for call in self._calls:
            name = self.server.name
            call.finish(Failed(f"the server {name!r} was lost during the call: {reason}; {MAYBE}"))
        self._calls.clear()

    def _show(self, state: State, problem: str, listing: Listing | None = None) -> None:
        notes = () if self._diary is None else tuple(self._diary.notes())
        self.snapshot = Snapshot(state, problem[:_LONGEST_REASON], listing, notes)


def _said(error: BaseException) -> str:
    """Return an error in words: of a group, the first that says something."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error)
    if isinstance(error, Lost):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

"""Watching runs from inside the process: traces, metrics, logs.

A watcher sees every event of a run as it happens and cannot change anything. Delegates and agents that
take over are runs of their own to it, tied together by the trace that the run above hands down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from agent_core.io.items import close_async, close_iterator
from agent_core.log import get_logger
from agent_core.steps import Emit, OpenStream, Read, Run, Whole, Work, relay

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from agent_core.events import Event
    from agent_core.steps import Flow, Step
    from agent_runtime.runs import RunScope

R = TypeVar("R")
Enter = Callable[[], AbstractContextManager[object]]
"""Makes a context manager, in which something that a run does is done."""

_PIECES = frozenset({"text", "reasoning", "tool_call_args"})
_log = get_logger("runtime")


class Watcher(Protocol):
    """Sees one run."""

    def see(self, event: Event) -> None:
        """Look at an event; what is raised here is logged and changes nothing."""

    def close(self) -> None:
        """Let go: the run is over, whether or not its last event was seen."""


class ContextWatcher(Watcher, Protocol):
    """Sees one run, and has its requests and its tools run in a context of its own: an active span, say.

    Attributes:
        pieces: False for one who needs only the first piece of each answer, which costs less.
    """

    pieces: ClassVar[bool] = True

    def asks(self) -> Enter:
        """Return the context in which a request to the model is opened; called just before that."""

    def calls(self, call_id: str, name: str) -> Enter:
        """Return the context in which a tool runs; called just before it does, perhaps in a thread."""


Watch = Callable[["RunScope"], Watcher]
"""Makes the watcher of a run when the run begins."""

_everywhere: list[Watch] = []


def watch_runs(watch: Watch) -> Callable[[], None]:
    """Have every run of this process watched, whoever begins it; return how to end that."""
    _everywhere.append(watch)

    def undo() -> None:
        if watch in _everywhere:
            _everywhere.remove(watch)

    return undo


def watches(placed: Sequence[Watch]) -> Sequence[Watch]:
    """Return what watches a run: what its agent's plugins placed, and what watches all."""
    return (*placed, *_everywhere) if _everywhere else placed


def watched(flow: Flow[R], scope: RunScope, made: Sequence[Watch]) -> Flow[R]:
    """Run a flow with watchers."""
    watchers: list[Any] = [watch(scope) for watch in made]
    scope.watchers = tuple(watcher for watcher in watchers if hasattr(watcher, "asks"))
    try:
        return (yield from relay(flow, _Lookout(watchers, scope).look))
    finally:
        for watcher in watchers:
            watcher.close()


def watched_call(flow: Flow[R], scope: RunScope, call_id: str, name: str) -> Flow[R]:
    """Run a flow that calls a tool in the contexts of the watchers."""
    if not scope.watchers:
        return flow

    def look(step: Step[Any]) -> None:
        if isinstance(step, (OpenStream, Run)):
            for watcher in scope.watchers:
                if (enter := _asked(partial(watcher.calls, call_id, name))) is not None:
                    step.work = _within(step.work, enter, _ItemsWithin, _AsyncItemsWithin)

    return relay(flow, look)


class _Lookout:
    """Shows the watchers of one run what happens in it."""

    def __init__(self, watchers: Sequence[Any], scope: RunScope) -> None:
        self._watchers = watchers
        self._scope = scope
        self._of_pieces = [one for one in watchers if getattr(one, "pieces", True)]
        self._begun = False

    def look(self, step: Step[Any]) -> None:
        if isinstance(step, (Read, Emit)):
            skips = self._begun and not self._of_pieces
            for event in step.events:
                if not skips or event["type"] not in _PIECES:
                    self._see(event)
        elif self._scope.asking and isinstance(step, (OpenStream, Run)):
            for watcher in self._scope.watchers:
                if (enter := _asked(watcher.asks)) is None:
                    continue
                if isinstance(step, OpenStream):
                    step.work = _within(step.work, enter, _FirstWithin, _AsyncFirstWithin)
                else:
                    step.work = _done_within(step.work, enter)

    def _see(self, event: Any) -> None:
        kind, watchers = event["type"], self._watchers
        if kind in _PIECES:
            if self._begun:
                watchers = self._of_pieces
            self._begun = True
        elif kind == "step_start":
            self._begun = False
        for watcher in watchers:
            try:
                watcher.see(event)
            except Exception as error:  # a stranger's code, and the run goes on without it
                _log.warning("watcher_failed", event_type=kind, error=str(error))


def _asked(question: Callable[[], Enter]) -> Enter | None:
    try:
        return question()
    except Exception as error:  # a stranger's code, and the run goes on without it
        _log.warning("watcher_failed", event_type="context", error=str(error))
        return None


def _within(
    work: Work[Any],
    enter: Enter,
    items: Callable[[Iterator[Any], Enter], Iterator[Any]],
    items_async: Callable[[AsyncIterator[Any], Enter], AsyncIterator[Any]],
) -> Work[Any]:
    """Return work that is begun in a context, and whose items are read as the two classes say."""
    blocking, awaitable = work.blocking, work.awaitable

    def begin() -> Any:
        assert blocking is not None
        with enter():
            found = blocking()
        return found if found.__class__ is Whole else items(iter(found), enter)

    def begin_async() -> Any:
        assert awaitable is not None
        with enter():
            found = awaitable()
        return items_async(found.__aiter__(), enter) if hasattr(found, "__aiter__") else found

    return Work(None if blocking is None else begin, None if awaitable is None else begin_async)


def _done_within(work: Work[Any], enter: Enter) -> Work[Any]:
    """Return work that is done in a context, to its end."""
    blocking, awaitable = work.blocking, work.awaitable

    def do() -> Any:
        assert blocking is not None
        with enter():
            return blocking()

    async def do_async() -> Any:
        assert awaitable is not None
        with enter():
            return await awaitable()

    return Work(None if blocking is None else do, None if awaitable is None else do_async)


class _ItemsWithin:
    """Reads each item in a context: whatever computes it runs while it is read."""

    __slots__ = ("_enter", "_items")

    def __init__(self, items: Iterator[Any], enter: Enter) -> None:
        self._items, self._enter = items, enter

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._enter():
            return next(self._items)

    def close(self) -> None:
        with self._enter():
            close_iterator(self._items)


class _AsyncItemsWithin:
    """Does what `_ItemsWithin` does, by awaiting."""

    __slots__ = ("_enter", "_items")

    def __init__(self, items: AsyncIterator[Any], enter: Enter) -> None:
        self._items, self._enter = items, enter

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        with self._enter():
            return await self._items.__anext__()

    async def aclose(self) -> None:
        with self._enter():
            await close_async(self._items)


class _FirstWithin:
    """Reads the first item in a context, which is when a request is sent; the others cost nothing."""

    __slots__ = ("_enter", "_items")

    def __init__(self, items: Iterator[Any], enter: Enter) -> None:
        self._items = items
        self._enter: Enter | None = enter

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._enter is None:
            return next(self._items)
        enter, self._enter = self._enter, None
        with enter():
            return next(self._items)

    def close(self) -> None:
        close_iterator(self._items)


class _AsyncFirstWithin:
    """Does what `_FirstWithin` does, by awaiting."""

    __slots__ = ("_enter", "_items")

    def __init__(self, items: AsyncIterator[Any], enter: Enter) -> None:
        self._items = items
        self._enter: Enter | None = enter

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    def __anext__(self) -> Any:  # no coroutine of its own: one would be paid for with each chunk
        return self._items.__anext__() if self._enter is None else self._first(self._enter)

    async def _first(self, enter: Enter) -> Any:
        self._enter = None
        with enter():
            return await self._items.__anext__()

    async def aclose(self) -> None:
        await close_async(self._items)

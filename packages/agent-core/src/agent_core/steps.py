"""What a flow may ask of the world.

A flow is a generator: it yields a step, whoever drives it does the step and sends the answer back.
The flow itself never blocks, never awaits and never knows which of the two its driver does. So each
piece of the platform is written once, and runs as a call, as a stream, and as async twins of both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from agent_core.cancellation import CancellationToken

R = TypeVar("R")


class Step(Generic[R]):
    """One request to the outside; R is the type of the answer."""

    __slots__ = ()


Flow = Generator[Step[Any], Any, R]


class Work(NamedTuple, Generic[R]):
    """Something that may take long, in the forms that its owner offers.

    Attributes:
        blocking: Does it in the calling thread.
        awaitable: Does it on an event loop: returns an awaitable, or an async iterator for streams.
    """

    blocking: Callable[[], R] | None = None
    awaitable: Callable[[], Any] | None = None


class Lane(Protocol):
    """Where blocking work waits for a thread."""

    def run(self, work: Callable[[], object], /) -> None:
        """Have a thread do *work*, which must not raise."""


class Run(Step[R]):
    """Do the work and answer with what it returned.

    With a timeout or a cancellation, the blocking form is given up when its time is over or the caller
    leaves: the step raises `TimeoutError` or `RequestCancelled`, and a thread that hangs is left behind.

    Args:
        lane: How the blocking form gets a thread where one is needed; usually it gets one of its own.
        in_place: Whether the blocking form needs no thread at all, since it takes no time to speak of.
    """

    __slots__ = ("cancellation", "in_place", "lane", "timeout", "work")

    def __init__(
        self,
        work: Work[R],
        lane: Lane | None = None,
        *,
        timeout: float | None = None,
        cancellation: CancellationToken | None = None,
        in_place: bool = False,
    ) -> None:
        self.work = work
        self.lane = lane
        self.timeout = timeout
        self.cancellation = cancellation
        self.in_place = in_place


class Batch(list[Any]):
    """All chunks that one read brought. A provider's stream may yield these instead of single chunks."""

    __slots__ = ()


class Whole(Batch):
    """Everything that a stream has. Work may return it in place of an iterator, which saves a second look."""

    __slots__ = ()


class Reader:
    """An open stream; how to read it is known to the driver that opened it."""

    __slots__ = ()


class OpenStream(Step[Reader]):
    """Start an iterator and answer with a reader of it.

    With a timeout or a cancellation the iterator is watched: reading it raises `TimeoutError` or
    `RequestCancelled` even while the iterator itself hangs.
    """

    __slots__ = ("cancellation", "timeout", "work")

    def __init__(
        self, work: Work[Any], timeout: float | None = None, cancellation: CancellationToken | None = None
    ) -> None:
        self.work = work
        self.timeout = timeout
        self.cancellation = cancellation


class Read(Step["list[Any] | None"]):
    """Show the events of what was read last, then answer with the next items; None at the end.

    A flow may use one `Read` for a whole stream and set `events` anew each time: a chunk costs one
    step then, and no object.

    Args:
        check: Called between the two; what it raises is raised in the flow, and nothing is read. `bool()`
            does nothing.
    """

    __slots__ = ("check", "events", "reader")

    def __init__(self, reader: Reader, check: Callable[[], object] = bool) -> None:
        self.reader = reader
        self.check = check
        self.events: list[Any] = []


class CloseStream(Step[None]):
    """Let go of a stream, at its end or before."""

    __slots__ = ("reader",)

    def __init__(self, reader: Reader) -> None:
        self.reader = reader


class Emit(Step[None]):
    """Show events to the caller, if it watches."""

    __slots__ = ("events",)

    def __init__(self, events: list[Any]) -> None:
        self.events = events


def ask(step: Step[R]) -> Flow[R]:
    """Yield *step* and return its answer."""
    answer: R = yield step
    return answer


def run_blocking(function: Callable[[], R], lane: Lane | None = None) -> Flow[R]:
    """Run plugin code that may be slow: inline when synchronous, in a worker thread otherwise.

    Args:
        lane: As of `Run`.
    """
    return ask(Run(Work(blocking=function), lane))


def nothing() -> Flow[None]:
    """Return a flow that ends at once."""
    return
    yield  # makes it a flow


def once(work: Callable[[], R]) -> Callable[[], R]:
    """Return *work* such that it is done once, whoever calls it: a second caller waits for the first.

    For a step whose caller may leave while a thread does it: asking again then means waiting for the end.
    """
    lock, done = threading.Lock(), list[R]()

    def do() -> R:
        with lock:
            if not done:
                done.append(work())
            return done[0]

    return do


class Relay(Enum):
    """What the function given to `relay` may say of a step."""

    REST = "pass on this step and all that follow"


def relay(
    flow: Flow[R],
    answer: Callable[[Step[Any]], Flow[Any] | Relay | None],
    *,
    begin_with: BaseException | None = None,
) -> Flow[R]:
    """Run a flow and answer some of its steps; the others are passed on to whoever drives this one.

    Args:
        answer: Called with each step. It returns a flow whose result answers the step, or None to pass the
            step on, perhaps changed, or `Relay.REST` to pass on this one and all that follow: a stream of
            many chunks should not pay for a layer that has nothing more to do.
        begin_with: Thrown into a flow that is under way, in place of an answer to its last step.
    """
    resume: Callable[[Any], Step[Any]] = flow.send if begin_with is None else flow.throw
    value: Any = begin_with
    while True:
        try:
            step = resume(value)
        except StopIteration as done:
            return cast("R", done.value)
        try:
            own = answer(step)
            value = (yield step) if own is None or own is Relay.REST else (yield from own)
            resume = flow.send
        except BaseException as error:  # passed on to the flow, whatever it is
            resume, value = flow.throw, error
            continue
        if own is Relay.REST and value is None:  # `yield from` begins by sending None
            return (yield from flow)


def with_events(flow: Flow[R], change: Callable[[list[Any]], list[Any]]) -> Flow[R]:
    """Run a flow with other events in place of its own; everything else passes through."""

    def changed(step: Step[Any]) -> None:
        if isinstance(step, (Read, Emit)) and step.events:
            step.events = change(step.events)

    return relay(flow, changed)

"""Between a run and whoever reads its events: everything is stored before it is shown.

A run says what is to be kept, what is to be shown, and when both must have happened (`agent_runtime.runs`).
Here that becomes as few transactions as it allows: what comes up to one such moment is written at once.
"""

from __future__ import annotations

from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from agent_app.errors import SessionNotFound, StoreError
from agent_app.events import LIVE
from agent_core.errors import RequestCancelled
from agent_core.log import get_logger
from agent_core.steps import CloseStream, Emit, Flow, Read, Step, nothing, once, relay, run_blocking
from agent_runtime.runs import Keep, Receive, Settle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_app.session_writer import SessionWriter
    from agent_core import Message
    from agent_core.events import ErrorEvent, Event, FinalEvent
    from agent_runtime import Checkpoint, RunResult

R = TypeVar("R")
_RUN_ENDS = frozenset({"run_end", "error"})
"""How a run ended is for the request to say, when everything is stored."""
_log = get_logger("app")


class Outbox:
    """Stores and shows what one request brings.

    Args:
        kept: Called with each checkpoint when it is stored, if somebody wants that.

    Attributes:
        last: The type of the event that was shown last; empty before the first.
    """

    def __init__(self, writer: SessionWriter, kept: Callable[[Checkpoint], object] | None) -> None:
        self.last = ""
        self._writer = writer
        self._kept = kept
        self._checkpoint: Checkpoint | None = None
        self._pauses: list[tuple[Checkpoint, list[Event]]] = []  # checkpoints to tell of once they are stored

    def relay(self, run: Flow[RunResult], decided: Sequence[str]) -> Flow[RunResult]:
        """Run a run, and store and show what it brings.

        Args:
            decided: The approvals whose decisions it was given.
        """
        return relay(run, partial(self._answer, decided))

    def _answer(self, decided: Sequence[str], step: Step[Any]) -> Flow[Any] | None:
        if isinstance(step, (Read, Emit)) and step.events:
            return self._take_events(step)
        if isinstance(step, Keep):
            self._checkpoint = step.checkpoint
            self._writer.keep_checkpoint(step.checkpoint, decided=decided)
            return nothing()
        if isinstance(step, Settle):
            return self.settle()
        if isinstance(step, Receive):
            return self._receive()
        harmless = not (self._writer.waits or self._pauses) or isinstance(step, (Emit, CloseStream))
        return None if harmless else self._after_settling(step)

    def _take_events(self, step: Read | Emit) -> Flow[Any] | None:
        for event in step.events:
            if event["type"] not in LIVE or self._writer.waits:
                return self._take_logged(step)
        self._writer.log_shown(step.events)  # the hot path: pieces of an answer
        self.last = step.events[-1]["type"]
        return None

    def _take_logged(self, step: Read | Emit) -> Flow[Any] | None:
        """Take events that are stored before they are shown, or pieces behind such."""
        events = [event for event in step.events if event["type"] not in _RUN_ENDS]
        if not events and not self._writer.waits:
            step.events = events
            return None
        if events and events[-1]["type"] == "kept":  # it comes alone, and only to whoever makes the request
            return self._pause(events)
        self._writer.log(events)
        return self._read(step) if isinstance(step, Read) else nothing()

    def _read(self, step: Read) -> Flow[Any]:
        step.events = yield from self._commit()
        if step.events:
            self.last = step.events[-1]["type"]
        return (yield step)

    def _after_settling(self, step: Step[R]) -> Flow[R]:
        yield from self.settle()
        answer: R = yield step
        return answer

    def _pause(self, events: list[Event]) -> Flow[None]:
        """Show that a checkpoint is stored; whoever does not ask for the next event stops the run there."""
        assert self._checkpoint is not None
        self._pauses.append((self._checkpoint, events))
        if self._checkpoint.kind != "intent":  # a call does not begin before the run settles anyway
            yield from self.settle()

    def _receive(self) -> Flow[list[Message]]:
        if not (yield from self._writer.has_inputs_now()):
            return []  # what is to be written goes with the next step, or with the end
        shown, messages = yield from self._do(self._writer.receive)
        yield from self.show(shown)
        return messages

    def settle(self) -> Flow[None]:
        """Go on when everything is stored and shown."""
        if self._writer.waits or self._pauses:
            pauses, self._pauses = self._pauses, []
            shown = yield from self._do(partial(self._store, [checkpoint for checkpoint, _ in pauses]))
            yield from self.show([*shown, *(event for _, events in pauses for event in events)])

    def _store(self, checkpoints: Sequence[Checkpoint]) -> list[Event]:
        """Write what waits, and tell of the checkpoints that are stored with it."""
        shown = self._writer.commit() if self._writer.waits else []
        for checkpoint in checkpoints:
            if self._kept is not None:
                self._kept(checkpoint)
        return shown

    def tell(self, events: list[Event]) -> Flow[None]:
        """Store events and show them, before anything else is done."""
        self._writer.log(events)
        yield from self.settle()

    def show(self, events: list[Event]) -> Flow[None]:
        """Show events that are stored, or need not be."""
        if events:
            self.last = events[-1]["type"]
            yield Emit(events)

    def end(self, final: FinalEvent, *, begun: bool | None) -> Flow[list[Message] | None]:
        """End the request with its last event, unless messages came: then return those.

        Args:
            begun: As of `SessionWriter.finish`.
        """
        finish = once(partial(self._writer.finish, final, begun=begun))
        try:
            shown, messages = yield from self._do(finish)
        except RequestCancelled:
            shown, messages = finish()  # it was waited for
        except SessionNotFound:
            raise
        except StoreError as error:
            if begun:  # this is not the end yet, and what was begun cannot be gone on with
                raise
            # The caller must hear of the end although the log does not have it, if the session is stored.
            shown, messages = [*(yield from self._commit()), final], None
            _log.warning("end_not_logged", session=self._writer.session.session_id, error=str(error))
        yield from self.show(shown)
        return messages

    def fail(self, error: ErrorEvent) -> Flow[None]:
        """End the request with an error; the caller hears of it also if the log is gone."""
        error["at"] = time()
        self._writer.log([error])
        try:
            shown = yield from self._commit()
        except StoreError as problem:
            _log.warning("end_not_logged", session=self._writer.session.session_id, error=str(problem))
            shown = [error]
        yield from self.show(shown)

    def _commit(self) -> Flow[list[Event]]:
        return self._do(self._writer.commit)

    def _do(self, work: Callable[[], R]) -> Flow[R]:
        """Do something with the store, to its end.

        Raises:
            RequestCancelled: If the caller has left; it is done all the same.
        """
        write = once(work)
        try:
            return (yield from run_blocking(write, self._writer.lane))
        except RequestCancelled:
            # What is under way must not come in behind the next, nor be left out: wait for it.
            yield from run_blocking(write, self._writer.lane)
            raise

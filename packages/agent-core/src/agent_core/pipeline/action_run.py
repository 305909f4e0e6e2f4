"""An action at work: waited for as long as it may take, and no longer once somebody cancels it.

Nothing can stop a function of a plugin from outside. So it works in a thread, and whoever waits for it goes
on when its time is over or when it is cancelled: nothing that it returns later is used. It finds a token in
its context (`cancellation`), by which it can notice and stop by itself.
"""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Generic, TypeVar

from agent_core.cancellation import Cancellation
from agent_core.errors import ActionCancelledError, ActionTimeoutError
from agent_core.io.workers import run_in_worker
from agent_core.steps import Flow, Run, Work, ask, run_blocking

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core.actions import Action
    from agent_core.cancellation import CancellationToken

R = TypeVar("R")


def token_for(action: Action, caller: CancellationToken | None) -> Cancellation | None:
    """Return the token that an action gets; None if neither time nor a caller can end it."""
    return None if action.timeout is None and caller is None else Cancellation()


def run_action(
    action: Action,
    function: Callable[[], R],
    token: Cancellation | None,
    caller: CancellationToken | None = None,
) -> Flow[R]:
    """Run an action's function.

    Args:
        token: As `token_for` returned it.
        caller: Cancels the action.

    Raises:
        ActionTimeoutError: If it took longer than it may.
        ActionCancelledError: If it was cancelled.
    """
    if token is None:
        return (yield from run_blocking(function))
    running = _Running(action, function, token)
    key = None if caller is None else caller.add_callback(running.cancel)
    try:
        return (yield from ask(Run(Work(blocking=running.wait, awaitable=running.wait_async))))
    except BaseException:
        token.cancel()  # also if the caller has left: nobody wants the rest
        raise
    finally:
        if caller is not None:
            caller.remove_callback(key)


class _Running(Generic[R]):
    """A function in a thread, and what it comes to: its result, its error, or the end of patience."""

    def __init__(self, action: Action, function: Callable[[], R], token: Cancellation) -> None:
        self._action = action
        self._token = token
        self._outcome: Future[R] = Future()
        self._function = function

    def cancel(self) -> None:
        """Let whoever waits go on."""
        self._end(ActionCancelledError(self._action.plugin, self._action.id))

    def wait(self) -> R:
        """Start it, and return its result."""
        self._start()
        try:
            return self._outcome.result(self._action.timeout)
        except TimeoutError:
            self._time_is_over()
            return self._outcome.result()

    async def wait_async(self) -> R:
        """Start it, and return its result, on an event loop."""
        import asyncio

        self._start()
        outcome = asyncio.wrap_future(self._outcome)
        try:
            return await asyncio.wait_for(asyncio.shield(outcome), self._action.timeout)
        except TimeoutError:
            self._time_is_over()
            return self._outcome.result()

    def _start(self) -> None:
        context = copy_context()

        def work() -> None:
            try:
                result = context.run(self._function)
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                self._end(error)
            else:
                with suppress(InvalidStateError):
                    self._outcome.set_result(result)

        run_in_worker(work)

    def _time_is_over(self) -> None:
        """Say that it took too long, unless it has ended by itself."""
        if self._action.timeout is not None:
            self._end(ActionTimeoutError(self._action.plugin, self._action.id, self._action.timeout))

    def _end(self, error: BaseException) -> None:
        with suppress(InvalidStateError):
            self._outcome.set_exception(error)
        self._token.cancel()

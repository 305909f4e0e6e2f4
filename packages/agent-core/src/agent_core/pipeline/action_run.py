"""An action at work: waited for as long as it may take, and no longer once somebody cancels it.

Nothing can stop a function of a plugin from outside. So it works in a thread, and whoever waits for it goes
on when its time is over or when it is cancelled: nothing that it returns later is used. It finds a token in
its context (`cancellation`), by which it can notice and stop by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from agent_core.cancellation import Cancellation, on_cancel
from agent_core.errors import ActionCancelledError, ActionTimeoutError, RequestCancelled
from agent_core.steps import CloseStream, Flow, OpenStream, Read, Whole, Work, ask, run_blocking

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
    forget = None if caller is None else on_cancel(caller, token.cancel)
    reader = yield from ask(OpenStream(Work(blocking=lambda: _outcome(function)), action.timeout, token))
    try:
        outcomes = yield from ask(Read(reader))
    except TimeoutError:
        token.cancel()
        raise ActionTimeoutError(action.plugin, action.id, action.timeout or 0.0) from None
    except RequestCancelled:
        if token.cancelled:
            raise ActionCancelledError(action.plugin, action.id) from None
        token.cancel()  # the caller has left: nobody wants the rest
        raise
    finally:
        if forget is not None:
            forget()
    yield CloseStream(reader)
    assert outcomes is not None
    result, error = outcomes[0]
    if error is not None:
        raise error
    answer: R = result
    return answer


def _outcome(function: Callable[[], R]) -> Whole:
    """Call a function; what it raises is kept, since its own `TimeoutError` says nothing of our patience."""
    try:
        return Whole([(function(), None)])
    except Exception as error:  # whoever waits gets it
        return Whole([(None, error)])

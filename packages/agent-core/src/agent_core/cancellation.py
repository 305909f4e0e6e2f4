"""A token by which a caller takes back a request that is under way."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from agent_core.errors import ArgumentTypeError
from agent_core.log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = get_logger("cancellation")


class CancellationToken(Protocol):
    """What the core needs of a cancellation object; `Cancellation` is ours, others may be passed."""

    def add_callback(self, callback: Callable[[], None]) -> object:
        """Call *callback* on cancellation, at once if it has happened; return a key to remove it.

        A token that also has `remove_callback(key)` is asked to forget the callback when the work is over.
        """


def on_cancel(token: CancellationToken, callback: Callable[[], None]) -> Callable[[], None]:
    """Call *callback* when a caller's token is cancelled, and return how to stop that.

    The token is the caller's own code: one that raises is not listened to, and costs no answer.
    """
    try:
        key = token.add_callback(callback)
    except Exception as error:  # see above
        _log.warning("cancellation_not_watched", error=repr(error))
        return lambda: None

    remove = getattr(token, "remove_callback", None)
    if not callable(remove):
        return lambda: None

    def forget() -> None:
        try:
            remove(key)
        except Exception as error:  # see above
            _log.warning("cancellation_still_watched", error=repr(error))

    return forget


class Cancellation:
    """A thread-safe cancellation token: hand it to requests and tools, then call `cancel()`.

    Cancelling is not failing: what was produced up to then is kept and marked as interrupted.
    """

    __slots__ = ("_callbacks", "_cancelled", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """True once `cancel()` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Take the request back. Calling it again does nothing.

        Raises the first exception that a callback raised, after all of them were called.
        """
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks = list(self._callbacks.values())
        failures = []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:  # the other callbacks must still run
                failures.append(error)
        if failures:
            raise failures[0]

    def add_callback(self, callback: Callable[[], None]) -> object:
        """Call *callback* on cancellation, at once if it has happened; return a key to remove it."""
        key = object()
        with self._lock:
            if not self._cancelled:
                self._callbacks[key] = callback
                return key
        callback()
        return key

    def remove_callback(self, token: object) -> None:
        """Forget the callback that *token* stands for; an unknown token is ignored."""
        with self._lock:
            self._callbacks.pop(token, None)


def check_token(token: object) -> None:
    """Refuse what is not a cancellation token.

    Raises:
        ArgumentTypeError: If it lacks `add_callback`: it could never cancel anything.
    """
    if not callable(getattr(token, "add_callback", None)):
        raise ArgumentTypeError(
            f"cancellation must have add_callback: {type(token).__name__!r} has no add_callback"
        )


@contextmanager
def following(token: CancellationToken | None) -> Iterator[Cancellation | None]:
    """Yield a `Cancellation` that is cancelled when the caller's token is, whatever class that one has.

    Other tokens need not say whether they are cancelled; ours does.
    """
    if token is None or isinstance(token, Cancellation):
        yield token
        return
    check_token(token)
    own = Cancellation()
    forget = on_cancel(token, own.cancel)
    try:
        yield own
    finally:
        forget()

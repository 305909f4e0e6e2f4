"""The only memory between requests that talks to the outside: which models a provider offers."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_core.models import ModelSnapshot


class ModelDiscoveryCache:
    """Remembers discovered models; several cores may share one.

    Args:
        lifetime: After how many seconds a provider is asked again; None for never.
        size: How many configurations are remembered.
        clock: Tells the time in seconds.
    """

    def __init__(
        self, lifetime: float | None = 3600.0, *, size: int = 256, clock: Callable[[], float] = monotonic
    ) -> None:
        self._lifetime = lifetime
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[object, tuple[float, ModelSnapshot]] = {}

    def get(self, key: object, discover: Callable[[], ModelSnapshot]) -> ModelSnapshot:
        """Return the models under *key*, asking *discover* when they are not known or too old.

        What *discover* raises is not remembered.
        """
        with self._lock:
            known = self._found.get(key)
        if known is not None and not self._is_old(known[0]):
            return known[1]
        snapshot = discover()
        with self._lock:
            self._found.pop(key, None)
            self._found[key] = (self._clock(), snapshot)
            if len(self._found) > self._size:
                del self._found[next(iter(self._found))]
        return snapshot

    def is_current(self, key: object, snapshot: ModelSnapshot) -> bool:
        """Say whether *snapshot* is still what `get` would return without asking anybody."""
        with self._lock:
            known = self._found.get(key)
        return known is not None and known[1] is snapshot and not self._is_old(known[0])

    def clear(self) -> None:
        """Forget everything, so that the next request asks the provider again."""
        with self._lock:
            self._found.clear()

    def _is_old(self, since: float) -> bool:
        return self._lifetime is not None and self._clock() - since >= self._lifetime

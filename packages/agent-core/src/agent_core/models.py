"""Models and tools as plugins and front ends see them, and the memory of which models a provider offers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from agent_core.frozen import EMPTY, FrozenList, JsonObject

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class ModelSnapshot:
    """The models that a provider offered when it was last asked, as plugins changed them.

    A snapshot is compared by identity: a new one means that everything depending on models is
    decided again. `key` is the one under which the cache knows it.
    """

    models: FrozenList = field(default_factory=FrozenList)
    key: object = field(default=None, repr=False)  # the settings are in it, and among them keys

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def ids(self) -> list[str]:
        """Return the models' ids."""
        return [str(model.get("id", model.get("name"))) for model in self.models]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescriptor:
    """A tool that a model may be offered.

    Attributes:
        name: What the model calls it.
        schema: Its schema, in any format that the tool interop registry knows.
        plugin: The name of the tool plugin that runs it.
        description: What it does, in words for the model.
        metadata: Free for features, which pass it on to each other.
        prepared: What a feature left for the tool; the tool gets it as `prepared` when it runs.
    """

    name: str
    schema: JsonObject
    plugin: str
    description: str = ""
    metadata: JsonObject = field(default_factory=lambda: EMPTY)
    prepared: JsonObject = field(default_factory=lambda: EMPTY)


class _Asked:
    """A provider that is being asked, by one thread for all that want to know."""

    __slots__ = ("done", "error", "snapshot", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.done = threading.Event()
        self.snapshot: ModelSnapshot | None = None
        self.error: Exception | None = None


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
        self._asked: dict[object, _Asked] = {}

    def get(self, key: object, discover: Callable[[], ModelSnapshot]) -> ModelSnapshot:
        """Return the models under *key*, asking *discover* when they are not known or too old.

        Of several threads that want the same, one asks and the others wait for its answer. What *discover*
        raises is raised in all of them, and not remembered.
        """
        while True:
            with self._lock:
                known = self._found.get(key)
                if known is not None and not self._is_old(known[0]):
                    return known[1]
                asked = self._asked.get(key)
                if asked is None or asked.thread == threading.get_ident():  # a hook may ask for itself
                    asked = self._asked[key] = _Asked()
                    break
            asked.done.wait()
            if asked.error is not None:
                raise asked.error
            if asked.snapshot is not None:
                return asked.snapshot
        return self._ask(key, asked, discover)

    def _ask(self, key: object, asked: _Asked, discover: Callable[[], ModelSnapshot]) -> ModelSnapshot:
        try:
            snapshot = asked.snapshot = discover()
        except Exception as error:  # an interrupt is for the thread that it came to: another one asks then
            asked.error = error
            raise
        else:
            with self._lock:
                self._found.pop(key, None)
                self._found[key] = (self._clock(), snapshot)
                if len(self._found) > self._size:
                    del self._found[next(iter(self._found))]
            return snapshot
        finally:
            with self._lock:
                self._asked.pop(key, None)
            asked.done.set()

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

"""Watching runs from inside the process: traces, metrics, logs.

A watcher sees every event of a run as it happens and cannot change anything. Delegates and agents that
take over are runs of their own to it, tied together by the trace that the run above hands down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from agent_core.log import get_logger
from agent_core.steps import with_events

if TYPE_CHECKING:
    from agent_core.events import Event
    from agent_core.steps import Flow
    from agent_runtime.runs import RunScope

R = TypeVar("R")
_log = get_logger("runtime")


class Watcher(Protocol):
    """Sees one run."""

    def see(self, event: Event) -> None:
        """Look at an event; what is raised here is logged and changes nothing."""

    def close(self) -> None:
        """Let go: the run is over, whether or not its last event was seen."""


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
    watchers = [watch(scope) for watch in made]

    def seen(events: list[Event]) -> list[Event]:
        for event in events:
            for watcher in watchers:
                try:
                    watcher.see(event)
                except Exception as error:  # noqa: BLE001 - a stranger's code, and the run goes on without it
                    _log.warning("watcher_failed", event_type=event["type"], error=str(error))
        return events

    try:
        return (yield from with_events(flow, seen))
    finally:
        for watcher in watchers:
            watcher.close()

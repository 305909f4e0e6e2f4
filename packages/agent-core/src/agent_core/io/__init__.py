"""How steps are answered: in this thread, or on an event loop.

A plugin offers its work in a blocking form, in an awaitable form, or in both. Each driver prefers
its own form and knows how to live with the other: a synchronous caller runs awaitable work on one
event loop in the background, an asynchronous caller runs blocking work in worker threads. With an
awaitable form nothing stands between the socket and the caller of an async stream.
"""

from __future__ import annotations

from agent_core.io.sync_io import SyncIO, run_awaitable

__all__ = ["SyncIO", "run_awaitable"]

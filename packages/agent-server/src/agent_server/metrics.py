"""What the server counts, as Prometheus reads it: text, one line per number."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Counted:
    """Counts requests by route and status, and how long each took to begin its answer.

    Attributes:
        requests: How many there were, by method, route and status.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._app = app
        self._waits: Counter[float] = Counter()
        self._seconds = 0.0
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, message["status"], time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, send_counted)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")  # not the path: ids would make endless lines
        self.requests[scope["method"], route, status] += 1
        self._seconds += seconds
        self._count += 1
        for bound in BUCKETS:
            if seconds <= bound:
                self._waits[bound] += 1

    def lines(self) -> Iterable[str]:
        """Yield what was counted."""
        yield from _head("keelwork_http_requests_total", "counter", "Requests by route and status.")
        for (method, route, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",route="{_escaped(route)}",status="{status}"'
            yield f"keelwork_http_requests_total{{{labels}}} {count}"
        name = "keelwork_http_seconds"
        yield from _head(name, "histogram", "Seconds until an answer begins.")
        for bound in BUCKETS:
            yield f'{name}_bucket{{le="{bound:g}"}} {self._waits[bound]}'
        yield f'{name}_bucket{{le="+Inf"}} {self._count}'
        yield f"{name}_sum {self._seconds:.6f}"
        yield f"{name}_count {self._count}"


GAUGES = {
    "streams": "Event streams that are open.",
    "feeds": "Sessions whose events are in memory.",
    "running": "Runs of this process.",
    "waiting": "Runs that wait for a worker.",
    "workers": "Workers that take runs.",
}


def gauges(values: Mapping[str, int]) -> Iterable[str]:
    """Yield numbers that rise and fall."""
    for name, value in values.items():
        yield from _head(f"keelwork_{name}", "gauge", GAUGES[name])
        yield f"keelwork_{name} {value}"


def _head(name: str, kind: str, about: str) -> Iterable[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

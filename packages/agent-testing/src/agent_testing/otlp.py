"""A collector for tests: it takes the traces and metrics that OTLP exporters send over HTTP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

_SERVICES = "opentelemetry.proto.collector"


class OtlpReceiver:
    """Listens on a port of this machine; needs `opentelemetry-proto`.

    Attributes:
        url: Where exporters send to, before ``/v1/traces`` and ``/v1/metrics``.
        spans: The spans that have arrived, as the protocol has them.
        metrics: The metrics that have arrived.
    """

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        trace = import_module(f"{_SERVICES}.trace.v1.trace_service_pb2").ExportTraceServiceRequest
        metric = import_module(f"{_SERVICES}.metrics.v1.metrics_service_pb2").ExportMetricsServiceRequest
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/v1/traces":
                    parts = [
                        part for one in trace.FromString(body).resource_spans for part in one.scope_spans
                    ]
                    outer.spans += [span for part in parts for span in part.spans]
                else:
                    received = metric.FromString(body).resource_metrics
                    outer.metrics += [
                        each for one in received for part in one.scope_metrics for each in part.metrics
                    ]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_given: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def tree(self) -> dict[str, Any]:
        """Return the names of the spans, nested as they are, in the order in which they began."""
        children: dict[bytes, list[Any]] = {}
        for span in sorted(self.spans, key=lambda span: span.start_time_unix_nano):
            children.setdefault(span.parent_span_id, []).append(span)

        def below(parent: bytes) -> dict[str, Any]:
            return {span.name: below(span.span_id) for span in children.get(parent, [])}

        return below(b"")

    def attributes(self, name: str) -> dict[str, Any]:
        """Return the attributes of the only span of that name."""
        [span] = [span for span in self.spans if span.name == name]
        return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}

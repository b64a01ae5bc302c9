"""An OTLP receiver on loopback that records requests, and readers of the recorded metrics and log records."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from windowpane.metrics import catalog
from windowpane.metrics.families import FamilySource
from windowpane.outputs.otlp.metrics import attribute_name

Series = tuple[str, frozenset[tuple[str, str]]]


class Receiver:
    """Understands metrics and logs; *status* is its response; until *released* is set it does not respond."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.log_requests: list[ExportLogsServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.released = threading.Event()
        self.released.set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.metrics_url = f"{self.url}/v1/metrics"
        self.logs_url = f"{self.url}/v1/logs"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(timeout=5)

    def metrics(self) -> list[Any]:
        """The metrics of everything received since the last time."""
        taken, self.requests = self.requests, []
        return [
            metric
            for request in taken
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    def records(self) -> list[Any]:
        """Every log record received so far."""
        return [
            record
            for request in self.log_requests
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def _take(self, path: str, body: bytes) -> None:
        if path == "/v1/metrics":
            self.requests.append(ExportMetricsServiceRequest.FromString(body))
        elif path == "/v1/logs":
            self.log_requests.append(ExportLogsServiceRequest.FromString(body))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.released.wait(20)
                if receiver.status == 200:
                    receiver._take(self.path, body)
                    receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                try:
                    self.send_response(receiver.status)
                    self.send_header("Content-Type", "application/x-protobuf")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:  # the sender has disconnected
                    self.close_connection = True

            def log_message(self, *args: object) -> None:
                return

        return Handler


def attributes_of(point: Any) -> frozenset[tuple[str, str]]:
    return frozenset((item.key, item.value.string_value) for item in point.attributes)


def received(metrics: list[Any]) -> dict[Series, object]:
    """Every data point by instrument and attributes; a histogram's is its buckets and sum."""
    values: dict[Series, object] = {}
    for metric in metrics:
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            key = (metric.name, attributes_of(point))
            assert key not in values, f"sent twice: {key}"
            if kind == "histogram":
                values[key] = (tuple(point.bucket_counts), tuple(point.explicit_bounds), point.sum)
            else:
                values[key] = getattr(point, point.WhichOneof("value"))
    return values


def record_attributes(record: Any) -> dict[str, Any]:
    """A log record's attributes as plain values."""
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in record.attributes}


def expected(
    source: FamilySource, provider_of: Callable[[str], str] = lambda _model: "_OTHER"
) -> dict[Series, object]:
    """Return the series of Prometheus under OpenTelemetry's names."""
    values: dict[Series, object] = {}
    for metric, points, histograms in source.collect():
        if metric.opt_in:
            continue
        names = [attribute_name(metric, label) for label in metric.labels]
        for labels, value in points:
            values[metric.otel_name, frozenset(zip(names, labels, strict=True))] = value
        for labels, counts, total in histograms:
            key = frozenset(zip(names, labels, strict=True))
            if metric in (catalog.TOKEN_USAGE, catalog.INFERENCE_DURATION):
                provider = provider_of(labels[1])
                key |= {("gen_ai.operation.name", "chat"), ("gen_ai.provider.name", provider)}
            values[metric.otel_name, key] = (counts, metric.buckets, total)
    return values


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An OTLP receiver on loopback."""
    running = Receiver()
    yield running
    running.close()

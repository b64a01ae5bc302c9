"""OpenTelemetry gives the numbers that Prometheus gives, on the wire, under the conventions' names."""

from __future__ import annotations

import gzip
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from windowpane.events import AlertFired, SessionEnded, TurnEnded, Usage
from windowpane.metrics import catalog
from windowpane.metrics.families import Family, Point
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.otel import OtelMetrics, attribute_name, otlp_exporter
from windowpane.metrics.prometheus import StateSource
from windowpane.state import MetricState

NOW = 1_000.0
Series = tuple[str, frozenset[tuple[str, str]]]


class Receiver:
    """An OTLP receiver on loopback that keeps every request."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.requests.append(ExportMetricsServiceRequest.FromString(body))
                answer = ExportMetricsServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/metrics"
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(timeout=5)

    def take(self) -> list[Any]:
        """The metrics of everything received since the last time."""
        taken, self.requests = self.requests, []
        return [
            metric
            for request in taken
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    running = Receiver()
    yield running
    running.close()


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


def expected(source: StateSource | InternalMetrics) -> dict[Series, object]:
    """What Prometheus is given, under OpenTelemetry's names."""
    values: dict[Series, object] = {}
    for metric, points, histograms in source.collect():
        names = [attribute_name(metric, label) for label in metric.labels]
        extra = (
            {("gen_ai.operation.name", "chat"), ("gen_ai.provider.name", "openai")}
            if metric is catalog.TOKEN_USAGE
            else set()
        )
        for labels, value in points:
            values[metric.otel_name, frozenset(zip(names, labels, strict=True)) | extra] = value
        for labels, counts, total in histograms:
            key = frozenset(zip(names, labels, strict=True)) | extra
            values[metric.otel_name, key] = (counts, metric.buckets, total)
    return values


def test_every_number_on_the_wire_is_the_one_prometheus_gets(
    scripted_state: MetricState, make_event, measured, receiver: Receiver
) -> None:
    """Counters, gauges (infinite ones too) and histograms of a session are equal, series by series."""
    scripted_state.apply(make_event(measured(turns_until_red=math.inf, estimate_error=-0.3), session="flat"))
    scripted_state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9), session="flat"))
    source = StateSource(scripted_state, clock=lambda: NOW)
    own = InternalMetrics(version="1", clock=lambda: NOW, last_event_at=lambda: 900.0, queue_events=lambda: 3)
    own.hook("on_turn_end", 0.01)
    push = OtelMetrics(
        source, own, exporter=otlp_exporter(receiver.url), interval_seconds=math.inf,
        provider_of=lambda _model: "openai",
    )  # fmt: skip
    push.flush()
    got = received(receiver.take())
    push.close()

    assert got == expected(source) | expected(own)
    assert len(got) > 150


def test_a_later_push_follows_the_state(
    make_event, measured, receiver: Receiver, scripted_state: MetricState
) -> None:
    """Each push is of its own moment: counters go on, and gauges of an ended session are gone."""
    source = StateSource(scripted_state, clock=lambda: NOW)
    push = OtelMetrics(source, exporter=otlp_exporter(receiver.url), interval_seconds=math.inf)
    push.flush()
    before = {name for name, _ in received(receiver.take())}
    scripted_state.apply(make_event(TurnEnded(Usage(10, 5), "usage"), session="scripted"))
    scripted_state.apply(make_event(SessionEnded("done"), session="scripted"))
    push.flush()
    after = received(receiver.take())
    push.close()

    turns = {value for (name, _), value in after.items() if name == "context_window.turns"}
    assert turns == {7}
    assert before - {name for name, _ in after} == {
        metric.otel_name
        for metric in catalog.SESSION_METRICS
        if metric.kind == "gauge" and metric.otel_name in before
    }


def test_instruments_have_unit_kind_and_help(scripted_state: MetricState, receiver: Receiver) -> None:
    """Units are UCUM, counters are monotonic and cumulative, bounds are the catalogue's."""
    push = OtelMetrics(
        StateSource(scripted_state, clock=lambda: NOW),
        exporter=otlp_exporter(receiver.url),
        interval_seconds=math.inf,
    )
    push.flush()
    metrics = {metric.name: metric for metric in receiver.take()}
    push.close()
    declared = {metric.otel_name: metric for metric in catalog.CATALOGUE}

    for name, metric in metrics.items():
        assert (metric.unit, metric.description) == (declared[name].unit, declared[name].help)
        kind = {"gauge": "gauge", "counter": "sum", "histogram": "histogram"}[declared[name].kind]
        assert metric.WhichOneof("data") == kind
        if kind == "sum":
            assert metric.sum.is_monotonic
            assert metric.sum.aggregation_temporality == 2
    assert metrics["gen_ai.client.token.usage"].unit == "{token}"


def test_the_conversation_is_never_an_attribute(scripted_state: MetricState, receiver: Receiver) -> None:
    """No data point names a session, whatever Prometheus was asked to show."""
    push = OtelMetrics(
        StateSource(scripted_state, clock=lambda: NOW, top_sessions=5),
        exporter=otlp_exporter(receiver.url),
        interval_seconds=math.inf,
    )
    push.flush()
    got = received(receiver.take())
    push.close()

    assert all("scripted" not in value for _, attributes in got for _, value in attributes)


def test_the_resource_says_who_sends(
    scripted_state: MetricState, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Service name from argument, environment or default, and an instance id of the process's own."""
    source = StateSource(scripted_state, clock=lambda: NOW)

    def sent(**resource: str) -> dict[str, str]:
        push = OtelMetrics(
            source, exporter=otlp_exporter(receiver.url), interval_seconds=math.inf, resource=resource
        )
        push.flush()
        (request, *_) = receiver.requests
        push.close()
        receiver.take()
        attributes = request.resource_metrics[0].resource.attributes
        return {item.key: item.value.string_value for item in attributes}

    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    first, second = sent(), sent(**{"service.name": "fleet", "deployment.environment.name": "prod"})
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from-environment")

    assert first["service.name"] == "windowpane"
    assert (second["service.name"], second["deployment.environment.name"]) == ("fleet", "prod")
    assert first["service.instance.id"] != second["service.instance.id"]
    assert sent()["service.name"] == "from-environment"


class ManyLabelSets:
    """A source with more label sets than the SDK keeps by default."""

    def collect(self) -> list[Family]:
        points = [Point((f"agent-{index}", "gpt-5"), index) for index in range(7_500)]
        return [Family(catalog.TURNS, points, [])]


def test_more_label_sets_than_the_sdk_keeps_by_default_arrive(receiver: Receiver) -> None:
    """Nothing is folded into an overflow point, and requests stay small."""
    push = OtelMetrics(ManyLabelSets(), exporter=otlp_exporter(receiver.url), interval_seconds=math.inf)
    push.flush()
    requests = len(receiver.requests)
    got = received(receiver.take())
    push.close()

    assert sorted(got.values()) == list(range(7_500))
    assert requests == 2


def test_a_dead_receiver_harms_nobody(scripted_state: MetricState, free_port, caplog) -> None:
    """A push that cannot be delivered is logged; nothing is raised."""
    push = OtelMetrics(
        StateSource(scripted_state, clock=lambda: NOW),
        exporter=otlp_exporter(f"http://127.0.0.1:{free_port()}/v1/metrics", timeout_seconds=0.2),
        interval_seconds=math.inf,
    )
    push.flush(1)
    push.close(1)

    assert caplog.records

"""Metrics over OTLP: equal to Prometheus, under the names of the conventions."""

from __future__ import annotations

import math
from typing import Any

import pytest
from otlp_receiver import Receiver, expected, received

from windowpane.core.events import AlertFired, SessionEnded, TurnEnded, Usage
from windowpane.metrics import catalog
from windowpane.metrics.families import Family, FamilySource, Point
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.internal import InternalMetrics
from windowpane.outputs.otlp.conventions import forms_of
from windowpane.outputs.otlp.metrics import OtelMetrics, metrics_exporter
from windowpane.outputs.otlp.sink import process_resource, signal_url

NOW = 1_000.0


def push_to(receiver: Receiver, *sources: FamilySource, **options: Any) -> OtelMetrics:
    """A push of *sources* to *receiver* that sends only when it is flushed."""
    exporter = metrics_exporter(receiver.metrics_url)
    options = {"resource": process_resource()} | options
    return OtelMetrics(*sources, exporter=exporter, interval_seconds=math.inf, **options)


def test_every_number_on_the_wire_equals_prometheus(
    scripted_state: MetricState, make_event, measured, receiver: Receiver
) -> None:
    scripted_state.apply(make_event(measured(turns_until_red=math.inf, estimate_error=-0.3), session="flat"))
    scripted_state.apply(make_event(AlertFired("utilization", "critical", 3, 0.95, 0.9), session="flat"))
    source = StateSource(scripted_state, clock=lambda: NOW)
    own = InternalMetrics(version="1", clock=lambda: NOW, last_event_at=lambda: 900.0, queue_events=lambda: 3)
    own.record_hook("on_turn_end", 0.01)
    push = push_to(receiver, source, own, provider_of=lambda _model: "openai")
    push.flush()
    got = received(receiver.metrics())
    push.close()

    assert got == expected(source, lambda _model: "openai") | expected(own)
    assert len(got) > 150


def test_each_push_reads_the_current_state(
    make_event, measured, receiver: Receiver, scripted_state: MetricState
) -> None:
    source = StateSource(scripted_state, clock=lambda: NOW)
    push = push_to(receiver, source)
    push.flush()
    before = {name for name, _ in received(receiver.metrics())}
    scripted_state.apply(make_event(TurnEnded(Usage(10, 5), "usage"), session="scripted"))
    scripted_state.apply(make_event(SessionEnded("done"), session="scripted"))
    push.flush()
    after = received(receiver.metrics())
    push.close()

    turns = {value for (name, _), value in after.items() if name == "context_window.turns"}
    assert turns == {7}
    assert before - {name for name, _ in after} == {
        metric.otel_name
        for metric in catalog.SESSION_METRICS
        if metric.kind == "gauge" and metric.otel_name in before
    }


def test_instruments_have_unit_kind_and_help(scripted_state: MetricState, receiver: Receiver) -> None:
    push = push_to(receiver, StateSource(scripted_state, clock=lambda: NOW))
    push.flush()
    metrics = {metric.name: metric for metric in receiver.metrics()}
    push.close()
    declared = {metric.otel_name: metric for metric in catalog.ALL_METRICS}

    for name, metric in metrics.items():
        assert (metric.unit, metric.description) == (declared[name].unit, declared[name].help)
        kind = {"gauge": "gauge", "counter": "sum", "histogram": "histogram"}[declared[name].kind]
        assert metric.WhichOneof("data") == kind
        if kind == "sum":
            assert metric.sum.is_monotonic
            assert metric.sum.aggregation_temporality == 2
    assert metrics["gen_ai.client.token.usage"].unit == "{token}"


def test_no_data_point_names_a_session(scripted_state: MetricState, receiver: Receiver) -> None:
    push = push_to(receiver, StateSource(scripted_state, clock=lambda: NOW, top_sessions=5))
    push.flush()
    got = received(receiver.metrics())
    push.close()

    assert all("scripted" not in value for _, attributes in got for _, value in attributes)


def test_the_resource_identifies_the_process(
    scripted_state: MetricState, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = StateSource(scripted_state, clock=lambda: NOW)

    def sent(**resource: str) -> dict[str, str]:
        push = push_to(receiver, source, resource=process_resource(resource))
        push.flush()
        (request, *_) = receiver.requests
        push.close()
        receiver.metrics()
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


def test_more_label_sets_than_the_sdk_default_are_sent(receiver: Receiver) -> None:
    push = push_to(receiver, ManyLabelSets())
    push.flush()
    requests = len(receiver.requests)
    got = received(receiver.metrics())
    push.close()

    assert sorted(got.values()) == list(range(7_500))
    assert requests == 2


def test_a_push_without_a_receiver_is_only_logged(scripted_state: MetricState, free_port, caplog) -> None:
    push = OtelMetrics(
        StateSource(scripted_state, clock=lambda: NOW),
        exporter=metrics_exporter(f"http://127.0.0.1:{free_port()}/v1/metrics", timeout_seconds=0.2),
        interval_seconds=math.inf,
        resource=process_resource(),
    )
    push.flush(1)
    push.close(1)

    assert caplog.records


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://c:4318",
        "http://c:4318/",
        "http://c:4318/v1/metrics",
        "http://c:4318/v1/logs",
        "http://c:4318/v1/traces/",
    ],
)
def test_each_signal_has_its_url_below_the_base(endpoint: str) -> None:
    """A base URL is completed by the exporter specification; the path of a signal is replaced."""
    assert signal_url(endpoint, "metrics") == "http://c:4318/v1/metrics"
    assert signal_url(endpoint, "logs") == "http://c:4318/v1/logs"
    assert signal_url("http://c/otlp", "logs") == "http://c/otlp/v1/logs"


CURRENT = {
    "gen_ai.client.inference.usage.input_tokens": 30, "gen_ai.client.inference.usage.output_tokens": 5,
    "gen_ai.client.inference.usage.cache_read.input_tokens": 12,
    "gen_ai.client.inference.usage.cache_write.input_tokens": 8,
    "gen_ai.client.inference.usage.reasoning.output_tokens": 2,
    "gen_ai.client.inference.operation.input_tokens": 30, "gen_ai.client.inference.operation.output_tokens": 5,
    "gen_ai.client.inference.duration": 1.5,
}  # fmt: skip
"""Metrics of the current conventions, with their sums."""
EARLIER = {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}


@pytest.mark.parametrize(
    ("opt_in", "sent"),
    [
        ("", EARLIER),
        ("http, gen_ai_latest_experimental", CURRENT.keys()),
        ("gen_ai_latest_experimental/dup", EARLIER | CURRENT.keys()),
    ],
)
def test_the_forms_of_the_conventions_are_chosen(
    opt_in: str, sent: set[str], make_event, receiver: Receiver
) -> None:
    state = MetricState()
    usage = Usage(10, 5, cache_read_tokens=12, cache_write_tokens=8, reasoning_tokens=2)
    state.apply(make_event(TurnEnded(usage, "usage", latency_seconds=1.5)))
    forms = forms_of({"OTEL_SEMCONV_STABILITY_OPT_IN": opt_in})
    push = push_to(receiver, StateSource(state, clock=lambda: NOW), provider_of=lambda _: "openai", forms=forms)
    push.flush()
    got = {series: value for series, value in received(receiver.metrics()).items() if "gen_ai." in series[0]}
    push.close()

    assert {name for name, _ in got} == sent
    for (name, attributes), value in got.items():
        if name not in CURRENT:
            continue
        assert (value[2] if isinstance(value, tuple) else value) == CURRENT[name]
        assert ("gen_ai.token.modality" in dict(attributes)) == (".usage." in name)
        assert "gen_ai.token.type" not in dict(attributes)
        assert {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"} <= dict(
            attributes
        ).keys()

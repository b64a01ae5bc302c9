"""The same metrics through OpenTelemetry, pushed as OTLP over HTTP.

Counters and gauges are observable instruments over the sources that Prometheus reads too, all of one collection
over one snapshot, so the numbers are the same. OpenTelemetry has no observable histogram; the buckets already
live in the fold, and an exporter in between adds them to what the SDK collected. Needs the `otel` extra.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import Histogram as SdkHistogram
from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.export import Metric as SdkMetric
from opentelemetry.sdk.resources import Resource

from windowpane.metrics import catalog
from windowpane.metrics.families import Family, FamilySource
from windowpane.metrics.metric import Metric
from windowpane.otlp.target import SCOPE, process_resource

INTERVAL_SECONDS: Final = 60.0
ATTRIBUTE_SETS: Final = 1_000_000
"""The SDK drops attribute sets beyond 2,000 an instrument without a word; label sets are bounded in the fold."""
BATCH_POINTS: Final = 5_000
"""Data points a request, which keeps requests far below what receivers accept."""
OPERATION: Final = "chat"
UNKNOWN_PROVIDER: Final = "_OTHER"
"""The conventions' word for a value they do not list."""

_GENAI: Final = {"agent": "gen_ai.agent.name", "model": "gen_ai.request.model"}
_CUMULATIVE: Final[dict[type, AggregationTemporality]] = dict.fromkeys(
    (ObservableCounter, ObservableGauge, SdkHistogram), AggregationTemporality.CUMULATIVE
)

ProviderOf = Callable[[str], str]
"""A model's label to its provider, as the GenAI conventions name providers."""


def attribute_name(metric: Metric, label: str) -> str:
    """The attribute that carries *label*: the GenAI conventions' where they have one, else in our namespace."""
    if metric is catalog.TOKEN_USAGE and label == "type":
        return "gen_ai.token.type"
    namespace = metric.otel_name.partition(".")[0]
    return _GENAI.get(label) or f"{namespace}.{label}"


class Snapshot:
    """What the sources said at the beginning of one collection."""

    def __init__(self, sources: Iterable[FamilySource]) -> None:
        self._sources = tuple(sources)
        self._families: dict[str, Family] = {}

    def take(self) -> None:
        """Ask the sources; if one fails, this collection is empty rather than stale."""
        self._families = {}
        self._families = {family.metric.name: family for source in self._sources for family in source.collect()}

    def family(self, metric: Metric) -> Family | None:
        """The metric's values, or None when it has none."""
        return self._families.get(metric.name)


class OtelMetrics:
    """A meter provider over *sources* that pushes to *exporter* every *interval_seconds*.

    *resource* says who sends; every process needs one of its own, or two of them would write the same series.
    """

    def __init__(
        self,
        *sources: FamilySource,
        exporter: MetricExporter,
        interval_seconds: float = INTERVAL_SECONDS,
        resource: Resource | None = None,
        provider_of: ProviderOf | None = None,
    ) -> None:
        self._snapshot = Snapshot(sources)
        self._reader = PeriodicExportingMetricReader(
            HistogramExporter(exporter, self._snapshot, provider_of=provider_of),
            export_interval_millis=interval_seconds * 1_000,
            cardinality_limits={ObservableCounter: ATTRIBUTE_SETS, ObservableGauge: ATTRIBUTE_SETS},
        )
        self._provider = MeterProvider(
            [self._reader], resource=resource or process_resource(), shutdown_on_exit=False
        )
        self._register()

    def flush(self, timeout_seconds: float = 10.0) -> bool:
        """Collect and push now; False when it could not be done in time."""
        return self._provider.force_flush(timeout_millis=timeout_seconds * 1_000)

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Push once more and stop."""
        self._provider.shutdown(timeout_millis=timeout_seconds * 1_000)

    def _register(self) -> None:
        meter = self._provider.get_meter(SCOPE)
        scalar = [metric for metric in catalog.ALL_METRICS if metric.kind != "histogram" and not metric.opt_in]
        for place, metric in enumerate(scalar):
            # The SDK calls back in the order of registration, so the first instrument begins a collection.
            observe = self._callback(metric, begins=place == 0)
            create = (
                meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
            )
            create(metric.otel_name, [observe], unit=metric.unit, description=metric.help)

    def _callback(self, metric: Metric, *, begins: bool) -> Callable[[CallbackOptions], Iterable[Observation]]:
        names = [attribute_name(metric, label) for label in metric.labels]

        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            if begins:
                self._snapshot.take()
            family = self._snapshot.family(metric)
            if family is None:
                return []
            return [Observation(value, dict(zip(names, values, strict=True))) for values, value in family.points]

        return observe


def otlp_exporter(
    endpoint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = 10.0,
) -> MetricExporter:
    """OTLP over HTTP, always cumulative; *endpoint* is the whole URL, else `OTEL_EXPORTER_OTLP_*` decides."""
    return OTLPMetricExporter(
        endpoint=endpoint,
        headers=dict(headers) if headers is not None else None,
        timeout=timeout_seconds,
        preferred_temporality=dict(_CUMULATIVE),
        max_export_batch_size=BATCH_POINTS,
    )


class HistogramExporter(MetricExporter):
    """Adds the snapshot's histograms to what the SDK collected, then hands everything on."""

    def __init__(
        self, inner: MetricExporter, snapshot: Snapshot, *, provider_of: ProviderOf | None = None
    ) -> None:
        super().__init__(
            preferred_temporality=inner._preferred_temporality,
            preferred_aggregation=inner._preferred_aggregation,
        )
        self._inner = inner
        self._snapshot = snapshot
        self._provider_of = provider_of
        self._started_ns = time.time_ns()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Export counters, gauges and histograms of one snapshot."""
        added = [
            self._histogram(family)
            for metric in catalog.ALL_METRICS
            if metric.kind == "histogram" and (family := self._snapshot.family(metric)) is not None
        ]
        return self._inner.export(_with(metrics_data, added), timeout_millis=timeout_millis, **kwargs)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Pass on."""
        return self._inner.force_flush(timeout_millis=timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Pass on."""
        self._inner.shutdown(timeout_millis=timeout_millis, **kwargs)

    def _histogram(self, family: Family) -> SdkMetric:
        metric, now = family.metric, time.time_ns()
        names = [attribute_name(metric, label) for label in metric.labels]
        points = [
            HistogramDataPoint(
                attributes={**dict(zip(names, values, strict=True)), **self._conventional(metric, values)},
                start_time_unix_nano=self._started_ns,
                time_unix_nano=now,
                count=sum(counts),
                sum=total,
                bucket_counts=counts,
                explicit_bounds=metric.buckets,
                # Extremes are not kept: unset in OTLP, although the SDK's type wants numbers.
                min=None,  # type: ignore[arg-type]
                max=None,  # type: ignore[arg-type]
            )
            for values, counts, total in family.histograms
        ]
        return SdkMetric(
            name=metric.otel_name,
            description=metric.help,
            unit=metric.unit,
            data=Histogram(points, AggregationTemporality.CUMULATIVE),
        )

    def _conventional(self, metric: Metric, values: tuple[str, ...]) -> dict[str, str]:
        if metric is not catalog.TOKEN_USAGE:
            return {}
        model = values[1]
        provider = self._provider_of(model) if self._provider_of is not None else ""
        return {"gen_ai.operation.name": OPERATION, "gen_ai.provider.name": provider or UNKNOWN_PROVIDER}


def _with(data: MetricsData, added: list[SdkMetric]) -> MetricsData:
    """*data* with more metrics in its only scope."""
    (resource_metrics,) = data.resource_metrics
    (scope_metrics,) = resource_metrics.scope_metrics
    scope = replace(scope_metrics, metrics=[*scope_metrics.metrics, *added])
    return MetricsData([replace(resource_metrics, scope_metrics=[scope])])

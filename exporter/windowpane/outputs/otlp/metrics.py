"""The metrics through OpenTelemetry, pushed as OTLP over HTTP.

Counters and gauges are observable instruments over the sources that Prometheus reads too, and each collection
reads one snapshot, so the numbers are the same. OpenTelemetry has no observable histogram; the buckets exist in
the fold, and an exporter in between adds them to the metrics that the SDK collected. Needs the `otel` extra.
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
    NumberDataPoint,
    PeriodicExportingMetricReader,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as SdkMetric
from opentelemetry.sdk.resources import Resource

from windowpane.core.version import PACKAGE
from windowpane.metrics import catalog
from windowpane.metrics.catalog import Metric
from windowpane.metrics.families import Family, FamilySource
from windowpane.outputs.otlp.conventions import (
    MODALITY,
    OLD,
    OLD_HISTOGRAMS,
    UNKNOWN_MODALITY,
    Forms,
    TokenCounter,
    current_histograms,
    token_counters,
)

INTERVAL_SECONDS: Final = 60.0
ATTRIBUTE_SETS: Final = 1_000_000
"""The SDK silently drops attribute sets beyond 2,000 per instrument; label sets are bounded in the fold."""
BATCH_POINTS: Final = 5_000
"""Data points per request, far below the limit of receivers."""
OPERATION: Final = "chat"
UNKNOWN_PROVIDER: Final = "_OTHER"
"""Value of the GenAI conventions for a provider that they do not list."""

_GENAI_ATTRIBUTES: Final = {"agent": "gen_ai.agent.name", "model": "gen_ai.request.model"}
_CUMULATIVE: Final[dict[type, AggregationTemporality]] = dict.fromkeys(
    (ObservableCounter, ObservableGauge, SdkHistogram), AggregationTemporality.CUMULATIVE
)

ProviderOf = Callable[[str], str]
"""Returns the GenAI conventions' name of a model's provider; empty if unknown."""


def attribute_name(metric: Metric, label: str) -> str:
    """Return the attribute for *label*: that of the GenAI conventions if they define one, else ours."""
    if metric is catalog.TOKEN_USAGE and label == "type":
        return "gen_ai.token.type"
    namespace = metric.otel_name.partition(".")[0]
    return _GENAI_ATTRIBUTES.get(label) or f"{namespace}.{label}"


class FamilySnapshot:
    """The families of all sources at the start of one collection."""

    def __init__(self, sources: Iterable[FamilySource]) -> None:
        self._sources = tuple(sources)
        self._families: dict[str, Family] = {}

    def refresh(self) -> None:
        """Collect from the sources; if one fails, the collection is empty rather than stale."""
        self._families = {}
        self._families = {family.metric.name: family for source in self._sources for family in source.collect()}

    def family(self, metric: Metric) -> Family | None:
        """Return the metric's family, or None if it has no value."""
        return self._families.get(metric.name)


class OtelMetrics:
    """A meter provider over *sources* that pushes to *exporter* every *interval_seconds*.

    *resource* identifies the process; it must differ between processes, or two of them write the same series.
    """

    def __init__(
        self,
        *sources: FamilySource,
        exporter: MetricExporter,
        interval_seconds: float = INTERVAL_SECONDS,
        resource: Resource,
        provider_of: ProviderOf | None = None,
        forms: Forms = OLD,
    ) -> None:
        self._snapshot = FamilySnapshot(sources)
        self._reader = PeriodicExportingMetricReader(
            HistogramExporter(exporter, self._snapshot, provider_of=provider_of, forms=forms),
            export_interval_millis=interval_seconds * 1_000,
            cardinality_limits={ObservableCounter: ATTRIBUTE_SETS, ObservableGauge: ATTRIBUTE_SETS},
        )
        self._provider = MeterProvider([self._reader], resource=resource, shutdown_on_exit=False)
        self._register()

    def flush(self, timeout_seconds: float = 10.0) -> bool:
        """Collect and push now; False on timeout."""
        return self._provider.force_flush(timeout_millis=timeout_seconds * 1_000)

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Push once more and stop."""
        self._provider.shutdown(timeout_millis=timeout_seconds * 1_000)

    def _register(self) -> None:
        meter = self._provider.get_meter(PACKAGE)
        scalar = [metric for metric in catalog.ALL_METRICS if metric.kind != "histogram" and not metric.opt_in]
        for index, metric in enumerate(scalar):
            # The SDK calls back in the order of registration, so the first instrument refreshes the snapshot.
            observe = self._callback(metric, refresh=index == 0)
            create = (
                meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
            )
            create(metric.otel_name, [observe], unit=metric.unit, description=metric.help)

    def _callback(self, metric: Metric, *, refresh: bool) -> Callable[[CallbackOptions], Iterable[Observation]]:
        names = [attribute_name(metric, label) for label in metric.labels]

        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            if refresh:
                self._snapshot.refresh()
            family = self._snapshot.family(metric)
            if family is None:
                return []
            return [Observation(value, dict(zip(names, values, strict=True))) for values, value in family.points]

        return observe


def metrics_exporter(
    url: str | None = None, *, headers: Mapping[str, str] | None = None, timeout_seconds: float = 10.0
) -> MetricExporter:
    """Return a cumulative OTLP/HTTP exporter; *url* is the whole URL, by default from `OTEL_EXPORTER_OTLP_*`."""
    return OTLPMetricExporter(
        endpoint=url,
        headers=dict(headers) if headers is not None else None,
        timeout=timeout_seconds,
        preferred_temporality=dict(_CUMULATIVE),
        max_export_batch_size=BATCH_POINTS,
    )


class HistogramExporter(MetricExporter):
    """Adds the snapshot's histograms to the metrics that the SDK collected, then exports all of them.

    Metrics of the GenAI conventions are sent in the chosen forms.
    """

    def __init__(
        self,
        inner: MetricExporter,
        snapshot: FamilySnapshot,
        *,
        provider_of: ProviderOf | None = None,
        forms: Forms = OLD,
    ) -> None:
        super().__init__(
            preferred_temporality=inner._preferred_temporality,
            preferred_aggregation=inner._preferred_aggregation,
        )
        self._inner = inner
        self._snapshot = snapshot
        self._provider_of = provider_of
        self._forms = forms
        self._started_ns = time.time_ns()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Export counters, gauges and histograms of one snapshot."""
        added: list[SdkMetric] = []
        for metric in catalog.ALL_METRICS:
            family = self._snapshot.family(metric) if metric.kind == "histogram" else None
            if family is None:
                continue
            if metric not in OLD_HISTOGRAMS or self._forms.old:
                added.append(self._histogram(family))
            if metric in OLD_HISTOGRAMS and self._forms.new:
                added += [self._histogram(one, name) for name, one in current_histograms(family)]
        tokens = self._snapshot.family(catalog.MODEL_TOKENS)
        if tokens is not None and self._forms.new:
            added += map(self._counter, token_counters(tokens))
        return self._inner.export(_with(metrics_data, added), timeout_millis=timeout_millis, **kwargs)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Flush the wrapped exporter."""
        return self._inner.force_flush(timeout_millis=timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Shut down the wrapped exporter."""
        self._inner.shutdown(timeout_millis=timeout_millis, **kwargs)

    def _counter(self, counter: TokenCounter) -> SdkMetric:
        now = time.time_ns()
        points = [
            NumberDataPoint(
                attributes={
                    **dict(zip(_GENAI_ATTRIBUTES.values(), labels, strict=True)),
                    **self._genai_attributes(catalog.TOKEN_USAGE, labels),
                    MODALITY: UNKNOWN_MODALITY,
                },
                start_time_unix_nano=self._started_ns,
                time_unix_nano=now,
                value=value,
            )
            for labels, value in counter.series.items()
        ]
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        return SdkMetric(name=counter.name, description="Tokens of model calls.", unit="{token}", data=data)

    def _histogram(self, family: Family, name: str = "") -> SdkMetric:
        """Return a histogram; one of the current form has another *name*, and no type among its attributes."""
        metric, now = family.metric, time.time_ns()
        names = [attribute_name(metric, label) for label in metric.labels]
        if name:
            names = names[: len(_GENAI_ATTRIBUTES)]
        points = [
            HistogramDataPoint(
                attributes={**dict(zip(names, values, strict=False)), **self._genai_attributes(metric, values)},
                start_time_unix_nano=self._started_ns,
                time_unix_nano=now,
                count=sum(counts),
                sum=total,
                bucket_counts=counts,
                explicit_bounds=metric.buckets,
                # Extremes are not recorded: unset in OTLP, although the SDK's type requires numbers.
                min=None,  # type: ignore[arg-type]
                max=None,  # type: ignore[arg-type]
            )
            for values, counts, total in family.histograms
        ]
        return SdkMetric(
            name=name or metric.otel_name,
            description=metric.help,
            unit=metric.unit,
            data=Histogram(points, AggregationTemporality.CUMULATIVE),
        )

    def _genai_attributes(self, metric: Metric, values: tuple[str, ...]) -> dict[str, str]:
        if metric not in OLD_HISTOGRAMS:
            return {}
        model = values[1]
        provider = self._provider_of(model) if self._provider_of is not None else ""
        return {"gen_ai.operation.name": OPERATION, "gen_ai.provider.name": provider or UNKNOWN_PROVIDER}


def _with(data: MetricsData, added: list[SdkMetric]) -> MetricsData:
    """Return *data* with more metrics in its only scope."""
    (resource_metrics,) = data.resource_metrics
    (scope_metrics,) = resource_metrics.scope_metrics
    scope = replace(scope_metrics, metrics=[*scope_metrics.metrics, *added])
    return MetricsData([replace(resource_metrics, scope_metrics=[scope])])

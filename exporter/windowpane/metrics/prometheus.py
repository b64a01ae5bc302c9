"""The metrics as a `prometheus_client` collector, for any registry and exposition format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.metrics_core import Metric as PrometheusFamily
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from windowpane.metrics.catalog import Metric
from windowpane.metrics.families import Family, FamilySource


class PrometheusCollector(Collector):
    """Collects the families of its sources for a registry."""

    def __init__(self, *sources: FamilySource) -> None:
        self._sources = sources

    def collect(self) -> Iterator[PrometheusFamily]:
        """Yield every metric with a value that Prometheus exports."""
        for source in self._sources:
            for family in source.collect():
                if family.metric.prometheus:
                    yield prometheus_family(family)

    def describe(self) -> Iterable[PrometheusFamily]:
        """Return nothing: the catalog declares the names, and collecting on registration would be wasted work."""
        return ()


def registry_of(*sources: FamilySource) -> CollectorRegistry:
    """Return a new registry with one collector over *sources*; the process-wide registry is not touched."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PrometheusCollector(*sources))
    return registry


def prometheus_family(family: Family) -> PrometheusFamily:
    """Convert a family to the type of the client library."""
    metric = family.metric
    # The library adds `_total` to the name of a counter itself.
    name = metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name
    result = PrometheusFamily(name, metric.help, metric.kind)
    if metric.kind == "histogram":
        result.samples = _histogram_samples(family)
        return result
    name, labels = metric.name, metric.labels
    # Labels are as many as their values by construction; checking it here would be a tenth of a scrape.
    result.samples = [
        Sample(name, dict(zip(labels, values)), value)  # noqa: B905
        for values, value in family.points
    ]
    return result


def _histogram_samples(family: Family) -> list[Sample]:
    metric = family.metric
    bounds = _bounds(metric)
    samples: list[Sample] = []
    for values, counts, total in family.histograms:
        labels = dict(zip(metric.labels, values, strict=True))
        cumulative = list(accumulate(counts))
        samples += [
            Sample(f"{metric.name}_bucket", labels | {"le": upper}, count)
            for upper, count in zip(bounds, cumulative, strict=True)
        ]
        samples.append(Sample(f"{metric.name}_count", labels, cumulative[-1]))
        samples.append(Sample(f"{metric.name}_sum", labels, total))
    return samples


_INFINITE: Final = "+Inf"


def _bounds(metric: Metric) -> list[str]:
    return [*(str(floatToGoString(upper)) for upper in metric.buckets), _INFINITE]  # type: ignore[no-untyped-call]

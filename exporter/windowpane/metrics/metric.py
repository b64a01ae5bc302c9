"""What one metric is: a declaration that every output, test, table and dashboard reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["gauge", "counter", "histogram"]

Aggregate = Literal["max", "min", "sum", "weighted_mean", "max_abs", "count"]
"""How the live sessions behind one label set become one value. `weighted_mean` weighs by used tokens, `max_abs`
keeps the sign of the value that is furthest from zero, `count` counts sessions."""

PREFIX: Final = "context_window_"
OTEL_PREFIX: Final = "context_window."
IDENTITY: Final = ("agent", "model")
"""The labels every session metric begins with."""
OTHER: Final = "other"
"""Stands for a value outside a label's enumeration."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label and what it may hold. Nothing an agent says can add a value without bound."""

    name: str
    help: str
    values: tuple[str, ...] = ()
    """The whole enumeration; empty where names are admitted as they come, up to `cap`."""
    cap: int = 0
    """Distinct names admitted where there is no enumeration; later ones become `other`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, the same in Prometheus and OpenTelemetry."""

    name: str
    """The Prometheus name."""
    otel_name: str
    """The instrument's name; OpenTelemetry's own rules lead from it and the unit to the Prometheus name."""
    kind: Kind
    unit: str
    """UCUM."""
    help: str
    source: str
    """Name of the event that feeds it; empty for what the exporter measures about itself."""
    fields: tuple[str, ...] = ()
    """Fields of that event's payload it is computed from."""
    labels: tuple[str, ...] = ()
    """All labels, `agent` and `model` first."""
    aggregate: Aggregate | None = None
    """For gauges of sessions."""
    buckets: tuple[float, ...] = ()
    """Upper bounds, without infinity."""
    buckets_reason: str = ""
    prometheus: bool = True
    """False for what only OpenTelemetry's conventions define."""
    opt_in: bool = False
    """Whether it is exported only on request."""

    @property
    def own_labels(self) -> tuple[str, ...]:
        """The labels after `agent` and `model`."""
        return self.labels[len(IDENTITY) :] if self.labels[: len(IDENTITY)] == IDENTITY else self.labels


def otel_name_of(name: str, kind: Kind, unit: str) -> str:
    """The instrument name that OpenTelemetry's Prometheus rules turn back into *name*.

    They append `_ratio` to gauges of unit 1, the unit's word where it is no annotation in braces, and `_total`
    to counters.
    """
    if kind == "counter":
        name = name.removesuffix("_total")
    if unit == "1" and kind == "gauge":
        name = name.removesuffix("_ratio")
    if unit == "s":
        name = name.removesuffix("_seconds")
    head, _, rest = name.partition("_window_" if name.startswith(PREFIX) else "_")
    return f"{OTEL_PREFIX}{rest}" if name.startswith(PREFIX) else f"{head}.{rest}"

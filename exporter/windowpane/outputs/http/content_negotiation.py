"""Content negotiation: format and compression by the headers `Accept` and `Accept-Encoding`.

Metric and label names are plain ASCII, so every escaping scheme that Prometheus may request gives the same bytes.
A part of a header that cannot be parsed is ignored: a scrape must never fail because of a header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from prometheus_client import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import CollectorRegistry


class Exposition(NamedTuple):
    """An exposition format: its encoder and its content type."""

    encode: Callable[[CollectorRegistry], bytes]
    content_type: str


def _open_metrics(registry: CollectorRegistry) -> bytes:
    return bytes(openmetrics.generate_latest(registry))  # type: ignore[no-untyped-call]


PLAIN: Final = Exposition(generate_latest, "text/plain; version=0.0.4; charset=utf-8")
OPEN_METRICS: Final = Exposition(_open_metrics, "application/openmetrics-text; version=1.0.0; charset=utf-8")

_FORMATS: Final = {
    "text/plain": PLAIN,
    "text/*": PLAIN,
    "*/*": PLAIN,
    "application/openmetrics-text": OPEN_METRICS,
}
"""Media ranges to formats; a client that accepts anything gets the plain text format."""
_VERSIONS: Final = {
    "text/plain": frozenset({"", "0.0.4", "1.0.0"}),
    "application/openmetrics-text": frozenset({"", "1.0.0"}),
}


class _Preference(NamedTuple):
    """One element of a header: its name, its parameters and its quality."""

    name: str
    parameters: dict[str, str]
    quality: float


def exposition_for(accept: str) -> Exposition:
    """Return the format that *accept* prefers, the first of equal ones; plain text if it accepts neither."""
    acceptable = [
        preference
        for preference in _preferences(accept)
        if preference.name in _FORMATS
        and preference.parameters.get("version", "") in _VERSIONS.get(preference.name, frozenset({""}))
    ]
    best = max(acceptable, key=lambda preference: preference.quality, default=None)
    return PLAIN if best is None or best.quality <= 0 else _FORMATS[best.name]


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether the client accepts gzip: by name, else by `*`, with a quality above 0."""
    quality = {preference.name: preference.quality for preference in _preferences(accept_encoding)}
    return quality.get("gzip", quality.get("x-gzip", quality.get("*", 0.0))) > 0


def _preferences(header: str) -> Iterator[_Preference]:
    for element in header.split(","):
        name, *rest = (part.strip() for part in element.split(";"))
        pairs = (part.partition("=") for part in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        if name:
            yield _Preference(name.lower(), parameters, _quality(parameters.get("q")))


def _quality(given: str | None) -> float:
    """Return a quality between 0 and 1; 1 for a missing or invalid one."""
    try:
        quality = 1.0 if given is None else float(given)
    except ValueError:
        return 1.0
    return min(1.0, max(0.0, quality)) if quality == quality else 1.0  # noqa: PLR0124  # only NaN differs from itself

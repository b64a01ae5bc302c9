"""Which format a scraper gets: its `Accept` and `Accept-Encoding` headers, preferences and refusals included.

Names and labels here are plain ASCII, so every escaping scheme that Prometheus may ask for gives the same bytes.
What cannot be parsed counts as not said: a scrape must never fail over a header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from prometheus_client import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import CollectorRegistry


class Exposition(NamedTuple):
    """A format: how to write it, and what to call it."""

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
"""Media ranges to formats; a client that takes anything gets the format that everything reads."""
_VERSIONS: Final = {
    "text/plain": frozenset({"", "0.0.4", "1.0.0"}),
    "application/openmetrics-text": frozenset({"", "1.0.0"}),
}


class _Choice(NamedTuple):
    """One element of a header: what it names, its parameters, how much it is wanted."""

    name: str
    parameters: dict[str, str]
    quality: float


def exposition_for(accept: str) -> Exposition:
    """The format that *accept* wants most, of two it wants alike the first; text where it wants none of ours."""
    wanted = [
        choice
        for choice in _choices(accept)
        if choice.name in _FORMATS
        and choice.parameters.get("version", "") in _VERSIONS.get(choice.name, frozenset({""}))
    ]
    best = max(wanted, key=lambda choice: choice.quality, default=None)
    return PLAIN if best is None or best.quality <= 0 else _FORMATS[best.name]


def gzip_wanted(accept_encoding: str) -> bool:
    """Whether the client takes gzip: by its name, else by `*`, and not with a quality of 0."""
    quality = {choice.name: choice.quality for choice in _choices(accept_encoding)}
    return quality.get("gzip", quality.get("x-gzip", quality.get("*", 0.0))) > 0


def _choices(header: str) -> Iterator[_Choice]:
    for element in header.split(","):
        name, *rest = (part.strip() for part in element.split(";"))
        pairs = (part.partition("=") for part in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        if name:
            yield _Choice(name.lower(), parameters, _quality(parameters.get("q")))


def _quality(given: str | None) -> float:
    """Between 0 and 1; 1 where none is given or it is no number."""
    try:
        quality = 1.0 if given is None else float(given)
    except ValueError:
        return 1.0
    return min(1.0, max(0.0, quality)) if quality == quality else 1.0  # noqa: PLR0124  # NaN is unlike itself

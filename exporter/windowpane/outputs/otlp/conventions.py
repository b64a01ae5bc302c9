"""The forms of OpenTelemetry's GenAI conventions in which metrics and usage are sent.

`OTEL_SEMCONV_STABILITY_OPT_IN` chooses as it does for instrumentations: without it the names of v1.41.0 are sent,
with `gen_ai_latest_experimental` in it the current ones, and with `gen_ai_latest_experimental/dup` both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from windowpane.metrics import catalog
from windowpane.metrics.catalog import Metric
from windowpane.metrics.families import Family

OPT_IN: Final = "OTEL_SEMCONV_STABILITY_OPT_IN"
LATEST: Final = "gen_ai_latest_experimental"
MODALITY: Final = "gen_ai.token.modality"
UNKNOWN_MODALITY: Final = "unknown"
"""Providers count texts and images together."""

OPERATION_TOKENS: Final = "gen_ai.client.inference.operation.{}_tokens"
DURATION: Final = "gen_ai.client.inference.duration"
COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("input_tokens",),
    "cache_read": ("input_tokens", "cache_read.input_tokens"),
    "cache_write": ("input_tokens", "cache_write.input_tokens"),
    "output": ("output_tokens",),
    "reasoning": ("reasoning.output_tokens",),
}
"""The counters of `gen_ai.client.inference.usage` by the type of our tokens, whose input excludes the cache."""


class Forms(NamedTuple):
    """The forms that are sent."""

    old: bool = True
    new: bool = False

    @property
    def cache_write(self) -> tuple[str, ...]:
        """The names of the tokens written to the cache."""
        names = ((self.old, "cache_creation"), (self.new, "cache_write"))
        return tuple(f"gen_ai.usage.{name}.input_tokens" for is_sent, name in names if is_sent)


OLD: Final = Forms()
"""The form of v1.41.0."""


def forms_of(environment: Mapping[str, str]) -> Forms:
    """Return the forms that the *environment* chooses."""
    chosen = {name.strip() for name in environment.get(OPT_IN, "").split(",")}
    if f"{LATEST}/dup" in chosen:
        return Forms(old=True, new=True)
    return Forms(old=False, new=True) if LATEST in chosen else OLD


class TokenCounter(NamedTuple):
    """One counter of tokens in the current form: its series by agent and model."""

    name: str
    series: Mapping[tuple[str, str], float]


def token_counters(family: Family) -> Iterator[TokenCounter]:
    """Yield the counters of the current form from the family of billed tokens."""
    sums: defaultdict[str, defaultdict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    for (agent, model, kind), value in family.points:
        for name in COUNTED.get(kind, ()):
            sums[name][agent, model] += value
    for name, series in sums.items():
        yield TokenCounter(f"gen_ai.client.inference.usage.{name}", series)


def current_histograms(family: Family) -> Iterator[tuple[str, Family]]:
    """Yield the histograms of the current form from one of the old form, with their names."""
    if family.metric is catalog.INFERENCE_DURATION:
        yield DURATION, family
        return
    for kind in ("input", "output"):
        points = [point for point in family.histograms if point.labels[-1] == kind]
        yield OPERATION_TOKENS.format(kind), family._replace(histograms=points)


OLD_HISTOGRAMS: Final[tuple[Metric, ...]] = (catalog.TOKEN_USAGE, catalog.INFERENCE_DURATION)
"""Histograms of the conventions, in the old form."""

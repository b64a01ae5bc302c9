"""Metrics and events of one process to one OTLP receiver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from windowpane.core.events import Event
from windowpane.metrics.families import FamilySource
from windowpane.otlp.logs import CountDrops, EventLogs, logs_exporter
from windowpane.otlp.metrics import INTERVAL_SECONDS, OtelMetrics, otlp_exporter
from windowpane.otlp.target import process_resource, signal_url

_CONVENTIONAL: Final = {
    "aws": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "x-ai": "x_ai",
}
_SAME: Final = frozenset({"anthropic", "cohere", "deepseek", "groq", "openai", "perplexity"})


def conventional_provider(provider: str) -> str:
    """The GenAI conventions' name of a provider in the price catalog; empty where they list none."""
    return provider if provider in _SAME else _CONVENTIONAL.get(provider, "")


class OtlpPush:
    """Pushes the metrics of *sources* every *interval_seconds*, and every event given to `write`."""

    def __init__(
        self,
        *sources: FamilySource,
        endpoint: str,
        headers: Mapping[str, str] | None = None,
        events: bool = True,
        interval_seconds: float = INTERVAL_SECONDS,
        provider_of: Callable[[str], str] | None = None,
        count_drops: CountDrops | None = None,
    ) -> None:
        """*endpoint* is a receiver's base URL; *provider_of* maps a model to its provider in the catalog."""
        resource = process_resource()
        self._metrics = OtelMetrics(
            *sources,
            exporter=otlp_exporter(signal_url(endpoint, "metrics"), headers=headers),
            interval_seconds=interval_seconds,
            resource=resource,
            provider_of=None if provider_of is None else lambda model: conventional_provider(provider_of(model)),
        )
        self._logs: EventLogs | None = None
        if events:
            exporter = logs_exporter(signal_url(endpoint, "logs"), headers=headers)
            self._logs = EventLogs(exporter, resource=resource, count_drops=count_drops)

    def write(self, batch: Sequence[Event]) -> None:
        """Send a batch as log records, where they are wanted; never waits."""
        if self._logs is not None:
            self._logs.write(batch)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Send what waits and the last values of the metrics, then stop; each gets half of the time."""
        if self._logs is not None:
            self._logs.close(timeout_seconds / 2)
        self._metrics.close(timeout_seconds / 2)

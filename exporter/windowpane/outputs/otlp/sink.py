"""The push to OpenTelemetry as a sink of the pipeline: metrics and events of one process to one OTLP receiver.

OpenTelemetry's SDK is imported only where an endpoint is configured. A failure here is logged and counted, and
affects no other sink. A forked child starts over at its first event, with new connections and a new identity.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from windowpane.core.version import PACKAGE, package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.models.catalog import packaged_catalog

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from windowpane.config.outputs import OtlpConfig
    from windowpane.core.events import Event
    from windowpane.metrics.families import FamilySource
    from windowpane.metrics.internal import CountDrops
    from windowpane.outputs.otlp.logs import EventLogs
    from windowpane.outputs.otlp.metrics import OtelMetrics

SINK: Final = "otlp"

Signal = Literal["metrics", "logs"]

_SIGNAL_PATHS: Final = ("/v1/metrics", "/v1/logs", "/v1/traces")
_log = logging.getLogger("windowpane")


class OtlpSink:
    """Pushes metrics and events to `otlp.endpoint`; without an endpoint it does nothing."""

    def __init__(
        self, config: OtlpConfig, *, sources: Callable[[], Sequence[FamilySource]], count_drops: CountDrops
    ) -> None:
        self._config = config
        self._sources = sources
        self._count_drops = count_drops
        self._boundary = ErrorBoundary(_log)
        self._started = False
        self._metrics: OtelMetrics | None = None
        self._logs: EventLogs | None = None

    def start(self) -> None:
        """Start to push; called once per process."""
        self._started = True
        if self._config.endpoint is not None:
            with self._boundary.contain("pushing to OpenTelemetry"):
                self._connect(self._config.endpoint)

    def write(self, batch: Sequence[Event]) -> None:
        """Queue a batch for sending as log records, if they are configured; never waits."""
        if not self._started:
            self.start()
        if self._logs is not None:
            self._logs.write(batch)

    def after_fork(self) -> None:
        """Abandon the parent's connections in a child and start over at its first event."""
        self._started, self._metrics, self._logs = False, None, None

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Send pending events and the last values of the metrics, then stop; each gets half of the time."""
        for push in (self._logs, self._metrics):
            if push is not None:
                with self._boundary.contain("pushing to OpenTelemetry"):
                    push.close(timeout_seconds / 2)
        self._metrics, self._logs = None, None

    def _connect(self, endpoint: str) -> None:
        from windowpane.outputs.otlp.conventions import forms_of
        from windowpane.outputs.otlp.logs import EventLogs, logs_exporter
        from windowpane.outputs.otlp.metrics import OtelMetrics, metrics_exporter

        headers = {name: value.get_secret_value() for name, value in self._config.headers.items()} or None
        resource, forms = process_resource(), forms_of(os.environ)
        self._metrics = OtelMetrics(
            *self._sources(),
            exporter=metrics_exporter(signal_url(endpoint, "metrics"), headers=headers),
            interval_seconds=self._config.interval_seconds,
            resource=resource,
            provider_of=genai_provider,
            forms=forms,
        )
        if self._config.events:
            self._logs = EventLogs(
                logs_exporter(signal_url(endpoint, "logs"), headers=headers),
                resource=resource,
                count_drops=lambda reason, events: self._count_drops(SINK, reason, events),
                forms=forms,
            )


def signal_url(endpoint: str, signal: Signal) -> str:
    """Return the URL for one signal.

    *endpoint* is a receiver's base URL, like `OTEL_EXPORTER_OTLP_ENDPOINT`; the path of a signal at its end is
    replaced. Source: the OTLP exporter specification.
    """
    base = endpoint.rstrip("/")
    for path in _SIGNAL_PATHS:
        base = base.removesuffix(path)
    return f"{base}/v1/{signal}"


def process_resource(attributes: Mapping[str, str] | None = None) -> Resource:
    """Return the resource of this process: *attributes* override the environment, which overrides our name.

    Every call creates another `service.instance.id`, so two processes never write the same series.
    """
    from opentelemetry.sdk.resources import Resource

    merged: dict[str, Any] = {"service.instance.id": uuid.uuid4().hex, **(attributes or {})}
    named_by_environment = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    if not named_by_environment:
        merged.setdefault("service.name", PACKAGE)
        merged.setdefault("service.version", package_version())
    return Resource.create(merged)


_GENAI_PROVIDERS: Final = {
    **{name: name for name in ("anthropic", "cohere", "deepseek", "groq", "openai", "perplexity")},
    "aws": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "x-ai": "x_ai",
}
"""Providers of the model catalog by the names of OpenTelemetry's GenAI conventions."""


def genai_provider(model: str) -> str:
    """Return the GenAI conventions' name of the model's provider; empty if the model or the name is unknown."""
    info = packaged_catalog().lookup(model) if model else None
    return "" if info is None else _GENAI_PROVIDERS.get(info.provider, "")

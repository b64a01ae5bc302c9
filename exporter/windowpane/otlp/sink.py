"""The push to OpenTelemetry as a sink of the pipeline: metrics and events of this process, where configured.

The library for it is loaded only then. What fails here is logged and counted, and harms no other sink. A forked
child starts over with its first event, with connections and an identity of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.models.catalog import PackagedCatalog

if TYPE_CHECKING:
    from windowpane.config.schema import OtlpConfig
    from windowpane.core.events import Event
    from windowpane.metrics.families import FamilySource
    from windowpane.otlp.push import OtlpPush

CountDrops = Callable[[str, str, int], None]
"""Sink, reason and number of events."""

SINK: Final = "otlp"
_log = logging.getLogger("windowpane")
_MODELS: Final = PackagedCatalog()


class OtlpOutput:
    """Pushes to `otlp.endpoint`; without one it does nothing."""

    def __init__(
        self, config: OtlpConfig, *, sources: Callable[[], Sequence[FamilySource]], count_drops: CountDrops
    ) -> None:
        self._config = config
        self._sources = sources
        self._count_drops = count_drops
        self._boundary = ErrorBoundary(_log)
        self._started = False
        self._push: OtlpPush | None = None

    def start(self) -> None:
        """Begin to push, once."""
        self._started = True
        if self._config.endpoint is not None:
            with self._boundary.contain("pushing to OpenTelemetry"):
                self._push = self._open(self._config.endpoint)

    def write(self, batch: Sequence[Event]) -> None:
        """Send a batch as log records; never waits."""
        if not self._started:
            self.start()
        if self._push is not None:
            self._push.write(batch)

    def after_fork(self) -> None:
        """Leave the parent's connections alone and begin anew with the first event."""
        self._started, self._push = False, None

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Send what waits, then stop."""
        push, self._push = self._push, None
        if push is not None:
            with self._boundary.contain("pushing to OpenTelemetry"):
                push.close(timeout_seconds)

    def _open(self, endpoint: str) -> OtlpPush:
        from windowpane.otlp.push import OtlpPush

        headers = {name: value.get_secret_value() for name, value in self._config.headers.items()}
        return OtlpPush(
            *self._sources(),
            endpoint=endpoint,
            headers=headers or None,
            events=self._config.events,
            interval_seconds=self._config.interval_seconds,
            provider_of=provider_of,
            count_drops=lambda reason, events: self._count_drops(SINK, reason, events),
        )


def provider_of(model: str) -> str:
    """The model's provider in the catalog; empty for an unknown model."""
    info = _MODELS.lookup(model) if model else None
    return "" if info is None else info.provider

"""Metrics of everything in a store, for as long as `serve` runs: fold once, then follow what is appended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from windowpane.config.schema import Config
from windowpane.core.version import package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import EventFormatError, WindowpaneError
from windowpane.metrics.fold import AlertKey, MetricState
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.prometheus import StateSource, registry_of
from windowpane.otlp.sink import OtlpOutput
from windowpane.serve.http_server import Health, Routes, Target
from windowpane.serve.maintenance import Upkeep, labels_of
from windowpane.serve.service_discovery import running_targets

if TYPE_CHECKING:
    from windowpane.alerts.delivery.notifier import Notifier
    from windowpane.config.schema import OtlpConfig
    from windowpane.core.events import Event
    from windowpane.metrics.fold import AsOf
    from windowpane.store.records import StoredEvent, Verification
    from windowpane.store.sqlite import SqliteStore

FOLLOW_SECONDS: Final = 1.0
"""How often the store is asked for new events."""
UPKEEP_SECONDS: Final = 3_600.0
"""How often the audit chain is checked and old sessions are let go."""

_log = logging.getLogger(__name__)


class StoreServer:
    """Folds a store into metrics and keeps up with it on a thread of its own."""

    def __init__(
        self, store: SqliteStore, *, config: Config | None = None, as_of: AsOf = "now", top_sessions: int = 0
    ) -> None:
        self._store = store
        self._config = config or Config()
        self._after_seq = 0
        self._unreadable_seq = 0
        self._boundary = ErrorBoundary(_log)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure = ""
        self._verified: Verification | None = None
        self._upkeep_at = time.monotonic()
        labels = labels_of(store)
        rules = self._config.alert_rules()
        self.notifier: Notifier | None = None
        """Told of a broken chain, where there is one; whoever sets it closes it."""
        self.upkeep = Upkeep(store, rules=rules, labels=labels, tell=self._alerted)
        alerts = [AlertKey(rule.name, rule.severity) for rule in rules]
        self.state = MetricState(labels=labels, alerts=alerts)
        base = store.load_metric_base()
        if base is not None:
            self.state.load(base)
        self._internal = InternalMetrics(
            version=package_version(), clock=time.time, last_event_at=lambda: self.state.last_event_at
        )
        self._sources = (
            StateSource(self.state, clock=time.time, as_of=as_of, top_sessions=top_sessions),
            self._internal,
        )
        self._push: OtlpOutput | None = None

    def catch_up(self) -> int:
        """Fold what was appended since the last call; returns how many events."""
        folded = 0
        for batch in self._store.scan(after_seq=self._after_seq, on_unreadable=self._unreadable):
            for stored in batch:
                self._fold(stored)
            if self._push is not None:
                with self._boundary.contain("pushing events"):
                    self._push.write([stored.event for stored in batch if stored.counted])
            if batch:
                self._after_seq = batch[-1].seq
            folded += len(batch)
            if self._stop.is_set():
                break
        self._after_seq = max(self._after_seq, self._unreadable_seq)
        return folded

    def _fold(self, stored: StoredEvent) -> None:
        """Fold one event; a fault of ours in it must not have those around it counted twice."""
        try:
            self.state.apply(stored.event, counted=stored.counted)
        except Exception as error:  # noqa: BLE001  # whatever it is, the others are folded
            self._boundary.log_failure("folding an event", error)
            self._dropped("metrics", "error", 1)

    def _unreadable(self, seq: int, error: EventFormatError) -> None:
        """Stored bytes are no event: they are passed over, once, and verifying the chain says where they are."""
        self._unreadable_seq = seq
        self._boundary.log_failure("reading a stored event", error)
        self._dropped("metrics", "error", 1)

    def start(self) -> None:
        """Follow the store until `close`."""
        self._thread = threading.Thread(target=self._follow, name="windowpane-follow", daemon=True)
        self._thread.start()

    def push(self, otlp: OtlpConfig) -> None:
        """Push the metrics of everything in the store, and as log records what is appended from now on."""
        self._push = OtlpOutput(otlp, sources=lambda: self._sources, count_drops=self._dropped)
        self._push.start()

    def close(self) -> None:
        """Stop following, and push what waits."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        if self._push is not None:
            self._push.close()

    def routes(self, *, bearer_token: str | None = None) -> Routes:
        """What the HTTP endpoint answers with."""
        return Routes(
            registry=registry_of(*self._sources),
            health=self.health,
            targets=self.targets,
            bearer_token=bearer_token,
        )

    def health(self) -> Health:
        """Whether the store can be followed and its chain holds, with the figures behind it."""
        verified = self._verified
        details: dict[str, object] = {
            "events_folded_to_seq": self._after_seq,
            "sessions_open": self.state.open_sessions,
            "chain": "not verified yet" if verified is None else "intact" if verified.intact else "broken",
        }
        if self._failure:
            details["failure"] = self._failure
        return Health(ok=not self._failure and (verified is None or verified.intact), details=details)

    def targets(self) -> Sequence[Target]:
        """The `/metrics` endpoints of the agent processes of this host that are still running."""
        return running_targets(self._store.endpoints())

    def verify_chain(self) -> Verification:
        """Check the audit chain now; the verdict shows in `health`."""
        self._verified = self.upkeep.verify()
        return self._verified

    def notified(self, channel: str, outcome: str) -> None:
        """A message about an alert went out, or did not."""
        self._internal.notified(channel, outcome)

    def store(self, batch: list[Event]) -> None:
        """Store what became of messages; a notifier's `emit`."""
        self._store.append(batch)

    def _alerted(self, events: Sequence[Event]) -> None:
        if self.notifier is not None:
            self.notifier.write(events)

    def _dropped(self, sink: str, reason: str, events: int) -> None:
        self._internal.dropped(sink, reason, events=events)

    def _follow(self) -> None:
        while not self._stop.wait(FOLLOW_SECONDS):
            failures = [failure for step in (self._keep_up, self._look_after) if (failure := _attempt(step))]
            new = [failure for failure in failures if failure not in self._failure]
            if new:
                _log.error("serving goes on, but: %s", "; ".join(new))
            self._failure = "; ".join(failures)

    def _keep_up(self) -> None:
        if not self.catch_up():
            self._store.index_text()

    def _look_after(self) -> None:
        """Once an hour: the chain, and what is old; also while nothing can be written, so that room is made."""
        if time.monotonic() - self._upkeep_at < UPKEEP_SECONDS:
            return
        self._upkeep_at = time.monotonic()
        self.verify_chain()
        kept = self._config.store
        self.upkeep.prune(days=kept.retention_days, max_bytes=kept.retention_bytes)


def _attempt(step: Callable[[], None]) -> str:
    """Do *step*; what went wrong, or nothing. Whatever it is, serving goes on."""
    try:
        step()
    except WindowpaneError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  # whatever it is, serving goes on and says so
        _log.exception("a fault of our own")
        return f"{type(error).__name__}: {error}"
    return ""

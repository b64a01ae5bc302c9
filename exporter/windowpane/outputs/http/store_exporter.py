"""The exporter of a whole store for `windowpane serve`: fold its events once, then follow what is appended.

Three threads share the work, so that none waits for another: one folds, one compares costs with their budgets and
indexes for search, one verifies the audit chain and deletes old sessions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from windowpane.alerts.rules import configured
from windowpane.config.schema import Config
from windowpane.core.version import package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.worker import Poller, TimeLimit
from windowpane.exceptions import EventFormatError, StoreError, WindowpaneError
from windowpane.metrics.fold import AlertKey, MetricState, StateSource
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.http.maintenance import StoreMaintenance, store_labels
from windowpane.outputs.http.routes import Health, Routes, Target
from windowpane.outputs.http.service_discovery import running_targets
from windowpane.outputs.http.spending import SpendingAlerts
from windowpane.outputs.otlp.sink import OtlpSink

if TYPE_CHECKING:
    from windowpane.alerts.delivery.notifier import Notifier
    from windowpane.config.outputs import OtlpConfig
    from windowpane.core.events import Event
    from windowpane.metrics.fold import AsOf
    from windowpane.store.clickhouse.copier import Copier
    from windowpane.store.records import StoredEvent, Verification
    from windowpane.store.store import Store

FOLLOW_SECONDS: Final = 1.0
"""Interval between reads of new events."""
INDEX_EVENTS: Final = 100
"""Events indexed for search at once: those that arrive meanwhile wait for the store."""
CLOSE_SECONDS: Final = 5.0
MAINTENANCE_SECONDS: Final = 3_600.0
"""Interval between verifications of the audit chain and deletions of old sessions."""
SPENDING_SECONDS: Final = 30.0
"""Interval between comparisons of costs and quotas with their budgets."""
_READ: Final = "read"
"""The task without which the server is not healthy."""

_log = logging.getLogger(__name__)


class StoreExporter:
    """Folds a store into metrics and follows it, in the background.

    Its metrics appear once the events that were stored before it are folded: counters that show only a part of
    them would seem to have fallen.
    """

    def __init__(
        self,
        store: Store,
        *,
        config: Config | None = None,
        as_of: AsOf = "now",
        top_sessions: int = 0,
        report: Callable[[str], object] = _log.info,
    ) -> None:
        """*report* receives a line when the stored events are folded, and one when they are verified."""
        self._store = store
        self._report = report
        self._config = config or Config()
        self._boundary = ErrorBoundary(_log)
        self._stop = threading.Event()
        self._following = Poller("follow", self._follow)
        self._checking = Poller("budgets", self._check_budgets)
        self._maintaining = Poller("maintenance", self._maintain)
        self._lock = threading.Lock()
        self._failures: dict[str, str] = {}
        """The failure of each task at its last run."""
        self._verified: Verification | None = None
        self._started_at = time.monotonic()
        labels = store_labels(store)
        rules = configured(**self._config.alert_settings())
        self.notifier: Notifier | None = None
        """Optional notifier for a broken chain; the caller that sets it closes it."""
        self.maintenance = StoreMaintenance(store, rules=rules, labels=labels, on_alert=self._on_alert)
        self.spending = SpendingAlerts(
            store,
            budgets=self._config.cost_budgets,
            rules=rules,
            clock=time.time,
            on_alert=self._on_alert,
            agent=labels.agent,
        )
        self._spending_due = 0.0
        alerts = [AlertKey(rule.name, rule.severity) for rule in rules]
        self.state = MetricState(labels=labels, alerts=alerts)
        self._identity = store.identity()
        self._is_folded = threading.Event()
        """Set when the events up to `_history_end` are folded."""
        self._start_over()
        self.copier: Copier | None = None
        """Optional copier to ClickHouse, for health and metrics; the caller that sets it closes it."""
        self.internal = InternalMetrics(
            version=package_version(),
            clock=time.time,
            last_event_at=lambda: self.state.last_event_at,
            clickhouse_lag_events=lambda: None if self.copier is None else self.copier.lag_events,
        )
        self._sources = (
            StateSource(self.state, clock=time.time, as_of=as_of, top_sessions=top_sessions),
            self.spending.quotas,
            self.internal,
        )
        self._otlp: OtlpSink | None = None

    def catch_up(self) -> int:
        """Fold the events appended since the last call; returns their number."""
        self._check_file()
        folded = 0 if self._is_folded.is_set() else self._fold_history()
        return folded if self._stop.is_set() else folded + self._fold_appended()

    def _fold_history(self) -> int:
        """Fold what was stored before this exporter; returns the number of events. Then its metrics appear."""
        while True:
            folded = self._fold_appended(until=self._history_end)
            if self._stop.is_set():
                return folded
            if self._store.load_metric_base() == self._base:
                break
            self._start_over()  # another process has deleted sessions, maybe before they were folded
        self._is_folded.set()
        if self._otlp is not None:
            self._otlp.start()
        self._report_safely(f"metrics complete: events up to {self._after_seq:,} folded")
        return folded

    def _start_over(self) -> None:
        """Fold from the first event on, in addition to the sessions that retention has deleted."""
        self.state.reset()
        self._after_seq = self._unreadable_seq = 0
        self._history_end = self._store.newest_seq()
        self._base = self._store.load_metric_base()
        if self._base is not None:
            self.state.load(self._base)

    def _fold_appended(self, *, until: int | None = None) -> int:
        """Fold what is not folded yet, *until* an event is reached; returns the number of events."""
        folded = 0
        for batch in self._store.scan(after_seq=self._after_seq, on_unreadable=self._unreadable):
            self._fold_batch(batch)
            folded += len(batch)
            if self._stop.is_set() or (until is not None and self._after_seq >= until):
                return folded
        self._after_seq = max(self._after_seq, self._unreadable_seq)
        return folded

    def _report_safely(self, line: str) -> None:
        with self._boundary.contain("reporting"):
            self._report(line)

    def _check_file(self) -> None:
        """Start at the first event of a store that has taken the place of this one; counters continue."""
        identity = self._store.identity()
        if identity != self._identity:
            self._identity = identity
            if self._is_folded.is_set():
                self._after_seq = self._unreadable_seq = self._history_end = 0
            else:
                self._start_over()
            _log.warning("%s was deleted or replaced; its events are read from the first", self._store.name)

    def _fold_batch(self, batch: Sequence[StoredEvent]) -> None:
        """Fold events one by one, so that none counts twice where the store fails in between."""
        folded: list[Event] = []
        try:
            for stored in batch:
                self._fold(stored)
                self._after_seq = stored.seq
                if stored.counted and stored.seq > self._history_end:
                    folded.append(stored.event)
        finally:
            if self._otlp is not None and folded:
                with self._boundary.contain("pushing events"):
                    self._otlp.write(folded)

    def _fold(self, stored: StoredEvent) -> None:
        """Fold one event. Raises `StoreError` without its label, before anything of it was counted."""
        try:
            self.state.apply(stored.event, counted=stored.counted)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # the other events are folded
            self._boundary.log_failure("folding an event", error)
            self.internal.record_drop("metrics", "error")

    def _unreadable(self, seq: int, error: EventFormatError) -> None:
        """Skip stored bytes that are not an event; verifying the chain reports their position."""
        self._unreadable_seq = seq
        self._boundary.log_failure("reading a stored event", error)
        self.internal.record_drop("metrics", "error")

    def start(self) -> None:
        """Fold, follow and maintain the store until `close`."""
        self._started_at = time.monotonic()
        self._following.start()
        self._checking.start()

    def wake(self) -> None:
        """Read the store now: this process has appended to it."""
        self._following.wake()

    def push(self, otlp: OtlpConfig) -> None:
        """Push the metrics once they appear, and events stored after this exporter as log records."""
        self._otlp = OtlpSink(otlp, sources=lambda: self._sources, count_drops=self.internal.record_drop)
        if self._is_folded.is_set():
            self._otlp.start()

    def close(self) -> None:
        """Stop following, and push pending events and metrics."""
        self._stop.set()
        limit, threads = TimeLimit(CLOSE_SECONDS), (self._following, self._checking, self._maintaining)
        for thread in threads:
            thread.stop(CLOSE_SECONDS)
        for thread in threads:
            thread.close(limit.remaining)
        if self._otlp is not None:
            self._otlp.close()

    def routes(self, *, bearer_token: str | None = None) -> Routes:
        """Return the content of the HTTP endpoint."""
        return Routes(
            registry=registry_of(*self._sources),
            health=self.health,
            targets=self.targets,
            bearer_token=bearer_token,
        )

    def health(self) -> Health:
        """Return whether the store can be read, with details; a broken chain and other failures stop nothing."""
        verified, is_folded = self._verified, self._is_folded.is_set()
        details: dict[str, object] = {
            "metrics": "complete" if is_folded else f"folding events up to seq {self._history_end}",
            "events_folded_to_seq": self._after_seq,
            "sessions_open": self.state.open_sessions,
            "chain": "not verified yet" if verified is None else "intact" if verified.intact else "broken",
        }
        failures = dict(self._failures)
        if failures:
            details["failure"] = "; ".join(dict.fromkeys(failures.values()))
        if self.copier is not None:
            details["clickhouse"] = self.copier.health()
        is_broken = verified is not None and not verified.intact
        return Health(
            ok=_READ not in failures,
            degraded=is_broken or bool(failures),
            is_starting=not is_folded,
            details=details,
        )

    def targets(self) -> Sequence[Target]:
        """Return the `/metrics` endpoints of this host's agent processes that still run."""
        return running_targets(self._store.endpoints())

    def verify_chain(self) -> Verification:
        """Verify the audit chain now; the result appears in `health`."""
        self._verified = self.maintenance.verify()
        return self._verified

    def _on_alert(self, events: Sequence[Event]) -> None:
        if self.notifier is not None:
            self.notifier.write(events)

    def _follow(self) -> float:
        self._attempt(_READ, self.catch_up)
        if self._is_folded.is_set() and not self._stop.is_set():
            self._maintaining.start()
        return FOLLOW_SECONDS

    def _check_budgets(self) -> float:
        """Compare costs with budgets if it is time, and index; return the seconds to the next call."""
        if time.monotonic() >= self._spending_due:
            self._spending_due = time.monotonic() + SPENDING_SECONDS
            self._attempt("budgets", self.spending.check)
        if not self._is_folded.is_set():
            return FOLLOW_SECONDS  # the metrics come first
        is_behind = self._attempt("index", lambda: self._store.index_text(limit=INDEX_EVENTS))
        return 0.0 if is_behind else FOLLOW_SECONDS

    def _maintain(self) -> float:
        """Verify the audit chain, and delete old sessions: not at the start, nor before they are folded."""
        self._attempt("verify", self._verify_and_report)
        if time.monotonic() - self._started_at >= MAINTENANCE_SECONDS:
            self._attempt("prune", self._prune)  # also on a full disk, to free space
        return MAINTENANCE_SECONDS

    def _attempt(self, name: str, task: Callable[[], object]) -> object:
        """Return the result of *task*, or None and keep its failure until it succeeds; serving continues."""
        result, failure = _attempted(task)
        with self._lock:
            is_new = bool(failure) and failure not in self._failures.values()
            failures = self._failures | {name: failure}
            self._failures = {name: failure for name, failure in failures.items() if failure}
        if is_new:
            _log.error("still serving, but: %s", failure)
        return result

    def _verify_and_report(self) -> None:
        is_first = self._verified is None
        verified = self.verify_chain()
        if is_first:
            self._report_safely(f"audit chain {'intact' if verified.intact else 'BROKEN'}")

    def _prune(self) -> None:
        settings = self._config.store
        self.maintenance.prune(
            days=settings.retention_days,
            max_bytes=settings.retention_bytes,
            projects=self._config.project_retention(),
        )


def _attempted(task: Callable[[], object]) -> tuple[object, str]:
    """Run *task*; return its result, and its failure or an empty text."""
    try:
        return task(), ""
    except WindowpaneError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001  # serving continues and reports it
        _log.exception("unexpected failure")
        return None, f"{type(error).__name__}: {error}"

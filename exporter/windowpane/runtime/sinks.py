"""The sinks of a process: the event store, the metrics with their endpoint, and the alert notifier.

Store and metrics may each be missing or broken without harm to the other. In a forked child each starts over at
the first event: a connection, a lock or a listening thread of the parent is never used.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from windowpane.alerts.delivery.channels import channel_for
from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.delivery.outbox import Outbox
from windowpane.alerts.delivery.quiet_hours import QuietHours
from windowpane.core.events import Event
from windowpane.core.protocols import Digester
from windowpane.core.version import package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import WindowpaneError
from windowpane.metrics.families import Family, FamilySource
from windowpane.metrics.fold import AlertKey, MetricState, StateSource
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.labels import AdmittedNames, LabelPolicy, model_label
from windowpane.metrics.prometheus import registry_of
from windowpane.models.catalog import packaged_catalog
from windowpane.runtime.current import process_digester
from windowpane.serve.authentication import TlsOptions
from windowpane.serve.http_server import Health, MetricsServer, Routes, Target, start_http_server
from windowpane.serve.service_discovery import running_targets, target_at

if TYPE_CHECKING:
    from pathlib import Path

    from windowpane.alerts.delivery.notifier import CountNotifications, Emit
    from windowpane.config.schema import Config
    from windowpane.store.sqlite import SqliteStore

_log = logging.getLogger("windowpane")


class StoreSink:
    """Writes events to the store; without a store, because it cannot be opened, the other sinks still work."""

    atomic = True

    def __init__(self, open_store: Callable[[], SqliteStore], internal: InternalMetrics) -> None:
        self._open = open_store
        self._internal = internal
        self._inherited: list[SqliteStore] = []
        self._process = os.getpid()
        self._store: SqliteStore | None = None
        try:
            self._store = open_store()
        except WindowpaneError as error:
            _log.error("events are not stored: %s", error)

    @property
    def available(self) -> bool:
        """True if there is a store."""
        return self._store is not None

    @property
    def store(self) -> SqliteStore | None:
        """The store of this process; opened again in a forked child."""
        if self._store is not None and self._process != os.getpid():
            self._inherited.append(self._store)
            self._store, self._process = self._open(), os.getpid()
        return self._store

    def digester(self) -> Digester:
        """Return the store's digester; without a store, one for this process alone."""
        store = self.store
        return process_digester() if store is None else store.digester()

    def write(self, batch: Sequence[Event]) -> None:
        """Append a batch; without a store count it as dropped. Raises `StoreError`."""
        store = self.store
        if store is None:
            self._internal.record_drop("store", "unavailable", len(batch))
            return
        started = time.perf_counter()
        store.append(batch)
        self._internal.record_store_write(time.perf_counter() - started)

    def flush(self) -> None:
        """Return when everything written survives a power cut."""
        store = self.store
        if store is not None:
            store.flush()

    def close(self) -> None:
        """Flush and close the store."""
        store, self._store = self.store, None
        if store is not None:
            store.close()


class MetricsSink:
    """Folds events into metrics and serves them over HTTP."""

    def __init__(self, config: Config, *, alerts: Sequence[AlertKey], queue_events: Callable[[], int]) -> None:
        self._config = config
        self._alerts = tuple(alerts)
        self._queue_events = queue_events
        self._store_sink: StoreSink | None = None
        self._boundary = ErrorBoundary(_log)
        self.internal = InternalMetrics(
            version=package_version(),
            clock=time.time,
            last_event_at=lambda: self.state.last_event_at,
            queue_events=queue_events,
        )
        self._start_over()

    def _start_over(self) -> None:
        self._serving = False
        self._fallback_names = AdmittedNames()
        self.server: MetricsServer | None = None
        self.state = MetricState(
            labels=LabelPolicy(agent=self._agent_label, model=model_label(packaged_catalog())),
            alerts=self._alerts,
        )
        self.sources: tuple[FamilySource, ...] = (
            _OneProcessSource(StateSource(self.state, clock=time.time, top_sessions=self._config.session_label)),
            _OneProcessSource(self.internal),
        )
        """All metrics of this process, for the endpoint and for a push."""

    def after_fork(self) -> None:
        """Start from zero in a child; its endpoint is opened at its first event."""
        self.internal.reset()
        self._start_over()

    def serve(self, store_sink: StoreSink | None = None) -> None:
        """Open the endpoint and register it in the store."""
        self._serving = True
        self._store_sink = store_sink or self._store_sink
        with self._boundary.contain("serving metrics"):
            self.server = self._listen()
        with self._boundary.contain("registering the endpoint"):
            self._register()

    def write(self, batch: Sequence[Event]) -> None:
        """Fold a batch."""
        if not self._serving:
            self.serve()
        self.state.write(batch)

    def close(self) -> None:
        """Stop serving and remove the endpoint from the store's register."""
        server, self.server = self.server, None
        if server is not None:
            server.close()
            store = self._store
            if store is not None:
                with self._boundary.contain("unregistering the endpoint"):
                    store.unregister_endpoint(server.host, server.port)

    @property
    def _store(self) -> SqliteStore | None:
        return None if self._store_sink is None else self._store_sink.store

    def _listen(self) -> MetricsServer:
        settings = self._config.server
        token, tls = settings.bearer_token, settings.tls
        routes = Routes(
            registry=registry_of(*self.sources),
            health=self._health,
            targets=self._targets,
            bearer_token=None if token is None else token.get_secret_value(),
        )
        options = None if tls is None else TlsOptions(tls.certificate, tls.key, tls.client_ca)
        server = start_http_server(
            routes, host=settings.address, port=settings.port, tls=options, insecure=settings.insecure
        )
        _log.info("metrics are on %s", server.url)
        return server

    def _register(self) -> None:
        store, server = self._store, self.server
        if store is not None and server is not None:
            store.register_endpoint(
                server.host, server.port, pid=os.getpid(), started_at=time.time(), scheme=server.scheme
            )

    def _agent_label(self, agent: str) -> str:
        """Return the label of an agent, the same in every process that shares the store."""
        store = self._store
        if store is not None:
            with self._boundary.contain("admitting an agent's name"):
                return store.admit_agent(agent)
        return self._fallback_names(agent)

    def _health(self) -> Health:
        return Health(
            details={
                "queued_events": self._queue_events(),
                "dropped_events": self.internal.dropped_events(),
                "open_sessions": self.state.open_sessions,
                "stores_events": self._store_sink is not None and self._store_sink.available,
            }
        )

    def _targets(self) -> list[Target]:
        store, server = self._store, self.server
        if store is not None:
            return running_targets(store.endpoints())
        return [] if server is None else [target_at(server.host, server.port, server.scheme)]


class _OneProcessSource:
    """A source that is empty in a forked child, where an inherited reader may still collect from it."""

    def __init__(self, source: FamilySource) -> None:
        self._source = source
        self._process = os.getpid()

    def collect(self) -> list[Family]:
        return list(self._source.collect()) if os.getpid() == self._process else []


def configured_notifier(
    config: Config, *, outbox: Path | None, emit: Emit, count: CountNotifications | None = None
) -> Notifier:
    """Return a notifier for `notify.channels`, not started. Without *outbox* pending messages are in memory only.

    Raises `ConfigurationError` for an address that cannot be used.
    """
    quiet_hours = {
        channel_for(channel.url.get_secret_value(), min_severity=channel.min_severity): channel.quiet_hours
        for channel in config.notify.channels
    }
    return Notifier(
        list(quiet_hours),
        Outbox(outbox),
        public_url=config.public_url,
        quiet_hours={channel.key: QuietHours.parse(hours) for channel, hours in quiet_hours.items() if hours},
        emit=emit,
        count=count,
    )

"""The sink of a process's metrics, with their endpoint.

In a forked child it starts over at the first event: a listening thread of the parent is never used.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from windowpane.core.events import Event
from windowpane.core.version import package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.metrics.families import Family, FamilySource
from windowpane.metrics.fold import AlertKey, MetricState, StateSource
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.labels import AdmittedNames, LabelPolicy, model_label
from windowpane.metrics.prometheus import registry_of
from windowpane.models.catalog import packaged_catalog
from windowpane.outputs.http.http_server import MetricsServer, start_http_server
from windowpane.outputs.http.routes import Health, Routes, Target
from windowpane.outputs.http.service_discovery import running_targets, target_at, this_machine

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.outputs.remote.sink import RemoteSink
    from windowpane.outputs.runtime.store_sink import StoreSink
    from windowpane.store.store import Store

_log = logging.getLogger("windowpane")


class MetricsSink:
    """Folds events into metrics and serves them over HTTP."""

    def __init__(self, config: Config, *, alerts: Sequence[AlertKey], queue_events: Callable[[], int]) -> None:
        self._config = config
        self._alerts = tuple(alerts)
        self._queue_events = queue_events
        self._store_sink: StoreSink | RemoteSink | None = None
        self._boundary = ErrorBoundary(_log)
        self.internal = InternalMetrics(
            version=package_version(),
            clock=time.time,
            last_event_at=lambda: self.state.last_event_at,
            queue_events=queue_events,
            store_available=lambda: None if self._store_sink is None else self._store_sink.available,
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

    def serve(self, store_sink: StoreSink | RemoteSink | None = None) -> None:
        """Open the endpoint and register it in the store."""
        self._serving = True
        if store_sink is not None:
            self._store_sink = store_sink
            store_sink.on_opened.append(self._register)
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
                    store.unregister_endpoint(server.host, server.port, machine=this_machine())

    @property
    def _store(self) -> Store | None:
        return None if self._store_sink is None else self._store_sink.store

    def _listen(self) -> MetricsServer:
        settings = self._config.server
        token = settings.bearer_token
        routes = Routes(
            registry=registry_of(*self.sources),
            health=self._health,
            targets=self._targets,
            bearer_token=None if token is None else token.get_secret_value(),
        )
        server = start_http_server(
            routes, host=settings.address, port=settings.port, tls=settings.tls, insecure=settings.insecure
        )
        _log.info("metrics are on %s", server.url)
        return server

    def _register(self) -> None:
        store, server = self._store, self.server
        if store is not None and server is not None:
            origin = {"scheme": server.scheme, "machine": this_machine()}
            store.register_endpoint(server.host, server.port, pid=os.getpid(), started_at=time.time(), **origin)

    def _agent_label(self, agent: str) -> str:
        """Return the label of an agent, the same in every process that shares the store."""
        store = self._store
        if store is not None:
            with self._boundary.contain("admitting an agent's name"):
                return store.admit_agent(agent)
        return self._fallback_names(agent)

    def _health(self) -> Health:
        problem = "" if self._store_sink is None else self._store_sink.problem
        return Health(
            degraded=bool(problem),
            details={
                "queued_events": self._queue_events(),
                "dropped_events": self.internal.dropped_events(),
                "open_sessions": self.state.open_sessions,
                "stores_events": self._store_sink is not None and self._store_sink.available,
                "store_problem": problem,
            },
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

"""What a process gives its events to: the store, and the metrics with their endpoint.

Both are sinks of the pipeline. Either may be missing or broken without harm to the other, and in a forked child
each starts over at the first event: a connection, a lock or a listening thread of the parent is never used.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from windowpane.core.events import Event
from windowpane.core.protocols import Digester
from windowpane.core.version import package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import WindowpaneError
from windowpane.metrics.families import Family, FamilySource
from windowpane.metrics.fold import AlertKey, MetricState
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.labels import AdmittedNames, LabelPolicy, model_label
from windowpane.metrics.prometheus import StateSource, registry_of
from windowpane.models.catalog import PackagedCatalog
from windowpane.runtime.current import process_digester
from windowpane.serve.http_server import Health, MetricsServer, Routes, Target, TlsOptions, start_http_server
from windowpane.serve.service_discovery import running_targets, target_at

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.store.sqlite import SqliteStore

_log = logging.getLogger("windowpane")

OpenStore = Callable[[], "SqliteStore"]
_MODELS: Final = PackagedCatalog()


class StoreOutput:
    """The event store as a sink; without one, when it cannot be opened, everything else still works."""

    atomic = True

    def __init__(
        self, open_store: OpenStore, *, timed: Callable[[float], None], missed: Callable[[int], None]
    ) -> None:
        """*timed* hears how long a batch took, *missed* of events there is no store for."""
        self._open = open_store
        self._timed = timed
        self._missed = missed
        self._inherited: list[SqliteStore] = []
        self._process = os.getpid()
        self._store: SqliteStore | None = None
        try:
            self._store = open_store()
        except WindowpaneError as error:
            _log.error("events are not stored: %s", error)

    @property
    def available(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    @property
    def store(self) -> SqliteStore | None:
        """This process's store; opened again in a forked child."""
        if self._store is not None and self._process != os.getpid():
            self._inherited.append(self._store)
            self._store, self._process = self._open(), os.getpid()
        return self._store

    def digester(self) -> Digester:
        """The store's digests; without a store, digests of this process alone."""
        store = self.store
        return process_digester() if store is None else store.digester()

    def write(self, batch: Sequence[Event]) -> None:
        """Append a batch. Raises `StoreError`."""
        store = self.store
        if store is None:
            self._missed(len(batch))
            return
        begun = time.perf_counter()
        store.append(batch)
        self._timed(time.perf_counter() - begun)

    def flush(self) -> None:
        """Return when what was written survives a power cut."""
        store = self.store
        if store is not None:
            store.flush()

    def close(self) -> None:
        """Flush and close."""
        store, self._store = self.store, None
        if store is not None:
            store.close()


class MetricsOutput:
    """The metric fold as a sink, with the endpoint that serves it."""

    def __init__(
        self,
        config: Config,
        *,
        alerts: Sequence[AlertKey],
        queue_events: Callable[[], int],
    ) -> None:
        self._config = config
        self._alerts = tuple(alerts)
        self._queue_events = queue_events
        self._output: StoreOutput | None = None
        self._boundary = ErrorBoundary(_log)
        self._build()

    def _build(self) -> None:
        self._process = os.getpid()
        self._serving = False
        self._fallback = AdmittedNames()
        self.server: MetricsServer | None = None
        self.state = MetricState(
            labels=LabelPolicy(agent=self._admit, model=model_label(_MODELS)), alerts=self._alerts
        )
        self.internal = InternalMetrics(
            version=package_version(),
            clock=time.time,
            last_event_at=lambda: self.state.last_event_at,
            queue_events=self._queue_events,
        )
        self.sources: tuple[FamilySource, ...] = (
            _OwnProcess(StateSource(self.state, clock=time.time, top_sessions=self._config.session_label)),
            _OwnProcess(self.internal),
        )
        """Everything this process can tell, for the endpoint and for a push."""

    def after_fork(self) -> None:
        """Start from zero in a child; its endpoint is opened with its first event."""
        self._build()

    def serve(self, output: StoreOutput | None = None) -> None:
        """Open the endpoint and register it in the store of *output*."""
        self._serving = True
        self._output = output or self._output
        with self._boundary.contain("serving metrics"):
            self.server = self._listen()
        with self._boundary.contain("registering the endpoint"):
            self._register()

    def hook(self, name: str, seconds: float) -> None:
        """A hook kept the agent waiting."""
        self.internal.hook(name, seconds)

    def not_stored(self, events: int) -> None:
        """There is no store: events that were meant for it are as lost as those it refuses."""
        self.internal.dropped("store", "unavailable", events=events)

    def store_took(self, seconds: float) -> None:
        """The store took a batch."""
        self.internal.store_write(seconds)

    def dropped(self, sink: str, reason: str, events: int) -> None:
        """Events did not reach a sink."""
        self.internal.dropped(sink, reason, events=events)

    def notified(self, channel: str, outcome: str) -> None:
        """A message about an alert went out, or did not."""
        self.internal.notified(channel, outcome)

    def write(self, batch: Sequence[Event]) -> None:
        """Fold a batch."""
        if not self._serving:
            self.serve()
        self.state.write(batch)

    def close(self) -> None:
        """Stop serving."""
        server, self.server = self.server, None
        if server is not None:
            server.close()
            store = None if self._output is None else self._output.store
            if store is not None:
                with self._boundary.contain("unregistering the endpoint"):
                    store.unregister_endpoint(server.host, server.port)

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
        server = start_http_server(routes, host=settings.address, port=settings.port, tls=options)
        _log.info("metrics are on %s", server.url)
        return server

    def _register(self) -> None:
        store = None if self._output is None else self._output.store
        if store is not None and self.server is not None:
            server = self.server
            store.register_endpoint(
                server.host, server.port, pid=os.getpid(), started_at=time.time(), scheme=server.scheme
            )

    def _admit(self, agent: str) -> str:
        """The label of an agent, the same in every process that shares the store."""
        store = None if self._output is None else self._output.store
        if store is not None:
            with self._boundary.contain("admitting an agent's name"):
                return store.admit_agent(agent)
        return self._fallback(agent)

    def _health(self) -> Health:
        return Health(
            details={
                "queued_events": self._queue_events(),
                "dropped_events": self.internal.dropped_events(),
                "open_sessions": self.state.open_sessions,
                "stores_events": self._output is not None and self._output.available,
            }
        )

    def _targets(self) -> list[Target]:
        store = None if self._output is None else self._output.store
        if store is None:
            server = self.server
            return [] if server is None else [target_at(server.host, server.port, server.scheme)]
        return running_targets(store.endpoints())


class _OwnProcess:
    """A source that is silent in a forked child, where an inherited reader may still ask it."""

    def __init__(self, source: FamilySource) -> None:
        self._source = source
        self._process = os.getpid()

    def collect(self) -> list[Family]:
        """What the source says, in the process that made it."""
        return list(self._source.collect()) if os.getpid() == self._process else []

"""`windowpane.start()`: the outputs of a process, once.

Events of every agent of the process go through one pipeline to the alert engine, the notifier, the store and the
metrics. A wrong setting is an error at once; anything that breaks later, or is missing, is logged and worked
around, because an agent must never fail for its telemetry.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from windowpane.alerts.engine import AlertEngine
from windowpane.config.loading import load_config
from windowpane.config.schema import Config
from windowpane.core.events import Event
from windowpane.core.protocols import Digester
from windowpane.core.redaction import redact
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.metrics.fold import AlertKey
from windowpane.otlp.sink import OtlpOutput
from windowpane.runtime.current import running_outputs, set_running_outputs
from windowpane.runtime.notifications import configured_notifier
from windowpane.runtime.pipeline import CLOSE_SECONDS, Pipeline
from windowpane.runtime.sinks import MetricsOutput, StoreOutput
from windowpane.store.chain import key_in
from windowpane.store.sqlite import SqliteStore

_log = logging.getLogger("windowpane")
_starting: Final = threading.Lock()
"""Held while the outputs are started or unregistered, so that a process has one set."""


class Runtime:
    """The running outputs of this process. Made by `start`."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._boundary = ErrorBoundary(_log)
        self._closed = False
        rules = config.alert_rules()
        open_store = _store_opener(config)
        self._metrics = MetricsOutput(
            config,
            alerts=[AlertKey(rule.name, rule.severity) for rule in rules],
            queue_events=lambda: self.pipeline.queued_events,
        )
        self._store = StoreOutput(open_store, timed=self._metrics.store_took, missed=self._metrics.not_stored)
        self._otlp = OtlpOutput(
            config.otlp, sources=lambda: self._metrics.sources, count_drops=self._metrics.dropped
        )
        self._notifier = configured_notifier(
            config,
            outbox=config.store.path if self._store.available else None,
            emit=self.emit,
            count=self._metrics.notified,
        )
        # Alerts first: one that was raised is never lost between the store and the outbox.
        self.pipeline = Pipeline(
            {"alerts": self._notifier, "store": self._store, "metrics": self._metrics, "otlp": self._otlp},
            engine=AlertEngine(rules),
            count_drops=self._metrics.dropped,
        )
        self.digest: Digester = self._store.digester()
        """Digests of content, keyed by the store."""
        self._metrics.serve(self._store)
        self._otlp.start()
        self._notifier.start()

    @property
    def url(self) -> str | None:
        """Where this process's metrics are; None when no port could be listened on."""
        server = self._metrics.server
        return None if server is None else server.url

    @property
    def store(self) -> SqliteStore | None:
        """The event store; None when it could not be opened."""
        return self._store.store

    def emit(self, batch: list[Event]) -> None:
        """Take a list of events; never blocks, never raises."""
        self.pipeline.put(batch)

    def record_hook(self, hook: str, seconds: float) -> None:
        """Record how long *hook* kept the agent waiting."""
        self._metrics.hook(hook, seconds)

    def listen(self, event_type: str, listener: Callable[[Event], object]) -> None:
        """Call *listener* with every event of a type, off the agent's thread."""
        self.pipeline.listen(event_type, listener)

    def flush(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until everything emitted so far is stored for good and counted; False when time ran out."""
        return self.pipeline.flush(timeout_seconds)

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Write and deliver what waits, then release everything. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self.pipeline.flush(timeout_seconds)
        for what, close in (
            ("the notifier", lambda: self._notifier.close(timeout_seconds)),
            ("the pipeline", lambda: self.pipeline.close(timeout_seconds)),
            ("the push", lambda: self._otlp.close(timeout_seconds)),
            ("the metrics", self._metrics.close),
            ("the store", self._store.close),
        ):
            with self._boundary.contain(f"closing {what}"):
                close()
        _unregister(self)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(
    *,
    port: int | None = None,
    address: str | None = None,
    store: str | Path | None = None,
    capture: bool | None = None,
    notify: Sequence[str] | None = None,
    otlp_endpoint: str | None = None,
    public_url: str | None = None,
    session_label: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Runtime:
    """Start the outputs of this process, or return those that run already.

    *port* 0 takes a free one; a busy one gives way to a free one. *notify* are addresses of channels. *config* is
    a YAML file and *settings* the same shape as a mapping; the named arguments win over both, and the environment
    over the file. Raises `ConfigurationError` for a setting that cannot be used.
    """
    with _starting:
        running = running_outputs()
        if isinstance(running, Runtime):
            return running
        given = _given(
            {
                "server": {"port": port, "address": address},
                "store": {"path": store, "capture": capture},
                "notify": {"channels": None if notify is None else [{"url": url} for url in notify]},
                "otlp": {"endpoint": otlp_endpoint},
                "public_url": public_url,
                "session_label": session_label,
            }
        )
        arguments = {**(settings or {})}
        for key, value in given.items():
            below = arguments.get(key)
            arguments[key] = {**below, **value} if isinstance(below, Mapping) else value
        started = Runtime(load_config(config, arguments=arguments))
        set_running_outputs(started)
        atexit.register(stop)
        return started


def stop(timeout_seconds: float = CLOSE_SECONDS) -> None:
    """Close what `start` started; nothing when nothing runs."""
    running = running_outputs()
    if isinstance(running, Runtime):
        running.close(timeout_seconds)


def _unregister(runtime: Runtime) -> None:
    with _starting:
        if running_outputs() is runtime:
            set_running_outputs(None)
            atexit.unregister(stop)


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was given, sections without any setting left out."""
    found: dict[str, Any] = {}
    for key, value in arguments.items():
        kept = _given(value) if isinstance(value, Mapping) else value
        if kept is not None and kept != {}:
            found[key] = kept
    return found


def _store_opener(config: Config) -> Callable[[], SqliteStore]:
    """What opens the store. Raises `ConfigurationError` when the audit key cannot be used."""
    key = key_in(config.store.audit_key_file, "store.audit_key_file")

    def open_store() -> SqliteStore:
        return SqliteStore(
            config.store.path, capture=config.store.capture, redact=lambda text: redact(text).text, audit_key=key
        )

    return open_store

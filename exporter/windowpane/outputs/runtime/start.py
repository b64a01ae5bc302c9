"""`windowpane.start()`: the outputs of a process.

Events of every agent of the process go through one pipeline to the alert engine, the notifier, the store and the
metrics. An invalid setting is an error at once; anything that breaks later, or is missing, is logged and worked
around, because an agent must never fail because of its telemetry.
"""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import configured
from windowpane.config.loading import load_config
from windowpane.config.paths import local_base
from windowpane.config.schema import Config
from windowpane.core.events import Event
from windowpane.core.protocols import Digester
from windowpane.core.redaction import redact
from windowpane.core.store_names import ENDPOINTS, StoreName, StoreUrl
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.forks import ForkLock, follow_forks
from windowpane.effects.worker import TimeLimit, run_within
from windowpane.exceptions import ConfigurationError
from windowpane.metrics.fold import AlertKey
from windowpane.outputs.http.authentication import require_protection
from windowpane.outputs.otlp.sink import OtlpSink
from windowpane.outputs.runtime.children import ChildRecords, finish_at_end, follow_child, parent
from windowpane.outputs.runtime.current import StoredWindow, running_outputs, set_running_outputs
from windowpane.outputs.runtime.metrics_sink import MetricsSink
from windowpane.outputs.runtime.notifier import configured_notifier
from windowpane.outputs.runtime.pipeline import CLOSE_SECONDS, FLUSH_SECONDS, Pipeline
from windowpane.outputs.runtime.store_sink import StoreSink
from windowpane.outputs.runtime.task_queue import TaskQueue
from windowpane.store.keys import AuditKeys, key_in, keys_in, load_key, load_old_keys
from windowpane.store.open import open_store
from windowpane.store.store import Store
from windowpane.store.writes.spool import Spool

if TYPE_CHECKING:
    from windowpane.metrics.internal import InternalMetrics
    from windowpane.outputs.remote.sink import RemoteSink

BUSY_SECONDS: Final = 1.0
"""The longest that one attempt to write waits for another process; meanwhile the other sinks wait too."""

START_SECONDS: Final = 2.0
"""The longest that an agent's start waits for the server of its store; a file is there or not."""

_log = logging.getLogger("windowpane")
_starting: Final = ForkLock()
"""Held while the outputs are started or unregistered, so that a process has one set."""


_runtimes: Final[weakref.WeakSet[Runtime]] = weakref.WeakSet()


class Runtime:
    """The running outputs of this process. Made by `start`."""

    def __init__(self, config: Config) -> None:
        self.config = config
        server = config.server
        require_protection(
            server.address, has_token=server.bearer_token is not None, tls=server.tls, insecure=server.insecure
        )
        self._boundary = ErrorBoundary(_log)
        self._closed = False
        self._process = os.getpid()
        self._is_finishing = False
        self._follows_children = False
        rules = configured(**config.alert_settings())
        self._metrics = MetricsSink(
            config,
            alerts=[AlertKey(rule.name, rule.severity) for rule in rules],
            queue_events=lambda: self.pipeline.queued_events + self._store.unsent_events,
        )
        internal = self._metrics.internal
        self.record_hook: Callable[[str, float], None] = internal.record_hook
        """Records how long a hook kept the agent waiting."""
        self.record_drop: Callable[[str, str, int], None] = internal.record_drop
        """Counts what did not reach a sink, with the reason."""
        self._store = _store_sink(config, internal)
        self._otlp = OtlpSink(
            config.otlp, sources=lambda: self._metrics.sources, count_drops=internal.record_drop
        )
        self._notifier = configured_notifier(
            config,
            outbox=None if self._store.store is None else local_base(config.store.path),
            emit=self.emit,
            count=internal.record_notification,
        )
        # The notifier comes first, so that a fired alert is never lost between the store and the outbox.
        self.pipeline = Pipeline(
            {"alerts": self._notifier, "store": self._store, "metrics": self._metrics, "otlp": self._otlp},
            engine=AlertEngine(rules, with_subjects=config.store.capture),
            count_drops=internal.record_drop,
        )
        self.observations = TaskQueue(
            "observer", count_drop=lambda reason: internal.record_drop("observer", reason)
        )
        """The calls of observed clients, which become events off the agent's thread."""
        self._store.on_replaced.append(self._notifier.release_files)
        self._metrics.serve(self._store)
        self._otlp.start()
        self._notifier.start()
        self._children = ChildRecords(local_base(config.store.path), internal.record_drop)
        self._children.report()
        self._children.start(parent(), self.pipeline, self.observations.worker)
        _runtimes.add(self)

    @property
    def url(self) -> str | None:
        """URL of this process's metrics; None if it cannot listen on a port."""
        server = self._metrics.server
        return None if server is None else server.url

    @property
    def store(self) -> Store | None:
        """The event store; None if it could not be opened."""
        return self._store.store

    @property
    def digest(self) -> Digester:
        """The store's keyed digester."""
        return self._store.digest

    def earlier_compaction_tokens(self, agent: str, model: str, *, project: str) -> int | None:
        """Return the level at which earlier sessions of *agent* with *model* were compacted; None without one.

        Reads the store: not for the agent's thread.
        """
        level = None
        with self._boundary.contain("reading earlier sessions"):
            if self.store is not None:
                level = self.store.last_compaction_tokens(agent, model, project=project)
        return level

    def stored_window(self, session_id: str) -> StoredWindow | None:
        """Return the window in which a stored session ends; None without one.

        Reads the store: not for the agent's thread.
        """
        with self._boundary.contain("reading the session so far"):
            row = None if self.store is None else self.store.session(session_id)
            if self.store is not None and row is not None and row.turns:
                blocks = self.store.blocks_at(session_id, row.turns)
                return StoredWindow(row.used_tokens, frozenset(block.digest for block in blocks))
        return None

    def emit(self, batch: list[Event]) -> None:
        """Queue a list of events; never blocks, never raises."""
        self.pipeline.put(batch)

    def listen(self, event_type: str, listener: Callable[[Event], object]) -> None:
        """Call *listener* with every event of a type, on the pipeline's thread."""
        self.pipeline.listen(event_type, listener)

    def warn_of_other_settings(self, config: Config) -> None:
        """Warn that *config* differs from the settings of these outputs, by the names of the settings."""
        names = _different_settings(self.config.model_dump(), config.model_dump())
        if names:
            _log.warning(
                "windowpane.start() has no effect: the outputs of this process run with other values of %s; call "
                "windowpane.stop() first, or give all settings to the first start()",
                ", ".join(names),
            )

    def flush(self, timeout_seconds: float = FLUSH_SECONDS) -> bool:
        """Return True if everything observed and emitted so far is counted and stored durably.

        False if some of it is not within *timeout_seconds*: it waits and is retried. Also False, once, after
        events were lost: dropped, refused, or stored in a file that was deleted.
        """
        limit = TimeLimit(timeout_seconds)
        observed = self.observations.flush(timeout_seconds)
        is_whole = self._children.report()
        return self.pipeline.flush(limit.remaining) and observed and is_whole

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Write and deliver pending events, then release all resources, within *timeout_seconds*.

        Events that the store does not take in time are spooled to a file beside it; the next process that starts
        with the store takes them in. A second call does nothing.
        """
        if self._closed:
            return
        self._closed = True
        limit = TimeLimit(timeout_seconds)
        self.observations.close(limit.share(0.2))
        self.pipeline.flush(limit.share(0.4))
        self._close_part("the notifier", limit.share(0.25), self._notifier.close)
        self.pipeline.close(limit.share(0.7))
        self._close_part("the push", limit.share(0.5), self._otlp.close)
        self._close_part("the metrics", limit.share(0.5), lambda _: self._metrics.close())
        self._close_part(
            "the store",
            limit.remaining,
            lambda _: self._store.release() if self._is_finishing else self._store.close(),
        )
        self._children.report()
        self._children.end()
        if not self._is_finishing:
            _unregister(self)

    def finish(self) -> None:
        """Close at the end of the process; what is emitted later is stored before `emit` returns."""
        if self._process != os.getpid() and self.pipeline.is_unused and not self.observations.waiting:
            self._children.end()
            return  # a child that emitted nothing
        self._is_finishing = True
        self.observations.works_late = self.pipeline.writes_late_events = True
        self.close()

    def before_fork(self) -> None:
        """Do nothing: the parts follow the fork."""

    def after_fork_in_parent(self) -> None:
        """Do nothing."""

    def after_fork(self) -> None:
        """Finish with the child, which may end without `atexit` handlers."""
        parent_id = None if self._closed else os.getppid()
        self._children.start(parent_id, self.pipeline, self.observations.worker)
        if not self._follows_children:
            self._follows_children = True  # in the children of this child, too
            follow_child(self, Runtime.finish)

    def _close_part(self, name: str, seconds: float, close: Callable[[float], object]) -> None:
        """Close one part in at most *seconds*; a failure or a part that takes longer is logged."""

        def call() -> None:
            with self._boundary.contain(f"closing {name}"):
                close(seconds)

        if not run_within(seconds, call):
            _log.warning("closing %s takes longer than %.1f s; it continues in the background", name, seconds)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(
    *,
    port: int | None = None,
    address: str | None = None,
    store: str | StoreName | None = None,
    capture: bool | None = None,
    notify: Sequence[str] | None = None,
    otlp_endpoint: str | None = None,
    public_url: str | None = None,
    session_label: int | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Runtime:
    """Start the outputs of this process, or return those that already run, whose settings stay as they are.

    *store* is the file of the event store or its URL; with `https://` the events are sent to that server instead.
    For *port* 0 and for a busy port a free one is used. *notify* lists addresses of channels. *config* is a YAML
    file and *settings* a mapping of the same shape; the named arguments override both, and the environment
    overrides the file. Raises `ConfigurationError` for a setting that cannot be used.
    """
    overrides = _without_none(
        {
            "server": {"port": port, "address": address},
            "store": {"path": store, "capture": capture},
            "notify": {"channels": None if notify is None else [{"url": url} for url in notify]},
            "otlp": {"endpoint": otlp_endpoint},
            "public_url": public_url,
            "session_label": session_label,
        }
    )
    if not isinstance(settings, Mapping | None):
        raise ConfigurationError("settings", f"is a {type(settings).__name__}", expected="a mapping")
    arguments = {**(settings or {})}
    for key, value in overrides.items():
        section = arguments.get(key)
        arguments[key] = {**section, **value} if isinstance(section, Mapping) else value
    with _starting:
        running = running_outputs()
        if isinstance(running, Runtime):
            if arguments or config is not None:
                running.warn_of_other_settings(load_config(config, arguments=arguments))
            return running
        started = Runtime(load_config(config, arguments=arguments))
        set_running_outputs(started)
        atexit.register(_finish)
        if parent() is not None:
            finish_at_end(started.finish)
        return started


def stop(timeout_seconds: float = CLOSE_SECONDS) -> None:
    """Close the outputs that `start` started; does nothing if none run."""
    running = running_outputs()
    if isinstance(running, Runtime):
        running.close(timeout_seconds)


def _finish() -> None:
    """Finish with the process; handlers that were registered before `start` run after this one."""
    running = running_outputs()
    if isinstance(running, Runtime):
        running.finish()


def _unregister(runtime: Runtime) -> None:
    with _starting:
        if running_outputs() is runtime:
            set_running_outputs(None)
            atexit.unregister(_finish)


def _without_none(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return *arguments* without None and without sections that hold nothing else."""
    stripped = {
        key: _without_none(value) if isinstance(value, Mapping) else value for key, value in arguments.items()
    }
    return {key: value for key, value in stripped.items() if value is not None and value != {}}


def _different_settings(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted names of the settings that differ."""
    names = []
    for key in sorted(one.keys() | other.keys()):
        value, other_value = one.get(key), other.get(key)
        if isinstance(value, Mapping) and isinstance(other_value, Mapping):
            names += _different_settings(value, other_value, f"{prefix}{key}.")
        elif value != other_value:
            names.append(f"{prefix}{key}")
    return names


class StoreAccess(NamedTuple):
    """The function that opens a process's store, and the spool beside it."""

    open_store: Callable[[], Store]
    spool: Spool


def _store_sink(config: Config, internal: InternalMetrics) -> StoreSink | RemoteSink:
    """Return the sink that stores events here, or sends them to the server that the store's name means."""
    settings = config.store
    if not (isinstance(settings.path, StoreUrl) and settings.path.scheme in ENDPOINTS):
        return StoreSink(
            *store_access(config),
            internal,
            start_seconds=START_SECONDS if isinstance(settings.path, StoreUrl) else None,
        )

    from windowpane.outputs.remote.sink import RemoteSink

    sink = RemoteSink(
        settings.path.url,
        config.ingest,
        files=local_base(settings.path),
        project=config.project,
        keys=audit_keys(config),
        redact=_without_secrets if settings.capture else None,
        internal=internal,
    )
    sink.start()
    return sink


def audit_keys(config: Config) -> AuditKeys:
    """Return the configured audit keys. Raises `ConfigurationError` for an unusable one."""
    settings = config.store
    return AuditKeys(
        key_in(settings.audit_key_file, "store.audit_key_file") or load_key(),
        keys_in(settings.audit_old_key_files, "store.audit_old_key_files") or load_old_keys(),
    )


def store_access(config: Config) -> StoreAccess:
    """Return how to open the store, and its spool. Raises `ConfigurationError` for an unusable audit key."""
    settings, keys = config.store, audit_keys(config)

    def opened() -> Store:
        return open_store(
            settings.path,
            capture=settings.capture,
            redact=_without_secrets,
            audit_key=keys.current,
            old_audit_keys=keys.old,
            busy_seconds=BUSY_SECONDS,
        )

    spool = Spool(local_base(settings.path), keys=keys, redact=_without_secrets if settings.capture else None)
    return StoreAccess(opened, spool)


def _without_secrets(text: str) -> str:
    return redact(text).text


follow_forks([_starting])
follow_forks(_runtimes)

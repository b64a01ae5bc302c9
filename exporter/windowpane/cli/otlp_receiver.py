"""The parts of `windowpane serve --otlp`: from requests to events in the store, and their alerts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import configured
from windowpane.config.paths import local_base
from windowpane.core.version import install_command
from windowpane.effects.processes import rare_collection
from windowpane.effects.record_log import RecordLog
from windowpane.models.tokens import load_for_bulk
from windowpane.outputs.http.routes import Routes
from windowpane.outputs.runtime.pipeline import CAPACITY_EVENTS, Pipeline
from windowpane.outputs.runtime.start import store_access
from windowpane.outputs.runtime.store_sink import StoreSink
from windowpane.sources.receiver.call_recorder import SOURCE, CallRecorder, RecorderSettings
from windowpane.sources.receiver.endpoint import OtlpEndpoint
from windowpane.sources.receiver.forwarding import Forwarder
from windowpane.sources.receiver.intake import CLOSE_SECONDS, Emitted, Intake, Outlet
from windowpane.store.filters import EventFilter
from windowpane.store.records import StoredEvent

if TYPE_CHECKING:
    from windowpane.alerts.delivery.notifier import Notifier
    from windowpane.config.schema import Config
    from windowpane.metrics.internal import InternalMetrics
    from windowpane.outputs.http.asgi_server import AsgiServer
    from windowpane.outputs.http.store_exporter import StoreExporter
    from windowpane.store.reads.project_reader import EventReader

FULL_SHARE: Final = 0.5
"""Part of the pipeline's capacity that the calls of requests may fill."""
CHECK_SECONDS: Final = 30.0
"""Time after which a session is looked up again in the store."""
CHECKED_SESSIONS: Final = 10_000
SETTLE_SECONDS: Final = 1.0
"""Longest wait for the store before requests are deleted from the log; it is tried again."""
READ_EVENTS: Final = 5_000
"""Events of a session that are read at once."""
LOG_NAME: Final = "otlp"


@contextmanager
def receiving(
    config: Config,
    store: EventReader,
    serving: StoreExporter,
    *,
    token: str | None,
    listen: Callable[[Routes], AsgiServer],
) -> Iterator[str]:
    """Receive until the block ends; yields the address, for `OTEL_EXPORTER_OTLP_ENDPOINT`."""
    assert serving.notifier is not None, "the exporter has its notifier before it receives"
    receiver = OtlpReceiver(config, store, serving.notifier, serving.internal, has_token=token is not None)
    with rare_collection():  # spans wait in the queue by the ten thousand, and none of them is garbage
        load_for_bulk()
        receiver.start()
        try:
            with listen(Routes(bearer_token=token, posts=receiver.endpoint.posts)) as server:
                yield server.url
        finally:
            receiver.close()


class OtlpReceiver:
    """Everything behind the endpoint. `close` records what has arrived."""

    def __init__(
        self,
        config: Config,
        store: EventReader,
        notifier: Notifier,
        internal: InternalMetrics,
        *,
        has_token: bool,
    ) -> None:
        require_otel()
        self._store_sink = StoreSink(*store_access(config), internal)
        self._pipeline = Pipeline(
            {"alerts": notifier, "store": self._store_sink},
            engine=AlertEngine(configured(**config.alert_settings()), with_subjects=config.store.capture),
            count_drops=internal.record_drop,
        )
        pipeline, emitted = self._pipeline, Emitted()
        recorder = CallRecorder(
            RecorderSettings(
                emit=emitted,
                digest=self._store_sink.digest,
                config=config,
                stream=secrets.token_hex(6),
                clock=time.time,
                recorded_elsewhere=RecordedElsewhere(store),
            )
        )
        self._intake = Intake(
            recorder,
            emitted,
            _opened_log(config),
            Outlet(
                put=pipeline.put,
                is_full=lambda: pipeline.queued_events > FULL_SHARE * CAPACITY_EVENTS,
                is_settled=lambda: pipeline.flush(SETTLE_SECONDS),
                is_stored=StoredEvents(store),
            ),
            wait_seconds=config.otlp.receive_wait_seconds,
        )
        self._forwarder = _forwarder(config, internal, has_token=has_token)
        self.endpoint = OtlpEndpoint(self._intake, forwarder=self._forwarder)

    def start(self) -> None:
        """Start the threads."""
        self._intake.start()
        if self._forwarder is not None:
            self._forwarder.start()

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Record what there is time for, and pass on what waits; the rest is recorded at the next start."""
        if not self._intake.close(timeout_seconds):
            click.echo("what could not be recorded in time waits on disk for the next start", err=True)
        if self._forwarder is not None:
            self._forwarder.close()
        self._intake.release(is_settled=self._pipeline.close(timeout_seconds))
        self._store_sink.close()


class StoredEvents:
    """Looks up which events of a session the store has."""

    def __init__(self, store: EventReader) -> None:
        self._store = store

    def __call__(self, session_id: str, wanted: set[tuple[str, int]]) -> set[tuple[str, int]]:
        """Return those of the *wanted* streams and numbers that are stored. Raises `StoreError`."""
        stored = set[tuple[str, int]]()
        before: int | None = None
        while stored != wanted:
            query = EventFilter(session_id=session_id, newest_first=True, before_seq=before, limit=READ_EVENTS)
            events = self._store.events_or_damage(query)
            for item in events:
                before = item.seq
                if isinstance(item, StoredEvent):
                    stored.add((item.event.context.stream_id, item.event.n))
            stored &= wanted
            if len(events) < READ_EVENTS:
                break
        return stored


class RecordedElsewhere:
    """Looks up whether a session is in the store from another source, such as its transcript.

    The answer is remembered for a while, since each call of a session asks for it.
    """

    def __init__(self, store: EventReader, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._answers: dict[str, tuple[float, bool]] = {}

    def __call__(self, session_id: str) -> bool:
        """Return whether the session is recorded from another source."""
        now = self._monotonic()
        answered_at, answer = self._answers.get(session_id, (-CHECK_SECONDS, False))
        if now - answered_at >= CHECK_SECONDS:
            row = self._store.session(session_id)
            answer = False
            if row is not None and row.source != SOURCE:
                answer = True
                click.echo(f"session {session_id} is recorded from {row.source}; its telemetry is not", err=True)
            if len(self._answers) >= CHECKED_SESSIONS:
                self._answers.clear()
            self._answers[session_id] = (now, answer)
        return answer


def require_otel() -> None:
    """Raise `click.ClickException` with the command to run where the extra is not installed."""
    try:
        import google.rpc.status_pb2  # noqa: F401
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401
    except ImportError as error:
        raise click.ClickException(f"--otlp needs the extra: {install_command('otel')}") from error


def _forwarder(config: Config, internal: InternalMetrics, *, has_token: bool) -> Forwarder | None:
    otlp = config.otlp
    if otlp.forward is None:
        return None
    return Forwarder(
        otlp.forward,
        headers={name: value.get_secret_value() for name, value in otlp.forward_headers.items()},
        own_token=has_token,
        count_drops=internal.record_drop,
    )


def _opened_log(config: Config) -> RecordLog:
    """Open the log of requests next to the store. Raises `click.ClickException`."""
    base = local_base(config.store.path)
    try:
        return RecordLog.beside(base, LOG_NAME)
    except OSError as error:
        raise click.ClickException(f"{base}.{LOG_NAME}: requests cannot be stored there: {error}") from error

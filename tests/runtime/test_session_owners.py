"""Two processes that record one session at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from windowpane.core.events import Event
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.metrics.internal import InternalMetrics
from windowpane.runtime.sinks import StoreSink
from windowpane.store.interface import EventFilter
from windowpane.store.keys import AuditKeys
from windowpane.store.open import open_store
from windowpane.store.spool import Spool


def recorded(stream: str, *, end: bool = False) -> list[Event]:
    """Return the events of a session that one process records."""
    events: list[Event] = []
    tracker = SessionTracker(SessionInfo("s", "agent", "m", "live", stream), emit=events.extend, digest=str)
    tracker.start(time.time())
    tracker.add("user_message", f"asked of {stream}", 10, at=time.time())
    tracker.end_turn(None, at=time.time())
    if end:
        tracker.end("done", time.time())
    tracker.flush()
    return events


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], StoreSink]:
    """Makes the sinks of processes that share a store."""
    name = tmp_path / "windowpane.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")

    def make() -> StoreSink:
        spool = Spool(tmp_path / "windowpane.db", keys=AuditKeys(), redact=None)
        return StoreSink(lambda: open_store(name), spool, InternalMetrics(version="", clock=time.time))

    return make


def test_the_second_owner_of_a_live_session_is_warned(
    process: Callable[[], StoreSink], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is lost and nothing twice: each has a stream, and the chain is intact."""
    first, second = process(), process()
    batches = recorded("one"), recorded("two")

    first.write(batches[0])
    assert "is recorded by another process" not in caplog.text
    second.write(batches[1])
    more = batches[0][-1]._replace(n=len(batches[0]))
    first.write([more])

    assert caplog.text.count("session s is recorded by another process or window") == 1
    assert second.store is not None
    stored = [one.event for one in second.store.events(EventFilter(session_id="s"))]
    assert sorted((one.context.stream_id, one.n) for one in stored) == sorted(
        (one.context.stream_id, one.n) for one in (*batches[0], more, *batches[1])
    )
    assert second.store.verify().intact
    first.close()
    second.close()


def test_a_session_that_ended_may_be_resumed(
    process: Callable[[], StoreSink], caplog: pytest.LogCaptureFixture
) -> None:
    """By any process, without a warning."""
    sink = process()
    sink.write(recorded("one", end=True))
    sink.write(recorded("two"))

    assert "is recorded by another process" not in caplog.text
    sink.close()

"""Two processes that record one session at once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from windowpane.core.events import Event
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.metrics.internal import InternalMetrics
from windowpane.outputs.runtime.store_sink import StoreSink
from windowpane.store.filters import EventFilter
from windowpane.store.keys import AuditKeys
from windowpane.store.open import open_store
from windowpane.store.writes.shared_writer import MAXIMUM_CLAIMS
from windowpane.store.writes.spool import Spool


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
    stored = [event for event in stored if event.type != "session.continued"]
    assert sorted((one.context.stream_id, one.n) for one in stored) == sorted(
        (one.context.stream_id, one.n) for one in (*batches[0], more, *batches[1])
    )
    assert second.store.verify().intact
    first.close()
    second.close()


def test_a_session_that_ended_may_be_resumed(
    process: Callable[[], StoreSink], caplog: pytest.LogCaptureFixture
) -> None:
    sink = process()
    sink.write(recorded("one", end=True))
    sink.write(recorded("two"))

    assert "is recorded by another process" not in caplog.text
    sink.close()


OWNER = """
import logging, sys
import windowpane
from windowpane.core.events import Event, EventContext, SessionEnded, SessionStarted
logging.basicConfig(stream=sys.stdout, level=logging.WARNING, format="warned: %(message)s")
running = windowpane.start(port=0, store=sys.argv[1], notify=[])
context = EventContext("s", "agent", "gpt-4o", 1, 1, "live", sys.argv[2])
running.emit([Event(context, 0, 1.0, SessionStarted())])
assert running.flush()
print("recorded", flush=True)
if sys.stdin.readline() == "end\\n":
    running.emit([Event(context, 1, 2.0, SessionEnded("done"))])
    assert running.flush()
    print("ended", flush=True)
sys.stdin.readline()
"""


class Owner(NamedTuple):
    """A process that records the session `s`, last heard of in 1970."""

    process: subprocess.Popen[str]
    printed: str
    """Its warnings until its event was stored."""

    def end(self) -> None:
        """End the session."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print("end", file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "ended\n"


@contextmanager
def owner(url: str, stream: str) -> Iterator[Owner]:
    """Start a process, and kill it after the block."""
    command = [sys.executable, "-c", OWNER, url, stream]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Owner(process, "".join(iter(process.stdout.readline, "recorded\n")))
        process.kill()


@pytest.mark.server
def test_a_second_process_is_warned_while_the_first_is_silent(postgres_url: str) -> None:
    with owner(postgres_url, "one") as first:
        with owner(postgres_url, "two") as second:
            assert "session s is recorded by another process" in second.printed
        first.end()
        with owner(postgres_url, "three") as third:
            third.process.kill()
            third.process.wait()
            with owner(postgres_url, "four") as fourth:
                assert [one.printed for one in (first, third, fourth)] == ["", "", ""]
    store = open_store(postgres_url)
    events = [one.event for one in store.events(EventFilter(session_id="s"))]
    stored = [event.context.stream_id for event in events if event.type != "session.continued"]
    store.close()
    assert stored == ["one", "two", "one", "three", "four"]


@pytest.mark.parametrize("process", [pytest.param("postgresql", marks=pytest.mark.server)], indirect=True)
def test_claims_are_made_again_over_another_connection(
    process: Callable[[], StoreSink],
) -> None:
    first, second = process(), process()
    assert first.store is not None
    assert second.store is not None
    first.store.claim_sessions({f"s{number}": "one" for number in range(100)})
    assert len(second.store.claim_sessions({f"s{number}": "two" for number in range(100)})) == MAXIMUM_CLAIMS
    second.store.close()
    writer = first.store._shared.writer
    assert writer is not None
    writer.connection.close()
    first.store.admit_agent("a")  # over another connection
    first.store.claim_sessions({})
    third = process()

    assert third.store is not None
    assert third.store.claim_sessions({"s0": "three"}) == ["s0"]
    first.close()
    third.close()

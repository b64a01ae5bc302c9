"""A store whose server does not answer: the agent's start does not wait, and no event is lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from windowpane.core.events import Event, EventContext, SessionStarted
from windowpane.exceptions import StoreError
from windowpane.metrics.internal import InternalMetrics
from windowpane.outputs.runtime.start import Runtime, stop
from windowpane.outputs.runtime.store_sink import StoreSink
from windowpane.store.embedded import SqliteStore
from windowpane.store.keys import AuditKeys
from windowpane.store.writes.spool import Spool

EVENT = Event(EventContext("s", "a", "m", 0, 1, "live", "stream"), 0, 1.0, SessionStarted())
BRIEFLY = 0.01
AT_MOST = 30.0


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield int(server.getsockname()[1])


def test_a_start_does_not_wait_for_a_server_that_does_not_answer(
    start_outputs: Callable[..., Runtime], silent_server: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    started = time.monotonic()

    running = start_outputs(store=f"postgresql://u@127.0.0.1:{silent_server}/db?connect_timeout=120")
    running.emit([EVENT])
    stop(timeout_seconds=1)

    assert time.monotonic() - started < AT_MOST
    assert running.store is None
    assert list(tmp_path.rglob("*spool*"))


def sink(open_store: Callable[[], SqliteStore], folder: Path) -> StoreSink:
    """A sink that waits only briefly for its store."""
    spool = Spool(folder / "windowpane.db", keys=AuditKeys(), redact=None)
    internal = InternalMetrics(version="", clock=time.time)
    return StoreSink(open_store, spool, internal, start_seconds=BRIEFLY)


def slowly(answers: threading.Event, opened: list[SqliteStore], folder: Path) -> Callable[[], SqliteStore]:
    """Open the store once it *answers*, and keep it in *opened*."""

    def open_store() -> SqliteStore:
        answers.wait(AT_MOST)
        opened.append(SqliteStore(folder / "windowpane.db"))
        return opened[-1]

    return open_store


def test_the_first_write_waits_for_the_store_and_opens_no_second_one(tmp_path: Path) -> None:
    answers, opened = threading.Event(), list[SqliteStore]()
    outputs = sink(slowly(answers, opened, tmp_path), tmp_path)
    assert (outputs.store, outputs.available) == (None, False)
    assert "does not answer within" in outputs.problem
    answers.set()
    outputs.write([EVENT])

    assert outputs.available
    assert [row.session_id for row in opened[0].sessions()] == ["s"]
    assert len(opened) == 1
    outputs.close()


def test_a_store_that_fails_later_is_tried_again(tmp_path: Path) -> None:
    answers, attempts = threading.Event(), list[int]()

    def open_store() -> SqliteStore:
        answers.wait(AT_MOST)
        attempts.append(1)
        if len(attempts) == 1:
            raise StoreError("connection timeout expired")
        return SqliteStore(tmp_path / "windowpane.db")

    outputs = sink(open_store, tmp_path)
    answers.set()
    with pytest.raises(StoreError, match="expired"):
        outputs.write([EVENT])
    outputs.write([EVENT])

    assert outputs.available
    outputs.close()


def test_a_store_that_opens_after_the_end_is_closed(tmp_path: Path) -> None:
    answers, opened = threading.Event(), list[SqliteStore]()
    outputs = sink(slowly(answers, opened, tmp_path), tmp_path)
    outputs.close()
    answers.set()
    for thread in threading.enumerate():
        if thread.name == "windowpane-opening":
            thread.join(AT_MOST)

    with pytest.raises(StoreError, match="closed"):
        opened[0].append([EVENT])

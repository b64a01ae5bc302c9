"""No event is lost silently: what `flush` returns, stores that fail and recover, sessions that are refused."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.events import Event, EventContext, SessionStarted, TurnEnded, TurnStarted, Usage
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.exceptions import StoreError
from windowpane.outputs.runtime.start import Runtime, stop
from windowpane.store.embedded import SqliteStore
from windowpane.store.keys import AuditKeys
from windowpane.store.writes.spool import Spool, waiting_files
from windowpane.store.writes.write import Writer

Start = Callable[..., Runtime]


def events(session: str, first: int, last: int, **fields: Any) -> list[Event]:
    context = EventContext(session, "agent", "gpt-4o", 1, 1, "live", session)
    if fields:
        context = EventContext(**{**{name: getattr(context, name) for name in _NAMES}, **fields})
    return [
        Event(context, n, 1_000.0 + n, SessionStarted() if n == 0 else TurnStarted()) for n in range(first, last)
    ]


_NAMES = ("session_id", "agent", "model", "turn", "window_id", "source", "stream_id")


def stored(path: Path, session: str) -> list[int]:
    """Numbers of a session's stored events, in the order of the store."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(
            "SELECT body FROM events JOIN sessions ON events.session = sessions.key "
            "WHERE session_id = ? ORDER BY seq", (session,)
        ).fetchall()  # fmt: skip
    connection.close()
    return [json.loads(body)["n"] for (body,) in rows]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the store's write lock, as another process would."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def read(url: str | None, path: str = "/metrics") -> str:
    assert url is not None
    with urllib.request.urlopen(url.replace("/metrics", path), timeout=10) as answer:
        return str(answer.read().decode())


# -- one bad session ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields", [{"agent": 7}, {"session_id": None}, {"model": ["m"]}, {"stream_id": 3}, {"turn": "1"}]
)
def test_a_malformed_envelope_does_not_affect_other_sessions(
    start_outputs: Start, fields: dict[str, Any]
) -> None:
    running = start_outputs()
    running.emit([*events("bad", 0, 2, **fields), *events("good", 0, 3)])
    assert not running.flush(20)
    for n in range(3, 6):
        running.emit(events("bad", n, n + 1, **fields))
        running.emit(events("good", n, n + 1))
        assert not running.flush(20)
    running.emit(events("later", 0, 4))
    assert running.flush(20)

    assert stored(running.config.store.path, "good") == list(range(6))
    assert stored(running.config.store.path, "later") == list(range(4))
    metrics = read(running.url)
    assert 'windowpane_dropped_events_total{reason="invalid",sink="queue"} 5.0' in metrics
    assert 'sink="metrics"} 0.0' in metrics


def test_a_payload_that_cannot_be_folded_costs_one_event(start_outputs: Start) -> None:
    running = start_outputs()
    bad = events("s", 1, 2)[0]._replace(data=TurnEnded(Usage("many"), "usage"))  # type: ignore[arg-type]
    good = [event._replace(data=TurnEnded(Usage(10), "usage")) for event in events("t", 1, 4)]
    running.emit([*events("s", 0, 1), bad, *events("t", 0, 1), *good])
    assert not running.flush(20)

    assert stored(running.config.store.path, "t") == list(range(4))
    metrics = read(running.url)
    assert 'windowpane_dropped_events_total{reason="error",sink="metrics"} 1.0' in metrics
    counted = re.findall(r"^context_window_turns_total\{.*\} (\S+)$", metrics, re.MULTILINE)
    assert sum(map(float, counted)) >= 3


def test_a_session_that_the_store_refuses_does_not_affect_later_sessions(
    start_outputs: Start, tmp_path: Path
) -> None:
    path = tmp_path / "windowpane.db"
    with_key = SqliteStore(path, audit_key=b"a key of sixteen b")
    with_key.append(events("old", 0, 3))
    with_key.close()
    running = start_outputs()

    running.emit([*events("old", 3, 5), *events("new", 0, 3)])
    assert not running.flush(20)
    running.emit(events("next", 0, 3))
    assert running.flush(20)

    assert stored(path, "old") == [0, 1, 2]
    assert stored(path, "new") == stored(path, "next") == [0, 1, 2]
    metrics = read(running.url)
    assert 'windowpane_dropped_events_total{reason="error",sink="store"} 2.0' in metrics
    assert "windowpane_store_available 1.0" in metrics


# -- a store that takes nothing for a while -------------------------------------------------------------------


def test_a_full_disk_is_reported_and_loses_nothing(
    start_outputs: Start, caplog: pytest.LogCaptureFixture
) -> None:
    running = start_outputs()
    running.emit(events("s", 0, 5))
    assert running.flush(20)
    assert running.store is not None
    connection = running.store._shared.writer.connection  # type: ignore[union-attr]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")

    running.emit(events("s", 5, 5_000))
    assert not running.flush(20)
    health = json.loads(read(running.url, "/healthz"))
    assert (health["status"], health["stores_events"]) == ("degraded", False)
    assert "full" in health["store_problem"]
    assert health["queued_events"] >= 4_000
    assert "windowpane_store_available 0.0" in read(running.url)
    connection.execute("PRAGMA max_page_count = 1000000")

    assert running.flush(20)
    assert stored(running.config.store.path, "s") == list(range(5_000))
    assert json.loads(read(running.url, "/healthz"))["status"] == "ok"
    assert sum("disk is full" in record.message for record in caplog.records) == 1


def test_flush_waits_for_a_lock_and_reports_when_it_lasts(start_outputs: Start, tmp_path: Path) -> None:
    running = start_outputs()
    running.emit(events("s", 0, 5))
    assert running.flush(20)
    with locked(tmp_path / "windowpane.db"):
        running.emit(events("s", 5, 10))
        started = time.monotonic()
        assert not running.flush(0.5)
        assert time.monotonic() - started < 3
    assert running.flush(20)

    assert stored(tmp_path / "windowpane.db", "s") == list(range(10))


def test_waiting_events_are_stored_without_a_flush(start_outputs: Start, tmp_path: Path) -> None:
    running = start_outputs()
    with locked(tmp_path / "windowpane.db"):
        running.emit(events("s", 0, 5))
        running.flush(0.1)

    deadline = time.monotonic() + 20
    while len(stored(tmp_path / "windowpane.db", "s")) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert stored(tmp_path / "windowpane.db", "s") == list(range(5))


@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_or_replaced_file_is_noticed(
    start_outputs: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture, replaced: bool
) -> None:
    running = start_outputs()
    path = tmp_path / "windowpane.db"
    running.emit(events("s", 0, 5))
    assert running.flush(20)
    for file in tmp_path.glob("windowpane.db*"):
        file.unlink()
    if replaced:
        SqliteStore(path).close()

    assert not running.flush(20)
    running.emit(events("s", 5, 10))
    assert running.flush(20)

    assert stored(path, "s") == list(range(5, 10))
    assert "deleted or replaced" in caplog.text
    assert running.store is not None
    assert running.store.verify().intact
    assert [endpoint.port for endpoint in running.store.endpoints()]


def test_a_deleted_log_is_noticed_and_nothing_is_lost(start_outputs: Start, tmp_path: Path) -> None:
    """Without the log of the database, what was written to it would be lost with the process."""
    running = start_outputs()
    path = tmp_path / "windowpane.db"
    running.emit(events("s", 0, 5))
    assert running.flush(20)
    for file in tmp_path.glob("windowpane.db-*"):
        file.unlink()

    running.emit(events("s", 5, 10))
    assert not running.flush(20)
    running.emit(events("s", 10, 15))
    assert running.flush(20)
    assert stored(path, "s") == list(range(15))
    assert running.store is not None
    assert running.store.verify().intact


def test_events_emitted_after_a_deletion_are_in_the_new_file(start_outputs: Start, tmp_path: Path) -> None:
    running = start_outputs()
    running.emit(events("s", 0, 5))
    assert running.flush(20)
    for file in tmp_path.glob("windowpane.db*"):
        file.unlink()

    running.emit(events("t", 0, 5))
    assert not running.flush(20)
    assert running.flush(20)
    assert stored(tmp_path / "windowpane.db", "t") == list(range(5))


def test_a_store_that_could_not_be_opened_is_tried_again(start_outputs: Start, tmp_path: Path) -> None:
    """Once it can be opened, every event since the start is in it."""
    folder = tmp_path / "folder"
    folder.write_text("a file where a folder should be")
    running = start_outputs(store=folder / "windowpane.db")
    running.emit(events("s", 0, 5))
    assert not running.flush(1)
    folder.unlink()

    running.emit(events("s", 5, 8))
    assert running.flush(20)

    assert stored(folder / "windowpane.db", "s") == list(range(8))
    assert running.store is not None
    assert running.store.endpoints(), "the endpoint is registered in the new store"


# -- the end of the process -----------------------------------------------------------------------------------


def test_closing_on_a_locked_store_is_bounded_and_spools(start_outputs: Start, tmp_path: Path) -> None:
    path = tmp_path / "windowpane.db"
    running = start_outputs()
    running.emit(events("s", 0, 5))
    assert running.flush(20)
    with locked(path):
        running.emit([*events("s", 5, 3_000), *events("t", 0, 10)])
        started = time.monotonic()
        running.close(3)
        assert time.monotonic() - started < 5
    (file,) = waiting_files(path)
    assert file.stat().st_mode & 0o777 == 0o600

    again = start_outputs()

    assert not waiting_files(path)
    assert stored(path, "s") == list(range(3_000))
    assert stored(path, "t") == list(range(10))
    assert again.store is not None
    assert again.store.verify().intact


def test_spooled_events_wait_for_a_store_that_is_locked_at_the_start(
    start_outputs: Start, tmp_path: Path
) -> None:
    path = tmp_path / "windowpane.db"
    SqliteStore(path).close()
    Spool(path, keys=AuditKeys(), redact=None).write(events("s", 0, 9))
    with locked(path):
        running = start_outputs()
        assert waiting_files(path)
    running.emit(events("t", 0, 2))

    assert running.flush(20)

    assert stored(path, "s") == list(range(9))
    assert not waiting_files(path)


def test_closing_is_bounded_where_the_disk_hangs(
    start_outputs: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start_outputs()
    running.emit(events("s", 0, 2))
    assert running.flush(20)
    append = Writer.append

    def hang(writer: Writer, batch: Any) -> int:
        time.sleep(2)
        return append(writer, batch)

    monkeypatch.setattr(Writer, "append", hang)
    running.emit(events("s", 2, 6))
    started = time.monotonic()
    running.close(1)

    assert time.monotonic() - started < 1.9
    time.sleep(1.5)  # the write that hung is now complete; its events are in the spool as well
    monkeypatch.undo()
    assert stored(tmp_path / "windowpane.db", "s") == list(range(6))
    start_outputs()
    assert stored(tmp_path / "windowpane.db", "s") == list(range(6))


def test_texts_are_redacted_in_the_spool(start_outputs: Start, tmp_path: Path) -> None:
    """Captured texts are spooled as the store would hold them, and are stored by the next process."""
    path = tmp_path / "windowpane.db"
    running = start_outputs(capture=True)
    secret = "AKIA" + "QWERTYUIOPASDF7H"
    tracker = SessionTracker(SessionInfo("s", "a", "m", "live", "s"), emit=running.emit, digest=running.digest)
    with locked(path):
        tracker.start()
        block = tracker.add("user_message", f"my key is {secret}", 9)
        tracker.flush()
        running.close(2)
    (file,) = waiting_files(path)
    assert secret not in file.read_text()

    again = start_outputs(capture=True)
    assert again.store is not None
    content = again.store.content(block.digest)
    assert content is not None
    assert content.startswith("my key is [redacted:")


def test_without_a_spool_the_loss_is_counted(
    start_outputs: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Spool, batch: Any) -> int:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Spool, "write", full)
    running = start_outputs()
    caplog.set_level(logging.WARNING)
    with locked(tmp_path / "windowpane.db"):
        running.emit(events("s", 0, 7))
        running.close(1.5)

    assert "7 events of store are lost" in caplog.text
    stop()

"""The exporter of a store: folding, following and maintenance."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from endpoint import fetch
from prometheus_client import generate_latest

from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.exceptions import StoreError
from windowpane.metrics.families import Family
from windowpane.outputs.http import store_exporter as serving
from windowpane.outputs.http.asgi_server import start_asgi_server
from windowpane.outputs.http.maintenance import StoreMaintenance
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.records import Verification

LONG_AGO = 1_600_000_000.0


def session(session_id: str, *, agent: str = "reviewer", turns: int = 3) -> list[Event]:
    events: list[Event] = []
    tracker = SessionTracker(
        SessionInfo(session_id, agent, "gpt-4o", "live", f"stream-{session_id}"),
        emit=events.extend,
        digest=lambda text: f"{len(text):032x}",
        limits=WindowLimits.of(128_000, "given"),
    )
    tracker.start(LONG_AGO)
    for number in range(turns):
        at = LONG_AGO + number
        tracker.add("user_message", f"question {number}", 50, at=at)
        tracker.add("assistant_response", "answer", 20, at=at)
        tracker.end_turn(Usage(100 + 70 * number, 20), at=at)
    tracker.flush()
    return events


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "windowpane.db")) as opened:
        yield opened


def counters(server: StoreExporter) -> dict[str, float]:
    """Every counter of the state, summed over its labels."""
    families: list[Family] = server.state.collect(now=LONG_AGO)
    return {
        family.metric.name: sum(point.value for point in family.points)
        for family in families
        if family.metric.kind == "counter"
    }


class TestFolding:
    def test_appended_events_are_folded_once(self, store: SqliteStore) -> None:
        store.append(session("one"))
        server = StoreExporter(store)
        server.catch_up()
        store.append(session("two"))

        assert server.catch_up() == len(session("two"))
        assert server.catch_up() == 0
        assert counters(server)["context_window_turns_total"] == 6

    def test_a_store_that_fails_while_it_is_folded_counts_nothing_twice(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.append([*session("one"), *session("two", agent="other")])
        admit, failures = store.admit_agent, iter([StoreError("the connection is lost")])

        def admit_or_fail(name: str) -> str:
            if name == "other" and (failure := next(failures, None)) is not None:
                raise failure
            return admit(name)

        monkeypatch.setattr(store, "admit_agent", admit_or_fail)
        served = StoreExporter(store)
        with pytest.raises(StoreError):
            served.catch_up()
        served.catch_up()

        assert served.internal.dropped_events() == 0
        assert counters(served)["context_window_turns_total"] == 6

    def test_old_sessions_have_gauges_as_of_their_last_event(self, store: SqliteStore) -> None:
        store.append(session("one"))

        def has_utilization(server: StoreExporter, **how: Any) -> bool:
            server.catch_up()
            families = server.state.collect(now=LONG_AGO + 86_400, **how)
            return any(
                family.metric.name == "context_window_utilization_ratio" and family.points for family in families
            )

        assert has_utilization(StoreExporter(store), as_of="last")
        assert not has_utilization(StoreExporter(store))


class HeldScan:
    """Holds a fold after the first events, until it is released."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.released = threading.Event(), threading.Event()
        self._scan = store.scan
        monkeypatch.setattr(store, "scan", self.scan)

    def scan(self, **how: Any) -> Iterator[Any]:
        for batch in self._scan(**how | {"batch": 10}):
            yield batch
            self.reached.set()
            assert self.released.wait(20)


class TestStart:
    def test_the_metrics_appear_when_every_stored_event_is_folded(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.append([*session("one"), *session("two")])
        held, lines = HeldScan(store, monkeypatch), list[str]()
        exporter = StoreExporter(store, report=lines.append)
        with start_asgi_server(exporter.routes(), port=0) as server:
            exporter.start()
            assert held.reached.wait(20)
            health = fetch(server, "/healthz")
            early = fetch(server, "/metrics")
            store.append(session("received meanwhile"))
            held.released.set()
            _wait(lambda: fetch(server, "/metrics").status == 200 and turns_counted(exporter) == 9)
            exporter.close()
        with closing(exporter):
            assert exporter.catch_up() == 0

        assert (early.status, early.headers["Retry-After"]) == (503, "5")
        assert health.status == 200
        assert json.loads(health.body)["status"] == "starting"
        assert json.loads(health.body)["metrics"].startswith("folding events up to seq ")
        assert (exporter.health().status, exporter.health().details["metrics"]) == ("ok", "complete")
        assert lines[0].startswith("metrics complete")

    def test_an_exporter_that_is_closed_while_it_folds_shows_no_metrics(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.append([*session("one"), *session("two")])
        held, exporter = HeldScan(store, monkeypatch), StoreExporter(store)
        exporter.start()
        assert held.reached.wait(20)
        closing_thread = threading.Thread(target=exporter.close)
        closing_thread.start()
        _wait(exporter._stop.is_set)
        held.released.set()
        closing_thread.join(20)

        assert exporter.health().is_starting

    def test_sessions_that_another_process_deletes_meanwhile_are_counted(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(3):
            store.append(session(f"s{number}"))
        held, exporter = HeldScan(store, monkeypatch), StoreExporter(store)
        exporter.start()
        assert held.reached.wait(20)
        maintenance = StoreMaintenance(store, rules=())
        assert maintenance.prune(days=30, max_bytes=10**12) == 3
        held.released.set()
        _wait(lambda: not exporter.health().is_starting)
        exporter.close()

        assert turns_counted(exporter) == 9

    def test_metrics_budgets_and_the_index_go_on_during_a_verification(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        verifying, released, checked = threading.Event(), threading.Event(), threading.Event()

        def verify(**_: object) -> Verification:
            verifying.set()
            assert released.wait(20)
            return Verification(keyed=False, sessions=0, events=0)

        monkeypatch.setattr(store, "verify", verify)
        monkeypatch.setattr(serving, "FOLLOW_SECONDS", 0.01)
        monkeypatch.setattr(serving, "SPENDING_SECONDS", 0.01)
        exporter = StoreExporter(store)
        exporter.start()
        assert verifying.wait(20)
        monkeypatch.setattr(exporter.spending, "check", checked.set)
        store.append(session("one"))

        _wait(lambda: turns_counted(exporter) == 3)
        assert checked.wait(20)
        _wait(lambda: store.index_text() == 0)
        assert exporter.health().details["chain"] == "not verified yet"
        released.set()
        _wait(lambda: exporter.health().details["chain"] == "intact")
        exporter.close()


class TestUpkeep:
    def test_pruning_never_lowers_a_counter(self, store: SqliteStore) -> None:
        for number in range(3):
            store.append(session(f"s{number}", agent=f"agent-{number}"))
        before = StoreExporter(store)
        before.catch_up()

        deleted = before.maintenance.prune(days=30, max_bytes=10**12)
        after = StoreExporter(store)
        after.catch_up()

        assert deleted == 3
        assert store.size().sessions == 0
        assert counters(after) == counters(before)

    def test_an_intact_chain_is_healthy_and_fires_no_alert(self, store: SqliteStore) -> None:
        store.append(session("one"))
        server = StoreExporter(store)

        assert server.verify_chain().intact
        assert server.health().ok
        assert store.events(EventFilter(types=("alert.fired",))) == []

    def test_a_broken_chain_fires_one_alert(self, store: SqliteStore, tmp_path: Path) -> None:
        store.append(session("one"))
        store.flush()
        with closing(sqlite3.connect(tmp_path / "windowpane.db")) as raw, raw:
            raw.execute("UPDATE events SET body = replace(body, 'reviewer', 'somebody') WHERE seq = 3")
        server = StoreExporter(store)

        server.verify_chain()
        server.verify_chain()
        fired = store.events(EventFilter(types=("alert.fired",)))

        health = server.health()
        assert (health.ok, health.status, health.details["chain"]) == (True, "degraded", "broken")
        assert [event.event.data.alert for event in fired] == ["audit_chain_broken"]  # type: ignore[union-attr]
        assert fired[0].event.context.session_id == "one"

    def test_old_sessions_are_deleted_although_indexing_fails(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def full(**_: int) -> int:
            raise StoreError("the disk is full")

        store.append(session("one"))
        monkeypatch.setattr(store, "index_text", full)
        monkeypatch.setattr(serving, "FOLLOW_SECONDS", 0.01)
        monkeypatch.setattr(serving, "MAINTENANCE_SECONDS", 0.05)
        server = StoreExporter(store)
        server.start()
        try:
            _wait(lambda: store.size().sessions == 0 and server.health().degraded)
        finally:
            server.close()

        health = server.health()
        assert (health.ok, health.status) == (True, "degraded"), "it receives and reads as before"
        assert "the disk is full" in str(health.details["failure"])
        assert caplog.text.count("the disk is full") == 1
        assert "Traceback" not in caplog.text

    def test_a_failure_of_the_hourly_tasks_shows_until_the_next_run(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(**_: object) -> int:
            raise StoreError("the disk is full")

        monkeypatch.setattr(store, "verify", fail)
        monkeypatch.setattr(serving, "FOLLOW_SECONDS", 0.01)
        monkeypatch.setattr(serving, "MAINTENANCE_SECONDS", 0.3)
        server = StoreExporter(store)
        server.start()
        try:
            _wait(lambda: "failure" in server.health().details)
            monkeypatch.setattr(serving, "MAINTENANCE_SECONDS", 3_600.0)
            time.sleep(0.2)
            assert (server.health().status, server.health().details["failure"]) == (
                "degraded",
                "the disk is full",
            )
            monkeypatch.setattr(store, "scan", fail)
            _wait(lambda: not server.health().ok)
        finally:
            server.close()


def damage(store: SqliteStore, path: Path, session_id: str, *, events: int) -> None:
    """Make the last events of a session no event, as a bad disk would."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE events SET body = X'00' WHERE seq IN (SELECT seq FROM events WHERE session = "
            "(SELECT key FROM sessions WHERE session_id = ?) ORDER BY seq DESC LIMIT ?)",
            (session_id, events),
        )
        connection.commit()


class TestDamage:
    def test_an_unreadable_event_is_skipped_and_counted(
        self, store: SqliteStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        store.append(session("one"))
        damage(store, tmp_path / "windowpane.db", "one", events=2)
        server = StoreExporter(store)
        server.catch_up()
        assert server.catch_up() == 0
        store.append(session("two"))

        assert server.catch_up() == len(session("two"))
        assert dropped(server) == 2
        assert counters(server)["context_window_turns_total"] >= 5
        assert caplog.text.count("reading a stored event") == 1

    def test_an_event_that_cannot_be_folded_is_counted_once(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.append(session("one"))
        server = StoreExporter(store)
        apply = server.state.apply

        def faulty(event: Event, *, counted: bool) -> None:
            if event.type == "turn.ended" and event.context.turn == 2:
                raise KeyError("purple")
            apply(event, counted=counted)

        monkeypatch.setattr(server.state, "apply", faulty)
        server.catch_up()
        once = counters(server)
        server.catch_up()

        assert counters(server) == once
        assert once["context_window_turns_total"] == 2
        assert dropped(server) == 1

    def test_a_damaged_session_is_deleted_like_any_other(self, store: SqliteStore, tmp_path: Path) -> None:
        for name in ("one", "two"):
            store.append(session(name))
        damage(store, tmp_path / "windowpane.db", "one", events=2)
        server = StoreExporter(store)

        assert server.maintenance.prune(days=1, max_bytes=10**9) == 2
        assert store.size().sessions == 0


def dropped(server: StoreExporter) -> float:
    """Return the number of dropped events in the served metrics."""
    registry = server.routes().registry
    return (
        registry.get_sample_value("windowpane_dropped_events_total", {"sink": "metrics", "reason": "error"}) or 0
    )


def _wait(condition: Callable[[], bool]) -> None:
    done = threading.Event()
    for _ in range(2_000):
        if condition():
            return
        done.wait(0.01)
    pytest.fail("the condition did not come true")


def test_a_replaced_store_is_read_from_its_first_event(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(SqliteStore(path)) as store:
        store.append(session("before", turns=9))
        exporter = StoreExporter(store)
        exporter.catch_up()
        assert turns_counted(exporter) == 9
        store.flush()
        for file in tmp_path.glob("w.db*"):
            file.unlink()
        with closing(SqliteStore(path)) as new:
            new.append(session("after", turns=2))

        exporter.catch_up()

        assert turns_counted(exporter) == 11


def turns_counted(exporter: StoreExporter) -> float:
    text = generate_latest(exporter.routes().registry).decode()
    lines = [line for line in text.splitlines() if line.startswith("context_window_turns_total{")]
    return sum(float(line.split()[-1]) for line in lines)

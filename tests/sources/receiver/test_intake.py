"""Acknowledged calls are recorded once, whatever becomes of the process that acknowledged them."""

from __future__ import annotations

import threading
import time
from email.message import Message
from pathlib import Path

import pytest
from recordings import NAMES, bodies

from windowpane.config.schema import Config
from windowpane.core.events import Event, TurnEnded
from windowpane.effects.record_log import RecordLog
from windowpane.outputs.http.routes import PostRequest
from windowpane.sources.receiver import intake as intake_module
from windowpane.sources.receiver.call_recorder import CallRecorder, RecorderSettings
from windowpane.sources.receiver.endpoint import OtlpEndpoint
from windowpane.sources.receiver.intake import Emitted, Intake, Outlet

CALLS = [150, 200, 250]


class Store:
    """Stored events, which survive a process."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.takes_events = threading.Event()
        self.takes_events.set()
        self.takes_only: int | None = None
        """Number of further batches that it takes."""
        self.failures = 0
        """Times that it does not answer."""

    def put(self, batch: list[Event]) -> None:
        if self.takes_only is None:
            self.events += batch
        elif self.takes_only:
            self.takes_only -= 1
            self.events += batch

    def is_stored(self, session_id: str, wanted: set[tuple[str, int]]) -> set[tuple[str, int]]:
        if self.failures:
            self.failures -= 1
            raise OSError("the store does not answer")
        return wanted & {
            (event.context.stream_id, event.n) for event in self.events if event.context.session_id == session_id
        }

    @property
    def turns(self) -> list[int]:
        return sorted(
            event.data.usage.input_total
            for event in self.events
            if isinstance(event.data, TurnEnded) and event.data.usage is not None
        )


class Process:
    """A receiving process; one that is not closed has been killed."""

    count = 0

    def __init__(
        self, folder: Path, store: Store, *, wait_seconds: float = 0.0, capacity_bytes: int = 1 << 24
    ) -> None:
        Process.count += 1
        emitted = Emitted()
        settings = RecorderSettings(emit=emitted, digest=str, config=Config(), stream=f"p{Process.count}")
        self.log = RecordLog(folder, capacity_bytes=capacity_bytes)
        outlet = Outlet(
            put=store.put,
            is_full=lambda: not store.takes_events.is_set(),
            is_settled=lambda: store.takes_only is None,
            is_stored=store.is_stored,
        )
        self.intake = Intake(CallRecorder(settings), emitted, self.log, outlet, wait_seconds=wait_seconds)
        self.endpoint = OtlpEndpoint(self.intake)

    def post(self, path: Path) -> int:
        headers = Message()
        headers["Content-Type"] = "application/json" if path.suffix == ".json" else "application/x-protobuf"
        where = "/v1/traces" if ".traces." in path.name else "/v1/logs"
        return self.endpoint.respond(PostRequest(where, headers, path.read_bytes())).status

    def kill(self) -> None:
        """End the process; nothing that it still does reaches the store or the log."""
        self.log.close()

    def stop(self, seconds: float = 5.0) -> bool:
        whole = self.intake.close(seconds)
        self.intake.release(is_settled=True)
        return whole


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture(params=NAMES)
def requests(request: pytest.FixtureRequest) -> list[Path]:
    return bodies(request.param)


def files(folder: Path) -> list[Path]:
    return list(folder.glob("*.records"))


def wait_until_empty(folder: Path) -> None:
    deadline = time.monotonic() + 10
    while files(folder):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_a_killed_process_acknowledged_is_recorded(
    tmp_path: Path, store: Store, requests: list[Path]
) -> None:
    killed = Process(tmp_path, store)
    assert {killed.post(path) for path in requests} == {200}
    killed.kill()
    process = Process(tmp_path, store)
    process.intake.start()
    wait_until_empty(tmp_path)

    assert store.turns == CALLS
    assert process.stop()


@pytest.mark.parametrize("stored", [0, 2])
def test_calls_that_are_stored_are_not_recorded_again(
    tmp_path: Path, store: Store, requests: list[Path], stored: int
) -> None:
    for attempt in range(2):
        store.takes_only = stored if not attempt else 0
        killed = Process(tmp_path, store)
        killed.intake.start()
        assert {killed.post(path) for path in requests} == {200}
        assert killed.intake.close()
        killed.kill()
    store.takes_only = None
    process = Process(tmp_path, store)
    process.intake.start()
    wait_until_empty(tmp_path)
    assert process.stop()

    assert store.turns == CALLS


def test_a_request_that_is_sent_again_counts_once(tmp_path: Path, store: Store, requests: list[Path]) -> None:
    killed = Process(tmp_path, store)
    for path in requests:
        killed.post(path)
    killed.kill()
    process = Process(tmp_path, store)
    process.intake.start()
    assert {process.post(path) for path in [*requests, *requests]} == {200}
    assert process.stop()

    assert store.turns == CALLS
    assert files(tmp_path) == []


def test_what_finds_no_time_at_the_end_is_recorded_at_the_next_start(tmp_path: Path, store: Store) -> None:
    store.takes_events.clear()
    process = Process(tmp_path, store)
    process.intake.start()
    for path in bodies("openllmetry_openai"):
        process.post(path)
    started = time.monotonic()
    assert not process.stop(0.2)
    assert time.monotonic() - started < 3
    assert store.turns == []
    store.takes_events.set()
    process = Process(tmp_path, store)
    process.intake.start()

    assert process.stop()
    assert store.turns == CALLS


def test_the_log_keeps_what_the_store_has_not_confirmed(tmp_path: Path, store: Store) -> None:
    store.takes_only = 0
    process = Process(tmp_path, store)
    process.intake.start()
    for path in bodies("openllmetry_openai"):
        process.post(path)
    time.sleep(0.6)

    assert files(tmp_path)
    process.intake.close()
    process.kill()


def test_a_full_log_refuses(tmp_path: Path, store: Store) -> None:
    """With 503, so that the exporter keeps it."""
    (path,) = bodies("openllmetry_openai")
    process = Process(tmp_path, store, capacity_bytes=1_000)

    assert process.post(path) == 503
    assert process.post(path) == 503
    process.kill()


def test_a_disk_that_fails_refuses(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = bodies("openllmetry_openai")
    process = Process(tmp_path, store)
    process.intake.start()

    def fail(number: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(process.log, "sync", fail)
        assert process.post(path) == 503
    assert process.post(path) == 200
    assert process.stop()
    assert store.turns == CALLS


def test_a_store_that_does_not_answer_is_tried_again(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its answer, calls would be recorded twice."""
    monkeypatch.setattr(intake_module, "RETRY_SECONDS", 0.01)
    killed = Process(tmp_path, store)
    killed.intake.start()
    for path in bodies("openllmetry_openai"):
        killed.post(path)
    store.takes_only = 2
    assert killed.intake.close()
    killed.kill()
    store.takes_only, store.failures = None, 3
    process = Process(tmp_path, store)
    process.intake.start()
    wait_until_empty(tmp_path)

    assert process.stop()
    assert store.turns == CALLS


@pytest.fixture(autouse=True)
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_module, "TICK_SECONDS", 0.02)


def test_a_request_that_is_no_longer_remembered_is_taken_again(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_module, "REMEMBERED_REQUESTS", 1)
    process = Process(tmp_path, store)
    first, second = (bodies(name)[0] for name in NAMES[:2])

    assert [process.post(one) for one in (first, second, first)] == [200, 200, 200]
    process.stop()

"""The queue between agents and sinks: order, drop reports, failing sinks and forks."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import (
    Event,
    EventContext,
    OverflowDetected,
    SessionStarted,
    TelemetryDropped,
    TurnStarted,
)
from windowpane.exceptions import StoreBusyError
from windowpane.outputs.runtime import sink_runner
from windowpane.outputs.runtime.pipeline import Pipeline

Wait = Callable[..., None]


def context(stream: str = "s1") -> EventContext:
    return EventContext(stream, "agent", "model", 1, 1, "live", stream)


def events(first: int, last: int, stream: str = "s1") -> list[Event]:
    """Events numbered from *first* to *last* of one stream."""
    shared = context(stream)
    return [Event(shared, n, 1000.0 + n, TurnStarted()) for n in range(first, last + 1)]


class Recorder:
    """A sink that remembers, and can be held up."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.flushed = 0
        self.forked = 0

    def write(self, batch: Sequence[Event]) -> None:
        self.entered.set()
        self.open.wait(30)
        self.events.extend(batch)

    def flush(self) -> None:
        self.flushed += 1

    def after_fork(self) -> None:
        self.forked += 1


class Broken:
    """A sink that fails while `failing` is set."""

    def __init__(self) -> None:
        self.failing = True
        self.events: list[Event] = []

    def write(self, batch: Sequence[Event]) -> None:
        if self.failing:
            raise OSError("disk full")
        self.events.extend(batch)


class Locked:
    """A sink that another process keeps locked at the first attempts."""

    atomic = True

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts
        self.events: list[Event] = []

    def write(self, batch: Sequence[Event]) -> None:
        self._attempt()
        self.events.extend(batch)

    def flush(self) -> None:
        self._attempt()

    def _attempt(self) -> None:
        self.attempts -= 1
        if self.attempts >= 0:
            raise StoreBusyError("locked")


class Drops:
    """Counts drops as the metrics do."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}

    def __call__(self, sink: str, reason: str, count: int) -> None:
        self.counts[sink, reason] = self.counts.get((sink, reason), 0) + count


@pytest.fixture
def build() -> Iterator[Callable[..., Pipeline]]:
    """Builds pipelines and closes them after the test."""
    made: list[Pipeline] = []

    def make(*args: object, **options: object) -> Pipeline:
        pipeline = Pipeline(*args, **{"linger_seconds": 0.005, **options})  # type: ignore[arg-type]
        made.append(pipeline)
        return pipeline

    yield make
    for pipeline in made:
        pipeline.close(2)


def numbers(recorder: Recorder | Broken | Locked | Picky) -> list[int]:
    return [event.n for event in recorder.events]


def test_events_arrive_in_order_at_every_sink(build: Callable[..., Pipeline]) -> None:
    first, second = Recorder(), Recorder()
    pipeline = build({"a": first, "b": second})

    for n in range(0, 3_000, 3):
        pipeline.put(events(n, n + 2))

    assert pipeline.flush(10)
    assert numbers(first) == numbers(second) == list(range(3_000))
    assert first.flushed == 1
    assert pipeline.queued_events == 0


def test_a_failing_sink_does_not_affect_the_others(
    build: Callable[..., Pipeline], caplog: pytest.LogCaptureFixture
) -> None:
    broken, healthy, drops = Broken(), Recorder(), Drops()
    pipeline = build({"store": broken, "metrics": healthy}, count_drops=drops)

    for n in range(3):
        pipeline.put(events(n, n))
        assert not pipeline.flush(10)

    assert numbers(healthy) == [0, 1, 2]
    assert drops.counts == {("store", "error"): 3}
    assert sum("disk full" in record.message for record in caplog.records) == 1


def test_a_recovered_sink_gets_a_report_of_missed_events(build: Callable[..., Pipeline]) -> None:
    broken = Broken()
    pipeline = build({"store": broken})
    pipeline.put(events(0, 4))
    assert not pipeline.flush(10)
    pipeline.put(events(5, 6))
    assert not pipeline.flush(10)

    broken.failing = False
    pipeline.put(events(7, 8))
    assert pipeline.flush(10)

    assert numbers(broken) == [6, 7, 8]
    assert broken.events[0].data == TelemetryDropped(0, 6, "sink_failed")


class Picky:
    """An atomic sink that refuses batches with certain numbers in them."""

    atomic = True

    def __init__(self, *refused: int) -> None:
        self.refused = refused
        self.events: list[Event] = []

    def write(self, batch: Sequence[Event]) -> None:
        if any(event.n in self.refused and isinstance(event.data, TurnStarted) for event in batch):
            raise ValueError("cannot be encoded")
        self.events.extend(batch)


def test_one_bad_event_drops_one_event(build: Callable[..., Pipeline]) -> None:
    picky, drops = Picky(7, 8, 31), Drops()
    pipeline = build({"store": picky}, count_drops=drops)

    pipeline.put(events(0, 40))
    assert not pipeline.flush(10)
    pipeline.put(events(41, 41))
    assert pipeline.flush(10)

    stored = [event.n for event in picky.events if isinstance(event.data, TurnStarted)]
    assert stored == [n for n in range(42) if n not in picky.refused]
    assert drops.counts == {("store", "error"): 3}
    report = [event.data for event in picky.events if isinstance(event.data, TelemetryDropped)]
    assert report == [TelemetryDropped(7, 8, "sink_failed"), TelemetryDropped(31, 31, "sink_failed")]


def test_a_report_that_cannot_be_written_is_discarded(build: Callable[..., Pipeline]) -> None:
    class Refuses(Picky):
        def write(self, batch: Sequence[Event]) -> None:
            if any(event.context.stream_id == "bad" for event in batch):
                raise UnicodeEncodeError("utf-8", "", 0, 1, "surrogates not allowed")
            self.events.extend(batch)

    sink, drops = Refuses(), Drops()
    pipeline = build({"store": sink}, count_drops=drops)
    for n in range(4):
        pipeline.put(events(n, n, "bad"))
        pipeline.put(events(n, n, "good"))
        assert not pipeline.flush(10)

    assert numbers(sink) == [0, 1, 2, 3]
    assert drops.counts == {("store", "error"): 4}


def test_an_event_that_cannot_be_evaluated_does_not_affect_others(build: Callable[..., Pipeline]) -> None:
    sink = Recorder()
    pipeline = build({"store": sink}, engine=AlertEngine())
    nonsense = Event(context("n"), 0, 1.0, OverflowDetected("provider", "retried", "many", 8_192))  # type: ignore[arg-type]

    pipeline.put([nonsense, Event(context(), 1, 2.0, OverflowDetected("provider", "retried", 9_000, 8_192))])
    assert pipeline.flush(10)

    assert [event.type for event in sink.events].count("alert.fired") == 1


def test_a_full_queue_drops_and_reports_whole_batches(build: Callable[..., Pipeline]) -> None:
    sink, drops = Recorder(), Drops()
    sink.open.clear()
    pipeline = build({"store": sink}, capacity_events=14, count_drops=drops)
    pipeline.put(events(0, 3))
    assert sink.entered.wait(10)

    pipeline.put(events(4, 12))
    pipeline.put(events(13, 15))
    pipeline.put(events(16, 18))
    sink.open.set()
    assert not pipeline.flush(10)
    pipeline.put(events(19, 20))
    assert pipeline.flush(10)

    assert drops.counts == {("queue", "full"): 6}
    assert numbers(sink) == [*range(13), 18, 19, 20]
    assert sink.events[13].data == TelemetryDropped(13, 18, "queue_full")


def test_a_drop_is_reported_before_later_events_of_its_stream(build: Callable[..., Pipeline]) -> None:
    sink = Recorder()
    sink.open.clear()
    pipeline = build({"store": sink}, capacity_events=11)
    pipeline.put(events(0, 0))
    assert sink.entered.wait(10)

    pipeline.put(events(1, 8))
    pipeline.put(events(9, 12))
    pipeline.put(events(13, 14))
    sink.open.set()
    assert not pipeline.flush(10)

    assert numbers(sink) == [*range(9), 12, 13, 14]


def test_put_never_raises(build: Callable[..., Pipeline]) -> None:
    sink = Recorder()
    pipeline = build({"store": sink}, count_drops=lambda *_: 1 / 0, capacity_events=5)
    for nonsense in (None, 7, [object()], events(0, 99)):
        pipeline.put(nonsense)  # type: ignore[arg-type]

    pipeline.put(events(0, 1))

    assert not pipeline.flush(10)
    assert [event for event in numbers_of_events(sink) if event < 2] == [0, 1]


def numbers_of_events(recorder: Recorder) -> list[int]:
    return [event.n for event in recorder.events if isinstance(event, Event)]


def test_alerts_follow_the_batch_that_caused_them(build: Callable[..., Pipeline]) -> None:
    sink, heard = Recorder(), []
    pipeline = build({"store": sink}, engine=AlertEngine())
    pipeline.listen("alert.fired", heard.append)
    pipeline.listen("alert.fired", lambda event: 1 / 0)

    pipeline.put(
        [
            Event(context(), 0, 1.0, SessionStarted()),
            Event(context(), 1, 2.0, OverflowDetected("provider", "retried", 9_000, 8_192)),
        ]
    )
    assert pipeline.flush(10)

    assert [event.type for event in sink.events] == ["session.started", "overflow.detected", "alert.fired"]
    assert heard == sink.events[2:]


def test_close_writes_queued_events_and_ends_the_thread(build: Callable[..., Pipeline]) -> None:
    sink, drops = Recorder(), Drops()
    before = threading.active_count()
    pipeline = build({"store": sink}, count_drops=drops, linger_seconds=5)
    pipeline.put(events(0, 9))

    assert pipeline.close(10)
    pipeline.put(events(10, 12))

    assert numbers(sink) == list(range(10))
    assert drops.counts == {("queue", "closed"): 3}
    assert threading.active_count() == before
    assert pipeline.close(1)


def test_no_thread_before_the_first_event(build: Callable[..., Pipeline]) -> None:
    before = threading.active_count()

    pipeline = build({"store": Recorder()})

    assert threading.active_count() == before
    assert pipeline.queued_events == 0


def test_flush_and_close_time_out_with_a_hung_sink(build: Callable[..., Pipeline]) -> None:
    sink, drops = Recorder(), Drops()
    sink.open.clear()
    pipeline = build({"store": sink}, capacity_events=110, count_drops=drops)
    pipeline.put(events(0, 9))
    assert sink.entered.wait(10)

    assert not pipeline.flush(0.05)
    for n in range(10, 1_000, 10):
        pipeline.put(events(n, n + 9))

    assert pipeline.queued_events <= 110, "the queue, and the batch that is being written"
    assert drops.counts["queue", "full"] == 890
    assert not pipeline.close(0.05)
    sink.open.set()


def test_flush_from_a_listener_does_not_deadlock(build: Callable[..., Pipeline]) -> None:
    answers: list[bool] = []
    pipeline = build({"store": Recorder()})
    pipeline.listen("turn.started", lambda event: answers.append(pipeline.flush(30)))

    pipeline.put(events(0, 0))

    assert pipeline.flush(10)
    assert answers == [False]


def test_no_event_of_many_threads_is_lost(build: Callable[..., Pipeline]) -> None:
    sink, drops = Recorder(), Drops()
    pipeline = build({"store": sink}, count_drops=drops)

    def produce(stream: str) -> None:
        for n in range(0, 2_000, 10):
            pipeline.put(events(n, n + 9, stream))

    threads = [threading.Thread(target=produce, args=(f"s{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pipeline.flush(20)

    for i in range(8):
        of_stream = [event.n for event in sink.events if event.context.stream_id == f"s{i}"]
        assert of_stream == list(range(2_000))
    assert not drops.counts
    assert pipeline.queued_events == 0


def test_put_works_in_a_signal_handler(build: Callable[..., Pipeline]) -> None:
    sink = Recorder()
    pipeline = build({"store": sink})
    flushed: list[bool] = []

    def handler(signum: int, frame: object) -> None:
        pipeline.put(events(0, 0, "handler"))
        flushed.append(pipeline.flush(10))

    previous = signal.signal(signal.SIGUSR1, handler)
    try:
        for n in range(2_000):
            if n == 1_000:
                os.kill(os.getpid(), signal.SIGUSR1)
            pipeline.put(events(n, n))
    finally:
        signal.signal(signal.SIGUSR1, previous)

    assert pipeline.flush(10)
    assert flushed == [True]
    assert len(sink.events) == 2_001


def test_a_forked_child_has_a_new_queue_and_worker(build: Callable[..., Pipeline]) -> None:
    sink = Recorder()
    sink.open.clear()
    pipeline = build({"store": sink}, engine=AlertEngine())
    pipeline.put(events(0, 3))
    assert sink.entered.wait(10)
    pipeline.put(events(4, 5))

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # runs in the child
        fresh = Recorder()
        next(iter(pipeline._sinks)).sink = fresh
        pipeline.put(events(100, 102, "child"))
        ok = pipeline.flush(10) and numbers(fresh) == [100, 101, 102] and sink.forked == 1
        os.write(writer, b"1" if ok else b"0")
        os._exit(0)
    os.close(writer)
    answer = os.read(reader, 1)
    os.close(reader)
    os.waitpid(child, 0)
    sink.open.set()

    assert answer == b"1"
    assert pipeline.flush(10)
    assert numbers(sink) == list(range(6))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_died_is_replaced(build: Callable[..., Pipeline], wait_until: Wait) -> None:
    sink, dying = Recorder(), [True]

    class Exits:
        def write(self, batch: Sequence[Event]) -> None:
            if dying:
                dying.clear()
                raise SystemExit

    pipeline = build({"exits": Exits(), "store": sink})
    pipeline.put(events(0, 0))
    wait_until(lambda: not dying and not pipeline._worker.is_running)

    pipeline.put(events(1, 1))

    assert not pipeline.flush(10), "once: events were lost"
    assert numbers(sink) == [1]


def test_a_closed_pipeline_is_garbage_collected() -> None:
    import weakref

    pipeline = Pipeline({"store": Recorder()})
    pipeline.put(events(0, 0))
    pipeline.close(10)
    weak = weakref.ref(pipeline)
    del pipeline
    gc.collect()

    assert weak() is None


def test_a_sink_that_is_locked_for_a_moment_is_not_reported(
    build: Callable[..., Pipeline], caplog: pytest.LogCaptureFixture
) -> None:
    sink = Locked(attempts=2)
    pipeline = build({"store": sink})
    pipeline.put(events(0, 2))

    assert pipeline.close(10)
    assert (numbers(sink), sink.attempts < 0, caplog.messages) == ([0, 1, 2], True, [])


def test_a_sink_that_stays_locked_is_reported(
    build: Callable[..., Pipeline], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sink_runner, "BUSY_SECONDS", 0.0)
    pipeline = build({"store": Locked(attempts=2)})
    pipeline.put(events(0, 2))

    assert pipeline.flush(10)
    assert caplog.messages == ["sink store failed: StoreBusyError: locked"]


def test_events_that_a_locked_sink_does_not_take_until_the_end_are_reported(
    build: Callable[..., Pipeline], caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = build({"store": Locked(attempts=1_000_000)})
    pipeline.put(events(0, 2))

    assert not pipeline.close(0.2)
    assert caplog.messages == ["3 events of store are lost: it was closed before it took all events"]

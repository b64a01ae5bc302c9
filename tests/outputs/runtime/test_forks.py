"""Forking and short-lived processes: each counts its own events, none twice and none lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from otlp_receiver import Receiver, record_attributes
from prometheus_client import generate_latest

from windowpane.core.events import Event, EventContext, SessionStarted, TurnEnded, Usage
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.outputs.runtime.start import Runtime, stop
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")

WORKERS = 4


def turns(session: str, count: int) -> list[Event]:
    context = EventContext(session, "worker", "gpt-4o", 1, 1, "live", session)
    ended = [Event(context, n + 1, 1_000.0, TurnEnded(Usage(10), "usage")) for n in range(count)]
    return [Event(context, 0, 1_000.0, SessionStarted()), *ended]


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def turns_in(text: str) -> float:
    return sum(
        float(line.split()[-1]) for line in text.splitlines() if line.startswith("context_window_turns_total{")
    )


class Child:
    """A forked worker that runs *work*, reports its result and waits to be released."""

    def __init__(self, work: Callable[[], dict[str, Any]]) -> None:
        results, report = os.pipe()
        waits, release = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:  # pragma: no cover  # runs in the child
            signal.alarm(60)  # even if the parent dies
            answer: dict[str, Any]
            try:
                answer = work()
            except BaseException as error:  # noqa: BLE001  # reported to the parent
                answer = {"error": repr(error)}
            os.write(report, json.dumps(answer).encode() + b"\n")
            os.read(waits, 1)
            stop()
            os._exit(0)
        os.close(report)
        self._release, self._waits = release, waits
        self._results = os.fdopen(results)

    def answer(self) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self._results.readline())
        assert "error" not in result, result
        return result

    def end(self) -> int:
        os.write(self._release, b".")
        for end in (self._release, self._waits):
            os.close(end)
        self._results.close()
        return os.waitpid(self.pid, 0)[1]


def worker(running: Runtime, number: int) -> Callable[[], dict[str, Any]]:
    """Return the work of one worker: emit a session, then report its address and the turns scraped there."""

    def work() -> dict[str, Any]:
        running.emit(turns(f"session-{number}", number + 1))
        assert running.flush(30)
        assert running.url is not None
        return {"url": running.url, "turns": turns_in(read(running.url))}

    return work


def test_every_worker_has_an_endpoint_and_serve_sums_them(start_outputs: Callable[..., Runtime]) -> None:
    running = start_outputs()
    running.emit(turns("master", 10))
    assert running.flush(20)
    assert running.store is not None
    children = [Child(worker(running, number)) for number in range(WORKERS)]
    answers = [child.answer() for child in children]
    served = StoreExporter(running.store)
    served.catch_up()
    listed = {f"http://{target.address}/metrics" for target in served.targets()}
    os.kill(children[0].pid, signal.SIGKILL)
    assert children[0].end() == signal.SIGKILL
    afterwards = {f"http://{target.address}/metrics" for target in served.targets()}
    codes = [child.end() for child in children[1:]]

    assert [answer["turns"] for answer in answers] == [1, 2, 3, 4]
    assert len({answer["url"] for answer in answers} | {running.url}) == WORKERS + 1
    assert listed == {answer["url"] for answer in answers} | {running.url}
    assert afterwards == listed - {answers[0]["url"]}
    assert codes == [0] * (WORKERS - 1)
    assert turns_in(read(running.url or "")) == 10
    assert turns_in(generate_latest(served.routes().registry).decode()) == 10 + 1 + 2 + 3 + 4


def test_every_worker_pushes_separately(start_outputs: Callable[..., Runtime], receiver: Receiver) -> None:
    running = start_outputs(otlp_endpoint=receiver.url, settings={"otlp": {"interval_seconds": 86_400}})
    running.emit(turns("master", 10))
    assert running.flush(20)
    children = [Child(worker(running, number)) for number in range(WORKERS)]
    for child in children:
        child.answer()
    codes = [child.end() for child in children]
    stop()
    counted: dict[str, float] = {}
    for request in receiver.requests:
        for resource in request.resource_metrics:
            attributes = {item.key: item.value.string_value for item in resource.resource.attributes}
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == "context_window.turns":
                        counted[attributes["service.instance.id"]] = sum(
                            point.as_int or point.as_double for point in metric.sum.data_points
                        )
    ids = [record_attributes(record)["context_window.event.id"] for record in receiver.records()]

    assert codes == [0] * WORKERS
    assert sorted(counted.values()) == [1, 2, 3, 4, 10]
    assert len(ids) == len(set(ids)) == 11 + 2 + 3 + 4 + 5


def test_forks_during_scrapes_and_folds_start_from_zero(start_outputs: Callable[..., Runtime]) -> None:
    running = start_outputs()
    running.emit(turns("master", 1))
    assert running.flush(20)
    ending = threading.Event()

    def scrape() -> None:
        while not ending.is_set():
            for source in running._metrics.sources:
                source.collect()

    def emit() -> None:
        context, n = EventContext("busy", "busy", "gpt-4o", 1, 1, "live", "busy"), 0
        while not ending.wait(0.0005):
            running.emit([Event(context, n, 1_000.0, TurnEnded(Usage(10), "usage"))])
            running.record_hook("on_turn_end", 0.001)
            n += 1

    threads = [threading.Thread(target=scrape), threading.Thread(target=scrape), threading.Thread(target=emit)]
    for thread in threads:
        thread.start()
    answers = []
    try:
        for number in range(12):
            child = Child(worker(running, number))
            answers.append(child.answer()["turns"])
            assert child.end() == 0
    finally:
        ending.set()
        for thread in threads:
            thread.join()

    assert answers == [float(number + 1) for number in range(12)]


def test_a_forked_child_has_a_new_alert_engine(start_outputs: Callable[..., Runtime]) -> None:
    running = start_outputs()
    engine = running.pipeline._engine
    assert engine is not None
    running.emit(turns("master", 3))
    assert running.flush(20)
    followed = len(engine._sessions)

    def look() -> dict[str, Any]:
        new = running.pipeline._engine
        assert new is not None
        return {"new": new is not engine, "followed": len(new._sessions), "rules": len(new.rules)}

    child = Child(look)
    answer = child.answer()
    child.end()

    assert followed == 1
    assert answer == {"new": True, "followed": 0, "rules": len(engine.rules)}


JOB = """
import sys
import windowpane
from windowpane.core.events import Event, EventContext, SessionStarted, TurnEnded, Usage
running = windowpane.start(port=0, store=sys.argv[1], notify=[], otlp_endpoint=sys.argv[2])
context = EventContext(sys.argv[3], "job", "gpt-4o", 1, 1, "live", sys.argv[3])
running.emit([Event(context, 0, 1.0, SessionStarted()), Event(context, 1, 2.0, TurnEnded(Usage(7), "usage"))])
"""


def test_a_short_job_is_stored_and_pushed(
    tmp_path: Path, receiver: Receiver, start_outputs: Callable[..., Runtime]
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in ("one", "two"):
        subprocess.run(
            [sys.executable, "-c", JOB, str(tmp_path / "windowpane.db"), receiver.url, name],
            check=True,
            timeout=60,
            env=environment,
        )
    running = start_outputs()
    assert running.store is not None
    served = StoreExporter(running.store)
    served.catch_up()
    values = {
        family.metric.name: sum(point.value for point in family.points)
        for family in served.state.collect(now=2.0)
        if family.metric.kind == "counter"
    }
    pushed = [
        point.as_int or point.as_double
        for metric in receiver.metrics()
        if metric.name == "context_window.turns"
        for point in metric.sum.data_points
    ]

    assert values["context_window_turns_total"] == 2
    assert pushed == [1, 1]
    assert {record_attributes(record)["gen_ai.conversation.id"] for record in receiver.records()} == {
        "one",
        "two",
    }


def test_a_short_job_stores_its_events_and_ends_in_time_without_a_receiver(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    path = tmp_path / "windowpane.db"
    subprocess.run(
        [sys.executable, "-c", JOB, str(path), f"http://127.0.0.1:{free_port()}", "one"],
        check=True,
        timeout=40,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    with closing(SqliteStore(path)) as store:
        assert [stored.event.data.type for stored in store.events(EventFilter(session_id="one"))] == [
            "session.started",
            "turn.ended",
        ]

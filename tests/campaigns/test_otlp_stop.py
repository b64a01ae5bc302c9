"""Campaign: `serve --otlp` is stopped and killed while busy; what it acknowledged is stored, once."""

from __future__ import annotations

import http.client
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.campaigns.conftest import Campaign
from tests.campaigns.ingest_server import is_intact

RECORDED = Path(__file__).parents[1] / "sources" / "telemetry" / "recorded"
NAMES = sorted({path.name.split(".")[0] for path in RECORDED.glob("*.pb")})
CALLS_OF_A_RUN = 3
PATIENCE_SECONDS = 120.0
CONVERSATION = "gen_ai.conversation.id"
SENDERS = 4
WAIT_SECONDS = 0.5
"""Time that calls are held: with the usual ten seconds few of them would be halfway to the store."""


class OtlpServer:
    """A `serve --otlp` process to stop and start again on the same ports."""

    def __init__(self, folder: Path, free_port: Callable[[], int]) -> None:
        self.store = folder / "windowpane.db"
        self.port = free_port()
        self._metrics_port = free_port()
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = ["--port", self._metrics_port, "--otlp", "--otlp-port", self.port, "--store", self.store]
        command = [sys.executable, "-P", "-m", "windowpane", "serve", *map(str, options)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=os.environ | {"WINDOWPANE_OTLP__RECEIVE_WAIT_SECONDS": str(WAIT_SECONDS)},
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_SECONDS)
            self._process = None

    def _answers(self) -> bool:
        with (
            suppress(OSError),
            closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection,
        ):
            connection.request("POST", "/v1/metrics", b"{}", {"Content-Type": "application/json"})
            return connection.getresponse().status == 200
        return False


class Run(list[tuple[str, bytes]]):
    """The requests of one recorded run, as another conversation, with their paths."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.conversation = f"run-{number}"
        """The name by which the calls are counted, without the names of the instrumentations in their way."""
        name = NAMES[number % len(NAMES)]
        for path in sorted(RECORDED.glob(f"{name}.*.pb")):
            request = (ExportTraceServiceRequest if ".traces." in path.name else ExportLogsServiceRequest)()
            request.ParseFromString(path.read_bytes())
            for item in _items(request):
                if item.trace_id:
                    item.trace_id = _other(item.trace_id, number)
                for attribute in [one for one in item.attributes if one.key in _CONVERSATIONS]:
                    item.attributes.remove(attribute)
                item.attributes.add(key=CONVERSATION).value.string_value = self.conversation
            signal_name = "traces" if ".traces." in path.name else "logs"
            self.append((f"/v1/{signal_name}", request.SerializeToString()))


_CONVERSATIONS = (CONVERSATION, "session.id", "thread_id", "traceloop.association.properties.session_id")


def _items(request: object) -> Iterator[object]:
    for resource in getattr(request, "resource_spans", ()) or getattr(request, "resource_logs", ()):
        for scope in getattr(resource, "scope_spans", ()) or getattr(resource, "scope_logs", ()):
            yield from getattr(scope, "spans", ()) or getattr(scope, "log_records", ())


def _other(identifier: bytes, number: int) -> bytes:
    return number.to_bytes(4, "big") + identifier[4:]


class Senders:
    """Threads that send runs until each request is acknowledged, as exporters do."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._next = 0
        self.acknowledged: list[str] = []
        """The conversations of which every request was acknowledged."""
        self._threads = [threading.Thread(target=self._send_runs) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)

    def wait_for(self, runs: int) -> None:
        """Return when so many more runs were acknowledged."""
        until, deadline = len(self.acknowledged) + runs, time.monotonic() + PATIENCE_SECONDS
        while len(self.acknowledged) < until:
            assert time.monotonic() < deadline, "nothing is acknowledged"
            time.sleep(0.005)

    def _send_runs(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                self._next += 1
                run = Run(self._next)
            for path, body in run:
                while not self._send(path, body):
                    time.sleep(0.02)
            self.acknowledged.append(run.conversation)

    def _send(self, path: str, body: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        with suppress(OSError, http.client.HTTPException), closing(connection):
            connection.request("POST", path, body, {"Content-Type": "application/x-protobuf"})
            response = connection.getresponse()
            response.read()
            assert response.status in {200, 429, 503}
            return response.status == 200
        return False


def turns_of(store: Path) -> Counter[str]:
    """Return the stored turns of each conversation, those that came late included."""
    turns = Counter[str]()
    with closing(sqlite3.connect(store)) as connection:
        for session_id, count in connection.execute("SELECT session_id, turns FROM sessions"):
            turns[session_id.removeprefix("otlp:").split("/")[0]] += count
    return turns


@pytest.fixture
def server(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[OtlpServer]:
    running = OtlpServer(tmp_path, free_port)
    running.start()
    yield running
    running.end(signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_busy_receiver_is_stopped(campaign: Campaign, server: OtlpServer, number: signal.Signals) -> None:
    chance, senders = random.Random(int(number)), Senders(server.port)
    tried = campaign.attempts(sample=1, whole=8)
    try:
        for _ in range(tried):
            senders.wait_for(20)
            time.sleep(chance.random() * 2)
            server.end(number)
            server.start()
    finally:
        senders.finish()
    server.end(signal.SIGTERM)
    while list((server.store.parent / "windowpane.db.otlp").glob("*.records")):
        server.start()  # what found no time while stopping
        server.end(signal.SIGTERM)
    turns = turns_of(server.store)
    lost = sum(max(0, CALLS_OF_A_RUN - turns[one]) for one in senders.acknowledged)
    twice = sum(max(0, count - CALLS_OF_A_RUN) for count in turns.values())
    holds = not lost and not twice and is_intact(str(server.store))

    campaign.record(
        f"{'SIGTERM' if number is signal.SIGTERM else 'kill -9'} of a busy `serve --otlp`", tried=tried,
        held=tried if holds else 0, lost=lost,
        note=f"{CALLS_OF_A_RUN * len(senders.acknowledged):,} calls acknowledged, {twice} stored twice",
    )  # fmt: skip
    assert (lost, twice) == (0, 0)
    assert holds

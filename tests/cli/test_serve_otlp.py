"""`windowpane serve --otlp`, as a process: from an exporter's requests to sessions, metrics and alerts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from windowpane.cli.otlp_receiver import CHECK_SECONDS, RecordedElsewhere
from windowpane.core.events import Event, EventContext, SessionStarted
from windowpane.store.embedded import SqliteReader, SqliteStore

RECORDED = Path(__file__).parents[1] / "sources" / "telemetry" / "recorded"
SECONDS = 30.0
open_url = build_opener(ProxyHandler({})).open


class Serving:
    """A running command with the addresses that it printed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.store = folder / "windowpane.db"
        self.log = folder / "serve.log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDOWPANE_")}
        config = folder / "windowpane.yaml"
        config.write_text("otlp: {receive_wait_seconds: 0.2}")
        environment["WINDOWPANE_CONFIG"] = str(config)
        command = [sys.executable, "-m", "windowpane", "serve", "--store", str(self.store), "--port", "0"]
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [*command, "--otlp", "--otlp-port", "0", *options], env=environment, stdout=output, stderr=output
            )
        self.metrics = self.wait_for(r"metrics on (\S+)")
        self.otlp = self.wait_for(r"receiving OTLP on (\S+)")

    def wait_for(self, pattern: str) -> str:
        until = time.monotonic() + SECONDS
        while True:
            match = re.search(pattern, self.log.read_text())
            if match is not None:
                return match[1]
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def send(self, name: str) -> None:
        for path in sorted(RECORDED.glob(f"{name}.*")):
            kind = "application/json" if path.suffix == ".json" else "application/x-protobuf"
            url = f"{self.otlp}/v1/{'traces' if '.traces.' in path.name else 'logs'}"
            request = Request(url, path.read_bytes(), {"Content-Type": kind})
            with open_url(request, timeout=10) as response:
                assert response.status == 200

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    running = Serving(tmp_path)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()


def test_received_calls_are_sessions_and_metrics(serving: Serving) -> None:
    for name in ("vercel_json", "openllmetry_anthropic", "otel_openai_events"):
        serving.send(name)

    assert serving.stop() == 0
    with_store = SqliteReader(serving.store)
    try:
        sessions = {row.agent: row for row in with_store.sessions()}
        assert {row.turns for row in with_store.sessions()} == {3}
        assert {row.source for row in with_store.sessions()} == {"otlp"}
        assert sessions["weather-guide"].session_id == "otlp:chat-77"
        assert sessions["weather-guide"].peak_used_tokens == 263
    finally:
        with_store.close()
    assert b"careful weather guide" not in serving.store.read_bytes()


def test_metrics_show_what_was_received(serving: Serving) -> None:
    serving.send("vercel_proto")
    three_turns = re.compile(r'context_window_turns_total\{[^}]*agent="weather-guide"[^}]*\} 3')
    until = time.monotonic() + SECONDS
    while True:
        with open_url(serving.metrics, timeout=10) as response:
            text = response.read().decode()
        if three_turns.search(text):
            break
        assert time.monotonic() < until, text
        time.sleep(0.2)

    assert "chat-77" not in text


def test_a_session_is_looked_up_once_in_a_while(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = 1_000.0
    with closing(SqliteStore(tmp_path / "windowpane.db")) as store:
        recorded_elsewhere = RecordedElsewhere(store, monotonic=lambda: now)
        assert not recorded_elsewhere("s-1")
        context = EventContext("s-1", "claude-code", "m", 0, 1, "claude_code", "s")
        store.append([Event(context, 0, 1.0, SessionStarted())])
        assert not recorded_elsewhere("s-1")
        now += CHECK_SECONDS

        assert recorded_elsewhere("s-1")
        assert "s-1 is recorded from claude_code" in capsys.readouterr().err
        store.append([Event(EventContext("s-2", "app", "m", 0, 1, "otlp", "s2"), 0, 1.0, SessionStarted())])
        assert not recorded_elsewhere("s-2")

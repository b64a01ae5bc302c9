"""A `serve --ingest` process to kill and start again, and what its store holds afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.embedded import SqliteStore
from windowpane.store.open import open_reader, open_store

PATIENCE_SECONDS = 60.0


class IngestServer:
    """One server, which keeps its port when it is started again."""

    def __init__(self, store: str, port: int, log: Path) -> None:
        self.store = store
        self.port = port
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process, and return when it answers."""
        options = ["--ingest", "--port", str(self.port), "--store", self.store]
        command = [sys.executable, "-m", "windowpane", "serve", *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """End the process at once, as kill -9 does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def turns_counted(self) -> float | None:
        """Return the sum of the turns in its metrics; None while it folds stored events."""
        try:
            with urllib.request.urlopen(f"{self.url}/metrics", timeout=PATIENCE_SECONDS) as response:
                text = response.read().decode()
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return None
        lines = [line for line in text.splitlines() if line.startswith("context_window_turns_total{")]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False


def fill(store: Path, *, sessions: int, turns: int = 60) -> None:
    """Store sessions of about ten events per turn."""
    with closing(SqliteStore(store)) as opened:
        for number in range(sessions):
            events: list[Event] = []
            info = SessionInfo(f"before-{number}", "simulated", "gpt-4o", "live", f"before-{number}")
            tracker = SessionTracker(
                info, emit=events.extend, digest=opened.digester(), limits=WindowLimits.of(128_000, "given")
            )
            tracker.start(1.0)
            for turn in range(turns):
                for call in range(3):
                    tracker.add("user_message", f"message {turn} {call}", 20, at=2.0 + turn)
                tracker.add("assistant_response", f"reply {turn}", 30, at=2.0 + turn)
                tracker.end_turn(Usage(tracker.window.tokens + 100, 30), at=2.0 + turn)
            tracker.end("completed", 3.0 + turns)
            opened.append(events)


def stored_types(store: Path) -> list[str]:
    """Return the type of each event."""
    with closing(open_reader(store)) as reader:
        return [item.event.type for batch in reader.scan() for item in batch if item.counted]


def stored_numbers(store: str) -> dict[str, list[int]]:
    """Return the numbers of each session's own events, in the order of the store."""
    numbers = defaultdict[str, list[int]](list)
    with closing(open_reader(store)) as reader:
        for batch in reader.scan():
            for item in batch:
                context = item.event.context
                if context.stream_id == f"{context.session_id}/stream":
                    numbers[context.session_id].append(item.event.n)
    return numbers


def is_intact(store: str) -> bool:
    """Return whether every chain verifies."""
    with closing(open_store(store)) as opened:
        return opened.verify(projections=False).intact

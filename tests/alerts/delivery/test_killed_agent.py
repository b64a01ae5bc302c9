"""An agent's process that is killed after an alert fired: another process delivers the message, once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter

AGENT = """
import sys, windowpane
from windowpane.core.events import Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker

running = windowpane.start(store=sys.argv[1], port=0, notify=[sys.argv[2]])
tracker = SessionTracker(
    SessionInfo("doomed", "reviewer", "gpt-4o", "live", "doomed"),
    emit=running.emit, digest=running.digest, limits=WindowLimits.of(10_000, "given"),
)
tracker.start()
for turn in range(4):
    tracker.add("user_message", f"question {turn}", 50)
    tracker.end_turn(Usage(9_300 + turn, 10))
tracker.flush()
running.flush()
print("fired", flush=True)
sys.stdin.read()
"""


def receiver(port: int, accepted: list[Any]) -> ThreadingHTTPServer:
    """An endpoint on *port* that takes every message."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            accepted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


def waiting(path: Path) -> int:
    """The number of alerts in the outbox beside the store that are not delivered."""
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM notification_outbox WHERE done_at IS NULL").fetchone()
    return int(count)


def test_serve_delivers_the_alert_of_a_killed_agent(
    tmp_path: Path, free_port: Callable[[], int], wait_until: Callable[..., None]
) -> None:
    path, port = tmp_path / "windowpane.db", free_port()
    url = f"json://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
        "WINDOWPANE_NOTIFY": url,
    }
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(path), url],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    with agent.stdin, agent.stdout:
        assert agent.stdout.readline() == b"fired\n"
        agent.send_signal(signal.SIGKILL)
        assert agent.wait(30) == -signal.SIGKILL
    assert waiting(path) > 0
    accepted: list[Any] = []
    up = receiver(port, accepted)
    command = [sys.executable, "-m", "windowpane", "serve", "--port", "0", "--store", str(path)]
    serving = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: not waiting(path), timeout_seconds=90, what="an empty outbox")
    finally:
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(30) == 0
        up.shutdown()
        up.server_close()
    with closing(SqliteStore(path)) as store:
        arrived = store.events(EventFilter(types=("notification.delivered",)))
        intact = store.verify().intact

    text = "\n".join(body["message"] for body in accepted)
    assert text.count("for 3 turns") == 1, "arrived once"
    assert "utilization" in {one.event.data.alert for one in arrived}  # type: ignore[union-attr]
    assert intact

"""The dashboard in a separate process, for commands that do something else meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from importlib.util import find_spec

import click

from windowpane.core.store_names import StoreName, full_name
from windowpane.core.version import install_command
from windowpane.outputs.http.http_server import LOOPBACK
from windowpane.outputs.http.service_discovery import http_status

START_SECONDS = 30.0
END_SECONDS = 5.0


class DashboardProcess:
    """A dashboard that starts, or the reason why it cannot."""

    def __init__(self, process: subprocess.Popen[bytes] | None, url: str) -> None:
        self._process = process
        self._url = url

    def wait(self) -> str:
        """Return its address when it responds there, else the reason."""
        if self._process is None:
            return f"not started: Streamlit is missing; run: {install_command('dashboard')}"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                return f"not started: it exited with {self._process.returncode}"
            if http_status(f"{self._url}/_stcore/health", timeout_seconds=1) == HTTPStatus.OK:
                return self._url
            time.sleep(0.1)
        return f"{self._url} (no response yet)"


@contextmanager
def dashboard_process(store: StoreName, *, port: int) -> Iterator[DashboardProcess]:
    """Run the dashboard on *port*, or on another one where it is in use, until the block ends."""
    if find_spec("streamlit") is None:
        yield DashboardProcess(None, "")
        return
    chosen = _free_port(port)
    arguments = [sys.executable, "-P", "-m", "windowpane", "dashboard", "--port", str(chosen)]
    environment = {**os.environ, "WINDOWPANE_STORE": full_name(store)}
    signal.signal(signal.SIGTERM, _exit)  # else the dashboard would outlive this process
    process = subprocess.Popen(arguments, env=environment)  # noqa: S603  # this program
    try:
        yield DashboardProcess(process, f"http://{LOOPBACK}:{chosen}")
    finally:
        end_process(process)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process; kill it where it does not end in time."""
    process.terminate()
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _exit(number: int, _frame: object) -> None:
    """Exit so that context managers run."""
    raise SystemExit(128 + number)


def _free_port(preferred: int) -> int:
    """Return *preferred*, or any free port if it is in use."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):  # in use: try any free port
                probe.bind((LOOPBACK, port))
                return int(probe.getsockname()[1])
    raise click.ClickException("no free port on loopback")

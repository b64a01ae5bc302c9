"""The dashboard in a separate process, for screenshots, browser tests and benchmarks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

from windowpane.core.store_names import StoreName, full_name
from windowpane.outputs.http.service_discovery import http_status
from windowpane_dashboard.server.launch import APP, DEFAULT_ADDRESS, DashboardError

START_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.1
STOP_SECONDS: Final = 15.0
OUTPUT_BYTES: Final = 2_000
"""Bytes of output that are reported of a server that did not start."""

_SERVE: Final = """
import sys
from pathlib import Path
import streamlit as st
from windowpane.config.loading import load_config
from windowpane.config.paths import default_store
from windowpane_dashboard.server.launch import APP, run, server_config
app, port, address = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if app == APP:
    run(default_store(), port, address, login=load_config().dashboard.oidc)
else:
    st.App(app).run(config=server_config(port, address))
"""
"""Serves the dashboard, or another Streamlit program as it is."""


@contextmanager
def serving(
    store: StoreName, *, app: Path = APP, port: int = 0, start_seconds: float = START_SECONDS
) -> Iterator[str]:
    """Serve *app* on *store* at *port* of loopback while the block runs; yield its address.

    Where the port is 0 or in use, another is taken. Raises `DashboardError` with the server's last output when it
    does not answer within *start_seconds*.
    """
    port = _free_port(port)
    url = f"http://{DEFAULT_ADDRESS}:{port}"
    command = [sys.executable, "-P", "-c", _SERVE, str(app), str(port), DEFAULT_ADDRESS]
    environment = {**os.environ, "WINDOWPANE_STORE": full_name(store)}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
        try:
            deadline = time.monotonic() + start_seconds
            while http_status(f"{url}/_stcore/health", timeout_seconds=2) != HTTPStatus.OK:
                if process.poll() is not None or time.monotonic() > deadline:
                    output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_BYTES))
                    raise DashboardError(
                        f"the dashboard did not start:\n{output.read().decode(errors='replace')}"
                    )
                time.sleep(POLL_SECONDS)
            yield url
        finally:
            _end(process)


def _free_port(preferred: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((DEFAULT_ADDRESS, preferred))
        except OSError:
            probe.bind((DEFAULT_ADDRESS, 0))
        return int(probe.getsockname()[1])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process; kill it where it does not stop in time."""
    process.terminate()
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=STOP_SECONDS)

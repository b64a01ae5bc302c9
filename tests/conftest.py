"""Fixtures shared by all tests: recorded sessions, real servers, loopback ports."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings
from tests.sampling import EVERYTHING

pytest_plugins = ["tests.servers.clickhouse", "tests.servers.postgres"]

# Deterministic and quick by default, so that CI never fails on luck; wide when asked for.
_SLOW_MACHINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "quick", max_examples=25, deadline=None, derandomize=True, suppress_health_check=_SLOW_MACHINE
)
settings.register_profile("all", max_examples=1500, deadline=None, suppress_health_check=_SLOW_MACHINE)
settings.load_profile("all" if EVERYTHING else "quick")

# A shell that runs the tests in the background has them, and so the programs they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the large matrices to `make test-all`, and put the tests of the browser first.

    A worker starts with the first of its share, and others take from the end of it: so one worker runs these,
    with one browser, and with its servers and stores made once.
    """
    for item in items:
        if not EVERYTHING and item.get_closest_marker("matrix"):
            item.add_marker(pytest.mark.skip(reason="only with WINDOWPANE_TEST_ALL"))
    items.sort(key=lambda item: item.get_closest_marker("browser") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests without garbage collections: almost nothing of it is garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Take the collected tests out of garbage collections, each of which would look at all of them."""
    gc.collect()
    gc.freeze()


RequireServer = Callable[[str], Path]
"""Name of a program to its path; skips, or fails where servers are required."""


class RunServer(Protocol):
    """Starts a program and hands it back once *ready* returns true."""

    def __call__(
        self, command: Sequence[str | Path], *, ready: Callable[[], bool], timeout_seconds: float = 30
    ) -> subprocess.Popen[bytes]:
        """The running process; it is stopped when the test ends."""
        ...


@pytest.fixture(scope="session")
def sessions_dir() -> Path:
    """The folder of recorded sessions, or a skip with instructions."""
    configured = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not configured:
        pytest.skip("WINDOWPANE_SESSIONS_DIR is not set: no recorded sessions to read")
    folder = Path(configured)
    assert folder.is_dir(), f"WINDOWPANE_SESSIONS_DIR={configured} is not a folder"
    return folder


@pytest.fixture(scope="session")
def require_server() -> RequireServer:
    """Find a program such as `promtool`; without it the test is skipped, or fails in CI."""

    def require(program: str) -> Path:
        path = shutil.which(program)
        if path:
            return Path(path)
        reason = f"{program} is not installed (as root on Debian, `make test` installs it)"
        if os.environ.get("WINDOWPANE_REQUIRE_SERVERS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    return require


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A function that gives a TCP port free on loopback at this moment."""

    def port() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    return port


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """A function that waits for a condition and fails with its name when it never holds."""

    def wait(condition: Callable[[], bool], *, timeout_seconds: float = 30, what: str = "condition") -> None:
        deadline = time.monotonic() + timeout_seconds
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what} did not hold within {timeout_seconds} s")
            time.sleep(0.02)

    return wait


@pytest.fixture
def run_server(tmp_path: Path) -> Iterator[RunServer]:
    """Start programs in the background and stop exactly those when the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def run(
        command: Sequence[str | Path], *, ready: Callable[[], bool], timeout_seconds: float = 30
    ) -> subprocess.Popen[bytes]:
        log_path = tmp_path / f"server-{len(started)}.log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        started.append(process)
        deadline = time.monotonic() + timeout_seconds
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                tail = log_path.read_text(errors="replace")[-2000:]
                pytest.fail(f"{command[0]} did not become ready (exit code {process.poll()}):\n{tail}")
            time.sleep(0.05)
        return process

    yield run
    for process in started:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask this one process to end, then insist."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)

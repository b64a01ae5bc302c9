"""A ClickHouse server of the test process: its HTTP interface over chdb, and an empty database for each test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tests.providers.environments import CHDB, NotInstalledError, environment

from windowpane.exceptions import ClickHouseError
from windowpane.store.clickhouse.connection import WRITING, ClickHouse

SCRIPT = Path(__file__).with_name("clickhouse_http.py")
USER, PASSWORD = "windowpane", "a password: 100% & more"
PATIENCE_SECONDS = 60.0


class ClickHouseServer:
    """One server on a free port of loopback, which can be killed and started again with what it stored."""

    def __init__(self, python: Path, *, disk: bool = False) -> None:
        """*disk* is for data that is too large for memory, which is faster."""
        self._python = python
        memory = Path("/dev/shm")
        parent = memory if memory.is_dir() and not disk else None
        self.folder = Path(tempfile.mkdtemp(prefix="windowpane-clickhouse-", dir=parent))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._names = (f"test_{number}" for number in count())

    @property
    def url(self) -> str:
        """The address of the HTTP interface."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        log = self.folder.with_suffix(".log")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [self._python, SCRIPT, str(self.port), self.folder, USER, PASSWORD], stdout=output, stderr=output
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"ClickHouse did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End the server in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=PATIENCE_SECONDS)
            self._process = None

    def remove(self) -> None:
        """End the server and delete what it stored."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.with_suffix(".log").unlink(missing_ok=True)

    def connect(self, database: str | None = None) -> ClickHouse:
        """Return a connection of a copier to *database*, by default a new one."""
        name = database or next(self._names)
        return ClickHouse(self.url, database=name, user=USER, password=PASSWORD, settings=WRITING)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/ping", timeout=5) as response:
                return bool(response.status == 200)
        except (URLError, OSError):
            return False


@pytest.fixture(scope="session")
def _clickhouse() -> Iterator[ClickHouseServer]:
    try:
        python = environment(CHDB)
    except NotInstalledError as error:
        if os.environ.get("WINDOWPANE_REQUIRE_SERVERS"):
            raise
        pytest.skip(str(error))
    server = ClickHouseServer(python)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def clickhouse_server(_clickhouse: ClickHouseServer) -> ClickHouseServer:
    """A running server, also if the test before this one has killed it."""
    if not _clickhouse._answers():
        _clickhouse.start()
    return _clickhouse


@pytest.fixture
def clickhouse(clickhouse_server: ClickHouseServer) -> Iterator[ClickHouse]:
    """A connection to a database that does not exist yet."""
    connection = clickhouse_server.connect()
    yield connection
    with suppress(ClickHouseError):  # a test has killed the server
        connection.define(f"DROP DATABASE IF EXISTS {connection.database}")
    connection.close()

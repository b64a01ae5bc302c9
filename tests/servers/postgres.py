"""A PostgreSQL server of the test process's own, from Debian's binaries, and an empty database for each test.

The server sorts by the rules of a language, as servers in use do: a statement that relies on the order of bytes
has to state it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

USER = "postgres"
PATIENCE_SECONDS = 30.0
SETTINGS = (
    "fsync=off", "full_page_writes=off", "max_connections=80", "timezone=UTC",
    "listen_addresses=127.0.0.1", "unix_socket_directories=",
)  # fmt: skip


def binaries() -> Path | None:
    """The folder of the newest server's programs, which Debian keeps out of the search path."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"),
        key=lambda program: int(program.parts[-3]),
        reverse=True,
    )
    found = installed[0] if installed else shutil.which("postgres")
    return None if found is None else Path(found).resolve().parent


class PostgresServer:
    """One server on a free port of loopback, which can be stopped, killed and started again."""

    def __init__(
        self,
        programs: Path,
        *,
        memory: str = "64MB",
        settings: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        """A new server, or one with the data of an earlier process in *folder*."""
        self._programs = programs
        self._settings = (*SETTINGS, f"shared_buffers={memory}", *settings)
        self._user = USER if os.geteuid() == 0 else None  # the server refuses to run as root
        self.folder = folder or Path(tempfile.mkdtemp(prefix="windowpane-postgres-"))
        self.folder.mkdir(exist_ok=True)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.port = free_port()
        self._names = (f"test_{number}" for number in count())
        self._process: subprocess.Popen[bytes] | None = None
        if self._data.exists():
            return
        command = [programs / "initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(
            [*command, *self._language()], user=self._user, check=True, capture_output=True, cwd="/", timeout=60
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [self._programs / "postgres", "-D", self._data, "-p", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *(part for setting in self._settings for part in ("-c", setting))],
                user=self._user, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL did not start:\n{self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server without waiting for its clients: their connections break, what they committed stays."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=PATIENCE_SECONDS)
            self._process = None

    def kill(self) -> None:
        """End the server as a crash does: at once, and with a recovery at the next start."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(timeout=PATIENCE_SECONDS)
            self._process = None

    def create_database(self, name: str | None = None) -> str:
        """The address of a new, empty database."""
        import psycopg

        name = name or next(self._names)
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def has_database(self, name: str) -> bool:
        """Return whether there is a database of this name."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            return connection.execute(query, (name,)).fetchone() is not None

    def drop_database(self, url: str) -> None:
        """Delete a database and break the connections to it."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{url.rpartition("/")[2]}" WITH (FORCE)')

    def url(self, database: str) -> str:
        """The address of a database of this server."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def delete(self) -> None:
        """Stop the server and delete its files."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _language(self) -> list[str]:
        stated = subprocess.run(
            [self._programs / "postgres", "--version"], capture_output=True, text=True, check=True
        )
        version = re.search(r"\d+", stated.stdout)
        if version is None or int(version[0]) < 15:
            return ["--locale=C.UTF-8"]
        return ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"]

    def _answers(self) -> bool:
        command = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, check=False, timeout=10).returncode == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def new_postgres_server() -> Iterator[Callable[[], PostgresServer]]:
    """Start a server of a test's own, to stop and kill; skips, or fails where servers are required."""
    started: list[PostgresServer] = []

    def start() -> PostgresServer:
        pytest.importorskip(
            "psycopg", reason="psycopg is not installed: pip install 'windowpane-observability[postgres]'"
        )
        programs = binaries()
        if programs is None:
            reason = "PostgreSQL's server is not installed (as root on Debian, `make test` installs it)"
            if os.environ.get("WINDOWPANE_REQUIRE_SERVERS") == "1":
                pytest.fail(reason)
            pytest.skip(reason)
        server = PostgresServer(programs)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.delete()


@pytest.fixture(scope="session")
def postgres_server(new_postgres_server: Callable[[], PostgresServer]) -> PostgresServer:
    """The server that all tests of this process share; it is not to be stopped."""
    return new_postgres_server()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database for one test."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)

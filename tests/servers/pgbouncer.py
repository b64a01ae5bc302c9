"""PgBouncer in front of the tests' PostgreSQL server, giving each transaction another of two connections."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.postgres import PATIENCE_SECONDS, USER, PostgresServer, free_port

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
server_round_robin = 1
"""


def program() -> str | None:
    """The installed program, which Debian keeps out of the search path of users."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def pooled(server: PostgresServer, url: str) -> Iterator[str]:
    """Yield the address of a database through the pooler."""
    found = program()
    assert found is not None
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(server=server.port, user=USER, port=port))
        Path(folder).chmod(0o755)
        process = subprocess.Popen(
            [found, "-q", settings], user=USER if os.geteuid() == 0 else None, stderr=subprocess.DEVNULL
        )
        try:
            wait_until_open(port)
            yield url.replace(f":{server.port}/", f":{port}/")
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def wait_until_open(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "PgBouncer did not start"
            time.sleep(0.02)
        else:
            return

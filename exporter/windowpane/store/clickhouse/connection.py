"""The connection to a ClickHouse server, through its official client."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from windowpane.core.version import install_command
from windowpane.exceptions import ClickHouseError
from windowpane.store.clickhouse.tables import CopyTable

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

CONNECT_SECONDS: Final = 3
STATEMENT_SECONDS: Final = 60

WRITING: Final = {
    "insert_distributed_sync": 1,
    "distributed_product_mode": "global",
    "max_partitions_per_insert_block": 0,
}
"""Settings of a copier: what was inserted is visible when the insert returns, also on a cluster."""
_BYTES: Final[dict[str, str | dict[str, str]]] = {"body": "bytes", "hash": "bytes"}


class ClickHouse:
    """One connection, made at the first statement. Safe to share between threads; statements take turns."""

    def __init__(
        self,
        url: str,
        *,
        database: str,
        user: str | None = None,
        password: str = "",
        settings: Mapping[str, Any] | None = None,
        connect_seconds: int = CONNECT_SECONDS,
    ) -> None:
        self.database = database
        self._url = url
        self._user = user
        self._password = password
        self._settings = dict(settings or {})
        self._connect_seconds = connect_seconds
        self._lock = threading.Lock()
        self._client: Client | None = None

    def query(self, statement: str, values: Mapping[str, Any] | None = None) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a SELECT; columns named `body` or `hash` as bytes. Raises `ClickHouseError`."""
        with self._lend() as client:
            rows = client.query(statement, parameters=dict(values or {}), column_formats=_BYTES)
            return [tuple(row) for row in rows.result_rows]

    def describe(self, statement: str, values: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a SELECT on system tables, for which the database need not exist.

        Raises `ClickHouseError`.
        """
        with self._lend() as client:
            client.database, database = "", client.database
            try:
                return [tuple(row) for row in client.query(statement, parameters=dict(values)).result_rows]
            finally:
                client.database = database

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> None:
        """Run a statement without a result. Raises `ClickHouseError`."""
        with self._lend() as client:
            client.command(statement, parameters=dict(values or {}))

    def define(self, statement: str) -> None:
        """Run a statement that names its database, which need not exist yet. Raises `ClickHouseError`."""
        with self._lend() as client:
            client.command(statement, use_database=False)

    def insert(self, table: CopyTable, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in the order of the table's columns. Raises `ClickHouseError`."""
        if not rows:
            return
        with self._lend() as client:
            names = [column.name for column in table.columns]
            client.insert(table.name, rows, column_names=names, database=self.database)

    def close(self) -> None:
        """Close the connection; the next statement makes another."""
        with self._lock:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    @contextmanager
    def _lend(self) -> Iterator[Client]:
        from clickhouse_connect.driver.exceptions import Error
        from urllib3.exceptions import HTTPError

        with self._lock:
            try:
                if self._client is None:
                    self._client = self._connect()
                    self._client.database = self.database  # afterwards: it may not exist yet
                yield self._client
            except (Error, HTTPError, OSError) as error:
                raise ClickHouseError(self._url, _problem(error)) from error

    def _connect(self) -> Client:
        from clickhouse_connect import get_client

        parts = urlsplit(self._url)
        return get_client(
            host=parts.hostname,
            port=parts.port or (8443 if parts.scheme == "https" else 8123),
            interface=parts.scheme,
            username=self._user,
            password=self._password,
            settings=self._settings,
            connect_timeout=self._connect_seconds,
            send_receive_timeout=STATEMENT_SECONDS,
            query_retries=0,
            autogenerate_session_id=False,  # statements of one session must not overlap
        )


def require_client() -> None:
    """Raise `ClickHouseError` where the client library is not installed."""
    try:
        import clickhouse_connect  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise ClickHouseError(
            "clickhouse", f"needs clickhouse-connect: {install_command('clickhouse')}"
        ) from error


def _problem(error: Exception) -> str:
    """Return one line about a failure; of a connection only its reason, since the rest repeats the request."""
    cause = error.__cause__ or error
    reason = getattr(cause, "reason", None)  # of the last attempt of urllib3
    if reason is not None:
        return f"cannot be reached ({str(reason).rpartition(': ')[2]})"
    return next(iter(str(error).strip().splitlines()), type(error).__name__)

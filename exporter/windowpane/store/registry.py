"""Registry that the processes of a store share: admitted agent labels and running `/metrics` endpoints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from windowpane.store.database import Database

MAXIMUM_AGENTS: Final = 50
MAXIMUM_AGENT_CHARS: Final = 64
OTHER: Final = "other"
"""The metric label of every agent beyond the first 50."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


def label_of(name: str) -> str:
    """Return an agent's name as a metric label: at most 64 letters, digits, `_`, `.` and `-`."""
    return _UNSAFE.sub("_", name)[:MAXIMUM_AGENT_CHARS] or "unnamed"


def known_agent(connection: Database, label: str) -> str | None:
    """Return the label if it was admitted, `other` if the store is full; None if it may be admitted."""
    if connection.execute("SELECT 1 FROM agents WHERE name = ?", (label,)).fetchone():
        return label
    (admitted,) = connection.execute("SELECT count(*) FROM agents").fetchone()
    return OTHER if admitted >= MAXIMUM_AGENTS else None


def admit_agent(connection: Database, label: str) -> str:
    """Return the label if it is one of the first 50 distinct ones, admitting it; else `other`."""
    admitted = known_agent(connection, label)
    if admitted is None:
        connection.execute("INSERT INTO agents (name) VALUES (?)", (label,))
    return admitted or label


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A `/metrics` endpoint of a process."""

    host: str
    port: int
    pid: int
    started_at: float
    scheme: str = "http"
    """`http`, or `https` for an endpoint with a certificate."""
    machine: str = ""
    """Name of the machine on which the process runs."""


def register_endpoint(connection: Database, endpoint: Endpoint) -> None:
    """Record a running endpoint, replacing one that stopped without notice at the same address of the machine."""
    connection.execute(
        "INSERT INTO endpoints (host, port, pid, started_at, scheme, machine) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (machine, host, port) DO UPDATE SET pid = excluded.pid, started_at = excluded.started_at, "
        "scheme = excluded.scheme",
        (endpoint.host, endpoint.port, endpoint.pid, endpoint.started_at, endpoint.scheme, endpoint.machine),
    )


def unregister_endpoint(connection: Database, host: str, port: int, machine: str) -> None:
    """Remove an endpoint that has stopped."""
    sql = "DELETE FROM endpoints WHERE host = ? AND port = ? AND machine = ?"
    connection.execute(sql, (host, port, machine))


def endpoints(connection: Database) -> list[Endpoint]:
    """Return the registered endpoints, oldest first."""
    query = "SELECT host, port, pid, started_at, scheme, machine FROM endpoints ORDER BY started_at, host, port"
    return [Endpoint(*row) for row in connection.execute(query)]

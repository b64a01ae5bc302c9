"""What the store shares beside events: its digest key, admitted agents, running endpoints, facets, size."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Final

from windowpane.core.digests import keyed_digester
from windowpane.core.protocols import Digester
from windowpane.store.records import StoreSize

MAXIMUM_AGENTS: Final = 50
MAXIMUM_AGENT_CHARS: Final = 64
OTHER: Final = "other"
"""What an agent beyond the first 50 is called in metric labels."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A `/metrics` endpoint of a process of this host."""

    host: str
    port: int
    pid: int
    started_at: float
    scheme: str = "http"
    """`http`, or `https` where it has a certificate."""


def digester(connection: sqlite3.Connection) -> Digester:
    """The store's digest function: keyed with its own random key, 32 hexadecimal digits."""
    return keyed_digester(connection.execute("SELECT digest_key FROM store").fetchone()[0])


def label_of(name: str) -> str:
    """An agent's name as a metric label can carry it: at most 64 letters, digits, `_`, `.` and `-`."""
    return _UNSAFE.sub("_", name)[:MAXIMUM_AGENT_CHARS] or "unnamed"


def known_agent(connection: sqlite3.Connection, label: str) -> str | None:
    """The label when it was admitted, `other` when no more are; None while it may be admitted."""
    if connection.execute("SELECT 1 FROM agents WHERE name = ?", (label,)).fetchone():
        return label
    (admitted,) = connection.execute("SELECT count(*) FROM agents").fetchone()
    return OTHER if admitted >= MAXIMUM_AGENTS else None


def admit_agent(connection: sqlite3.Connection, label: str) -> str:
    """The label, when it is one of the first 50 distinct ones or becomes it; else `other`."""
    known = known_agent(connection, label)
    if known is None:
        connection.execute("INSERT INTO agents VALUES (?)", (label,))
    return known or label


def register_endpoint(connection: sqlite3.Connection, endpoint: Endpoint) -> None:
    """Note a running endpoint; one that died at the same address is forgotten."""
    connection.execute(
        "INSERT OR REPLACE INTO endpoints (host, port, pid, started_at, scheme) VALUES (?, ?, ?, ?, ?)",
        (endpoint.host, endpoint.port, endpoint.pid, endpoint.started_at, endpoint.scheme),
    )


def unregister_endpoint(connection: sqlite3.Connection, host: str, port: int) -> None:
    """Forget an endpoint that has stopped."""
    connection.execute("DELETE FROM endpoints WHERE host = ? AND port = ?", (host, port))


def endpoints(connection: sqlite3.Connection) -> list[Endpoint]:
    """The registered endpoints, oldest first."""
    query = "SELECT host, port, pid, started_at, scheme FROM endpoints ORDER BY started_at, host, port"
    return [Endpoint(*row) for row in connection.execute(query)]


def facets(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Distinct values of what sessions and events can be filtered by."""
    found = {
        f"{column}s": tuple(
            value
            for (value,) in connection.execute(
                f"SELECT DISTINCT {column} FROM sessions WHERE current = 1 ORDER BY 1"  # noqa: S608  # ours
            )
            if value
        )
        for column in ("agent", "model", "source")
    }
    types = connection.execute("SELECT name FROM event_types WHERE events > 0 ORDER BY name")
    return {**found, "types": tuple(name for (name,) in types)}


def size(connection: sqlite3.Connection) -> StoreSize:
    """How much is stored, from counts that are kept and not from counting."""
    by_type = dict(connection.execute("SELECT name, events FROM event_types WHERE events > 0").fetchall())
    sessions, oldest = connection.execute(
        "SELECT count(*), min(last_at) FROM sessions WHERE current = 1"
    ).fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    (texts,) = connection.execute("SELECT count(*) FROM contents").fetchone()
    return StoreSize(
        events=sum(by_type.values()),
        sessions=sessions,
        bytes=(pages - free) * page_bytes,
        contents=texts,
        oldest_at=oldest,
        by_type=by_type,
    )

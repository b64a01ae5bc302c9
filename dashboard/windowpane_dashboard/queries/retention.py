"""How much is stored and how long it stays, as it is configured where this dashboard runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from windowpane.config.loading import load_config
from windowpane.store.records import StoreSize
from windowpane.text.formats import ago, count, size

BESIDE = ("", "-wal", "-shm")
"""The database file and those SQLite keeps beside it."""


@dataclass(frozen=True, slots=True)
class Retention:
    """When whole sessions are let go."""

    days: float
    bytes: int
    configured: frozenset[str]
    """Which of the two somebody has set; the other is the default."""


def configured_retention() -> Retention:
    """The limits that `windowpane serve` keeps with these settings. Raises `ConfigurationError`."""
    store = load_config().store
    known = {"retention_days": "days", "retention_bytes": "bytes"}
    configured = frozenset(known[name] for name in store.model_fields_set if name in known)
    return Retention(store.retention_days, store.retention_bytes, configured)


def retention_words(kept: Retention) -> str:
    """`after 30 days without an event (default) or beyond 2.0 GB (configured)`."""
    origin = {name: "configured" if name in kept.configured else "default" for name in ("days", "bytes")}
    days = count(int(kept.days), "day") if kept.days == int(kept.days) else f"{kept.days:g} days"
    return f"after {days} without an event ({origin['days']}) or beyond {size(kept.bytes)} ({origin['bytes']})"


def bytes_on_disk(path: Path) -> int:
    """What the store takes: the database with its write-ahead log."""
    found = (path.with_name(path.name + suffix) for suffix in BESIDE)
    return sum(file.stat().st_size for file in found if file.exists())


def stored_words(stored: StoreSize, on_disk: int, now: float) -> str:
    """How much there is: `13.4 MB on disk (12.9 MB in use), 12,022 events of 15 sessions, no content`."""
    texts = count(stored.contents, "captured text") if stored.contents else "no content"
    used = "" if size(on_disk) == size(stored.bytes) else f" ({size(stored.bytes)} in use)"
    oldest = (
        "" if stored.oldest_at is None else f"; the oldest session was last heard of {ago(stored.oldest_at, now)}"
    )
    return (
        f"Store: {size(on_disk)} on disk{used}, {count(stored.events, 'event')} of "
        f"{count(stored.sessions, 'session')}, {texts}{oldest}."
    )

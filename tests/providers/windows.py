"""The window of a session as its events state it, without times and ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.records import SessionRow


def windows(store: SqliteStore, session_id: str) -> list[tuple[Any, ...]]:
    """Return what entered and left the window of a session and its sub-sessions, and its sizes, in order."""
    rows = [row for row in store.sessions(SessionFilter()) if _is_within(row.session_id, session_id)]
    return windows_of(store, sorted(rows, key=lambda row: row.session_id))


def windows_of(store: SqliteStore, sessions: Sequence[SessionRow]) -> list[tuple[Any, ...]]:
    """Return what entered and left the windows of *sessions*, and their sizes, in order."""
    return [row for number, one in enumerate(sessions) for row in _rows(store, one.session_id, number)]


def _is_within(one: str, session_id: str) -> bool:
    rest = one.removeprefix(session_id)
    return one.startswith(session_id) and not rest.startswith("/bare") and (not rest or rest[0] == "/")


def _rows(store: SqliteStore, session_id: str, number: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for stored in store.events(EventFilter(session_id)):
        data = stored.event.data
        match stored.event.type:
            case "block.added":
                rows.append((number, "added", data.block.content_type, data.block.tokens, data.block.tool_name))
            case "pressure.measured":
                rows.append((number, data.phase, data.used_tokens))
            case "turn.ended":
                rows.append((number, "usage", data.usage, data.cost_dollars))
            case "blocks.evicted" | "content.compressed" | "overflow.detected" | "reply.discarded":
                rows.append((number, stored.event.type))
    return rows


def open_store(path: Path) -> SqliteStore:
    """Open a store that another process wrote."""
    return SqliteStore(path)

"""The pace of one session, read alone: a status line at every prompt cannot wait for the rest of the store."""

from __future__ import annotations

import sqlite3

LOCKED_SECONDS = 0.2
"""The longest wait for another process; a status line without the pace is better than a late one."""
_COLUMNS = (
    "used_tokens", "limit_tokens", "velocity", "turns_until_red", "turns_until_compaction", "ended", "last_at",
)  # fmt: skip
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM sessions WHERE session_id = ? AND +current = 1"  # noqa: S608  # ours


class Pace:
    """The latest values of a session."""

    __slots__ = (
        "ended", "last_at", "limit_tokens", "turns_until_compaction", "turns_until_red", "used_tokens",
        "velocity",
    )  # fmt: skip

    def __init__(
        self,
        *,
        used_tokens: int,
        limit_tokens: int | None,
        velocity: float | None,
        turns_until_red: float | None,
        turns_until_compaction: float | None,
        ended: int,
        last_at: float | None,
    ) -> None:
        self.used_tokens = used_tokens
        self.limit_tokens = limit_tokens
        self.velocity = velocity
        self.turns_until_red = turns_until_red
        self.turns_until_compaction = turns_until_compaction
        self.ended = bool(ended)
        self.last_at = last_at


def read_pace(store_file: str, session_id: str) -> Pace | None:
    """Return the pace of a session; None where it is not in a readable store."""
    path = store_file.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=LOCKED_SECONDS)
        try:
            row = connection.execute(_SELECT, (session_id,)).fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
    return None if row is None else Pace(**dict(zip(_COLUMNS, row, strict=True)))

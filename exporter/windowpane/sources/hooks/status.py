"""The status line of Claude Code: the window as its client counts it, the pace in the store, a quota nearly used.

The quota that Claude Code states is recorded in the store, which no transcript holds.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

from windowpane.core.times import is_live
from windowpane.core.zones import default_zone
from windowpane.sources.hooks.input import configured_store, read_document
from windowpane.sources.installed_agents.status_line_windows import is_wrong, remember, remember_window
from windowpane.text.forecasts import next_event
from windowpane.text.status_line import status_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AGENT = "claude-code"
QUOTA_MINUTES = {"five_hour": 300, "seven_day": 10_080}
"""The windows of `rate_limits`, by their names; absent for API keys and before the first reply."""
QUOTA_FILE = "quota"
"""File of the whole percents that a store on a server was last given."""
NEARLY_USED = 0.8
"""Used part of a window from which on the line shows it."""
USAGE_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def print_status(store: str | None = None) -> None:
    """Print one line about the session on standard input; an empty one without values, and for any error."""
    try:
        line = session_line(read_document(), store)
    except Exception:  # noqa: BLE001
        line = ""
    sys.stdout.buffer.write(f"{line}\n".encode())  # the terminal is Claude Code, which reads UTF-8
    sys.stdout.buffer.flush()


def session_line(session: dict[str, Any], store: str | None = None) -> str:
    """Return the status line of a session; *store* is the configured one by default."""
    window, model = _mapping(session.get("context_window")), _mapping(session.get("model")).get("id")
    usage = _mapping(window.get("current_usage"))
    used = sum(_count(usage.get(name)) for name in USAGE_NAMES)
    limit = _count(window.get("context_window_size")) or None
    if limit and (used > limit or (isinstance(model, str) and is_wrong(session.get("version"), model))):
        limit = None
    session_id = session.get("session_id")
    if limit and isinstance(session_id, str) and isinstance(model, str):
        with suppress(OSError):
            remember_window(session_id, model, limit)
    velocity = ahead = None
    stored = _stored(session_id, store)
    if stored is not None:
        velocity = stored.velocity
        ahead = next_event(stored) if is_live(stored, time.time()) else None
        used, limit = used or stored.used_tokens, limit or stored.limit_tokens
    windows = _quota(_mapping(session.get("rate_limits")), time.time())
    if windows:
        _record(windows, store)
    if not used:
        return ""
    line = status_line(
        zone=None if limit is None else default_zone(used, limit),
        utilization=None if limit is None else used / limit,
        used_tokens=used,
        limit_tokens=limit,
        velocity=velocity,
        ahead=ahead,
    )
    return " ".join(
        [line, *(f"{used:.0%} of {minutes // 60} h" for minutes, _, used in windows if used >= NEARLY_USED)]
    )


def _quota(stated: dict[str, Any], now: float) -> list[tuple[int, float, float]]:
    """Return minutes, end and used part of the windows that have not ended."""
    windows = []
    for name, minutes in QUOTA_MINUTES.items():
        window = _mapping(stated.get(name))
        used, resets_at = window.get("used_percentage"), _count(window.get("resets_at"))
        if isinstance(used, int | float) and 0 <= used < 10_000 and 0 < resets_at - now <= minutes * 60 + 3_600:
            windows.append((minutes, float(resets_at), used / 100))
    return windows


def _record(windows: list[tuple[int, float, float]], store: str | None) -> None:
    from windowpane.store import quotas

    name, now = configured_store(store), time.time()
    rows = [quotas.row(AGENT, minutes, ends, used, now) for minutes, ends, used in windows]
    if os.path.isfile(name):  # noqa: PTH113  # pathlib takes a third of the time of the interpreter
        quotas.record(name, rows)
    elif "://" in name and remember(QUOTA_FILE, [row[:-1] for row in rows]):
        from windowpane.sources.hooks.server_quota import start_recording

        start_recording(name, rows)


def _stored(session_id: object, store: str | None) -> Any:
    """Return the pace of a session; None where it is not stored."""
    if not isinstance(session_id, str) or not session_id:
        return None
    store_file = configured_store(store)
    if not os.path.isfile(store_file):  # noqa: PTH113  # pathlib takes a third of the time of the interpreter
        return None
    from windowpane.store.reads.pace import read_pace

    return read_pace(store_file, session_id)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        return 0
    return int(value)

"""The rows of all of Codex's releases in one form: a type, a payload, and a time.

Until September 2025 rows had no envelope: a rollout started with a header without a type, each further row was an
item of a response, and marks of the program's state stood between them. Some later files have the fields of the
payload beside the type.
"""

from __future__ import annotations

import re
from typing import Any, Final

ROW_TYPES: Final = frozenset({"session_meta", "response_item", "turn_context", "event_msg", "compacted"})
_HEADER: Final = frozenset({"id", "timestamp", "instructions", "git"})
_FOLDER: Final = re.compile(r"<cwd>(.+?)</cwd>|^Current working directory: (.+)$", re.MULTILINE)


def is_early_header(row: dict[str, Any]) -> bool:
    """Return whether *row* starts a rollout of the first releases."""
    return {"id", "timestamp"} < row.keys() <= _HEADER


def in_envelope(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return *row* with a payload; None for a mark of the program's state."""
    if "payload" in row:
        return row
    if is_early_header(row):
        return {"timestamp": row["timestamp"], "type": "session_meta", "payload": row}
    kind = row.get("type")
    if kind is None and "record_type" in row:
        return None
    inner = {name: value for name, value in row.items() if name not in ("type", "timestamp")}
    if not isinstance(kind, str) or kind == "event_msg" or not inner:
        return row
    if kind in ROW_TYPES:
        return {"timestamp": row.get("timestamp"), "type": kind, "payload": inner}
    return {"timestamp": row.get("timestamp"), "type": "response_item", "payload": {"type": kind} | inner}


def folder_in(context: str) -> str:
    """Return the folder that a description of the environment names; empty where it names none."""
    match = _FOLDER.search(context)
    return "" if match is None else (match[1] or match[2]).strip()

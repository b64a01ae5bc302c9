"""The threads that a rollout of Codex refers to: the one that started it, and the one it was forked from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from windowpane.sources.transcripts.inherited import InheritedHistory
from windowpane.sources.transcripts.json_lines import count, mapping, text

_ID: Final = re.compile(r"[\w-]{1,128}")


def parent_of(payload: dict[str, Any]) -> str | None:
    """Return the thread that started this one as a sub-agent, such as a review; None for others."""
    agent = mapping(payload.get("source")).get("subagent")
    spawned = mapping(mapping(agent).get("thread_spawn"))
    return (
        text(spawned.get("parent_thread_id")) or (text(payload.get("parent_thread_id")) if agent else "") or None
    )


def origin_of(payload: dict[str, Any]) -> str:
    """Return the thread whose rows a rollout starts with, that of a fork or of a sub-agent with a history."""
    if payload.get("history_base"):
        return ""  # the file refers to the other thread's rows instead of copying them
    origin = text(payload.get("forked_from_id"))
    return origin or (parent_of(payload) or "" if _own_rows_from(payload) else "")


def segment_key(payload: dict[str, Any], key: str) -> str:
    """Return the key of a rollout's session; one that continues the same thread's earlier rollout has another."""
    base = mapping(payload.get("history_base"))
    return f"{key}~{count(base.get('end_ordinal_exclusive'))}" if base.get("thread_id") == key else key


def inherited_history(payload: dict[str, Any], origin: str, path: Path, *, key: str) -> InheritedHistory | None:
    """Return the history that a rollout repeats; None where the other thread's rollout is not there.

    Since July 2026 rows are numbered and the header states the first of the thread's own.
    """
    other, start = rollout_of(origin, path), _own_rows_from(payload)
    if other is not None and start:
        return InheritedHistory(lambda row: 0 < count(row.get("ordinal")) < start, is_required=False)
    return InheritedHistory.of(other, path, key=key, ignored="timestamp")


def _own_rows_from(payload: dict[str, Any]) -> int:
    """Return the number of the first row that is not a copy; 0 where the header does not state it."""
    return count(payload.get("subagent_history_start_ordinal"))


def rollout_of(session: str, fork: Path) -> Path | None:
    """Return the rollout of another session: beside *fork*, or in the folder of another day."""
    if not _ID.fullmatch(session):
        return None
    beside: Path | None = next(fork.parent.glob(f"*{session}.jsonl"), None)
    if beside is not None:
        return beside
    days = next((parent for parent in fork.parents[:4] if not parent.name.isdigit()), fork.parent)
    return next(days.glob(f"*/*/*/*{session}.jsonl"), None)

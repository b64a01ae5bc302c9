"""The threads that a rollout of Codex refers to: the one that started it, and the one it was forked from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from windowpane.sources.json_lines import mapping, text

_ID: Final = re.compile(r"[\w-]{1,128}")


def parent_of(payload: dict[str, Any]) -> str | None:
    """Return the thread that started this one as a sub-agent, such as a review; None for others."""
    agent = mapping(payload.get("source")).get("subagent")
    spawned = mapping(mapping(agent).get("thread_spawn"))
    return (
        text(spawned.get("parent_thread_id")) or (text(payload.get("parent_thread_id")) if agent else "") or None
    )


def rollout_of(session: str, fork: Path) -> Path | None:
    """Return the rollout of another session: beside *fork*, or in the folder of another day."""
    if not _ID.fullmatch(session):
        return None
    beside: Path | None = next(fork.parent.glob(f"*{session}.jsonl"), None)
    if beside is not None:
        return beside
    days = next((parent for parent in fork.parents[:4] if not parent.name.isdigit()), fork.parent)
    return next(days.glob(f"*/*/*/*{session}.jsonl"), None)

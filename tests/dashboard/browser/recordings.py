"""Recordings as their programs wrote them: one that continues now, one with the files of its sub-agents."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_TIME = re.compile(r'"timestamp":\s?"(\d{4}-\d\d-\d\dT[\d:.]+Z)"')


def moved_to(rows: list[str], now: float) -> list[str]:
    """Return the rows of a transcript with their times moved, the last of them to *now*."""
    times = [_seconds(stamp) for row in rows for stamp in _TIME.findall(row)]
    later = now - max(times)

    def moved(found: re.Match[str]) -> str:
        at = datetime.fromtimestamp(_seconds(found[1]) + later, UTC)
        return f'"timestamp":"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1_000:03}Z"'

    return [_TIME.sub(moved, row) for row in rows]


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def write_with_subagents(recording: Path, folder: Path) -> Path:
    """Copy a Claude Code session to *folder*, with a transcript of each sub-agent as Claude Code writes it.

    The published recordings lack those files, but the session repeats each row of them in a progress row.
    Returns the copy.
    """
    rows = recording.read_text(encoding="utf-8").splitlines()
    copy = folder / recording.name
    copy.write_text("\n".join(rows) + "\n", encoding="utf-8")
    agents: dict[str, list[dict[str, Any]]] = {}
    for row in map(json.loads, rows):
        data = row.get("data", {})
        if row.get("type") == "progress" and data.get("type") == "agent_progress":
            written = agents.setdefault(data["agentId"], [])
            above = {name: row[name] for name in ("sessionId", "cwd", "gitBranch", "version")}
            parent = written[-1]["uuid"] if written else None
            chain = {"isSidechain": True, "agentId": data["agentId"], "parentUuid": parent}
            written.append(above | data["message"] | chain)
    subagents = folder / recording.stem / "subagents"
    subagents.mkdir(parents=True)
    for name, written in agents.items():
        lines = (json.dumps(row) + "\n" for row in written)
        (subagents / f"agent-{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return copy

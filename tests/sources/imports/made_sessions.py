"""Sessions of one agent after each other, which learn from those before them, and what a store holds of them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

START = 1_770_000_000
MODELS = ("claude-opus-4-7", "claude-opus-4-7", "claude-haiku-4-5")


def write_sessions(folder: Path, number: int, *, turns: int = 12) -> Path:
    """Write so many transcripts below *folder*: some compacted, one forked, one damaged, one without a format."""
    folder.mkdir(exist_ok=True)
    for session in range(number):
        rows = list(_rows(session, turns))
        if session == number - 2:  # a fork repeats the calls of another session
            rows = [*_rows(session - 1, turns, key=_key(session)), *rows]
        lines = [json.dumps(row) for row in rows]
        if session == number // 2:
            lines[3] = lines[3][:40]
        (folder / f"{_key(session)}.jsonl").write_text("\n".join(lines) + "\n")
        os.utime(folder / f"{_key(session)}.jsonl", (START, START))  # finished
    (folder / "notes.jsonl").write_text('{"nothing": "known"}\n')
    return folder


def _key(session: int) -> str:
    return f"{session:08}-0000-4000-8000-000000000000"


def _rows(session: int, turns: int, *, key: str = "") -> Iterator[dict[str, Any]]:
    model, key = MODELS[session % len(MODELS)], key or _key(session)
    used = 9_000 + 700 * session  # the system prompt of each is another one
    for turn in range(turns):
        at = datetime.fromtimestamp(START + 1_000 * session + 10 * turn, UTC).isoformat().replace("+00:00", "Z")
        common = {"sessionId": key, "timestamp": at, "cwd": "/project", "version": "2.1.200"}
        if turn == turns // 2 and session % 4 == 1:
            boundary = {"trigger": "auto", "preTokens": 90_000 + session}
            yield common | {
                "type": "system",
                "subtype": "compact_boundary",
                "uuid": f"b{turn}",
                "compactMetadata": boundary,
            }
            yield common | {
                "type": "user", "uuid": f"s{turn}", "isCompactSummary": True,
                "message": {"role": "user", "content": f"The port is {session}, src/m{session}.py changed."},
            }  # fmt: skip
            used = 12_000
        text = f"Change src/m{session}.py so that the port is {8000 + turn}. " + "The tests must pass. " * 40
        yield common | {"type": "user", "uuid": f"u{turn}", "message": {"role": "user", "content": text}}
        used += 600
        large = 200_000 if (session, turn) == (2, turns - 1) else 0  # shows later sessions a larger window
        usage = {"input_tokens": 10, "cache_read_input_tokens": used + large, "output_tokens": 50}
        content = [{"type": "text", "text": f"Changed src/m{session}.py, the port is now {8000 + turn}."}]
        reply = {
            "id": f"msg_{session}_{turn}",
            "role": "assistant",
            "model": model,
            "content": content,
            "usage": usage,
        }
        yield common | {
            "type": "assistant",
            "uuid": f"a{turn}",
            "requestId": f"r{session}{turn}",
            "message": reply,
        }


def stored_rows(file: Path) -> dict[str, list[Any]]:
    """Return the rows of every table of a store, without what depends on the time and the number of writers."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE store SET flushes = 0")  # never committed
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        names = [name for name, sql in tables if "VIRTUAL" not in sql and name != "schema_versions"]
        return {name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"'))) for name in names}

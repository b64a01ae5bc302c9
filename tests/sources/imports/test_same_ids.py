"""Recordings that state the id of another session: each session is stored, none in place of another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from windowpane.sources.imports.importer import FileReport, import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.imports.workers import ReadingWorkers
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore
from windowpane.store.records import ImportOutcome

KEY = "0a1b2c3d-0000-4000-8000-000000000001"
AT = "2026-01-01T00:00:{:02}Z"


def codex_rows(name: str, calls: int, *, key: str = KEY) -> Iterator[dict[str, Any]]:
    """Yield a rollout whose first rows, times and counts are those of every other."""
    yield {"type": "session_meta", "timestamp": AT.format(0), "payload": {"id": key, "cwd": "/project"}}
    yield {"type": "turn_context", "timestamp": AT.format(0), "payload": {"model": "gpt-5"}}
    for number in range(calls):
        asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]}
        replied = {"type": "output_text", "text": f"{name} {number}"}
        answer = {"type": "message", "role": "assistant", "content": [replied]}
        usage = {"input_tokens": 100 * (number + 1), "output_tokens": 9, "total_tokens": 100 * (number + 1) + 9}
        totals = {"total_token_usage": usage, "last_token_usage": usage}
        rows = (
            ("response_item", asked), ("response_item", answer),
            ("event_msg", {"type": "token_count", "info": totals}),
        )  # fmt: skip
        for kind, payload in rows:
            yield {"type": kind, "timestamp": AT.format(number + 1), "payload": payload}


def write(path: Path, rows: Iterator[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1_770_000_000, 1_770_000_000))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "windowpane.db", capture=True, redact=str)) as opened:
        yield opened


def imported(store: SqliteStore, paths: Sequence[Path], *, processes: int = 0) -> list[FileReport]:
    playback = playback_settings(
        store.digester(), history=store.earlier_sessions, stored_projects=store.stored_project
    )
    with ReadingWorkers(store, playback=playback, processes=processes) as workers:
        return import_paths(
            paths, AlertingStore(store), playback=playback, readers=all_readers(),
            workers=workers if processes else None,
        )  # fmt: skip


def outcomes(reports: list[FileReport]) -> list[ImportOutcome]:
    return [outcome for report in reports for outcome in report.outcomes]


@pytest.mark.parametrize("processes", [0, 2])
def test_no_session_replaces_another_with_which_it_shares_no_call(
    tmp_path: Path, store: SqliteStore, processes: int
) -> None:
    paths = [
        write(tmp_path / f"{name}.jsonl", codex_rows(name, calls))
        for name, calls in (("a", 3), ("b", 5), ("c", 2))
    ]
    first, second, third = outcomes(imported(store, paths, processes=processes))

    assert (first.session_id, first.stated_id, first.turns) == (KEY, "", 3)
    assert (second.stated_id, second.turns, third.stated_id, third.turns) == (KEY, 5, KEY, 2)
    assert len({first.session_id, second.session_id, third.session_id}) == 3
    assert [row.revision for row in store.sessions()] == [1, 1, 1]
    again = outcomes(imported(store, paths, processes=processes))
    assert [one.session_id for one in again] == [first.session_id, second.session_id, third.session_id]
    assert [one.appended for one in again] == [0, 0, 0]
    grown = outcomes(imported(store, [write(paths[1], codex_rows("b", 6))], processes=processes))
    assert [(one.session_id, one.turns, one.revised) for one in grown] == [(second.session_id, 6, False)]
    assert store.verify().intact


def test_a_session_that_shares_a_call_is_a_revision(tmp_path: Path, store: SqliteStore) -> None:
    path = write(tmp_path / "a.jsonl", codex_rows("a", 3))
    imported(store, [path])
    rows = [*codex_rows("a", 1), *list(codex_rows("b", 5))[5:]]
    (outcome,) = outcomes(imported(store, [write(path, iter(rows))]))

    assert (outcome.session_id, outcome.stated_id, outcome.revised, outcome.turns) == (KEY, "", True, 5)


def test_a_recording_at_other_times_is_the_same_session(tmp_path: Path, store: SqliteStore) -> None:
    path = write(tmp_path / "a.jsonl", codex_rows("a", 3))
    imported(store, [path])
    moved = (json.loads(json.dumps(row).replace("2026-01-01", "2026-01-02")) for row in codex_rows("a", 4))
    (outcome,) = outcomes(imported(store, [write(path, moved)]))

    assert (outcome.session_id, outcome.stated_id, outcome.turns) == (KEY, "", 4)


def test_a_recording_without_a_call_replaces_nothing(tmp_path: Path, store: SqliteStore) -> None:
    imported(store, [write(tmp_path / "a.jsonl", codex_rows("a", 2))])
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Something else"}]}
    rows = [*codex_rows("b", 0), {"type": "response_item", "timestamp": AT.format(1), "payload": prompt}]
    (outcome,) = outcomes(imported(store, [write(tmp_path / "b.jsonl", iter(rows))]))

    assert (outcome.session_id, outcome.is_shorter) == (KEY, True)
    assert [row.turns for row in store.sessions()] == [2]


def claude_rows(name: str) -> Iterator[dict[str, Any]]:
    """Yield a session and a sub-agent's; all of one id."""
    for side in ({}, {"isSidechain": True, "agentId": "helper"}):
        for number in range(3):
            common = {"sessionId": KEY, "timestamp": AT.format(number), **side}
            which = f"{name} {len(side)} {number}"
            prompt = {"role": "user", "content": "Go on."}
            yield common | {"type": "user", "uuid": f"u{which}", "message": prompt}
            content = [{"type": "text", "text": which}]
            reply = {"id": f"m{which}", "role": "assistant", "model": "claude-opus-4-7", "content": content}
            reply["usage"] = {"input_tokens": 100, "output_tokens": 9}
            yield common | {"type": "assistant", "uuid": f"a{which}", "message": reply}


@pytest.mark.parametrize("processes", [0, 2])
def test_a_sub_agent_stays_below_the_session_of_its_file(
    tmp_path: Path, store: SqliteStore, processes: int
) -> None:
    paths = [write(tmp_path / name / f"{KEY}.jsonl", claude_rows(name)) for name in "ab"]
    first, second = imported(store, paths, processes=processes)
    rows = {row.session_id: row for row in store.sessions()}

    for report in (first, second):
        above, below = report.outcomes
        assert rows[below.session_id].parent_session_id == above.session_id
        assert (above.turns, below.turns) == (3, 3)
    assert len(rows) == 4

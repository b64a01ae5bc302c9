"""Outlines: what a recording states of its sessions is what its import shows, or less."""

from __future__ import annotations

import json
import math
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest
from tests.sampling import EVERYTHING
from tests.sources.imports.made_sessions import write_sessions

from windowpane.sources.imports import outline
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.noted_outlines import OutlineFile, SessionOutline, outlined_sessions
from windowpane.sources.imports.outline import outlined_files, outlines_of
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers, files_of
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow

SAMPLED_BYTES = 200_000
"""The largest recording that is read, unless all are."""


def outline_of(path: Path) -> SessionOutline:
    (outline,) = outlines_of(path, first_message_titles=True)
    return outline


def expect_shown(one: SessionOutline, row: SessionRow, sent: list[int]) -> None:
    names = "agent", "model", "parent_session_id", "title", "folder", "repository", "branch"
    assert [getattr(one, name) for name in names] == [getattr(row, name) for name in names]
    assert (one.first_at, one.last_at) == (row.started_at, row.last_at)
    assert one.limit_tokens in {None, row.limit_tokens}
    if one.calls is None:
        assert one.compactions is one.last_tokens is one.cost_dollars is None
        return
    assert (one.calls, one.compactions) == (row.turns, row.compressions)
    assert one.last_tokens == (sent[-1] if sent else None)
    if row.copied_turns:
        return  # the list shows no cost of two sessions with the same calls
    if one.cost_dollars is None or row.cost_dollars is None:
        assert one.cost_dollars is row.cost_dollars
    elif one.is_cost_partial:
        assert one.cost_dollars <= row.cost_dollars or math.isclose(one.cost_dollars, row.cost_dollars)
    else:
        assert math.isclose(one.cost_dollars, row.cost_dollars)


def test_an_outline_is_what_the_import_of_the_session_shows(sessions_dir: Path, tmp_path: Path) -> None:
    folders = [sessions_dir.parent / name for name in ("corpus", "corpus-new")] if EVERYTHING else []
    files = [
        path for path in files_of([sessions_dir, *folders]) if EVERYTHING or path.stat().st_size <= SAMPLED_BYTES
    ]
    outlines = [one for _, several in outlined_files(files, first_message_titles=True) for one in several]

    with closing(SqliteStore(tmp_path / "windowpane.db")) as store:
        playback = playback_settings(store.digester(), history=store.earlier_sessions)
        import_paths(files, AlertingStore(store), playback=playback, readers=all_readers())
        rows = {row.session_id: row for row in store.sessions(SessionFilter(limit=len(outlines)))}
        assert rows.keys() == {one.session_id for one in outlines}
        assert len(rows) > 50
        for one in outlines:
            turns = store.turns(one.session_id)
            sent = [turn.input_tokens for turn in turns if turn.input_tokens is not None]
            expect_shown(one, rows[one.session_id], sent)


@pytest.mark.parametrize("processes", [0, 2])
def test_several_processes_list_the_files_in_their_order(
    tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline, "worthwhile", lambda _, **__: processes)
    files = sorted(write_sessions(tmp_path / "sessions", 5).iterdir())

    listed = dict(outlined_files(files, first_message_titles=True))

    assert list(listed) == files
    assert [[Path(one.file) for one in several] for several in listed.values()] == [
        *([file] for file in files[:5]),
        [],
    ]


def test_a_process_that_dies_ends_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline, "worthwhile", lambda _, **__: 2)
    files = sorted(write_sessions(tmp_path / "sessions", 5).iterdir())
    monkeypatch.setattr(outline, "_send", print)  # which sends nothing

    assert list(outlined_files(files, first_message_titles=True)) == []


def test_outlines_are_noted_while_the_import_runs(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "sessions", 3)
    files, base = sorted(sessions.iterdir()), tmp_path / "windowpane.db"
    with OutlineFile(base) as note:
        for path, several in outlined_files(files, first_message_titles=True):
            note.add(path, several)
        note.finish()
        (written,) = tmp_path.glob("windowpane.db*")

        assert stat.S_IMODE(written.stat().st_mode) == 0o600
        assert [Path(one.file) for one in outlined_sessions(base)] == files[:3]
        note.start_reading(files[0])
        note.start_reading(files[1])
        note.finish()
        assert [Path(one.file) for one in outlined_sessions(base)] == files[1:3]
    assert outlined_sessions(base) == []
    assert not list(tmp_path.glob("windowpane.db*"))


def test_a_fork_and_its_origin_have_no_cost_as_long_as_both_are_unread(tmp_path: Path) -> None:
    files = sorted(write_sessions(tmp_path / "sessions", 4).glob("0*"))  # the third is a fork of the second
    with OutlineFile(tmp_path / "windowpane.db") as note:
        for path in files:
            note.add(path, [outline_of(path)])
        note.finish()
        outlines = outlined_sessions(tmp_path / "windowpane.db")

    assert [one.cost_dollars is None for one in outlines] == [False, True, True, False]
    assert outline_of(files[2]).cost_dollars is not None


@pytest.mark.parametrize("text", ['{"pid": 4194999, "outlines": []}', '{"pid": 1}', "", "[]", "\xff"])
def test_what_no_running_import_wrote_is_no_outline(tmp_path: Path, text: str) -> None:
    (tmp_path / "windowpane.db.outlines.json").write_text(text, encoding="latin-1")

    assert outlined_sessions(tmp_path / "windowpane.db") == []


def test_the_next_import_removes_the_outlines_of_a_killed_one(tmp_path: Path) -> None:
    file = tmp_path / "windowpane.db.outlines.json"
    file.write_text('{"pid": 4194999, "outlines": []}')
    with OutlineFile(tmp_path / "windowpane.db"):
        pass

    assert not file.exists()


def test_the_outlines_of_another_import_that_runs_stay(tmp_path: Path) -> None:
    other = f'{{"pid": {os.getppid()}, "outlines": []}}'
    (tmp_path / "windowpane.db.outlines.json").write_text(other)
    with OutlineFile(tmp_path / "windowpane.db") as note:
        note.finish()

    assert (tmp_path / "windowpane.db.outlines.json").read_text() == other


def test_titles_of_first_messages_are_made_only_where_the_store_would_hold_them(tmp_path: Path) -> None:
    (path, *_) = sorted(write_sessions(tmp_path / "sessions", 3).glob("0*"))
    (without,) = outlines_of(path, first_message_titles=False)

    assert outline_of(path).title.startswith("Change src/m0.py")
    assert without.title == ""


def test_a_title_is_redacted(tmp_path: Path) -> None:
    secret = "sk-ant-" + "api03-" + "a1B2" * 20
    row = {
        "type": "user", "uuid": "u", "sessionId": "00000000-0000-4000-8000-000000000009", "version": "2.1.200",
        "cwd": "/project", "message": {"role": "user", "content": f"Use {secret}"},
    }  # fmt: skip
    file = tmp_path / "session.jsonl"
    file.write_text(json.dumps(row) + "\n")
    os.utime(file, (0, 0))

    assert secret[:20] not in outline_of(file).title
    assert outline_of(file).title.startswith("Use ")


def test_a_file_that_is_no_recording_has_no_outline(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"nothing": "known"}\n')

    assert outlines_of(tmp_path / "notes.jsonl", first_message_titles=True) == []

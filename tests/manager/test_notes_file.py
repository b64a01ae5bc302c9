"""The agent's notes as a file beside an agent: what people write there, and what cannot be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import manager

from windowpane.core.events import NoteWritten
from windowpane.exceptions import ConfigurationError
from windowpane.manager.files.notes import FileNotes
from windowpane.manager.plans.notes import Note
from windowpane.testing import RecordingSink, in_memory_dependencies


def test_a_file_that_cannot_be_read_is_put_aside_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(b"# Notes\n- caf\xe9 on port 8080\n")
    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), notes=FileNotes(path, redact=str))
    with manager(sink, dependencies=dependencies) as window:
        assert window.task.notes == ""
        window.task.add_note("half way")
        window.task.add_note("nearly there")

    assert path.with_name("notes.md.unreadable").read_bytes() == b"# Notes\n- caf\xe9 on port 8080\n"
    assert [note.text for note in FileNotes(path, redact=str).load()] == ["half way", "nearly there"]


def test_what_people_write_into_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text(
        "# Notes\nprose\n\n## Task progress\n* [high] half way\n\n## Mine\n  - [low] own\n- [critical] now\n"
    )
    notes = FileNotes(path, redact=str)
    read = notes.load()
    notes.save(read)

    assert set(notes.load()) == set(read)
    assert list(read) == [
        Note("misc", "prose", "normal", 0, 0),
        Note("task_progress", "half way", "high", 0, 0),
        Note("misc", "[low] own", "normal", 0, 0),
        Note("misc", "now", "critical", 0, 0),
    ]


def test_an_unknown_importance_is_refused_when_the_note_is_written() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        with pytest.raises(ConfigurationError, match="critical, high, normal"):
            window.task.add_note("never touch config.ts", importance="urgent")  # type: ignore[arg-type]  # the mistake
        window.task.add_note("never touch config.ts", importance="critical")
    assert len(sink.of(NoteWritten)) == 1

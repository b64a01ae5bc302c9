"""The list of formats: its names are those of the readers, and it asks the right reader first."""

from __future__ import annotations

from pathlib import Path

from windowpane.exceptions import SourceError, UnknownFormatError
from windowpane.sources.transcripts import compressed
from windowpane.sources.transcripts.discovery import HEAD_BYTES, all_readers, files_of, reader_for
from windowpane.sources.transcripts.folders import FolderReader
from windowpane.sources.transcripts.formats.registry import FORMATS


def test_each_format_is_that_of_its_reader() -> None:
    readers = all_readers()

    assert [reader.format for reader in readers] == [one.name for one in FORMATS]
    assert [isinstance(reader, FolderReader) for reader in readers] == [bool(one.part) for one in FORMATS]


def test_the_reader_of_a_recording_is_the_first_that_recognizes_it(sessions_dir: Path) -> None:
    readers, files = all_readers(), 0
    for path in files_of([sessions_dir]):
        if path.is_dir():
            continue
        try:
            with compressed.open_recording(path) as file:
                head = file.read(HEAD_BYTES)
            chosen = type(reader_for(path, readers))
        except UnknownFormatError:
            assert not any(reader.recognizes(path, head) for reader in readers)
            continue
        except SourceError:
            continue
        files += 1
        assert chosen is next(type(reader) for reader in readers if reader.recognizes(path, head)), path

    assert files > 40


def test_a_file_without_the_marks_of_its_format_is_recognized_too(tmp_path: Path) -> None:
    """Escaped names hide the marks; then every reader is asked."""
    file = tmp_path / "session.jsonl"
    row = '{"type": "user", "se\u0073sionId": "s", "uu\u0069d": "a", "message": {"role": "user", "content": "x"}}'
    file.write_text(f"{row}\n")

    assert reader_for(file, all_readers()).format == "claude_code"

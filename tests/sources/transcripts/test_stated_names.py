"""The table of names and branches in the documentation, compared with recordings of the sources."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from reads import Read

from windowpane.exceptions import SourceError, UnknownFormatError
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.records import Rewound, SessionDescribed, SessionOpened

PAGE: Final = Path(__file__).parents[3] / "docs" / "sources.md"
COLUMNS: Final = ("title", "folder", "repository", "branch", "version", "label", "rewinds")
MAXIMUM_BYTES: Final = 300_000


def documented() -> dict[str, set[str]]:
    """Return the columns with a yes by format."""
    section = PAGE.read_text().partition("## Names and branches\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|(.*)\|$", section, re.MULTILINE)
    return {
        name: {column for column, cell in zip(COLUMNS, cells.split("|"), strict=True) if cell.strip() == "yes"}
        for names, cells in rows
        for name in re.findall(r"`(\w+)`", names)
    }


def stated(read: Read) -> set[str]:
    """Return the columns that a recording states."""
    columns = {"rewinds"} if read.of(Rewound) else set()
    for record in read.of(SessionDescribed):
        columns |= {name for name in COLUMNS if getattr(record, name, "")}
        columns |= {"version"} if record.agent_version else set()
    return columns | ({"version"} if any(opened.agent_version for opened in read.of(SessionOpened)) else set())


def test_every_format_is_in_the_table() -> None:
    """A reader without a row would state names that the page lacks."""
    assert set(documented()) == {reader.format for reader in all_readers()}


def test_recordings_state_no_name_that_the_table_lacks(sessions_dir: Path) -> None:
    readers, table = all_readers(complete=True), documented()
    seen: dict[str, set[str]] = {}
    for file in files_of([sessions_dir]):
        if file.stat().st_size > MAXIMUM_BYTES:
            continue
        try:
            reader = reader_for(file, readers)
        except (SourceError, UnknownFormatError):
            continue
        names = stated(Read(reader, file))

        assert names <= table[reader.format], file
        seen.setdefault(reader.format, set()).update(names)

    assert {"folder", "branch", "version"} <= seen["claude_code"]
    assert {"repository", "branch", "version", "folder"} <= seen["copilot_cli"]

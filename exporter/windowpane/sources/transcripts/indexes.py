"""Files in which agents list their sessions beside the recordings: known, and without content of a window."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from windowpane.sources.transcripts import databases
from windowpane.sources.transcripts.json_document import shape_of

CLAUDE_CODE: Final = "sessions-index.json"
"""Of a project's folder; titles and folders are in the transcripts too."""
CLINE: Final = "sessions.db"
_CLINE_COLUMNS: Final = frozenset({"session_id", "messages_path"})
"""Of the table of sessions, each of which has its messages in a file."""


def is_index(path: Path, head: bytes) -> bool:
    """Return whether the file, which starts with *head*, only lists recordings."""
    if path.name == CLAUDE_CODE:
        return shape_of(head) >= {"version", "entries"}
    return path.name == CLINE and databases.has_columns(path, head, "sessions", _CLINE_COLUMNS)

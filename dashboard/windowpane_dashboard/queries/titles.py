"""The names by which people recognize a session."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

from windowpane.store.records import SessionRow
from windowpane.text.formats import UNKNOWN

LENGTH = 120
"""Characters of a title."""


def session_title(row: SessionRow) -> str:
    """Return the title of a session; its id where none is known."""
    return row.title[:LENGTH] if row.title else row.session_id


def project(row: SessionRow) -> str:
    """Return the repository or folder, with its branch: `windowpane, next`."""
    base = _name(row.repository.removesuffix(".git")) or _name(row.folder)
    return ", ".join(part for part in (base, row.branch) if part) or UNKNOWN


def picker_label(row: SessionRow) -> str:
    """Return the line of a session in a list to choose from: its title, project, agent and id."""
    names = [row.title[:LENGTH], project(row)] if row.title else []
    return "  ·  ".join(part for part in (*names, row.agent, row.session_id) if part and part != UNKNOWN)


def _name(path: str) -> str:
    pure = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    return pure.name
